//! Real servers for the tests, and what their tests share.

pub mod fake;
pub mod link;
pub mod nats;
pub mod node;

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// As long as a machine may take that does much else.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("it listens").port()
}

/// Waits for a state.
pub async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}: not within {LIMIT:?}");
}

/// A program that ends with the test.
pub struct Process(Child);

impl Process {
    pub fn start(program: &str, arguments: &[String], log: &Path) -> Self {
        let open = || -> File {
            let file = OpenOptions::new().create(true).append(true).open(log);
            file.expect("the folder is the test's own")
        };
        let mut command = Command::new(program);
        let command = command.args(arguments).stdin(Stdio::null()).stdout(open()).stderr(open());
        Self(
            command.spawn().unwrap_or_else(|error| {
                panic!("{program}: {error}; RANKTREE_BIN and NATS_SERVER_BIN name them")
            }),
        )
    }

    /// kill -9: nothing is written, closed or said.
    pub fn kill(&mut self) {
        self.0.kill().expect("it was started here");
        self.0.wait().expect("it was started here");
    }

    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("it was started here").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

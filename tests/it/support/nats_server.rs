//! One nats-server process: started, waited for by what it says itself, killed and started again.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::support::tools::tool;

/// Far above what any start needs.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
/// Ports that the system hands out to nobody who asks for any: after a kill, nobody else has the server's.
const PORTS: std::ops::Range<u32> = 10_000..32_000;

/// A server's address on this machine, and all that is needed to start it once more.
pub struct NatsServer {
    child: Option<Child>,
    port: u16,
    arguments: Vec<String>,
}

impl NatsServer {
    /// Starts a server on a free port, and waits until it says that it is ready.
    pub fn start(arguments: &[String]) -> Self {
        loop {
            match Self::start_at(free_port(), arguments) {
                Ok(server) => return server,
                Err(said) => assert!(said.contains("address already in use"), "{said}"),
            }
        }
    }

    /// Starts a server on this port, and waits until it says that it is ready.
    ///
    /// # Errors
    /// When it ended instead; with what it said.
    pub fn start_at(port: u16, arguments: &[String]) -> Result<Self, String> {
        let mut server = Self { child: None, port, arguments: arguments.to_vec() };
        server.spawn()?;
        Ok(server)
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it is running").id()
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub fn kill9(&mut self) {
        let mut child = self.child.take().expect("it is running");
        child.kill().expect("a child that was not waited for can be signalled");
        child.wait().expect("a child can be waited for");
    }

    pub fn restart(&mut self) {
        assert!(self.child.is_none(), "it is still running");
        self.spawn().expect("its port is its own");
    }

    fn spawn(&mut self) -> Result<(), String> {
        let mut command = Command::new(tool("nats-server"));
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string()]).args(&self.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("nats-server is here; `make nats` installs it");
        let stderr = child.stderr.take().expect("it is piped");
        let (lines, said) = channel();
        // The thread reads to the end, so that the server never writes into a full or closed pipe.
        thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| drop(lines.send(line)));
        });
        let mut all = String::new();
        loop {
            match said.recv_timeout(READY_TIMEOUT) {
                Ok(line) if line.ends_with("Server is ready") => break,
                Ok(line) => all = all + &line + "\n",
                Err(_) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("nats-server did not become ready:\n{all}"));
                }
            }
        }
        self.child = Some(child);
        Ok(())
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that is free at the moment, and different from call to call.
pub fn free_port() -> u16 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        // Processes that test at the same time begin at different ends.
        let offset = std::process::id().wrapping_mul(131).wrapping_add(call) % (PORTS.end - PORTS.start);
        let port = u16::try_from(PORTS.start + offset).expect("the range is of ports");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

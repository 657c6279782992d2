//! The real binary as a child, or another build of it that `--binary PATH` names, to compare the two.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::http::Http;
use super::nats::free_port;
use super::{argument, number};

/// Far above what any start needs.
const START_WITHIN: Duration = Duration::from_secs(60);

pub struct Service {
    process: Child,
    pub port: u16,
}

impl Service {
    /// Starts it with a data directory, fed by NATS, and waits until it answers; it may still be catching up.
    pub fn start(data: &Path, nats: &str, shards: u16) -> Self {
        // All that a run stores is there to its end, for whoever reads it once more.
        Self::start_with(data, nats, &["--shards", &shards.to_string(), "--nats-no-purge"])
    }

    /// The same with these flags only.
    pub fn start_with(data: &Path, nats: &str, flags: &[&str]) -> Self {
        Self::start_fed_by(data, Some(nats), flags)
    }

    /// The same, with the embedded queue where there is no NATS.
    pub fn start_fed_by(data: &Path, nats: Option<&str>, flags: &[&str]) -> Self {
        let port = free_port();
        let log = File::create(data.with_extension("log")).expect("the scratch folder can be written");
        let binary = argument("binary").unwrap_or_else(|| env!("CARGO_BIN_EXE_ranktree").to_owned());
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
        if let Some(nats) = nats {
            // By default all streams together take that much, because the disk has to have room for them.
            let stream = number("stream-mib", 16_384 / number("shards", 1).max(1)).to_string();
            command.args(["--nats", nats, "--nats-stream-mib", &stream]);
        }
        let process = command
            .args(flags)
            .arg("--data-dir")
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the binary runs");
        let service = Self { process, port };
        let started = Instant::now();
        while Http::connect(port).is_none() {
            assert!(
                started.elapsed() < START_WITHIN,
                "ranktree does not start; see its log in the scratch folder"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        service
    }

    pub fn http(&self) -> Http {
        Http::connect(self.port).expect("it listens")
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn kill9(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("a child can be waited for");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The state of each shard, and how far it is, as the node says; `None` where it does not own the shard.
pub fn states(http: &mut Http) -> Vec<(String, Option<u64>)> {
    let (_, status) = http.get("/v1/status");
    let status: serde_json::Value = serde_json::from_str(status).expect("it is JSON");
    let shards = status.get("shards").and_then(serde_json::Value::as_array).expect("there are shards");
    let text = |shard: &serde_json::Value| {
        shard.get("state").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    let applied =
        |shard: &serde_json::Value| shard.get("applied_sequence").and_then(serde_json::Value::as_u64);
    shards.iter().map(|shard| (text(shard), applied(shard))).collect()
}

/// The applied sequences of all shards.
pub fn applied(http: &mut Http) -> Vec<u64> {
    let (_, status) = http.get("/v1/status");
    let status: serde_json::Value = serde_json::from_str(status).expect("it is JSON");
    let shards = status.get("shards").and_then(serde_json::Value::as_array).expect("there are shards");
    let applied = shards.iter().map(|shard| {
        let stale = shard.get("state").and_then(serde_json::Value::as_str) == Some("halted");
        assert!(!stale, "a shard is halted: {shard}");
        shard.get("applied_sequence").and_then(serde_json::Value::as_u64).expect("it is a number")
    });
    applied.collect()
}

pub fn define_board(http: &mut Http) {
    let (status, answer) = http.request("PUT", "/v1/boards/arena", "{}");
    assert!(status == 200 || status == 201, "{status} {answer}");
}

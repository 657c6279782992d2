//! A real redis-server, asked by redis-benchmark.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub struct Redis {
    process: Child,
    port: String,
    connections: u64,
}

impl Redis {
    pub fn start(folder: &Path, connections: u64) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("bound").port().to_string();
        drop(free);
        let process = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"])
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server runs");
        let redis = Self { process, port, connections };
        while !redis.cli(&["PING"]).contains("PONG") {
            std::thread::yield_now();
        }
        redis
    }

    fn cli(&self, words: &[&str]) -> String {
        let output =
            Command::new("redis-cli").args(["-p", &self.port]).args(words).output().expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// As many random members as there are; a few are drawn twice and some never, which a sorted set does not
    /// feel.
    pub fn load(&self, members: u64) {
        self.run(members, members * 3, 100, &["ZADD", "arena", "__rand_int__", "m__rand_int__"]);
        println!("redis holds {} members", self.cli(&["ZCARD", "arena"]).trim());
    }

    pub fn make_durable(&self) {
        self.cli(&["CONFIG", "SET", "appendfsync", "always"]);
        self.cli(&["CONFIG", "SET", "appendonly", "yes"]);
        // Turning it on rewrites the data first; what is measured comes after.
        while self.cli(&["INFO", "persistence"]).contains("aof_rewrite_in_progress:1") {
            std::thread::yield_now();
        }
        assert!(self.cli(&["CONFIG", "GET", "appendfsync"]).contains("always"), "Redis syncs every write");
    }

    pub fn port(&self) -> u16 {
        self.port.parse().expect("it was made of a number")
    }

    /// Sends commands that a file has in Redis's own protocol.
    pub fn pipe(&self, commands: &Path) {
        let file = std::fs::File::open(commands).expect("the file is there");
        let output = Command::new("redis-cli")
            .args(["-p", &self.port, "--pipe"])
            .stdin(file)
            .output()
            .expect("redis-cli runs");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("errors: 0"), "{told}");
    }

    /// Commands per second.
    pub fn run(&self, members: u64, commands: u64, pipeline: u64, command: &[&str]) -> f64 {
        let output = Command::new("redis-benchmark")
            .args(["-p", &self.port, "-q", "-c", &self.connections.to_string(), "-n", &commands.to_string()])
            .args(["-r", &members.to_string(), "-P", &pipeline.to_string()])
            .args(command)
            .output()
            .expect("redis-benchmark runs");
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "\n");
        let line = text.lines().rev().find(|line| line.contains("requests per second"));
        let line = line.unwrap_or_else(|| panic!("redis-benchmark says how fast it was: {text}"));
        let (before, _) = line.split_once(" requests per second").expect("found above");
        before.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

//! Real servers that speak Redis's protocol, asked by redis-benchmark: Redis, and Valkey if it is here.

use std::cell::Cell;
use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::arguments::argument;
use super::measured::Measured;
use super::resp::Resp;

/// Members that are sent at a time.
const PIPELINED: u64 = 1_000;

/// A server.
pub struct Redis {
    pub name: &'static str,
    process: Child,
    port: u16,
    connections: u64,
    /// How many runs of `ZADD` there were.
    zadds: Cell<u64>,
}

impl Redis {
    /// A redis-server.
    pub fn start(folder: &Path, connections: u64) -> Self {
        Self::start_program("Redis", Path::new("redis-server"), folder, connections)
    }

    /// A redis-server, and a valkey-server if there is one. If there is none, that is said.
    pub fn start_all(folder: &Path, connections: u64) -> Vec<Self> {
        let mut all = vec![Self::start(folder, connections)];
        match valkey() {
            Some(program) => all.push(Self::start_program("Valkey", &program, folder, connections)),
            None => println!(
                "Valkey is left out: there is no valkey-server; `make valkey` unpacks one, --valkey names one"
            ),
        }
        all
    }

    fn start_program(name: &'static str, program: &Path, folder: &Path, connections: u64) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).expect("a folder of its own");
        let process = Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let redis = Self { name, process, port, connections, zadds: Cell::new(0) };
        while !redis.cli(&["PING"]).contains("PONG") {
            std::thread::yield_now();
        }
        let about = redis.cli(&["INFO", "server"]);
        let version = |name| about.lines().find_map(|line| line.strip_prefix(name));
        let version = version("valkey_version:").or_else(|| version("redis_version:"));
        println!("{name} {}", version.unwrap_or("of an unknown version").trim());
        redis
    }

    fn cli(&self, words: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args(["-p", &self.port.to_string()])
            .args(words)
            .output()
            .expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// As many random members as there are; a few are drawn twice and some never, which a sorted set does not
    /// feel.
    pub fn load(&self, members: u64) {
        self.run(members, members * 3, 100, &["ZADD", "arena", "__rand_int__", "m__rand_int__"]);
        println!("{} holds {} members", self.name, self.cli(&["ZCARD", "arena"]).trim());
    }

    /// The memory that a sorted set of so many members takes, for each, with scores that differ.
    pub fn bytes_per_member(&self, members: u64, id: impl Fn(u64) -> String) -> f64 {
        let used = || {
            let memory = self.cli(&["INFO", "memory"]);
            let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:"));
            used.and_then(|used| used.trim().parse::<u64>().ok()).expect("it says so")
        };
        let before = used();
        let mut client = Resp::connect(self.port).expect("it listens");
        for first in (0..members).step_by(usize::try_from(PIPELINED).expect("it is small")) {
            let mut command = vec!["ZADD".to_owned(), "memory".to_owned()];
            for member in first..(first + PIPELINED).min(members) {
                // As scores of doubles that no two members share.
                command.push((member.wrapping_mul(2_654_435_761) % (1 << 40)).to_string());
                command.push(id(member));
            }
            client.ask(&command);
        }
        let after = used();
        // Valkey frees what is deleted in the background, and the next one measures what is held.
        self.cli(&["FLUSHALL", "SYNC"]);
        (after - before) as f64 / members as f64
    }

    pub fn make_durable(&self) {
        self.cli(&["CONFIG", "SET", "appendfsync", "always"]);
        self.cli(&["CONFIG", "SET", "appendonly", "yes"]);
        // Turning it on rewrites the data first; what is measured comes after.
        while self.cli(&["INFO", "persistence"]).contains("aof_rewrite_in_progress:1") {
            std::thread::yield_now();
        }
        assert!(self.cli(&["CONFIG", "GET", "appendfsync"]).contains("always"), "it syncs every write");
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends commands that a file has in Redis's own protocol.
    pub fn pipe(&self, commands: &Path) {
        let file = std::fs::File::open(commands).expect("the file is there");
        let output = Command::new("redis-cli")
            .args(["-p", &self.port.to_string(), "--pipe"])
            .stdin(file)
            .output()
            .expect("redis-cli runs");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("errors: 0"), "{told}");
    }

    /// A `ZADD` for redis-benchmark, of scores that no earlier run has drawn.
    ///
    /// It seeds its draws with the second and the process id, and two runs often have the same seed. The
    /// second one's `ZADD`s would change nothing, and Redis writes and syncs nothing for them: it is three
    /// times as fast. So each run's scores have a fraction of their own: as spread out as those that are
    /// there, and equal to none of them.
    pub fn zadd(&self) -> [String; 4] {
        self.zadds.set(self.zadds.get() + 1);
        let score = format!("__rand_int__.{:04}", self.zadds.get());
        ["ZADD".to_owned(), "arena".to_owned(), score, "m__rand_int__".to_owned()]
    }

    /// Commands per second.
    pub fn run(&self, members: u64, commands: u64, pipeline: u64, command: &[impl AsRef<OsStr>]) -> f64 {
        let output = Command::new("redis-benchmark")
            .args(["-p", &self.port.to_string(), "-q", "-c", &self.connections.to_string()])
            .args(["-n", &commands.to_string(), "-r", &members.to_string(), "-P", &pipeline.to_string()])
            .args(command)
            .output()
            .expect("redis-benchmark runs");
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "\n");
        let line = text.lines().rev().find(|line| line.contains("requests per second"));
        let line = line.unwrap_or_else(|| panic!("redis-benchmark says how fast it was: {text}"));
        let (before, _) = line.split_once(" requests per second").expect("found above");
        before.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }

    /// The same with so many connections, and how long the answers took.
    pub fn measure(
        &self,
        connections: u64,
        members: u64,
        commands: u64,
        command: &[impl AsRef<OsStr>],
    ) -> Measured {
        let output = Command::new("redis-benchmark")
            .args(["-p", &self.port.to_string(), "--csv", "-c", &connections.to_string()])
            .args(["-n", &commands.to_string(), "-r", &members.to_string()])
            .args(command)
            .output()
            .expect("redis-benchmark runs");
        let text = String::from_utf8_lossy(&output.stdout);
        // The command's name, commands per second, then milliseconds: mean, least, p50, p95, p99, most.
        let line = text.lines().last().unwrap_or_default();
        let figures: Vec<f64> =
            line.split(',').skip(1).filter_map(|figure| figure.trim_matches('"').parse().ok()).collect();
        let [per_second, _, _, p50, _, p99, _] = *figures else {
            panic!("redis-benchmark says how fast it was: {text}")
        };
        let time = |milliseconds: f64| Duration::from_secs_f64(milliseconds / 1e3);
        Measured { per_second, p50: time(p50), p99: time(p99) }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a figure against Redis is called against another such server.
pub fn ratio_name(name: &str, server: &str) -> String {
    if server == "Redis" { name.to_owned() } else { name.replace("_vs_", "_vs_valkey_") }
}

/// Whether there is a Redis at all.
pub fn is_here() -> bool {
    ["redis-server", "redis-cli"]
        .into_iter()
        .all(|program| Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok())
}

/// The valkey-server that `--valkey` or `VALKEY_SERVER` names; without them the one that `make valkey` has
/// unpacked, or the system's.
pub fn valkey() -> Option<PathBuf> {
    let named = argument("valkey").or_else(|| std::env::var("VALKEY_SERVER").ok());
    if let Some(named) = named {
        return Some(named.into());
    }
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools/bin/valkey-server");
    [unpacked, "valkey-server".into()].into_iter().find(|program| {
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    })
}

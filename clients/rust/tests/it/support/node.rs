//! A node, which may be killed and started again with the same data and address.

use std::fs;

use ranktree_client::Ranktree;
use tempfile::TempDir;

use crate::support::nats::Nats;
use crate::support::{Process, root, until};

pub struct Node {
    folder: TempDir,
    flags: Vec<String>,
    listen: String,
    process: Option<Process>,
    pub url: String,
}

pub fn program() -> String {
    let built = || root().join("bin/ranktree").display().to_string();
    std::env::var("RANKTREE_BIN").unwrap_or_else(|_| built())
}

impl Node {
    pub async fn start(flags: &[&str]) -> Self {
        let folder = TempDir::new().expect("there is room for temporary files");
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let listen = "127.0.0.1:0".to_owned();
        let mut node = Self { folder, flags, listen, process: None, url: String::new() };
        node.start_again().await;
        node
    }

    /// Without NATS, with two shards.
    pub async fn alone() -> Self {
        Self::start(&["--shards", "2"]).await
    }

    /// With three shards, which it reads from NATS.
    pub async fn of(nats: &Nats) -> Self {
        Self::start(&["--nats", &nats.url, "--shards", "3"]).await
    }

    pub async fn start_again(&mut self) {
        let log = self.folder.path().join("node.log");
        let before = fs::metadata(&log).map_or(0, |log| usize::try_from(log.len()).expect("it is short"));
        let data = self.folder.path().join("data").display().to_string();
        let mut arguments: Vec<String> =
            ["serve", "--listen", &self.listen, "--data-dir", &data].map(str::to_owned).into();
        arguments.extend(self.flags.clone());
        let mut process = Process::start(&program(), &arguments, &log);
        self.url = until("the node is ready", async || {
            let told = fs::read(&log).expect("it was made");
            let told = String::from_utf8_lossy(told.get(before..).unwrap_or_default()).into_owned();
            assert!(process.is_running(), "{told}");
            // The line that says that it is ready.
            let begin = told.find("http://127.0.0.1:").or_else(|| told.find("https://127.0.0.1:"))?;
            let (line, _) = told.get(begin..)?.split_once('\n')?;
            let is_url = |letter: char| letter.is_ascii_alphanumeric() || ":/.".contains(letter);
            let url: String = line.chars().take_while(|letter| is_url(*letter)).collect();
            Some(url.trim_end_matches(['/', '.']).to_owned())
        })
        .await;
        let listen = self.url.split("//").nth(1).expect("it is a URL");
        listen.clone_into(&mut self.listen);
        self.process = Some(process);
    }

    pub fn port(&self) -> u16 {
        self.listen.rsplit(':').next().and_then(|port| port.parse().ok()).expect("it listens")
    }

    pub fn client(&self) -> Ranktree {
        Ranktree::new(&self.url).expect("it is the address of a node")
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }
}

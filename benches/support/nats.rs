//! A real nats-server, and jobs published to it.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use async_nats::Client;
use futures_util::StreamExt as _;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use ranktree::types::{MemberId, shard_of};
use tokio::runtime::{Builder, Runtime};

use super::argument;
use super::workload::id;

/// A publisher that does not ask for every acknowledgement asks for one in so many...
const ASKED_EVERY: u64 = 1_000;
/// ...and waits when so many are out: the server drops what exceeds 10,000 unstored messages of a stream.
const ASKED_MAX: u64 = 5;

pub struct Nats {
    process: Child,
    pub port: u16,
}

impl Nats {
    /// Starts one with its files in `folder`; with `--nats-sync always` each message is on disk before its
    /// publisher hears so, as deploy/nats/nats-server.conf has it, or at another interval. The server's
    /// default is two minutes.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn start(folder: &Path) -> Result<Self, String> {
        Self::start_syncing(folder, &argument("nats-sync").unwrap_or_else(|| "2m".to_owned()))
    }

    /// Starts one with its files in `folder`, which syncs `always` or at an interval.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn start_syncing(folder: &Path, sync: &str) -> Result<Self, String> {
        let port = free_port();
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/nats-server");
        let program = if here.exists() { here } else { "nats-server".into() };
        let config = folder.with_extension("conf");
        let text =
            format!("jetstream {{ store_dir: {:?}, sync_interval: {sync} }}\n", folder.display().to_string());
        std::fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
        let process = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-c"])
            .arg(config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("nats-server ({error}); `make nats` installs it into .venv"))?;
        Ok(Self { process, port })
    }

    pub fn url(&self) -> String {
        url(self.port)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn url(port: u16) -> String {
    format!("nats://127.0.0.1:{port}")
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.expect("there is a free port").port()
}

/// A runtime for one thread: a client's connection and what is done with it take turns.
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub async fn connect(url: &str) -> Client {
    let options = async_nats::ConnectOptions::new().retry_on_initial_connect().client_capacity(65_536);
    let client = options.connect(url).await.expect("a good address");
    client.flush().await.expect("the server answers");
    client
}

pub fn subject(shard: u16) -> String {
    format!("ranktree.jobs.{shard}")
}

pub fn stream(shard: u16) -> String {
    format!("RANKTREE_JOBS_{shard}")
}

/// Makes up messages, each with jobs of members of one shard, shards in turn.
pub struct Messages {
    random: SmallRng,
    members: u64,
    shards: u16,
    jobs: u64,
    next: u64,
}

impl Messages {
    pub fn new(seed: u64, members: u64, shards: u16, jobs: u64) -> Self {
        Self { random: SmallRng::seed_from_u64(seed), members, shards, jobs, next: 0 }
    }

    /// The shard of the next message, and its body: a job as it is, or an array of them.
    pub fn next(&mut self) -> (u16, String) {
        let shard = u16::try_from(self.next % u64::from(self.shards)).expect("there are few shards");
        self.next += 1;
        let mut body = String::with_capacity(64 * usize::try_from(self.jobs).expect("it is small"));
        for job in 0..self.jobs {
            let member = self.member_of(shard);
            let score = self.random.random_range(0..1_u64 << 40);
            body.push_str(if self.jobs == 1 {
                ""
            } else if job == 0 {
                "["
            } else {
                ","
            });
            write!(body, r#"{{"board":"arena","member":"{member}","score":{score}}}"#).expect("into memory");
        }
        if self.jobs > 1 {
            body.push(']');
        }
        (shard, body)
    }

    fn member_of(&mut self, shard: u16) -> String {
        loop {
            let id = id(self.random.random_range(0..self.members));
            if self.shards == 1
                || shard_of(&MemberId::new(id.clone()).expect("well-formed"), self.shards).0 == shard
            {
                return id;
            }
        }
    }
}

/// Publishes as fast as the server stores, and gives the last sequence of each shard's stream.
/// Acknowledgements are asked for now and then; whether all is stored is counted at the end.
pub async fn publish_all(client: &Client, messages: &mut Messages, number: u64) -> Vec<u64> {
    let before: u64 = last_sequences(client, messages.shards).await.iter().sum();
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.expect("it is connected");
    let mut asked = 0;
    for n in 1..=number {
        let (shard, body) = messages.next();
        if n % ASKED_EVERY == 0 || n == number {
            let published = client.publish_with_reply(subject(shard), inbox.clone(), body.into()).await;
            published.expect("it is connected");
            asked += 1;
        } else {
            client.publish(subject(shard), body.into()).await.expect("it is connected");
        }
        while asked >= ASKED_MAX || (n == number && asked > 0) {
            answers.next().await.expect("the server answers");
            asked -= 1;
        }
    }
    loop {
        let last = last_sequences(client, messages.shards).await;
        let stored = last.iter().sum::<u64>() - before;
        assert!(stored <= number, "somebody else publishes");
        // The last message of one stream says nothing about the others'.
        if stored == number {
            return last;
        }
    }
}

async fn last_sequences(client: &Client, shards: u16) -> Vec<u64> {
    let context = async_nats::jetstream::new(client.clone());
    let mut last = Vec::new();
    for shard in 0..shards {
        let stream = context.get_stream(stream(shard)).await.expect("ranktree made it");
        last.push(stream.cached_info().state.last_sequence);
    }
    last
}

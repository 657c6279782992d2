//! A real nats-server on a free port, with its files in a temporary directory, and a client that waits.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::stream::{Config, Info};
use async_nats::jetstream::{self, Context};
use ranktree::types::{MemberId, shard_of};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::support::client::{Client, count_of};

/// Far above what anything here needs.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Nats {
    child: Option<Child>,
    port: u16,
    folder: TempDir,
    runtime: Runtime,
    context: Context,
}

impl Nats {
    pub fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("there is a free port").port();
        let folder = tempfile::tempdir().expect("a temporary directory");
        let runtime = Runtime::new().expect("a runtime");
        let child = Some(spawn(port, folder.path()));
        let context = runtime.block_on(async { jetstream::new(connect(port).await) });
        Self { child, port, folder, runtime, context }
    }

    pub fn publisher(&self) -> Publisher {
        let runtime = Runtime::new().expect("a runtime");
        let context = runtime.block_on(async { jetstream::new(connect(self.port).await) });
        Publisher { runtime, context }
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
        self.child = Some(spawn(self.port, self.folder.path()));
    }

    /// Where a stream's messages are.
    pub fn blocks_of(&self, stream: &str) -> PathBuf {
        self.folder.path().join("jetstream/$G/streams").join(stream).join("msgs")
    }

    /// Publishes one message, and gives its sequence.
    pub fn publish(&self, subject: &str, body: impl AsRef<[u8]>) -> u64 {
        self.try_publish(subject, body.as_ref()).expect("it is stored")
    }

    pub fn try_publish(&self, subject: &str, body: &[u8]) -> Result<u64, PublishError> {
        self.try_publish_with(subject, body, HeaderMap::new())
    }

    pub fn try_publish_with(
        &self,
        subject: &str,
        body: &[u8],
        headers: HeaderMap,
    ) -> Result<u64, PublishError> {
        let (subject, body) = (subject.to_owned(), body.to_vec());
        self.runtime.block_on(async {
            let sent = self.context.publish_with_headers(subject, headers, body.into()).await?;
            Ok(sent.await?.sequence)
        })
    }

    /// Publishes one message, and asks the server to answer somewhere else.
    pub fn publish_with_reply(&self, subject: &str, body: &[u8], reply: &str) {
        let (subject, reply, body) = (subject.to_owned(), reply.to_owned(), body.to_vec());
        self.runtime.block_on(async {
            let client = self.context.client();
            client.publish_with_reply(subject, reply, body.into()).await.expect("it is sent");
            client.flush().await.expect("the server answers");
        });
    }

    /// Publishes all, each to its member's shard, and gives the last sequence of each shard.
    pub fn publish_jobs(&self, shards: u16, jobs: &[Value], per_message: usize) -> Vec<u64> {
        let mut by_shard = vec![Vec::new(); usize::from(shards)];
        for job in jobs {
            let member = MemberId::new(job["member"].as_str().expect("a string")).expect("a good id");
            by_shard[shard_of(&member, shards).index()].push(job.clone());
        }
        let mut last = vec![0; usize::from(shards)];
        self.runtime.block_on(async {
            for (shard, jobs) in by_shard.into_iter().enumerate() {
                let subject = format!("ranktree.jobs.{shard}");
                let mut sent = std::collections::VecDeque::new();
                for jobs in jobs.chunks(per_message) {
                    let body = match jobs {
                        [job] if per_message == 1 => job.to_string(),
                        jobs => Value::from(jobs).to_string(),
                    };
                    sent.push_back(
                        self.context.publish(subject.clone(), body.into()).await.expect("it is sent"),
                    );
                    if sent.len() > 1_000 {
                        last[shard] =
                            sent.pop_front().expect("there are many").await.expect("it is stored").sequence;
                    }
                }
                for sent in sent {
                    last[shard] = sent.await.expect("it is stored").sequence;
                }
            }
        });
        last
    }

    pub fn info(&self, stream: &str) -> Info {
        self.runtime.block_on(async {
            self.context.get_stream(stream).await.expect("there is such a stream").cached_info().clone()
        })
    }

    pub fn create(&self, config: Config) {
        self.runtime.block_on(async { self.context.create_stream(config).await.expect("it is created") });
    }

    pub fn update(&self, config: &Config) {
        self.runtime.block_on(async { self.context.update_stream(config).await.expect("it is updated") });
    }

    pub fn delete(&self, stream: &str) {
        self.runtime.block_on(async { self.context.delete_stream(stream).await.expect("it is deleted") });
    }

    /// Purges what is before a sequence.
    pub fn purge(&self, stream: &str, before: u64) {
        self.runtime.block_on(async {
            let stream = self.context.get_stream(stream).await.expect("there is such a stream");
            stream.purge().sequence(before).await.expect("it is purged");
        });
    }

    /// A stored message, as JSON.
    pub fn message(&self, stream: &str, sequence: u64) -> Value {
        self.runtime.block_on(async {
            let stream = self.context.get_stream(stream).await.expect("there is such a stream");
            let message = stream.get_raw_message(sequence).await.expect("there is such a message");
            serde_json::from_slice(&message.payload).expect("it is JSON")
        })
    }
}

/// A publisher with a connection of its own.
pub struct Publisher {
    runtime: Runtime,
    context: Context,
}

impl Publisher {
    /// `None`: it is not known whether it was stored.
    pub fn publish(&self, subject: &str, body: &str, patience: Duration) -> Option<u64> {
        let (subject, body) = (subject.to_owned(), body.to_owned());
        self.runtime.block_on(async {
            let publish = async { self.context.publish(subject, body.into()).await.ok()?.await.ok() };
            tokio::time::timeout(patience, publish).await.ok().flatten().map(|stored| stored.sequence)
        })
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn connect(port: u16) -> async_nats::Client {
    let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
    let options = options.reconnect_delay_callback(|_| Duration::from_millis(20));
    let client = options.connect(format!("127.0.0.1:{port}")).await.expect("a good address");
    client.flush().await.expect("the server answers");
    client
}

fn spawn(port: u16, folder: &Path) -> Child {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/nats-server");
    let program = if here.exists() { here } else { PathBuf::from("nats-server") };
    let mut command = Command::new(program);
    command.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("nats-server is here; `make nats` installs it")
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until each shard has applied this much.
pub fn wait_applied(client: &Client, sequences: &[u64]) {
    let token: Vec<_> =
        sequences.iter().enumerate().map(|(shard, sequence)| format!("{shard}:{sequence}")).collect();
    let path = format!("/v1/boards?limit=1&timeout_ms=60000&after={}", token.join(","));
    wait_until("the shards have applied what was published", || client.get(&path).0 == 200);
}

/// What status says of a shard.
pub fn shard_status(client: &Client, shard: usize) -> Value {
    let (status, answer) = client.get("/v1/status");
    assert_eq!(status, 200, "{answer}");
    answer["shards"][shard].clone()
}

/// Waits until a shard is in a state, and gives the reason.
pub fn wait_state(client: &Client, shard: usize, state: &str) -> String {
    let mut status = Value::Null;
    wait_until(state, || {
        status = shard_status(client, shard);
        status["state"] == state
    });
    status["reason"].as_str().unwrap_or_default().to_owned()
}

pub fn applied(client: &Client, shard: usize) -> u64 {
    u64::try_from(count_of(&shard_status(client, shard)["applied_sequence"])).expect("it fits")
}

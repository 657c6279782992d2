//! A real nats-server with its files in a temporary directory, and a client that waits.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::stream::{Config, Info};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt as _;
use ranktree::types::{MemberId, shard_of};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::support::client::{Client, count_of};
use crate::support::nats_server::NatsServer;

/// Far above what anything here needs.
const TIMEOUT: Duration = Duration::from_secs(120);

pub struct Nats {
    server: NatsServer,
    folder: TempDir,
    runtime: Runtime,
    context: Context,
}

impl Nats {
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a server with settings of a configuration file beside what every test needs.
    pub fn start_with(settings: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| folder.path().join(name).to_str().expect("it is text").to_owned();
        let mut arguments = vec!["-js".to_owned(), "-sd".to_owned(), path("store")];
        if !settings.is_empty() {
            std::fs::write(path("nats.conf"), settings).expect("it can be written");
            arguments.extend(["-c".to_owned(), path("nats.conf")]);
        }
        let server = NatsServer::start(&arguments);
        let runtime = Runtime::new().expect("a runtime");
        let context = runtime.block_on(async { jetstream::new(connect(&server.url()).await) });
        Self { server, folder, runtime, context }
    }

    pub fn publisher(&self) -> Publisher {
        Publisher::connect(&self.url())
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The server's process, while it runs.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub fn kill9(&mut self) {
        self.server.kill9();
    }

    pub fn restart(&mut self) {
        self.server.restart();
    }

    /// Where all that the server keeps is.
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Where a stream's messages are.
    pub fn blocks_of(&self, stream: &str) -> PathBuf {
        self.store().join("jetstream/$G/streams").join(stream).join("msgs")
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

    /// Publishes messages, a thousand without an answer, each with its subject, headers and body, and gives
    /// the last sequence.
    pub fn publish_all(&self, messages: impl IntoIterator<Item = (String, HeaderMap, String)>) -> u64 {
        self.runtime.block_on(async {
            let (mut sent, mut last) = (std::collections::VecDeque::new(), 0);
            for (subject, headers, body) in messages {
                let publish = self.context.publish_with_headers(subject, headers, body.into());
                sent.push_back(publish.await.expect("it is sent"));
                if sent.len() > 1_000 {
                    last = sent.pop_front().expect("there are many").await.expect("it is stored").sequence;
                }
            }
            for sent in sent {
                last = sent.await.expect("it is stored").sequence;
            }
            last
        })
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

    /// Publishes a message so many times, a thousand without an answer, and those that were refused again
    /// until they are stored. How many were refused at first.
    pub fn publish_until_stored(&self, subject: &str, body: &str, times: usize) -> usize {
        let (mut left, mut refused_at_first) = (times, None);
        wait_until("everything is stored", || {
            let refused = self.runtime.block_on(async {
                let (mut sent, mut refused) = (std::collections::VecDeque::new(), 0);
                for _ in 0..left {
                    let publish = self.context.publish(subject.to_owned(), body.to_owned().into());
                    sent.push_back(publish.await.expect("it is sent"));
                    if sent.len() > 1_000 {
                        refused += usize::from(sent.pop_front().expect("there are many").await.is_err());
                    }
                }
                for sent in sent {
                    refused += usize::from(sent.await.is_err());
                }
                refused
            });
            refused_at_first.get_or_insert(refused);
            left = refused;
            left == 0
        });
        refused_at_first.unwrap_or_default()
    }

    pub fn info(&self, stream: &str) -> Info {
        self.runtime.block_on(async {
            self.context.get_stream(stream).await.expect("there is such a stream").cached_info().clone()
        })
    }

    /// `None`: there is no such stream.
    pub fn try_info(&self, stream: &str) -> Option<Info> {
        let info = async { Some(self.context.get_stream(stream).await.ok()?.cached_info().clone()) };
        self.runtime.block_on(info)
    }

    /// The names of all streams, in order.
    pub fn stream_names(&self) -> Vec<String> {
        let names =
            async { self.context.stream_names().map(|name| name.expect("it answers")).collect().await };
        let mut names: Vec<String> = self.runtime.block_on(names);
        names.sort();
        names
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

    /// Purges messages of one subject before a sequence, wherever they are in the stream.
    pub fn purge_subject(&self, stream: &str, subject: &str) {
        self.runtime.block_on(async {
            let stream = self.context.get_stream(stream).await.expect("there is such a stream");
            stream.purge().filter(subject).await.expect("it is purged");
        });
    }

    /// The last message of a subject, as JSON; `None` if there is none.
    pub fn last_of(&self, stream: &str, subject: &str) -> Option<Value> {
        self.runtime.block_on(async {
            let stream = self.context.get_stream(stream).await.ok()?;
            let message = stream.get_last_raw_message_by_subject(subject).await.ok()?;
            serde_json::from_slice(&message.payload).ok()
        })
    }

    /// When a message was stored, in microseconds since 1970.
    pub fn stored_at(&self, stream: &str, sequence: u64) -> i64 {
        self.runtime.block_on(async {
            let stream = self.context.get_stream(stream).await.expect("there is such a stream");
            let message = stream.get_raw_message(sequence).await.expect("there is such a message");
            i64::try_from(message.time.unix_timestamp_nanos() / 1_000).expect("it is not that late")
        })
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

impl Nats {
    /// What a stream has, as JSON, also while messages of it are deleted.
    pub fn stored(&self, stream: &str) -> Vec<Value> {
        let state = self.info(stream).state;
        self.runtime.block_on(async {
            let stream = self.context.get_stream(stream).await.expect("there is such a stream");
            let mut stored = Vec::new();
            for sequence in state.first_sequence..=state.last_sequence {
                if let Ok(message) = stream.get_raw_message(sequence).await {
                    stored.push(serde_json::from_slice(&message.payload).expect("it is JSON"));
                }
            }
            stored
        })
    }

    /// So many stored messages from a sequence on, as JSON.
    pub fn messages(&self, stream: &str, from: u64, count: usize) -> Vec<Value> {
        let config = async_nats::jetstream::consumer::pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: from },
            ack_policy: AckPolicy::None,
            ..Default::default()
        };
        self.runtime.block_on(async {
            let consumer = self.context.create_consumer_on_stream(config, stream).await.expect("it is made");
            let messages = consumer.messages().await.expect("they are delivered").take(count);
            let read = messages.map(|message| message.expect("it is delivered").payload.clone());
            let read = read.map(|body| serde_json::from_slice(&body).expect("it is JSON"));
            read.collect().await
        })
    }
}

/// A publisher with a connection of its own.
pub struct Publisher {
    runtime: Runtime,
    context: Context,
}

impl Publisher {
    /// # Arguments
    /// `urls`: one or more servers, separated by commas.
    pub fn connect(urls: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let context = runtime.block_on(async { jetstream::new(connect(urls).await) });
        Self { runtime, context }
    }

    /// `None`: it is not known whether it was stored.
    pub fn publish(&self, subject: &str, body: &str, patience: Duration) -> Option<u64> {
        self.publish_with(subject, body, HeaderMap::new(), patience)
    }

    /// The same under an id, by which the server knows a message that it has stored already.
    pub fn publish_as(&self, id: &str, subject: &str, body: &str, patience: Duration) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(async_nats::header::NATS_MESSAGE_ID, id);
        self.publish_with(subject, body, headers, patience)
    }

    fn publish_with(&self, subject: &str, body: &str, headers: HeaderMap, patience: Duration) -> Option<u64> {
        let (subject, body) = (subject.to_owned(), body.to_owned());
        self.runtime.block_on(async {
            let publish = async {
                self.context.publish_with_headers(subject, headers, body.into()).await.ok()?.await.ok()
            };
            tokio::time::timeout(patience, publish).await.ok().flatten().map(|stored| stored.sequence)
        })
    }
}

pub async fn connect(urls: &str) -> async_nats::Client {
    let servers: Vec<async_nats::ServerAddr> =
        urls.split(',').map(|url| url.parse().expect("a good address")).collect();
    let options = async_nats::ConnectOptions::new().retry_on_initial_connect();
    let options = options.reconnect_delay_callback(|_| Duration::from_millis(20));
    let client = options.connect(servers).await.expect("a good address");
    client.flush().await.expect("the server answers");
    client
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
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

/// Waits until no job waits for its board any more, and each that did is seen.
pub fn wait_freed(nats: &Nats, client: &Client, shards: u16) {
    let waits = |shard| shard_status(client, usize::from(shard))["parked"] != 0;
    wait_until("no job waits for its board", || !(0..shards).any(waits));
    // One waits no longer once it is committed, and is seen once the message that freed it is applied.
    let end = |shard| nats.info(&format!("RANKTREE_JOBS_{shard}")).state.last_sequence;
    wait_applied(client, &(0..shards).map(end).collect::<Vec<_>>());
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

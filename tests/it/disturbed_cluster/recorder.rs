//! Every message of every shard's stream, as it was stored: what the model is worked out from. Nodes purge
//! what is safe, so the recorder says what it still needs, as an owner of each shard does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, Context, Message};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::disturbed_cluster::world::SHARDS;
use crate::support::nats::connect;

/// A stored message.
#[derive(Debug, Clone)]
pub enum Stored {
    Jobs(Vec<Value>),
    Define { board: String, incarnation: u64 },
    Drop { board: String, incarnation: u64 },
}

/// How often the recorder says what it still needs.
const FLOOR_INTERVAL: Duration = Duration::from_secs(1);

/// All messages of a shard's stream in their order. The first has sequence 1.
pub type Log = Vec<Stored>;

/// Follows all streams, until it is told to stop.
pub struct Recorder {
    logs: Arc<Vec<Mutex<Log>>>,
    should_end: Arc<AtomicBool>,
    followers: Vec<JoinHandle<()>>,
}

impl Recorder {
    /// # Arguments
    /// `urls`: all servers; each of them is up at first, and may fail later.
    pub fn start(urls: &str) -> Self {
        Runtime::new().expect("a runtime").block_on(async {
            let context = jetstream::new(connect(urls).await);
            for shard in 0..SHARDS {
                let stream = context.get_stream(jobs_stream(shard)).await.expect("all servers are up");
                store_floor(&context, shard, &stream, 0).await.expect("all servers are up");
            }
        });
        let logs: Arc<Vec<Mutex<Log>>> = Arc::new((0..SHARDS).map(|_| Mutex::default()).collect());
        let should_end = Arc::new(AtomicBool::new(false));
        let followers = (0..SHARDS)
            .map(|shard| {
                let (logs, should_end, urls) = (Arc::clone(&logs), Arc::clone(&should_end), urls.to_owned());
                thread::spawn(move || {
                    let runtime = Runtime::new().expect("a runtime");
                    runtime.block_on(async {
                        let context = jetstream::new(connect(&urls).await);
                        while !should_end.load(Ordering::SeqCst) {
                            let log = &logs[usize::from(shard)];
                            // Begins anew after whatever failed.
                            let _ = follow(&context, shard, log, &should_end).await;
                        }
                    });
                })
            })
            .collect();
        Self { logs, should_end, followers }
    }

    /// The last sequence that was recorded of each shard.
    pub fn last(&self) -> Vec<u64> {
        (0..self.logs.len()).map(|shard| count(self.recorded(shard))).collect()
    }

    /// How many messages of a shard were recorded.
    pub fn recorded(&self, shard: usize) -> usize {
        self.logs[shard].lock().expect("no panic").len()
    }

    /// Ends, and gives what was recorded.
    pub fn finish(self) -> Vec<Log> {
        self.should_end.store(true, Ordering::SeqCst);
        for follower in self.followers {
            follower.join().expect("no panic");
        }
        self.logs.iter().map(|log| log.lock().expect("no panic").clone()).collect()
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).expect("it fits")
}

async fn follow(
    context: &Context,
    shard: u16,
    log: &Mutex<Log>,
    should_end: &AtomicBool,
) -> Result<(), async_nats::Error> {
    let stream = context.get_stream(jobs_stream(shard)).await?;
    let recorded = count(log.lock().expect("no panic").len());
    let mut floor_stored = Instant::now();
    let config = OrderedConfig {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: recorded + 1 },
        ..OrderedConfig::default()
    };
    let mut messages = stream.create_consumer(config).await?.messages().await?;
    while !should_end.load(Ordering::SeqCst) {
        let next = tokio::time::timeout(Duration::from_millis(500), messages.next()).await;
        // A consumer on a server that went away may stay silent.
        let Ok(Some(message)) = next else { return Ok(()) };
        let message = message?;
        let sequence = message.info()?.stream_sequence;
        record(shard, log, sequence, &message);
        if floor_stored.elapsed() >= FLOOR_INTERVAL {
            store_floor(context, shard, &stream, sequence).await?;
            floor_stored = Instant::now();
        }
    }
    Ok(())
}

fn record(shard: u16, log: &Mutex<Log>, sequence: u64, message: &Message) {
    let mut log = log.lock().expect("no panic");
    if sequence > count(log.len()) {
        assert_eq!(sequence, count(log.len()) + 1, "shard {shard} was purged before it was recorded");
        log.push(read(message));
    }
}

fn jobs_stream(shard: u16) -> String {
    format!("RANKTREE_JOBS_{shard}")
}

/// Says that messages after `recorded` are still needed, as the bucket of floors (docs/nats.md) has it.
async fn store_floor(
    context: &Context,
    shard: u16,
    stream: &Stream,
    recorded: u64,
) -> Result<(), async_nats::Error> {
    let info = stream.cached_info();
    let identity = format!("{}@{}", info.config.name, info.created.unix_timestamp_nanos());
    let floor = json!({
        "format": 1, "readable_from": 1, "directory": "recorder", "stream": identity, "sequence": recorded,
    });
    let subject = format!("$KV.RANKTREE_FLOORS.recorder.{shard}");
    context.publish(subject, floor.to_string().into()).await?.await?;
    Ok(())
}

fn read(message: &Message) -> Stored {
    let body: Value = serde_json::from_slice(&message.payload).expect("everything here is JSON");
    if message.subject.contains(".jobs.") {
        return Stored::Jobs(match body {
            Value::Array(jobs) => jobs,
            job => vec![job],
        });
    }
    let command = message.headers.as_ref().and_then(|headers| headers.get("Ranktree-Command"));
    let board = || body["board"].as_str().expect("a name").to_owned();
    let incarnation = body["incarnation"].as_u64().unwrap_or_default();
    match command.map(async_nats::HeaderValue::as_str) {
        Some("define") => Stored::Define { board: board(), incarnation },
        Some("drop") => Stored::Drop { board: board(), incarnation },
        other => panic!("{other:?}: {body}"),
    }
}

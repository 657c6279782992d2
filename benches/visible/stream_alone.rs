//! The stream of a nats-server with a consumer that only notes what it receives, in this process: the least
//! that anything fed by a stream takes from publishing to being visible.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::Config;
use futures_util::StreamExt as _;
use tokio::sync::oneshot;

use crate::ranktree::Publisher;
use crate::support::nats::{Nats, connect, runtime, stream, subject};
use crate::system::{Job, MARKER, Publish, Read, System};

const NAME: &str = "stream_alone";
/// As ranktree's fetcher asks.
const PULL_MESSAGES: usize = 16_000;
const PULL_BYTES: usize = 16 << 20;
const PULL_EXPIRES: Duration = Duration::from_secs(30);
const HEARTBEAT: Duration = Duration::from_millis(500);

pub struct StreamAlone {
    nats: Nats,
    marker: Arc<AtomicI64>,
}

pub fn start(folder: &Path) -> Result<Box<dyn System>, String> {
    let nats = Nats::start(&folder.join("nats_alone"))?;
    let marker = Arc::default();
    let (url, seen, (ready, is_ready)) = (nats.url(), Arc::clone(&marker), oneshot::channel());
    std::thread::spawn(move || runtime().block_on(consume(&url, &seen, ready)));
    is_ready.blocking_recv().map_err(|_| "the consumer has ended".to_owned())?;
    Ok(Box::new(StreamAlone { nats, marker }))
}

async fn consume(url: &str, marker: &AtomicI64, ready: oneshot::Sender<()>) {
    let context = jetstream::new(connect(url).await);
    let config = Config { name: stream(0), subjects: vec![subject(0)], ..Config::default() };
    context.create_stream(config).await.expect("the stream is new");
    let config =
        pull::Config { ack_policy: AckPolicy::None, memory_storage: true, ..pull::Config::default() };
    let consumer = context.create_consumer_on_stream(config, stream(0)).await.expect("the stream is there");
    let pulls = consumer
        .stream()
        .max_messages_per_batch(PULL_MESSAGES)
        .max_bytes_per_batch(PULL_BYTES)
        .heartbeat(HEARTBEAT)
        .expires(PULL_EXPIRES);
    let mut messages = pulls.messages().await.expect("it can be read");
    ready.send(()).expect("it is waited for");
    while let Some(message) = messages.next().await {
        let message = match message {
            Ok(message) => message,
            // Usually because the server has ended.
            Err(error) => return eprintln!("  {NAME}: {error}"),
        };
        let job = str::from_utf8(&message.payload).expect("it is JSON");
        let of_marker = job.split_once(MARKER).and_then(|(_, rest)| rest.split_once("\"score\":"));
        if let Some((_, score)) = of_marker {
            let number = score.trim_end_matches('}').parse().expect("a number");
            marker.store(number, Ordering::Relaxed);
        }
    }
}

impl System for StreamAlone {
    fn name(&self) -> String {
        NAME.to_owned()
    }

    /// It has no members.
    fn load(&mut self, _jobs: &mut dyn Iterator<Item = Job>) {}

    fn publisher(&self) -> Box<dyn Publish> {
        Box::new(Publisher::start(&self.nats.url()))
    }

    fn reader(&self) -> Box<dyn Read> {
        Box::new(Reader(Arc::clone(&self.marker)))
    }

    fn ranks(&self) -> bool {
        false
    }
}

struct Reader(Arc<AtomicI64>);

impl Read for Reader {
    fn marker(&mut self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    /// It ranks nothing.
    fn better(&mut self, _score: i64) -> u64 {
        0
    }
}

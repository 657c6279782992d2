//! Reads a bucket into memory: its last entries first, and then every new one.
//!
//! Messages that were lost with a connection do not come again, so a new connection reads from the beginning.

use std::time::{Duration, Instant, SystemTime};

use async_nats::jetstream::Message;
use async_nats::jetstream::stream::Config;
use serde::Deserialize;

use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::last_messages::{Followed, LastMessages};
use crate::queue::nats::names::Bucket;
use crate::queue::nats::peers::entries::{self, UnreadableEntry};
use crate::queue::nats::peers::known::Received;
use crate::queue::nats::streams::buckets_config::{floors_config, nodes_config};
use crate::types::{NodeName, ShardId, Timestamp};

const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long the server must report that there is no such bucket before it is created again. An operator may
/// be about to restore an old copy, and a server that has just started may not know it yet.
const RECREATE_AFTER: Duration = Duration::from_secs(10);
/// Why a bucket is no longer read.
enum Lost {
    /// The server says that there is no such bucket.
    NoBucket(String),
    Other(String),
}

impl From<String> for Lost {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// What is done with a bucket's messages.
trait Reader {
    fn begin(&self);
    fn read(&self, message: &Message, age: Duration);
    fn end(&self);
    fn lose(&self, why: &str);
}

struct Nodes<'a>(&'a JetStream, Bucket);
struct Floors<'a>(&'a JetStream, Bucket);

impl Reader for Nodes<'_> {
    fn begin(&self) {
        self.0.peers.begin_reading_nodes();
    }

    fn read(&self, message: &Message, age: Duration) {
        if let Some((node, None)) = self.1.owner_of(&message.subject) {
            self.0.peers.note_node(received(node, message, age));
        }
    }

    fn end(&self) {
        self.0.peers.end_reading_nodes();
    }

    fn lose(&self, _why: &str) {
        self.0.peers.lose_nodes();
    }
}

impl Reader for Floors<'_> {
    fn begin(&self) {
        self.0.peers.begin_reading_floors();
    }

    fn read(&self, message: &Message, age: Duration) {
        if let Some((node, Some(shard))) = self.1.owner_of(&message.subject) {
            self.note(node, shard, message, age);
        } else {
            tracing::warn!(
                subject = %message.subject,
                "the bucket of floors has an entry that no node has written; it is passed over"
            );
        }
    }

    fn end(&self) {
        self.0.peers.end_reading_floors();
    }

    fn lose(&self, why: &str) {
        self.0.peers.lose_floors(why);
    }
}

impl Floors<'_> {
    fn note(&self, node: NodeName, shard: ShardId, message: &Message, age: Duration) {
        let received = received(node, message, age);
        if received.entry == Some(Err(UnreadableEntry::Foreign)) {
            tracing::warn!(
                %shard, node = %received.node,
                "the bucket of floors has a body under a node's name that no node has written; it is passed over"
            );
        } else if let Some(Err(error)) = &received.entry {
            tracing::warn!(
                %shard, node = %received.node, %error,
                "the floor of a node cannot be read, so the stream is not purged unless it fills up"
            );
        }
        self.0.peers.note_floor(shard, received);
    }
}

fn received<E: for<'a> Deserialize<'a>>(node: NodeName, message: &Message, age: Duration) -> Received<E> {
    let is_deleted =
        message.headers.as_ref().is_some_and(|headers| headers.get(entries::OPERATION).is_some());
    let sequence = message.info().map_or(0, |info| info.stream_sequence);
    let entry = (!is_deleted).then(|| entries::read(&message.payload));
    Received { node, sequence, age, entry }
}

impl JetStream {
    /// Keeps up with who is there, for as long as the service runs.
    pub async fn follow_nodes(&self) {
        let config = nodes_config(&self.names, self.settings.replicas);
        self.follow(config, &self.names.nodes_bucket(), &Nodes(self, self.names.nodes_bucket())).await;
    }

    /// Keeps up with what other nodes need, for as long as the service runs.
    pub async fn follow_floors(&self) {
        let config = floors_config(&self.names, self.settings.replicas);
        self.follow(config, &self.names.floors_bucket(), &Floors(self, self.names.floors_bucket())).await;
    }

    async fn follow(&self, config: Config, bucket: &Bucket, reader: &(impl Reader + Sync)) {
        let (mut logged, mut gone_since) = (String::new(), None);
        loop {
            if self.managing.is_up() {
                let lost = self.follow_once(bucket, reader).await;
                let why = match lost {
                    Ok(()) => "the server has ended the consumer".to_owned(),
                    Err(Lost::NoBucket(why)) => {
                        self.create_again(&config, &mut gone_since).await;
                        why
                    }
                    Err(Lost::Other(why)) => {
                        gone_since = None;
                        self.managing.explain(&why)
                    }
                };
                reader.lose(&why);
                if why != logged && self.managing.should_log(&why) {
                    tracing::warn!(
                        bucket = bucket.name,
                        why,
                        "what nodes say of themselves cannot be read; trying again"
                    );
                }
                logged = why;
            } else {
                reader.lose(&self.managing.why_down());
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Makes a bucket again that has been gone for long. What a bucket said of nodes that run, they say
    /// again.
    async fn create_again(&self, config: &Config, gone_since: &mut Option<Instant>) {
        if gone_since.get_or_insert_with(Instant::now).elapsed() < RECREATE_AFTER {
            return;
        }
        *gone_since = None;
        let stream = &config.name;
        match self.managing.context.create_stream(config.clone()).await {
            Ok(_) => tracing::warn!(
                stream,
                "the bucket did not exist any more, and was created again; what nodes that are down need of the streams is not known any more"
            ),
            Err(error) => {
                let error = self.managing.explain(&error);
                tracing::warn!(
                    stream,
                    error,
                    "the bucket does not exist any more, and cannot be created again"
                );
            }
        }
    }

    fn note_stamp(&self, nanos: i128) {
        let micros = i64::try_from(nanos / 1_000).ok().and_then(|micros| Timestamp::from_micros(micros).ok());
        let now = Timestamp::from_micros(jiff::Timestamp::now().as_microsecond()).ok();
        if let Some((stamped, received)) = micros.zip(now) {
            self.peers.clock.note(stamped, received);
        }
    }

    async fn follow_once(&self, bucket: &Bucket, reader: &(impl Reader + Sync)) -> Result<(), Lost> {
        let (stream, subjects) = (bucket.stream(), bucket.all_subjects());
        let followed = LastMessages::begin(&self.managing, &stream, subjects, "ranktree: who is there").await;
        let mut followed = followed.map_err(|error| match error {
            error if error.is_no_stream() => Lost::NoBucket(error.to_string()),
            error => Lost::Other(error.to_string()),
        })?;
        reader.begin();
        let mut has_read_all = false;
        loop {
            match followed.next().await? {
                Followed::Message(message) => {
                    let stored = message.info().map_err(|error| error.to_string())?.published;
                    // What comes once all was read was stored just now.
                    let age = if has_read_all {
                        self.note_stamp(stored.unix_timestamp_nanos());
                        Duration::ZERO
                    } else {
                        SystemTime::now().duration_since(SystemTime::from(stored)).unwrap_or_default()
                    };
                    reader.read(&message, age);
                }
                Followed::AllRead => {
                    has_read_all = true;
                    reader.end();
                }
                Followed::Ended => return Ok(()),
            }
        }
    }
}

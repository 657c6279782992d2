//! Publishes rejects: each once, in order, and apart from the writer.
//!
//! Knows: the stream of rejects says which reject was published last, and the store has the later ones. The
//! store remembers the last one too, because the stream discards old messages, and a quiet shard's last one
//! may be among them. A crash between publishing and remembering makes no difference.
//!
//! Every owner of a shard has its rejects, and one of them publishes; see `Peers::publishes_rejects`. Two may
//! think so at the same time, and nothing depends on that: a batch of rejects is stored only right behind the
//! last message of the shard that its publisher has read, so the later of two is refused, and reads again.
//! The other owners follow: they remember what was published, so that each of them can go on from there.

use std::time::{Duration, Instant};

use async_nats::header::{
    NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL, NATS_BATCH_ID, NATS_BATCH_SEQUENCE,
    NATS_EXPECTED_LAST_SUBJECT_SEQUENCE,
};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, RawMessageErrorKind};
use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::queue::nats::consume::origin::Origin;
use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::shard::NatsShard;
use crate::queue::reject_text::reject_text;
use crate::storage::Store;
use crate::types::{Sequence, ShardId};

/// How soon a reject is published.
const EVERY: Duration = Duration::from_millis(250);
/// Rejects read, and published in one round trip. The server takes batches of up to 1,000 messages, and holds
/// them in memory until the last has come: some megabytes, as a reject holds 4 KiB of its job.
const AT_A_TIME: usize = 500;

/// How often an owner that does not publish looks what was published, while it has rejects that were not.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(2);

/// The identity of the stream that the shard was filled from. Sequences of another one stand for other jobs.
pub(super) const STREAM_HEADER: &str = "Ranktree-Stream";

/// How many foreign messages are passed over to find the last reject.
const LOOK_BACK: u64 = 1_000;

/// Identifies a job: its message's sequence, and its index in the message.
type JobId = (Sequence, u32);

/// A published reject, as far as it says which job it is about.
#[derive(Deserialize)]
#[expect(dead_code, reason = "a reject is recognised by all of its fields, whatever their values")]
struct Published {
    shard: u16,
    sequence: u64,
    index: u32,
    reason: IgnoredAny,
    detail: IgnoredAny,
    job: IgnoredAny,
}

/// The last reject of a shard in the stream of rejects.
struct LastPublished {
    /// The rejected job; `None` if there is no reject of this shard, or it is of another stream.
    job: Option<JobId>,
    /// Sequence of the last message on the shard's subject, 0 for none.
    sequence: u64,
}

impl JetStream {
    /// Publishes rejects for as long as the service runs.
    pub async fn publish_rejects(&self, shard: &NatsShard) {
        let health = &shard.health;
        // The shard's count of rejects when all of them were published.
        let mut published = None;
        let mut followed: Option<Instant> = None;
        loop {
            tokio::time::sleep(EVERY).await;
            if !self.managing.is_up() {
                continue;
            }
            let count = health.get(|health| health.jobs_rejected);
            if published == Some(count) {
                continue;
            }
            let publishes = self.peers.publishes_rejects(shard.id, health.is_live());
            if !publishes && followed.is_some_and(|at| at.elapsed() < FOLLOW_INTERVAL) {
                continue;
            }
            let done = if publishes {
                self.publish_new_rejects(shard).await.map(|()| true)
            } else {
                followed = Some(Instant::now());
                self.follow_rejects(shard).await
            };
            match done {
                Ok(true) => published = Some(count),
                Ok(false) => {}
                Err(error) => {
                    self.log_failure(shard.id, "rejects could not be published", &error);
                    published = None;
                }
            }
        }
    }

    pub(super) fn log_failure(&self, shard: ShardId, what: &str, error: &str) {
        let error = self.managing.explain(&error);
        if self.managing.should_log(&error) {
            tracing::warn!(%shard, error, "{what}; trying again");
        }
    }

    async fn publish_new_rejects(&self, shard: &NatsShard) -> Result<(), String> {
        let remembered = shard.with_store(Store::rejects_published).await?;
        let stream = shard.filled_from().await?;
        // Another node may have published them in the meantime.
        let LastPublished { job, mut sequence } = self.last_published(shard.id, &stream).await?;
        let mut last = job.unwrap_or_default().max(remembered);
        loop {
            if last > remembered {
                shard.with_store(move |store| store.note_rejects_published(last)).await?;
            }
            shard.health.set(|health| health.rejects_published = last);
            let rejects = shard.with_store(move |store| store.rejects_after(last, AT_A_TIME)).await?;
            let Some(newest) = rejects.last() else { return Ok(()) };
            last = (newest.sequence, newest.index);
            let bodies = rejects.iter().map(|reject| Bytes::from(reject_text(shard.id, reject))).collect();
            sequence = self.publish_batch(shard.id, &stream, bodies, sequence).await?;
        }
    }

    /// Remembers what another owner has published. Returns whether that is all that this one has.
    async fn follow_rejects(&self, shard: &NatsShard) -> Result<bool, String> {
        let remembered = shard.with_store(Store::rejects_published).await?;
        let LastPublished { job, .. } = self.last_published(shard.id, &shard.filled_from().await?).await?;
        let last = job.unwrap_or_default().max(remembered);
        if last > remembered {
            shard.with_store(move |store| store.note_rejects_published(last)).await?;
        }
        shard.health.set(|health| health.rejects_published = last);
        Ok(shard.with_store(move |store| store.rejects_after(last, 1)).await?.is_empty())
    }

    /// Publishes all messages or none, in one round trip. Returns the sequence of the last one.
    ///
    /// # Arguments
    /// - `stream`: the identity of the stream that the shard was filled from
    /// - `after`: the sequence of the shard's message before them
    async fn publish_batch(
        &self,
        shard: ShardId,
        stream: &str,
        bodies: Vec<Bytes>,
        after: u64,
    ) -> Result<u64, String> {
        let subject = self.names.rejects_subject(shard);
        let (client, count) = (&self.managing.client, bodies.len());
        let id = client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned();
        for (number, body) in (1_usize..).zip(bodies) {
            let mut headers = HeaderMap::new();
            if !stream.is_empty() {
                headers.insert(STREAM_HEADER, stream);
            }
            if count > 1 {
                headers.insert(NATS_BATCH_ID, id.as_str());
                headers.insert(NATS_BATCH_SEQUENCE, number.to_string().as_str());
            }
            if number < count {
                if number == 1 {
                    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, HeaderValue::from(after));
                }
                // Only the last one is answered, for all of them.
                client
                    .publish_with_headers(subject.clone(), headers, body)
                    .await
                    .map_err(|error| error.to_string())?;
                continue;
            }
            let mut last = PublishMessage::build().payload(body);
            if count > 1 {
                headers.insert(NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL);
            }
            last = last.headers(headers);
            if count == 1 {
                // Stored only right after the expected message, so that no reject is published twice by two
                // nodes, or by one node before and after a restart.
                last = last.expected_last_subject_sequence(after);
            }
            let sent = self.managing.context.send_publish(subject, last).await;
            return match sent.map_err(|error| error.to_string())?.await {
                Ok(stored) => Ok(stored.sequence),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    Err("another node published rejects of the shard at the same time".to_owned())
                }
                Err(error) => Err(error.to_string()),
            };
        }
        Ok(after)
    }

    /// # Arguments
    /// `filled_from`: the identity of the stream that the shard was filled from.
    async fn last_published(&self, shard: ShardId, filled_from: &str) -> Result<LastPublished, String> {
        let stream = self.managing.context.get_stream_no_info(self.names.rejects_stream()).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let subject = self.names.rejects_subject(shard);
        match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => {
                let sequence = message.sequence;
                let mut found = reject_of(&message);
                // A client that has an answer sent to this subject can store a foreign message there.
                for earlier in (sequence.saturating_sub(LOOK_BACK).max(1)..sequence).rev() {
                    if found.is_some() {
                        break;
                    }
                    found = match stream.get_raw_message(earlier).await {
                        Ok(message) if message.subject.as_str() == subject => reject_of(&message),
                        Ok(_) => None,
                        Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => None,
                        Err(error) => return Err(error.to_string()),
                    };
                }
                let is_comparable = |of: &str| of.is_empty() || filled_from.is_empty() || of == filled_from;
                let job = found.filter(|(_, of)| is_comparable(of)).map(|(job, _)| job);
                Ok(LastPublished { job, sequence })
            }
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => {
                Ok(LastPublished { job: None, sequence: 0 })
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The job that a published reject is about, and the identity of the stream that it was in, empty if its
/// shard was filled from none. `None` if the message is no reject.
fn reject_of(message: &StreamMessage) -> Option<(JobId, String)> {
    let Published { sequence, index, .. } = serde_json::from_slice(&message.payload).ok()?;
    let stream = message.headers.get(STREAM_HEADER).map(ToString::to_string).unwrap_or_default();
    Some(((Sequence(sequence), index), stream))
}

impl NatsShard {
    /// The identity of the stream that the shard was filled from, empty if it was filled from none.
    pub(super) async fn filled_from(&self) -> Result<String, String> {
        let meta = self.with_store(Store::meta).await?;
        Ok(Origin::read(&meta.map(|meta| meta.stream).unwrap_or_default()).stream)
    }
}

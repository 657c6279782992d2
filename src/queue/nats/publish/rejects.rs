//! Rejects, told to whoever listens: each once, in order, and never in the writer's way.
//!
//! Knows: the stream of rejects says which was the last one published, and the store has those after it. The store remembers
//! it too, because the stream discards old messages, the last one of a quiet shard among them. A crash between publishing
//! and remembering makes no difference.

use std::sync::Arc;
use std::time::Duration;

use async_nats::header::{
    NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL, NATS_BATCH_ID, NATS_BATCH_SEQUENCE,
    NATS_EXPECTED_LAST_SUBJECT_SEQUENCE,
};
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, LastRawMessageErrorKind, RawMessageErrorKind};
use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::queue::nats::retention::task::Kept;
use crate::queue::nats::streams::set_up::JetStream;
use crate::queue::reject_text::reject_text;
use crate::storage::{StorageError, Store};
use crate::types::{Sequence, ShardId};

/// How soon a reject is told.
const EVERY: Duration = Duration::from_millis(250);
/// Rejects read, and published in one round trip. The server takes batches of up to 1,000 messages, and holds them in
/// memory until the last has come: some megabytes, as a reject holds 4 KiB of its job.
const AT_A_TIME: usize = 500;

/// How far back the last reject is looked for behind messages that are none.
const LOOK_BACK: u64 = 1_000;

/// A job's place in the stream of jobs: its message's sequence, and its index in the message.
type JobPlace = (Sequence, u32);

/// A published reject, as far as it says which job's it is.
#[derive(Deserialize)]
#[expect(dead_code, reason = "a reject is known by all of its names, whatever they say")]
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
    /// Which job's it is; `None` if there is no reject of this shard.
    place: Option<JobPlace>,
    /// Sequence of the last message on the shard's subject, 0 for none.
    sequence: u64,
}

/// Why rejects could not be published.
enum Failed {
    /// The stream does not take messages in batches.
    NoBatches,
    Other(String),
}

impl From<String> for Failed {
    fn from(what: String) -> Self {
        Self::Other(what)
    }
}

impl JetStream {
    /// Publishes rejects for as long as the service runs.
    pub async fn publish_rejects(&self, kept: &Kept) {
        let (shard, health) = (kept.shared.shard, &kept.shared.health);
        // What the shard's count of rejects was when all were published.
        let mut published = None;
        let mut in_batches = true;
        loop {
            tokio::time::sleep(EVERY).await;
            if !self.managing.is_up() {
                continue;
            }
            let count = health.jobs_rejected();
            if published == Some(count) {
                continue;
            }
            match self.publish_new_rejects(kept, in_batches).await {
                Ok(()) => published = Some(count),
                Err(Failed::NoBatches) => in_batches = self.take_rejects_in_batches().await,
                Err(Failed::Other(error)) => {
                    let error = self.managing.explain(&error);
                    if self.managing.is_news(&error) {
                        tracing::warn!(%shard, error, "rejects could not be published; trying on");
                    }
                    published = None;
                }
            }
        }
    }

    async fn publish_new_rejects(&self, kept: &Kept, in_batches: bool) -> Result<(), Failed> {
        let shard = kept.shared.shard;
        let remembered = with_store(kept, Store::rejects_published).await?;
        // Another node may have published them in the meantime.
        let LastPublished { place, mut sequence } = self.last_published(shard).await?;
        let mut last = place.unwrap_or_default().max(remembered);
        loop {
            if last > remembered {
                with_store(kept, move |store| store.note_rejects_published(last)).await?;
            }
            kept.shared.health.set_rejects_published(last);
            let rejects = with_store(kept, move |store| store.rejects_after(last, AT_A_TIME)).await?;
            let Some(newest) = rejects.last() else { return Ok(()) };
            last = (newest.sequence, newest.index);
            let bodies = rejects.iter().map(|reject| Bytes::from(reject_text(shard, reject))).collect();
            if in_batches {
                sequence = self.publish_batch(shard, bodies, sequence).await?;
            } else {
                for body in bodies {
                    sequence = self.publish_batch(shard, vec![body], sequence).await?;
                }
            }
        }
    }

    /// Publishes all or nothing, in one round trip. The sequence of the last one.
    ///
    /// # Arguments
    /// `after`: sequence of the one before them, of the same shard.
    async fn publish_batch(&self, shard: ShardId, bodies: Vec<Bytes>, after: u64) -> Result<u64, Failed> {
        let subject = self.names.rejects_subject(shard);
        let failed = |error: &dyn std::fmt::Display| Failed::Other(error.to_string());
        let (client, count) = (&self.managing.client, bodies.len());
        let id = client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned();
        for (number, body) in (1_usize..).zip(bodies) {
            let mut headers = HeaderMap::new();
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
                    .map_err(|error| failed(&error))?;
                continue;
            }
            let mut last = PublishMessage::build().payload(body);
            if count > 1 {
                headers.insert(NATS_BATCH_COMMIT, NATS_BATCH_COMMIT_FINAL);
            }
            last = last.headers(headers);
            if count == 1 {
                // After the one before it or not at all: two nodes, or two lives of one, do not publish the same twice.
                last = last.expected_last_subject_sequence(after);
            }
            let sent = self.managing.context.send_publish(subject, last).await;
            return match sent.map_err(|error| failed(&error))?.await {
                Ok(stored) => Ok(stored.sequence),
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    Err(Failed::Other("another node publishes them too".to_owned()))
                }
                Err(error) if code_of(&error) == Some(ErrorCode::ATOMIC_PUBLISH_DISABLED) => {
                    Err(Failed::NoBatches)
                }
                Err(error) => Err(failed(&error)),
            };
        }
        Ok(after)
    }

    /// A stream that an earlier version created takes messages one by one, until it is told otherwise.
    async fn take_rejects_in_batches(&self) -> bool {
        let name = self.names.rejects_stream();
        let stream = match self.managing.context.get_stream(&name).await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(stream = name, %error, "the stream cannot be asked for");
                return true;
            }
        };
        let config = Config { allow_atomic_publish: true, ..stream.cached_info().config.clone() };
        match self.managing.context.update_stream(&config).await {
            Ok(_) => true,
            Err(error) => {
                let error = self.managing.explain(&error);
                tracing::warn!(
                    stream = name,
                    error,
                    "the stream takes no batches (allow_atomic), and cannot be changed: rejects are published one by one"
                );
                false
            }
        }
    }

    async fn last_published(&self, shard: ShardId) -> Result<LastPublished, String> {
        let stream = self.managing.context.get_stream_no_info(self.names.rejects_stream()).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let subject = self.names.rejects_subject(shard);
        match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => {
                let sequence = message.sequence;
                let mut place = place_of(&message.payload);
                // Anyone who may have an answer sent there can put a message between.
                for earlier in (sequence.saturating_sub(LOOK_BACK).max(1)..sequence).rev() {
                    if place.is_some() {
                        break;
                    }
                    place = match stream.get_raw_message(earlier).await {
                        Ok(message) if message.subject.as_str() == subject => place_of(&message.payload),
                        Ok(_) => None,
                        Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => None,
                        Err(error) => return Err(error.to_string()),
                    };
                }
                Ok(LastPublished { place, sequence })
            }
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => {
                Ok(LastPublished { place: None, sequence: 0 })
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Reads from or writes to the shard's store, on a thread that may wait for the disk.
async fn with_store<T: Send + 'static>(
    kept: &Kept,
    what: impl FnOnce(&Store) -> Result<T, StorageError> + Send + 'static,
) -> Result<T, String> {
    let slot = Arc::clone(&kept.store);
    let done = tokio::task::spawn_blocking(move || slot.get().and_then(|store| what(&store)));
    done.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn code_of(error: &PublishError) -> Option<ErrorCode> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<async_nats::jetstream::Error>().map(async_nats::jetstream::Error::error_code)
}

/// Of which job a published reject is; `None` if it is none.
fn place_of(body: &[u8]) -> Option<JobPlace> {
    let Published { sequence, index, .. } = serde_json::from_slice(body).ok()?;
    Some((Sequence(sequence), index))
}

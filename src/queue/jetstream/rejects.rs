//! Rejects, told to whoever listens: each once, in order, and never in the writer's way.
//!
//! Knows: the stream of rejects says which was the last one published, and the store has those after it. So nothing of
//! this has to be remembered elsewhere, and a crash between the two makes no difference.

use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, RawMessageErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::queue::jetstream::keeper::Kept;
use crate::queue::jetstream::streams::JetStream;
use crate::storage::codec::RejectRecord;
use crate::types::{Sequence, ShardId};

/// How soon a reject is told.
const EVERY: Duration = Duration::from_millis(250);
/// Rejects read at a time.
const AT_A_TIME: usize = 200;

/// How far back the last reject is looked for behind messages that are none.
const LOOK_BACK: u64 = 1_000;

/// A reject as subscribers see it.
#[derive(Serialize, Deserialize)]
struct RejectJson {
    shard: u16,
    sequence: u64,
    index: u32,
    reason: String,
    detail: String,
    /// The job, or what came in its place as text.
    job: Value,
}

/// How far a shard's rejects are published.
struct Published {
    /// The last one's place in the stream of jobs.
    place: (Sequence, u32),
    /// Its sequence in the stream of rejects.
    sequence: u64,
    /// What the shard's count of rejects was when all were published.
    count: u64,
}

impl JetStream {
    /// Publishes rejects for as long as the service runs.
    pub async fn publish_rejects(&self, kept: &Kept) {
        let shard = kept.shared.shard;
        let mut published: Option<Published> = None;
        loop {
            tokio::time::sleep(EVERY).await;
            if !self.managing.is_up() {
                continue;
            }
            let count = kept.shared.health.jobs_rejected();
            if published.as_ref().is_some_and(|published| published.count == count) {
                continue;
            }
            if let Err(error) = self.publish_new_rejects(kept, &mut published, count).await {
                let error = self.managing.explain(&error);
                tracing::warn!(%shard, error, "rejects could not be published; trying on");
                published = None;
            }
        }
    }

    async fn publish_new_rejects(
        &self,
        kept: &Kept,
        published: &mut Option<Published>,
        count: u64,
    ) -> Result<(), String> {
        let shard = kept.shared.shard;
        let mut last = match published.take() {
            Some(last) => last,
            None => self.last_published(shard).await?,
        };
        loop {
            let slot = std::sync::Arc::clone(&kept.store);
            let place = last.place;
            let rejects = tokio::task::spawn_blocking(move || {
                slot.get()
                    .and_then(|store| store.rejects_after(place, AT_A_TIME))
                    .map_err(|error| error.to_string())
            });
            let rejects = rejects.await.map_err(|error| error.to_string())??;
            let all = rejects.len() < AT_A_TIME;
            for reject in rejects {
                last.sequence = self.publish_reject(shard, &reject, last.sequence).await?;
                last.place = (reject.sequence, reject.index);
            }
            if all {
                last.count = count;
                *published = Some(last);
                return Ok(());
            }
        }
    }

    async fn publish_reject(&self, shard: ShardId, reject: &RejectRecord, after: u64) -> Result<u64, String> {
        let job = serde_json::from_slice(&reject.job)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&reject.job).into_owned()));
        let body = RejectJson {
            shard: shard.0,
            sequence: reject.sequence.0,
            index: reject.index,
            reason: reject.code.name().to_owned(),
            detail: reject.detail.clone(),
            job,
        };
        let body = serde_json::to_vec(&body).map_err(|error| error.to_string())?;
        // After the one before it or not at all: two nodes, or two lives of one, do not publish the same twice.
        let message = PublishMessage::build().expected_last_subject_sequence(after).payload(body.into());
        let sent = self.managing.context.send_publish(self.names.rejects_subject(shard), message).await;
        match sent.map_err(|error| error.to_string())?.await {
            Ok(stored) => Ok(stored.sequence),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                Err("another node publishes them too".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    async fn last_published(&self, shard: ShardId) -> Result<Published, String> {
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
                let place = place.unwrap_or((Sequence(0), 0));
                Ok(Published { place, sequence, count: 0 })
            }
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => {
                Ok(Published { place: (Sequence(0), 0), sequence: 0, count: 0 })
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Of which job a published reject is; `None` if it is none.
fn place_of(body: &[u8]) -> Option<(Sequence, u32)> {
    let json: RejectJson = serde_json::from_slice(body).ok()?;
    Some((Sequence(json.sequence), json.index))
}

//! Deletes from the stream of rejects what it has of members that were removed from every board.
//!
//! Knows: which messages are rejects of the shard, and that the server overwrites a message that it deletes.
//! Every owner of a shard does it by itself, because a reject may have been published by one that had not
//! applied the removal yet. Must not know: when a removal was applied (`storage::erasures`).

use std::time::{Duration, Instant};

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{DeleteMessageErrorKind, RawMessageErrorKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::publish::rejects::STREAM_HEADER;
use crate::queue::nats::shard::NatsShard;
use crate::storage::{Erasures, Store};
use crate::types::Sequence;

/// A published reject, as far as it says whose it is.
#[derive(Deserialize)]
struct Published<'a> {
    sequence: u64,
    index: u32,
    #[serde(borrow)]
    job: &'a RawValue,
}

/// How soon after the shard's own rejects it is done.
const EVERY: Duration = Duration::from_millis(250);
/// A walk sees the whole stream, for as many removals as have come meanwhile: however long it is and however
/// often members are removed, it is at rest for this many times as long as it has walked.
const PAUSE: u32 = 9;
/// After a failure, such as a missing permission.
const RETRY: Duration = Duration::from_secs(30);

impl JetStream {
    /// Erases for as long as the service runs.
    pub async fn erase_rejects(&self, shard: &NatsShard) {
        // What was noted before this start may still be to be done.
        let (mut erased, mut walked) = (None, Duration::ZERO);
        loop {
            tokio::time::sleep(EVERY.max(walked * PAUSE)).await;
            let walks = shard.health.get(|health| health.rejects_erased);
            if erased == Some(walks) || !self.managing.is_up() {
                continue;
            }
            let began = Instant::now();
            let outcome = self.erase_published(shard).await;
            walked = began.elapsed();
            match outcome {
                Ok(()) => erased = Some(walks),
                Err(error) => {
                    let what = "rejects of removed members could not be deleted from the stream of rejects";
                    self.log_failure(shard.id, what, &error);
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Deletes what is noted for it, and notes that it is done.
    async fn erase_published(&self, shard: &NatsShard) -> Result<(), String> {
        let erasures = shard.with_store(Store::erasures_in_stream).await?;
        if erasures.is_empty() {
            return Ok(());
        }
        let filled_from = shard.filled_from().await?;
        let stream = self.managing.context.get_stream_no_info(self.names.rejects_stream()).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let subject = self.names.rejects_subject(shard.id);
        let (mut from, mut deleted) = (1, 0_u64);
        // Whatever is published meanwhile has nothing of these members, so that the walk has an end.
        loop {
            let message = match stream.get_first_raw_message_by_subject(&subject, from).await {
                Ok(message) => message,
                Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => break,
                Err(error) => return Err(error.to_string()),
            };
            from = message.sequence + 1;
            if !is_of(&message, &erasures, &filled_from) {
                continue;
            }
            match stream.delete_message(message.sequence).await {
                Ok(_) => deleted += 1,
                // Another owner was first, or the stream has discarded it.
                Err(error) if matches!(error.kind(), DeleteMessageErrorKind::JetStream(_)) => {
                    if let Ok(left) = stream.get_raw_message(message.sequence).await {
                        return Err(format!("message {} could not be deleted: {error}", left.sequence));
                    }
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        shard.with_store(move |store| store.note_erased_in_stream(&erasures)).await?;
        if deleted > 0 {
            tracing::info!(shard = %shard.id, deleted, "rejects of removed members were deleted from the stream of rejects");
        }
        Ok(())
    }
}

/// Whether a message is a reject of one of these members, or may be, from before its removal.
///
/// # Arguments
/// `filled_from`: the identity of the stream that the shard was filled from. Places in another one are none
/// in this one.
fn is_of(message: &StreamMessage, erasures: &Erasures, filled_from: &str) -> bool {
    let Ok(published) = serde_json::from_slice::<Published<'_>>(&message.payload) else { return false };
    let stream = message.headers.get(STREAM_HEADER).map(ToString::to_string).unwrap_or_default();
    let place = (stream == filled_from).then_some((Sequence(published.sequence), published.index));
    // What is no JSON was published as text.
    match serde_json::from_str::<String>(published.job.get()) {
        Ok(text) => erasures.concern(text.as_bytes(), place),
        Err(_) => erasures.concern(published.job.get().as_bytes(), place),
    }
}

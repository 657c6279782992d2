//! Records of dropped boards, of which the boards' stream keeps the latest and not all that there ever were.
//!
//! Knows: which of them this node has heard of, and when one has done its work: when the drop is in force on all of this node's
//! shards, because of what their streams say, which every other node with these shards reads. So a node has all the shards.
//! Who comes later and does not find the record takes the name for a free one.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::stream::{DeleteMessageErrorKind, RawMessageErrorKind, Stream};
use futures_util::StreamExt as _;

use crate::queue::nats::boards::Boards;
use crate::queue::nats::boards::record::Recorded;
use crate::state_lock::Purpose;
use crate::types::BoardName;

/// Tombstones that the stream keeps: about a megabyte. A node that follows the stream hears of a drop unless it is so many behind.
const KEPT: usize = 10_000;
/// Looked at, and maybe deleted, together.
const AT_ONCE: usize = 256;
/// Requests on their way at once.
const ASKED_AT_ONCE: usize = 32;
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// After a deletion that failed.
const PAUSE: Duration = Duration::from_secs(60);

/// The tombstones in the stream, as far as this node has heard.
#[derive(Default)]
pub struct Tombstones {
    by_sequence: BTreeMap<u64, (BoardName, Recorded)>,
    by_name: HashMap<BoardName, u64>,
    /// Whether the stream lets its messages be deleted. One that an earlier version made does not.
    are_deleted: bool,
}

impl Tombstones {
    /// The stream is read again from its beginning.
    pub fn begin_again(&mut self, are_deleted: bool) {
        *self = Self { are_deleted, ..Self::default() };
    }

    pub fn note(&mut self, name: &BoardName, recorded: &Recorded) {
        if let Some(before) = self.by_name.remove(name) {
            self.by_sequence.remove(&before);
        }
        if self.are_deleted && !recorded.is_alive() {
            self.by_name.insert(name.clone(), recorded.sequence);
            self.by_sequence.insert(recorded.sequence, (name.clone(), recorded.clone()));
        }
    }

    /// It is not in the stream any more.
    fn forget(&mut self, sequence: u64) {
        if let Some((name, _)) = self.by_sequence.remove(&sequence) {
            self.by_name.remove(&name);
        }
    }

    /// The oldest of those that are too many.
    fn too_many(&self) -> Vec<(BoardName, Recorded)> {
        let too_many = self.by_sequence.len().saturating_sub(KEPT);
        self.by_sequence.values().take(too_many.min(AT_ONCE)).cloned().collect()
    }
}

impl Boards {
    /// Deletes tombstones that are too many, for as long as the service runs. Where that is not permitted they stay.
    pub async fn delete_tombstones(&self) {
        let mut has_warned = false;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // A long list takes as many requests; each round begins where the one before ended.
            let failed = loop {
                match self.delete_some().await {
                    Ok(0) => break None,
                    Ok(_) => {}
                    Err(error) => break Some(error),
                }
            };
            if let Some(error) = failed {
                if !has_warned {
                    tracing::warn!(
                        error,
                        "records of boards that were dropped long ago cannot be deleted from the boards' stream, which \
                         takes the permission for $JS.API.STREAM.MSG.DELETE; it grows by one for each name"
                    );
                }
                has_warned = true;
                tokio::time::sleep(PAUSE).await;
            } else {
                has_warned = false;
            }
        }
    }

    /// Deletes the oldest of those that are too many and have done their work. How many there were.
    async fn delete_some(&self) -> Result<usize, String> {
        // Before the stream is compared with the shards, a record may be all that is known of a board.
        if !*self.compared.borrow() {
            return Ok(0);
        }
        let reached = self.reached.load(Ordering::Relaxed);
        let mut done = self.tombstones.lock().too_many();
        done.retain(|(name, recorded)| {
            // The next record of the name follows none, so its sequence alone must say that it is a later one.
            recorded.number.0 <= reached
                && self
                    .shards
                    .iter()
                    .all(|shard| recorded.is_in_force(&shard.state.read(Purpose::Boards), name))
        });
        let stream = self.managing.context.get_stream_no_info(self.names.boards_stream()).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let delete = async |(name, recorded): (BoardName, Recorded)| {
            self.delete(&stream, &name, &recorded).await?;
            self.tombstones.lock().forget(recorded.sequence);
            Ok::<(), String>(())
        };
        let count = done.len();
        let mut done = done.into_iter();
        // One alone, to see whether it is permitted.
        if let Some(first) = done.next() {
            delete(first).await?;
        }
        let mut deleting = futures_util::stream::iter(done.map(delete)).buffer_unordered(ASKED_AT_ONCE);
        while let Some(deleted) = deleting.next().await {
            deleted?;
        }
        Ok(count)
    }

    /// Deletes a tombstone, unless it is gone already.
    async fn delete(&self, stream: &Stream<()>, name: &BoardName, recorded: &Recorded) -> Result<(), String> {
        let sequence = recorded.sequence;
        // The stream may be another one by now, and have something else there.
        match stream.get_raw_message(sequence).await {
            Ok(message) => {
                let is_it = message.subject.as_str() == self.names.board_subject(name)
                    && Recorded::read(sequence, &message.payload).as_ref() == Some(recorded);
                if !is_it {
                    return Ok(());
                }
            }
            Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        }
        match stream.delete_message(sequence).await {
            Ok(_) => Ok(()),
            // Another node was first, or the board was made again.
            Err(error) => match error.kind() {
                DeleteMessageErrorKind::JetStream(error) if is_no_message(&error) => Ok(()),
                _ => Err(self.managing.explain(&error)),
            },
        }
    }
}

fn is_no_message(error: &async_nats::jetstream::Error) -> bool {
    [ErrorCode::NO_MESSAGE_FOUND, ErrorCode::SEQUENCE_NOT_FOUND].contains(&error.error_code())
}

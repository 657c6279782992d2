//! Deletes tombstones from the boards' stream.
//!
//! Knows: a tombstone may be deleted once its drop is in force on all shards. Those of this node show it, and
//! the owners of the others confirm it; other owners of a shard read the same from its stream. A node that
//! starts later and does not find the record takes the name for a free one.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::stream::{DeleteMessageErrorKind, RawMessageErrorKind, Stream};
use futures_util::StreamExt as _;

use crate::queue::nats::boards::boards_stream::BoardsStream;
use crate::queue::nats::boards::decision::Record;
use crate::queue::nats::boards::record::RecordJson;
use crate::state_lock::Purpose;
use crate::types::BoardName;

/// Requests in flight at once.
const ASKED_AT_ONCE: usize = 32;
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// After a deletion that failed.
const PAUSE: Duration = Duration::from_secs(60);

impl BoardsStream {
    /// Deletes tombstones that are too many, for as long as the service runs. Without the permission they
    /// stay.
    pub async fn delete_tombstones(&self) {
        let mut has_warned = false;
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            // A long list takes several rounds, each of which begins where the one before ended.
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
                        "records of boards that were dropped long ago cannot be deleted from the boards' \
                         stream, which grows by one record for each dropped name; give the nodes' user \
                         the permission to publish to $JS.API.STREAM.MSG.DELETE"
                    );
                }
                has_warned = true;
                tokio::time::sleep(PAUSE).await;
            } else {
                has_warned = false;
            }
        }
    }

    /// Deletes the oldest tombstones that are too many and in force on all shards. Returns how many.
    async fn delete_some(&self) -> Result<usize, String> {
        // Before the stream is reconciled with the shards, a record may be all that is known of a board.
        if !*self.reconciled.borrow() {
            return Ok(0);
        }
        let reached = *self.reached.borrow();
        let mut done = self.tombstones.lock().too_many();
        if let Some((_, last)) = done.last() {
            self.inquire_after(last.sequence).await.map_err(|error| error.to_string())?;
        }
        done.retain(|(name, recorded)| {
            // The next record of this name will follow none, so its sequence alone must show that it is
            // later.
            recorded.number.0 <= reached
                && self
                    .shards
                    .iter()
                    .all(|shard| recorded.is_in_force(&shard.state.read(Purpose::Boards), name))
                && self
                    .others
                    .iter()
                    .all(|other| self.confirmations.borrow().of(other.id) >= recorded.sequence)
        });
        let stream = self.managing.context.get_stream_no_info(self.names.boards_stream()).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let delete = async |(name, recorded): (BoardName, Record)| {
            self.delete(&stream, &name, &recorded).await?;
            self.tombstones.lock().forget(recorded.sequence);
            Ok::<(), String>(())
        };
        let count = done.len();
        let mut done = done.into_iter();
        // The first one alone, to see whether deleting is permitted.
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
    async fn delete(&self, stream: &Stream<()>, name: &BoardName, recorded: &Record) -> Result<(), String> {
        let sequence = recorded.sequence;
        // The stream may be another one by now, with another message at this sequence.
        match stream.get_raw_message(sequence).await {
            Ok(message) => {
                let is_that_record = message.subject.as_str() == self.names.board_subject(name)
                    && RecordJson::read(sequence, &message.payload).as_ref() == Some(recorded);
                if !is_that_record {
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

//! Reading and storing records: each follows the one that its writer has read, or it is not stored.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use futures_util::future::join_all;
use serde::Serialize;

use crate::queue::nats::boards::boards_stream::{BoardRefused, BoardsStream};
use crate::queue::nats::boards::decision::{Decision, Record};
use crate::queue::nats::boards::record::{RecordJson, is_foreign};
use crate::queue::nats::names::BoardsMessage;
use crate::state::{Incarnation, RecordNumber};
use crate::types::BoardName;

/// A server refuses a record at once that follows the same one as another that it is still replicating. A
/// moment later the other one can be read.
const OTHER_IS_STORED: Duration = Duration::from_millis(20);
/// Records in flight at once.
const STORED_AT_ONCE: usize = 1_000;

/// A record to be stored behind the one at `after`; 0 for none.
pub struct NewRecord {
    pub name: BoardName,
    pub record: RecordJson,
    pub after: u64,
}

impl BoardsStream {
    /// The last record of a board.
    pub(super) async fn last(&self, name: &BoardName) -> Result<Option<Record>, BoardRefused> {
        let unavailable = |error: &dyn std::fmt::Display| self.unavailable(error);
        let stream = self.managing.context.get_stream_no_info(self.names.boards_stream()).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        match stream.get_last_raw_message_by_subject(&self.names.board_subject(name)).await {
            Ok(message) if is_foreign(&message.payload) => {
                let sequence = message.sequence;
                let decision = self.held(name).unwrap_or(Decision::dropped(Incarnation(sequence)));
                Ok(Some(Record { sequence, number: RecordNumber(sequence), decision }))
            }
            Ok(message) => {
                let last = RecordJson::read(message.sequence, &message.payload);
                let sequence = message.sequence;
                let last = last.ok_or_else(|| {
                    unavailable(&format!(
                        "the record of {name} in it, message {sequence}, cannot be read: if a newer version of \
                         ranktree wrote it, upgrade this node; if not, delete that message (nats stream rmm)"
                    ))
                })?;
                // The next record of this board gets a higher number.
                self.registry.observe_number(last.number);
                Ok(Some(last))
            }
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// The last record of a board, after another node has stored one after the one at `after`, or is about
    /// to.
    pub(super) async fn last_after(
        &self,
        name: &BoardName,
        after: u64,
    ) -> Result<Option<Record>, BoardRefused> {
        let last = self.last(name).await?;
        if last.as_ref().map_or(0, |last| last.sequence) == after {
            tokio::time::sleep(OTHER_IS_STORED).await;
            return self.last(name).await;
        }
        Ok(last)
    }

    /// Stores a record if it follows the one at `after`. `None`: another node won the race.
    pub(super) async fn store(&self, new: NewRecord) -> Result<Option<Record>, BoardRefused> {
        let record = new.record.clone();
        let sent = self.send(new).await?;
        self.stored(record, sent.await)
    }

    /// Stores records, all in flight at once. Each outcome is as [`BoardsStream::store`] has it.
    pub(super) async fn store_all(
        &self,
        records: Vec<NewRecord>,
    ) -> Vec<Result<Option<Record>, BoardRefused>> {
        let mut outcomes = Vec::with_capacity(records.len());
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let mut sent = Vec::new();
            for new in records.by_ref().take(STORED_AT_ONCE) {
                sent.push((new.record.clone(), self.send(new).await));
            }
            // All are polled together, because each waits for its timeout from its first poll on, and a lost
            // server answers none.
            let stored = sent.into_iter().map(async |(record, sent)| match sent {
                Ok(sent) => self.stored(record, sent.await),
                Err(error) => Err(error),
            });
            outcomes.extend(join_all(stored).await);
        }
        outcomes
    }

    /// Stores a message that is about no board, in place of the last one of its kind. Returns its sequence.
    pub(super) async fn store_message(
        &self,
        kind: BoardsMessage,
        body: &impl Serialize,
    ) -> Result<u64, BoardRefused> {
        let body = serde_json::to_vec(body).expect("it has no maps whose keys are not strings");
        let subject = self.names.boards_message_subject(kind);
        let sent = self.managing.context.publish(subject, body.into()).await;
        let sent = sent.map_err(|error| self.unavailable(&error))?;
        Ok(sent.await.map_err(|error| self.unavailable(&error))?.sequence)
    }

    async fn send(&self, new: NewRecord) -> Result<PublishAckFuture, BoardRefused> {
        self.send_if_last(new, None).await
    }

    /// # Arguments
    /// `last`: the stream's last message of any subject, if the record is to be stored only right after it.
    pub(super) async fn send_if_last(
        &self,
        new: NewRecord,
        last: Option<u64>,
    ) -> Result<PublishAckFuture, BoardRefused> {
        let NewRecord { name, record, after } = new;
        let message =
            PublishMessage::build().expected_last_subject_sequence(after).payload(record.encode().into());
        let message = match last {
            Some(last) => message.expected_last_sequence(last),
            None => message,
        };
        let sent = self.managing.context.send_publish(self.names.board_subject(&name), message).await;
        sent.map_err(|error| self.unavailable(&error))
    }

    pub(super) fn stored(
        &self,
        record: RecordJson,
        outcome: Result<PublishAck, PublishError>,
    ) -> Result<Option<Record>, BoardRefused> {
        match outcome {
            Ok(stored) => Ok(Some(record.stored_at(stored.sequence).expect("it was just written"))),
            Err(error) if is_write_conflict(&error) => Ok(None),
            Err(error) => Err(self.unavailable(&error)),
        }
    }
}

/// Whether another node has stored a record after the same one. A single server reports the sequence that it
/// found. The leader of several replicas reports another code, for which the client has no name, while the
/// other record is not stored by all replicas yet.
fn is_write_conflict(error: &PublishError) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<jetstream::Error>());
    error.kind() == PublishErrorKind::WrongLastSequence
        || cause.is_some_and(|cause| cause.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}

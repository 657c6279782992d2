//! Whether the stream continues exactly at the tip: judged by the stream's state, and by each message that
//! comes.
//!
//! Knows: which mismatch may be the fault of a consumer's server, which of a leader that has just started,
//! and which only an operator can accept. Must not know: what is done about them; see `recovery`.

use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::{self, stream};

use crate::queue::nats::consume::fetcher::run::Fetcher;
use crate::queue::nats::consume::fetcher::session_end::SessionEnd;
use crate::queue::nats::consume::fingerprint::{hash, micros_of};
use crate::queue::nats::consume::origin::identity;
use crate::queue::nats::message::{self, Control};
use crate::state::Applied;
use crate::types::Sequence;
use crate::writer::{Message, Payload};

impl Fetcher {
    /// Whether the shard was filled without NATS.
    pub(super) fn was_filled_without_nats(&self) -> bool {
        self.tip.sequence.0 > 0 && self.origin.stream.is_empty()
    }

    pub(super) fn why_filled_without_nats(&self) -> String {
        format!(
            "this directory was filled without NATS up to sequence {}, so no stream can continue it; \
             start with a new directory, and copy the boards with ranktree export and ranktree import",
            self.tip.sequence
        )
    }

    /// Checks that the stream may be the one that the tip came from, and still holds all messages after the
    /// tip.
    pub(super) fn check(&mut self, info: &stream::Info) -> Result<(), SessionEnd> {
        let (applied, shard) = (self.tip.sequence.0, self.shared.shard);
        // As the stream counts.
        let tip = applied.saturating_sub(self.origin.sequence_offset);
        let (first, last, stored) =
            (info.state.first_sequence, info.state.last_sequence, info.state.messages);
        let name = &info.config.name;
        let found = identity(info);
        if self.was_filled_without_nats() {
            return Err(SessionEnd::Refuse(self.why_filled_without_nats()));
        }
        if applied > 0 && self.origin.stream != found {
            let gone = match first {
                0 | 1 => String::new(),
                _ if first == applied + 1 => String::new(),
                _ => format!(
                    " (its messages before {first} were purged, possibly by another node that has applied \
                     them; then a copy of that node's data has them)"
                ),
            };
            return Err(SessionEnd::Halt(format!(
                "the stream {name} is not the one that this shard was filled from up to {applied} (it is \
                 {found}, not {}): it was deleted and created again, or belongs to another system; \
                 restore the stream, or start with --accept-gap {shard} to continue with this one, whose \
                 {stored} messages are then all applied as new jobs{gone}",
                self.origin.stream
            )));
        }
        if self.is_purged_past_tip(info) {
            return Ok(());
        }
        if last < tip {
            return Err(SessionEnd::Suspect(format!(
                "the stream {name} ends at {last}, but this shard has applied messages up to {tip}: the \
                 server lost the end of the stream, and will use those sequences again; restore the \
                 stream, or start with --accept-gap {shard} to continue with the messages that were \
                 stored after {}",
                self.tip.timestamp
            )));
        }
        if first > tip + 1 && !self.admits_gap {
            return Err(SessionEnd::Halt(format!(
                "the stream {name} no longer has the messages {} to {}, which were never applied here: \
                 another node may have purged them, because its checkpoint holds them and it runs without \
                 --nats-no-purge and with a small --nats-keep; replace this shard's directory with a copy \
                 from a node that has applied them, or start with --accept-gap {shard} to continue \
                 without them",
                tip + 1,
                first - 1
            )));
        }
        Ok(())
    }

    /// Checks and decodes a message for the writer; `None` if it was handed on before.
    pub(super) fn accept(
        &mut self,
        next: Option<Result<jetstream::Message, pull::MessagesError>>,
        overlaps: &mut bool,
    ) -> Result<Option<Message>, SessionEnd> {
        let message = next
            .ok_or_else(|| SessionEnd::Retry("the server ended the delivery of messages".to_owned()))?
            .map_err(|error| SessionEnd::Retry(format!("the delivery of messages failed: {error}")))?;
        let info = message
            .info()
            .map_err(|error| SessionEnd::Retry(format!("a message has no readable sequence: {error}")))?;
        let sequence = info.stream_sequence + self.origin.sequence_offset;
        let timestamp = micros_of(info.published.unix_timestamp_nanos());
        let hash = hash(&message.payload);
        let tip = self.tip;
        if *overlaps && sequence == tip.sequence.0 {
            if (timestamp, hash) != (tip.timestamp, tip.hash) {
                return Err(SessionEnd::Doubt(format!(
                    "the message {sequence}, as the server of the consumer has it, is not the one that \
                     was applied here (its time is {timestamp}, and that of the applied one was {})",
                    tip.timestamp
                )));
            }
            *overlaps = false;
            return Ok(None);
        }
        if sequence <= tip.sequence.0 {
            return Ok(None);
        }
        if (*overlaps || sequence != tip.sequence.0 + 1) && !self.admits_gap {
            // The missing messages may have been lost on the way here, or the consumer's server may lack
            // them.
            return Err(SessionEnd::Doubt(format!(
                "the server of the consumer delivered message {sequence} right after {}: the messages between are missing",
                tip.sequence
            )));
        }
        let headers = message.headers.as_ref();
        let payload = if message.subject.as_str() == self.control_subject {
            match message::decode_control(headers, &message.payload) {
                Control::RegisteredBoard(payload) => payload,
                Control::Unknown(name) => self.reject_unknown_command(&name, sequence, &message.payload)?,
            }
        } else {
            message::decode_jobs(&mut self.names, &message.payload)
        };
        *overlaps = false;
        self.admits_gap = false;
        self.tip = Applied { sequence: Sequence(sequence), timestamp, hash };
        self.shared.health.set_last_sequence(sequence + info.pending);
        let id = headers.and_then(|headers| headers.get(async_nats::header::NATS_MESSAGE_ID));
        let answer = id.and_then(|id| self.shared.pending_replies.find(id.as_str()));
        Ok(Some(Message {
            sequence: self.tip.sequence,
            timestamp,
            hash,
            payload,
            bytes: message.length,
            answer,
        }))
    }

    /// Rejects a command that this version does not know, if the operator accepts one gap. Otherwise the
    /// shard stops here.
    fn reject_unknown_command(
        &self,
        command: &str,
        sequence: u64,
        bytes: &[u8],
    ) -> Result<Payload, SessionEnd> {
        let shard = self.shared.shard;
        if self.shared.accept_gap.take(self.tip.sequence) {
            tracing::warn!(%shard, sequence, command, "rejecting a command that this version does not know, because of --accept-gap");
            return Ok(message::no_command(bytes));
        }
        Err(SessionEnd::Refuse(format!(
            "the message {sequence} of the shard's stream is a command that this version of ranktree does \
             not know, {command:?}: nodes of a later version may have carried it out; start that version \
             here, or, if none of your nodes published the command, start with --accept-gap {shard} to \
             reject it"
        )))
    }
}

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
            "this directory was filled without NATS up to {}, which no stream continues; start with a new directory, and \
             bring the boards over with ranktree export and ranktree import",
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
                    " (the messages before {first} are purged from it, maybe by another node that has applied them: \
                     a copy of that node's data has them)"
                ),
            };
            return Err(SessionEnd::Halt(format!(
                "the stream {name} is not the one that this shard was filled from up to {applied} ({found}, and not \
                 {}): it was deleted and made again, or belongs to another system; restore the stream, or start with \
                 --accept-gap {shard} to go on with it: all {stored} messages that it holds are applied then, as jobs \
                 that are new{gone}",
                self.origin.stream
            )));
        }
        if self.is_purged_past_tip(info) {
            return Ok(());
        }
        if last < tip {
            return Err(SessionEnd::Suspect(format!(
                "the stream {name} ends at {last}, and this shard has applied up to {tip}: the server lost the end of \
                 it, and will use the sequences again; restore the stream, or start with --accept-gap {shard} to go on \
                 with what was stored after {}",
                self.tip.timestamp
            )));
        }
        if first > tip + 1 && !self.admits_gap {
            return Err(SessionEnd::Halt(format!(
                "the messages {} to {} are gone from the stream {name} and were never applied here: they were purged, \
                 as a node does with what its own checkpoint holds, unless it runs with --nats-no-purge or a larger \
                 --nats-keep; replace this shard's directory by a copy of a node that has applied them, or start with \
                 --accept-gap {shard} to go on without them",
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
            .ok_or_else(|| SessionEnd::Retry("the server ended the delivery".to_owned()))?
            .map_err(|error| SessionEnd::Retry(format!("the delivery failed: {error}")))?;
        let info =
            message.info().map_err(|error| SessionEnd::Retry(format!("a message has no place: {error}")))?;
        let sequence = info.stream_sequence + self.origin.sequence_offset;
        let timestamp = micros_of(info.published.unix_timestamp_nanos());
        let hash = hash(&message.payload);
        let tip = self.tip;
        if *overlaps && sequence == tip.sequence.0 {
            if (timestamp, hash) != (tip.timestamp, tip.hash) {
                return Err(SessionEnd::Doubt(format!(
                    "the message {sequence} of the stream is not the one that was applied here (it is of {timestamp}, \
                     and that one was of {}), as its consumer's server has it",
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
                "the stream goes on at {sequence} after {}, as its consumer's server has it: messages between are missing",
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
            tracing::warn!(%shard, sequence, command, "a command that this version does not know is rejected, as --accept-gap says");
            return Ok(message::no_command(bytes));
        }
        Err(SessionEnd::Refuse(format!(
            "the message {sequence} of the shard's stream is a command that this ranktree does not know, {command:?}: nodes of a \
             later version may have done what it says; start that version here, or start with --accept-gap {shard} to have \
             it rejected, if no node of yours has written it"
        )))
    }
}

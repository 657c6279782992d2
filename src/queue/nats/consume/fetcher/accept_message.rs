//! One message on its way from the stream to the writer: checked against the tip, and decoded.
//!
//! Knows: which mismatch may be the fault of a consumer's server, and what a command of a later version
//! means. Must not know: what is done about a mismatch; see `recovery`.

use async_nats::Message as Delivered;

use crate::queue::nats::consume::fetcher::run::{Fetcher, SessionEnd};
use crate::queue::nats::consume::fingerprint::hash;
use crate::queue::nats::consume::place::{Place, Places};
use crate::queue::nats::message::{self, Control};
use crate::queue::nats::trace_headers;
use crate::state::Applied;
use crate::traces::{self, Arrived};
use crate::types::Sequence;
use crate::writer::{Message, Payload};

impl Fetcher {
    /// Checks and decodes a message for the writer, unless it was handed on before. Returns what it adds to
    /// the chunk: jobs and bytes.
    pub(super) fn accept_message(
        &mut self,
        message: &Delivered,
        places: &mut Places,
        overlaps: &mut bool,
        chunk: &mut Vec<Message>,
    ) -> Result<(usize, usize), SessionEnd> {
        let place = message.reply.as_deref().and_then(|reply| places.read(reply));
        let Place { sequence, timestamp } = place
            .ok_or_else(|| SessionEnd::Retry("a message came that has no place in the stream".to_owned()))?;
        let sequence = sequence + self.origin.sequence_offset;
        let hash = hash(&message.payload);
        let tip = self.tip;
        if *overlaps && sequence == tip.sequence.0 {
            if (timestamp, hash) != (tip.timestamp, tip.hash) {
                return Err(SessionEnd::ConsumerMismatch(format!(
                    "the message {sequence}, as the server of the consumer has it, is not the one that \
                     was applied here (its time is {timestamp}, and that of the applied one was {})",
                    tip.timestamp
                )));
            }
            *overlaps = false;
            return Ok((0, 0));
        }
        if sequence <= tip.sequence.0 {
            return Ok((0, 0));
        }
        if (*overlaps || sequence != tip.sequence.0 + 1) && !self.admits_gap {
            // The missing messages may have been lost on the way here, or the consumer's server may lack
            // them.
            return Err(SessionEnd::ConsumerMismatch(format!(
                "the server of the consumer delivered message {sequence} right after {}: the messages between are missing",
                tip.sequence
            )));
        }
        let headers = message.headers.as_ref();
        let payload = if message.subject.as_str() == self.control_subject {
            match message::decode_control(headers, &message.payload) {
                Control::Command(payload) => payload,
                Control::Unknown(name) => self.reject_unknown_command(&name, sequence, &message.payload)?,
            }
        } else {
            message::decode_jobs(&mut self.names, &message.payload)
        };
        // What nodes do by themselves is in no trace.
        let may_be_traced = traces::is_on() && matches!(payload, Payload::Jobs(_));
        let traced = may_be_traced.then(|| Arrived::from_headers(trace_headers::read(headers))).flatten();
        *overlaps = false;
        self.admits_gap = false;
        self.tip = Applied { sequence: Sequence(sequence), timestamp, hash };
        let id = headers.and_then(|headers| headers.get(async_nats::header::NATS_MESSAGE_ID));
        let answer = id.and_then(|id| self.shared.pending_replies.find(id.as_str()));
        let added = (payload.cost(), message.length);
        chunk.push(Message {
            sequence: self.tip.sequence,
            timestamp,
            hash,
            payload,
            bytes: message.length,
            answer,
            traced,
        });
        Ok(added)
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
        Err(SessionEnd::Unrecoverable(format!(
            "the message {sequence} of the shard's stream is a command that this version of ranktree does \
             not know, {command:?}: nodes of a later version may have carried it out; start that version \
             here, or, if none of your nodes published the command, start with --accept-gap {shard} to \
             reject it"
        )))
    }
}

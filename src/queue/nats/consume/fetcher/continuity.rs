//! Whether the stream, by its state, may continue exactly at the tip. `accept_message` checks each message.
//!
//! Knows: which mismatch may be the fault of a leader that has just started, and which only an operator can
//! accept. Must not know: what is done about them; see `recovery`.

use async_nats::jetstream::stream;

use crate::queue::nats::consume::fetcher::run::Fetcher;
use crate::queue::nats::consume::fetcher::session_end::SessionEnd;
use crate::queue::nats::consume::origin::identity;

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
}

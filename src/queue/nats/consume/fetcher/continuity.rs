//! Whether the stream, by its state, may continue exactly at the tip. `accept_message` checks each message.
//!
//! Knows: which mismatch may be the fault of a leader that has just started, and which only an operator can
//! accept. Must not know: what is done about them; see `recovery`.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream;

use crate::queue::nats::consume::copy_need::NeededCopy;
use crate::queue::nats::consume::fetcher::run::{Fetcher, SessionEnd};
use crate::queue::nats::consume::origin::identity;
use crate::queue::nats::peers::known::Hearing;
use crate::queue::nats::peers::lineage::StreamOwner;
use crate::queue::nats::streams::jobs_config::{STEP_TO_OWN_SERVICE, of_another_service, service_of};

/// After a start, the floors of other owners are mostly read within milliseconds.
const OWNERS_KNOWN_WITHIN: Duration = Duration::from_secs(2);
const OWNERS_LOOK_INTERVAL: Duration = Duration::from_millis(10);

impl Fetcher {
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
        if let Some(reason) = self.shared.copies.lost() {
            return Err(SessionEnd::CopyNeeded(NeededCopy { stream: found, first, reason }));
        }
        if applied == 0 && self.origin.stream != found {
            self.check_other_owners(name, &found)?;
        }
        if applied > 0
            && self.origin.stream != found
            && let Some((own, theirs)) = self.shared.service().zip(service_of(&info.config))
            && own != theirs
        {
            let what = of_another_service(own, &format!("the stream {name}"), theirs);
            return Err(SessionEnd::Unrecoverable(format!("{what}. {STEP_TO_OWN_SERVICE}")));
        }
        self.check_no_owner_has_it(info)?;
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
                 {found}, not {}): it was deleted and created again, or belongs to another system, to which \
                 --nats or --prefix leads; restore the stream, or start with --accept-gap {shard} to \
                 continue with this one, whose {stored} messages are then all applied as new jobs{gone}; if the \
                 whole service came to new streams from snapshots, do neither, but restore the newest data once \
                 with `ranktree restore --bind-new-streams`",
                self.origin.stream
            )));
        }
        if self.is_purged_past_tip(info) {
            return Ok(());
        }
        if last < tip {
            return Err(SessionEnd::LeaderMismatch(format!(
                "the stream {name} ends at {last}, but this shard has applied messages up to {tip}: the \
                 server lost the end of the stream, and will use those sequences again; restore the \
                 stream, or start with --accept-gap {shard} to continue with the messages that were \
                 stored after {}",
                self.tip.timestamp
            )));
        }
        if first > tip + 1 && !self.admits_gap {
            let reason = format!(
                "the stream {name} no longer has the messages {} to {}, which were never applied here: \
                 another node may have purged them, because this one was silent for longer than \
                 --nats-forget, or the stream was filling up",
                tip + 1,
                first - 1
            );
            return Err(SessionEnd::CopyNeeded(NeededCopy { stream: found, first, reason }));
        }
        Ok(())
    }

    /// Checks, for a shard that has applied nothing, that its other owners were not filled from another
    /// stream: this one would be new and lack what they have applied.
    fn check_other_owners(&self, name: &str, found: &str) -> Result<(), SessionEnd> {
        let shard = self.shared.shard;
        let other =
            self.shared.peers.filled_from_another(shard, found).map_err(|why| {
                SessionEnd::Retry(format!("the floors of other nodes cannot be read: {why}"))
            })?;
        let Some((node, theirs)) = other else { return Ok(()) };
        Err(SessionEnd::Halt(format!(
            "the stream {name} is not the one that the node {node} has filled this shard from (it is {found}, \
             not {theirs}): it was deleted and created again, and this node has nothing of what was in the \
             former one; restore the stream; or start {node} with --accept-gap {shard}, and this node gets a \
             copy of its data; or start this node with --accept-gap {shard} to do without what was there"
        )))
    }

    /// Checks, for a shard whose data are of another stream, that no other owner's data are of this one: to
    /// renumber it would have that owner apply all of it once more, and this shard is no replica of it.
    pub(super) fn check_no_owner_has_it(&self, info: &stream::Info) -> Result<(), SessionEnd> {
        let (applied, shard, name) = (self.tip.sequence.0, self.shared.shard, &info.config.name);
        let found = identity(info);
        if applied == 0 || self.origin.stream == found {
            return Ok(());
        }
        let owner = self.shared.peers.owner_of_stream(shard, &found).map_err(|why| {
            SessionEnd::Retry(format!("whether another node has applied the stream {name} is unknown: {why}"))
        })?;
        let Some(StreamOwner { node, silent, is_alive }) = owner else { return Ok(()) };
        let also = if is_alive {
            String::new()
        } else {
            format!(", once {node} runs, which has been silent for {} s", silent.as_secs())
        };
        Err(SessionEnd::Refused(format!(
            "the data of this shard, up to message {applied}, are of the stream {}, and the stream {name} is \
             {found}, of which the node {node} has the data: the stream was made again and {node} has taken \
             it up, or this node was at another server for a while (--nats, --prefix), or its directory is a \
             wrong one; what it has applied is no part of this stream; stop this node, move its directory of \
             the shard, shard-{:03}, out of --data-dir, and start it without --accept-gap, which is refused \
             here: it then gets a copy of {node}'s data{also}",
            self.origin.stream, shard.0
        )))
    }

    /// Waits a moment until it is known what other owners were filled from, if that counts.
    pub(super) async fn wait_for_owners(&self, info: &stream::Info) {
        let peers = &self.shared.peers;
        let is_known = || match self.tip.sequence.0 {
            0 => peers.knows_owners(),
            _ => self.origin.stream == identity(info) || peers.hearing() != Hearing::Unread,
        };
        let began = Instant::now();
        while !is_known() && began.elapsed() < OWNERS_KNOWN_WITHIN {
            tokio::time::sleep(OWNERS_LOOK_INTERVAL).await;
        }
    }
}

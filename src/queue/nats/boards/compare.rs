//! Whether the data of this node's shards are of the streams that the node was given.
//!
//! A directory may be put in place that was filled from other streams. What its shards say of boards is about
//! other boards: their lives were numbered by another stream, so that a comparison of numbers means nothing.
//! It is decided from what is stored beside the applied sequence: the identity of the stream, and by what its
//! last message is recognised. It does not matter whether the shard was found to be halted yet.
//!
//! Knows: the words that say why. Must not know: what a shard does about it; see `consume::fetcher`.

use crate::queue::nats::boards::boards_stream::{BoardsStream, ForeignShard};
use crate::queue::nats::boards::following::LastRecords;
use crate::queue::nats::consume::fingerprint::{hash, micros_of};
use crate::queue::nats::consume::origin::{Origin, identity};
use crate::queue::nats::shard::NatsShard;
use crate::state::Incarnation;
use crate::state_lock::Purpose;
use crate::types::{BoardName, Timestamp};

/// Boards looked at under one hold of a lock.
const LOOKED_AT_ONCE: usize = 256;

/// The last message that a shard has applied.
struct Tip {
    sequence: u64,
    timestamp: Timestamp,
    hash: u64,
    origin: Origin,
}

impl BoardsStream {
    /// This node's shards whose data are not of their streams.
    ///
    /// # Errors
    /// When that cannot be told at the moment.
    pub(super) async fn foreign_shards(&self) -> Result<Vec<ForeignShard>, String> {
        let mut foreign = Vec::new();
        for shard in &self.shards {
            if let Some(why) = self.why_foreign(shard).await? {
                foreign.push(ForeignShard { shard: shard.id, why });
            }
        }
        Ok(foreign)
    }

    async fn why_foreign(&self, shard: &NatsShard) -> Result<Option<String>, String> {
        let tip = tip_of(shard)?;
        if tip.sequence == 0 {
            // It holds nothing, and so says nothing.
            return Ok(None);
        }
        let name = self.names.jobs_stream(shard.id);
        let info = match self.managing.stream(&name).await {
            Ok(stream) => stream.cached_info().clone(),
            Err(error) if error.is_no_stream() => {
                return Ok(Some(format!("the stream {name} does not exist any more")));
            }
            Err(error) => return Err(error.to_string()),
        };
        let found = identity(&info);
        if tip.origin.stream != found {
            return Ok(Some(format!(
                "it was filled from the stream {}, and this is {found}",
                tip.origin.stream
            )));
        }
        if tip.origin.sequence_offset > 0 {
            // The operator has accepted this stream, and its messages are being applied.
            return Ok(None);
        }
        let lacks =
            || format!("the stream {name} does not have the message {} that it has applied", tip.sequence);
        if info.state.last_sequence < tip.sequence {
            return Ok(Some(lacks()));
        }
        if info.state.first_sequence > tip.sequence || info.state.messages == 0 {
            return Ok(None);
        }
        let message = self.managing.message(&name, tip.sequence).await.map_err(|error| error.to_string())?;
        let is_same = message.is_some_and(|message| {
            let timestamp = micros_of(message.time.unix_timestamp_nanos());
            (timestamp, hash(&message.payload)) == (tip.timestamp, tip.hash)
        });
        Ok((!is_same).then(lacks))
    }

    /// Takes out of the registry what only shards say that do not count, now that the stream was read: lives
    /// of boards that were numbered by another stream, or that ended while a shard was halted. What the
    /// stream says takes their place.
    ///
    /// Boards that the stream does not contradict stay if no shard of this node counts: their entries are
    /// still read, marked stale.
    pub(super) fn set_aside(&self, in_stream: &LastRecords, counts: impl Fn(&NatsShard) -> bool) {
        let holds = |shard: &NatsShard, name: &BoardName, life: Incarnation| {
            let state = shard.state.read(Purpose::Boards);
            state.board(name.as_str()).is_some_and(|board| board.incarnation == life)
        };
        let one_counts = self.shards.iter().any(&counts);
        let mut after: Option<BoardName> = None;
        loop {
            let page = self.registry.decided_after(after.as_ref(), LOOKED_AT_ONCE);
            for (name, known) in &page {
                let mut holders =
                    self.shards.iter().filter(|shard| holds(shard, name, known.incarnation)).peekable();
                if holders.peek().is_none() || holders.any(&counts) {
                    continue;
                }
                match in_stream.records.get(name) {
                    Some(recorded) if recorded.decision.incarnation == known.incarnation => {}
                    Some(recorded) => {
                        self.registry.forget(name, known.incarnation);
                        if let Some(decided) = recorded.decision.known() {
                            self.registry.apply_remote(name, &decided);
                        }
                    }
                    None if one_counts => self.registry.forget(name, known.incarnation),
                    None => {}
                }
            }
            match page.into_iter().next_back() {
                Some((name, _)) => after = Some(name),
                None => return,
            }
        }
    }
}

fn tip_of(shard: &NatsShard) -> Result<Tip, String> {
    // Some shards that are halted have closed their stores.
    if shard.is_halted() && shard.store.get().is_err() {
        let applied = shard.state.read(Purpose::Boards).applied;
        let sequence_offset = shard.stream.sequence_offset().unwrap_or(0);
        let origin = Origin { stream: shard.stream.stream(), sequence_offset };
        return Ok(Tip {
            sequence: applied.sequence.0,
            timestamp: applied.timestamp,
            hash: applied.hash,
            origin,
        });
    }
    let meta = shard.store.get().and_then(|store| store.meta()).map_err(|error| error.to_string())?;
    let Some(meta) = meta else {
        return Ok(Tip { sequence: 0, timestamp: Timestamp::default(), hash: 0, origin: Origin::default() });
    };
    Ok(Tip {
        sequence: meta.applied_sequence,
        timestamp: Timestamp::from_micros(meta.message_timestamp_micros).unwrap_or_default(),
        hash: meta.message_hash,
        origin: Origin::read(&meta.stream),
    })
}

//! What is decided and has not arrived at every shard yet.
//!
//! Knows: what was brought to which shard, and when. What has arrived everywhere is not remembered, so that nothing here
//! grows with the number of boards there are, or ever were.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::queue::jetstream::boards::record::{Decision, Recorded};
use crate::types::{BoardName, ShardId};

/// What was brought is given so long to arrive before it is brought again.
const BRING_AGAIN: Duration = Duration::from_secs(5);

/// A decision on its way to the shards.
pub struct OnItsWay {
    /// Where the boards' stream says so.
    pub sequence: u64,
    pub decision: Decision,
    /// Whether a shard that never had the board must hear of its drop too: its definition may still be on its way.
    pub everywhere: bool,
    /// When it was brought to a shard last.
    brought: HashMap<ShardId, Instant>,
}

#[derive(Default)]
pub struct Pending {
    boards: BTreeMap<BoardName, OnItsWay>,
}

impl Pending {
    /// Notes a decision, in place of the one before.
    pub fn note(&mut self, name: &BoardName, recorded: &Recorded, everywhere: bool) {
        let known = self.boards.get_mut(name);
        if let Some(known) = known.filter(|known| known.decision == recorded.decision) {
            // What is under way goes on.
            known.sequence = known.sequence.max(recorded.sequence);
            known.everywhere |= everywhere;
            return;
        }
        let Recorded { sequence, decision } = recorded.clone();
        let on_its_way = OnItsWay { sequence, decision, everywhere, brought: HashMap::new() };
        self.boards.insert(name.clone(), on_its_way);
    }

    pub fn get(&self, name: &BoardName) -> Option<&OnItsWay> {
        self.boards.get(name)
    }

    /// Whether something later than this record is known of the board.
    pub fn knows_later(&self, name: &BoardName, sequence: u64) -> bool {
        self.boards.get(name).is_some_and(|known| known.sequence > sequence)
    }

    /// The stream is read again from its beginning, and may be another one: what it says counts, whatever its sequences.
    pub fn begin_again(&mut self) {
        for on_its_way in self.boards.values_mut() {
            on_its_way.sequence = 0;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&BoardName, &OnItsWay)> {
        self.boards.iter()
    }

    pub fn retain(&mut self, keep: impl Fn(&BoardName, &OnItsWay) -> bool) {
        self.boards.retain(|name, on_its_way| keep(name, on_its_way));
    }

    pub fn note_brought(&mut self, name: &BoardName, shard: ShardId) {
        if let Some(on_its_way) = self.boards.get_mut(name) {
            on_its_way.brought.insert(shard, Instant::now());
        }
    }

    pub fn was_brought_lately(&self, name: &BoardName, shard: ShardId) -> bool {
        let brought = self.boards.get(name).and_then(|on_its_way| on_its_way.brought.get(&shard));
        brought.is_some_and(|when| when.elapsed() < BRING_AGAIN)
    }
}

//! What is decided and has not arrived at every shard yet.
//!
//! Knows: what was brought to which shard, and when. What has arrived everywhere is not remembered, so that nothing here
//! grows with the number of boards there are, or ever were.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::{Duration, Instant};

use crate::queue::nats::boards::record::Recorded;
use crate::state::Incarnation;
use crate::types::{BoardName, ShardId};

/// What was brought is given so long to arrive before it is brought again.
const BRING_AGAIN: Duration = Duration::from_secs(5);

/// A decision on its way to the shards.
pub struct OnItsWay {
    /// Its sequence is 0 until the stream was heard saying it, once it is read again from the beginning.
    pub recorded: Recorded,
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
        if let Some(known) = known.filter(|known| known.recorded.decision == recorded.decision) {
            known.recorded.sequence = known.recorded.sequence.max(recorded.sequence);
            known.everywhere |= everywhere;
            if recorded.number > known.recorded.number {
                known.recorded.number = recorded.number;
                known.brought.clear();
            }
            // What is under way goes on.
            return;
        }
        let (recorded, brought) = (recorded.clone(), HashMap::new());
        self.boards.insert(name.clone(), OnItsWay { recorded, everywhere, brought });
    }

    pub fn is_empty(&self) -> bool {
        self.boards.is_empty()
    }

    pub fn get(&self, name: &BoardName) -> Option<&OnItsWay> {
        self.boards.get(name)
    }

    /// Whether something later than this record is known of the board.
    pub fn knows_later(&self, name: &BoardName, sequence: u64) -> bool {
        self.boards.get(name).is_some_and(|known| known.recorded.sequence > sequence)
    }

    /// The stream is read again from its beginning, and may be another one: what it says counts, whatever its sequences.
    pub fn begin_again(&mut self) {
        for on_its_way in self.boards.values_mut() {
            on_its_way.recorded.sequence = 0;
        }
    }

    /// Some of the boards on their way, by name, from behind one on.
    pub fn names_behind(&self, name: Option<&BoardName>, limit: usize) -> Vec<BoardName> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
        self.boards
            .range::<str, _>((from, Bound::Unbounded))
            .take(limit)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// It has arrived everywhere.
    pub fn remove(&mut self, name: &BoardName) {
        self.boards.remove(name);
    }

    /// Forgets a life that the stream knows nothing of any more.
    pub fn forget(&mut self, name: &BoardName, life: Incarnation) {
        if self.boards.get(name).is_some_and(|known| known.recorded.decision.incarnation == life) {
            self.boards.remove(name);
        }
    }

    pub fn note_brought(&mut self, name: &BoardName, shard: ShardId) {
        if let Some(on_its_way) = self.boards.get_mut(name) {
            on_its_way.brought.insert(shard, Instant::now());
        }
    }

    /// Whether it was brought to a shard before, be it long ago.
    pub fn was_brought(&self, name: &BoardName, shard: ShardId) -> bool {
        self.boards.get(name).is_some_and(|on_its_way| on_its_way.brought.contains_key(&shard))
    }

    pub fn was_brought_lately(&self, name: &BoardName, shard: ShardId) -> bool {
        let brought = self.boards.get(name).and_then(|on_its_way| on_its_way.brought.get(&shard));
        brought.is_some_and(|when| when.elapsed() < BRING_AGAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::nats::boards::record::Decision;
    use crate::state::RecordNumber;

    #[test]
    fn all_that_is_on_its_way_is_looked_at_in_slices_while_some_of_it_arrives() {
        let mut pending = Pending::default();
        for number in 0..300_u64 {
            let name = BoardName::new(&format!("b{number}")).expect("a good name");
            let decision = Decision { incarnation: Incarnation(number), definition: None };
            pending.note(&name, &Recorded { sequence: 1, number: RecordNumber(number), decision }, false);
        }
        let (mut seen, mut slices) = (Vec::new(), 0);
        let mut after = None;
        loop {
            let names = pending.names_behind(after.as_ref(), 128);
            assert!(names.len() <= 128);
            let Some(last) = names.last() else { break };
            after = Some(last.clone());
            names.iter().step_by(2).for_each(|name| pending.remove(name));
            seen.extend(names);
            slices += 1;
        }
        assert_eq!((seen.len(), slices, pending.is_empty()), (300, 3, false));
        assert!(seen.is_sorted_by(|a, b| a < b));
    }
}

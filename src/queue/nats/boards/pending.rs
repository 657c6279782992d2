//! Pending decisions: those that have not arrived at every shard yet.
//!
//! Knows: which decision was delivered to which shard, and when. Decisions that have arrived everywhere are
//! forgotten, changes of boards that exist a minute later, so that nothing here grows with the number of
//! boards.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::{Duration, Instant};

use crate::queue::nats::boards::decision::Record;
use crate::state::Incarnation;
use crate::types::{BoardName, ShardId};

/// How long a delivered decision may take to arrive before it is delivered again.
const REDELIVERY_INTERVAL: Duration = Duration::from_secs(5);
/// How long a change of a board that exists is watched after it was noted. An earlier change that another
/// node delivered late may overtake it on one shard; the later change is delivered again then.
const WATCHED: Duration = Duration::from_secs(60);

/// A decision that a shard may still lack.
pub struct PendingDecision {
    /// Its sequence is 0 after the stream began to be read again, until its record was read.
    pub recorded: Record,
    /// Whether a drop is delivered to shards that never had the board, too: a definition may still be in
    /// their streams.
    pub everywhere: bool,
    /// Whether it ends a life of the board that shards of other nodes may hold. Of those shards, only what
    /// ends a life is waited for.
    pub ends_life: bool,
    noted: Instant,
    /// When it was last delivered to a shard.
    delivered: HashMap<ShardId, Instant>,
}

impl PendingDecision {
    /// Whether it was ever delivered to a shard by this node.
    pub fn was_delivered(&self, shard: ShardId) -> bool {
        self.delivered.contains_key(&shard)
    }

    /// Whether it is kept although it has arrived on every shard.
    pub fn is_watched(&self) -> bool {
        let Record { number, decision, .. } = &self.recorded;
        let changes_a_life = decision.definition.is_some() && number.0 != decision.incarnation.0;
        changes_a_life && self.noted.elapsed() < WATCHED
    }
}

#[derive(Default)]
pub struct Pending {
    boards: BTreeMap<BoardName, PendingDecision>,
}

impl Pending {
    /// Notes a decision, in place of the one before.
    pub fn note(&mut self, name: &BoardName, recorded: &Record, everywhere: bool, ends_life: bool) {
        let known = self.boards.get_mut(name);
        if let Some(known) = known.filter(|known| known.recorded.decision == recorded.decision) {
            known.recorded.sequence = known.recorded.sequence.max(recorded.sequence);
            known.everywhere |= everywhere;
            known.ends_life |= ends_life;
            if recorded.number > known.recorded.number {
                known.recorded.number = recorded.number;
                known.delivered.clear();
            }
            // Deliveries in progress continue.
            return;
        }
        // A life that the decision before has ended may still be held by shards of other nodes. This decision
        // ends it too.
        let ends_life = ends_life || self.boards.get(name).is_some_and(|known| known.ends_life);
        let (recorded, delivered) = (recorded.clone(), HashMap::new());
        let noted = Instant::now();
        self.boards
            .insert(name.clone(), PendingDecision { recorded, everywhere, ends_life, noted, delivered });
    }

    pub fn is_empty(&self) -> bool {
        self.boards.is_empty()
    }

    pub fn get(&self, name: &BoardName) -> Option<&PendingDecision> {
        self.boards.get(name)
    }

    /// Whether something later than this record is known of the board.
    pub fn knows_later(&self, name: &BoardName, sequence: u64) -> bool {
        self.boards.get(name).is_some_and(|known| known.recorded.sequence > sequence)
    }

    /// Called when the stream is read again from the beginning. It may be another stream, so its records
    /// count even if their sequences are lower.
    pub fn begin_again(&mut self) {
        for pending in self.boards.values_mut() {
            pending.recorded.sequence = 0;
        }
    }

    /// Some of the pending boards, by name, after the given one.
    pub fn names_after(&self, name: Option<&BoardName>, limit: usize) -> Vec<BoardName> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
        self.boards
            .range::<str, _>((from, Bound::Unbounded))
            .take(limit)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// Removes a decision that has arrived everywhere.
    pub fn remove(&mut self, name: &BoardName) {
        self.boards.remove(name);
    }

    /// Forgets a life that the stream does not know any more.
    pub fn forget(&mut self, name: &BoardName, life: Incarnation) {
        if self.boards.get(name).is_some_and(|known| known.recorded.decision.incarnation == life) {
            self.boards.remove(name);
        }
    }

    pub fn note_delivered(&mut self, name: &BoardName, shard: ShardId) {
        if let Some(pending) = self.boards.get_mut(name) {
            pending.delivered.insert(shard, Instant::now());
        }
    }

    /// Whether it was ever delivered to a shard.
    pub fn was_delivered(&self, name: &BoardName, shard: ShardId) -> bool {
        self.boards.get(name).is_some_and(|pending| pending.delivered.contains_key(&shard))
    }

    pub fn was_delivered_lately(&self, name: &BoardName, shard: ShardId) -> bool {
        let delivered = self.boards.get(name).and_then(|pending| pending.delivered.get(&shard));
        delivered.is_some_and(|when| when.elapsed() < REDELIVERY_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::board::Definition;
    use crate::queue::nats::boards::decision::Decision;
    use crate::state::RecordNumber;

    #[test]
    fn only_changes_of_boards_that_exist_are_watched() {
        let watched = |number, life, definition: Option<Definition>| {
            let (mut pending, name) = (Pending::default(), BoardName::new("b").expect("a good name"));
            let decision = Decision { incarnation: Incarnation(life), definition: definition.map(Arc::new) };
            pending.note(
                &name,
                &Record { sequence: 1, number: RecordNumber(number), decision },
                false,
                false,
            );
            pending.get(&name).expect("just noted").is_watched()
        };
        assert!(watched(8, 7, Some(Definition::default())));
        assert!(!watched(7, 7, Some(Definition::default())) && !watched(8, 7, None));
    }

    #[test]
    fn all_pending_boards_are_visited_in_slices_while_some_of_them_arrive() {
        let mut pending = Pending::default();
        for number in 0..300_u64 {
            let name = BoardName::new(&format!("b{number}")).expect("a good name");
            let decision = Decision { incarnation: Incarnation(number), definition: None };
            pending.note(
                &name,
                &Record { sequence: 1, number: RecordNumber(number), decision },
                false,
                false,
            );
        }
        let (mut seen, mut slices) = (Vec::new(), 0);
        let mut after = None;
        loop {
            let names = pending.names_after(after.as_ref(), 128);
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

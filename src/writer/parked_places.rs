//! Where jobs are parked, for readers: a read that asks for what was applied up to a sequence has to wait for
//! the jobs of its board that are parked at it or before.
//!
//! Knows: for each board that lines of parked jobs are filed under, the sequence of the first one's first
//! job. A job of the board that is behind another board's job in its member's line is not seen; nor is one
//! that names several boards and waits for another one of them. Looking for those would take memory for each
//! parked job. Must not know: how jobs are parked (`parking`).

use std::collections::BTreeMap;
use std::time::Instant;

use tokio::sync::watch;

use crate::types::{BoardName, Sequence};

/// A board whose lines a batch has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedChange {
    pub board: BoardName,
    /// The lowest sequence that a line of the board had first during the batch, or before it.
    pub lowest: Sequence,
    /// The lowest now; `None`: no line is filed under the board any more.
    pub first: Option<Sequence>,
}

/// The first sequence of each board at which a job waits for it.
pub struct ParkedPlaces(watch::Sender<BTreeMap<BoardName, Sequence>>);

impl Default for ParkedPlaces {
    fn default() -> Self {
        Self(watch::channel(BTreeMap::new()).0)
    }
}

impl ParkedPlaces {
    /// Replaces all that is known.
    pub fn replace(&self, places: BTreeMap<BoardName, Sequence>) {
        self.0.send_replace(places);
    }

    /// Before readers see a batch's sequences: jobs that it parks are known, and none is forgotten yet.
    pub fn begin(&self, changes: &[ParkedChange]) {
        self.change(changes, |places, change| {
            let known = places.get(&change.board);
            if known.is_none_or(|known| change.lowest < *known) {
                places.insert(change.board.clone(), change.lowest);
            }
        });
    }

    /// Once readers see the batch: jobs that it has unparked are forgotten.
    pub fn end(&self, changes: &[ParkedChange]) {
        self.change(changes, |places, change| match change.first {
            Some(first) => drop(places.insert(change.board.clone(), first)),
            None => drop(places.remove(&change.board)),
        });
    }

    fn change(
        &self,
        changes: &[ParkedChange],
        each: impl Fn(&mut BTreeMap<BoardName, Sequence>, &ParkedChange),
    ) {
        if !changes.is_empty() {
            self.0.send_modify(|places| changes.iter().for_each(|change| each(places, change)));
        }
    }

    /// Whether a job from this sequence or before waits for the board.
    #[must_use]
    pub fn holds(&self, board: &BoardName, through: Sequence) -> bool {
        holds(&self.0.borrow(), board, through)
    }

    /// Waits until no job from this sequence or before waits for the board. Returns whether that is so.
    pub async fn wait_until_free(&self, board: &BoardName, through: Sequence, until: Instant) -> bool {
        let mut places = self.0.subscribe();
        let freed = places.wait_for(|places| !holds(places, board, through));
        matches!(tokio::time::timeout_at(until.into(), freed).await, Ok(Ok(_)))
    }
}

fn holds(places: &BTreeMap<BoardName, Sequence>, board: &BoardName, through: Sequence) -> bool {
    places.get(board).is_some_and(|first| *first <= through)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> BoardName {
        BoardName::new(text).expect("a good name")
    }

    fn change(board: &str, lowest: u64, first: Option<u64>) -> ParkedChange {
        ParkedChange { board: name(board), lowest: Sequence(lowest), first: first.map(Sequence) }
    }

    #[test]
    fn a_job_is_parked_from_before_its_sequence_is_seen_until_what_freed_it_is_seen() {
        let places = ParkedPlaces::default();
        let held = |board: &str| {
            let held = (1..20).find(|sequence| places.holds(&name(board), Sequence(*sequence)));
            held.unwrap_or_default()
        };
        assert_eq!(held("a"), 0);
        // One is parked and freed in the same batch, another one only parked.
        let changes = [change("a", 7, None), change("b", 8, Some(8))];
        places.begin(&changes);
        assert_eq!((held("a"), held("b"), held("c")), (7, 8, 0));
        places.end(&changes);
        assert_eq!((held("a"), held("b")), (0, 8));
        let changes = [change("b", 8, Some(12))];
        places.begin(&changes);
        assert_eq!(held("b"), 8, "the one that is freed counts until readers see it");
        places.end(&changes);
        assert_eq!(held("b"), 12);
        places.replace(BTreeMap::new());
        assert_eq!(held("b"), 0);
    }
}

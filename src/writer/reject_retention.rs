//! Retention of a shard's rejects: the newest ones are kept, and all that are not published yet.
//!
//! Knows: the place of every reject, by board, so that the oldest can be deleted without being read or
//! counted. Whoever may write to some boards only must not push out what others are to see: of the board that
//! has the most, the oldest goes first. Must not know: what is rejected and why, or how it is published.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::job::JobPlace;
use crate::types::BoardName;

/// Rejects kept per shard. Others are deleted once they are published; the total count stays.
pub const REJECTS_KEPT: usize = 100_000;
/// Unpublished ones are kept up to this many, which take up to a gigabyte and usually a few hundred MiB. A
/// client that sends a flood of bad jobs while publishing fails must not fill the disk.
const UNPUBLISHED_KEPT: usize = 1_000_000;
/// Rejects deleted at a time.
const REJECTS_PER_DELETE: usize = 1_024;
/// The most that a batch deletes: as many as the largest batches bring, and twice over, so that what was
/// published late is caught up with.
const DELETED_PER_BATCH: usize = 32 * REJECTS_PER_DELETE;

/// Whose share of the kept rejects one takes: its board's. All without one share as one.
type Sharer = Option<BoardName>;

/// Places of a shard's rejects.
#[derive(Debug, Default)]
pub struct RejectRetention {
    /// The oldest first.
    places: BTreeMap<Sharer, VecDeque<JobPlace>>,
    /// How many each has: who has the most is last.
    by_count: BTreeSet<(usize, Sharer)>,
    stored: usize,
}

impl RejectRetention {
    /// Notes a stored reject. Called in the order of places.
    pub fn note(&mut self, place: JobPlace, board: Option<BoardName>) {
        let places = self.places.entry(board.clone()).or_default();
        places.push_back(place);
        let count = places.len();
        self.stored += 1;
        self.by_count.remove(&(count - 1, board.clone()));
        self.by_count.insert((count, board));
    }

    /// The rejects that are to be deleted, if any are.
    ///
    /// # Arguments
    /// `published`: the last published one; `None` where rejects are not published.
    pub fn prune(&mut self, published: Option<JobPlace>) -> Vec<JobPlace> {
        let (mut dropped, mut unpublished) = (Vec::new(), 0_usize);
        while self.stored >= REJECTS_KEPT + REJECTS_PER_DELETE && dropped.len() < DELETED_PER_BATCH {
            for _ in 0..REJECTS_PER_DELETE {
                let Some(oldest) = self.oldest_of_most() else { break };
                if published.is_some_and(|published| oldest > published) {
                    if self.stored < UNPUBLISHED_KEPT {
                        return dropped;
                    }
                    unpublished += 1;
                }
                self.drop_oldest_of_most();
                dropped.push(oldest);
            }
        }
        if unpublished > 0 {
            tracing::error!(
                rejects = unpublished,
                "too many rejects wait to be published; the oldest were deleted without being published"
            );
        }
        dropped
    }

    fn oldest_of_most(&self) -> Option<JobPlace> {
        let (_, board) = self.by_count.last()?;
        self.places.get(board)?.front().copied()
    }

    fn drop_oldest_of_most(&mut self) {
        let Some((count, board)) = self.by_count.pop_last() else { return };
        self.stored -= 1;
        if count == 1 {
            self.places.remove(&board);
            return;
        }
        if let Some(places) = self.places.get_mut(&board) {
            places.pop_front();
            // Seldom, because it may move all of them.
            if places.capacity() / 4 > places.len() {
                places.shrink_to(2 * places.len());
            }
        }
        self.by_count.insert((count - 1, board));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Sequence, count};

    fn noted(many: usize) -> RejectRetention {
        let mut kept = RejectRetention::default();
        (0..many).for_each(|number| kept.note(place(number), None));
        kept
    }

    /// Ten to a message.
    fn place(number: usize) -> JobPlace {
        (Sequence(count(number / 10)), u32::try_from(number % 10).expect("small"))
    }

    fn board(name: &str) -> BoardName {
        BoardName::new(name).expect("a good name")
    }

    #[test]
    fn the_newest_are_kept_by_count() {
        let mut kept = noted(REJECTS_KEPT + REJECTS_PER_DELETE - 1);
        assert_eq!(kept.prune(None), []);
        kept.note(place(REJECTS_KEPT + REJECTS_PER_DELETE - 1), None);
        assert_eq!(kept.prune(None), (0..REJECTS_PER_DELETE).map(place).collect::<Vec<_>>());
        assert_eq!(kept.prune(None), []);
        assert_eq!(noted(REJECTS_KEPT + 3 * REJECTS_PER_DELETE).prune(None).len(), 3 * REJECTS_PER_DELETE);
    }

    #[test]
    fn a_flood_of_some_boards_pushes_out_nothing_of_others() {
        let mut kept = RejectRetention::default();
        let mut number = 0..;
        let mut note = |kept: &mut RejectRetention, of: Option<BoardName>, many: usize| {
            for _ in 0..many {
                kept.note(place(number.next().expect("endless")), of.clone());
            }
        };
        note(&mut kept, Some(board("quiet")), 500);
        note(&mut kept, None, 700);
        for flood in 0..30 {
            note(&mut kept, Some(board(&format!("eu-{}", flood % 10))), 10_000);
            kept.prune(None);
        }
        let of = |kept: &RejectRetention, board: &Option<BoardName>| {
            kept.places.get(board).map_or(0, VecDeque::len)
        };
        assert_eq!((of(&kept, &Some(board("quiet"))), of(&kept, &None)), (500, 700));
        // Those of the flood share what is left, and their newest are there.
        let share = (REJECTS_KEPT - 1_200) / 10;
        for flood in 0..10 {
            let newest = kept.places[&Some(board(&format!("eu-{flood}")))].back().copied();
            assert_eq!(newest, Some(place(1_200 + (20 + flood) * 10_000 + 9_999)));
            let many = of(&kept, &Some(board(&format!("eu-{flood}"))));
            assert!(many.abs_diff(share) <= REJECTS_PER_DELETE, "{many} of {share}");
        }
        assert!(kept.stored < REJECTS_KEPT + REJECTS_PER_DELETE);
        assert_eq!(kept.places.values().map(VecDeque::len).sum::<usize>(), kept.stored);
        assert_eq!(kept.by_count.iter().map(|(many, _)| many).sum::<usize>(), kept.stored);
        // Of boards without end: none is kept for what is gone.
        for many in 0..200_000 {
            note(&mut kept, Some(board(&format!("b{many}"))), 1);
            kept.prune(None);
        }
        assert!(
            kept.places.len() <= REJECTS_KEPT + REJECTS_PER_DELETE
                && kept.places.len() == kept.by_count.len()
        );
    }

    #[test]
    fn unpublished_rejects_are_kept_up_to_the_hard_limit() {
        let mut kept = noted(REJECTS_KEPT + 3 * REJECTS_PER_DELETE);
        assert_eq!(kept.prune(Some((Sequence(0), 0))), [place(0)]);
        assert_eq!(kept.prune(Some(place(2_046))).last(), Some(&place(2_046)));
        assert_eq!(kept.prune(Some(place(2_047))), [place(2_047)]);
        let mut kept = noted(UNPUBLISHED_KEPT + REJECTS_PER_DELETE);
        assert_eq!(kept.prune(Some((Sequence(0), 0))).len(), REJECTS_PER_DELETE + 1);
        assert_eq!(kept.stored, UNPUBLISHED_KEPT - 1);
    }
}

//! Dropped boards, whose members are released bit by bit, and whose memory is freed without the lock.

use crate::state::retired::Retired;
use crate::state::shard::Shard;

/// A small board costs as much to release as so many members.
const COST_OF_A_BOARD: usize = 8;

impl Shard {
    /// Whether members of dropped boards are still to be released.
    pub fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// Releases up to `limit` members of dropped boards, and returns whether there are more. For readers a
    /// board of millions is dropped at once; its members are released a slice at a time, so that no lock is
    /// held for long, and small boards several at a time.
    pub fn release_retired(&mut self, limit: usize) -> bool {
        let mut left = limit;
        while left > 0
            && let Some(mut first) = self.retired.first_entry()
        {
            let (tree, (handles, more)) = (*first.key(), first.get_mut().next_slice(left));
            left = left.saturating_sub(handles.len().max(COST_OF_A_BOARD));
            if !more {
                self.released.push(*first.remove());
            }
            for handle in handles {
                self.members.remove_tree(handle, tree);
            }
        }
        !self.retired.is_empty()
    }

    /// Checks that every handle is accounted for; see `Members::check`. Call it once all members of dropped
    /// boards are released.
    ///
    /// # Errors
    /// The first thing found wrong, in words.
    pub fn check_handles(&self) -> Result<(), String> {
        self.members.check(self.trees().flat_map(|(id, tree)| tree.handles().map(move |handle| (id, handle))))
    }

    /// The memory of dropped boards, for the caller to free without the lock: half a second for ten million
    /// entries.
    pub fn take_released(&mut self) -> Vec<Retired> {
        std::mem::take(&mut self.released)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::COST_OF_A_BOARD;
    use crate::board::Definition;
    use crate::state::{BoardEvent, Incarnation, Shard, Step};
    use crate::types::{BoardName, ShardId};

    #[test]
    fn boards_that_are_dropped_together_make_nothing_large_grow_and_are_released_several_at_a_time() {
        let (mut shard, boards) = (Shard::new(ShardId(0)), 20_000);
        let (incarnation, number) = (Incarnation::default(), None);
        let name = |board: u32| {
            BoardName::new(&format!("day{board}")).expect("a good name").with_instance("2026-11-23")
        };
        let mut apply = |event: &dyn Fn(BoardName) -> BoardEvent| {
            let events = (0..boards).map(|board| event(name(board))).collect();
            crate::allocated::count(|| shard.apply(&Step { events, ..Step::default() })).1.largest
        };
        let definition = Arc::new(Definition::default());
        apply(&|board| BoardEvent::Define {
            board,
            incarnation,
            number,
            definition: Arc::clone(&definition),
        });
        let largest = apply(&|board| BoardEvent::Drop { board, incarnation, number });
        assert!(largest <= 65_536, "{largest} bytes at once");

        let mut released = 0;
        while shard.has_retired() {
            shard.release_retired(64);
            let at_once = shard.take_released().len();
            assert!((1..=64 / COST_OF_A_BOARD).contains(&at_once), "{at_once}");
            released += at_once;
        }
        assert_eq!(released, 20_000);
    }
}

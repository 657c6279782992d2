//! Dropped boards, whose members are released bit by bit, and whose memory is freed without the lock.

use crate::state::retired::Retired;
use crate::state::shard::Shard;

impl Shard {
    /// Whether members of dropped boards are still to be released.
    #[must_use]
    pub fn has_retired(&self) -> bool {
        !self.retired.is_empty()
    }

    /// Releases up to `limit` members of dropped boards, and returns whether there are more. For readers a
    /// board of millions is dropped at once; its members are released a slice at a time, so that no lock is
    /// held for long.
    pub fn release_retired(&mut self, limit: usize) -> bool {
        if let Some(retired) = self.retired.front_mut() {
            let (tree, (handles, more)) = (retired.id(), retired.next_slice(limit));
            for handle in handles {
                self.members.remove_tree(handle, tree);
            }
            if !more {
                self.released.extend(self.retired.pop_front());
            }
        }
        !self.retired.is_empty()
    }

    /// Checks that every handle is accounted for; see [`Members::check`]. Call it once all members of dropped
    /// boards are released.
    ///
    /// # Errors
    /// The first thing found wrong, in words.
    pub fn check_handles(&self) -> Result<(), String> {
        self.members.check(self.trees().flat_map(|(id, tree)| tree.handles().map(move |handle| (id, handle))))
    }

    /// The memory of dropped boards, for the caller to free without the lock: half a second for ten million
    /// entries.
    #[must_use]
    pub fn take_released(&mut self) -> Vec<Retired> {
        std::mem::take(&mut self.released)
    }
}

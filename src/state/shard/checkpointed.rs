//! What a checkpoint takes of a shard: boards as they were when it began, and which trees are gone.

use crate::state::entry::TreeId;
use crate::state::joining::{Joined, Joining};
use crate::state::shard::Shard;

impl Shard {
    /// The trees dropped since the last call: what the checkpoint that begins now removes from the disk.
    pub fn take_dropped_trees(&mut self) -> Vec<TreeId> {
        self.first_tree_not_on_disk = self.next_tree;
        std::mem::take(&mut self.dropped_trees)
    }

    /// Puts trees back whose removal failed: they are still on disk.
    pub fn put_back_dropped_trees(&mut self, trees: impl IntoIterator<Item = TreeId>) {
        self.dropped_trees.extend(trees);
    }

    /// Begins a checkpoint of all present boards. [`Shard::join_some`] joins them.
    pub fn begin_joining(&mut self) {
        self.joining = Some(Joining::new(self.next_tree()));
    }

    /// Joins up to `limit` boards to the checkpoint, each as it was when that began. Returns whether there
    /// are more.
    pub fn join_some(&mut self, limit: usize) -> (Vec<Joined>, bool) {
        let Some(mut joining) = self.joining.take() else { return (Vec::new(), false) };
        let mut joined = Vec::new();
        if joining.all_joined() {
            joined.extend(std::iter::from_fn(|| joining.take_early()).take(limit));
        } else {
            let mut asked = 0;
            let mut last = None;
            for (name, board) in self.boards.after(joining.through()).take(limit) {
                asked += 1;
                last = Some(name);
                if joining.has_yet_to_join(name, board.all)
                    && let Some(tree) = self.trees.get_mut(&board.all)
                {
                    let before = tree.bytes();
                    joined.push(Joined::of(board, tree));
                    self.tree_bytes = self.tree_bytes + tree.bytes() - before;
                }
            }
            if let Some(name) = last {
                joining.note_through(name);
            }
            if asked < limit {
                joining.note_all_joined();
            }
        }
        let more = !joining.all_joined() || joining.bytes() > 0;
        self.joining = more.then_some(joining);
        (joined, more)
    }

    /// Ends the joining of a failed checkpoint. Returns the boards that joined early and were not handed out
    /// yet.
    pub fn stop_joining(&mut self) -> impl Iterator<Item = Joined> + use<> {
        self.joining.take().into_iter().flat_map(Joining::into_early)
    }

    /// Joins a board that is about to change to the checkpoint that has begun, if it has not joined yet.
    pub(super) fn join_before_change(&mut self, id: TreeId) {
        let Some(joining) = &mut self.joining else { return };
        let Some(tree) = self.trees.get_mut(&id) else { return };
        if joining.has_yet_to_join(&tree.board, id)
            && let Some(board) = self.boards.get(tree.board.as_str())
        {
            let before = tree.bytes();
            joining.note_early(Joined::of(board, tree));
            self.tree_bytes = self.tree_bytes + tree.bytes() - before;
        }
    }

    /// Marks everything dirty, so that the next checkpoint writes all of it: for a rebuild.
    pub fn mark_all_dirty(&mut self) {
        let handles = self.members.handle_space();
        self.members.mark_all_dirty();
        self.trees.values_mut().for_each(|tree| tree.mark_all_dirty(handles));
        self.count_tree_bytes();
    }
}

//! Boards as the batch sees them: the shard's, with those that it has defined and without those that it has
//! dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::board::Definition;
use crate::state::{BoardEvent, Dropped, Incarnation, RecordNumber, Shard, TreeId};
use crate::tree::Handle;
use crate::types::BoardName;
use crate::writer::plan::Batch;
use crate::writer::registry::Known;

/// Of the trees that know a member, so many are looked at before others may be let in.
const TREES_BETWEEN_LOOKS: usize = 16;

/// A board as the batch sees it.
#[derive(Clone, Copy)]
pub(super) struct BatchBoard<'a> {
    pub(super) definition: &'a Arc<Definition>,
    pub(super) tree: TreeId,
    pub(super) incarnation: Incarnation,
}

/// A board that the batch defined.
pub(super) struct DefinedBoard {
    definition: Arc<Definition>,
    tree: TreeId,
    incarnation: Incarnation,
}

/// Boards that a batch defined (`Some`) or dropped (`None`).
pub(super) type ChangedBoards = BTreeMap<BoardName, Option<DefinedBoard>>;

/// A board of the shard, unless the batch defined or dropped it.
pub(super) fn board_in<'a>(
    changed: &'a ChangedBoards,
    shard: &'a Shard,
    name: &BoardName,
) -> Option<BatchBoard<'a>> {
    match changed.get(name) {
        Some(board) => {
            let DefinedBoard { definition, tree, incarnation } = board.as_ref()?;
            Some(BatchBoard { definition, tree: *tree, incarnation: *incarnation })
        }
        None => shard.board(name.as_str()).map(|board| BatchBoard {
            definition: &board.definition,
            tree: board.all,
            incarnation: board.incarnation,
        }),
    }
}

impl Batch<'_> {
    pub(super) fn board(&self, name: &BoardName) -> Option<BatchBoard<'_>> {
        board_in(&self.boards, &self.shard, name)
    }

    /// The life that a board has begun elsewhere on this node, while the shard is still to hear of it. A
    /// client that has seen the board empty must not write into the old life, with which the write would go.
    /// Where the queue says what boards are, it says so in its turn.
    pub(super) fn begun_anew(&self, name: &BoardName) -> Option<Known> {
        let registry = self.planner.registry;
        if self.parking.is_some() || !registry.has_begun_anew() {
            return None;
        }
        registry.begun_anew(name.as_str(), self.board(name)?.incarnation)
    }

    /// The boards that know a member, by name: of those that did before the batch and those where the batch
    /// changed something of it, the ones that do now. Takes no longer for boards that never heard of the
    /// member. Lets others in.
    pub(super) fn boards_of(&mut self, handle: Handle) -> Vec<BoardName> {
        let (changed_of, by_entry) = (&mut self.changed_of, &self.by_entry);
        // As many as the batch has changes, and as many as the member has boards: neither is for a hold of
        // the lock.
        let changed: Vec<TreeId> = self.shard.aside(|| {
            let changed = changed_of
                .get_or_insert_with(|| by_entry.keys().map(|(tree, handle)| (*handle, *tree)).collect());
            let changed = changed.range((handle, TreeId(0))..=(handle, TreeId(u32::MAX)));
            changed.map(|(_, tree)| *tree).collect()
        });
        let (mut names, mut behind) = (Vec::new(), None);
        loop {
            // Trees of dropped boards count as well: there may be as many.
            let before = self.shard.members.trees_behind(handle, behind).take(TREES_BETWEEN_LOOKS);
            let before: Vec<TreeId> = before.collect();
            let Some(last) = before.last() else { break };
            behind = Some(*last);
            names.extend(before.iter().filter_map(|tree| self.knows(*tree, handle)));
            self.shard.let_others_in();
        }
        for changed in changed.chunks(TREES_BETWEEN_LOOKS) {
            names.extend(changed.iter().filter_map(|tree| self.knows(*tree, handle)));
            self.shard.let_others_in();
        }
        self.shard.aside(|| {
            names.sort();
            names.dedup();
        });
        names
    }

    /// The name of a tree's board, if it is there and knows the member.
    fn knows(&self, tree: TreeId, handle: Handle) -> Option<BoardName> {
        let known = self.shard.tree(tree).map(|window| &window.board);
        let name = known.or_else(|| self.new_trees.get(&tree))?;
        // Another life of the name has another tree.
        let is_it = self.board(name).is_some_and(|board| board.tree == tree);
        (is_it && self.entry(tree, handle).is_some()).then(|| name.clone())
    }

    pub(super) fn define(
        &mut self,
        name: &BoardName,
        incarnation: Incarnation,
        number: Option<RecordNumber>,
        definition: Arc<Definition>,
    ) -> TreeId {
        let known = self.board(name).map(|board| (board.incarnation, board.tree));
        let tree = match known {
            Some((known, tree)) if known == incarnation => tree,
            other => {
                // Another life of the board: it was cleared, or its drop never came this far.
                match other {
                    Some((_, tree)) => self.forget_tree(tree),
                    None => self.board_count += 1,
                }
                let tree = TreeId(self.next_tree);
                self.next_tree += 1;
                self.new_trees.insert(tree, name.clone());
                tree
            }
        };
        let board = DefinedBoard { definition: Arc::clone(&definition), tree, incarnation };
        self.put_event(BoardEvent::Define { board: name.clone(), incarnation, number, definition });
        self.boards.insert(name.clone(), Some(board));
        if let Some(parking) = &mut self.parking {
            parking.note_defined(name);
        }
        tree
    }

    /// Whether a life of a board came to its end, or was replaced by the next one.
    pub(super) fn is_over(&self, name: &BoardName, life: Incarnation) -> bool {
        match self.board(name) {
            Some(board) => board.incarnation > life,
            None => self.dropped().is_over(name.as_str(), life),
        }
    }

    /// Whether a definition would create a board that was dropped since, for all that is remembered. If it is
    /// not so, it comes again with a later number.
    pub(super) fn may_be_over(&self, name: &BoardName, number: Option<RecordNumber>) -> bool {
        self.board(name).is_none() && self.dropped().is_forgotten(number)
    }

    fn dropped(&self) -> &Dropped {
        self.dropped.as_ref().unwrap_or(self.shard.dropped())
    }

    pub(super) fn drop_board(
        &mut self,
        name: BoardName,
        incarnation: Incarnation,
        number: Option<RecordNumber>,
    ) {
        if let Some(BatchBoard { tree, incarnation: known, .. }) = self.board(&name)
            && known <= incarnation
        {
            self.forget_tree(tree);
            self.boards.insert(name.clone(), None);
            self.board_count -= 1;
            if let Some(parking) = &mut self.parking {
                parking.note_dropped(&name);
            }
            self.note_board_count();
        }
        // A copy of some thousand names, a fifth of a millisecond: only in batches that drop a board.
        let dropped = self.dropped.get_or_insert_with(|| self.shard.dropped().clone());
        dropped.note(name.clone(), incarnation, number);
        self.put_event(BoardEvent::Drop { board: name, incarnation, number });
    }

    /// The metadata of a tree goes with it, also what this very batch brought.
    fn forget_tree(&mut self, tree: TreeId) {
        self.dropped_trees.push(tree);
        // Of its own alone: a batch of many drops may have brought much metadata of other trees.
        let of_tree = self.metadata.range((tree, Handle(0))..=(tree, Handle(u32::MAX)));
        let of_tree: Vec<(TreeId, Handle)> = of_tree.map(|(entry, _)| *entry).collect();
        for entry in of_tree {
            self.metadata.remove(&entry);
        }
    }

    /// Events come before changes, in a step and in the delta. The definition of a new board may: nothing
    /// refers to a board before it. What ends a life may: it is mostly a message of its own, and ends the
    /// step before it; and what else the step says of that life is gone with it.
    fn put_event(&mut self, event: BoardEvent) {
        self.events.push(event.clone());
        self.step.events.push(event);
    }
}

//! Boards as the batch sees them: the shard's, plus those that the batch has defined, without those that it
//! has dropped.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::board::Definition;
use crate::state::{BoardEvent, Dropped, Incarnation, RecordNumber, Shard, TreeId, WindowTree};
use crate::tree::Handle;
use crate::types::BoardName;
use crate::window::MovementPart;
use crate::writer::plan::Batch;
use crate::writer::registered::RegisteredBoard;

/// Trees of a member that are looked at before the lock is yielded.
const TREES_PER_YIELD: usize = 16;

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

    /// The next incarnation of a board, if it has begun on this node and not yet reached this shard. A client
    /// that has seen the board empty must not write into the old incarnation, with which its write would
    /// vanish. `None` where definitions come through the queue: there the order of messages decides.
    pub(super) fn next_incarnation(&self, name: &BoardName) -> Option<RegisteredBoard> {
        let registry = self.planner.registry;
        if self.parking.is_some() || !registry.has_next_incarnation() {
            return None;
        }
        registry.next_incarnation(name.as_str(), self.board(name)?.incarnation)
    }

    /// The boards that hold an entry of a member, by name: candidates are the member's boards before the
    /// batch, and those where the batch changed its entry. Costs nothing for other boards. Yields the lock.
    pub(super) fn boards_of(&mut self, handle: Handle) -> Vec<BoardName> {
        let (changed_by_member, net_change_index) = (&mut self.changed_by_member, &self.net_change_index);
        // This takes time in proportion to the batch's changes and the member's boards, so the lock is
        // released for it.
        let changed: Vec<TreeId> = self.shard.unlocked(|| {
            let changed = changed_by_member.get_or_insert_with(|| {
                net_change_index.keys().map(|(tree, handle)| (*handle, *tree)).collect()
            });
            let changed = changed.range((handle, TreeId(0))..=(handle, TreeId(u32::MAX)));
            changed.map(|(_, tree)| *tree).collect()
        });
        let (mut names, mut last_tree) = (Vec::new(), None);
        loop {
            // Trees of dropped boards are counted as well, as there may be many.
            let before = self.shard.members.trees_after(handle, last_tree).take(TREES_PER_YIELD);
            let before: Vec<TreeId> = before.collect();
            let Some(last) = before.last() else { break };
            last_tree = Some(*last);
            names.extend(before.iter().filter_map(|tree| self.board_of_entry(*tree, handle)));
            self.shard.yield_if_due();
        }
        for changed in changed.chunks(TREES_PER_YIELD) {
            names.extend(changed.iter().filter_map(|tree| self.board_of_entry(*tree, handle)));
            self.shard.yield_if_due();
        }
        self.shard.unlocked(|| {
            names.sort();
            names.dedup();
        });
        names
    }

    /// The same of one board and its instances. Costs nothing for the member's other boards, of which it may
    /// be on a hundred thousand. Yields the lock.
    pub(super) fn rankings_on(&mut self, board: &BoardName, handle: Handle) -> Vec<BoardName> {
        let mut names = self.instances_of(board);
        names.push(board.clone());
        names.sort();
        let mut index = 0;
        names.retain(|name| {
            index += 1;
            if index % TREES_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            let tree = self.board(name).map(|known| known.tree);
            MovementPart::of_name_on_shards(name).is_none()
                && tree.is_some_and(|tree| self.entry(tree, handle).is_some())
        });
        names
    }

    /// The name of a tree's board, if it exists and holds an entry of the member. What is kept for movement
    /// is none: no job is about it.
    fn board_of_entry(&self, tree: TreeId, handle: Handle) -> Option<BoardName> {
        let known = self.shard.tree(tree).map(|window| &window.board);
        let name = known.or_else(|| self.new_trees.get(&tree))?;
        if MovementPart::of_name_on_shards(name).is_some() {
            return None;
        }
        // Another incarnation of the name has another tree.
        let is_current_incarnation = self.board(name).is_some_and(|board| board.tree == tree);
        (is_current_incarnation && self.entry(tree, handle).is_some()).then(|| name.clone())
    }

    /// The definition's event, with the board's instances as they follow from it.
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
                // Another incarnation of the board: it was cleared, or its drop never reached this shard.
                match other {
                    Some((_, tree)) => {
                        self.forget_instances(name);
                        self.forget_tree(tree);
                    }
                    None => self.board_count += usize::from(!name.is_instance() && !name.is_service()),
                }
                let tree = TreeId(self.next_tree);
                self.next_tree += 1;
                self.new_trees.insert(tree, name.clone());
                tree
            }
        };
        self.may_be_read_only |= definition.read_only.is_some();
        let board = DefinedBoard { definition: Arc::clone(&definition), tree, incarnation };
        self.put_event(BoardEvent::Define { board: name.clone(), incarnation, number, definition });
        self.boards.insert(name.clone(), Some(board));
        self.note_drops_due(name);
        self.note_early(name);
        if let Some(parking) = self.parking.as_mut().filter(|_| !name.is_instance()) {
            parking.note_defined(name);
        }
        tree
    }

    /// The instances of a board that jobs have entered, apart from `all`.
    pub(super) fn instances_of(&self, board: &BoardName) -> Vec<BoardName> {
        let on_shard = self.shard.instances_of(board).map(|(name, _)| name);
        let on_shard = on_shard.filter(|name| !self.boards.contains_key(*name));
        let after = (Bound::Excluded(board.as_str()), Bound::Unbounded);
        let changed = self.boards.range::<str, _>(after);
        let changed = changed.take_while(|(name, _)| name.is_instance() && name.split().0 == board.as_str());
        let new = changed.filter_map(|(name, known)| known.as_ref().map(|_| name));
        on_shard.chain(new).cloned().collect()
    }

    /// Drops the instances of a board that ends. The event of the board's end ends them on the shard.
    fn forget_instances(&mut self, board: &BoardName) {
        for (index, name) in self.instances_of(board).into_iter().enumerate() {
            if index.is_multiple_of(TREES_PER_YIELD) {
                self.shard.yield_if_due();
            }
            if let Some(tree) = self.board(&name).map(|instance| instance.tree) {
                self.forget_tree(tree);
            }
            self.boards.insert(name, None);
        }
    }

    /// Whether an incarnation of a board was dropped, or replaced by a later one.
    pub(super) fn has_ended(&self, name: &BoardName, life: Incarnation) -> bool {
        match self.board(name) {
            Some(board) => board.incarnation > life,
            None => self.dropped().has_ended(name.as_str(), life),
        }
    }

    /// Whether a definition may be older than a drop of its board that the shard has forgotten. If the board
    /// does exist, its definition comes again with a later number.
    pub(super) fn may_have_ended(&self, name: &BoardName, number: Option<RecordNumber>) -> bool {
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
            self.forget_instances(&name);
            self.forget_tree(tree);
            self.boards.insert(name.clone(), None);
            self.note_drops_due(&name);
            if !name.is_instance() {
                self.board_count -= 1;
                if let Some(parking) = &mut self.parking {
                    parking.note_dropped(&name);
                }
                self.note_board_count();
            }
        }
        if name.is_instance() {
            // No late definition can bring it back: no message defines one.
            self.put_event(BoardEvent::Drop { board: name, incarnation, number });
            return;
        }
        // This copies some thousand names, in a fifth of a millisecond: only in batches that drop a board.
        let dropped = self.dropped.get_or_insert_with(|| self.shard.dropped().clone());
        dropped.note(name.clone(), incarnation, number);
        self.put_event(BoardEvent::Drop { board: name, incarnation, number });
    }

    /// Drops a tree, with its metadata, including what this batch has set.
    fn forget_tree(&mut self, tree: TreeId) {
        // A range that is deleted costs every later look-up of metadata, until RocksDB has merged it away: a
        // day of 100,000 boards ends at one moment.
        if self.shard.tree(tree).is_some_and(WindowTree::has_metadata) {
            self.dropped_trees.push(tree);
        }
        // Only the tree's own range is searched: the batch may hold much metadata of other trees.
        let of_tree = self.metadata.range((tree, Handle(0))..=(tree, Handle(u32::MAX)));
        let of_tree: Vec<(TreeId, Handle)> = of_tree.map(|(entry, _)| *entry).collect();
        for entry in of_tree {
            self.metadata.remove(&entry);
        }
    }

    /// In a step and in the delta, events come before changes. That is correct for the definition of a new
    /// board, as nothing refers to the board before it. It is correct for the end of an incarnation: a
    /// command closes the previous step first, and other changes of that incarnation in the step vanish with
    /// it.
    fn put_event(&mut self, event: BoardEvent) {
        self.plain_board = None;
        self.hash_event(&event);
        self.events.push(event.clone());
        self.step.events.push(event);
    }
}

//! A checkpoint that has begun: boards join it one after the other, each as it was when the checkpoint began.
//!
//! A checkpoint is of one moment, but copying the state of 100,000 boards takes longer than the lock may be
//! held. So beginning one does nothing but note the moment. Afterwards boards join it in the order of their
//! names, some under each hold of the lock. A board that is about to change or to be dropped joins right
//! before that. Boards that are defined later are not in the checkpoint.
//!
//! Knows: which boards have joined. Must not know: how the checkpoint writes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::board::Definition;
use crate::state::boards::Board;
use crate::state::dropped::Incarnation;
use crate::state::entry::TreeId;
use crate::state::window_tree::{DirtyEntries, WindowTree};
use crate::types::BoardName;

/// A board as it was when the checkpoint began.
#[derive(Debug)]
pub struct Joined {
    pub name: BoardName,
    pub incarnation: Incarnation,
    pub definition: Arc<Definition>,
    pub tree: TreeId,
    /// How many entries it listed.
    pub entries: u64,
    /// What the checkpoint owes the disk for it, beside pages that its tree captures from now on. `None`:
    /// nothing at all.
    pub due: Option<Box<DirtyEntries>>,
}

impl Joined {
    pub(super) fn of(board: &Board, tree: &mut WindowTree) -> Self {
        Self {
            name: tree.board.clone(),
            incarnation: board.incarnation,
            definition: Arc::clone(&board.definition),
            tree: board.all,
            entries: tree.total(),
            due: tree.begin_checkpoint(),
        }
    }

    /// Memory held, itself included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.due.as_deref().map_or(0, DirtyEntries::bytes)
    }
}

pub(super) struct Joining {
    /// Trees from this number on were created after the checkpoint began.
    first_new_tree: TreeId,
    /// Boards up to this name have joined.
    through: Option<BoardName>,
    /// All boards have joined.
    all_joined: bool,
    /// Boards that joined early because they changed.
    early: BTreeMap<TreeId, Joined>,
    early_bytes: usize,
}

impl Joining {
    pub(super) fn new(first_new_tree: TreeId) -> Self {
        Self { first_new_tree, through: None, all_joined: false, early: BTreeMap::new(), early_bytes: 0 }
    }

    /// Whether a board belongs to the checkpoint and has not joined it.
    pub(super) fn has_yet_to_join(&self, board: &BoardName, tree: TreeId) -> bool {
        !self.all_joined
            && tree < self.first_new_tree
            && self.through.as_ref().is_none_or(|through| board > through)
            && !self.early.contains_key(&tree)
    }

    pub(super) fn note_early(&mut self, joined: Joined) {
        self.early_bytes += joined.bytes();
        self.early.insert(joined.tree, joined);
    }

    /// The board after which to continue; `None` at the first.
    pub(super) fn through(&self) -> Option<&BoardName> {
        self.through.as_ref()
    }

    /// Notes that boards up to this one have joined.
    pub(super) fn note_through(&mut self, board: &BoardName) {
        self.through = Some(board.clone());
    }

    pub(super) fn note_all_joined(&mut self) {
        self.all_joined = true;
    }

    pub(super) fn all_joined(&self) -> bool {
        self.all_joined
    }

    pub(super) fn take_early(&mut self) -> Option<Joined> {
        let (_, joined) = self.early.pop_first()?;
        self.early_bytes -= joined.bytes();
        Some(joined)
    }

    /// Boards that joined early, to be dropped without the lock.
    pub(super) fn into_early(self) -> impl Iterator<Item = Joined> {
        self.early.into_values()
    }

    /// Memory held by boards that joined early.
    pub(super) fn bytes(&self) -> usize {
        self.early_bytes
    }
}

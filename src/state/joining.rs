//! A checkpoint that has begun: boards join it one after the other, each as it was when the checkpoint began.
//!
//! A checkpoint is of one moment, and telling it of 100,000 boards takes longer than anybody may be kept
//! waiting. So at that moment nothing is done. Boards join it by name, some at a time; one that is about to
//! change, or to be dropped, before its turn joins right before. Boards that come later have no part in it.
//!
//! Knows: who has joined. Must not know: what becomes of what they told.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::board::Definition;
use crate::state::boards::Board;
use crate::state::entry::TreeId;
use crate::state::incarnation::Incarnation;
use crate::state::window_tree::{DirtyEntries, WindowTree};
use crate::types::BoardName;

/// A board as it was when the checkpoint began.
#[derive(Debug)]
pub struct Joined {
    pub name: BoardName,
    pub incarnation: Incarnation,
    pub definition: Arc<Definition>,
    pub tree: TreeId,
    /// How many it listed.
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
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.due.as_deref().map_or(0, DirtyEntries::bytes)
    }
}

pub(super) struct Joining {
    /// Trees from this one on came after the checkpoint began.
    past: TreeId,
    /// Boards up to this name had their turn.
    through: Option<BoardName>,
    /// All had their turn.
    all_asked: bool,
    /// Those who joined before their turn: no more than changed meanwhile.
    early: BTreeMap<TreeId, Joined>,
    early_bytes: usize,
}

impl Joining {
    pub(super) fn new(past: TreeId) -> Self {
        Self { past, through: None, all_asked: false, early: BTreeMap::new(), early_bytes: 0 }
    }

    /// Whether a board has a part in the checkpoint and has not joined it.
    pub(super) fn awaits(&self, board: &BoardName, tree: TreeId) -> bool {
        !self.all_asked
            && tree < self.past
            && self.through.as_ref().is_none_or(|through| board > through)
            && !self.early.contains_key(&tree)
    }

    pub(super) fn note_early(&mut self, joined: Joined) {
        self.early_bytes += joined.bytes();
        self.early.insert(joined.tree, joined);
    }

    /// Behind which board to go on; `None` from the first one on.
    pub(super) fn through(&self) -> Option<&BoardName> {
        self.through.as_ref()
    }

    /// Boards up to this one had their turn.
    pub(super) fn note_through(&mut self, board: &BoardName) {
        self.through = Some(board.clone());
    }

    pub(super) fn note_all_asked(&mut self) {
        self.all_asked = true;
    }

    pub(super) fn all_asked(&self) -> bool {
        self.all_asked
    }

    pub(super) fn take_early(&mut self) -> Option<Joined> {
        let (_, joined) = self.early.pop_first()?;
        self.early_bytes -= joined.bytes();
        Some(joined)
    }

    /// Those who joined before their turn, for whoever has time.
    pub(super) fn into_early(self) -> impl Iterator<Item = Joined> {
        self.early.into_values()
    }

    /// Memory held by those who joined early.
    pub(super) fn bytes(&self) -> usize {
        self.early_bytes
    }
}

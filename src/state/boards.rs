//! A shard's boards by name, 76 bytes each beside the name.
//!
//! Knows only the numbers of their trees. Must not know the trees.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::board::Definition;
use crate::state::definitions::Definitions;
use crate::state::entry::TreeId;
use crate::state::incarnation::Incarnation;
use crate::types::BoardName;

/// A board as this shard knows it.
#[derive(Debug, Clone)]
pub struct Board {
    pub definition: Arc<Definition>,
    pub incarnation: Incarnation,
    /// The tree of the `all` window, the only window so far.
    pub all: TreeId,
}

#[derive(Default)]
pub(super) struct BoardMap {
    by_name: BTreeSet<NamedBoard>,
    definitions: Definitions,
}

/// A board with its name. Boxed, because nodes of a set that is filled in order stay half empty, which
/// doubles the cost of every byte in them.
struct NamedBoard(Box<(BoardName, Board)>);

impl BoardMap {
    pub(super) fn of(boards: BTreeMap<BoardName, Board>) -> Self {
        let mut definitions = Definitions::default();
        let named = boards.into_iter().map(|(name, board)| {
            let definition = definitions.share(&board.definition);
            NamedBoard(Box::new((name, Board { definition, ..board })))
        });
        let by_name = named.collect();
        Self { by_name, definitions }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Board> {
        self.by_name.get(name).map(|named| &named.0.1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&BoardName, &Board)> {
        self.after(None)
    }

    /// Boards whose names come after this one, or all.
    pub(super) fn after(&self, name: Option<&BoardName>) -> impl Iterator<Item = (&BoardName, &Board)> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
        let named = self.by_name.range::<str, _>((from, Bound::Unbounded));
        named.map(|named| (&named.0.0, &named.0.1))
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Adds a board, or replaces the one of that name.
    pub(super) fn insert(&mut self, name: BoardName, board: Board) {
        self.by_name.replace(NamedBoard(Box::new((name, board))));
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Board> {
        self.by_name.take(name).map(|named| named.0.1)
    }

    /// The shared copy of an equal definition.
    pub(super) fn share(&mut self, definition: &Arc<Definition>) -> Arc<Definition> {
        self.definitions.share(definition)
    }
}

impl Borrow<str> for NamedBoard {
    fn borrow(&self) -> &str {
        self.0.0.as_str()
    }
}

impl PartialEq for NamedBoard {
    fn eq(&self, other: &Self) -> bool {
        self.0.0 == other.0.0
    }
}

impl Eq for NamedBoard {}

impl PartialOrd for NamedBoard {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NamedBoard {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.0.cmp(&other.0.0)
    }
}

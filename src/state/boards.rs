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
use crate::state::dropped::Incarnation;
use crate::state::entry::TreeId;
use crate::types::{BoardName, INSTANCE_MARK};

/// Sorts after the mark in an instance's name, and before everything that a board's name may have.
const AFTER_INSTANCE_MARK: char = '$';

/// A board as this shard knows it.
#[derive(Debug, Clone)]
pub struct Board {
    pub definition: Arc<Definition>,
    pub incarnation: Incarnation,
    /// The tree of the board's `all` window, or of the instance.
    pub all: TreeId,
}

/// Boards, and instances of their other windows, which are kept like boards with names of their own; see
/// [`BoardName::with_instance`].
#[derive(Default)]
pub(super) struct BoardMap {
    by_name: BTreeSet<NamedBoard>,
    instances: usize,
    /// How many boards are read-only, the service included.
    read_only: usize,
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
        let by_name: BTreeSet<NamedBoard> = named.collect();
        let instances = by_name.iter().filter(|named| named.0.0.is_instance()).count();
        let read_only = by_name.iter().filter(|named| named.is_read_only()).count();
        Self { by_name, instances, read_only, definitions }
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

    /// Boards whose names come after this one, or all, without instances. Skips the instances of a board at
    /// once: there may be thousands.
    pub(super) fn boards_after(
        &self,
        name: Option<&BoardName>,
    ) -> impl Iterator<Item = (&BoardName, &Board)> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.as_str()));
        let mut named = self.by_name.range::<str, _>((from, Bound::Unbounded));
        std::iter::from_fn(move || {
            loop {
                let (name, board) = &*named.next()?.0;
                if !name.is_instance() {
                    return Some((name, board));
                }
                // A board may have that name.
                let past = format!("{}{AFTER_INSTANCE_MARK}", name.split().0);
                named = self.by_name.range::<str, _>((Bound::Included(past.as_str()), Bound::Unbounded));
            }
        })
    }

    /// The instances of a board, apart from `all`, by name.
    pub(super) fn instances_of(&self, board: &BoardName) -> impl Iterator<Item = (&BoardName, &Board)> {
        // Names of other boards may come between a board's and those of its instances.
        let from = format!("{board}{INSTANCE_MARK}");
        let named = self.by_name.range::<str, _>((Bound::Included(from.as_str()), Bound::Unbounded));
        named
            .map(|named| (&named.0.0, &named.0.1))
            .take_while(move |(name, _)| name.is_instance() && name.split().0 == board.as_str())
    }

    /// How many boards there are, not counting instances. The service is none.
    pub(super) fn board_count(&self) -> usize {
        let service = usize::from(self.get(BoardName::service().as_str()).is_some());
        self.by_name.len() - self.instances - service
    }

    /// How many boards are read-only, the service included.
    pub(super) fn read_only_count(&self) -> usize {
        self.read_only
    }

    pub(super) fn instance_count(&self) -> usize {
        self.instances
    }

    /// Adds a board, or replaces the one of that name.
    pub(super) fn insert(&mut self, name: BoardName, board: Board) {
        let is_instance = name.is_instance();
        let named = NamedBoard(Box::new((name, board)));
        self.read_only += usize::from(named.is_read_only());
        let replaced = self.by_name.replace(named);
        self.read_only -= usize::from(replaced.as_ref().is_some_and(NamedBoard::is_read_only));
        self.instances += usize::from(is_instance && replaced.is_none());
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Board> {
        let named = self.by_name.take(name)?;
        self.instances -= usize::from(named.0.0.is_instance());
        self.read_only -= usize::from(named.is_read_only());
        Some(named.0.1)
    }

    /// The shared copy of an equal definition.
    pub(super) fn share(&mut self, definition: &Arc<Definition>) -> Arc<Definition> {
        self.definitions.share(definition)
    }
}

impl NamedBoard {
    /// Whether it is a board that is read-only: instances follow theirs.
    fn is_read_only(&self) -> bool {
        let (name, board) = &*self.0;
        board.definition.read_only.is_some() && !name.is_instance()
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

//! One read of one board: locks the shards, reads, and unlocks them. Metadata is read afterwards
//! (`metadata`).

use std::sync::Arc;

use crate::board::Definition;
use crate::query::answer::Listed;
use crate::query::board_view::BoardView;
use crate::query::entries::{ConsistentAnswer, VisitEntries};
use crate::query::node::Node;
use crate::types::AsOf;
use crate::writer::Registry;

/// What a read found, and what it was exact at.
#[derive(Debug, Clone)]
pub struct Answer<A> {
    pub as_of: AsOf,
    pub definition: Arc<Definition>,
    /// All entries of the board.
    pub total: u64,
    pub body: A,
}

impl<A: VisitEntries> ConsistentAnswer for Answer<A> {
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf)) {
        let Self { as_of, body, .. } = self;
        body.each_entry(&mut |listed| visit(listed, as_of));
    }
}

/// Asks a board, without its metadata; `None` if there is no such board.
pub fn read<A>(
    node: &Node,
    registry: &Registry,
    name: &str,
    ask: impl FnOnce(&BoardView<'_>) -> A,
) -> Option<Answer<A>> {
    let view = node.view();
    // After the shards are held: a board whose drop had begun before is unknown, so that no answer counts
    // some shards before the drop and others after it.
    let known = registry.get(name)?;
    let board = BoardView::new(&view, name, &known);
    let body = ask(&board);
    Some(Answer { as_of: board.as_of(), total: board.total(), definition: known.definition, body })
}

//! One read of one board: hold the shards still, ask, let go, then fetch metadata.

use std::sync::Arc;
use std::time::Duration;

use crate::board::Definition;
use crate::query::board_view::BoardView;
use crate::query::metadata::{HoldsEntries, fill_metadata, settle_metadata};
use crate::query::node::Node;
use crate::query::on_boards::OnBoards;
use crate::types::AsOf;
use crate::writer::Registry;

/// How often a read is repeated because metadata changed under it. Members whose metadata changes during every one of
/// so many reads get the metadata of the moment.
const ATTEMPTS: u32 = 5;
/// Doubles with every attempt: a batch is on disk shortly before readers see it, mostly a fraction of a millisecond.
const PAUSE: Duration = Duration::from_micros(100);

/// What a read found, and what it was exact at.
#[derive(Debug, Clone)]
pub struct Answer<A> {
    pub as_of: AsOf,
    pub definition: Arc<Definition>,
    /// All entries of the board.
    pub total: u64,
    pub body: A,
}

/// Asks a board, without its metadata; `None` if there is no such board.
pub fn read<A>(
    node: &Node,
    registry: &Registry,
    name: &str,
    ask: impl FnOnce(&BoardView<'_>) -> A,
) -> Option<Answer<A>> {
    let view = node.view();
    // After the shards are held: a board whose drop had begun before is unknown, so that no answer counts some
    // shards before the drop and others after it.
    let known = registry.get(name)?;
    let board = BoardView::new(&view, name, &known);
    let body = ask(&board);
    Some(Answer { as_of: board.as_of(), total: board.total(), definition: known.definition, body })
}

/// Asks several boards, and reads metadata that belongs to the same moment. Blocks on the disk.
pub fn with_metadata(node: &Node, ask: impl Fn() -> OnBoards) -> OnBoards {
    let mut answer = ask();
    for attempt in 0..ATTEMPTS {
        let as_of = answer.as_of.clone();
        if fill_metadata(node, &as_of, &mut answer) {
            return answer;
        }
        std::thread::sleep(PAUSE * 2_u32.pow(attempt));
        answer = ask();
    }
    settle_metadata(node, &mut answer);
    answer
}

/// Asks a board, and reads metadata that belongs to the same moment. Blocks on the disk.
pub fn read_with_metadata<A: HoldsEntries>(
    node: &Node,
    registry: &Registry,
    name: &str,
    ask: impl Fn(&BoardView<'_>) -> A,
) -> Option<Answer<A>> {
    let mut answer = read(node, registry, name, &ask)?;
    for attempt in 0..ATTEMPTS {
        if fill_metadata(node, &answer.as_of, &mut answer.body) {
            return Some(answer);
        }
        std::thread::sleep(PAUSE * 2_u32.pow(attempt));
        answer = read(node, registry, name, &ask)?;
    }
    settle_metadata(node, &mut answer.body);
    Some(answer)
}

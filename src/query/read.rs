//! One read of one board: hold the shards still, ask, let go, then fetch metadata.

use std::sync::Arc;
use std::time::Duration;

use crate::board::Definition;
use crate::query::board_view::BoardView;
use crate::query::metadata::{HoldsEntries, fill_metadata_of_now};
use crate::query::node::Node;
use crate::query::on_boards::OnBoards;
use crate::types::{AsOf, Sequence, ShardId};
use crate::writer::Registry;

/// How often a read is repeated because metadata changed under it. Each waits for what it ran into, so that a second
/// one is rare; metadata that still cannot be told after so many is null rather than another moment's.
const ATTEMPTS: u32 = 16;
/// A batch is on disk shortly before readers see it, mostly a fraction of a millisecond.
const PAUSE: Duration = Duration::from_micros(50);
/// Pauses after which a read stops waiting: its shard may have stopped.
const PAUSES_MAX: u32 = 400;

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
    for _ in 0..ATTEMPTS {
        let as_of = answer.as_of.clone();
        let ahead = fill_metadata_of_now(node, &as_of, &mut answer);
        if ahead.0.is_empty() {
            break;
        }
        wait_for(node, &ahead);
        answer = ask();
    }
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
    for _ in 0..ATTEMPTS {
        let ahead = fill_metadata_of_now(node, &answer.as_of, &mut answer.body);
        if ahead.0.is_empty() {
            break;
        }
        wait_for(node, &ahead);
        answer = read(node, registry, name, &ask)?;
    }
    Some(answer)
}

/// Waits until readers see what the disk has.
fn wait_for(node: &Node, ahead: &AsOf) {
    let seen = |(shard, sequence): &(ShardId, Sequence)| {
        node.shards.get(shard.index()).is_none_or(|shard| *shard.applied.borrow() >= *sequence)
    };
    for _ in 0..PAUSES_MAX {
        if ahead.0.iter().all(seen) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

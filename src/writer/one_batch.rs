//! Where a batch ends. A batch is planned, written and applied as one, and whoever writes meanwhile waits.
//!
//! Knows: how much the jobs of a batch may do, by the windows of their boards, and what must be done before
//! the next message is planned. Must not know: how a queue gathers messages.

use crate::job::MAX_TREES_PER_BOARD;
use crate::state_lock::{Purpose, StateLock, YieldingReadGuard};
use crate::writer::source::{Message, Payload};

/// Trees that the jobs of a batch change: a tenth of a second's work or so. One message may have half of
/// them.
const TREES_PER_BATCH: usize = if cfg!(test) { 256 } else { 32_768 };
/// Jobs that are looked at before the lock is yielded.
const JOBS_PER_YIELD: usize = 16;

/// How many of the messages make a batch: the first at least. One that gives a board an `entry_ttl` is the
/// last, because when the board's entries expire must be noted before the next message is planned.
pub fn length_of_batch(shard: &StateLock, messages: &[Message]) -> usize {
    let boards: usize = messages.iter().map(|message| message.payload.cost()).sum();
    // Mostly they are few enough whatever the windows of their boards.
    let is_short = boards.saturating_mul(MAX_TREES_PER_BOARD) <= TREES_PER_BATCH;
    let mut shard = (!is_short).then(|| YieldingReadGuard::new(shard, Purpose::Plan));
    let mut trees = 0;
    for (index, message) in messages.iter().enumerate() {
        if let Some(shard) = &mut shard {
            trees += trees_of(shard, &message.payload);
            if index > 0 && trees > TREES_PER_BATCH {
                return index;
            }
        }
        if message.payload.has_entry_ttl() {
            return index + 1;
        }
    }
    messages.len()
}

/// About how many trees a message changes.
fn trees_of(shard: &mut YieldingReadGuard<'_>, payload: &Payload) -> usize {
    let Payload::Jobs(jobs) = payload else { return payload.cost() };
    let (mut trees, mut last) = (0, None);
    for (index, job) in jobs.iter().enumerate() {
        if index.is_multiple_of(JOBS_PER_YIELD) {
            shard.yield_if_due();
        }
        let Ok(job) = job else { continue };
        let mut boards = job.boards().peekable();
        if boards.peek().is_none() {
            trees += job.board_count();
        }
        for name in boards {
            // Most jobs name the board of the one before.
            let of_board = match last {
                Some((known, of_board)) if known == name => of_board,
                _ => shard.board(name.as_str()).map_or(1, |board| board.definition.trees_of_job()),
            };
            last = Some((name, of_board));
            trees += of_board;
        }
    }
    trees
}

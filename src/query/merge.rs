//! The shards' runs as one ordered stream, forward or backward from where they start.

use crate::query::question::{ShardEntry, SortKey};
use crate::query::shard_board::ShardBoard;
use crate::query::shard_run::{RunEntries, ShardRun};
use crate::tree::{Cursor, Handle, Words};
use crate::types::ShardId;

/// Entries that are walked before anything is asked for ahead: most pages are no longer.
const SHORT_WALK: usize = 16;
/// Entries whose ids are asked for ahead: enough to hide a cache miss.
const LOOK_AHEAD: usize = 16;

/// An entry met on the way.
#[derive(Clone, Copy)]
pub struct MergedEntry<'r> {
    pub shard: ShardId,
    pub key: SortKey<'r>,
    pub source: EntrySource<'r>,
}

/// Where the rest of an entry is found.
#[derive(Clone, Copy)]
pub enum EntrySource<'r> {
    InMemory(ShardBoard<'r>, Handle),
    Replied(&'r ShardEntry),
}

/// Entries from the runs' starts on, best first.
pub fn forward<'r>(runs: &'r [ShardRun<'_>]) -> impl Iterator<Item = MergedEntry<'r>> + use<'r> {
    merge(cursors(runs, Direction::Forward), |candidate, best| candidate < best)
}

/// The entry at a run's start. One that was asked for by its member need not be looked for again.
pub fn first<'r>(run: &'r ShardRun<'_>) -> Option<MergedEntry<'r>> {
    match run.entries() {
        RunEntries::InMemory { shard_board, first: Some((handle, words)), .. } => {
            let key = SortKey { words: *words, member: shard_board.shard.members.id(*handle) };
            Some(MergedEntry { shard: run.shard, key, source: EntrySource::InMemory(*shard_board, *handle) })
        }
        _ => RunCursor::of(run, Direction::Forward)?.head,
    }
}

/// Entries from the runs' starts back, the nearest first.
pub fn backward<'r>(runs: &'r [ShardRun<'_>]) -> impl Iterator<Item = MergedEntry<'r>> + use<'r> {
    merge(cursors(runs, Direction::Backward), |candidate, best| candidate > best)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl Direction {
    fn step(self, cursor: &mut Cursor<'_, 64, 64>) -> Option<(Handle, Words)> {
        match self {
            Self::Forward => cursor.next(),
            Self::Backward => cursor.prev(),
        }
    }
}

/// One shard's entries, and the next of them.
struct RunCursor<'r> {
    shard: ShardId,
    remaining: RemainingEntries<'r>,
    head: Option<MergedEntry<'r>>,
}

enum RemainingEntries<'r> {
    InMemory {
        shard_board: ShardBoard<'r>,
        cursor: Cursor<'r, 64, 64>,
        direction: Direction,
        walked: usize,
        /// Goes ahead of the cursor, once the walk is long.
        scout: Option<Cursor<'r, 64, 64>>,
    },
    Replied(std::slice::Iter<'r, ShardEntry>),
}

impl<'r> RunCursor<'r> {
    fn of(run: &'r ShardRun<'_>, direction: Direction) -> Option<Self> {
        let remaining = match run.entries() {
            RunEntries::InMemory { shard_board, start, .. } => {
                let (_, window) = shard_board.window?;
                RemainingEntries::InMemory {
                    shard_board: *shard_board,
                    cursor: window.tree.cursor_at(*start),
                    direction,
                    walked: 0,
                    scout: None,
                }
            }
            RunEntries::Replied { reply, .. } => RemainingEntries::Replied(match direction {
                Direction::Forward => reply.below.iter(),
                Direction::Backward => reply.above.iter(),
            }),
        };
        let mut run_cursor = Self { shard: run.shard, remaining, head: None };
        run_cursor.step();
        Some(run_cursor)
    }

    fn step(&mut self) {
        let shard = self.shard;
        self.head = match &mut self.remaining {
            RemainingEntries::InMemory { shard_board, cursor, direction, walked, scout } => {
                let next = direction.step(cursor);
                *walked += 1;
                // The ids of neighbours are anywhere in memory. Asked for ahead, they come together.
                let mut scouted = 1;
                if *walked == SHORT_WALK {
                    (*scout, scouted) = (Some(cursor.clone()), LOOK_AHEAD);
                }
                if let Some(scout) = scout {
                    for _ in 0..scouted {
                        if let Some((handle, _)) = direction.step(scout) {
                            shard_board.shard.members.prefetch_id_of(handle);
                        }
                    }
                }
                next.map(|(handle, words)| MergedEntry {
                    shard,
                    key: SortKey { words, member: shard_board.shard.members.id(handle) },
                    source: EntrySource::InMemory(*shard_board, handle),
                })
            }
            RemainingEntries::Replied(entries) => entries.next().map(|entry| MergedEntry {
                shard,
                key: SortKey { words: entry.words, member: &entry.member },
                source: EntrySource::Replied(entry),
            }),
        };
    }
}

fn cursors<'r>(runs: &'r [ShardRun<'_>], direction: Direction) -> Vec<RunCursor<'r>> {
    runs.iter().filter_map(|run| RunCursor::of(run, direction)).collect()
}

/// Takes the foremost head each time. A scan and no heap: shards are 64 at most, mostly a few.
fn merge<'r>(
    mut cursors: Vec<RunCursor<'r>>,
    leads: impl Fn(&SortKey<'r>, &SortKey<'r>) -> bool,
) -> impl Iterator<Item = MergedEntry<'r>> {
    std::iter::from_fn(move || {
        let mut foremost: Option<&mut RunCursor<'r>> = None;
        for run_cursor in &mut cursors {
            let Some(head) = &run_cursor.head else { continue };
            let lead = match foremost.as_ref().and_then(|run_cursor| run_cursor.head.as_ref()) {
                Some(best) => leads(&head.key, &best.key),
                None => true,
            };
            if lead {
                foremost = Some(run_cursor);
            }
        }
        let run_cursor = foremost?;
        let found = run_cursor.head;
        run_cursor.step();
        found
    })
}

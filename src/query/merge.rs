//! The shards' runs as one ordered stream, forward or backward from where they start.

use crate::query::part::Part;
use crate::query::question::{ShardEntry, SortKey};
use crate::query::shard_run::{RunEntries, ShardRun};
use crate::tree::{Cursor, Handle};
use crate::types::ShardId;

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
    InMemory(Part<'r>, Handle),
    Replied(&'r ShardEntry),
}

/// Entries from the runs' starts on, best first.
pub fn forward<'r>(runs: &'r [ShardRun<'_>]) -> impl Iterator<Item = MergedEntry<'r>> + use<'r> {
    merge(lanes(runs, Direction::Forward), |candidate, best| candidate < best)
}

/// Entries from the runs' starts back, the nearest first.
pub fn backward<'r>(runs: &'r [ShardRun<'_>]) -> impl Iterator<Item = MergedEntry<'r>> + use<'r> {
    merge(lanes(runs, Direction::Backward), |candidate, best| candidate > best)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// One shard's entries, and the next of them.
struct Lane<'r> {
    shard: ShardId,
    rest: Rest<'r>,
    head: Option<MergedEntry<'r>>,
}

enum Rest<'r> {
    InMemory { part: Part<'r>, cursor: Cursor<'r, 64, 64>, direction: Direction },
    Replied(std::slice::Iter<'r, ShardEntry>),
}

impl<'r> Lane<'r> {
    fn of(run: &'r ShardRun<'_>, direction: Direction) -> Option<Self> {
        let rest = match run.entries() {
            RunEntries::InMemory { part, start, .. } => {
                let (_, window) = part.window?;
                Rest::InMemory { part: *part, cursor: window.tree.cursor_at(*start), direction }
            }
            RunEntries::Replied { reply, .. } => Rest::Replied(match direction {
                Direction::Forward => reply.below.iter(),
                Direction::Backward => reply.above.iter(),
            }),
        };
        let mut lane = Self { shard: run.shard, rest, head: None };
        lane.step();
        Some(lane)
    }

    fn step(&mut self) {
        let shard = self.shard;
        self.head = match &mut self.rest {
            Rest::InMemory { part, cursor, direction } => {
                let next = match direction {
                    Direction::Forward => cursor.next(),
                    Direction::Backward => cursor.prev(),
                };
                next.map(|(handle, words)| MergedEntry {
                    shard,
                    key: SortKey { words, member: part.shard.members.id(handle) },
                    source: EntrySource::InMemory(*part, handle),
                })
            }
            Rest::Replied(entries) => entries.next().map(|entry| MergedEntry {
                shard,
                key: SortKey { words: entry.words, member: &entry.member },
                source: EntrySource::Replied(entry),
            }),
        };
    }
}

fn lanes<'r>(runs: &'r [ShardRun<'_>], direction: Direction) -> Vec<Lane<'r>> {
    runs.iter().filter_map(|run| Lane::of(run, direction)).collect()
}

/// Takes the foremost head each time. A scan and no heap: shards are 64 at most, mostly a few.
fn merge<'r>(
    mut lanes: Vec<Lane<'r>>,
    leads: impl Fn(&SortKey<'r>, &SortKey<'r>) -> bool,
) -> impl Iterator<Item = MergedEntry<'r>> {
    std::iter::from_fn(move || {
        let mut foremost: Option<&mut Lane<'r>> = None;
        for lane in &mut lanes {
            let Some(head) = &lane.head else { continue };
            let lead = match foremost.as_ref().and_then(|lane| lane.head.as_ref()) {
                Some(best) => leads(&head.key, &best.key),
                None => true,
            };
            if lead {
                foremost = Some(lane);
            }
        }
        let lane = foremost?;
        let found = lane.head;
        lane.step();
        found
    })
}

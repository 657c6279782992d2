//! The shards' ordered streams as one, forward or backward from a place in each.

use crate::query::board_view::{BoardView, Part, SortKey};
use crate::tree::{Handle, Words};

/// An entry met on the way.
#[derive(Debug, Clone, Copy)]
pub struct MergedEntry<'v> {
    /// The shard it is on.
    pub part: usize,
    pub handle: Handle,
    pub key: SortKey<'v>,
}

/// Entries from the places on, best first. `starts` has one place per shard: the entries before it.
pub fn forward<'v>(board: &BoardView<'v>, starts: &[u64]) -> impl Iterator<Item = MergedEntry<'v>> + use<'v> {
    let lanes = lanes(board, starts, |part, start| {
        let (_, window) = part.window?;
        let mut cursor = window.tree.cursor_at(start);
        Some(move || cursor.next())
    });
    merge(lanes, |candidate, best| candidate < best)
}

/// Entries from the places back, the nearest first. `starts` as in [`forward`].
pub fn backward<'v>(
    board: &BoardView<'v>,
    starts: &[u64],
) -> impl Iterator<Item = MergedEntry<'v>> + use<'v> {
    let lanes = lanes(board, starts, |part, start| {
        let (_, window) = part.window?;
        let mut cursor = window.tree.cursor_at(start);
        Some(move || cursor.prev())
    });
    merge(lanes, |candidate, best| candidate > best)
}

struct ShardCursor<'v, N> {
    part: Part<'v>,
    index: usize,
    next: N,
    head: Option<MergedEntry<'v>>,
}

impl<N: FnMut() -> Option<(Handle, Words)>> ShardCursor<'_, N> {
    fn step(&mut self) {
        let (part, index) = (self.part, self.index);
        self.head = (self.next)().map(|(handle, words)| MergedEntry {
            part: index,
            handle,
            key: SortKey { words, member: part.shard.members.id(handle) },
        });
    }
}

fn lanes<'v, N: FnMut() -> Option<(Handle, Words)>>(
    board: &BoardView<'v>,
    starts: &[u64],
    open: impl Fn(&Part<'v>, u64) -> Option<N>,
) -> Vec<ShardCursor<'v, N>> {
    let mut lanes = Vec::with_capacity(starts.len());
    for (index, (part, start)) in board.parts().iter().zip(starts).enumerate() {
        if let Some(next) = open(part, *start) {
            let mut lane = ShardCursor { part: *part, index, next, head: None };
            lane.step();
            lanes.push(lane);
        }
    }
    lanes
}

/// Takes the foremost head each time. A scan and no heap: shards are 64 at most, mostly a few.
fn merge<'v, N: FnMut() -> Option<(Handle, Words)>>(
    mut lanes: Vec<ShardCursor<'v, N>>,
    leads: impl Fn(&SortKey<'v>, &SortKey<'v>) -> bool,
) -> impl Iterator<Item = MergedEntry<'v>> {
    std::iter::from_fn(move || {
        let mut foremost: Option<&mut ShardCursor<'v, N>> = None;
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

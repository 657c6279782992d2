//! Boards of a node without NATS: completes definitions and drops that a crash interrupted, and forgets drops
//! that every shard has made.
//!
//! Knows: all shards of the node. With NATS, `queue::nats` does the same for all nodes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::query::Node;
use crate::queue::Publishers;
use crate::state::{Incarnation, Shard};
use crate::state_lock::{Purpose, StateLock};
use crate::types::{BoardName, ShardId};
use crate::writer::{Payload, RegisteredBoard, Registry};

/// How often drops that are complete are forgotten.
const FORGET_INTERVAL: Duration = Duration::from_secs(10);
/// Drops looked at under one hold of a lock.
const LOOKED_AT_ONCE: usize = 256;

/// Completes definitions and drops that a crash interrupted after some of the shards had them.
pub async fn complete_changes(node: &Node, publishers: &Publishers, registry: &Registry) {
    for (name, known) in registry.all() {
        let mut is_everywhere = true;
        for shard in &node.shards {
            if lacks(&shard.state.read(Purpose::Boards), &name, &known) {
                is_everywhere &= publish(publishers, shard.id, define(&name, &known)).await;
            }
        }
        if is_everywhere {
            registry.finish_next_incarnation(&name, known.incarnation);
        }
    }
    let mut dropped = Vec::new();
    for shard in &node.shards {
        dropped.extend(
            shard.state.read(Purpose::Boards).dropped().iter().map(|(name, life)| (name.clone(), life)),
        );
    }
    for (name, incarnation) in dropped {
        for shard in &node.shards {
            if has_life(&shard.state.read(Purpose::Boards), &name, incarnation) {
                publish(
                    publishers,
                    shard.id,
                    Payload::Drop { board: name.clone(), incarnation, number: None },
                )
                .await;
            }
        }
    }
}

/// The message that brings a board as it was decided to a shard.
pub fn define(name: &BoardName, known: &RegisteredBoard) -> Payload {
    let (incarnation, definition) = (known.incarnation, Arc::clone(&known.definition));
    Payload::Define { board: name.clone(), incarnation, number: None, definition }
}

/// Whether a shard lacks a board as it was decided.
pub fn lacks(shard: &Shard, name: &BoardName, known: &RegisteredBoard) -> bool {
    shard
        .board(name.as_str())
        .is_none_or(|board| board.incarnation != known.incarnation || board.definition != known.definition)
}

/// Whether a shard has a life of a board that was dropped elsewhere.
pub fn has_life(shard: &Shard, name: &BoardName, dropped: Incarnation) -> bool {
    shard.board(name.as_str()).is_some_and(|board| board.incarnation <= dropped)
}

/// Whether the shard has it.
async fn publish(publishers: &Publishers, shard: ShardId, payload: Payload) -> bool {
    let published = publishers.of(shard).store_command(payload, 0).await;
    if let Err(error) = &published {
        tracing::warn!(%shard, %error, "a definition or drop of a board that was interrupted by a crash could not be completed; the next start tries again");
    }
    published.is_ok()
}

/// Forgets drops that every shard has made, for as long as the node runs. A drop that a shard has made is on
/// its disk.
pub async fn forget_completed_drops(node: Weak<Node>, registry: Arc<Registry>) {
    loop {
        tokio::time::sleep(FORGET_INTERVAL).await;
        let Some(node) = node.upgrade() else { return };
        let shards: Vec<&StateLock> = node.shards.iter().map(|shard| &*shard.state).collect();
        forget_drops(&shards, &registry);
    }
}

fn forget_drops(shards: &[&StateLock], registry: &Registry) {
    for shard in shards {
        let mut after: Option<BoardName> = None;
        loop {
            let dropped: Vec<(BoardName, Incarnation)> = {
                let shard = shard.read(Purpose::Boards);
                let dropped = shard.dropped().after(after.as_ref());
                dropped.take(LOOKED_AT_ONCE).map(|(name, life)| (name.clone(), life)).collect()
            };
            let Some((last, _)) = dropped.last() else { break };
            after = Some(last.clone());
            let is_complete = |(name, life): &&(BoardName, Incarnation)| {
                !registry.is_being_dropped(name.as_str())
                    && !shards.iter().any(|other| has_life(&other.read(Purpose::Boards), name, *life))
            };
            let complete: Vec<_> = dropped.iter().filter(is_complete).collect();
            if !complete.is_empty() {
                shard.write(Purpose::Boards).forget_dropped(complete);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{BoardEvent, Step};

    fn name(number: u64) -> BoardName {
        BoardName::new(&format!("b{number}")).expect("a good name")
    }

    fn define(number: u64) -> BoardEvent {
        let incarnation = Incarnation(number);
        BoardEvent::Define { board: name(number), incarnation, number: None, definition: Arc::default() }
    }

    fn drop_of(number: u64) -> BoardEvent {
        BoardEvent::Drop { board: name(number), incarnation: Incarnation(number), number: None }
    }

    fn apply(shard: &StateLock, events: Vec<BoardEvent>) {
        shard.write(Purpose::Boards).apply(&Step { events, ..Step::default() });
    }

    fn remembered(shard: &StateLock) -> Vec<u64> {
        let shard = shard.read(Purpose::Boards);
        let mut lives: Vec<u64> = shard.dropped().iter().map(|(_, life)| life.0).collect();
        lives.sort_unstable();
        lives
    }

    /// However many boards come and go, the remembered drops do not grow, and incarnations go on rising.
    #[test]
    fn drops_are_forgotten_once_every_shard_has_made_them() {
        let shards = [0, 1].map(|id| StateLock::new(Shard::new(ShardId(id))));
        let [one, two] = &shards;
        let registry = Registry::new(true);
        let boards = 1..=1_000;
        apply(one, boards.clone().flat_map(|number| [define(number), drop_of(number)]).collect());
        apply(two, boards.clone().map(define).collect());
        apply(two, boards.filter(|number| *number != 7).map(drop_of).collect());
        forget_drops(&[one, two], &registry);
        // The drop of b7 is still to be completed.
        assert_eq!((remembered(one), remembered(two)), (vec![7], vec![]));
        apply(two, vec![drop_of(7)]);
        forget_drops(&[one, two], &registry);
        assert_eq!((remembered(one), remembered(two)), (vec![], vec![]));
        for shard in &shards {
            registry.register_boards_of(&shard.read(Purpose::Boards));
        }
        assert_eq!(registry.last_incarnation(), Incarnation(1_000));
        // A drop that clients still wait for is not complete, whatever the shards hold.
        let known = registry.create_default(&name(2_000)).expect("there is room");
        assert_eq!(registry.begin_drop(name(2_000).as_str()), Some(known.incarnation));
        let (board, incarnation) = (name(2_000), known.incarnation);
        apply(one, vec![BoardEvent::Drop { board, incarnation, number: None }, drop_of(3_000)]);
        forget_drops(&[one, two], &registry);
        assert_eq!(remembered(one), [1_001]);
        registry.finish_drop(name(2_000).as_str(), incarnation);
        forget_drops(&[one, two], &registry);
        assert_eq!(remembered(one), [0; 0]);
    }
}

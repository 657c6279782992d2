//! Drops boards that end by themselves, once the time of this node's shards has reached their end.
//!
//! A shard's time is that of its messages that are believed, so that no wrong clock ends a board
//! ([`ShardTime`](crate::state::ShardTime)). Ticks bring it to shards that are quiet (`ticks`). Every node
//! does this, which does no harm: a board is dropped once.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::operations::Operations;
use crate::query::Node;
use crate::state_lock::Purpose;
use crate::types::Timestamp;

/// How often it is looked whether a board has ended.
const INTERVAL: Duration = Duration::from_millis(100);
/// Boards that are taken from the registry at once, under its lock.
const AT_ONCE: usize = 64;

/// Drops boards that have ended, for as long as the node runs.
pub async fn end_boards(operations: Weak<Operations>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(operations) = operations.upgrade() else { return };
        let Some(reached) = reached(&operations.node) else { continue };
        for ending in operations.registry.ended_by(reached, AT_ONCE) {
            Arc::clone(&operations).end_board(ending, reached).await;
        }
    }
}

/// The time that all of the node's own shards have reached. `None`: it has none, or some are not live, so
/// that nothing is dropped.
fn reached(node: &Node) -> Option<Timestamp> {
    if node.shards.iter().any(|shard| !shard.health.is_live()) {
        return None;
    }
    node.shards.iter().map(|shard| shard.state.read(Purpose::Gauges).time).min()
}

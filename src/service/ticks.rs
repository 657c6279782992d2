//! Tells quiet shards the time.
//!
//! What is due on a shard, such as the drop of an instance, happens at the next message: that is how replicas
//! and replays agree. A shard whose queue is quiet gets a tick, which is a message that brings only its time.
//! Several nodes may publish ticks for the same shard, which does no harm.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use metrics::counter;

use crate::metrics as names;
use crate::query::{Node, ShardHandle};
use crate::queue::{NotPublished, Publishers};
use crate::state_lock::Purpose;
use crate::types::Timestamp;
use crate::writer::Payload;

/// How often it is looked whether something is due. A tick is as late, at the most; and at once if what is
/// due next was known when it was last looked.
const INTERVAL: Duration = Duration::from_millis(100);
/// What is due is looked for no sooner than this.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// Ticks published to a shard in a row, before all shards are looked at again.
const TICKS_AT_ONCE: usize = 1_024;
/// How long they may take to be applied.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Publishes ticks to the node's own shards when something is due, for as long as it runs.
pub async fn publish_ticks(node: Weak<Node>, publishers: Arc<Publishers>) {
    for shard in node.upgrade().iter().flat_map(|node| &node.shards) {
        // Before the first tick, too, there is a count.
        counter!(names::TICKS_TOTAL, "shard" => shard.id.to_string()).increment(0);
    }
    loop {
        let pause = node.upgrade().map_or(INTERVAL, |node| until_next_due(&node));
        tokio::time::sleep(pause).await;
        let Some(node) = node.upgrade() else { return };
        let due = node.shards.iter().filter(|shard| is_due(shard));
        join_all(due.map(|shard| publish_tick(shard, &publishers))).await;
    }
}

/// How long to wait before it is looked again whether something is due.
fn until_next_due(node: &Node) -> Duration {
    let now = jiff::Timestamp::now().as_microsecond();
    let next = node.shards.iter().filter_map(|shard| shard.state.read(Purpose::Gauges).next_due()).min();
    // What is due already was not brought by a tick: by the server's clock it is not due yet.
    let ahead = next.map(|due| due.as_micros().saturating_sub(now)).filter(|ahead| *ahead > 0);
    let pause = ahead.and_then(|ahead| u64::try_from(ahead).ok()).map_or(INTERVAL, Duration::from_micros);
    pause.clamp(PAUSE_MIN, INTERVAL)
}

/// Whether something is due that no message has brought. A shard that is not live has messages to come.
fn is_due(shard: &ShardHandle) -> bool {
    let now = Timestamp::from_micros(jiff::Timestamp::now().as_microsecond()).unwrap_or_default();
    shard.health.is_live() && shard.state.read(Purpose::Gauges).next_due().is_some_and(|due| due <= now)
}

/// Whether the shard's own time has reached what is due: then a part of it is left for the next message.
fn has_come(shard: &ShardHandle) -> bool {
    let state = shard.state.read(Purpose::Gauges);
    state.next_due().is_some_and(|due| due <= state.time)
}

/// Publishes ticks until nothing is due: each message does a bounded part of it.
async fn publish_tick(shard: &ShardHandle, publishers: &Publishers) {
    let publish = async {
        let mut due = shard.state.read(Purpose::Gauges).next_due();
        for _ in 0..TICKS_AT_ONCE {
            publishers.of(shard.id).apply_command(Payload::Tick, 0).await?;
            counter!(names::TICKS_TOTAL, "shard" => shard.id.to_string()).increment(1);
            let later = shard.state.read(Purpose::Gauges).next_due();
            // A tick that changed nothing was stamped before what is due here: the server's clock is behind
            // this node's. Another one at once would change nothing either.
            if !is_due(shard) || (later == due && !has_come(shard)) {
                break;
            }
            due = later;
        }
        Ok::<_, NotPublished>(())
    };
    match tokio::time::timeout(TIMEOUT, publish).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(shard = %shard.id, %error, "a tick could not be published; trying again");
        }
        Err(_) => tracing::warn!(shard = %shard.id, "ticks were not applied in time; trying again"),
    }
}

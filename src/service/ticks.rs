//! Tells quiet shards the time.
//!
//! What is due on a shard, such as the drop of an instance, happens at the next message: that is how replicas
//! and replays agree. A shard whose queue is quiet gets a tick, which is a message that brings only its time.
//! Several nodes may publish ticks for the same shard, which does no harm.
//!
//! A shard that has heard nothing for half an hour gets one, too: a message of more than an hour after the
//! shard's time is a leap ([`ShardTime`]), which a quiet night should not be. A leap itself is decided by a
//! tick a minute later.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use metrics::counter;

use crate::message_clock::MessageClock;
use crate::metrics as names;
use crate::query::{Node, ShardHandle};
use crate::queue::{NotPublished, Publishers};
use crate::state::ShardTime;
use crate::state_lock::Purpose;
use crate::types::{ShardId, Timestamp};
use crate::writer::Payload;

/// How often it is looked whether something is due. A tick is as late, at the most; and at once if what is
/// due next was known when it was last looked.
const INTERVAL: Duration = Duration::from_millis(100);
/// What is due is looked for no sooner than this.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// Ticks published to a shard in a row, before all shards are looked at again.
const TICKS_AT_ONCE: usize = 1_024;
/// A shard that has heard nothing for so long is told the time: well before a message would be a leap.
const QUIET: Duration = Duration::from_secs(30 * 60);
/// A shard is told the time again after so long, if it did not help: the server's clock is behind this
/// node's.
const TOLD_AGAIN: Duration = Duration::from_secs(60);
/// How long they may take to be applied.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Publishes ticks to the node's own shards when something is due or they have heard nothing for long, for as
/// long as it runs.
pub async fn publish_ticks(node: Weak<Node>, publishers: Arc<Publishers>) {
    for shard in node.upgrade().iter().flat_map(|node| &node.shards) {
        // Before the first tick, too, there is a count.
        counter!(names::TICKS_TOTAL, "shard" => shard.id.to_string()).increment(0);
    }
    // When shards were told the time although nothing was due.
    let mut told: BTreeMap<ShardId, Instant> = BTreeMap::new();
    loop {
        let pause = node.upgrade().map_or(INTERVAL, |node| until_next_due(&node));
        tokio::time::sleep(pause).await;
        let Some(node) = node.upgrade() else { return };
        let mut wanted = Vec::new();
        for shard in node.shards.iter().filter(|shard| shard.health.is_live()) {
            let may_tell = told.get(&shard.id).is_none_or(|at| at.elapsed() >= TOLD_AGAIN);
            let tells = may_tell && is_behind(known_time(shard), node.clock.now());
            if tells {
                told.insert(shard.id, Instant::now());
            }
            if tells || is_due(shard, node.clock.now()) {
                wanted.push(shard);
            }
        }
        join_all(wanted.into_iter().map(|shard| publish_tick(shard, &node.clock, &publishers))).await;
    }
}

fn known_time(shard: &ShardHandle) -> ShardTime {
    shard.state.read(Purpose::Gauges).known_time()
}

/// Whether a tick moves a shard's time although nothing may be due: it has heard nothing for long, so that
/// the next job would be a leap, or it has a leap that a tick decides. A shard without messages has no time.
fn is_behind(known: ShardTime, now: Timestamp) -> bool {
    if known.effective == Timestamp::default() {
        return false;
    }
    match known.leap {
        None => now > known.effective.plus(QUIET),
        Some(_) => known.after(now).leap != known.leap,
    }
}

/// How long to wait before it is looked again whether something is due.
fn until_next_due(node: &Node) -> Duration {
    let now = node.clock.now().as_micros();
    let next = node.shards.iter().filter_map(|shard| shard.state.read(Purpose::Gauges).next_due()).min();
    // What is due already was not brought by a tick: by the server's clock it is not due yet.
    let ahead = next.map(|due| due.as_micros().saturating_sub(now)).filter(|ahead| *ahead > 0);
    let pause = ahead.and_then(|ahead| u64::try_from(ahead).ok()).map_or(INTERVAL, Duration::from_micros);
    pause.clamp(PAUSE_MIN, INTERVAL)
}

/// Whether something is due that no message has brought. A shard that is not live has messages to come.
fn is_due(shard: &ShardHandle, now: Timestamp) -> bool {
    let (due, known) = {
        let state = shard.state.read(Purpose::Gauges);
        (state.next_due(), state.known_time())
    };
    // While a leap is not decided, a tick brings nothing that has not come already.
    let comes = |due: Timestamp| due <= known.effective || (due <= now && due <= known.after(now).effective);
    shard.health.is_live() && due.is_some_and(comes)
}

/// Whether the shard's own time has reached what is due: then a part of it is left for the next message.
fn has_come(shard: &ShardHandle) -> bool {
    let state = shard.state.read(Purpose::Gauges);
    state.next_due().is_some_and(|due| due <= state.time)
}

/// Publishes ticks until nothing is due: each message does a bounded part of it.
async fn publish_tick(shard: &ShardHandle, clock: &MessageClock, publishers: &Publishers) {
    let publish = async {
        let mut due = shard.state.read(Purpose::Gauges).next_due();
        for _ in 0..TICKS_AT_ONCE {
            publishers.of(shard.id).apply_command(Payload::Tick, 0).await?;
            counter!(names::TICKS_TOTAL, "shard" => shard.id.to_string()).increment(1);
            let later = shard.state.read(Purpose::Gauges).next_due();
            // A tick that changed nothing was stamped before what is due here: the server's clock is behind
            // this node's. Another one at once would change nothing either.
            if !is_due(shard, clock.now()) || (later == due && !has_come(shard)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    #[test]
    fn a_shard_is_told_the_time_when_it_is_quiet_and_when_a_leap_is_to_be_decided() {
        let noon = Timestamp::parse("2026-11-27T12:00:00Z").expect("a time");
        let known = ShardTime::from(noon);
        assert!(!is_behind(ShardTime::default(), noon), "a shard without messages");
        assert!(!is_behind(known, noon.plus(QUIET)));
        assert!(is_behind(known, noon.plus(QUIET + INTERVAL)));
        // The service was stopped for a week: the first tick is a leap, and the next one is believed.
        let monday = noon.plus(7 * 24 * HOUR);
        let first = known.after(monday);
        assert!(
            is_behind(known, monday) && !is_behind(first, monday.plus(TOLD_AGAIN.saturating_sub(INTERVAL)))
        );
        assert!(is_behind(first, monday.plus(TOLD_AGAIN)));
        assert_eq!(first.after(monday.plus(TOLD_AGAIN)), ShardTime::from(monday.plus(TOLD_AGAIN)));
        // This node's clock knows better than the one that stamped the leap.
        assert!(is_behind(first, noon.plus(INTERVAL)));
        assert_eq!(first.after(noon.plus(INTERVAL)), ShardTime::from(noon.plus(INTERVAL)));
    }
}

//! How the shards are doing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::http::api::Api;
use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::params::Params;
use crate::http::resources::{known_nodes, read_only};
use crate::operations::{KnownNode, QueueLevel, QueueRoom};
use crate::query::ShardHandle;
use crate::state_lock::Purpose;
use crate::types::ShardId;

pub async fn get(call: Box<Call>) -> Result<Reply, Problem> {
    Params::parse(call.query(), &[])?;
    Ok(Reply::object(|object| {
        object.text("version", env!("CARGO_PKG_VERSION"));
        object.bool("ready", is_ready(&call.api));
        let is_degraded = shards_with_troubled_queues(&call.api).next().is_some()
            || damaged(&call.api).next().is_some()
            || far_ahead(&call.api).next().is_some()
            || with_long_waits(&call.api).next().is_some()
            || call.api.operations.node.clock.skew().is_some()
            || !call.api.operations.without_owner().is_empty();
        object.bool("degraded", is_degraded);
        read_only::write(object, call.api.operations.read_only().as_deref());
        object.bool("auto_create", call.api.operations.registry.creates_boards());
        let others = call.api.operations.other_nodes();
        object.text("node", call.api.operations.this_node.name.as_str());
        known_nodes::write_nodes(object, &call.api, &others);
        object.array("shards", call.api.operations.node.all_shards(), |out, id| {
            let mut object = Object::begin(out);
            let own = call.api.operations.node.owned(id);
            match own {
                Some(shard) if call.confined_to().is_some() => write_progress_only(&mut object, shard),
                Some(shard) => write_shard(&call.api, &mut object, shard),
                // Figures of other nodes are with their owners.
                None => write_other_shard(&mut object, id, &others),
            }
            let own = own.map(|shard| (shard, lag(shard)));
            known_nodes::write_owners(&mut object, &call.api.operations.this_node, id, own, &others);
            object.end();
        });
    }))
}

/// Messages in the queue that are not applied yet.
fn lag(shard: &ShardHandle) -> u64 {
    shard.health.get(|health| health.last_sequence).saturating_sub(shard.applied.get().0)
}

/// Whether every shard takes writes, its lag is known, and is under the limit. After a time in which this
/// process did not run or hear of NATS, the lag is unknown until the streams' ends were asked for.
pub fn is_ready(api: &Api) -> bool {
    // Every shard is looked at, also behind one that is not ready: its own lag is remembered.
    api.operations.node.shards.iter().zip(&api.lagging).fold(
        !api.operations.node.is_stale(),
        |ready, (shard, lagging)| {
            let lags = is_lagging(lagging.load(Ordering::Relaxed), lag(shard), api.limits.lag);
            lagging.store(lags, Ordering::Relaxed);
            ready && shard.health.takes_writes() && !lags
        },
    )
}

/// Whether a shard lags too much to be called ready. Once it does, it has to get down to half the limit: a
/// load balancer would take a node whose lag is about the limit in and out at every look.
fn is_lagging(was_lagging: bool, lag: u64, limit: u64) -> bool {
    lag > if was_lagging { limit / 2 } else { limit }
}

/// Shards whose queue has little or no room for publishers. The node is as ready as it was: it applies what
/// is in the queue and answers reads, and no other node would take more, because the queue is theirs too.
/// So it is while something is wrong with the queue that an operator has to change.
pub fn shards_with_troubled_queues(api: &Api) -> impl Iterator<Item = (ShardId, Arc<QueueRoom>)> {
    let rooms = api
        .operations
        .node
        .shards
        .iter()
        .filter_map(|shard| Some((shard.id, shard.health.get(|health| health.queue_room.clone())?)));
    rooms.filter(|(_, room)| room.level > QueueLevel::Roomy || room.fault.is_some())
}

/// Shards of whose files something was found damaged. The node answers what it holds in memory, which is
/// nearly everything, and nothing says that another node would do better: so it stays in service.
pub fn damaged(api: &Api) -> impl Iterator<Item = (ShardId, Arc<str>)> {
    api.operations
        .node
        .shards
        .iter()
        .filter_map(|shard| Some((shard.id, shard.health.get(|health| health.damage.clone())?)))
}

/// Shards whose time is far ahead of this node's clock, in seconds.
pub fn far_ahead(api: &Api) -> impl Iterator<Item = (ShardId, u64)> {
    api.operations.node.shards.iter().filter_map(|shard| Some((shard.id, shard.health.seconds_far_ahead()?)))
}

/// Shards whose jobs have waited long for a board that is not defined.
pub fn with_long_waits(api: &Api) -> impl Iterator<Item = ShardId> {
    api.operations
        .node
        .shards
        .iter()
        .filter(|shard| shard.health.get(|health| health.jobs_wait_long))
        .map(|shard| shard.id)
}

/// What clients without a token may know of a shard.
pub fn write_state(object: &mut Object<'_>, shard: &ShardHandle) {
    object.count("shard", u64::from(shard.id.0));
    object.text("state", shard.health.state().name());
}

/// What tokens of some boards are told of a shard: nothing that counts the members and jobs of all boards,
/// and no reasons, which may name a board. Every answer about a board names sequences.
fn write_progress_only(object: &mut Object<'_>, shard: &ShardHandle) {
    object.count("shard", u64::from(shard.id.0));
    object.text("owner", "local");
    object.text("state", shard.health.state().name());
    object.null("reason");
    object.null("damage");
    write_progress(object, shard);
}

fn write_progress(object: &mut Object<'_>, shard: &ShardHandle) {
    let applied = shard.applied.get().0;
    object.count("applied_sequence", applied);
    object.count("last_sequence", shard.health.get(|health| health.last_sequence).max(applied));
    object.count("lag", lag(shard));
    object.count("checkpoint_sequence", shard.health.get(|health| health.checkpoint_sequence));
}

pub fn write_shard(api: &Api, object: &mut Object<'_>, shard: &ShardHandle) {
    let state = shard.health.state();
    object.count("shard", u64::from(shard.id.0));
    object.text("owner", "local");
    object.text("state", state.name());
    object.or_null("reason", state.reason(), Object::text);
    object.or_null("damage", shard.health.get(|health| health.damage.clone()).as_deref(), Object::text);
    write_progress(object, shard);
    let members = shard.state.read(Purpose::Gauges).members.len();
    object.count("members", u64::try_from(members).unwrap_or(u64::MAX));
    object.count("rejects", shard.health.get(|health| health.jobs_rejected));
    if api.operations.has_streams() {
        object.count("parked", shard.health.get(|health| health.jobs_parked));
        write_room(object, shard.health.get(|health| health.queue_room.clone()).as_deref());
        write_copying(object, shard);
    }
}

/// A shard that this node does not own.
fn write_other_shard(object: &mut Object<'_>, shard: ShardId, others: &[KnownNode]) {
    object.count("shard", u64::from(shard.0));
    object.text("owner", "remote");
    object.text("state", known_nodes::best_state(shard, others));
    object.null("reason");
    object.null("damage");
}

/// The copy of another node's data that is being fetched; null if none is.
fn write_copying(object: &mut Object<'_>, shard: &ShardHandle) {
    let Some(copy) = shard.health.get(|health| health.copying.clone()) else { return object.null("copying") };
    let mut copying = object.object("copying");
    copying.text("from", &copy.from);
    copying.count("bytes", copy.bytes.load(Ordering::Relaxed));
    copying.count("total", copy.bytes_total);
    copying.end();
}

/// How full the shard's stream is; null until it was looked at.
fn write_room(object: &mut Object<'_>, room: Option<&QueueRoom>) {
    let Some(room) = room else { return object.null("stream") };
    let mut stream = object.object("stream");
    stream.text("level", room.level.name());
    if let Some(fault) = &room.fault {
        stream.text("reason", &fault.what);
    } else if room.level > QueueLevel::Roomy {
        stream.text("reason", &room.reason);
    } else {
        stream.null("reason");
    }
    stream.or_null("held_for", room.held_for.as_deref(), Object::text);
    stream.count("bytes", room.bytes);
    stream.or_null("bytes_max", room.bytes_max, Object::count);
    stream.count("messages", room.messages);
    stream.or_null("messages_max", room.messages_max, Object::count);
    let mut held = stream.object("held_by");
    for part in &room.held {
        let mut part_of = held.object(part.by.name());
        part_of.count("messages", part.messages);
        part_of.count("bytes", part.bytes);
        part_of.end();
    }
    held.end();
    stream.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_that_lagged_is_ready_again_at_half_the_limit() {
        let mut lagging = false;
        let seen = [10_000, 10_001, 9_999, 5_001, 5_000, 5_001, 10_000, 10_001].map(|lag| {
            lagging = is_lagging(lagging, lag, 10_000);
            lagging
        });
        assert_eq!(seen, [false, true, true, true, false, false, false, true]);
        assert!(!is_lagging(true, 0, 0) && is_lagging(false, 1, 0));
    }
}

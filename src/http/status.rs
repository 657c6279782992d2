//! How the shards are doing.

use crate::http::api::Api;
use crate::http::call::Call;
use crate::http::error::Problem;
use crate::http::json::Object;
use crate::http::params::Params;
use crate::http::reply::Reply;
use crate::query::ShardHandle;
use crate::state_lock::Purpose;

pub async fn get(call: Call) -> Result<Reply, Problem> {
    Params::parse(call.query(), &[])?;
    Ok(Reply::object(|object| {
        object.text("version", env!("CARGO_PKG_VERSION"));
        object.bool("ready", is_ready(&call.api));
        object.array("shards", &call.api.node.shards, |out, shard| {
            let mut object = Object::begin(out);
            write_shard(&mut object, shard);
            object.end();
        });
    }))
}

/// Messages in the queue that are not applied yet.
fn lag(shard: &ShardHandle) -> u64 {
    shard.health.last_sequence().saturating_sub(shard.applied.borrow().0)
}

/// Whether every shard is live and its lag under the limit.
pub fn is_ready(api: &Api) -> bool {
    api.node.shards.iter().all(|shard| shard.health.is_live() && lag(shard) <= api.limits.lag)
}

/// What anybody may know of a shard.
pub fn write_state(object: &mut Object<'_>, shard: &ShardHandle) {
    object.count("shard", u64::from(shard.id.0));
    object.text("state", shard.health.state().name());
}

pub fn write_shard(object: &mut Object<'_>, shard: &ShardHandle) {
    let (state, applied) = (shard.health.state(), shard.applied.borrow().0);
    object.count("shard", u64::from(shard.id.0));
    object.text("owner", "local");
    object.text("state", state.name());
    match state.reason() {
        Some(reason) => object.text("reason", reason),
        None => object.null("reason"),
    }
    object.count("applied_sequence", applied);
    object.count("last_sequence", shard.health.last_sequence().max(applied));
    object.count("lag", lag(shard));
    let members = shard.state.read(Purpose::Gauges).members.len();
    object.count("members", u64::try_from(members).unwrap_or(u64::MAX));
    object.count("rejects", shard.health.jobs_rejected());
    if shard.publisher.stores() {
        object.count("parked", shard.health.jobs_parked());
    }
    object.count("checkpoint_sequence", shard.health.checkpoint_sequence());
}

//! Probes and metrics. They are never shed: an overloaded service must still say how it is.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};

use crate::http::api::Api;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::render::reply::{Reply, metrics_response};
use crate::http::resources::status::{
    damaged, far_ahead, is_ready, shards_with_troubled_queues, with_long_waits, write_shard, write_state,
};

pub async fn healthz(_: Arc<Api>) -> Response {
    Reply::text("ok\n").into_response()
}

pub async fn readyz(api: Arc<Api>) -> Response {
    if is_ready(&api) {
        return Reply::text(&readiness(&api)).into_response();
    }
    let mut shards = b"\"shards\":".to_vec();
    json::array(&mut shards, &api.operations.node.shards, |out, shard| {
        let mut object = Object::begin(out);
        // Probes come without a token, and reasons name hosts and files. Clients with a token read them in
        // the status.
        if api.access.is_some() {
            write_state(&mut object, shard);
        } else {
            write_shard(&api, &mut object, shard);
        }
        object.end();
    });
    Problem::not_ready().with(shards).into_response()
}

/// The answer of a ready node. Its first line says whether the node is degraded.
fn readiness(api: &Api) -> String {
    // As above: reasons are for clients with a token.
    let why = |reason: &str| {
        if api.access.is_some() { "GET /v1/status says why".to_owned() } else { reason.to_owned() }
    };
    let low_on_room = shards_with_troubled_queues(api).map(|(shard, room)| {
        if let Some(fault) = &room.fault {
            format!("shard {shard}: something is wrong with its streams: {}\n", why(&fault.what))
        } else {
            let level = room.level.name().replace('_', " ");
            format!("shard {shard}: its stream is {level}: {}\n", why(&room.reason))
        }
    });
    let damaged = damaged(api)
        .map(|(shard, damage)| format!("shard {shard}: its files are damaged: {}\n", why(&damage)));
    let far_ahead = far_ahead(api).map(|(shard, seconds)| {
        format!("shard {shard}: its time is {seconds} seconds ahead of this node's clock\n")
    });
    let long_waits = with_long_waits(api).map(|shard| {
        format!("shard {shard}: jobs wait long for a board that is not defined; the log names it\n")
    });
    let skew = api.operations.node.clock.skew().map(|skew| format!("this node's clock is {skew}\n"));
    let of_shards = low_on_room.chain(damaged).chain(far_ahead).chain(long_waits);
    let unowned = api.operations.without_owner().into_iter();
    let unowned = unowned.map(|shard| format!("shard {shard}: no node that runs owns it\n"));
    let problems: Vec<String> = of_shards.chain(unowned).chain(skew).collect();
    if problems.is_empty() {
        "ready\n".to_owned()
    } else {
        "ready, degraded\n".to_owned() + &problems.concat()
    }
}

pub async fn metrics(api: Arc<Api>) -> Response {
    let text = api.scrapes.text().await;
    text.map_or_else(|| Problem::internal().into_response(), metrics_response)
}

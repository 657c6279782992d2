//! Alive, ready, and the metrics. Never shed: an overloaded service must still say how it is.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};

use crate::http::api::Api;
use crate::http::error::Problem;
use crate::http::json::{self, Object};
use crate::http::reply::Reply;
use crate::http::status::{crowded, is_ready, write_shard, write_state};

pub async fn healthz() -> Response {
    Reply::text("ok\n").into_response()
}

pub async fn readyz(State(api): State<Arc<Api>>) -> Response {
    if is_ready(&api) {
        return Reply::text(&readiness(&api)).into_response();
    }
    let mut shards = b"\"shards\":".to_vec();
    json::array(&mut shards, &api.node.shards, |out, shard| {
        let mut object = Object::begin(out);
        // Whoever asks has no token, and reasons name hosts and files: who has one asks for the status.
        if api.access.is_some() {
            write_state(&mut object, shard);
        } else {
            write_shard(&api, &mut object, shard);
        }
        object.end();
    });
    Problem::not_ready().with(shards).into_response()
}

/// What a node that is ready says: whether all is well with it, on the first line.
fn readiness(api: &Api) -> String {
    let told: Vec<String> = crowded(api)
        .map(|(shard, room)| {
            let level = room.level.name().replace('_', " ");
            // As above: reasons are for those who have a token.
            let why = if api.access.is_some() { "GET /v1/status says why" } else { &room.reason };
            format!("shard {shard}: its stream is {level}: {why}\n")
        })
        .collect();
    if told.is_empty() { "ready\n".to_owned() } else { "ready, degraded\n".to_owned() + &told.concat() }
}

pub async fn metrics(State(api): State<Arc<Api>>) -> Response {
    let render = Arc::clone(&api.render_metrics);
    // It folds all samples since the last time, and asks the system: milliseconds.
    let rendered = tokio::task::spawn_blocking(move || render()).await;
    rendered.map_or_else(|_| Problem::internal().into_response(), |text| Reply::metrics(text).into_response())
}

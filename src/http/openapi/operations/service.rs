//! For operators and their tools.

use serde_json::json;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::read;
use crate::http::openapi::parameters::query;
use crate::http::openapi::problems::ANY;
use crate::http::openapi::schemas::jobs::reject_codes;
use crate::http::resources::lists::PAGE_MAX;
use crate::http::resources::rejects::REJECTS;
use crate::types::MAX_SHARDS;

const TAG: &str = "Service";

pub fn rejects() -> Doc {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": REJECTS});
    let shard = json!({"type": "integer", "minimum": 0, "maximum": MAX_SHARDS - 1});
    let cursor = json!({"type": "string", "pattern": "^[0-9a-f.-]*$"});
    read(TAG, "Jobs that were refused")
        .describe(
            "Newest first: by the time at which each was refused, then by shard, then by its place in the shard's queue. Jobs that \
             came over HTTP or NATS, also what came to a shard that is not its member's, and what is no job at all. A request that is \
             refused as a whole (422) left nothing behind. Each shard keeps its latest 100,000.\n\n\
             A request reads at most 1,000 rejects more than `limit`, so that a page can be short or empty where the filters leave \
             many out: there is more as long as there is a `next_cursor`. What is refused after the first page is not on those \
             that follow it. A token that is confined to some boards is told of jobs that name these boards only.",
        )
        .query(query("shard", &shard, "Of this shard only."))
        .query(query("reason", &json!({"enum": reject_codes()}), "For this reason only."))
        .query(query("limit", &limit, "How many rejects the page has at most."))
        .query(query("cursor", &cursor, "The `next_cursor` of the page before; empty is none. It goes with the same `shard` and `reason`."))
        .answer(200, "RejectList", "A page of rejects.")
        .problem(422, "bad_cursor")
        .problem(503, "shard_unavailable")
        .problem(503, "shard_damaged")
}

pub fn status() -> Doc {
    Doc::new(TAG, "How the shards are doing")
        .describe(
            "Per shard: who holds it, its state, applied and last sequence, lag, members, and rejected jobs.",
        )
        .answer(200, "Status", "The status.")
        .problems(ANY)
        .problem(422, "bad_parameter")
}

pub fn healthz() -> Doc {
    plain("Whether the process is alive").answer_as(200, "text/plain; charset=utf-8", &text("ok\n"), "It is.")
}

pub fn readyz() -> Doc {
    plain("Whether the node is ready")
        .answer_as(
            200,
            "text/plain; charset=utf-8",
            &json!({"type": "string", "pattern": "^ready(, degraded)?\n", "examples": ["ready\n"]}),
            "Every shard is live and its lag under the limit. `ready, degraded` on the first line: publishers are refused, or are about \
             to be, because a shard's stream is full or nearly so, or files of a shard are damaged; the lines that follow say which. Reads \
             are answered and what is in the stream is applied, and other nodes have the same stream: so the node stays in service.",
        )
        .problem(503, "not_ready")
}

pub fn metrics() -> Doc {
    let schema = json!({"type": "string"});
    Doc::new(TAG, "Metrics for Prometheus").describe("Is answered by an overloaded node too.").answer_as(
        200,
        "text/plain; version=0.0.4; charset=utf-8",
        &schema,
        "All metrics, as Prometheus reads them.",
    )
}

pub fn openapi() -> Doc {
    plain("This document")
        .answer_as(200, "application/json", &json!({"type": "object"}), "OpenAPI 3.1.")
        .problem(503, "overloaded")
}

pub fn docs() -> Doc {
    let schema = json!({"type": "string"});
    plain("This document, to read")
        .answer_as(200, "text/html; charset=utf-8", &schema, "A page without scripts.")
        .problem(503, "overloaded")
}

/// An operation that needs no token, and that an overloaded node answers too.
fn plain(summary: &'static str) -> Doc {
    Doc::new(TAG, summary)
        .describe("Needs no token, and is answered by a node with too many requests in work too.")
}

fn text(content: &str) -> serde_json::Value {
    json!({"type": "string", "const": content})
}

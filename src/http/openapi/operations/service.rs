//! For operators and their tools.

use serde_json::json;

use crate::http::openapi::doc::{Doc, Scope};
use crate::http::openapi::problems::ANY;

const TAG: &str = "Service";

pub fn status() -> Doc {
    Doc::new(TAG, Scope::Read, "How the shards are doing")
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
            &text("ready\n"),
            "Every shard is live and its lag under the limit.",
        )
        .problem(503, "not_ready")
}

pub fn metrics() -> Doc {
    let schema = json!({"type": "string"});
    Doc::new(TAG, Scope::Read, "Metrics for Prometheus")
        .describe("Is answered by an overloaded node too.")
        .answer_as(
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

/// What is answered without a token, and by an overloaded node too.
fn plain(summary: &'static str) -> Doc {
    Doc::new(TAG, Scope::Open, summary)
        .describe("Needs no token, and is answered by a node with too many requests in work too.")
}

fn text(content: &str) -> serde_json::Value {
    json!({"type": "string", "const": content})
}

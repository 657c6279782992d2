//! For operators and their tools.

use serde_json::json;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::{read, write};
use crate::http::openapi::parameters::query;
use crate::http::openapi::problems::ANY;
use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::jobs::reject_codes;
use crate::http::resources::lists::{PAGE, PAGE_MAX};
use crate::http::resources::rejects::REJECTS;
use crate::types::MAX_SHARDS;

const TAG: &str = "Service";

pub fn rejects() -> Doc {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": REJECTS});
    let shard = json!({"type": "integer", "minimum": 0, "maximum": MAX_SHARDS - 1});
    let cursor = json!({"type": "string", "pattern": "^[0-9a-f.-]*$"});
    read(TAG, "Jobs that were refused")
        .describe(
            "Newest first: by the time at which each was refused, then by shard, then by its place in the \
             shard's queue. The list has jobs that came over HTTP or NATS, including jobs that were \
             published to another shard than their member's, and messages that are not jobs. A request \
             that was refused as a whole (422) is not listed. Each shard keeps its latest 100,000 \
             rejects.\n\nA request reads at most 1,000 rejects more than `limit`, so that a page can be \
             short or empty if filters leave many out: there are more as long as the answer has a \
             `next_cursor`. Jobs that are refused after the first page was read are not on the pages that \
             follow it. With a token that is confined to some boards, the list has only jobs that name \
             these boards alone.\n\nIf no node answers for a shard, a list of all is refused, unless `partial` \
             is true: then `missing` names the shard.",
        )
        .query(query("shard", &shard, "Only rejects of this shard."))
        .query(query("reason", &json!({"enum": reject_codes()}), "Only rejects for this reason."))
        .query(query(
            "member",
            &component("MemberId"),
            "Only rejects of this member: those that the erasure of the member reaches. Of what is no readable \
             job, those are listed in which the id stands as a JSON string.",
        ))
        .query(query("limit", &limit, "How many rejects the page has at most."))
        .query(query("cursor", &cursor, "The `next_cursor` of the page before; empty means the first page. Send it with the same `shard`, `reason` and `member`."))
        .answer(200, "RejectList", "A page of rejects.")
        .problem(422, "bad_cursor")
        .problem(422, "bad_member")
        .problem(503, "shard_damaged")
}

pub fn hidden() -> Doc {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE});
    let cursor = json!({"type": "string", "pattern": "^([0-9a-f]{2})*$"});
    read("Moderation", "Who is hidden")
        .describe(
            "The bans that `hide` has made and no `show` has ended: those of all boards first, with a \
             `board` of `null`, then those of each board by its name; each by the bytes of the member's id. \
             A ban is of a board's name, and outlasts the board. With a token that is confined to some \
             boards, the list has the bans of these boards alone.",
        )
        .query(query(
            "board",
            &component("BoardName"),
            "Only bans that hold on this board: its own, and those of all boards.",
        ))
        .query(query("member", &component("MemberId"), "Only bans of this member."))
        .query(query("limit", &limit, "How many bans the page has at most."))
        .query(query("cursor", &cursor, "The `next_cursor` of the page before; empty means the first page."))
        .answer(200, "HiddenList", "A page of bans.")
        .problem(422, "bad_member")
}

pub fn status() -> Doc {
    Doc::new(TAG, "The status of the shards")
        .describe(
            "For each shard, on this node or on others: which nodes own it, its state, applied and last sequence, lag, members, and rejected jobs.",
        )
        .answer(200, "Status", "The status.")
        .problems(ANY)
        .problem(422, "bad_parameter")
}

pub fn set_read_only() -> Doc {
    write(TAG, "Make the service or a board read-only, or writable again")
        .describe(
            "With `readonly` true, writes are refused with 403 `read_only` and the `reason`, until a request with \
             `readonly` false: those of the board, or without `board` those of all boards, boards to come included. \
             The same holds on every node, and after a restart. Jobs that come over the stream of NATS are rejected \
             with `read_only` from the sequence in the `token` on. A request that is sent once more changes \
             nothing; another reason takes the place of the one before.\n\nA service that is read-only takes \
             nothing at all: no jobs, definitions, seasons, clears, trims and drops, and no bans and no removals of a \
             member everywhere. A board that is read-only takes no scores, removals, definitions and seasons, and \
             is not cleared, trimmed or dropped; `hide` and `show` act on it, and so do removals of a member \
             everywhere. A definition that changes nothing is answered as ever. What goes by time goes on: seasons \
             and other windows begin and end, and entries expire. A token that is confined to some boards may \
             change these alone.",
        )
        .body("ReadOnlyInput", true, "What is to be read-only, and why.")
        .answer(200, "ReadOnlySet", "It is so on every shard.")
        .problem(403, "forbidden_board")
        .problem(404, "unknown_board")
        .problem(504, "not_yet_applied")
}

pub fn healthz() -> Doc {
    plain("Whether the process is alive").answer_as(
        200,
        "text/plain; charset=utf-8",
        &text("ok\n"),
        "The process is alive.",
    )
}

pub fn readyz() -> Doc {
    plain("Whether the node is ready")
        .answer_as(
            200,
            "text/plain; charset=utf-8",
            &json!({"type": "string", "pattern": "^ready(, degraded)?\n", "examples": ["ready\n"]}),
            "Every shard is live and its lag is under the limit. If the first line is `ready, degraded`, \
             something needs an operator, such as a shard's stream that is nearly full, so that publishers \
             are refused or will be soon, or files that are damaged; the lines that follow say what, and \
             `degraded` of `/v1/status` lists what it may be. A degraded node stays in service, because it \
             answers reads and applies what is in the stream, and other nodes have the same stream.",
        )
        .problem(503, "not_ready")
}

pub fn metrics() -> Doc {
    let schema = json!({"type": "string"});
    Doc::new(TAG, "Metrics for Prometheus")
        .describe(
            "An overloaded node answers this, too. The figures are of all boards together: a token that is \
             confined to some boards is refused.",
        )
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

/// An operation that needs no token, and that an overloaded node answers too.
fn plain(summary: &'static str) -> Doc {
    Doc::new(TAG, summary)
        .describe("Needs no token. A node with too many requests in progress answers this, too.")
}

fn text(content: &str) -> serde_json::Value {
    json!({"type": "string", "const": content})
}

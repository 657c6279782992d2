//! The node, and what goes wrong.

use serde_json::{Value, json};

use crate::board::MAX_REASON_BYTES;
use crate::http::openapi::problems::PROBLEMS;
use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::jobs::reject_codes;
use crate::http::openapi::schemas::parts::{
    AS_OF_PATTERN, array, as_of, count, missing, object, object_with, stale,
};
use crate::operations::QueueLevel;

/// Fields that a shard has only with NATS, only on a node that owns it, or only for a token of all boards.
const OF_SOME_ONLY: [&str; 9] = [
    "copying",
    "parked",
    "stream",
    "applied_sequence",
    "last_sequence",
    "lag",
    "members",
    "rejects",
    "checkpoint_sequence",
];

/// A reason for being read-only.
fn reason() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": MAX_REASON_BYTES,
           "description": "Text without control characters."})
}

#[expect(clippy::too_many_lines, reason = "a list of schemas")]
pub fn schemas() -> Value {
    let shard = json!({
        "shard": count("Its number."),
        "owner": {"enum": ["local", "remote"], "description": "`local`: this node owns it. `remote`: it does not; the fields that tell of its files and its stream are absent, and `owners` tells of the nodes that own it."},
        "state": {"enum": ["live", "catching_up", "halted", "silent", "unknown", "no_owner"], "description": "Of a `remote` shard the best of its owners' states, or `no_owner`."},
        "reason": {"type": ["string", "null"], "description": "Why it is not live."},
        "damage": {"type": ["string", "null"], "description": "Which of its files were found damaged since the start, and what to do."},
        "applied_sequence": count("The last sequence that is applied."),
        "last_sequence": count("The last sequence in its queue, as far as it is known."),
        "lag": count("Messages that are not applied yet."),
        "members": count("Members that the shard knows."),
        "rejects": count("Jobs that were rejected since the shard was created."),
        "parked": count("With NATS: jobs that wait for their board to be defined."),
        "stream": {
            "description": "With NATS: how full its stream is; `null` until it was first read.",
            "anyOf": [component("Stream"), {"type": "null"}]
        },
        "copying": {
            "description": "With NATS: the copy of another node's data that is being fetched; `null` if none is.",
            "anyOf": [component("Copying"), {"type": "null"}]
        },
        "checkpoint_sequence": count("What the last checkpoint holds."),
        "owners": array(component("Owner"))
    });
    let required: Vec<String> = shard
        .as_object()
        .map(|fields| fields.keys().filter(|name| !OF_SOME_ONLY.contains(&name.as_str())).cloned().collect())
        .unwrap_or_default();
    let levels = [QueueLevel::Roomy, QueueLevel::NearlyFull, QueueLevel::Full].map(QueueLevel::name);
    let held = |text: &str| {
        object(text, json!({"messages": count("Messages."), "bytes": count("Bytes, estimated.")}))
    };
    let limit = |text: &str| json!({"type": ["integer", "null"], "minimum": 0, "description": text});
    let codes: Vec<&str> = PROBLEMS.iter().map(|problem| problem.code).collect();
    json!({
        "Shard": object_with("The state of a shard.", shard.clone(), &required),
        "Stream": object(
            "How full a shard's stream is, as it was read a second ago or less. The bytes of the parts are estimates.",
            json!({
                "level": {"enum": levels, "description": "`nearly_full` from seven eighths on; `full`: publishers are refused."},
                "reason": {"type": ["string", "null"], "description": "What is wrong with the settings of the stream, or that there is no stream of rejects; otherwise what holds the stream's messages. And what to do. `null` if nothing is wrong and it is `roomy`."},
                "held_for": {"type": ["string", "null"], "description": "Which other node messages are held for, or why that is unknown; `null` if none are."},
                "bytes": count("Bytes in the stream."),
                "bytes_max": limit("Bytes that the stream may hold; `null`: no limit."),
                "messages": count("Messages in the stream."),
                "messages_max": limit("Messages that the stream may hold; `null`: no limit."),
                "held_by": object("Why messages are still in the stream. Each is counted once, under the first of these reasons that applies.", json!({
                    "lag": held("Not applied yet."),
                    "checkpoint": held("In no checkpoint yet."),
                    "duplicate_window": held("Younger than the stream's duplicate window, or not known to be older."),
                    "nodes": held("Needed by another node, whose last checkpoint does not hold them."),
                    "keep": held("Kept by `--nats-keep`, or never purged because of `--nats-no-purge`.")
                }))
            })
        ),
        "HiddenList": object_with(
            "Bans. `next_cursor` is the cursor of the next page, and `null` at the end.",
            json!({
                "hidden": array(component("Ban")),
                "next_cursor": {"type": ["string", "null"], "pattern": "^[0-9a-f]+$"},
                "as_of": as_of(), "stale": stale(), "missing": missing()
            }),
            &["hidden", "next_cursor", "as_of"].map(str::to_owned)
        ),
        "Ban": object("Who is hidden.", json!({
            "member": component("MemberId"),
            "board": {
                "description": "On which board, in all its instances; `null`: on all boards, those to come included.",
                "anyOf": [component("BoardName"), {"type": "null"}]
            },
            "since": component("Time")
        })),
        "Status": object(
            "The state of the node. A token that is confined to some boards is not told what counts the members and jobs of all boards: its shards lack `members`, `rejects`, `parked`, `stream` and `copying`, and have `null` as `reason` and `damage`.",
            json!({
                "version": {"type": "string"},
                "ready": {"type": "boolean", "description": "Every shard that the node owns is live, and its lag is under the limit; after the lag has exceeded the limit, it must fall below half of it."},
                "degraded": {"type": "boolean", "description": "A shard's stream is full or nearly full or was changed, the stream of rejects is gone, files of a shard are damaged, its time is far ahead of the node's clock, the node's clock is over a second from the NATS server's, no node that runs owns a shard, or jobs have waited over a minute for their board; its `stream` or `damage`, or `/readyz`, says why."},
                "read_only": component("ReadOnly"),
                "auto_create": {"type": "boolean", "description": "Whether a job for a board that does not exist creates it; `--no-auto-create` rejects it."},
                "node": {"type": "string", "description": "The name of this node."},
                "nodes": array(component("KnownNode")),
                "shards": array(component("Shard"))
            })
        ),
        "ReadOnly": {
            "description": "Why and since when writes are refused with `read_only`; `null` if they are taken. Of a board: also while the service is read-only.",
            "anyOf": [
                object("It is read-only.", json!({"reason": reason(), "since": component("Time")})),
                {"type": "null"}
            ]
        },
        "ReadOnlyInput": {
            "type": "object", "additionalProperties": false, "required": ["readonly"],
            "description": "What is to be read-only, and why.",
            "properties": {
                "board": {"anyOf": [component("BoardName"), {"type": "null"}],
                          "description": "Absent: the service, with all boards, those to come included."},
                "readonly": {"type": "boolean", "description": "`false`: it takes writes again."},
                "reason": {"anyOf": [reason(), {"type": "null"}],
                           "description": "Needed where `readonly` is true. Who is refused is told it."}
            }
        },
        "ReadOnlySet": object(
            "Whether it is read-only now.",
            json!({
                "board": {"anyOf": [component("BoardName"), {"type": "null"}]},
                "readonly": {"type": "boolean"},
                "reason": {"type": ["string", "null"]},
                "since": {"anyOf": [component("Time"), {"type": "null"}]},
                "token": {"type": "string", "pattern": AS_OF_PATTERN,
                          "description": "Names every shard, with a sequence from which on that holds there."}
            })
        ),
        "Problem": object_with(
            "An RFC 9457 problem. `code` is stable; `detail` is for people.",
            json!({
                "type": {"type": "string", "description": "`urn:ranktree:problem:` and the code."},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "code": {"enum": codes},
                "detail": {"type": "string"},
                "errors": {
                    "description": "For `POST /v1/jobs`: which jobs are invalid. No job of the request was applied.",
                    "type": "array",
                    "items": object("An invalid job.", json!({
                        "index": count("Its place in the request, counted from 0."),
                        "code": {"enum": reject_codes()},
                        "detail": {"type": "string"}
                    }))
                },
                "token": {"type": "string", "pattern": AS_OF_PATTERN, "description": "For `POST /v1/jobs` that failed in part: names the jobs that were stored. Absent if none was."},
                "results": {"description": "For `POST /v1/jobs` that failed in part: the outcome of each job.",
                            "type": "array", "items": component("JobResult")},
                "shards": {"description": "For `/readyz`: the state of each shard that the node owns. A node \
                                           that asks for tokens shows `shard` and `state` only; \
                                           `/v1/status` has the rest. Otherwise: the numbers of the \
                                           shards that no node answers for, or that this node does not \
                                           own.",
                           "type": "array",
                           "items": {"anyOf": [
                               {"type": "integer", "minimum": 0},
                               object_with("The state of a shard.", shard.clone(), &["shard", "state"])
                           ]}}
            }),
            &["type", "title", "status", "code", "detail"]
        )
    })
}

/// The nodes on the same streams, and what goes on between them.
pub fn nodes() -> Value {
    let limit = |text: &str| json!({"type": ["integer", "null"], "minimum": 0, "description": text});
    json!({
        "Copying": object(
            "A copy of a shard on its way from another node.",
            json!({
                "from": {"type": "string", "description": "The node that gives it."},
                "bytes": count("Bytes that have arrived. Once all have, the copy is checked and loaded."),
                "total": count("Bytes of all files.")
            })
        ),
        "Owner": object(
            "A node that owns a shard, as of what was last heard of it.",
            json!({
                "node": {"type": "string", "description": "Its name."},
                "state": {"enum": ["live", "catching_up", "halted", "silent", "unknown"], "description": "`silent`: nothing was heard of the node for ten seconds. `unknown`: the node is alive and does not say."},
                "applied_sequence": limit("The last sequence that it has applied; `null`: unknown."),
                "lag": limit("Messages that it has not applied yet; `null`: unknown."),
                "checkpoint_sequence": limit("What its last checkpoint holds; `null`: unknown."),
                "hash": {"type": ["string", "null"], "description": "With NATS, the hash of what it has applied, `sequence:hash`: equal on all owners at the same sequence. `null`: unknown."}
            })
        ),
        "KnownNode": object(
            "A node on the same streams.",
            json!({
                "node": {"type": "string", "description": "Its name, which `--node` sets."},
                "address": {"type": ["string", "null"], "description": "Where it answers, as a URL; `null`: unknown."},
                "version": {"type": ["string", "null"], "description": "The version of ranktree that it runs; `null`: unknown."},
                "alive": {"type": "boolean", "description": "Something was heard of it within the last ten seconds."},
                "silent_seconds": count("Time since something was last heard of it."),
                "problem": {"type": ["string", "null"], "description": "Why this node cannot read what the other says of itself, or cannot say anything of itself."}
            })
        )
    })
}

/// Jobs that were refused.
pub fn rejects() -> Value {
    json!({
        "Reject": object(
            "A job that was refused.",
            json!({
                "shard": count("The shard that the job was published to."),
                "sequence": count("Its message's place in the shard's queue."),
                "index": count("Its place in the message, counted from 0."),
                "rejected_at": component("Time"),
                "reason": {"enum": reject_codes(), "description": "Stable; the same code is `rejected` in the job's result."},
                "detail": {"type": "string", "description": "What was wrong with this job, for people to read."},
                "job": {"description": "The job as it was sent. A string if that is not JSON, or was cut to 4 KiB."}
            })
        ),
        "RejectList": object_with(
            "Rejects, newest first.",
            json!({
                "rejects": array(component("Reject")),
                "next_cursor": {"type": ["string", "null"]},
                "missing": missing()
            }),
            &["rejects", "next_cursor"]
        )
    })
}

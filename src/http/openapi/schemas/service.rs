//! The node, and what goes wrong.

use serde_json::{Value, json};

use crate::http::openapi::problems::PROBLEMS;
use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::jobs::reject_codes;
use crate::http::openapi::schemas::parts::{AS_OF_PATTERN, array, count, object, object_with};
use crate::writer::QueueLevel;

pub fn schemas() -> Value {
    let shard = json!({
        "shard": count("Its number."),
        "owner": {"type": "string", "description": "Who holds it; `local`: this node."},
        "state": {"enum": ["live", "catching_up", "halted"]},
        "reason": {"type": ["string", "null"], "description": "Why it is not live."},
        "damage": {"type": ["string", "null"], "description": "What was found damaged of its files since the start, and what to do."},
        "applied_sequence": count("The last sequence that is applied."),
        "last_sequence": count("The last one in its queue, as far as is known."),
        "lag": count("Messages that are not applied yet."),
        "members": count("Members that it knows."),
        "rejects": count("Jobs that it rejected since it was created."),
        "parked": count("With NATS: jobs that wait for their board to be defined."),
        "stream": {
            "description": "With NATS: how full its stream is; `null` until that was looked at.",
            "anyOf": [component("Stream"), {"type": "null"}]
        },
        "checkpoint_sequence": count("What the last checkpoint holds.")
    });
    let with_nats_only = ["parked", "stream"];
    let required: Vec<String> = shard
        .as_object()
        .map(|fields| {
            fields.keys().filter(|name| !with_nats_only.contains(&name.as_str())).cloned().collect()
        })
        .unwrap_or_default();
    let levels = [QueueLevel::Roomy, QueueLevel::NearlyFull, QueueLevel::Full].map(QueueLevel::name);
    let held =
        |text: &str| object(text, json!({"messages": count("How many."), "bytes": count("How much.")}));
    let limit = |text: &str| json!({"type": ["integer", "null"], "minimum": 0, "description": text});
    let codes: Vec<&str> = PROBLEMS.iter().map(|problem| problem.code).collect();
    json!({
        "Shard": object_with("How a shard is doing.", shard.clone(), &required),
        "Stream": object(
            "How full a shard's stream is, as of the last look, a second ago or less. Bytes of a part are estimated.",
            json!({
                "level": {"enum": levels, "description": "`nearly_full` from seven eighths on; `full`: publishers are refused."},
                "reason": {"type": ["string", "null"], "description": "Unless it is `roomy`: what holds its messages, and which setting helps."},
                "bytes": count("What it holds."),
                "bytes_max": limit("What it may hold; `null`: no limit."),
                "messages": count("How many it holds."),
                "messages_max": limit("How many it may hold; `null`: no limit."),
                "held_by": object("What keeps its messages. Each is counted once, under the first that applies.", json!({
                    "lag": held("Not applied yet."),
                    "checkpoint": held("In no checkpoint yet."),
                    "duplicate_window": held("Younger than the stream's duplicate window, or not known to be older."),
                    "keep": held("Kept by `--nats-keep`, or never purged because of `--nats-no-purge`.")
                }))
            })
        ),
        "Status": object(
            "How the node is doing.",
            json!({
                "version": {"type": "string"},
                "ready": {"type": "boolean", "description": "Every shard is live, and its lag under the limit; after a greater one, under half of it."},
                "degraded": {"type": "boolean", "description": "A shard's stream is full or nearly so, or files of a shard are damaged: its `stream` or `damage` says why."},
                "shards": array(component("Shard"))
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
                    "description": "For `POST /v1/jobs`: which jobs are invalid. None of the request was applied.",
                    "type": "array",
                    "items": object("An invalid job.", json!({
                        "index": count("Its place in the request, counted from 0."),
                        "code": {"enum": reject_codes()},
                        "detail": {"type": "string"}
                    }))
                },
                "token": {"type": "string", "pattern": AS_OF_PATTERN, "description": "For `POST /v1/jobs` that failed in part: names what was taken. Absent if nothing was."},
                "results": {"description": "For `POST /v1/jobs` that failed in part: what came of each job.",
                            "type": "array", "items": component("JobResult")},
                "shards": {"description": "For `/readyz`: how the shards are doing. Of a node that asks for tokens `shard` and `state` \
                                           only: `/v1/status` has the rest.",
                           "type": "array", "items": object_with("How a shard is doing.", shard.clone(), &["shard", "state"])}
            }),
            &["type", "title", "status", "code", "detail"]
        )
    })
}

/// Jobs that were refused.
pub fn rejects() -> Value {
    json!({
        "Reject": object(
            "A job that was refused.",
            json!({
                "shard": count("The shard that it came to."),
                "sequence": count("Its message's place in the shard's queue."),
                "index": count("Its place in the message, counted from 0."),
                "rejected_at": {"anyOf": [component("Time"), {"type": "null"}],
                                "description": "The shard's time when it was refused; `null` if it was put down before 0.1."},
                "reason": {"enum": reject_codes(), "description": "Stable; a job that is answered has it as `rejected`."},
                "detail": {"type": "string", "description": "What was wrong with this one, for people."},
                "job": {"description": "The job with its text as it came, or, where that is not JSON or was cut to 4 KiB, a string."}
            })
        ),
        "RejectList": object(
            "Rejects, newest first.",
            json!({"rejects": array(component("Reject")), "next_cursor": {"type": ["string", "null"]}})
        )
    })
}

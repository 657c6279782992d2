//! The node, and what goes wrong.

use serde_json::{Value, json};

use crate::http::openapi::doc::component;
use crate::http::openapi::problems::PROBLEMS;
use crate::http::openapi::schemas::jobs::reject_codes;
use crate::http::openapi::schemas::{array, count, object, object_with};

pub fn schemas() -> Value {
    let shard = json!({
        "shard": count("Its number."),
        "owner": {"type": "string", "description": "Who holds it; `local`: this node."},
        "state": {"enum": ["live", "catching_up", "halted"]},
        "reason": {"type": ["string", "null"], "description": "Why it is not live."},
        "applied_sequence": count("The last sequence that is applied."),
        "last_sequence": count("The last one in its queue, as far as is known."),
        "lag": count("Messages that are not applied yet."),
        "members": count("Members that it knows."),
        "rejects": count("Jobs that it rejected since the start."),
        "parked": count("With NATS: jobs that wait for their board to be defined."),
        "checkpoint_sequence": count("What the last checkpoint holds.")
    });
    let required: Vec<String> = shard
        .as_object()
        .map(|fields| fields.keys().filter(|name| *name != "parked").cloned().collect())
        .unwrap_or_default();
    let codes: Vec<&str> = PROBLEMS.iter().map(|problem| problem.code).collect();
    json!({
        "Shard": object_with("How a shard is doing.", shard.clone(), &required),
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
        ),
        "Status": object(
            "How the node is doing.",
            json!({
                "version": {"type": "string"},
                "ready": {"type": "boolean", "description": "Every shard is live, and its lag under the limit."},
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
                "token": {"type": "string", "description": "For `POST /v1/jobs` that failed in part: names what was applied."},
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

//! Copies of the node's data.

use serde_json::{Value, json};

use crate::http::openapi::schemas::parts::{array, count, object};

pub fn schemas() -> Value {
    let file = object(
        "A file of a snapshot. It does not change.",
        json!({"name": {"type": "string"}, "bytes": count("Its size.")}),
    );
    let shard = object(
        "The copy of a shard.",
        json!({
            "shard": count("Its number."),
            "applied_sequence": count("The copy holds everything up to this sequence of the shard's queue, and nothing after it."),
            "stream": {"type": "string", "description": "Identity of that queue: empty without NATS."},
            "files": array(file)
        }),
    );
    let id = json!({"type": "string", "description": "Names the snapshot in paths."});
    json!({
        "Snapshot": object(
            "A snapshot whose files can be fetched.",
            json!({
                "snapshot": id,
                "version": {"type": "string", "description": "The node's version."},
                "taken_at": {"type": "string", "description": "When the copying began, in UTC."},
                "expires_seconds": count("The snapshot is removed if it is not asked for within so many seconds."),
                "shard_count": count("The number of all shards. A node that does not own all of them copies those that it owns."),
                "shards": array(shard)
            })
        ),
        "DeletedSnapshot": object("A snapshot that is removed.", json!({"snapshot": id}))
    })
}

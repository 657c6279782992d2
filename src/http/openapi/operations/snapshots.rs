//! Copies of the node's data.

use serde_json::json;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::parameters::query;
use crate::http::openapi::problems::ANY;
use crate::http::resources::snapshots::PIECE_BYTES_MAX;
use crate::snapshot::{AT_ONCE, IDLE};

const TAG: &str = "Snapshots";

fn operation(summary: &'static str) -> Doc {
    Doc::new(TAG, summary).problems(ANY).problem(422, "bad_parameter").problem(503, "snapshot_failed")
}

pub fn begin_snapshot() -> Doc {
    operation("Begin a snapshot")
        .describe(format!(
            "Copies the files of every shard, and lists them; `ranktree snapshot` does all of this. The copy \
             of a shard holds everything up to its `applied_sequence`, and is made mostly of hard links, so \
             that it takes little time and space. Reads and writes go on meanwhile; boards are defined, \
             cleared and dropped after it. Fetch the files piece by piece, then delete the snapshot. A node \
             holds {AT_ONCE} snapshots at a time. It removes one that was not asked for within {} seconds, \
             and all of them when it restarts.",
            IDLE.as_secs()
        ))
        .answer(201, "Snapshot", "The files are copied.")
        .problem(409, "too_many_snapshots")
        .problem(422, "unsupported")
}

pub fn snapshot_file() -> Doc {
    let offset = json!({"type": "integer", "minimum": 0, "maximum": u64::MAX, "default": 0});
    let length =
        json!({"type": "integer", "minimum": 1, "maximum": PIECE_BYTES_MAX, "default": PIECE_BYTES_MAX});
    let bytes = json!({"type": "string", "contentMediaType": "application/octet-stream"});
    operation("A piece of a file of a snapshot")
        .describe(
            "The bytes from `offset` on: as many as `length` says, or fewer where the file ends. The header \
             `Ranktree-Crc32c` of the answer has their CRC-32C as eight hexadecimal digits. Files do not \
             change, so a piece that did not arrive can be asked for again.",
        )
        .query(query("offset", &offset, "Where the piece begins."))
        .query(query("length", &length, "How many bytes the piece has at most."))
        .answer_as(200, "application/octet-stream", &bytes, "The piece.")
        .problem(404, "unknown_snapshot")
        .problem(422, "too_large")
}

pub fn delete_snapshot() -> Doc {
    operation("Delete a snapshot")
        .describe("Removes the node's copy. What was fetched of it stays as it is.")
        .answer(200, "DeletedSnapshot", "The copy is removed.")
        .problem(404, "unknown_snapshot")
        .problem(422, "unsupported")
}

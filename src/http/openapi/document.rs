//! The document, made from the routes.

use serde_json::{Map, Value, json};

use crate::http::openapi::operation::Operation;
use crate::http::openapi::{examples, parameters, schemas};

/// How the document begins.
const ABOUT: &str = include_str!("about.md");

/// The document.
pub fn document(operations: &[Operation]) -> Value {
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            let name = operation.name;
            let mut written = operation.doc.write(name, operation.path, operation.needs);
            examples::add(&mut written, name);
            path.insert(operation.method.name().to_owned(), written);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ranktree",
            "summary": "Exact, durable leaderboards of any size.",
            "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
            "version": env!("CARGO_PKG_VERSION")
        },
        "servers": [{"url": "/", "description": "The node that this document comes from."}],
        "tags": [
            {"name": "Boards", "description": "Definitions of boards: create, read, clear, trim, drop; seasons."},
            {"name": "Writes", "description": "Jobs: set a score, improve it, add to it, remove or hide an entry, or keep a profile."},
            {"name": "Entries", "description": "A member's rank, its neighbours, a group of members, and the boards of a member."},
            {"name": "Lists", "description": "Pages of a board's entries, in their order."},
            {"name": "Ranks and counts", "description": "Ranks of any score, scores at any rank, counts between any bounds; all exact."},
            {"name": "Moderation", "description": "Who is hidden."},
            {"name": "Snapshots", "description": "Copies of the node's data, which `ranktree snapshot` fetches."},
            {"name": "Service", "description": "Status, rejected jobs, probes, metrics and this document."}
        ],
        "paths": paths,
        "components": {
            "schemas": schemas::components::all(),
            "parameters": parameters::components(),
            "headers": {
                "RetryAfter": {
                    "description": "After how many seconds to try again.",
                    "required": true,
                    "schema": {"type": "integer", "minimum": 1}
                }
            },
            "securitySchemes": {
                "bearer": {
                    "type": "http", "scheme": "bearer",
                    "description": "A token with the scope that the operation names: `read`, `write` or \
                                    `admin`. A node without configured tokens asks for none, and listens \
                                    on loopback addresses only, unless it was started with `--insecure`."
                }
            }
        }
    })
}

/// The document as it is served and committed.
pub fn json(operations: &[Operation]) -> String {
    write(&document(operations))
}

pub fn write(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("a value of JSON is JSON");
    text.push('\n');
    text
}

//! The OpenAPI 3.1 document of the API, made from the routes, and a page to read it on.
//!
//! Knows: how the parts make a document. What is told of an operation is in `operations`, of values in `schemas`, of
//! what goes wrong in `problems`; `examples` are exchanges with a real node.

mod doc;
mod examples;
mod notation;
pub mod operations;
mod page;
mod parameters;
mod problems;
mod schemas;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub mod validator;

use std::sync::LazyLock;

use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::{Map, Value, json};

pub use doc::Doc;

use crate::http::render::reply::{static_html, static_json};
use crate::http::routing::list::routes;

/// How the document begins.
const ABOUT: &str = include_str!("about.md");

/// Nothing but the page's own style: no scripts, no other site, no frames.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Served {
    json: String,
    page: String,
}

/// Made when it is first asked for: most processes never are.
static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let document = document();
    Served { json: write(&document), page: page::write(&document) }
});

/// The document.
pub fn document() -> Value {
    let mut paths = Map::new();
    for operation in routes().operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            let name = operation.name;
            let mut told = operation.doc.write(name, operation.path);
            examples::add(&mut told, name);
            path.insert(operation.method.name().to_owned(), told);
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
            {"name": "Boards", "description": "Define, look at, empty, drop."},
            {"name": "Writes", "description": "Jobs: scores to set, to better, to add to; removals."},
            {"name": "Entries", "description": "A member's rank, its neighbours, its friends, its other boards."},
            {"name": "Lists", "description": "A board in order."},
            {"name": "Ranks and counts", "description": "Of any score, at any rank, between any bounds; all exact."},
            {"name": "Service", "description": "For operators and their tools."}
        ],
        "paths": paths,
        "components": {
            "schemas": schemas::components(),
            "parameters": parameters::components(),
            "headers": {
                "RetryAfter": {
                    "description": "Seconds after which another try makes sense.",
                    "required": true,
                    "schema": {"type": "integer", "minimum": 1}
                }
            },
            "securitySchemes": {
                "bearer": {
                    "type": "http", "scheme": "bearer",
                    "description": "A token with the scope that the operation names: `read`, `write` or `admin`. A node without any \
                                    tokens configured asks for none, and listens on loopback addresses only unless it was told \
                                    `--insecure`."
                }
            }
        }
    })
}

/// The document as it is served and committed.
#[must_use]
pub fn json() -> String {
    write(&document())
}

fn write(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).expect("a value of JSON is JSON");
    text.push('\n');
    text
}

pub async fn get_json() -> Response {
    static_json(&SERVED.json)
}

pub async fn get_page() -> Response {
    let mut response = static_html(&SERVED.page);
    let policy = HeaderValue::from_static(PAGE_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    let never_guess = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, never_guess);
    response
}

//! The document as it is served: as JSON, and as a page to read.

use std::sync::OnceLock;

use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::http::openapi::operation::Operation;
use crate::http::openapi::{document, page};
use crate::http::render::reply::{static_html, static_json};

/// The page's own style and nothing else: no scripts, no other site, no frames.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Served {
    json: String,
    page: String,
}

/// The document, made when it is first asked for: most processes never are.
fn served(operations: fn() -> Vec<Operation>) -> &'static Served {
    static SERVED: OnceLock<Served> = OnceLock::new();
    SERVED.get_or_init(|| {
        let document = document::document(&operations());
        Served { json: document::write(&document), page: page::write(&document) }
    })
}

pub fn json(operations: fn() -> Vec<Operation>) -> Response {
    static_json(&served(operations).json)
}

pub fn page(operations: fn() -> Vec<Operation>) -> Response {
    let mut response = static_html(&served(operations).page);
    let policy = HeaderValue::from_static(PAGE_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    let never_guess = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, never_guess);
    response
}

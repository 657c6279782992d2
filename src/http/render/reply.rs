//! A finished answer: its status, its kind and its body.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::render::json::Object;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// What Prometheus expects.
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// A finished answer.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    kind: HeaderValue,
    body: Vec<u8>,
}

impl Reply {
    /// One JSON object, 200; `write` adds its members.
    pub fn object(write: impl FnOnce(&mut Object<'_>)) -> Self {
        Self::sized(512, write)
    }

    /// As [`Reply::object`], for about so many bytes.
    pub fn sized(bytes: usize, write: impl FnOnce(&mut Object<'_>)) -> Self {
        let mut body = Vec::with_capacity(bytes);
        let mut object = Object::begin(&mut body);
        write(&mut object);
        object.end();
        Self { status: StatusCode::OK, kind: JSON, body }
    }

    pub fn text(text: &str) -> Self {
        Self { status: StatusCode::OK, kind: TEXT, body: text.into() }
    }

    pub fn metrics(text: String) -> Self {
        Self { status: StatusCode::OK, kind: METRICS, body: text.into_bytes() }
    }

    /// The memory that its body takes.
    pub fn bytes(&self) -> usize {
        self.body.capacity()
    }

    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        body_response(self.status, self.kind, self.body)
    }
}

/// JSON that all answers share.
pub fn static_json(text: &'static str) -> Response {
    body_response(StatusCode::OK, JSON, text)
}

/// An HTML page that all answers share.
pub fn static_html(page: &'static str) -> Response {
    body_response(StatusCode::OK, HTML, page)
}

pub fn body_response(status: StatusCode, kind: HeaderValue, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

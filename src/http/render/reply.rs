//! A finished answer: its status, its kind and its body.

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::http::render::json::Object;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// What Prometheus expects.
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// The header with the CRC-32C of a body, as eight hexadecimal digits.
const CRC32C: HeaderName = HeaderName::from_static("ranktree-crc32c");

/// A finished answer.
#[derive(Debug)]
pub struct Reply {
    status: StatusCode,
    kind: HeaderValue,
    /// The body's checksum, where the answer states it.
    crc32c: Option<u32>,
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
        Self { status: StatusCode::OK, kind: JSON, crc32c: None, body }
    }

    /// A piece of a file, with its checksum in a header.
    pub fn piece(body: Vec<u8>, crc32c: u32) -> Self {
        Self { status: StatusCode::OK, kind: BYTES, crc32c: Some(crc32c), body }
    }

    pub fn text(text: &str) -> Self {
        Self { status: StatusCode::OK, kind: TEXT, crc32c: None, body: text.into() }
    }

    /// The memory that its body takes.
    pub fn bytes(&self) -> usize {
        self.body.capacity()
    }

    /// The body alone.
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }

    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let Self { status, kind, crc32c, body } = self;
        let mut response = body_response(status, kind, body);
        let checksum = crc32c.and_then(|crc32c| HeaderValue::from_str(&format!("{crc32c:08x}")).ok());
        checksum.map(|checksum| response.headers_mut().insert(CRC32C, checksum));
        response
    }
}

/// JSON that all answers share.
pub fn static_json(text: &'static str) -> Response {
    body_response(StatusCode::OK, JSON, text)
}

/// Metrics, whose text several answers may share.
pub fn metrics_response(text: Bytes) -> Response {
    body_response(StatusCode::OK, METRICS, text)
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

//! A finished answer as a connection sends it: status, headers of its own, body. Replies and problems become
//! one, whichever way the request came.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A finished answer.
#[derive(Debug)]
pub struct Finished {
    status: StatusCode,
    kind: HeaderValue,
    /// Headers besides the body's kind, each once. Most answers have none.
    more: Vec<(HeaderName, HeaderValue)>,
    body: Vec<u8>,
}

impl Finished {
    pub fn new(status: StatusCode, kind: HeaderValue, body: Vec<u8>) -> Self {
        Self { status, kind, more: Vec::new(), body }
    }

    /// Adds a header that it does not have yet.
    pub fn add(&mut self, name: HeaderName, value: HeaderValue) {
        self.more.push((name, value));
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers, in the order in which they are sent.
    pub fn headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let more = self.more.iter().map(|(name, value)| (name, value));
        std::iter::once((&header::CONTENT_TYPE, &self.kind)).chain(more)
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub fn into_body(self) -> Vec<u8> {
        self.body
    }
}

impl IntoResponse for Finished {
    fn into_response(self) -> Response {
        let Self { status, kind, more, body } = self;
        let mut response = Response::new(body.into());
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response.headers_mut().extend(more);
        response
    }
}

//! Server-sent events as a body (WHATWG HTML, 9.2 "Server-sent events").
//!
//! Knows: how an event is written, and that its data are shared by all who are sent the same. axum's own
//! events copy their data for each client, so that a thousand clients that do not read would hold as many
//! copies. Must not know: what events say.

use std::convert::Infallible;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};

/// What ends an event, and a comment.
pub const END: &[u8] = b"\n\n";
/// A whole comment.
pub const COMMENT: &[u8] = b":\n\n";

/// An event, or a comment.
pub struct ServerSent {
    /// What comes before the data, up to the space behind `data:`.
    head: String,
    /// One line.
    data: Bytes,
}

impl ServerSent {
    /// # Arguments
    /// `data`: without line breaks, as JSON is written here.
    pub fn event(kind: &'static str, data: Bytes) -> Self {
        debug_assert!(!data.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "one line");
        Self { head: format!("event: {kind}\ndata: "), data }
    }

    /// A comment, by which proxies and clients see that all is well.
    pub fn comment() -> Self {
        Self { head: ":".to_owned(), data: Bytes::new() }
    }

    pub fn id(self, id: impl Display) -> Self {
        self.before(|head| writeln!(head, "id: {id}"))
    }

    /// When a client that loses its connection is to connect again.
    pub fn retry(self, after: Duration) -> Self {
        self.before(|head| writeln!(head, "retry: {}", after.as_millis()))
    }

    fn before(mut self, write: impl FnOnce(&mut String) -> std::fmt::Result) -> Self {
        let mut head = String::new();
        write(&mut head).expect("a String takes it");
        self.head.insert_str(0, &head);
        self
    }

    fn parts(self) -> [Bytes; 3] {
        [Bytes::from(self.head), self.data, Bytes::from_static(END)]
    }
}

/// The answer that is written as long as there are events.
pub fn response(events: impl Stream<Item = ServerSent> + Send + 'static) -> Response {
    let parts = events.flat_map(|event| {
        let parts = event.parts().into_iter().filter(|part| !part.is_empty());
        stream::iter(parts.map(Ok::<_, Infallible>))
    });
    let mut response = Body::from_stream(parts).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(event: ServerSent) -> String {
        String::from_utf8(event.parts().concat()).expect("text")
    }

    #[test]
    fn events_are_written_as_the_standard_has_them() {
        let data = Bytes::from_static(b"{\"total\":1}");
        let event = ServerSent::event("state", data.clone()).id("ff@0:7").retry(Duration::from_secs(2));
        let parts = event.parts();
        assert_eq!(parts[1].as_ptr(), data.as_ptr(), "the data are shared");
        assert_eq!(
            String::from_utf8(parts.concat()).expect("text"),
            "retry: 2000\nid: ff@0:7\nevent: state\ndata: {\"total\":1}\n\n"
        );
        assert_eq!(written(ServerSent::comment()).as_bytes(), COMMENT);
    }
}

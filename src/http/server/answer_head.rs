//! What the head of every answer says, whichever way its request came: added to an answer that hyper sends,
//! and written where a connection answers by itself.

use std::cell::RefCell;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;

use crate::http::render::finished::Finished;

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
/// Ranks move: no answer may be used again, and none may be stored in a shared cache.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
pub const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The same as [`add_common`] adds, where it is written at once.
const COMMON: &[u8] = b"x-content-type-options: nosniff\r\ncache-control: no-store\r\n";
/// How the head of a JSON object begins.
const JSON: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
/// More bytes than most heads have.
const HEAD_BYTES: usize = 256;

/// Adds what every answer says to one that has its own headers already.
pub fn add_common(headers: &mut HeaderMap) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
}

/// The head of an answer in HTTP/1.1, as hyper writes it.
///
/// # Arguments
/// `closes`: no further request is answered on the connection.
/// `room`: how many bytes will be appended.
pub fn write(finished: &Finished, closes: bool, room: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + room);
    let status = finished.status();
    if status == StatusCode::OK {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(status.canonical_reason().unwrap_or("<none>").as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    for (name, value) in finished.headers() {
        field(&mut out, name, value.as_bytes());
    }
    field(&mut out, &header::CONTENT_LENGTH, itoa::Buffer::new().format(finished.body().len()).as_bytes());
    write_end(&mut out, closes);
    out
}

/// Works with the head of a JSON object, 200, that has no headers of its own: the same bytes as those of
/// [`write`].
///
/// # Arguments
/// `body_bytes`: how many bytes its body has.
pub fn with_head_of_json<T>(body_bytes: usize, closes: bool, work: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! {
        static HEAD: RefCell<Vec<u8>> = RefCell::new(Vec::with_capacity(HEAD_BYTES));
    }
    HEAD.with_borrow_mut(|head| {
        head.clear();
        head.extend_from_slice(JSON);
        head.extend_from_slice(itoa::Buffer::new().format(body_bytes).as_bytes());
        head.extend_from_slice(b"\r\n");
        write_end(head, closes);
        work(head)
    })
}

/// What comes behind the body's length.
fn write_end(out: &mut Vec<u8>, closes: bool) {
    out.extend_from_slice(COMMON);
    if closes {
        field(out, &header::CONNECTION, CLOSE.as_bytes());
    }
    out.extend_from_slice(b"date: ");
    write_date(out, Timestamp::now());
    out.extend_from_slice(b"\r\n\r\n");
}

fn field(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes a time as `Date` has it. It changes once a second, and is written once a second by each thread.
fn write_date(out: &mut Vec<u8>, now: Timestamp) {
    thread_local! {
        static WRITTEN: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
    }
    WRITTEN.with_borrow_mut(|(second, text)| {
        if *second != now.as_second() {
            *second = now.as_second();
            *text = DateTimePrinter::new().timestamp_to_rfc9110_string(&now).unwrap_or_default();
        }
        out.extend_from_slice(text.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_as_http_has_it_and_goes_on() {
        for (second, expect) in [
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (784_111_778, "Sun, 06 Nov 1994 08:49:38 GMT"),
            (1_795_305_600, "Sun, 22 Nov 2026 00:00:00 GMT"),
        ] {
            let mut out = Vec::new();
            write_date(&mut out, Timestamp::from_second(second).expect("a time"));
            assert_eq!(String::from_utf8_lossy(&out), expect);
        }
    }
}

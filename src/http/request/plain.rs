//! Requests of the plain form, as nearly all clients send them: HTTP/1.1, all of it in one read and nothing
//! behind it, a path without escapes, at most one body of a stated length, and no header that changes how the
//! connection goes on. They need no more than this to be understood; hyper reads all others.
//!
//! Knows: which requests are beyond doubt. What is not is left to hyper, right or wrong. So nothing is
//! refused here, and this form may leave out what it likes.

use std::mem::MaybeUninit;
use std::ops::Range;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

/// By which other services recognise repeated requests.
pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The most bytes of such a request: longer ones are rare, and may come in several reads.
const PLAIN_BYTES_MAX: usize = 8 << 10;
/// The most headers.
const HEADERS_MAX: usize = 32;
/// The most digits of a body's length.
const LENGTH_DIGITS_MAX: usize = 5;

/// A request of the plain form.
#[derive(Debug)]
pub struct PlainRequest<'b> {
    pub method: Method,
    /// From the request line to the empty line.
    head: &'b [u8],
    /// The path, and the query, if there is one, without the question mark.
    path: &'b str,
    query: Option<&'b str>,
    /// The value of `Host`, which there is once.
    pub host: &'b [u8],
    /// The value of `Origin`, which there is at most once.
    pub origin: Option<&'b [u8]>,
    /// The value of `Authorization`, if there is one and no other.
    pub authorization: Option<&'b [u8]>,
    pub body: &'b [u8],
}

impl<'b> PlainRequest<'b> {
    /// The request that these bytes are, if they are one of the plain form.
    pub fn parse(bytes: &'b [u8]) -> Option<Self> {
        if bytes.len() > PLAIN_BYTES_MAX {
            return None;
        }
        let mut fields = [const { MaybeUninit::uninit() }; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut []);
        let end = httparse::ParserConfig::default().parse_request_with_uninit_headers(
            &mut parsed,
            bytes,
            &mut fields,
        );
        let Ok(httparse::Status::Complete(end)) = end else { return None };
        let method = match parsed.method? {
            "GET" => Method::GET,
            "PUT" => Method::PUT,
            "POST" => Method::POST,
            "DELETE" => Method::DELETE,
            _ => return None,
        };
        let target = parsed.path?;
        if parsed.version != Some(1) || !target.starts_with('/') {
            return None;
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        // What is escaped in a query is read by the handler.
        let is_in_query = |byte| is_plain(byte) || byte == b'%';
        if !path.bytes().all(is_plain) || !query.is_none_or(|query| query.bytes().all(is_in_query)) {
            return None;
        }
        let (mut host, mut origin, mut length, mut authorization) = (None, None, None, None);
        let mut authorizations = 0;
        for field in &*parsed.headers {
            let is_plain = match OfConnection::named(field.name) {
                None => true,
                Some(OfConnection::Host) => host.replace(field.value).is_none(),
                Some(OfConnection::Authorization) => {
                    authorizations += 1;
                    authorization = Some(field.value);
                    true
                }
                Some(OfConnection::Origin) => origin.replace(field.value).is_none(),
                Some(OfConnection::Length) => length.replace(length_of(field.value)?).is_none(),
                Some(OfConnection::Connection) => field.value.eq_ignore_ascii_case(b"keep-alive"),
                Some(OfConnection::Site) => matches!(field.value, b"same-origin" | b"none"),
                Some(OfConnection::Other) => false,
            };
            if !is_plain {
                return None;
            }
        }
        let (head, body) = bytes.split_at_checked(end)?;
        if body.len() != length.unwrap_or(0) {
            return None;
        }
        // Empty lines came before the method.
        if !head.starts_with(method.as_str().as_bytes()) {
            return None;
        }
        let authorization = authorization.filter(|_| authorizations == 1);
        Some(Self { method, head, path, query, host: host?, origin, authorization, body })
    }

    pub fn path(&self) -> &'b str {
        self.path
    }

    pub fn query(&self) -> Option<&'b str> {
        self.query
    }

    /// Its head, to keep; `None` if a header is not UTF-8.
    pub fn to_head(&self) -> Option<PlainHead> {
        let head = std::str::from_utf8(self.head).ok()?;
        // The target comes behind the method and a space.
        let begin = self.method.as_str().len() + 1;
        let path = begin..begin + self.path.len();
        let query = self.query.map(|query| path.end + 1..path.end + 1 + query.len());
        debug_assert_eq!(head.get(path.clone()), Some(self.path), "one space is behind the method");
        Some(PlainHead { method: self.method.clone(), head: head.into(), path, query })
    }
}

/// What a header says that matters to the connection.
enum OfConnection {
    Host,
    Origin,
    Length,
    Connection,
    Authorization,
    /// Where the page is from that has sent it.
    Site,
    /// How a body ends, or when it is sent, or what follows the request; or by which a repeated one would be
    /// recognised, which is refused without its headers being looked through again.
    Other,
}

impl OfConnection {
    fn named(name: &str) -> Option<Self> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        // Most headers are none of these, and most of those have another length.
        match name.len() {
            4 if is("host") => Some(Self::Host),
            6 if is("origin") => Some(Self::Origin),
            14 if is("content-length") => Some(Self::Length),
            14 if is("sec-fetch-site") => Some(Self::Site),
            13 if is("authorization") => Some(Self::Authorization),
            10 if is("connection") => Some(Self::Connection),
            2 if is("te") => Some(Self::Other),
            6 if is("expect") => Some(Self::Other),
            7 if is("upgrade") || is("trailer") => Some(Self::Other),
            17 if is("transfer-encoding") => Some(Self::Other),
            15 if is(IDEMPOTENCY_KEY) => Some(Self::Other),
            _ => None,
        }
    }
}

fn length_of(value: &[u8]) -> Option<usize> {
    if value.is_empty() || value.len() > LENGTH_DIGITS_MAX {
        return None;
    }
    value.iter().try_fold(0, |length: usize, digit| {
        let digit = digit.is_ascii_digit().then(|| usize::from(digit - b'0'))?;
        Some(length * 10 + digit)
    })
}

/// Whether a byte may be in the target of a plain request: what RFC 3986 lets a path and a query consist of,
/// but for escapes.
fn is_plain(byte: u8) -> bool {
    // A bit for each, in place of as many comparisons.
    const PLAIN: u128 = {
        let (mut plain, mut byte) = (0, 0_u8);
        while byte < 128 {
            if matches!(
                byte,
                b'a'..=b'z' | b'A'..=b'Z' | b'&'..=b';' | b'_' | b'~' | b'!' | b'$' | b'=' | b'?' | b'@'
            ) {
                plain |= 1 << byte;
            }
            byte += 1;
        }
        plain
    };
    byte < 128 && (PLAIN >> byte) & 1 == 1
}

/// The head of a request of the plain form, kept while it is answered.
#[derive(Debug)]
pub struct PlainHead {
    pub method: Method,
    head: Box<str>,
    path: Range<usize>,
    query: Option<Range<usize>>,
}

impl PlainHead {
    pub fn path(&self) -> &str {
        self.head.get(self.path.clone()).unwrap_or_default()
    }

    pub fn query(&self) -> Option<&str> {
        self.query.clone().and_then(|query| self.head.get(query))
    }

    /// All headers. Most requests are answered without them, so they are not made before somebody asks.
    pub fn headers(&self) -> HeaderMap {
        let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut fields);
        let parsed_again = parsed.parse(self.head.as_bytes());
        debug_assert!(matches!(parsed_again, Ok(httparse::Status::Complete(_))), "it was parsed before");
        let fields = parsed.headers.iter().filter_map(|field| {
            let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_bytes(field.value).ok()?))
        });
        let mut headers = HeaderMap::new();
        fields.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }
}

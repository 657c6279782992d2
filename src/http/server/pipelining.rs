//! Pipelining: whether a client has begun to send its next request.
//!
//! hyper does not say what it has read in advance. If half a head came with the request before it, the
//! connection would pass for idle. So the bytes are followed as they are read: where a head ends, and how
//! long its body is.

/// Follows the bytes of a connection.
#[derive(Debug, Default)]
pub struct Pipeline {
    head: Head,
    /// The head of the current request has arrived.
    has_head: bool,
    /// What is still to come of the current request's body.
    body: BodyRest,
    /// What came after the current request's head, and is not known to be of its body.
    beyond: Vec<u8>,
    /// hyper understood a head whose end was not found here: nothing is followed any more.
    is_lost: bool,
    /// A request has ended, and hyper was given nothing beyond it, not even an empty line.
    is_even: bool,
}

impl Pipeline {
    /// Follows bytes that were read.
    pub fn read(&mut self, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        self.is_even = false;
        let bytes = bytes.get(self.body.read(bytes)..).unwrap_or_default();
        if self.has_head {
            self.beyond.extend_from_slice(bytes);
        } else if let Some(end) = self.head.end_within(bytes) {
            self.has_head = true;
            self.beyond.extend_from_slice(bytes.get(end..).unwrap_or_default());
        }
    }

    /// Notes that hyper has understood a request's head. Returns whether the head names both a length and
    /// chunks.
    ///
    /// # Arguments
    /// `body`: how many bytes the body has; `None` if it comes in chunks.
    pub fn request_begins(&mut self, body: Option<u64>) -> bool {
        if !self.has_head {
            self.is_lost = true;
            self.beyond.clear();
            return false;
        }
        self.body = body.map_or_else(BodyRest::chunked, BodyRest::Bytes);
        let here = self.body.read(&self.beyond);
        self.beyond.drain(..here);
        self.head.lengths.content_length && self.head.lengths.transfer_encoding
    }

    /// Notes that the request is answered. Returns whether a next request has begun.
    pub fn request_ends(&mut self) -> bool {
        let (body, beyond) = (std::mem::take(&mut self.body), std::mem::take(&mut self.beyond));
        let is_even = !self.is_lost && beyond.is_empty() && body == BodyRest::Bytes(0);
        *self = Self { body, ..Self::default() };
        if !is_even {
            self.read(&beyond);
        }
        self.is_even = is_even;
        self.head.is_begun
    }

    /// Whether the request that ended last came whole, and nothing behind it.
    pub fn is_even(&self) -> bool {
        self.is_even
    }
}

/// What is still to come of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyRest {
    Bytes(u64),
    /// In chunks: the line with the next chunk's size, of which this much is known.
    Size {
        size: u64,
        is_read: bool,
    },
    /// In chunks: this many bytes of a chunk, and then the end of its line.
    Chunk(u64),
    ChunkEnd,
    /// In chunks: the lines behind the last chunk, up to an empty one.
    Trailers {
        is_in_line: bool,
    },
}

impl Default for BodyRest {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl BodyRest {
    fn chunked() -> Self {
        Self::Size { size: 0, is_read: false }
    }

    /// How many of these bytes are the body's. hyper checks whether chunks are well-formed.
    fn read(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some((byte, rest)) = bytes.get(at..).and_then(<[u8]>::split_first) {
            match self {
                Self::Bytes(0) => break,
                Self::Bytes(left) | Self::Chunk(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len() + 1);
                    *left -= u64::try_from(here).unwrap_or(*left);
                    at += here;
                    if *self == Self::Chunk(0) {
                        *self = Self::ChunkEnd;
                    }
                    continue;
                }
                Self::Size { size: 0, .. } if *byte == b'\n' => *self = Self::Trailers { is_in_line: false },
                Self::Size { size, .. } if *byte == b'\n' => *self = Self::Chunk(*size),
                Self::Size { size, is_read } => match char::from(*byte).to_digit(16) {
                    Some(digit) if !*is_read => *size = size.saturating_mul(16).saturating_add(digit.into()),
                    _ => *is_read = true,
                },
                Self::ChunkEnd if *byte == b'\n' => *self = Self::chunked(),
                Self::ChunkEnd => {}
                Self::Trailers { is_in_line: false } if *byte == b'\n' => *self = Self::Bytes(0),
                Self::Trailers { is_in_line } => match *byte {
                    b'\n' => *is_in_line = false,
                    b'\r' => {}
                    _ => *is_in_line = true,
                },
            }
            at += 1;
        }
        at
    }
}

const CONTENT_LENGTH: &[u8] = b"content-length:";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding:";

/// A head as far as it has arrived.
#[derive(Debug, Default)]
struct Head {
    /// Something other than empty lines has arrived.
    is_begun: bool,
    /// The current line is not empty.
    is_in_line: bool,
    /// How the current line begins.
    line: Vec<u8>,
    lengths: Lengths,
}

/// How a head says where its body ends.
#[derive(Debug, Default)]
struct Lengths {
    /// By a length.
    content_length: bool,
    /// By a transfer coding.
    transfer_encoding: bool,
}

impl Lengths {
    /// # Arguments
    /// `line`: how a line of the head begins.
    fn note(&mut self, line: &[u8]) {
        let begins = |name: &[u8]| line.get(..name.len()).is_some_and(|line| line.eq_ignore_ascii_case(name));
        self.content_length |= begins(CONTENT_LENGTH);
        self.transfer_encoding |= begins(TRANSFER_ENCODING);
    }
}

impl Head {
    /// Where the head ends within the next bytes, if it does: after an empty line.
    fn end_within(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let length = rest.iter().position(|byte| *byte == b'\n');
            let line = length.map_or(rest, |length| rest.get(..length).unwrap_or_default());
            if line.iter().any(|byte| *byte != b'\r') {
                (self.is_begun, self.is_in_line) = (true, true);
            }
            let beginning = TRANSFER_ENCODING.len() - self.line.len();
            self.line.extend_from_slice(line.get(..beginning).unwrap_or(line));
            at += length? + 1;
            self.lengths.note(&self.line);
            self.line.clear();
            if !std::mem::take(&mut self.is_in_line) && self.is_begun {
                return Some(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    /// Whether a next request has begun, for all lengths of pieces that the bytes are read in. The request
    /// that is answered has this body, and is known from the end of the first head on.
    fn begins_another(bytes: &str, body: Option<u64>) -> bool {
        let head = bytes.find("\r\n\r\n").map_or(0, |at| at + 4);
        let found: Vec<bool> = (1..=bytes.len())
            .map(|length| {
                let (mut pipeline, mut seen, mut is_known) = (Pipeline::default(), 0, false);
                for piece in bytes.as_bytes().chunks(length) {
                    pipeline.read(piece);
                    seen += piece.len();
                    if seen >= head && !is_known {
                        is_known = true;
                        pipeline.request_begins(body);
                    }
                }
                pipeline.request_ends()
            })
            .collect();
        assert!(found.iter().all(|one| *one == found[0]), "{bytes:?}: {found:?}");
        found[0]
    }

    #[test]
    fn a_next_head_is_distinguished_from_a_body_and_from_empty_lines() {
        let with = |more: &str| format!("{GET}{more}");
        for (bytes, body, expect) in [
            (with(""), 0, false),
            (with("G"), 0, true),
            (with("\r\n\r\n"), 0, false),
            (with("\r\nGET /"), 0, true),
            (with(GET), 0, true),
            (with("{\"score\":\n\n1}"), 13, false),
            (with("{\"score\":\n\n1}P"), 13, true),
            (with("{\"score\":"), 13, false),
            (format!("\r\n{GET}"), 0, false),
        ] {
            assert_eq!(begins_another(&bytes, Some(body)), expect, "{bytes:?}");
        }
    }

    #[test]
    fn a_next_head_is_distinguished_from_a_body_in_chunks() {
        for (body, expect) in [
            ("3\r\nabc\r\n0\r\n\r\nGET", true),
            ("3\r\nabc\r\n0\r\n\r\n", false),
            ("3\r\nabc\r\n0\r\n", false),
            ("3\r\nab", false),
            ("1a;x=5\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n12345\r\n0\r\nx: y\r\nz: 1\r\n\r\n", false),
            ("1A\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n12345\r\n00\r\nx: y\r\n\r\nPUT", true),
        ] {
            assert_eq!(begins_another(&format!("{GET}{body}"), None), expect, "{body:?}");
        }
    }

    #[test]
    fn a_head_with_a_length_and_chunks_is_found_among_pipelined_requests() {
        let head = |fields: &str| format!("PUT / HTTP/1.1\r\nhost: x\r\n{fields}\r\n");
        let chunked = head("transfer-encoding: chunked\r\n");
        let both = head("Content-Length: 3\r\nx-y: z\r\nTRANSFER-ENCODING: chunked\r\n");
        let turned = head("transfer-encoding:chunked\r\ncontent-length:3\r\n");
        let neither = head("x-content-length: 3\r\ntransfer-encodings: chunked\r\n");
        let chunks = "1\r\na\r\n0\r\n\r\n";
        let bytes = [
            &chunked,
            chunks,
            &both,
            chunks,
            &head("content-length: 3\r\n"),
            "abc",
            &turned,
            chunks,
            &neither,
        ]
        .concat();
        for length in [1, 2, 3, 7, 50, bytes.len()] {
            let (mut pipeline, mut found, mut pieces) =
                (Pipeline::default(), Vec::new(), bytes.as_bytes().chunks(length));
            for body in [None, None, Some(3), None, Some(0)] {
                while !pipeline.has_head {
                    pipeline.read(pieces.next().expect("there is more"));
                }
                found.push(pipeline.request_begins(body));
                while pipeline.body != BodyRest::Bytes(0) {
                    pipeline.read(pieces.next().expect("there is more"));
                }
                pipeline.request_ends();
            }
            assert_eq!(found, [false, true, false, true, false], "in pieces of {length}");
        }
    }

    #[test]
    fn pipelined_requests_are_followed_one_after_the_other() {
        let mut pipeline = Pipeline::default();
        pipeline.read([GET, GET, "PUT / HTTP/1.1\n\nab", GET, "GE"].concat().as_bytes());
        for (body, next) in [(0, true), (0, true), (2, true), (0, true)] {
            pipeline.request_begins(Some(body));
            assert_eq!(pipeline.request_ends(), next);
        }
        assert!(!pipeline.is_even());
        pipeline.read(b"T / HTTP/1.1\r\n\r\n");
        pipeline.request_begins(None);
        pipeline.read(b"1\r\na\r\n0\r\n\r\nGE");
        assert!(pipeline.request_ends(), "it is followed on");
    }

    #[test]
    fn what_hyper_was_given_beyond_a_request_is_noticed() {
        for (bytes, body, is_even) in [
            (GET.to_owned(), Some(0), true),
            (format!("{GET}abc"), Some(3), true),
            (format!("{GET}0\r\n\r\n"), None, true),
            (format!("{GET}ab"), Some(3), false),
            (format!("{GET}0\r\n"), None, false),
            (format!("{GET}\r\n"), Some(0), false),
            (format!("{GET}G"), Some(0), false),
            // A head whose end was not found.
            ("GET / HTTP/1.1\r\nhost: x".to_owned(), Some(0), false),
        ] {
            let mut pipeline = Pipeline::default();
            pipeline.read(bytes.as_bytes());
            pipeline.request_begins(body);
            pipeline.request_ends();
            assert_eq!(pipeline.is_even(), is_even, "{bytes:?}");
        }
    }
}

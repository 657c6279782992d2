//! Where requests end among the bytes of a connection, on their way to hyper, which reads them.
//!
//! hyper does not say what it has read in advance. If half a head came with the request before it, the
//! connection would pass for idle. So the bytes are followed as they are read: where a head ends, and how
//! long its body is.
//!
//! The same bytes say whether a head names the end of its body twice, which hyper does not tell, as it takes
//! one of the two away. So what is followed here must never be another request than hyper's: chunks are read
//! by the letter of RFC 9112, section 7.1, and where they are not of that form, or hyper has found a head
//! that was not found here, it is said so ([`Pipeline::knows_body_end`]), and the connection answers no
//! further request.
//!
//! Must not know: what a request asks for. What is found here can only end a connection.

/// Follows the bytes of a connection.
#[derive(Debug, Default)]
pub struct Pipeline {
    head: Head,
    /// The head of the current request has arrived.
    has_head: bool,
    /// Bytes of that head which have arrived, with empty lines before it.
    head_bytes: usize,
    /// What is still to come of the current request's body.
    body: BodyRest,
    /// What came after the current request's head, and is not known to be of its body.
    beyond: Vec<u8>,
    /// hyper understood a head whose end was not found here: nothing is followed any more.
    is_lost: bool,
}

impl Pipeline {
    /// Follows bytes that were read.
    pub fn read(&mut self, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        let bytes = bytes.get(self.body.read(bytes)..).unwrap_or_default();
        if self.has_head {
            self.beyond.extend_from_slice(bytes);
        } else if let Some(end) = self.head.end_within(bytes) {
            self.has_head = true;
            self.head_bytes += end;
            self.beyond.extend_from_slice(bytes.get(end..).unwrap_or_default());
        } else {
            self.head_bytes += bytes.len();
        }
    }

    /// How many bytes of the current request's head have arrived.
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// Notes that hyper has understood a request's head. Returns whether it is in doubt where the body ends:
    /// the head says it more than once, or is not the head that was found here.
    ///
    /// # Arguments
    /// `body`: how many bytes the body has; `None` if it comes in chunks.
    pub fn request_begins(&mut self, body: Option<u64>) -> bool {
        if !self.has_head {
            self.is_lost = true;
            self.beyond.clear();
            return true;
        }
        self.body = body.map_or_else(BodyRest::chunked, BodyRest::Bytes);
        let here = self.body.read(&self.beyond);
        self.beyond.drain(..here);
        self.head.lengths > 1
    }

    /// Whether it is beyond doubt where the current request's body ends. Of one in chunks, all has arrived
    /// then.
    pub fn knows_body_end(&self) -> bool {
        !self.is_lost && matches!(self.body, BodyRest::Bytes(_))
    }

    /// Notes that the request is answered. Returns whether a next request has begun.
    pub fn request_ends(&mut self) -> bool {
        let (body, beyond) = (std::mem::take(&mut self.body), std::mem::take(&mut self.beyond));
        *self = Self { body, ..Self::default() };
        self.read(&beyond);
        self.head.is_begun
    }
}

/// What is still to come of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyRest {
    Bytes(u64),
    /// In chunks: the digits of the next chunk's size, of which there were so many.
    Size {
        size: u64,
        digits: u8,
    },
    /// In chunks: what is behind the size, up to the end of the line.
    Extension(u64),
    /// In chunks: the line feed of the line with the size.
    SizeEnd(u64),
    /// In chunks: this many bytes of a chunk, and then the end of its line.
    Chunk(u64),
    ChunkEnd {
        has_return: bool,
    },
    /// In chunks: a line behind the last chunk, of which something has come or nothing. An empty one ends the
    /// body.
    Trailer {
        is_begun: bool,
    },
    /// In chunks: the line feed of such a line.
    TrailerEnd {
        is_last: bool,
    },
    /// The chunks are not of the form that they must have: nobody knows where they end.
    Unclear,
}

impl Default for BodyRest {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl BodyRest {
    /// The most digits of a chunk's size: more may overflow.
    const SIZE_DIGITS_MAX: u8 = 16;

    fn chunked() -> Self {
        Self::Size { size: 0, digits: 0 }
    }

    /// How many of these bytes are the body's.
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
                        *self = Self::ChunkEnd { has_return: false };
                    }
                }
                Self::Unclear => return bytes.len(),
                _ => {
                    *self = self.after(*byte);
                    at += 1;
                }
            }
        }
        at
    }

    /// What is still to come after a byte that is no chunk's.
    fn after(self, byte: u8) -> Self {
        let is_text = byte == b'\t' || !byte.is_ascii_control();
        match (self, byte) {
            (Self::Size { size, digits }, _)
                if digits < Self::SIZE_DIGITS_MAX && byte.is_ascii_hexdigit() =>
            {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                Self::Size { size: (size << 4) | digit, digits: digits + 1 }
            }
            (Self::Size { size, digits: 1.. }, b';') => Self::Extension(size),
            (Self::Size { size, digits: 1.. } | Self::Extension(size), b'\r') => Self::SizeEnd(size),
            (Self::Extension(size), _) if is_text => Self::Extension(size),
            (Self::SizeEnd(0) | Self::TrailerEnd { is_last: false }, b'\n') => {
                Self::Trailer { is_begun: false }
            }
            (Self::SizeEnd(size), b'\n') => Self::Chunk(size),
            (Self::ChunkEnd { has_return: false }, b'\r') => Self::ChunkEnd { has_return: true },
            (Self::ChunkEnd { has_return: true }, b'\n') => Self::chunked(),
            (Self::Trailer { is_begun }, b'\r') => Self::TrailerEnd { is_last: !is_begun },
            (Self::Trailer { .. }, _) if is_text => Self::Trailer { is_begun: true },
            (Self::TrailerEnd { is_last: true }, b'\n') => Self::Bytes(0),
            _ => Self::Unclear,
        }
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
    /// How often it says where its body ends: by a length, or by a transfer coding.
    lengths: usize,
}

impl Head {
    /// Whether the current line says where the body ends.
    fn is_length(&self) -> bool {
        let begins =
            |name: &[u8]| self.line.get(..name.len()).is_some_and(|line| line.eq_ignore_ascii_case(name));
        begins(CONTENT_LENGTH) || begins(TRANSFER_ENCODING)
    }

    /// Where the head ends within the next bytes, if it does: after an empty line.
    fn end_within(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let length = memchr::memchr(b'\n', rest);
            let line = length.map_or(rest, |length| rest.get(..length).unwrap_or_default());
            if line.iter().any(|byte| *byte != b'\r') {
                (self.is_begun, self.is_in_line) = (true, true);
            }
            let beginning = TRANSFER_ENCODING.len() - self.line.len();
            self.line.extend_from_slice(line.get(..beginning).unwrap_or(line));
            at += length? + 1;
            self.lengths += usize::from(self.is_length());
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
            ("1c;x=5\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n12345\r\n0\r\nx: y\r\nz: 1\r\n\r\n", false),
            ("1C\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n12345\r\n00\r\nx: y\r\n\r\nPUT", true),
        ] {
            assert_eq!(begins_another(&format!("{GET}{body}"), None), expect, "{body:?}");
        }
    }

    #[test]
    fn a_head_that_names_its_bodys_end_twice_is_found_among_pipelined_requests() {
        let head = |fields: &str| format!("PUT / HTTP/1.1\r\nhost: x\r\n{fields}\r\n");
        let chunked = head("transfer-encoding: chunked\r\n");
        let both = head("Content-Length: 3\r\nx-y: z\r\nTRANSFER-ENCODING: chunked\r\n");
        let turned = head("transfer-encoding:chunked\r\ncontent-length:3\r\n");
        let neither = head("x-content-length: 3\r\ntransfer-encodings: chunked\r\n");
        let twice = head("content-length: 0\r\ncontent-length: 0\r\n");
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
            &twice,
        ]
        .concat();
        for length in [1, 2, 3, 7, 50, bytes.len()] {
            let (mut pipeline, mut found, mut pieces) =
                (Pipeline::default(), Vec::new(), bytes.as_bytes().chunks(length));
            for body in [None, None, Some(3), None, Some(0), Some(0)] {
                while !pipeline.has_head {
                    pipeline.read(pieces.next().expect("there is more"));
                }
                found.push(pipeline.request_begins(body));
                while pipeline.body != BodyRest::Bytes(0) {
                    pipeline.read(pieces.next().expect("there is more"));
                }
                pipeline.request_ends();
            }
            assert_eq!(found, [false, true, false, true, false, true], "in pieces of {length}");
        }
    }

    #[test]
    fn chunks_that_are_not_by_the_letter_have_no_known_end() {
        let smuggled = "0\r\n\r\nPUT / HTTP/1.1\r\n\r\n";
        for (chunks, is_known) in [
            ("1\r\na\r\n0\r\n\r\n", true),
            ("00000000000000aF\t;x", false),
            ("1;x=\"y z\"\r\na\r\n000\r\nx: y\tz\r\nu: v\r\n\r\n", true),
            // Not all of it has come.
            ("1\r\na\r\n0\r\nx: y\r\n", false),
            ("1\r\na\r\n0\r\n\r", false),
            ("1\r\na\r\n0\r\nx: y\n\n", false),
            ("1\r\na\r\n0\r\nx: y\n\r\n", false),
            ("1\r\na\r\n0\r\n\n", false),
            ("1\r\na\r\n0\n\n", false),
            ("1\na\r\n0\r\n\r\n", false),
            ("1\r\na\n0\r\n\r\n", false),
            ("1 \r\na\r\n0\r\n\r\n", false),
            ("1;x\ny\r\na\r\n0\r\n\r\n", false),
            ("1\r\nab\r\n0\r\n\r\n", false),
            ("\r\na\r\n0\r\n\r\n", false),
            (";x\r\n\r\n", false),
            ("0x1\r\na\r\n0\r\n\r\n", false),
            ("-1\r\n\r\n", false),
            ("00000000000000001\r\na\r\n0\r\n\r\n", false),
            ("1\r\na\r\n0\r\nx: \0\r\n\r\n", false),
            ("1\r\na\r\n0\r\nx: y\rz\r\n\r\n", false),
        ] {
            for length in [1, 2, 3, 100] {
                let mut pipeline = Pipeline::default();
                pipeline.read(GET.as_bytes());
                assert!(!pipeline.request_begins(None), "{chunks:?}");
                chunks.as_bytes().chunks(length).for_each(|piece| pipeline.read(piece));
                assert_eq!(pipeline.knows_body_end(), is_known, "{chunks:?} in pieces of {length}");
                let was_cut = chunks.ends_with("x: y\r\n") || chunks.ends_with("\n\r");
                if !is_known && !was_cut && length == 100 {
                    pipeline.read(smuggled.as_bytes());
                    assert!(!pipeline.knows_body_end(), "{chunks:?}: it stays so");
                }
            }
        }
        let mut pipeline = Pipeline::default();
        assert!(pipeline.request_begins(Some(0)) && !pipeline.knows_body_end(), "hyper found another head");
    }

    #[test]
    fn the_bytes_of_a_head_are_counted_until_its_request_is_answered() {
        for length in [1, 7, 1_000] {
            let mut pipeline = Pipeline::default();
            let bytes = format!("\r\n{GET}abc{GET}GET /");
            bytes.as_bytes().chunks(length).for_each(|piece| pipeline.read(piece));
            assert_eq!(pipeline.head_bytes(), GET.len() + 2);
            pipeline.request_begins(Some(3));
            assert_eq!(pipeline.head_bytes(), GET.len() + 2, "it is kept while the request is answered");
            pipeline.request_ends();
            assert_eq!(pipeline.head_bytes(), GET.len());
            pipeline.request_begins(Some(0));
            pipeline.request_ends();
            assert_eq!(pipeline.head_bytes(), 5);
            pipeline.read(b"v1");
            assert_eq!(pipeline.head_bytes(), 7);
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
        pipeline.read(b"T / HTTP/1.1\r\n\r\n");
        pipeline.request_begins(None);
        pipeline.read(b"1\r\na\r\n0\r\n\r\nGE");
        assert!(pipeline.request_ends(), "it is followed on");
    }
}

//! What a client has sent beyond the request in work: whether that is the beginning of a next one.
//!
//! hyper does not tell what it has read in advance, and a head that came half with the request before it would pass for an
//! idle connection. So the bytes are followed as they are read: where a head ends, and how long its body is.

/// Bytes on their way in, as far as they must be known.
#[derive(Debug, Default)]
pub struct Ahead {
    head: Head,
    /// The head of the request in work, or about to be, is here.
    is_over: bool,
    /// Of the body of the request in work, what is not here yet.
    body: Rest,
    /// What came after the head, or after the body.
    beyond: Vec<u8>,
    /// A head was understood whose end was not seen here.
    is_lost: bool,
}

impl Ahead {
    /// These were read.
    pub fn read(&mut self, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        let bytes = bytes.get(self.body.read(bytes)..).unwrap_or_default();
        if self.is_over {
            self.beyond.extend_from_slice(bytes);
        } else if let Some(end) = self.head.end_within(bytes) {
            self.is_over = true;
            self.beyond.extend_from_slice(bytes.get(end..).unwrap_or_default());
        }
    }

    /// A request's head is understood; its body has so many bytes, or comes in chunks. Whether the head says both how many
    /// bytes there are and that they come in chunks.
    pub fn request_begins(&mut self, body: Option<u64>) -> bool {
        if !self.is_over {
            self.is_lost = true;
            self.beyond.clear();
            return false;
        }
        self.body = body.map_or_else(Rest::chunked, Rest::Bytes);
        let here = self.body.read(&self.beyond);
        self.beyond.drain(..here);
        self.head.lengths.content_length && self.head.lengths.transfer_encoding
    }

    /// The request is answered. Whether a next one has begun.
    pub fn request_ends(&mut self) -> bool {
        let (body, beyond) = (std::mem::take(&mut self.body), std::mem::take(&mut self.beyond));
        *self = Self { body, ..Self::default() };
        self.read(&beyond);
        self.head.is_begun
    }
}

/// What is still to come of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Bytes(u64),
    /// Of a body in chunks, the line that says how long the next one is; so much of it is read.
    Size {
        size: u64,
        is_read: bool,
    },
    /// Of a chunk, and then the end of its line.
    Chunk(u64),
    ChunkEnd,
    /// The lines behind the last chunk, up to an empty one.
    Trailers {
        is_in_line: bool,
    },
}

impl Default for Rest {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl Rest {
    fn chunked() -> Self {
        Self::Size { size: 0, is_read: false }
    }

    /// How many of these bytes are the body's. Whether chunks are well-formed is for hyper to say.
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

/// A head under way.
#[derive(Debug, Default)]
struct Head {
    /// Empty lines before it are not part of it.
    is_begun: bool,
    /// The line that it is in has something in it.
    is_in_line: bool,
    /// How that line begins.
    line: Vec<u8>,
    lengths: Lengths,
}

/// How a head says where its body ends.
#[derive(Debug, Default)]
struct Lengths {
    /// By its length.
    content_length: bool,
    /// By a coding that says it.
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
    /// Where it ends within the next bytes, if it does: after an empty line.
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

    /// Reads the bytes in pieces of every length, with a request of this body in work from the end of the first head on.
    fn begins_another(bytes: &str, body: Option<u64>) -> bool {
        let head = bytes.find("\r\n\r\n").map_or(0, |at| at + 4);
        let told: Vec<bool> = (1..=bytes.len())
            .map(|length| {
                let (mut ahead, mut seen, mut is_in_work) = (Ahead::default(), 0, false);
                for piece in bytes.as_bytes().chunks(length) {
                    ahead.read(piece);
                    seen += piece.len();
                    if seen >= head && !is_in_work {
                        is_in_work = true;
                        ahead.request_begins(body);
                    }
                }
                ahead.request_ends()
            })
            .collect();
        assert!(told.iter().all(|one| *one == told[0]), "{bytes:?}: {told:?}");
        told[0]
    }

    #[test]
    fn a_next_head_is_told_from_a_body_and_from_nothing() {
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
    fn a_next_head_is_told_from_a_body_in_chunks() {
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
    fn a_head_that_names_both_lengths_is_known_wherever_it_comes() {
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
            let (mut ahead, mut told, mut pieces) =
                (Ahead::default(), Vec::new(), bytes.as_bytes().chunks(length));
            for body in [None, None, Some(3), None, Some(0)] {
                while !ahead.is_over {
                    ahead.read(pieces.next().expect("there is more"));
                }
                told.push(ahead.request_begins(body));
                while ahead.body != Rest::Bytes(0) {
                    ahead.read(pieces.next().expect("there is more"));
                }
                ahead.request_ends();
            }
            assert_eq!(told, [false, true, false, true, false], "in pieces of {length}");
        }
    }

    #[test]
    fn requests_are_followed_one_after_the_other() {
        let mut ahead = Ahead::default();
        ahead.read([GET, GET, "PUT / HTTP/1.1\n\nab", GET, "GE"].concat().as_bytes());
        for (body, next) in [(0, true), (0, true), (2, true), (0, true)] {
            ahead.request_begins(Some(body));
            assert_eq!(ahead.request_ends(), next);
        }
        ahead.read(b"T / HTTP/1.1\r\n\r\n");
        ahead.request_begins(None);
        ahead.read(b"1\r\na\r\n0\r\n\r\nGE");
        assert!(ahead.request_ends(), "it is followed on");
    }
}

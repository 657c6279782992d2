//! Replies, written in the version of the protocol that the connection speaks.
//!
//! Knows: how RESP2 and RESP3 write each kind of value. Must not know: what is replied to.
//!
//! They are kept in pieces: what is sent is free at once, a long reply is never copied because it grows, and
//! the length of an array that is only known at its end is put before it.

use std::collections::VecDeque;

/// How long a piece is, about, in bytes. One value is never cut.
const PIECE_BYTES: usize = 64 << 10;
/// What a new piece takes in memory: it is full as soon as it has reached its length.
const PIECE_CAPACITY: usize = PIECE_BYTES + PIECE_BYTES / 8;
/// What is kept for the next replies when all are sent. Most connections are idle.
const KEPT_BYTES: usize = 16 << 10;

/// The versions of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

impl Protocol {
    pub fn number(self) -> u8 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }
}

/// Replies that are not sent yet, in order.
#[derive(Debug, Default)]
pub struct Replies {
    /// Pieces that take no more.
    full: VecDeque<Vec<u8>>,
    /// What they take in memory, and what is in them, in bytes.
    full_memory: usize,
    full_bytes: usize,
    out: Vec<u8>,
    pub protocol: Protocol,
}

/// A place between two replies, or where one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Full pieces before it.
    pieces: usize,
    /// Bytes before it in its piece.
    bytes: usize,
}

impl Replies {
    /// What they take in memory, in bytes.
    pub fn memory(&self) -> usize {
        self.full_memory + self.out.capacity()
    }

    /// How many bytes they are.
    pub fn len(&self) -> usize {
        self.full_bytes + self.out.len()
    }

    /// The first bytes that are not sent yet; none if all are.
    pub fn first(&self) -> &[u8] {
        self.full.front().unwrap_or(&self.out)
    }

    /// Forgets [`Replies::first`], which is sent.
    pub fn forget_first(&mut self) {
        if let Some(sent) = self.full.pop_front() {
            self.full_memory -= sent.capacity();
            self.full_bytes -= sent.len();
        } else if self.out.capacity() > KEPT_BYTES {
            self.out = Vec::new();
        } else {
            self.out.clear();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self { protocol: self.protocol, ..Self::default() };
    }

    /// Where the next reply begins.
    pub fn mark(&self) -> Mark {
        Mark { pieces: self.full.len(), bytes: self.out.len() }
    }

    /// Forgets what was written behind a mark. Nothing was sent since.
    pub fn truncate(&mut self, Mark { pieces, bytes }: Mark) {
        while self.full.len() > pieces {
            let Some(last) = self.full.pop_back() else { break };
            self.full_memory -= last.capacity();
            self.full_bytes -= last.len();
            self.out = last;
        }
        self.out.truncate(bytes);
    }

    /// Makes what was written behind a mark an array of so many values. Nothing was sent since.
    pub fn insert_array(&mut self, Mark { pieces, bytes }: Mark, values: usize) {
        let mut head = Self { protocol: self.protocol, ..Self::default() };
        head.array(values);
        let inserted = head.out.len();
        match self.full.get_mut(pieces) {
            None => {
                self.out.splice(bytes..bytes, head.out);
            }
            Some(piece) => {
                let before = piece.capacity();
                piece.splice(bytes..bytes, head.out);
                self.full_memory += piece.capacity() - before;
                self.full_bytes += inserted;
            }
        }
    }

    /// All bytes that are not sent yet.
    #[cfg(test)]
    pub fn bytes(&self) -> Vec<u8> {
        self.full.iter().chain([&self.out]).flatten().copied().collect()
    }

    /// A word that says that it is done.
    pub fn word(&mut self, word: &str) {
        self.line(b'+', word.as_bytes());
    }

    pub fn ok(&mut self) {
        self.word("OK");
    }

    /// An error: a code, a space, and words.
    pub fn error(&mut self, text: &str) {
        self.out.push(b'-');
        // What a client has sent may be in it. A line has no ends of lines.
        self.out.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        self.end();
    }

    pub fn integer(&mut self, integer: i64) {
        self.line(b':', itoa::Buffer::new().format(integer).as_bytes());
    }

    pub fn count(&mut self, count: u64) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.end();
    }

    pub fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// A text for people.
    pub fn verbatim(&mut self, text: &str) {
        match self.protocol {
            Protocol::Resp2 => self.text(text),
            Protocol::Resp3 => {
                self.length(b'=', text.len() + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.end();
            }
        }
    }

    /// A score, by its digits.
    pub fn double(&mut self, digits: &str) {
        match self.protocol {
            Protocol::Resp2 => self.text(digits),
            Protocol::Resp3 => self.line(b',', digits.as_bytes()),
        }
    }

    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Nothing where there would be an array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// An array of so many values, which follow.
    pub fn array(&mut self, values: usize) {
        self.length(b'*', values);
    }

    /// A map of so many pairs, which follow.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(2 * pairs),
            Protocol::Resp3 => self.length(b'%', pairs),
        }
    }

    /// A set of so many values, which follow.
    pub fn set(&mut self, values: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(values),
            Protocol::Resp3 => self.length(b'~', values),
        }
    }

    fn length(&mut self, kind: u8, length: usize) {
        self.line(kind, itoa::Buffer::new().format(length).as_bytes());
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.end();
    }

    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
        if self.out.len() >= PIECE_BYTES {
            let full = std::mem::replace(&mut self.out, Vec::with_capacity(PIECE_CAPACITY));
            self.full_memory += full.capacity();
            self.full_bytes += full.len();
            self.full.push_back(full);
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    fn parsed(protocol: Protocol, write: impl FnOnce(&mut Replies)) -> Value {
        let mut replies = Replies { protocol, ..Replies::default() };
        write(&mut replies);
        parse_redis_value(&replies.bytes()).expect("a reply")
    }

    #[test]
    fn a_client_library_reads_what_is_written() {
        use Protocol::{Resp2, Resp3};
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        for protocol in [Resp2, Resp3] {
            assert_eq!(parsed(protocol, Replies::ok), Value::Okay);
            assert_eq!(parsed(protocol, |replies| replies.integer(-7)), Value::Int(-7));
            assert_eq!(parsed(protocol, |replies| replies.text("a\r\nb")), bulk("a\r\nb"));
            assert_eq!(parsed(protocol, Replies::null), Value::Nil);
            assert_eq!(parsed(protocol, Replies::null_array), Value::Nil);
            let error = |replies: &mut Replies| replies.error("ERR syntax error");
            assert!(matches!(parsed(protocol, error), Value::ServerError(_)));
        }
        let pair = |replies: &mut Replies| {
            replies.map(1);
            replies.text("a");
            replies.double("1.5");
        };
        assert_eq!(parsed(Resp2, pair), Value::Array(vec![bulk("a"), bulk("1.5")]));
        assert_eq!(parsed(Resp3, pair), Value::Map(vec![(bulk("a"), Value::Double(1.5))]));
        assert_eq!(parsed(Resp3, |replies| replies.double("-inf")), Value::Double(f64::NEG_INFINITY));
    }

    #[test]
    fn what_is_written_behind_a_mark_becomes_an_array_or_is_forgotten_however_long_it_is() {
        for count in [0, 3, 20_000] {
            let mut replies = Replies::default();
            replies.integer(7);
            let mark = replies.mark();
            for number in 0..count {
                replies.text(&format!("member-{number}"));
            }
            let before = replies.bytes().len();
            replies.insert_array(mark, count);
            let head = format!("*{count}\r\n");
            let bytes = replies.bytes();
            assert_eq!((bytes.len(), replies.len()), (before + head.len(), before + head.len()));
            assert!(bytes.starts_with(format!(":7\r\n{head}").as_bytes()));
            let Value::Array(values) = parse_redis_value(&bytes[4..]).expect("a reply") else { panic!() };
            assert_eq!(values.len(), count);
            replies.truncate(mark);
            assert_eq!((replies.bytes(), replies.len()), (b":7\r\n".to_vec(), 4));
            assert!(replies.memory() <= 3 * PIECE_BYTES, "{}", replies.memory());
        }
    }

    #[test]
    fn replies_that_are_sent_leave_little_memory() {
        let mut replies = Replies::default();
        replies.bulk(&vec![b'x'; 7 << 20]);
        for _ in 0..100 {
            replies.bulk(&[b'y'; 5_000]);
        }
        let (whole, mut sent) = (replies.bytes(), Vec::new());
        assert!(replies.memory() > 7 << 20);
        while !replies.first().is_empty() {
            sent.extend_from_slice(replies.first());
            let before = replies.memory();
            replies.forget_first();
            assert!(replies.memory() <= before);
        }
        assert!(sent == whole, "in order");
        assert!(replies.memory() <= KEPT_BYTES, "{}", replies.memory());
        // One that is short enough keeps its place.
        replies.ok();
        replies.forget_first();
        assert!(replies.memory() > 0 && replies.first().is_empty());
    }

    #[test]
    fn an_error_is_one_line_whatever_it_repeats() {
        let mut replies = Replies::default();
        replies.error("ERR a\r\n+OK\u{0}");
        assert_eq!(replies.bytes(), b"-ERR a  +OK \r\n");
    }
}

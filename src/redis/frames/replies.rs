//! Replies, written in the version of the protocol that the connection speaks.
//!
//! Knows: how RESP2 and RESP3 write each kind of value. Must not know: what is replied to.

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
    out: Vec<u8>,
    pub protocol: Protocol,
}

impl Replies {
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    pub fn clear(&mut self) {
        self.out.clear();
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
    }
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    fn parsed(protocol: Protocol, write: impl FnOnce(&mut Replies)) -> Value {
        let mut replies = Replies { protocol, ..Replies::default() };
        write(&mut replies);
        parse_redis_value(replies.bytes()).expect("a reply")
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
    fn an_error_is_one_line_whatever_it_repeats() {
        let mut replies = Replies::default();
        replies.error("ERR a\r\n+OK\u{0}");
        assert_eq!(replies.bytes(), b"-ERR a  +OK \r\n");
    }
}

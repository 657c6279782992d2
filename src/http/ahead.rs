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
    body_left: u64,
    /// What came after the head, or after the body.
    beyond: Vec<u8>,
    /// The request in work has a body whose length nobody says.
    is_lost: bool,
}

impl Ahead {
    /// These were read.
    pub fn read(&mut self, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        let of_body = usize::try_from(self.body_left).unwrap_or(usize::MAX).min(bytes.len());
        self.body_left -= u64::try_from(of_body).unwrap_or(self.body_left);
        let bytes = bytes.get(of_body..).unwrap_or_default();
        if self.is_over {
            self.beyond.extend_from_slice(bytes);
        } else if let Some(end) = self.head.end_within(bytes) {
            self.is_over = true;
            self.beyond.extend_from_slice(bytes.get(end..).unwrap_or_default());
        }
    }

    /// A request's head is understood; its body has so many bytes, if that is known.
    pub fn request_begins(&mut self, body: Option<u64>) {
        match body {
            Some(length) if self.is_over => {
                let here = usize::try_from(length).unwrap_or(usize::MAX).min(self.beyond.len());
                self.beyond.drain(..here);
                self.body_left = length.saturating_sub(u64::try_from(here).unwrap_or(length));
            }
            _ => {
                self.is_lost = true;
                self.beyond.clear();
            }
        }
    }

    /// The request is answered. Whether a next one has begun.
    pub fn request_ends(&mut self) -> bool {
        let beyond = std::mem::take(&mut self.beyond);
        *self = Self { body_left: self.body_left, ..Self::default() };
        self.read(&beyond);
        self.head.is_begun
    }
}

/// A head under way.
#[derive(Debug, Default)]
struct Head {
    /// Empty lines before it are not part of it.
    is_begun: bool,
    /// The line that it is in has something in it.
    is_in_line: bool,
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
            at += length? + 1;
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
        // Nobody says where the body ends.
        assert!(!begins_another(&with("3\r\nabc\r\n0\r\n\r\nGET"), None));
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
        ahead.read(b"1\r\na\r\n0\r\n\r\n");
        assert!(!ahead.request_ends());
        ahead.read(GET.as_bytes());
        ahead.request_begins(Some(0));
        assert!(!ahead.request_ends(), "it is followed again");
    }
}

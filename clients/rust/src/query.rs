//! How paths and queries are written. Knows nothing of connections.

use std::fmt::Write as _;

use crate::types::Reading;
use crate::{Time, Token};

/// The options of a request, as a query.
pub trait Query {
    /// Writes what was given.
    fn write(&self, pairs: &mut Pairs);
}

/// The options of a read that may wait for writes, and leave out shards.
pub trait HasReading: Query {
    /// What every read may be asked with.
    fn reading(&mut self) -> &mut Reading;
}

/// A query as it is written.
#[derive(Default)]
pub struct Pairs(String);

impl Pairs {
    pub(crate) fn put<P: Parameter + ?Sized>(&mut self, name: &str, value: Option<&P>) {
        if let Some(value) = value {
            self.0.push(if self.0.is_empty() { '?' } else { '&' });
            self.0.push_str(name);
            self.0.push('=');
            value.write(&mut self.0);
        }
    }
}

/// The query of a request, with its question mark, or nothing. It goes on where `begun` ends.
pub(crate) fn query(begun: &str, options: &impl Query) -> String {
    let mut pairs = Pairs(begun.to_owned());
    options.write(&mut pairs);
    pairs.0
}

/// What a parameter may be.
pub trait Parameter {
    /// Writes it, percent-encoded.
    fn write(&self, text: &mut String);
}

impl Parameter for String {
    fn write(&self, text: &mut String) {
        encode(self, text);
    }
}

impl Parameter for Token {
    fn write(&self, text: &mut String) {
        encode(self.as_str(), text);
    }
}

impl Parameter for Time {
    fn write(&self, text: &mut String) {
        encode(self.as_str(), text);
    }
}

macro_rules! plain {
    ($($kind:ty)+) => {
        $(impl Parameter for $kind {
            fn write(&self, text: &mut String) {
                write!(text, "{self}").expect("a string takes everything");
            }
        })+
    };
}

plain!(bool i64 u64 f64);

impl<P: Parameter> Parameter for Vec<P> {
    /// Joined by commas. A comma within an element is percent-encoded.
    fn write(&self, text: &mut String) {
        for (index, element) in self.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            element.write(text);
        }
    }
}

impl Query for () {
    fn write(&self, _: &mut Pairs) {}
}

/// A path of the API.
pub(crate) fn path(parts: &[&str]) -> String {
    let mut text = String::from("/v1");
    for part in parts {
        text.push('/');
        if part.bytes().all(|byte| byte == b'.') {
            // Many programs on the way take the members `.` and `..` for folders.
            text.push_str(&"%2E".repeat(part.len()));
        } else {
            encode(part, &mut text);
        }
    }
    text
}

/// Bytes that are not letters, digits, `-`, `.`, `_` or `~` are percent-encoded.
pub(crate) fn encode(part: &str, text: &mut String) {
    for byte in part.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            _ => write!(text, "%{byte:02X}").expect("a string takes everything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_members_are_one_part_of_a_path() {
        for (member, expected) in [
            ("p42", "p42"),
            ("a/b", "a%2Fb"),
            ("..", "%2E%2E"),
            ("a.b", "a.b"),
            ("日本", "%E6%97%A5%E6%9C%AC"),
            ("%2F ?#+", "%252F%20%3F%23%2B"),
        ] {
            assert_eq!(path(&["members", member]), format!("/v1/members/{expected}"));
        }
    }

    #[test]
    fn lists_are_joined_by_commas() {
        let mut pairs = Pairs::default();
        pairs.put("members", Some(&vec!["a,b".to_owned(), "c".to_owned()]));
        pairs.put("limit", None::<&u64>);
        pairs.put("edges", Some(&vec![-1_i64, 5]));
        assert_eq!(pairs.0, "?members=a%2Cb,c&edges=-1,5");
    }
}

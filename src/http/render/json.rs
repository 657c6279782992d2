//! Writes JSON straight into a buffer.
//!
//! Knows: punctuation, escapes, and that many JSON readers hold numbers in doubles.

use std::fmt::{self, Display, Write as _};

use crate::types::{AsOf, Number, Timestamp};

/// The greatest integer that every JSON reader takes exactly, 2^53 - 1.
const EXACT: u64 = (1 << 53) - 1;

/// An object that is being written. [`Object::end`] closes it.
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Names the next value, which the caller then writes. Names need no escapes.
    #[inline]
    pub fn name(&mut self, name: &str) -> &mut Vec<u8> {
        debug_assert!(
            name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\'),
            "{name}"
        );
        if let Some(piece) = Piece::of(name) {
            self.out.extend_from_slice(if self.empty { piece.first() } else { piece.later() });
        } else {
            self.out.extend_from_slice(if self.empty { b"\"" } else { b",\"" });
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"\":");
        }
        self.empty = false;
        self.out
    }

    pub fn text(&mut self, name: &str, value: &str) {
        text(self.name(name), value);
    }

    #[inline]
    pub fn count(&mut self, name: &str, value: u64) {
        unsigned(self.name(name), value);
    }

    pub fn signed(&mut self, name: &str, value: i64) {
        signed(self.name(name), value);
    }

    pub fn bool(&mut self, name: &str, value: bool) {
        bool(self.name(name), value);
    }

    pub fn time(&mut self, name: &str, value: Timestamp) {
        time(self.name(name), value);
    }

    /// Something that prints without a character that JSON escapes, such as a token.
    pub fn plain(&mut self, name: &str, value: &impl Display) {
        plain(self.name(name), value);
    }

    pub fn null(&mut self, name: &str) {
        self.name(name).extend_from_slice(b"null");
    }

    /// A value as `write` has it, or null if there is none.
    pub fn or_null<T>(&mut self, name: &str, value: Option<T>, write: impl FnOnce(&mut Self, &str, T)) {
        match value {
            Some(value) => write(self, name, value),
            None => self.null(name),
        }
    }

    pub fn object(&mut self, name: &str) -> Object<'_> {
        Object::begin(self.name(name))
    }

    /// Writes a name that may need escapes, such as a board's. Its value is to be written behind it.
    fn name_of(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        text(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// An object by a name that may need escapes.
    pub fn object_of(&mut self, name: &str) -> Object<'_> {
        Object::begin(self.name_of(name))
    }

    /// The same with a text.
    pub fn text_of(&mut self, name: &str, value: &str) {
        text(self.name_of(name), value);
    }

    /// The same with nothing.
    pub fn null_of(&mut self, name: &str) {
        self.name_of(name).extend_from_slice(b"null");
    }

    /// Writes an array, one item after the other.
    pub fn array<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        item: impl FnMut(&mut Vec<u8>, T),
    ) {
        array(self.name(name), items, item);
    }

    /// Writes the members of another object, given as JSON.
    pub fn members(&mut self, object: &str) {
        let inside = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let Some(inside) = inside.map(str::trim).filter(|inside| !inside.is_empty()) else { return };
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.extend_from_slice(inside.as_bytes());
    }

    pub fn end(self) {
        self.out.push(b'}');
    }
}

/// A name with its punctuation. Names are mostly known when this is compiled, and so is then the whole piece:
/// it is appended at once.
struct Piece {
    bytes: [u8; Self::ROOM],
    length: usize,
}

impl Piece {
    const ROOM: usize = 24;

    /// `None` if the name is too long.
    #[inline]
    fn of(name: &str) -> Option<Self> {
        let mut bytes = [0; Self::ROOM];
        let length = name.len() + 4;
        let (start, rest) = bytes.get_mut(..length)?.split_at_mut(2);
        let (middle, end) = rest.split_at_mut(name.len());
        start.copy_from_slice(b",\"");
        middle.copy_from_slice(name.as_bytes());
        end.copy_from_slice(b"\":");
        Some(Self { bytes, length })
    }

    /// Before an object's first value.
    #[inline]
    fn first(&self) -> &[u8] {
        self.later().get(1..).unwrap_or_default()
    }

    /// Before any other value.
    #[inline]
    fn later(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

pub fn array<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, value) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        item(out, value);
    }
    out.push(b']');
}

pub fn text(out: &mut Vec<u8>, value: &str) {
    // Most names of boards and ids of members need no escapes.
    if value.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
        return;
    }
    serde_json::to_writer(out, value).expect("writing to memory does not fail, and every string can be JSON");
}

pub fn time(out: &mut Vec<u8>, value: Timestamp) {
    out.push(b'"');
    value.append_to(out);
    out.push(b'"');
}

pub fn as_of(out: &mut Vec<u8>, value: &AsOf) {
    out.push(b'"');
    value.append_to(out);
    out.push(b'"');
}

pub fn plain(out: &mut Vec<u8>, value: &impl Display) {
    out.push(b'"');
    write!(Text(out), "{value}").expect("writing to memory does not fail");
    out.push(b'"');
}

/// Bytes that text is appended to. As `io::Write` they would be looked at for errors at each piece.
struct Text<'a>(&'a mut Vec<u8>);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

pub fn bool(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// An integer; a decimal string where doubles are no longer exact.
pub fn signed(out: &mut Vec<u8>, value: i64) {
    integer(out, value, value.unsigned_abs());
}

/// A number of a score. JSON has no infinity: it is a string.
pub fn number(out: &mut Vec<u8>, value: Number) {
    match value {
        Number::Integer(integer) => signed(out, integer),
        Number::Float(double) if double.is_infinite() => plain(out, &double),
        float @ Number::Float(_) => float.append_to(out),
    }
}

/// As [`signed`]. Many counts have one digit.
pub fn unsigned(out: &mut Vec<u8>, value: u64) {
    match u8::try_from(value) {
        Ok(digit @ 0..=9) => out.push(b'0' + digit),
        _ => integer(out, value, value),
    }
}

fn integer(out: &mut Vec<u8>, value: impl itoa::Integer, magnitude: u64) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    if magnitude <= EXACT {
        out.extend_from_slice(digits);
    } else {
        out.push(b'"');
        out.extend_from_slice(digits);
        out.push(b'"');
    }
}

/// The shortest text that reads back as this number, which is finite.
pub fn float(out: &mut Vec<u8>, value: f64) {
    serde_json::to_writer(out, &value)
        .expect("writing to memory does not fail, and a float that is not a number becomes null");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_doubles_become_strings() {
        for (value, text) in [
            (0, "0"),
            (-1, "-1"),
            (9_007_199_254_740_991, "9007199254740991"),
            (-9_007_199_254_740_991, "-9007199254740991"),
            (9_007_199_254_740_992, "\"9007199254740992\""),
            (i64::MAX, "\"9223372036854775807\""),
            (i64::MIN, "\"-9223372036854775808\""),
        ] {
            let mut out = Vec::new();
            signed(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    #[test]
    fn integers_of_every_length_have_their_digits() {
        let powers = (0..16).map(|zeros| 10_u64.pow(zeros));
        for value in powers.flat_map(|power| [power - 1, power, power + 1, power / 7 * 5]).chain([EXACT]) {
            let mut out = b"x".to_vec();
            unsigned(&mut out, value);
            signed(&mut out, -i64::try_from(value).expect("it is below 2^53"));
            let minus = if value == 0 { "" } else { "-" };
            assert_eq!(String::from_utf8_lossy(&out), format!("x{value}{minus}{value}"));
        }
    }

    #[test]
    fn objects_nest_and_escape() {
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        object.text("a", "\"\n日本");
        let mut inner = object.object("b");
        inner.count("c", 1);
        inner.null("d");
        inner.end();
        object.array("e", [true, false], bool);
        object.end();
        assert_eq!(
            String::from_utf8_lossy(&out),
            r#"{"a":"\"\n日本","b":{"c":1,"d":null},"e":[true,false]}"#
        );
    }
}

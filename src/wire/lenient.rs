//! Lenient values: JSON values kept as text until it is known what they should be.
//!
//! Knows: JSON's kinds. Must not know: what a job is (`strict`). One bad field of one job in a thousand is
//! then refused with its value as the client sent it, and the other jobs are read. No digit of a number is
//! lost before it can be shown.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::job::MAX_BOARDS_PER_JOB;
use crate::types::{MAX_KEYS, Score, quoted, shown};

/// The text of a field that is present and not null.
#[must_use]
pub fn given(field: Option<&RawValue>) -> Option<&str> {
    field.map(RawValue::get).filter(|text| *text != "null")
}

/// The text of a JSON string; `None` for another kind of value, or for a string whose escapes are no text.
#[must_use]
pub fn text_of(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        serde_json::from_str(json).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inside))
    }
}

/// The score in a JSON value: an integer or decimal string, or an array of 1 to 8 of them.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn score_of(json: &str) -> Result<Score, String> {
    if !json.starts_with('[') {
        return Score::new(&[integer_of(json)?]).map_err(|why| why.to_string());
    }
    let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| key_count(&shown(json)))?;
    let mut keys = [0; MAX_KEYS];
    let Some(given) = keys.get_mut(..items.len()).filter(|keys| !keys.is_empty()) else {
        return Err(key_count(&items.len().to_string()));
    };
    for (key, item) in given.iter_mut().zip(&items) {
        *key = integer_of(item.get())?;
    }
    Score::new(given).map_err(|why| why.to_string())
}

fn key_count(found: &str) -> String {
    format!("a score must have 1 to {MAX_KEYS} keys; got {found}")
}

/// A signed 64-bit integer, or its decimal string.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn integer_of(json: &str) -> Result<i64, String> {
    if let Some(text) = text_of(json) {
        return parse_integer(&text);
    }
    let is_number = json.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if !is_number {
        return Err(format!("{} is neither an integer nor a decimal string", shown(json)));
    }
    if json.contains(['.', 'e', 'E']) {
        return Err(format!(
            "{} has a fraction or an exponent; only exact integers are accepted",
            shown(json)
        ));
    }
    parse_integer(json)
}

/// An unsigned 64-bit integer, or its decimal string; `None` for anything else.
#[must_use]
pub fn unsigned_of(json: &str) -> Option<u64> {
    crate::types::decimal(text_of(json).as_deref().unwrap_or(json))
}

/// A decimal integer: digits, and a minus sign before them if it is negative.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn parse_integer(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{} is not a decimal integer such as 1200", quoted(text)));
    }
    text.parse().map_err(|_| {
        format!("{} is outside the signed 64-bit range, {} to {}", shown(text), i64::MIN, i64::MAX)
    })
}

/// A score as text, keys separated by commas, as queries have it: `1200,90000`.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn parse_score(text: &str) -> Result<Score, String> {
    let mut keys = [0; MAX_KEYS];
    let mut count = 0;
    for part in text.split(',') {
        let Some(key) = keys.get_mut(count) else {
            return Err(key_count(&text.split(',').count().to_string()));
        };
        *key = parse_integer(part)?;
        count += 1;
    }
    let keys = keys.get(..count).unwrap_or_default();
    Score::new(keys).map_err(|why| why.to_string())
}

/// A name in an object.
pub struct Name<'a>(pub Cow<'a, str>);

/// An object's fields in order, repeated ones too. At most one more than [`MAX_BOARDS_PER_JOB`] is kept:
/// enough to see that there are too many.
pub struct JsonFields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(JsonFieldsVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(text.to_owned())))
    }
}

struct JsonFieldsVisitor;

impl<'de> Visitor<'de> for JsonFieldsVisitor {
    type Value = JsonFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<JsonFields<'de>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() <= MAX_BOARDS_PER_JOB {
            match fields.next_entry::<Name<'de>, &'de RawValue>()? {
                Some((Name(name), value)) => kept.push((name, value)),
                None => return Ok(JsonFields(kept)),
            }
        }
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(JsonFields(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_score_is_shown_as_it_was_sent() {
        for (json, expect) in [
            ("1.5", "1.5 has a fraction or an exponent"),
            ("-0.0", "-0.0 has a fraction"),
            ("1e400", "1e400 has a fraction or an exponent"),
            ("-9223372036854775809", "-9223372036854775809 is outside the signed 64-bit range"),
            ("9223372036854775808", "9223372036854775808 is outside the signed 64-bit range"),
            ("\"-9223372036854775809\"", "-9223372036854775809 is outside the signed 64-bit range"),
            ("12345678901234567890123", "12345678901234567890123 is outside"),
            ("\"12 points\"", "\"12 points\" is not a decimal integer such as 1200"),
            ("\"\\u0001\"", "\"\\u{1}\" is not a decimal integer"),
            ("true", "true is neither an integer nor a decimal string"),
            ("{\"a\":\n1}", "{\"a\": 1} is neither"),
            ("[1,null]", "null is neither"),
            ("[1,[2]]", "[2] is neither"),
            ("[]", "a score must have 1 to 8 keys; got 0"),
            ("[1,2,3,4,5,6,7,8,9]", "a score must have 1 to 8 keys; got 9"),
        ] {
            let said = score_of(json).expect_err(json);
            assert!(said.starts_with(expect), "{json}: {said}");
        }
        let long = format!("\"{}\"", "x".repeat(1_000));
        assert!(score_of(&long).expect_err("no number").len() < 150);
        assert_eq!(
            parse_score("1,2,3,4,5,6,7,8,9").expect_err("too many"),
            "a score must have 1 to 8 keys; got 9"
        );
        assert!(parse_score("").expect_err("nothing").starts_with("\"\" is not a decimal integer"));
    }
}

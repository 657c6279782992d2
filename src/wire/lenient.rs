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

/// More digits than a 64-bit integer has.
const INTEGER_DIGITS: i64 = 20;

/// The text of a field that is present and not null.
pub fn given(field: Option<&RawValue>) -> Option<&str> {
    field.map(RawValue::get).filter(|text| *text != "null")
}

/// The text of a JSON string; `None` for another kind of value, or for a string whose escapes are no text.
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
        return match whole_of(json) {
            Some(digits) => parse_integer(&digits).map_err(|_| outside(json)),
            None => Err(format!("{} has a fraction; only exact integers are accepted", shown(json))),
        };
    }
    parse_integer(json)
}

/// The digits of a number with a fraction or an exponent that is whole all the same: `42.0`, `1e3`, `1.5e1`.
/// `None`: it is not whole. Of what is far too large, more digits than fit.
fn whole_of(json: &str) -> Option<String> {
    let (sign, unsigned) = json.strip_prefix('-').map_or(("", json), |unsigned| ("-", unsigned));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some("0".to_owned());
    }
    let significant = digits.trim_end_matches('0');
    // Exponents of more digits than i64 has are of numbers that are far too large, or far too small.
    let far = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent).parse::<i64>().unwrap_or(far);
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let places = i64::try_from(fraction.len()).ok()?;
    let shift = exponent.checked_add(zeros)?.checked_sub(places)?;
    let zeros = usize::try_from(shift.min(INTEGER_DIGITS)).ok()?;
    Some(format!("{sign}{significant}{}", "0".repeat(zeros)))
}

/// An unsigned 64-bit integer, or its decimal string; `None` for anything else.
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
    text.parse().map_err(|_| outside(text))
}

fn outside(text: &str) -> String {
    format!("{} is outside the signed 64-bit range, {} to {}", shown(text), i64::MIN, i64::MAX)
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
    fn numbers_of_json_that_are_whole_are_whole_however_they_are_written() {
        for (json, expect) in [
            ("42", 42),
            ("42.0", 42),
            ("-42.000", -42),
            ("1e3", 1_000),
            ("1E+3", 1_000),
            ("1.5e1", 15),
            ("1200e-2", 12),
            ("-0.0", 0),
            ("0e99999999999999999999", 0),
            ("9223372036854775807.0", i64::MAX),
            ("-9.223372036854775808e18", i64::MIN),
            ("90071992547409930e-1", 9_007_199_254_740_993),
        ] {
            assert_eq!(integer_of(json), Ok(expect), "{json}");
        }
        // A decimal string has digits alone.
        assert!(integer_of("\"42.0\"").is_err());
        assert_eq!(score_of("[42.0,1e3]").map(|score| score.keys().to_vec()), Ok(vec![42, 1_000]));
    }

    #[test]
    fn a_refused_score_is_shown_as_it_was_sent() {
        for (json, expect) in [
            ("1.5", "1.5 has a fraction; only exact integers"),
            ("42.01", "42.01 has a fraction"),
            ("1e-1", "1e-1 has a fraction"),
            ("12e-99999999999999999999", "12e-99999999999999999999 has a fraction"),
            ("1.25e1", "1.25e1 has a fraction"),
            ("1e400", "1e400 is outside the signed 64-bit range"),
            ("9223372036854775808.0", "9223372036854775808.0 is outside the signed 64-bit range"),
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

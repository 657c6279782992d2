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
use crate::types::{Double, MAX_KEYS, Number, Score, quoted, shown};

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

/// The score in a JSON value: a number or its string, or an array of 1 to 8 of them.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn score_of(json: &str) -> Result<Score, String> {
    if !json.starts_with('[') {
        return Score::of_numbers(&[number_of(json)?]).map_err(|why| why.to_string());
    }
    let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| key_count(&shown(json)))?;
    if !(1..=MAX_KEYS).contains(&items.len()) {
        return Err(key_count(&items.len().to_string()));
    }
    let numbers: Vec<Number> = items.iter().map(|item| number_of(item.get())).collect::<Result<_, _>>()?;
    Score::of_numbers(&numbers).map_err(|why| why.to_string())
}

fn key_count(found: &str) -> String {
    format!("a score must have 1 to {MAX_KEYS} keys; got {found}")
}

/// A number of JSON, or a string of one. It is an integer if it is whole and has 64 bits, however a number of
/// JSON is written; of strings, those that have digits alone.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn number_of(json: &str) -> Result<Number, String> {
    if let Some(text) = text_of(json) {
        return parse_number(&text);
    }
    let is_number = json.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if !is_number {
        return Err(format!("{} is neither an integer nor a decimal string", shown(json)));
    }
    let whole = if json.contains(['.', 'e', 'E']) { whole_of(json) } else { Some(json.to_owned()) };
    whole
        .and_then(|digits| digits.parse().ok())
        .map_or_else(|| double_of(json), |whole| Ok(Number::Integer(whole)))
}

/// The double that a number of JSON stands for.
fn double_of(json: &str) -> Result<Number, String> {
    let value: f64 = json.parse().map_err(|_| no_number(json))?;
    if value.is_infinite() {
        return Err(format!("{}, and that of doubles", outside(json)));
    }
    let mantissa = json.split(['e', 'E']).next().unwrap_or(json);
    if value == 0.0 && mantissa.contains(|digit| ('1'..='9').contains(&digit)) {
        return Err(format!("{} has a fraction that no double has", shown(json)));
    }
    Double::new(value).map(Number::Float).ok_or_else(|| no_number(json))
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

/// A number as text: that of an integer has digits, and a minus sign before them if it is negative. That of a
/// double is written as in JSON, or is `inf` or `-inf`.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn parse_number(text: &str) -> Result<Number, String> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().map_or_else(|_| double_of(text), |whole| Ok(Number::Integer(whole)));
    }
    match text {
        "inf" => Ok(Number::Float(Double::INFINITY)),
        "-inf" => Ok(Number::Float(Double::NEGATIVE_INFINITY)),
        _ if unsigned.starts_with(|first: char| first.is_ascii_digit())
            && serde_json::from_str::<&RawValue>(text).is_ok_and(|json| json.get() == text) =>
        {
            double_of(text)
        }
        _ => Err(no_number(text)),
    }
}

fn no_number(text: &str) -> String {
    format!(
        "{} is not a decimal integer such as 1200, nor, for a key of doubles, one such as 0.5 or inf",
        quoted(text)
    )
}

fn outside(text: &str) -> String {
    format!("{} is outside the signed 64-bit range, {} to {}", shown(text), i64::MIN, i64::MAX)
}

/// A score as text, keys separated by commas, as queries have it: `1200,90000`.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn parse_score(text: &str) -> Result<Score, String> {
    let parts = text.split(',').count();
    if parts > MAX_KEYS {
        return Err(key_count(&parts.to_string()));
    }
    let numbers: Vec<Number> = text.split(',').map(parse_number).collect::<Result<_, _>>()?;
    Score::of_numbers(&numbers).map_err(|why| why.to_string())
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
            assert_eq!(number_of(json), Ok(Number::Integer(expect)), "{json}");
        }
        // The string of an integer has digits alone.
        assert_eq!(number_of("\"42.0\"").map(|number| number.integer().is_ok()), Ok(false));
        assert_eq!(score_of("[42.0,1e3]").map(|score| score.keys().to_vec()), Ok(vec![42, 1_000]));
    }

    #[test]
    fn what_is_no_integer_is_a_double() {
        for (json, digits, said) in [
            ("1.5", "1.5", "1.5 has a fraction; only exact integers"),
            ("42.01", "42.01", "42.01 has a fraction"),
            ("12.50", "12.5", "12.5 has a fraction"),
            ("1e-1", "0.1", "0.1 has a fraction"),
            ("\"0.1\"", "0.1", "0.1 has a fraction"),
            ("5e-324", "5e-324", "5e-324 has a fraction"),
            ("1.25e1", "12.5", "12.5 has a fraction"),
            ("\"42.0\"", "42", "\"42.0\" is not a decimal integer"),
            ("1e21", "1e21", "1e21 is outside the signed 64-bit range"),
            ("1.7976931348623157e308", "1.7976931348623157e308", "1.7976931348623157e308 is outside"),
            ("9223372036854775808.0", "9.223372036854776e18", "9223372036854775808 is outside the signed"),
            ("-9223372036854775809", "-9.223372036854776e18", "-9223372036854775808 is outside the signed"),
            ("\"9223372036854775808\"", "9.223372036854776e18", "9223372036854775808 is outside the signed"),
            ("\"inf\"", "inf", "\"inf\" is not a decimal integer such as 1200"),
            ("\"-inf\"", "-inf", "\"-inf\" is not a decimal integer such as 1200"),
        ] {
            let number = number_of(json).expect(json);
            assert_eq!(number.to_string(), digits, "{json}");
            let refused = number.integer().expect_err(json).to_string();
            assert!(refused.starts_with(said), "{json}: {refused}");
        }
    }

    #[test]
    fn a_refused_score_is_shown_as_it_was_sent() {
        for (json, expect) in [
            ("12e-99999999999999999999", "12e-99999999999999999999 has a fraction that no double has"),
            ("1e400", "1e400 is outside the signed 64-bit range"),
            ("-1e400", "-1e400 is outside the signed 64-bit range"),
            ("\"nan\"", "\"nan\" is not a decimal integer"),
            ("\".5\"", "\".5\" is not a decimal integer"),
            ("\"+1.5\"", "\"+1.5\" is not a decimal integer"),
            ("\" 1.5\"", "\" 1.5\" is not a decimal integer"),
            ("\"0x1p3\"", "\"0x1p3\" is not a decimal integer"),
            ("\"Infinity\"", "\"Infinity\" is not a decimal integer"),
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

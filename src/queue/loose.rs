//! Any JSON value, kept just far enough to say what is wrong with it.
//!
//! Knows: JSON's kinds. Must not know: what a job is (`wire`). Reading one never fails on well-formed JSON, so that one
//! bad field of one job in a thousand is told by its place and reason, and the others are read all the same.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::job::MAX_BOARDS_PER_JOB;
use crate::types::{MAX_KEYS, Score};

/// A JSON value. Arrays and objects are cut one past the longest that any field may have: enough to see that they
/// are too long.
#[derive(Debug, Clone, PartialEq)]
pub enum Loose<'a> {
    Null,
    Bool,
    Signed(i64),
    /// Only above `i64::MAX`.
    Unsigned(u64),
    /// A fraction, an exponent, or a number beyond 64 bits.
    Float(f64),
    Text(Cow<'a, str>),
    Array(Vec<Loose<'a>>),
    Object(Vec<(Cow<'a, str>, Loose<'a>)>),
}

impl Loose<'_> {
    /// The score that the value says: an integer or decimal string, or an array of 1 to 8 of them.
    ///
    /// # Errors
    /// What is wrong with it, for a client to read.
    pub fn score(&self) -> Result<Score, &'static str> {
        match self {
            Self::Array(items) => {
                let mut keys = [0; MAX_KEYS];
                let count = items.len();
                if !(1..=MAX_KEYS).contains(&count) {
                    return Err("a score has 1 to 8 keys");
                }
                for (key, item) in keys.iter_mut().zip(items) {
                    *key = item.integer()?;
                }
                Score::new(keys.get(..count).unwrap_or_default()).map_err(|_| "a score has 1 to 8 keys")
            }
            one => Score::new(&[one.integer()?]).map_err(|_| "a score has 1 to 8 keys"),
        }
    }

    /// A signed 64-bit integer, or its decimal string.
    ///
    /// # Errors
    /// What is wrong with it, for a client to read.
    pub fn integer(&self) -> Result<i64, &'static str> {
        match self {
            Self::Signed(value) => Ok(*value),
            // JSON's -0 reaches us as the float of that name.
            Self::Float(zero) if *zero == 0.0 && zero.is_sign_negative() => Ok(0),
            Self::Unsigned(_) => Err("it is outside the signed 64-bit range"),
            Self::Float(_) => {
                Err("it is not an exact 64-bit integer: no fractions, no exponents, no rounding")
            }
            Self::Text(text) => parse_integer(text),
            Self::Null | Self::Bool | Self::Array(_) | Self::Object(_) => {
                Err("it is neither an integer nor a decimal string")
            }
        }
    }

    /// An unsigned 64-bit integer, or its decimal string; `None` for anything else.
    #[must_use]
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Self::Signed(value) => u64::try_from(*value).ok(),
            Self::Unsigned(value) => Some(*value),
            Self::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        }
    }

    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A decimal integer: digits, and a minus sign before them if it is negative.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn parse_integer(text: &str) -> Result<i64, &'static str> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("it is not a decimal integer");
    }
    text.parse().map_err(|_| "it is outside the signed 64-bit range")
}

/// A score as text, keys separated by commas, as queries have it: `1200,90000`.
///
/// # Errors
/// What is wrong with it, for a client to read.
pub fn parse_score(text: &str) -> Result<Score, &'static str> {
    let mut keys = [0; MAX_KEYS];
    let mut count = 0;
    for part in text.split(',') {
        let key = keys.get_mut(count).ok_or("a score has 1 to 8 keys")?;
        *key = parse_integer(part)?;
        count += 1;
    }
    let keys = keys.get(..count).unwrap_or_default();
    Score::new(keys).map_err(|_| "a score has 1 to 8 keys")
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Loose<'de>, E> {
        Ok(Loose::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose<'de>, E> {
        Ok(Loose::Bool)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Loose<'de>, E> {
        Ok(Loose::Signed(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Loose<'de>, E> {
        Ok(i64::try_from(value).map_or(Loose::Unsigned(value), Loose::Signed))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Loose<'de>, E> {
        Ok(Loose::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Loose<'de>, E> {
        Ok(Loose::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose<'de>, E> {
        Ok(Loose::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Loose<'de>, E> {
        Ok(Loose::Text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Loose<'de>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() <= MAX_KEYS {
            match items.next_element()? {
                Some(item) => kept.push(item),
                None => return Ok(Loose::Array(kept)),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Loose<'de>, A::Error> {
        let mut kept = Vec::new();
        while kept.len() <= MAX_BOARDS_PER_JOB {
            match entries.next_entry::<Loose<'de>, Loose<'de>>()? {
                Some((Loose::Text(key), value)) => kept.push((key, value)),
                // JSON has no other keys.
                Some(_) => {}
                None => return Ok(Loose::Object(kept)),
            }
        }
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Object(kept))
    }
}

//! Integers of 64 bits as the service writes them: as JSON numbers, and beyond 2^53 - 1 as strings.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// An integer that may be a string.
pub(crate) struct Integer(pub(crate) i64);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IntegerVisitor)
    }
}

struct IntegerVisitor;

impl Visitor<'_> for IntegerVisitor {
    type Value = Integer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a signed 64-bit integer, or one as a string")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Integer, E> {
        Ok(Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Integer, E> {
        i64::try_from(value).map(Integer).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Integer, E> {
        value.parse().map(Integer).map_err(E::custom)
    }
}

pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Integer::deserialize(deserializer).map(|value| value.0)
}

pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<Integer>::deserialize(deserializer)?.map(|value| value.0))
}

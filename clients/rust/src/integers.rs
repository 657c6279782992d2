//! Integers of 64 bits as the service writes them: as JSON numbers, and beyond 2^53 - 1 as strings.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An exact integer; `None` of anything else.
pub(crate) fn read(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

// By way of `Value`, because a number is a map to visitors where somebody has turned on the feature
// `arbitrary_precision` of serde_json.
pub(crate) fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    read(&value).ok_or_else(|| D::Error::custom(format!("{value} is no signed 64-bit integer")))
}

pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        value => required(value).map(Some).map_err(D::Error::custom),
    }
}

//! The components' schemas: what requests bring and answers hold.
//!
//! Values here, the rest by what it is about. Limits come from where they are kept; names of operations, policies and rejects from where they are read. A test
//! compares every answer of the other tests of `http` with these, closed to any further name.

#![allow(clippy::needless_pass_by_value, reason = "a schema is made to be put into another")]

mod boards;
mod entries;
mod jobs;
mod service;

pub use jobs::reject_codes;

use serde_json::{Map, Value, json};

use crate::http::openapi::doc::component;
use crate::job::MAX_METADATA_BYTES;
use crate::types::{MAX_BOARD_BYTES, MAX_KEYS, MAX_MEMBER_BYTES};

const BOARD_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$";
const MEMBER_PATTERN: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";
const AS_OF_PATTERN: &str = "^(0|[1-9][0-9]*):(0|[1-9][0-9]*)(,(0|[1-9][0-9]*):(0|[1-9][0-9]*))*$";

/// All of them, in the order in which they are told.
pub fn components() -> Value {
    let mut all = Map::new();
    for group in [
        values(),
        boards::schemas(),
        boards::removals(),
        jobs::inputs(),
        jobs::answers(),
        entries::schemas(),
        entries::ranks(),
        service::rejects(),
        service::schemas(),
    ] {
        if let Value::Object(schemas) = group {
            all.extend(schemas);
        }
    }
    Value::Object(all)
}

/// An object whose listed fields are all there.
fn object(description: &str, properties: Value) -> Value {
    let required: Vec<String> =
        properties.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    object_with(description, properties, &required)
}

/// An object of which some fields may be absent.
fn object_with(description: &str, properties: Value, required: &[impl AsRef<str>]) -> Value {
    let required: Vec<&str> = required.iter().map(AsRef::as_ref).collect();
    json!({"type": "object", "description": description, "required": required, "properties": properties})
}

fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

fn ordinal(description: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": description})
}

fn array(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn stale() -> Value {
    json!({
        "type": "boolean", "enum": [true],
        "description": "There, and true, while a shard applies nothing: the answer is exact at `as_of` and may be behind."
    })
}

fn as_of() -> Value {
    component("AsOf")
}

fn values() -> Value {
    let decimal = |format: &str, pattern: &str, text: &str| json!({"type": "string", "format": format, "pattern": pattern, "description": text});
    let signed = json!({"type": "integer", "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX});
    json!({
        "BoardName": {
            "type": "string", "pattern": BOARD_PATTERN, "minLength": 1, "maxLength": MAX_BOARD_BYTES,
            "description": "A board's name.", "examples": ["arena"]
        },
        "MemberId": {
            "type": "string", "pattern": MEMBER_PATTERN, "minLength": 1, "maxLength": MAX_MEMBER_BYTES,
            "description": format!(
                "Who holds a score: 1 to {MAX_MEMBER_BYTES} **bytes** of UTF-8 without control characters. Spaces, dots and \
                 slashes are welcome."
            ),
            "examples": ["p42"]
        },
        "IntegerInput": {
            "description": "A signed 64-bit integer, exact: a JSON integer, or a decimal string for clients whose numbers \
                            are doubles. Fractions, exponents, plus signs and numbers beyond 64 bits are refused.",
            "anyOf": [signed, decimal("int64", "^-?[0-9]+$", "The same in decimal.")]
        },
        "Integer": {
            "description": "A signed 64-bit integer; beyond ±(2^53-1) a decimal string, because many JSON readers would round it.",
            "anyOf": [
                {"type": "integer", "minimum": -9_007_199_254_740_991_i64, "maximum": 9_007_199_254_740_991_i64},
                decimal("int64", "^-?[0-9]{16,19}$", "Beyond what doubles hold exactly.")
            ]
        },
        "ScoreInput": {
            "description": format!("A score: one integer, or an array of 1 to {MAX_KEYS}, as many as the board has keys."),
            "anyOf": [
                component("IntegerInput"),
                {"type": "array", "minItems": 1, "maxItems": MAX_KEYS, "items": component("IntegerInput")}
            ]
        },
        "Score": {
            "description": "A score: one integer on boards of one key, an array on others.",
            "anyOf": [
                component("Integer"),
                {"type": "array", "minItems": 2, "maxItems": MAX_KEYS, "items": component("Integer")}
            ]
        },
        "Version": {
            "description": "An unsigned 64-bit integer, or its decimal string.",
            "anyOf": [
                {"type": "integer", "format": "uint64", "minimum": 0, "maximum": u64::MAX},
                decimal("uint64", "^[0-9]+$", "The same in decimal.")
            ]
        },
        "Time": {
            "type": "string", "format": "date-time",
            "description": "RFC 3339 in UTC, to the microsecond.", "examples": ["2026-11-20T09:59:58Z"]
        },
        "Metadata": {
            "type": "object", "additionalProperties": true,
            "description": format!(
                "A JSON object of at most {MAX_METADATA_BYTES} bytes without white space, nested at most 64 deep. It is kept as \
                 written: numbers with all their digits, fields in their order."
            )
        },
        "Token": {
            "type": "string", "pattern": AS_OF_PATTERN,
            "description": "What to wait for: `shard:sequence`, several joined by commas.", "examples": ["0:1"]
        },
        "AsOf": {
            "type": "string", "pattern": AS_OF_PATTERN,
            "description": "The applied sequence of every shard that the answer was exact at: `shard:sequence`, joined by commas.",
            "examples": ["0:1842,1:1777"]
        }
    })
}

/// Fields put together, in their order.
fn with<const N: usize>(first: Value, more: [Value; N]) -> Value {
    let mut fields = first;
    if let Some(fields) = fields.as_object_mut() {
        for one in more {
            if let Value::Object(one) = one {
                fields.extend(one);
            }
        }
    }
    fields
}

fn head() -> Value {
    json!({"board": component("BoardName"), "window": {"const": "all"}})
}

fn total() -> Value {
    json!({"total": count("Entries of the board.")})
}

/// An answer about a board, ending with what it was exact at.
fn told(description: &str, first: Value, more: Value) -> Value {
    let fields = with(first, [more, json!({"as_of": as_of()})]);
    let required: Vec<String> =
        fields.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    object_with(description, with(fields, [json!({"stale": stale()})]), &required)
}

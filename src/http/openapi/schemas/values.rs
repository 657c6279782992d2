//! Values: names, scores, times, tokens.

use serde_json::{Value, json};

use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::parts::{AS_OF_PATTERN, BOARD_PATTERN, INSTANCE_PATTERN};
use crate::job::{MAX_METADATA_BYTES, MAX_PROFILE_BYTES};
use crate::types::{MAX_BOARD_BYTES, MAX_KEYS, MAX_MEMBER_BYTES};

const MEMBER_PATTERN: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$";

pub fn schemas() -> Value {
    let decimal = |format: &str, pattern: &str, text: &str| json!({"type": "string", "format": format, "pattern": pattern, "description": text});
    let signed = json!({"type": "integer", "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX});
    json!({
        "BoardName": {
            "type": "string", "pattern": BOARD_PATTERN, "minLength": 1, "maxLength": MAX_BOARD_BYTES,
            "description": "A board's name.", "examples": ["arena"]
        },
        "InstanceName": {
            "type": "string", "pattern": INSTANCE_PATTERN,
            "description": "An instance of a window: `all`, an hour `2026-11-20T09`, a day `2026-11-20`, an ISO week `2026-W47`, a month `2026-11` or a season `s7`.",
            "examples": ["all", "2026-W47"]
        },
        "MemberId": {
            "type": "string", "pattern": MEMBER_PATTERN, "minLength": 1, "maxLength": MAX_MEMBER_BYTES,
            "description": format!(
                "The id of who holds a score: 1 to {MAX_MEMBER_BYTES} **bytes** of UTF-8 without control \
                 characters. Spaces, dots and slashes are allowed."
            ),
            "examples": ["p42"]
        },
        "IntegerInput": {
            "description": "A signed 64-bit integer, exact: a JSON number that is whole, `42.0` and `1e3` too, or a decimal \
                            string for clients whose numbers are doubles. Fractions and numbers beyond 64 bits are \
                            refused, and in a string exponents and plus signs, too. Of a key of the type `float`: any \
                            number, its string, or an infinity.",
            "anyOf": [
                signed, decimal("int64", "^-?[0-9]+$", "The same in decimal."), {"type": "number"},
                {"type": "string", "pattern": "^(-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?|-?inf)$", "description": "Of a key of the type `float`."}
            ]
        },
        "Integer": {
            "description": "A signed 64-bit integer; beyond ±(2^53-1) a decimal string, because many JSON readers would round it. \
                            Of a key of the type `float`: a double, with the shortest digits that read back as it.",
            "anyOf": [
                {"type": "integer", "minimum": -9_007_199_254_740_991_i64, "maximum": 9_007_199_254_740_991_i64},
                decimal("int64", "^-?[0-9]{16,19}$", "Beyond what doubles hold exactly."),
                {"type": "number"},
                {"enum": ["inf", "-inf"], "description": "Of a key of the type `float`."}
            ]
        },
        "ScoreInput": {
            "description": format!("A score: one number, or an array of 1 to {MAX_KEYS}, as many as the board has keys."),
            "anyOf": [
                component("IntegerInput"),
                {"type": "array", "minItems": 1, "maxItems": MAX_KEYS, "items": component("IntegerInput")}
            ]
        },
        "Score": {
            "description": "A score: one number on boards of one key, an array on others.",
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
                "A JSON object of at most {MAX_METADATA_BYTES} bytes in UTF-8 without white space and needless escapes, \
                 nested at most 64 deep. It is kept as written: numbers with all their digits, fields in their order."
            )
        },
        "Profile": {
            "type": "object", "additionalProperties": true,
            "description": format!(
                "A member's profile: a JSON object of at most {MAX_PROFILE_BYTES} bytes in UTF-8 without white space and \
                 needless escapes, nested at most 64 deep. It is kept as written, as metadata are."
            )
        },
        "Token": {
            "type": "string", "pattern": AS_OF_PATTERN,
            "description": "The writes to wait for: `shard:sequence`, several joined by commas.", "examples": ["0:1"]
        },
        "AsOf": {
            "type": "string", "pattern": AS_OF_PATTERN,
            "description": "The applied sequence of every shard that the answer was exact at: `shard:sequence`, joined by commas.",
            "examples": ["0:1842,1:1777"]
        }
    })
}

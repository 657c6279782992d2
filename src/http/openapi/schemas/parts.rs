//! Parts that schemas are made of.

use serde_json::{Value, json};

use crate::http::openapi::reference::component;
use crate::window::Window;

pub const BOARD_PATTERN: &str = "^[!\"$&-\\-/->@-\\[\\]-~][!\"$&->@-\\[\\]-~]{0,127}$";
/// The name of an instance of a window.
pub const INSTANCE_PATTERN: &str =
    "^(all|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2})?|[0-9]{4}-W[0-9]{2}|[0-9]{4}-[0-9]{2}|s[1-9][0-9]*)$";
/// The name of a window or of an instance.
pub const WINDOW_PATTERN: &str = "^(all|hour|day|week|month|season|[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2})?|[0-9]{4}-W[0-9]{2}|[0-9]{4}-[0-9]{2}|s[1-9][0-9]*)$";
pub const AS_OF_PATTERN: &str = "^(0|[1-9][0-9]*):(0|[1-9][0-9]*)(,(0|[1-9][0-9]*):(0|[1-9][0-9]*))*$";

/// An object whose listed fields are all there.
pub fn object(description: &str, properties: Value) -> Value {
    let required: Vec<String> =
        properties.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    object_with(description, properties, &required)
}

/// An object of which some fields may be absent.
pub fn object_with(description: &str, properties: Value, required: &[impl AsRef<str>]) -> Value {
    let required: Vec<&str> = required.iter().map(AsRef::as_ref).collect();
    json!({"type": "object", "description": description, "required": required, "properties": properties})
}

pub fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

pub fn ordinal(description: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": description})
}

pub fn array(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

pub fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

pub fn stale() -> Value {
    json!({
        "type": "boolean", "enum": [true],
        "description": "Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be out of date."
    })
}

pub fn missing() -> Value {
    json!({
        "type": "array", "items": {"type": "integer", "minimum": 0},
        "description": "Present if the answer lacks shards, which no node answered for: their numbers. Only with `partial=true`, or after a board was defined."
    })
}

/// What an answer says of shards that are behind or missing.
pub fn freshness() -> Value {
    json!({"stale": stale(), "missing": missing()})
}

pub fn as_of() -> Value {
    component("AsOf")
}

/// Fields put together, in their order.
pub fn with<const N: usize>(first: Value, more: [Value; N]) -> Value {
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

/// Something for each of a board's windows, or for some of them.
pub fn by_window(description: &str, value: &Value) -> Value {
    let fields = Window::ALL.into_iter().map(|window| (window.name().to_owned(), value.clone()));
    object_with(description, Value::Object(fields.collect()), &[""; 0])
}

pub fn head() -> Value {
    json!({"board": component("BoardName"), "window": component("InstanceName")})
}

pub fn total() -> Value {
    json!({"total": count("Entries of the instance.")})
}

/// An answer about a board, ending with what it was exact at.
pub fn read_answer(description: &str, first: Value, more: Value) -> Value {
    let fields = with(first, [more, json!({"as_of": as_of()})]);
    let required: Vec<String> =
        fields.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
    object_with(description, with(fields, [freshness()]), &required)
}

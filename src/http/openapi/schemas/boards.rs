//! Boards and their definitions.

use serde_json::{Value, json};

use crate::board::{MAX_KEEP, Order, Policy, Ties};
use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::parts::{
    AS_OF_PATTERN, array, as_of, count, object, object_with, or_null, stale,
};
use crate::types::MAX_KEYS;

pub fn schemas() -> Value {
    let key = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 64,
                     "description": "1 to 64 bytes, and no other key's."},
            "order": {"type": ["string", "null"], "enum": orders(true), "default": "desc",
                      "description": "`desc`: greater is better; `asc`: smaller is better."},
            "min": bound_input("The least value a job may lead to. Entries that are there already stay."),
            "max": bound_input("The greatest value a job may lead to; not below `min`. Entries that are there already stay.")
        }
    });
    let definition = json!({
        "type": "object",
        "description": "What the creator of a board decides. Absent and `null` are the default. Only `keep` and the `min` and `max` of keys can change later.",
        "additionalProperties": false,
        "properties": {
            "keys": {"type": ["array", "null"], "minItems": 1, "maxItems": MAX_KEYS, "items": component("KeyInput"),
                     "description": "The components of a score, compared in this order. Default: one key, `score`, descending."},
            "policy": {"type": ["string", "null"], "enum": policies(true), "default": "set",
                       "description": "What a job without `op` does: `set` (the latest wins), `best` or `incr`."},
            "ties": {"type": ["string", "null"], "enum": ties(true), "default": "first",
                     "description": "Who leads among equal scores: `first` or `last` to reach it, or `member`, the smallest id \
                                     byte by byte, which also decides what is left of the other two. Rank is shared regardless."},
            "windows": {"type": ["array", "null"], "items": {"enum": ["all"]}, "minItems": 1, "maxItems": 1,
                        "description": "Only `all` is there yet; `day`, `week` and `month` are refused with `unsupported`."},
            "utc_offset": {"type": ["string", "null"], "pattern": "^(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00)$",
                           "description": "Where days begin, `+09:00`, from `-18:00` to `+18:00`. Default: `+00:00`."},
            "keep": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_KEEP, "default": 12,
                     "description": "Closed instances kept per kind of window."},
            "entry_ttl": {"type": "null", "description": "Not there yet: anything but `null` is refused with `unsupported`."},
            "capacity": {"type": "null", "description": "Not there yet: anything but `null` is refused with `unsupported`."}
        }
    });
    let board = |more: Value| {
        let mut fields = json!({
            "board": component("BoardName"),
            "keys": {"type": "array", "minItems": 1, "maxItems": MAX_KEYS, "items": component("Key")},
            "policy": {"enum": policies(false)},
            "ties": {"enum": ties(false)},
            "windows": array(json!({"enum": ["all"]})),
            "utc_offset": {"type": "string", "pattern": "^[+-][0-9]{2}:[0-9]{2}$"},
            "keep": count("Closed instances kept per kind of window."),
            "entry_ttl": {"type": "null"},
            "capacity": {"type": "null"},
            "totals": object("Entries per window.", json!({"all": count("Entries of all time.")}))
        });
        let mut required: Vec<String> =
            fields.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
            let always = ["as_of", "token"].into_iter().filter(|name| more.contains_key(*name));
            required.extend(always.map(str::to_owned));
            fields.extend(more);
        }
        object_with("A board's definition, and how many entries it has.", fields, &required)
    };
    json!({
        "KeyInput": key,
        "Key": object_with(
            "A component of a board's scores. A bound that is absent is none.",
            json!({
                "name": {"type": "string"},
                "order": {"enum": orders(false)},
                "min": component("Integer"),
                "max": component("Integer")
            }),
            &["name", "order"]
        ),
        "DefinitionInput": definition,
        "ListedBoard": board(json!({})),
        "Board": board(json!({"as_of": as_of(), "stale": stale()})),
        "DefinedBoard": board(json!({
            "token": {"type": "string", "pattern": AS_OF_PATTERN,
                      "description": "Names every shard, with a sequence as of which the definition holds there."},
            "as_of": as_of(),
            "stale": stale()
        })),
        "BoardList": object_with(
            "Boards by name.",
            json!({
                "boards": array(component("ListedBoard")),
                "next_cursor": or_null(component("BoardName")),
                "as_of": as_of(),
                "stale": stale()
            }),
            &["boards", "next_cursor", "as_of"]
        ),
        "DroppedBoard": object(
            "What came of dropping a board.",
            json!({"board": {"type": "string"}, "dropped": {"const": true}, "token": component("Token")})
        )
    })
}

/// What removals of many entries bring and answer.
pub fn removals() -> Value {
    json!({
        "TrimInput": {
            "type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
            "description": "Which entries go: exactly one of the two is given.",
            "properties": {
                "positions_beyond": {
                    "description": "The last position that stays, from 1.",
                    "anyOf": [
                        {"type": "integer", "minimum": 1, "maximum": u64::MAX},
                        {"type": "string", "pattern": "^0*[1-9][0-9]*$", "maxLength": 19}
                    ]
                },
                "worse_than": {
                    "description": "The worst score that stays. On boards with several keys it may be their first ones only, which \
                                    are compared then.",
                    "allOf": [component("ScoreInput")]
                }
            }
        },
        "RemovedEntries": object(
            "What a removal of many entries came to.",
            json!({
                "board": {"type": "string"},
                "removed": count("Entries that went, hidden ones included. Of a cleared board, those that it held when it began."),
                "token": {"type": "string", "pattern": AS_OF_PATTERN,
                          "description": "Names every shard, with a sequence as of which the entries are gone there."}
            })
        )
    })
}

fn bound_input(description: &str) -> Value {
    json!({"description": description, "anyOf": [component("IntegerInput"), {"type": "null"}]})
}

fn names<const N: usize>(names: [&str; N], nullable: bool) -> Vec<Value> {
    names.into_iter().map(Value::from).chain(nullable.then_some(Value::Null)).collect()
}

fn orders(nullable: bool) -> Vec<Value> {
    names([Order::Ascending, Order::Descending].map(Order::name), nullable)
}

fn policies(nullable: bool) -> Vec<Value> {
    names([Policy::Set, Policy::Best, Policy::Incr].map(Policy::name), nullable)
}

fn ties(nullable: bool) -> Vec<Value> {
    names([Ties::First, Ties::Last, Ties::Member].map(Ties::name), nullable)
}

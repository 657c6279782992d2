//! Boards and their definitions.

use serde_json::{Value, json};

use crate::board::{Beyond, KeyType, MAX_CAPACITY, MAX_KEEP, Order, Policy, Ties};
use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::parts::{
    AS_OF_PATTERN, array, as_of, by_window, count, missing, object, object_with, or_null, stale,
};
use crate::http::request::definition::SHOWN_FIELDS;
use crate::types::MAX_KEYS;
use crate::window::Window;

pub fn schemas() -> Value {
    let key = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 64,
                     "description": "1 to 64 bytes, different from the names of the other keys."},
            "order": {"type": ["string", "null"], "enum": orders(true), "default": "desc",
                      "description": "`desc`: greater is better; `asc`: smaller is better."},
            "type": {"type": ["string", "null"], "enum": names([KeyType::Integer, KeyType::Float].map(KeyType::name), true), "default": "integer",
                     "description": "`integer`: exact signed 64-bit integers. `float`: IEEE doubles, so fractions and infinities too; `incr` adds as doubles do. It can never change."},
            "min": bound_input("The least value that a job may lead to. Existing entries stay as they are."),
            "max": bound_input("The greatest value that a job may lead to; not below `min`. Existing entries stay as they are."),
            "below_min": beyond_input("What an `incr` to less than `min` does."),
            "above_max": beyond_input("What an `incr` to more than `max` does.")
        }
    });
    let board = |more: Value| {
        let mut fields = definition_fields();
        let mut required: Vec<String> =
            fields.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default();
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
            let always = ["instances", "planned_seasons", "next_cursors", "as_of", "token"]
                .into_iter()
                .filter(|name| more.contains_key(*name));
            required.extend(always.map(str::to_owned));
            fields.extend(more);
        }
        object_with("A board's definition, and how many entries it has.", fields, &required)
    };
    json!({
        "KeyInput": key,
        "Key": object_with(
            "A component of a board's scores. An absent `min` or `max` means no bound.",
            json!({
                "name": {"type": "string"},
                "order": {"enum": orders(false)},
                "type": {"const": "float", "description": "`float`: IEEE doubles. Absent: exact 64-bit integers."},
                "min": component("Integer"),
                "max": component("Integer"),
                "below_min": {"enum": ["clamp"], "description": "`clamp`: an `incr` to less than `min` leads to `min`. Absent: it is refused."},
                "above_max": {"enum": ["clamp"], "description": "`clamp`: an `incr` to more than `max` leads to `max`. Absent: it is refused."}
            }),
            &["name", "order"]
        ),
        "Instance": object(
            "An instance of a window. It exists from its beginning on, whether or not it has entries.",
            json!({
                "name": component("InstanceName"),
                "begin": or_null(component("Time")),
                "end": or_null(component("Time")),
                "open": {"type": "boolean", "description": "Whether jobs can still enter it: until its end and the board's `grace`."},
                "total": count("Entries of the instance.")
            })
        ),
        "PlannedSeason": object(
            "A season that was planned by a request and has not begun.",
            json!({"name": component("InstanceName"), "begin": component("Time")})
        ),
        "DefinitionInput": definition_input(),
        "ListedBoard": board(json!({})),
        "Board": board(json!({
            "instances": by_window(
                "The instances that can be read, by window, newest first: from the current one to the oldest one that has entries and is not dropped.",
                &array(component("Instance"))
            ),
            "planned_seasons": array(component("PlannedSeason")),
            "next_cursors": by_window(
                "For windows with older instances that have entries than those listed: the `cursor` that lists them. More than 1,000 instances behind the newest, it may list some without entries.",
                &component("InstanceName")
            ),
            "as_of": as_of(), "stale": stale(), "missing": missing()})),
        "DefinedBoard": board(json!({
            "token": {"type": "string", "pattern": AS_OF_PATTERN,
                      "description": "Names every shard, with a sequence from which on the definition is in force there."},
            "as_of": as_of(),
            "stale": stale(),
            "missing": missing()
        })),
        "BoardList": object_with(
            "Boards by name.",
            json!({
                "boards": array(component("ListedBoard")),
                "next_cursor": or_null(component("BoardName")),
                "as_of": as_of(),
                "stale": stale(),
                "missing": missing()
            }),
            &["boards", "next_cursor", "as_of"]
        ),
        "DroppedBoard": object(
            "The outcome of dropping a board.",
            json!({"board": {"type": "string"}, "dropped": {"const": true}, "token": component("Token")})
        )
    })
}

/// A definition's fields as they are answered, and the board's totals.
fn definition_fields() -> Value {
    json!({
        "board": component("BoardName"),
        "keys": {"type": "array", "minItems": 1, "maxItems": MAX_KEYS, "items": component("Key")},
        "policy": {"enum": policies(false)},
        "ties": {"enum": ties(false)},
        "windows": array(json!({"enum": windows()})),
        "season": season("When seasons begin: `null` if there are none."),
        "utc_offset": {"type": "string", "pattern": "^[+-][0-9]{2}:[0-9]{2}$"},
        "keep": count("Closed instances kept per kind of window."),
        "grace": length("How long an instance stays open after its end, in the longest unit that divides it."),
        "entry_ttl": or_null(length("How long an entry stays that is not updated.")),
        "capacity": or_null(json!({"type": "integer", "minimum": 1, "maximum": MAX_CAPACITY,
                                   "description": "Each instance shows only so many entries, the best ones."})),
        "movement": {"type": "boolean", "description": "Whether reads of `all` take `movement`."},
        "kind": {"enum": ["ranking", "top_k"]},
        "read_only": component("ReadOnly"),
        "totals": by_window(
            "Entries of the board, by window: of `all`, or if the board does not have it of the current instance of its first window. With the parameter `window`: of that one. Empty if there is no such instance.",
            &count("Entries of the instance.")
        )
    })
}

/// What opening a manual season takes and answers.
pub fn seasons() -> Value {
    json!({
        "SeasonInput": {
            "type": "object", "additionalProperties": false,
            "description": "The next season.",
            "properties": {
                "name": {"type": ["string", "null"], "pattern": "^s[1-9][0-9]*$",
                         "description": "Which one it is to be. The request can be repeated then."},
                "at": {"anyOf": [component("Time"), {"type": "null"}],
                       "description": "When it begins, at least a second ahead and after the last one. Absent: a second from now."}
            }
        },
        "MovedSeasonInput": {
            "type": "object", "additionalProperties": false, "required": ["at"],
            "description": "When a planned season begins.",
            "properties": {"at": component("Time")}
        },
        "CancelledSeason": object(
            "A planned season that was cancelled.",
            json!({
                "board": {"type": "string"},
                "season": {"type": "string", "pattern": "^s[1-9][0-9]*$", "description": "Its name."},
                "cancelled": {"const": true},
                "token": {"type": "string", "pattern": AS_OF_PATTERN,
                          "description": "Names every shard, with a sequence from which on that is known there."}
            })
        ),
        "OpenedSeason": object(
            "A season that was opened or moved. When it begins, the season before it ends.",
            json!({
                "board": {"type": "string"},
                "season": {"type": "string", "pattern": "^s[1-9][0-9]*$", "description": "Its name."},
                "begin": component("Time"),
                "token": {"type": "string", "pattern": AS_OF_PATTERN,
                          "description": "Names every shard, with a sequence from which on the season is known there."}
            })
        )
    })
}

fn definition_input() -> Value {
    let mut input = json!({
        "type": "object",
        "description": "What a board's definition is to have. On a new board absent fields have their default; on one that is there they keep their value. `null` is the default. Only `policy`, `keep`, `grace`, `entry_ttl`, `capacity`, the `every` of `season` and the bounds of keys with `below_min` and `above_max` can change, and windows be added.",
        "additionalProperties": false,
        "properties": {
            "keys": {"type": ["array", "null"], "minItems": 1, "maxItems": MAX_KEYS, "items": component("KeyInput"),
                     "description": "The components of a score, compared in this order. Default: one key, `score`, descending."},
            "policy": {"type": ["string", "null"], "enum": policies(true), "default": "set",
                       "description": "What a job without `op` does: `set` (the latest wins), `best` or `incr`."},
            "ties": {"type": ["string", "null"], "enum": ties(true), "default": "first",
                     "description": "Which of equal scores comes first: that of the `first` or the `last` \
                                     member to reach it, or with `member` that of the smallest id, \
                                     compared byte by byte. The id also decides if the times are equal. \
                                     Equal scores share their rank regardless."},
            "windows": {"type": ["array", "null"], "items": {"enum": windows()}, "minItems": 1,
                        "maxItems": Window::ALL.len(), "uniqueItems": true,
                        "description": "The kinds of time slices that the board has a ranking of, `[\"all\"]` if absent. \
                                        Each has instances: `all`, `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11`, \
                                        `s7`. Weeks are those of ISO 8601. A read that names no window is of `all`, or of \
                                        the first one of the list."},
            "season": season("When seasons begin. Given if, and only if, `season` is one of the windows."),
            "utc_offset": {"type": ["string", "null"], "pattern": "^(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00)$",
                           "description": "Where hours, days, weeks and months begin, `+09:00`, from `-18:00` to `+18:00`. Default: `+00:00`."},
            "keep": {"type": ["integer", "null"], "minimum": 0, "maximum": MAX_KEEP, "default": 12,
                     "description": "Closed instances kept per kind of window."},
            "grace": length_input("How long an instance stays open after its end, up to `36500d`. It may keep at most \
                                   10,000 instances of a window open: with the window `hour` it is at most `10000h`. All windows \
                                   together have at most 16,000 instances, those of `keep` included.", "5m"),
            "entry_ttl": length_input("How long an entry stays that is not updated, `1s` to `36500d`. Default: forever.", "30d"),
            "capacity": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_CAPACITY,
                         "description": "Each instance shows only so many entries, the best ones: those at later positions \
                                         are not listed and not counted. They are kept, and shown again when those before \
                                         them leave or the capacity grows. Default: all are shown."},
            "kind": {"type": ["string", "null"], "enum": ["ranking", "top_k", null], "default": "ranking",
                     "description": "`ranking` keeps all members. `top_k`, for streams of unbounded members, keeps \
                                     those with the greatest counts in fixed memory (SpaceSaving): `capacity`, which \
                                     must be given and cannot change later, is the number of entries that each \
                                     instance has on each shard at most, and entries have `error`. It has one \
                                     descending key and the policy `incr`, `ties` of `first` or `last`, no \
                                     `entry_ttl` and no `movement`. Its jobs are `incr` by 0 or more and `remove`, \
                                     without `version`."},
            "movement": {"type": ["boolean", "null"], "default": false,
                         "description": "`true` keeps what `movement` of reads needs: how positions in `all` were when \
                                         the current instance of each other window began. The windows must be `all` \
                                         and at least one other."}
        }
    });
    let shown = "As answers show it. Accepted and ignored, so that an answer can be sent back with what is to change.";
    if let Some(properties) = input.get_mut("properties").and_then(Value::as_object_mut) {
        for name in SHOWN_FIELDS {
            let description = if name == "board" { "The board of the path, or absent." } else { shown };
            let field = json!({"readOnly": true, "description": description});
            properties.insert(name.to_owned(), field);
        }
    }
    input
}

/// What removals of many entries bring and answer.
pub fn removals() -> Value {
    json!({
        "TrimInput": {
            "type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
            "description": "Which entries are removed: give exactly one of the three.",
            "properties": {
                "positions_beyond": {
                    "description": "The last position that stays, from 1.",
                    "anyOf": [
                        {"type": "integer", "minimum": 1, "maximum": u64::MAX},
                        {"type": "string", "pattern": "^0*[1-9][0-9]*$", "maxLength": 19}
                    ]
                },
                "worse_than": {
                    "description": "The worst score that stays. On boards with several keys it may have \
                                    the first keys only; then only these are compared.",
                    "allOf": [component("ScoreInput")]
                },
                "better_than": {
                    "description": "The best score that stays. It may have the first keys only, as `worse_than`.",
                    "allOf": [component("ScoreInput")]
                }
            }
        },
        "RemovedEntries": object_with(
            "The outcome of a removal of many entries. `window` is the instance that was trimmed.",
            json!({
                "board": {"type": "string"},
                "window": component("InstanceName"),
                "removed": count("The number of removed entries, hidden ones included. Of a cleared board: those that `all`, or the current instance of its first window, held when the clear began."),
                "token": {"type": "string", "pattern": AS_OF_PATTERN,
                          "description": "Names every shard, with a sequence from which on the entries are removed there."}
            }),
            &["board", "removed", "token"]
        )
    })
}

const LENGTH_PATTERN: &str = "^[0-9]+[smhdw]$";

/// A length of time.
fn length(description: &str) -> Value {
    json!({"type": "string", "pattern": LENGTH_PATTERN, "description": description})
}

fn length_input(description: &str, example: &str) -> Value {
    let forms = "A whole number and one of `s`, `m`, `h`, `d` and `w`.";
    json!({"type": ["string", "null"], "pattern": LENGTH_PATTERN, "examples": [example],
           "description": format!("{description} {forms}")})
}

/// When seasons begin.
fn season(description: &str) -> Value {
    let forms = [
        json!({
            "type": "object", "additionalProperties": false, "minProperties": 1,
            "properties": {
                "starts": component("Time"),
                "every": length("How long each season is, a minute at least. Another length holds from the next season on.")
            }
        }),
        json!({"const": "manual", "description": "Each season is opened by `POST /v1/boards/{board}/seasons`."}),
        json!({"type": "null"}),
    ];
    json!({"description": description, "anyOf": forms})
}

fn windows() -> Vec<Value> {
    Window::ALL.iter().map(|window| Value::from(window.name())).collect()
}

fn bound_input(description: &str) -> Value {
    json!({"description": description, "anyOf": [component("IntegerInput"), {"type": "null"}]})
}

fn beyond_input(description: &str) -> Value {
    json!({"type": ["string", "null"], "enum": names([Beyond::Reject, Beyond::Clamp].map(Beyond::name), true),
           "default": "reject", "description": format!("{description} `reject` refuses the job; `clamp` stops at the bound.")})
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
    names(Ties::ALL.map(Ties::name), nullable)
}

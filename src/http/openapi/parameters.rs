//! Parameters of paths and queries.

use serde_json::{Value, json};

use crate::http::openapi::reference::{component, shared};
use crate::http::openapi::schemas::parts::WINDOW_PATTERN;
use crate::http::request::columns::{COLUMN_COUNTS_MAX, COLUMN_ENTRIES_MAX, COLUMNS_MAX};
use crate::http::request::json_body::BATCH_MAX;
use crate::http::request::params::{TIMEOUT_MS, TIMEOUT_MS_MAX, WINDOWS_MAX};
use crate::http::resources::lists::{PAGE, PAGE_MAX};
use crate::http::resources::members::{NEIGHBOURS, NEIGHBOURS_MAX};
use crate::http::resources::ranks::BUCKETS;
use crate::types::MAX_SHARDS;
use crate::window::Window;

/// The parameters in a route's braces.
pub fn of_path(path: &str) -> impl Iterator<Item = Value> {
    path.split('/').filter_map(|segment| Some(segment.strip_prefix('{')?.split_once('}')?.0)).map(shared)
}

/// What every read takes.
pub fn of_reads() -> Vec<Value> {
    ["window", "after", "timeout_ms", "partial", "profile", "accuracy"].map(shared).to_vec()
}

/// Whose members' entries lists show, too.
pub fn columns() -> [Value; 2] {
    let boards = format!(
        "Up to {COLUMNS_MAX} boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`: \
         its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because it has \
         no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what `window` asks \
         for if it has such a window, and otherwise by its default window: `with_windows` says which. A board that \
         there is not is `unknown_board`. Entries times boards are {COLUMN_ENTRIES_MAX} at most, and those that are \
         counted, with `with_rank` or because the board has a capacity, {COLUMN_COUNTS_MAX}; over them the answer \
         is `too_large`."
    );
    let rank =
        "Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.";
    [
        or_empty(list("with", &component("BoardName"), COLUMNS_MAX, &boards)),
        query("with_rank", &json!({"type": "boolean", "default": false}), rank),
    ]
}

/// A query parameter.
pub fn query(name: &str, schema: &Value, description: &str) -> Value {
    json!({"name": name, "in": "query", "required": false, "description": description, "schema": schema})
}

/// The same parameter, which must be there.
pub fn require(mut parameter: Value) -> Value {
    if let Some(required) = parameter.pointer_mut("/required") {
        *required = json!(true);
    }
    parameter
}

/// A first key.
pub fn signed() -> Value {
    component("IntegerInput")
}

/// The same parameter, which may be there without a value.
pub fn or_empty(mut parameter: Value) -> Value {
    if let Some(parameter) = parameter.as_object_mut() {
        parameter.insert("allowEmptyValue".to_owned(), json!(true));
    }
    parameter
}

pub fn limit() -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": PAGE_MAX, "default": PAGE});
    query("limit", &schema, "How many entries the page has at most.")
}

pub fn neighbours(name: &str, side: &str) -> Value {
    let schema = json!({"type": "integer", "minimum": 0, "maximum": NEIGHBOURS_MAX, "default": NEIGHBOURS});
    query(name, &schema, &format!("How many entries {side} the member the answer has at most."))
}

pub fn movement() -> Value {
    let windows: Vec<&str> =
        Window::ALL.into_iter().filter(|window| *window != Window::All).map(Window::name).collect();
    let text = "The name of a window of the board, and not `all`: each entry has `movement`, how many positions it has \
                climbed since the current instance of that window began. It is exact at the answer's `as_of`. Entries \
                must be of `all`, and the board must be defined with `movement`; otherwise the answer is \
                `bad_parameter`. A window that the board does not have is `unknown_window`.";
    query("movement", &json!({"type": "string", "enum": windows}), text)
}

pub fn hidden() -> Value {
    let text = "Whether an entry is answered, too, that is kept and not listed: one that is hidden, with `hidden`, and \
                one beyond the board's `capacity`, with `beyond_capacity`; each with the rank that it would have if it \
                were listed. Such an entry has no `rank_error` and no `movement`, whatever was asked. Needs the scope \
                `write`.";
    query("hidden", &json!({"type": "boolean", "default": false}), text)
}

/// # Arguments
/// `all`: what `*` asks for.
pub fn windows(all: &str) -> Value {
    let text = format!(
        "Names of windows or instances, joined by commas, at most {WINDOWS_MAX}, in place of `window`. {all}"
    );
    let name = WINDOW_PATTERN.trim_start_matches('^').trim_end_matches('$');
    let pattern = format!("^(\\*|{name}(,{name})*)?$");
    query("windows", &json!({"type": "string", "pattern": pattern, "examples": ["all,day", "*"]}), &text)
}

pub fn buckets() -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": BATCH_MAX, "default": BUCKETS});
    let text = "How many buckets of about equal width the range from the least to the greatest score is cut into. \
                Not with `edges`.";
    query("buckets", &schema, text)
}

/// Values joined by commas.
pub fn list(name: &str, items: &Value, most: usize, description: &str) -> Value {
    let schema = json!({"type": "array", "minItems": 1, "maxItems": most, "items": items});
    json!({
        "name": name, "in": "query", "required": false, "description": description,
        "style": "form", "explode": false, "schema": schema
    })
}

/// The components' parameters.
#[expect(clippy::too_many_lines, reason = "a list of parameters")]
pub fn components() -> Value {
    json!({
        "board": {
            "name": "board", "in": "path", "required": true,
            "description": "The board's name; case counts.",
            "schema": component("BoardName")
        },
        "member": {
            "name": "member", "in": "path", "required": true,
            "description": "The member's id, percent-encoded: every byte that is not a letter, a digit, \
                            `-`, `.`, `_` or `~` as `%` and two hexadecimal digits. `owner/repo` is \
                            `owner%2Frepo`, `日本` is `%E6%97%A5%E6%9C%AC`. Many clients treat the ids `.` \
                            and `..` as folders; write them as `%2E` and `%2E%2E`, which works with \
                            clients that do not decode them.",
            "schema": component("MemberId")
        },
        "position": {
            "name": "position", "in": "path", "required": true,
            "description": "A position on the board, counted from 1.",
            "schema": {"type": "integer", "minimum": 1, "maximum": u64::MAX, "examples": [2]}
        },
        "season": {
            "name": "season", "in": "path", "required": true,
            "description": "The name of a season.",
            "schema": {"type": "string", "pattern": "^s[1-9][0-9]*$", "examples": ["s2"]}
        },
        "snapshot": {
            "name": "snapshot", "in": "path", "required": true,
            "description": "The `snapshot` of the answer that began it.",
            "schema": {"type": "string", "pattern": "^[0-9a-f-]+$", "examples": ["6a2c81d0f9a41-1"]}
        },
        "shard": {
            "name": "shard", "in": "path", "required": true,
            "description": "The shard's number.",
            "schema": {"type": "integer", "minimum": 0, "maximum": MAX_SHARDS - 1, "examples": [0]}
        },
        "file": {
            "name": "file", "in": "path", "required": true,
            "description": "The `name` of a file that the snapshot lists for the shard.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9.-]+$", "examples": ["CURRENT"]}
        },
        "window": query(
            "window",
            &json!({"type": "string", "pattern": WINDOW_PATTERN, "examples": ["day", "2026-W47"]}),
            "What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its \
             current instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, \
             `2026-W47`, `2026-11` or `s7`. Without it `all` is read, or the board's first window if it \
             does not have `all`. The answer's `window` names the instance that was read. An instance can \
             be read from its beginning on, also while it has no entries, until it is dropped; \
             others, and windows that the board does not have, are `unknown_window`."
        ),
        "after": query(
            "after",
            &component("Token"),
            "Waits until the writes that the token names are visible. The token is the `token` of a \
             write, or the `as_of` of another read. It may name some of the shards; a shard that the \
             service does not have is refused with `unknown_shard`."
        ),
        "timeout_ms": query(
            "timeout_ms",
            &json!({"type": "integer", "minimum": 0, "maximum": TIMEOUT_MS_MAX, "default": TIMEOUT_MS}),
            "How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`."
        ),
        "partial": query(
            "partial",
            &json!({"type": "boolean", "default": false}),
            "Whether the answer may leave out shards that no node answers for. `missing` names them then. Without it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank."
        ),
        "profile": query(
            "profile",
            &json!({"type": "boolean", "default": false}),
            "Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers \
             without entries take no notice of it."
        ),
        "accuracy": query(
            "accuracy",
            &json!({"type": "string", "enum": ["exact", "approx"], "default": "exact"}),
            "`approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are \
             about a second old, and `rank_error` says by how much rank and position can be off as of these; \
             `as_of` names their sequences. The first 1,000 are exact. A shard that has no summary yet, or \
             that `after` names, is asked as for an exact answer. Only the rank of a score, the ranks of many \
             scores and a member's entry can be approximate; other answers are always exact, and refuse it \
             with `bad_parameter`."
        ),
        "wait": query(
            "wait",
            &json!({"type": "string", "enum": ["applied"]}),
            "`applied`: the answer comes when the write is applied and on disk, and has its outcome. With \
             NATS, a write without this parameter is answered 202 as soon as it is stored in the stream; \
             without NATS every write waits."
        ),
        "results": query(
            "results",
            &json!({"type": "string", "enum": ["changed"]}),
            "`changed`: the answer says of each job only whether it changed anything, without `entry` and \
             `previous`. Use it for a short answer if these are not needed. It has no effect on 202."
        ),
        "version": query(
            "version",
            &component("Version"),
            "The removal applies only if this is greater than the version stored for the member and the \
             board. The version is remembered, so that a late retry of an older write does not create the \
             entry again."
        ),
    })
}

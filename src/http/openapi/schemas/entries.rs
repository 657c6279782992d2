//! Entries, ranks and counts.

use serde_json::{Value, json};

use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::parts::{
    array, count, head, object, or_null, ordinal, read_answer, total, with,
};
use crate::http::request::json_body::BATCH_MAX;

fn listed_fields() -> Value {
    json!({
        "member": component("MemberId"),
        "score": component("Score"),
        "rank": ordinal("1 + the number of entries with a better score; shared by equal scores, \"1 2 2 4\"."),
        "position": ordinal("The place in the total order, counted from 1; ties are ordered by the board's rule."),
        "updated_at": component("Time"),
        "meta": or_null(component("Metadata"))
    })
}

fn listed_entry() -> Value {
    let entry = object(
        "An entry within a list. `reached_at`, the time at which the score was reached, is present if it \
                        was asked for and orders the board's ties; `version`, if it was asked for and a job had one.",
        listed_fields(),
    );
    with_optional(
        with_columns(with_profile(entry)),
        json!({"reached_at": component("Time"), "version": component("Version")}),
    )
}

/// An entry of a list with its member's entries on other boards, which are there if they were asked for.
fn with_columns(schema: Value) -> Value {
    let columns = json!({
        "type": "object",
        "description": "The member on the boards that the parameter `with` names; `null` where it is not listed. Present with `with`.",
        "additionalProperties": {"anyOf": [component("EntryOnBoard"), {"type": "null"}]}
    });
    with_optional(schema, json!({"with": columns}))
}

fn entry_on_board() -> Value {
    let rank = json!({"rank": ordinal(
        "1 + the number of entries of that board with a better score; shared by equal scores. Present with `with_rank=true`."
    )});
    let score = json!({"score": component("Score")});
    with_optional(
        object("A member's entry on another board than the one that is listed.", score),
        with(error(), [rank]),
    )
}

/// A list of them.
fn with_windows(schema: Value) -> Value {
    let windows = json!({
        "type": "object",
        "description": "The instance by which each of the boards was read that the parameter `with` names; `null` where there is no such instance now. Present with `with`.",
        "additionalProperties": {"type": ["string", "null"]}
    });
    with_optional(schema, json!({"with_windows": windows}))
}

fn error() -> Value {
    json!({"error": {
        "allOf": [component("Integer")],
        "description": "The most by which the score is too high. Present on boards of the kind `top_k`."
    }})
}

/// With fields that may be absent. After `object`, which requires all that it is given.
fn with_optional(mut schema: Value, fields: Value) -> Value {
    if let Some(properties) = schema.pointer_mut("/properties") {
        *properties = with(properties.take(), [fields]);
    }
    schema
}

/// With the profile and the movement, which are there if they were asked for, and the error, which is there
/// if the board counts in fixed memory.
fn with_profile(schema: Value) -> Value {
    let profile = json!({
        "anyOf": [component("Profile"), {"type": "null"}],
        "description": "The member's profile; `null` if there is none, or if it could not be read. Present with `profile=true`."
    });
    let movement = json!({
        "type": ["integer", "null"], "format": "int64",
        "description": "The entry's position when the current instance of the window asked for began, less its position now: positive if it has climbed. `null` if it was not listed then. Present with `movement`."
    });
    with_optional(schema, with(json!({"profile": profile, "movement": movement}), [error()]))
}

/// Present if the answer is approximate.
fn rank_error() -> Value {
    json!({"rank_error": count(
        "Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the summaries that `as_of` names. 0 for the first 1,000."
    )})
}

/// Present if the entry is hidden, or beyond the capacity.
fn hidden() -> Value {
    json!({"hidden": {
        "type": "boolean", "const": true,
        "description": "Present with `hidden=true`, of an entry that is hidden. `rank`, `position` and the counts are those that there would be if it were not: it counts itself."
    }, "beyond_capacity": {
        "type": "boolean", "const": true,
        "description": "Present with `hidden=true`, of an entry that is kept and not listed, because it is beyond the board's `capacity`. `rank`, `position` and the counts are those among all entries that are kept."
    }})
}

fn percentile() -> Value {
    json!({"percentile": {"type": "number", "minimum": 0, "maximum": 100, "description": "100 × worse / total: the share of entries with a worse score. Entries of equal score have the same percentile, and are not worse than each other."}})
}

/// The data of an event of a watched board.
fn live(description: &str, parts: Value) -> Value {
    let fields = with(head(), [total(), parts, json!({"as_of": component("Token")})]);
    let stale = json!({"stale": {
        "type": "boolean", "const": true,
        "description": "Present if a shard does not answer, or does not apply what is published."
    }});
    with_optional(object(description, fields), stale)
}

pub fn schemas() -> Value {
    let entry = with(
        head(),
        [
            json!({"member": component("MemberId"), "score": component("Score"),
                   "rank": ordinal("1 + better; shared by equal scores, \"1 2 2 4\"."),
                   "position": ordinal("The place in the total order, counted from 1; ties are ordered by the board's rule.")}),
            counts(),
            percentile(),
            json!({"updated_at": component("Time"), "meta": or_null(component("Metadata"))}),
        ],
    );
    let group = with(json!({"group_rank": ordinal("Rank among the members asked for.")}), [listed_fields()]);
    json!({
        "Entry": with_optional(
            with_profile(read_answer(
                "A member's entry on a board. `meta` is `{}` if there is none, and `null` if it could not be read.",
                entry,
                json!({})
            )),
            with(
                rank_error(),
                [hidden(), json!({"reached_at": component("Time"), "version": component("Version")})]
            ),
        ),
        "EntryByWindow": read_answer(
            "A member's entries in several windows of a board.",
            json!({"board": component("BoardName"), "member": component("MemberId")}),
            json!({"windows": {
                "type": "object",
                "description": "By the names that were asked for; `null` where the member has no entry.",
                "additionalProperties": {"anyOf": [component("Entry"), {"type": "null"}]}
            }})
        ),
        "EntryOnBoard": entry_on_board(),
        "ListedEntry": listed_entry(),
        "Page": with_windows(read_answer(
            "Entries in their order. `next_cursor` is the cursor of the next page, and `null` at the end.",
            with(head(), [total()]),
            json!({
                "entries": array(component("ListedEntry")),
                "next_cursor": {"type": ["string", "null"], "pattern": "^([0-9a-f]+~)?[0-9a-f]+$"}
            })
        )),
        "LiveState": live(
            "The data of the event `state`: all that is watched.",
            json!({
                "entries": array(component("ListedEntry")),
                "members": array(component("ListedEntry")),
                "not_found": array(component("MemberId"))
            })
        ),
        "LiveChanges": live(
            "The data of the event `changes`: `entries` of the top that are new in it or have changed, those who have `left` it, watched `members` whose entries have changed, and those who are on the board no longer (`not_found`).",
            json!({
                "entries": array(component("ListedEntry")),
                "left": array(component("MemberId")),
                "members": array(component("ListedEntry")),
                "not_found": array(component("MemberId"))
            })
        ),
        "Neighbours": with_windows(read_answer(
            "The member and its neighbours, best first.",
            with(head(), [total()]),
            json!({"entries": array(component("ListedEntry"))})
        )),
        "LookupInput": {
            "type": "object", "additionalProperties": false, "required": ["members"],
            "properties": {
                "members": {"type": "array", "maxItems": BATCH_MAX, "items": component("MemberId"),
                            "description": "Ids; repeated ones count once."}
            }
        },
        "Group": with_windows(read_answer(
            "Those of the members who are on the board, best first, and those who are not.",
            with(head(), [total()]),
            json!({
                "entries": array(with_columns(with_profile(object("An entry, and its rank within the group.", group)))),
                "not_found": array(component("MemberId"))
            })
        )),
        "MemberBoards": with_optional(read_answer(
            "A member's entries, by board. `next_cursor` is the cursor for entries on further boards, and `null` at the end.",
            json!({
                "member": component("MemberId"),
                "window": {
                    "type": ["string", "null"],
                    "description": "What was asked for: the parameter `window`, or `all`; `null` with `windows`. `window` of an entry names the instance that it is of."
                }
            }),
            json!({
                "entries": array(component("Entry")),
                "not_found": array(component("BoardName")),
                "next_cursor": {"type": ["string", "null"], "pattern": "^([0-9a-f]+~)?[0-9]+$"}
            })
        ), json!({"profile": {
            "anyOf": [component("Profile"), {"type": "null"}],
            "description": "The member's profile, whether it has an entry or not; `null` if there is none, or if it could not be read. Present with `profile=true` and without `boards`, unless the token is confined to some boards."
        }}))
    })
}

pub fn ranks() -> Value {
    let shards = object(
        "A shard's share.",
        json!({"shard": count("The shard's number."), "better": count("Better entries on the shard."),
               "tied": count("Equal entries on the shard."), "total": count("Entries on the shard.")}),
    );
    let rank = with(
        json!({"score": component("Score"), "rank": ordinal("The rank that this score has, or would have.")}),
        [counts(), json!({"shards": array(shards)})],
    );
    let place =
        with(json!({"score": component("Score"), "rank": ordinal("Its rank.")}), [counts(), percentile()]);
    let found = with(json!({"p": {"type": "number"}}), [place.clone()]);
    json!({
        "Rank": with_optional(
            read_answer("The rank of a score, whether a member has it or not.", with(head(), [rank.clone()]), json!({})),
            rank_error(),
        ),
        "ScoresInput": {
            "type": "object", "additionalProperties": false, "required": ["scores"],
            "properties": {"scores": {"type": "array", "maxItems": BATCH_MAX, "items": component("ScoreInput")}}
        },
        "Ranks": read_answer(
            "The ranks of the scores, in their order.",
            with(head(), [total()]),
            json!({"ranks": array(with_optional(
                object("The rank of a score, whether a member has it or not.", rank),
                rank_error(),
            ))})
        ),
        "Place": read_answer("The score at that place, and how many entries have it.", with(head(), [place]), json!({})),
        "Count": read_answer(
            "How many entries lie between the bounds, both inclusive. A bound that was not sent is `null`.",
            with(head(), [total()]),
            json!({"min": or_null(component("Integer")), "max": or_null(component("Integer")),
                   "count": count("Entries whose first key lies between the bounds.")})
        ),
        "Histogram": read_answer(
            "Entries by their first key. Buckets include both of their bounds.",
            with(head(), [total()]),
            json!({
                "buckets": array(object("A bucket.", json!({
                    "min": component("Integer"), "max": component("Integer"), "count": count("Entries in the bucket.")
                }))),
                "below": count("Entries below the first bucket."),
                "above": count("Entries above the last one.")
            })
        ),
        "Percentiles": read_answer(
            "The score at each percentile, in the order asked for. On a board without entries `score` is `null`, alone.",
            with(head(), [total()]),
            json!({
                "percentiles": array(json!({"anyOf": [
                    object("The entry at the percentile.", found),
                    object("The board has no entries.", json!({"p": {"type": "number"}, "score": {"type": "null"}}))
                ]}))
            })
        )
    })
}

fn counts() -> Value {
    json!({
        "better": count("Entries with a better score."),
        "tied": count("Entries with this score, including the entry itself."),
        "worse": count("Entries with a worse score."),
        "total": count("Entries of the instance: better + tied + worse.")
    })
}

//! Boards together.

use serde_json::{Value, json};

use crate::http::openapi::reference::component;
use crate::http::openapi::schemas::parts::{array, count, object, or_null, ordinal, read_answer, with};
use crate::http::resources::combine::BOARDS_MAX;
use crate::http::resources::lists::{PAGE, PAGE_MAX};

fn entry_fields() -> Value {
    json!({
        "member": component("MemberId"),
        "score": component("Score"),
        "rank": ordinal("1 + the number of members with a better result; shared by equal ones, \"1 2 2 4\"."),
        "position": ordinal("The place in the total order, counted from 1.")
    })
}

pub fn schemas() -> Value {
    let member = with(
        entry_fields(),
        [json!({
            "better": count("Members with a better result."),
            "tied": count("Members with the same result, itself included."),
            "worse": count("Members with a worse result."),
            "total": count("All members of the result."),
            "percentile": {"type": "number", "minimum": 0, "maximum": 100, "description": "100 × worse / total."}
        })],
    );
    let mut answer = read_answer(
        "Boards together, best first.",
        json!({"windows": {
            "type": "object", "description": "The instance by which each board was read.",
            "additionalProperties": component("InstanceName")
        }}),
        json!({
            "total": count("Members of the result."),
            "entries": array(component("CombinedEntry")),
            "next_cursor": or_null(json!({"type": "string"}))
        }),
    );
    if let Some(properties) = answer.pointer_mut("/properties").and_then(Value::as_object_mut) {
        let found = json!({
            "anyOf": [component("CombinedMember"), {"type": "null"}],
            "description": "The member that was asked for; `null` if it is not in the result. Present with `member`."
        });
        properties.insert("member".to_owned(), found);
    }
    json!({
        "CombineInput": {
            "type": "object", "additionalProperties": false, "required": ["boards"],
            "properties": {
                "boards": {
                    "type": "object", "minProperties": 1, "maxProperties": BOARDS_MAX,
                    "description": "Boards, and what their scores are multiplied by.",
                    "propertyNames": component("BoardName"),
                    "additionalProperties": {"type": "number"},
                    "examples": [{"chess": 1, "go": 2}]
                },
                "combine": {"type": "string", "enum": ["union", "inter", "diff"], "default": "union"},
                "aggregate": {"type": "string", "enum": ["sum", "min", "max"], "default": "sum",
                    "description": "What is made of a member's scores. `diff` has one score of each."},
                "order": {"type": "string", "enum": ["desc", "asc"],
                    "description": "Which results are best: the greatest or the least. By default as the boards have it, which must agree."},
                "first": {"type": "string",
                    "description": "The board from which `diff` takes the others away; by default the first one that `boards` has."},
                "limit": {"type": "integer", "minimum": 0, "maximum": PAGE_MAX, "default": PAGE,
                    "description": "How many entries the page has at most; 0 for the total, and the member, alone."},
                "cursor": {"type": "string",
                    "description": "The `next_cursor` of the page before, with the same boards, weights, combination and order. Pages go on in the instances of the first one."},
                "member": {"type": "string", "description": "A member whose place in the result is wanted, too."}
            }
        },
        "CombinedEntry": object("A member, and what comes of its scores.", entry_fields()),
        "CombinedMember": object("A member's place in the result.", member),
        "CombinedBoards": answer
    })
}

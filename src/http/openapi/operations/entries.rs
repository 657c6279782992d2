//! Entries: one, its neighbours, a group's, a member's, and pages of a board.

use serde_json::json;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::{read, read_board};
use crate::http::openapi::parameters::{limit, list, neighbours, query, signed};
use crate::http::openapi::reference::component;
use crate::http::request::json_body::BATCH_MAX;
use crate::http::resources::members::NEIGHBOURS_MAX;

const ENTRIES: &str = "Entries";
const LISTS: &str = "Lists";

pub fn member() -> Doc {
    read_board(ENTRIES, "A member's entry")
        .describe("Score, rank, position and percentile of a member on a board.")
        .answer(200, "Entry", "The entry.")
        .problem(404, "unknown_member")
        .problem(422, "bad_member")
}

pub fn around() -> Doc {
    read_board(ENTRIES, "A member and its neighbours")
        .describe(format!(
            "The entries just before and after the member's, and its own, best first. `above` and `below` are at most \
             {NEIGHBOURS_MAX} each. Near an end of the board there are fewer on that side, unless `fill` takes more from the other."
        ))
        .query(neighbours("above", "before"))
        .query(neighbours("below", "after"))
        .query(query(
            "fill",
            &json!({"type": "boolean", "default": false}),
            "Whether the other side makes up for what is missing at an end of the board.",
        ))
        .answer(200, "Neighbours", "The entries.")
        .problem(404, "unknown_member")
        .problem(422, "bad_member")
}

pub fn lookup() -> Doc {
    read_board(ENTRIES, "Several members among themselves")
        .describe(format!(
            "A friends' board: those of up to {BATCH_MAX} members who are on the board, best first, with their rank among \
             themselves and on the board, and those who are not on it."
        ))
        .body("LookupInput", true, "The members.")
        .answer(200, "Group", "The entries.")
        .problem(422, "bad_member")
}

pub fn member_boards() -> Doc {
    let boards = format!(
        "Up to {BATCH_MAX} boards. Without it, all boards that the member is on, up to {BATCH_MAX} at a time."
    );
    read(ENTRIES, "A member on several boards")
        .describe(
            "The member's entries, by board. Boards that are not there, or that the member is not on, are in `not_found`. Where all \
             boards are asked for and there are more, `next_cursor` says where the next page begins: pages have the boards in the \
             order in which they were created, and by name within the page. A page may have few entries and still not be the last.",
        )
        .query(list("boards", &component("BoardName"), BATCH_MAX, &boards))
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": "^[0-9]*$"}),
            "The `next_cursor` of the page before, without `boards`; empty is none.",
        ))
        .answer(200, "MemberBoards", "The entries.")
        .problem(422, "bad_member")
}

pub fn top() -> Doc {
    read_board(LISTS, "A board from an end on")
        .describe(
            "Entries best first, or worst first with `from=bottom`, a page at a time. The cursor holds the full sort key of the last \
             entry: while scores move, no entry that stays in place is skipped or repeated. It belongs to its board and its \
             direction; with another one it is refused with `bad_cursor`.",
        )
        .query(limit())
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": "^([0-9a-f]{2})*$"}),
            "The `next_cursor` of the page before; empty is none.",
        ))
        .query(query(
            "from",
            &json!({"type": "string", "enum": ["top", "bottom"]}),
            "The end to begin at, `top` by default; a cursor knows its own.",
        ))
        .query(query(
            "reached_at",
            &json!({"type": "boolean", "default": false}),
            "Whether entries say when their score was reached, where that orders ties: what it takes to copy a board \
             with its ties in their order. `updated_at` may be later.",
        ))
        .answer(200, "Page", "A page.")
        .problem(422, "bad_cursor")
}

pub fn positions() -> Doc {
    read_board(LISTS, "A board from a position on")
        .describe(
            "The page that begins at a position, however deep: nothing before it is read. Beyond the end it has no entries. \
             `next_cursor` goes on with `top`.",
        )
        .query(limit())
        .answer(200, "Page", "A page.")
}

pub fn range() -> Doc {
    read_board(LISTS, "The entries between two scores")
        .describe(
            "Entries whose first key lies between the two, bounds included as in `count`, best first, a page at a time. A bound that is \
             absent or empty is none. Nothing before the page is read. The cursor is as that of `top`.",
        )
        .query(query("min", &signed(), "The least value."))
        .query(query("max", &signed(), "The greatest value; not below `min`."))
        .query(limit())
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": "^([0-9a-f]{2})*$"}),
            "The `next_cursor` of the page before; empty is none.",
        ))
        .answer(200, "Page", "A page.")
        .problem(422, "bad_score")
        .problem(422, "bad_cursor")
}

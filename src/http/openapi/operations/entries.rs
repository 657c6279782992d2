//! Entries: one, its neighbours, a group's, a member's, and pages of a board.

use serde_json::json;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::{read, read_board};
use crate::http::openapi::parameters::{limit, list, movement, neighbours, query, signed};
use crate::http::openapi::reference::component;
use crate::http::request::json_body::BATCH_MAX;
use crate::http::resources::members::NEIGHBOURS_MAX;

const ENTRIES: &str = "Entries";
const LISTS: &str = "Lists";

pub fn member() -> Doc {
    read_board(ENTRIES, "A member's entry")
        .describe("Score, rank, position and percentile of a member on a board.")
        .query(movement())
        .answer(200, "Entry", "The entry.")
        .problem(404, "unknown_member")
        .problem(422, "bad_member")
}

pub fn around() -> Doc {
    read_board(ENTRIES, "A member and its neighbours")
        .describe(format!(
            "The member's entry and those right before and after it, best first. `above` and `below` are \
             at most {NEIGHBOURS_MAX} each. Near an end of the board there are fewer entries on that \
             side; with `fill` there are more on the other side instead."
        ))
        .query(neighbours("above", "before"))
        .query(neighbours("below", "after"))
        .query(query(
            "fill",
            &json!({"type": "boolean", "default": false}),
            "Whether the other side has more entries if there are too few at an end of the board.",
        ))
        .query(movement())
        .answer(200, "Neighbours", "The entries.")
        .problem(404, "unknown_member")
        .problem(422, "bad_member")
}

pub fn lookup() -> Doc {
    read_board(ENTRIES, "A group of members")
        .describe(format!(
            "The board of a group, such as of friends. Of up to {BATCH_MAX} members, those who are on the \
             board, best first, with their rank within the group and on the board; and those who are not \
             on the board."
        ))
        .query(movement())
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
            "The member's entries, by board. Each board is read by the instance that `window` asks for, or \
             by that of its default window; `window` of the entry names it. Boards that do not exist, \
             that do not have the instance, or that the member is not on, are in `not_found`. If all boards are asked for and there are more, `next_cursor` is the \
             beginning of the next page: pages follow the order in which boards were created, and within \
             a page boards are sorted by name. A page may have few entries and still not be the last one.",
        )
        .query(list("boards", &component("BoardName"), BATCH_MAX, &boards))
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": "^[0-9]*$"}),
            "The `next_cursor` of the page before, without `boards`; empty means the first page.",
        ))
        .answer(200, "MemberBoards", "The entries.")
        .problem(422, "bad_member")
}

pub fn top() -> Doc {
    read_board(LISTS, "The entries at an end of a board")
        .describe(
            "Entries best first, or worst first with `from=bottom`, a page at a time. The cursor holds \
             the full sort key of the last entry, so that an entry whose score does not change is neither \
             skipped nor repeated while other scores change. It is valid for its board, window \
             and direction only, and refused with `bad_cursor` for others. Pages go on in the instance that \
             the first page was of: a cursor of `window=day` goes on with that day after midnight, as \
             `window` of the answer says.",
        )
        .query(limit())
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": "^([0-9a-f]{2})*$"}),
            "The `next_cursor` of the page before; empty means the first page.",
        ))
        .query(query(
            "from",
            &json!({"type": "string", "enum": ["top", "bottom"]}),
            "The end to begin at, `top` by default. With a cursor it may be left out.",
        ))
        .query(query(
            "reached_at",
            &json!({"type": "boolean", "default": false}),
            "Whether entries have `reached_at`, the time at which the score was reached, on boards where \
             it orders ties. A copy of a board needs it to keep the order of ties. `updated_at` may be \
             later.",
        ))
        .query(movement())
        .answer(200, "Page", "A page.")
        .problem(422, "bad_cursor")
}

pub fn positions() -> Doc {
    read_board(LISTS, "The entries from a position on")
        .describe(
            "The page that begins at a position. A deep position takes no longer, because entries before \
             it are not read. A page beyond the end has no entries. Send `next_cursor` to `top` for the \
             page that follows.",
        )
        .query(limit())
        .answer(200, "Page", "A page.")
}

pub fn range() -> Doc {
    read_board(LISTS, "The entries between two scores")
        .describe(
            "Entries whose first key lies between the two bounds, which are inclusive as in `count`, best \
             first, a page at a time. Leave a bound out, or empty, for no bound. Entries before the page \
             are not read. The cursor works like that of `top`.",
        )
        .query(query("min", &signed(), "The least value."))
        .query(query("max", &signed(), "The greatest value; not below `min`."))
        .query(limit())
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": "^([0-9a-f]{2})*$"}),
            "The `next_cursor` of the page before; empty means the first page.",
        ))
        .answer(200, "Page", "A page.")
        .problem(422, "bad_score")
        .problem(422, "bad_cursor")
}

//! Boards.

use serde_json::json;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::{read, read_board, write};
use crate::http::openapi::parameters::query;
use crate::http::request::json_body::BATCH_MAX;

const TAG: &str = "Boards";

pub fn boards() -> Doc {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": BATCH_MAX, "default": BATCH_MAX});
    let cursor = json!({"type": "string", "pattern": "^([A-Za-z0-9][A-Za-z0-9_.:-]{0,63})?$"});
    read(TAG, "All boards")
        .describe("Boards by name, with their definitions and totals. The cursor is the name of the last board before.")
        .query(query("limit", &limit, "How many boards the page has at most."))
        .query(query("cursor", &cursor, "The `next_cursor` of the page before; empty is none."))
        .answer(200, "BoardList", "A page of boards.")
}

pub fn board() -> Doc {
    read_board(TAG, "A board").describe("The definition of a board, and how many entries it has.").answer(
        200,
        "Board",
        "The board.",
    )
}

pub fn put_board() -> Doc {
    write(TAG, "Define a board")
        .describe(
            "Creates the board, or says that it is there. Idempotent. `keep` and the `min` and `max` of keys may change later, and \
             an absent one becomes its default; everything else is decided once, and a definition that differs in it is refused \
             with `board_differs`. Bounds judge the jobs that come: entries that are there already stay as they are. No body at all is the default definition: \
             one key `score`, descending, `set`, ties to the first.\n\n\
             A job for a board that is not there creates it with the defaults, unless the node was started with \
             `--no-auto-create`.",
        )
        .body("DefinitionInput", false, "The definition.")
        .answer(201, "DefinedBoard", "The board is new.")
        .answer(200, "DefinedBoard", "The board was there already, or only `keep` or bounds changed.")
        .problem(409, "board_differs")
        .problem(422, "invalid_definition")
        .problem(422, "too_many_boards")
        .problem(422, "unsupported")
        .problem(404, "unknown_board")
        .problem(504, "not_yet_applied")
}

pub fn delete_board() -> Doc {
    write(TAG, "Drop a board")
        .describe(
            "Drops the board with all of its entries, on every shard. Should that fail halfway, the board is unknown already, and \
             dropping it again goes on. A job or a definition that arrives meanwhile begins the board anew, as it would \
             right after the drop.",
        )
        .answer(200, "DroppedBoard", "It is gone.")
        .problem(404, "unknown_board")
        .problem(504, "not_yet_applied")
}

pub fn clear_board() -> Doc {
    write(TAG, "Clear a board")
        .describe(
            "Removes every entry of the board, hidden ones and what is remembered of removals included; its definition stays. The \
             board begins anew: versions of its entries count no more, so that a late retry of an older write is taken as a new one. \
             In a shard's queue, jobs before it go with the board and jobs after it stay. Takes the same time however many entries \
             there are. Should it fail halfway, readers find the board empty, and sending it again goes on.",
        )
        .answer(200, "RemovedEntries", "The board is empty.")
        .problem(404, "unknown_board")
        .problem(504, "not_yet_applied")
}

pub fn trim_board() -> Doc {
    write(TAG, "Trim a board")
        .describe(
            "Removes the entries beyond a position, or those with a worse score; exactly one of the two is given. The place is \
             found once, over all shards. Whoever is behind it then and still is when the removal reaches the shard's queue goes; \
             who has improved meanwhile stays. Hidden entries with a score behind the place go too. Each removal is one without a \
             version: where the entry had one, that is remembered.\n\n\
             A large trim is many messages, and takes some seconds per million entries. It ends when its client leaves: what was \
             removed stays so, and the same request removes the rest.",
        )
        .body("TrimInput", true, "Which entries go.")
        .answer(200, "RemovedEntries", "They are gone.")
        .problem(404, "unknown_board")
        .problem(422, "bad_score")
        .problem(422, "too_large")
        .problem(504, "not_yet_applied")
}

//! Boards.

use serde_json::json;

use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::{read, read_board, write};
use crate::http::openapi::parameters::query;
use crate::http::openapi::reference::shared;
use crate::http::openapi::schemas::parts::INSTANCE_PATTERN;
use crate::http::request::json_body::BATCH_MAX;
use crate::http::resources::boards::{INSTANCES, INSTANCES_MAX};
use crate::types::MAX_BOARD_BYTES;

const TAG: &str = "Boards";

pub fn boards() -> Doc {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": BATCH_MAX, "default": BATCH_MAX});
    let cursor = json!({"type": "string", "maxLength": MAX_BOARD_BYTES});
    read(TAG, "All boards")
        .describe("Boards in the order of their names, with their definitions and totals. With `window`, totals are those of that window; they are empty for boards that do not have it. The cursor is the name of the last board of the page before.")
        .query(query("limit", &limit, "How many boards the page has at most."))
        .query(query("cursor", &cursor, "The `next_cursor` of the page before; empty means the first page."))
        .answer(200, "BoardList", "A page of boards.")
}

pub fn board() -> Doc {
    let limit = json!({"type": "integer", "minimum": 1, "maximum": INSTANCES_MAX, "default": INSTANCES});
    read_board(TAG, "A board")
        .describe(
            "The definition of a board, how many entries it has, and the instances of its windows, newest \
             first. Which instances there are follows from the definition and the time: a window has its \
             current instance from the first instant on, before any job has come. With `window`, only \
             that window's instances are listed, or that instance.",
        )
        .query(query(
            "limit",
            &limit,
            "How many instances of a window are listed at most. An answer lists 1,000 in all: where several \
             windows are listed, each has its share.",
        ))
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": format!("^$|{INSTANCE_PATTERN}")}),
            "One of the `next_cursors` of the page before: only instances of its window are listed, older \
             ones. Empty means the first page.",
        ))
        .answer(200, "Board", "The board.")
        .problem(422, "bad_cursor")
}

pub fn put_board() -> Doc {
    write(TAG, "Define a board")
        .describe(
            "Creates the board, or changes what the body names. Idempotent. An absent field keeps its value, \
             or has its default on a new board; `null` is the default. `policy`, `keep`, `grace`, `entry_ttl`, \
             `expires_at`, `expires_after`, `capacity`, the `every` of `season`, and the bounds of keys with `below_min` and `above_max` may \
             change, and `windows` be added, \
             which begin with the next job. Everything else is fixed when the board is created, and a \
             definition that differs in it is refused with `board_differs`. New bounds apply to the jobs that \
             follow; existing entries stay as they are. Another length of seasons holds from the next season \
             on. A change that would drop instances or entries that can be read, or the whole board by an `expires_at` that is over, is refused with `would_drop` \
             and their number, unless `force=true` says that they may go. An empty body changes nothing; it \
             creates a board with one key `score`, descending, `set`, and the first to reach a score leads \
             its ties.\n\nAn answer of `GET /v1/boards/{board}` can be sent back as it is, or with another \
             `keep`, say: what it shows beside the definition is ignored. Any other field is refused.\n\nA job \
             for a board that does not exist creates it with the defaults, unless the node was started with \
             `--no-auto-create`.",
        )
        .query(query(
            "force",
            &json!({"type": "boolean", "default": false}),
            "Whether instances and entries may be dropped.",
        ))
        .body("DefinitionInput", false, "The definition.")
        .answer(201, "DefinedBoard", "The board was created.")
        .answer(200, "DefinedBoard", "The board existed already, or only what may change was changed.")
        .problem(409, "board_differs")
        .problem(409, "would_drop")
        .problem(422, "invalid_definition")
        .problem(422, "too_many_boards")
        .problem(404, "unknown_board")
        .problem(504, "not_yet_applied")
}

pub fn open_season() -> Doc {
    write(TAG, "Open a season")
        .describe(
            "Opens the next season of a board with the window `season`: `s1`, `s2`, and so on. The season \
             before it ends at that moment, which is the same on every shard; where seasons are regular, the \
             running one ends early, and the following ones are counted from there. Before its first manual \
             season a board has none. With `name` the request can be repeated: it is answered with 200 if \
             that season is there, or planned for that time. Without it, while a season is planned or less \
             than a minute after one began, the request is refused with `season_conflict`, because it looks \
             like the same request once more; `force=true` opens a further manual season all the \
             same, and has a regular one that is planned to end early end at the time that is sent instead.",
        )
        .query(query(
            "force",
            &json!({"type": "boolean", "default": false}),
            "Whether a season is opened also where the request looks like a repeated one.",
        ))
        .body("SeasonInput", false, "Which one it is, and when it begins.")
        .answer(200, "OpenedSeason", "The season that `name` says is there already, or planned.")
        .answer(201, "OpenedSeason", "The season is opened, and begins at the time of the answer.")
        .problem(404, "unknown_board")
        .problem(409, "no_manual_seasons")
        .problem(409, "season_conflict")
        .problem(409, "too_many_seasons")
        .problem(504, "not_yet_applied")
}

pub fn move_season() -> Doc {
    write(TAG, "Move a planned season")
        .describe(
            "Has a season that was planned by `POST` and has not begun begin at another time, at least a \
             second ahead, and between those beside it. `planned_seasons` of the board lists them. In the last \
             second before it begins it is refused with `season_conflict`.",
        )
        .body("MovedSeasonInput", true, "When it begins.")
        .answer(200, "OpenedSeason", "The season is planned for that time.")
        .problem(404, "unknown_board")
        .problem(404, "unknown_window")
        .problem(409, "no_manual_seasons")
        .problem(409, "season_conflict")
        .problem(504, "not_yet_applied")
}

pub fn cancel_season() -> Doc {
    write(TAG, "Cancel a planned season")
        .describe(
            "Cancels a season that was planned by `POST` and has not begun; of several, the last one. The \
             running season goes on; a regular one ends when it would have. In the last second before it begins \
             it is refused with `season_conflict`.",
        )
        .answer(200, "CancelledSeason", "The season is not planned any more.")
        .problem(404, "unknown_board")
        .problem(404, "unknown_window")
        .problem(409, "no_manual_seasons")
        .problem(409, "season_conflict")
        .problem(504, "not_yet_applied")
}

pub fn delete_board() -> Doc {
    write(TAG, "Drop a board")
        .describe(
            "Drops the board with all of its entries, on every shard. If the drop fails before all shards \
             have made it, the board is unknown to clients already; send the same request again to \
             complete it. A job or a definition that arrives in the meantime creates a new board, as it \
             would after the drop.",
        )
        .answer(200, "DroppedBoard", "The board is dropped.")
        .problem(404, "unknown_board")
        .problem(504, "not_yet_applied")
}

pub fn clear_board() -> Doc {
    write(TAG, "Clear a board")
        .describe(
            "Removes every entry of the board, of all its windows, including hidden entries and remembered removals; the \
             definition stays. Versions of the removed entries are forgotten, so that a late retry of an \
             older write is applied like a new one. In a shard's queue, the clear removes the effects of \
             jobs before it, and keeps those of jobs after it. It takes the same time however many \
             entries there are. If it fails before all shards have made it, readers find the board empty \
             already; send the same request again to complete it.",
        )
        .answer(200, "RemovedEntries", "The board is empty.")
        .problem(404, "unknown_board")
        .problem(504, "not_yet_applied")
}

pub fn trim_board() -> Doc {
    write(TAG, "Trim a board")
        .describe(
            "Removes the entries beyond a position, those with a worse score, or those with a better one; \
             give exactly one of the three. The place where the removed entries begin is found once, over all shards. An entry is \
             removed if it is on that side of the place at that time, and still is when the removal reaches \
             its shard's queue; an entry that has left that side in the meantime stays. Hidden entries \
             with a score on that side are removed, too. A removal by a trim has no version of its own; if the \
             entry had a version, it is remembered.\n\nOne instance is trimmed: that of `window`, or \
             `all`, or if the board does not have it the current instance of its first window. A closed \
             instance is final, and refused with `closed_window`.\n\nA large trim is many messages, and takes some \
             seconds per million entries. It stops if its client disconnects: entries that were removed \
             stay removed, and the same request removes the rest.",
        )
        .body("TrimInput", true, "Which entries are removed.")
        .query(shared("window"))
        .answer(200, "RemovedEntries", "The entries are removed.")
        .problem(404, "unknown_board")
        .problem(404, "unknown_window")
        .problem(409, "closed_window")
        .problem(422, "bad_score")
        .problem(422, "too_large")
        .problem(504, "not_yet_applied")
}

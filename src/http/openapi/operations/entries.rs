//! Entries: one, its neighbours, a group's, a member's, and pages of a board.

use serde_json::{Value, json};

use crate::board::{COMBINED_ENTRIES_MAX, COMBINED_LOOKUPS_MAX};
use crate::http::openapi::doc::Doc;
use crate::http::openapi::operations::kinds::{read, read_board, read_table};
use crate::http::openapi::parameters::{
    hidden, limit, list, movement, neighbours, or_empty, query, signed, windows,
};
use crate::http::openapi::problems::{ANY, READ};
use crate::http::openapi::reference::{component, shared};
use crate::http::request::json_body::BATCH_MAX;
use crate::http::resources::combine::BOARDS_MAX;
use crate::http::resources::live::{
    HEARTBEAT, LIVE_MEMBERS_MAX, LIVE_RATE, LIVE_RATE_MAX, LIVE_TOP, LIVE_TOP_MAX,
};
use crate::http::resources::members::NEIGHBOURS_MAX;

const ENTRIES: &str = "Entries";
const LISTS: &str = "Lists";

fn reached_at() -> Value {
    query(
        "reached_at",
        &json!({"type": "boolean", "default": false}),
        "Whether an entry has `reached_at`, the time at which the score was reached, on boards where \
         it orders ties. A copy of a board needs it to keep the order of ties. `updated_at` may be \
         later.",
    )
}

fn version() -> Value {
    query(
        "version",
        &json!({"type": "boolean", "default": false}),
        "Whether an entry has `version`, the greatest one of the jobs that it took, if any had one. A copy of \
         a board needs it to refuse what the board would refuse.",
    )
}

pub fn member() -> Doc {
    read_board(ENTRIES, "A member's entry")
        .describe(
            "Score, rank, position and percentile of a member on a board. With `windows`, the entries in several \
             windows or instances, all at one `as_of`: `windows` of the answer has them by the names that were \
             asked for, and `null` where the member has none.",
        )
        .query(movement())
        .query(hidden())
        .query(windows("`*` asks for the current instance of each window of the board."))
        .query(reached_at())
        .query(version())
        .answer_as(
            200,
            "application/json",
            &json!({"anyOf": [component("Entry"), component("EntryByWindow")]}),
            "The entry, or with `windows` the entries.",
        )
        .problem(404, "unknown_member")
        .problem(422, "bad_member")
}

pub fn around() -> Doc {
    read_table(ENTRIES, "A member and its neighbours")
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
    read_table(ENTRIES, "A group of members")
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

pub fn combine() -> Doc {
    read(LISTS, "Several boards together")
        .describe(format!(
            "A list over several boards, such as a high-score list over all games, exact at one `as_of`: each \
             member's scores, multiplied by the weights of their boards, are added up, or the least or the \
             greatest one is taken. `union` ranks the members of any of the boards, `inter` those of all, \
             and `diff` those of the first one that are on none of the others, by their scores there. Hidden \
             entries are left out.\n\nUp to {BOARDS_MAX} boards of one key, none of them of the kind `top_k`, \
             or with more entries than its `capacity`. Scores of integers and whole weights are combined exactly, \
             and a result beyond 64 bits is refused with `bad_score`; with doubles, or a weight with a fraction, \
             all are combined as doubles. Equal results share a rank and are ordered by the bytes of the \
             members' ids. Shards combine up to {COMBINED_ENTRIES_MAX} entries of all boards each, or look up to \
             {COMBINED_LOOKUPS_MAX} entries of one board up on the others; beyond that the answer is \
             `too_large`. With `window`, all boards are read by it."
        ))
        .body("CombineInput", true, "The boards, and what is wanted of the result.")
        .answer(200, "CombinedBoards", "The list.")
        .problem(404, "unknown_board")
        .problem(404, "unknown_window")
        .problem(422, "bad_cursor")
        .problem(422, "bad_member")
        .problem(422, "bad_score")
        .problem(422, "unsupported")
}

pub fn member_boards() -> Doc {
    let boards = format!(
        "Up to {BATCH_MAX} boards. A comma within a name is percent-encoded. Without it, all boards that the member is on, up to {BATCH_MAX} at a time."
    );
    read(ENTRIES, "A member on several boards")
        .describe(
            "The member's entries, by board. Each board is read by the instance that `window` asks for, or \
             by that of its default window; `window` of the entry names it. Boards that do not exist, \
             that do not have the instance, or that the member is not on, are in `not_found`. If all boards are asked for and there are more, `next_cursor` is the \
             beginning of the next page: pages follow the order in which boards were created, and within \
             a page boards are sorted by name. A page may have few entries and still not be the last one. With \
             `profile=true` and without `boards` the answer has the member's `profile`, too, beside its entries: \
             a member may have one and be on no board.",
        )
        .query(windows(
            "`*` asks for the current instance of each window of a board that `boards` names; without `boards`, \
             for every instance that holds an entry of the member.",
        ))
        .query(list("boards", &component("BoardName"), BATCH_MAX, &boards))
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": "^([0-9a-f]+~)?[0-9]*$"}),
            "The `next_cursor` of the page before, without `boards`; empty means the first page.",
        ))
        .query(hidden())
        .answer(200, "MemberBoards", "The entries.")
        .problem(422, "bad_member")
}

pub fn top() -> Doc {
    read_table(LISTS, "The entries at an end of a board")
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
            &json!({"type": "string", "pattern": "^([0-9a-f]+~)?([0-9a-f]{2})*$"}),
            "The `next_cursor` of the page before; empty means the first page.",
        ))
        .query(query(
            "from",
            &json!({"type": "string", "enum": ["top", "bottom"]}),
            "The end to begin at, `top` by default. With a cursor it may be left out.",
        ))
        .query(reached_at())
        .query(version())
        .query(movement())
        .answer(200, "Page", "A page.")
        .problem(422, "bad_cursor")
}

pub fn live() -> Doc {
    let top = json!({"type": "integer", "minimum": 0, "maximum": LIVE_TOP_MAX, "default": LIVE_TOP});
    let rate = json!({"type": "integer", "minimum": 1, "maximum": LIVE_RATE_MAX, "default": LIVE_RATE});
    Doc::new(LISTS, "A board as it changes")
        .problems(ANY)
        .problems(READ)
        .problem(404, "unknown_board")
        .problem(404, "unknown_window")
        .problem(422, "bad_member")
        .describe(format!(
            "Server-sent events: the top of a board, and members wherever they are. The first event, \
             `state`, has all of it (`LiveState`). Each further one, `changes`, has what has changed since \
             the event before (`LiveChanges`): put its `entries` in the place of those of the same member, \
             take away those of `left`, and sort by `position`. There are at most `max_rate` a second. A \
             client that reads slowly gets fewer, each with all that has changed, and its place is that of \
             the newest. There is another `state` if it has missed many, if the window has another current \
             instance, and if the board was cleared.\n\nEach event has an `id`. A client that lost its connection sends the last \
             one as `Last-Event-ID`, to any node, as browsers do by themselves. It gets `changes` if the \
             node still knows what it had, and otherwise `state`, which takes the place of all before. \
             Nothing is missed in either case. After {} seconds without an event there is a comment.\n\n\
             `stale` in an event says that a shard does not answer or does not apply what is published, so \
             that what is shown may be old. The event `end` has a problem: the board was dropped \
             (`unknown_board`), the instance is not kept any more (`unknown_window`), or the token was \
             taken back (`invalid_token`) or may not read the board any more (`forbidden_board`). The \
             stream ends after it, and also without it when the node shuts down: connect \
             again then.\n\nAll who watch the same window of a board at the same rate share one \
             computation, and a board that does not change is not computed. A node has a limit of watchers, \
             in all and of one address; over it the answer is 503 `overloaded`.",
            HEARTBEAT.as_secs()
        ))
        .query(shared("window"))
        .query(shared("after"))
        .query(shared("timeout_ms"))
        .query(query("top", &top, "How many of the best entries are watched."))
        .query(list(
            "members",
            &component("MemberId"),
            LIVE_MEMBERS_MAX,
            &format!(
                "Up to {LIVE_MEMBERS_MAX} members that are watched wherever they are. A comma within an id \
                 is percent-encoded. Over several nodes they may be of later sequences than `as_of` names."
            ),
        ))
        .query(query("max_rate", &rate, "The most events a second."))
        .header(
            "Last-Event-ID",
            &json!({"type": "string"}),
            "The `id` of the last event that the client had. One that is not of this form counts as none.",
        )
        .answer_as(
            200,
            "text/event-stream",
            &json!({
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {
                    "anyOf": [component("LiveState"), component("LiveChanges"), component("Problem")]
                }
            }),
            "Events without end. The data of each is one line of JSON.",
        )
}

pub fn positions() -> Doc {
    read_table(LISTS, "The entries from a position on")
        .describe(
            "The page that begins at a position. A deep position takes no longer, because entries before \
             it are not read. A page beyond the end has no entries. Send `next_cursor` to `top` for the \
             page that follows.",
        )
        .query(limit())
        .answer(200, "Page", "A page.")
}

pub fn range() -> Doc {
    read_table(LISTS, "The entries between two scores")
        .describe(
            "Entries whose first key lies between the two bounds, which are inclusive as in `count`, best \
             first, a page at a time. Leave a bound out, or empty, for no bound. Entries before the page \
             are not read. The cursor works like that of `top`.",
        )
        .query(or_empty(query("min", &signed(), "The least value.")))
        .query(or_empty(query("max", &signed(), "The greatest value; not below `min`.")))
        .query(limit())
        .query(query(
            "cursor",
            &json!({"type": "string", "pattern": "^([0-9a-f]+~)?([0-9a-f]{2})*$"}),
            "The `next_cursor` of the page before; empty means the first page.",
        ))
        .answer(200, "Page", "A page.")
        .problem(422, "bad_score")
        .problem(422, "bad_cursor")
}

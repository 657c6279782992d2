//! Every problem's code, when it comes, and with which statuses.
//!
//! A test reads `http/render/problem.rs` and finds each code of it here.

/// Statuses that problems have, in the order in which the document has them.
pub const PROBLEM_STATUSES: &[u16] = &[400, 401, 403, 404, 405, 408, 409, 413, 422, 500, 501, 503, 504];

pub struct ProblemKind {
    pub code: &'static str,
    pub statuses: &'static [u16],
    pub meaning: &'static str,
}

const fn kind(code: &'static str, statuses: &'static [u16], meaning: &'static str) -> ProblemKind {
    ProblemKind { code, statuses, meaning }
}

/// All of them, those of jobs first.
pub const PROBLEMS: &[ProblemKind] = &[
    kind(
        "malformed",
        &[400, 422],
        "a name, a token, a job or the JSON itself is not well-formed; `detail` says what and where",
    ),
    kind(
        "unknown_board",
        &[404, 409],
        "there is no board of this name; for a job, the node runs with `--no-auto-create`, so that jobs do not create boards",
    ),
    kind("bad_member", &[422], "a member's id is not 1 to 256 bytes of UTF-8 without control characters"),
    kind(
        "bad_score",
        &[409, 422],
        "a score is not 1 to 8 numbers of the types of the board's keys (exact signed 64-bit integers, or doubles), or has another number of keys; or a sum of doubles would be no number",
    ),
    kind("out_of_range", &[409], "a key would leave the `min` and `max` of the board"),
    kind("overflow", &[409], "an increment would leave the 64-bit range; it is neither wrapped nor clamped"),
    kind(
        "stale_version",
        &[409],
        "the job's `version` is not greater than the stored one: the job was applied before, or a later one was, \
         and then an `incr` is not added",
    ),
    kind(
        "closed_window",
        &[409],
        "the time of the job falls in a window that is closed, or the instance to be trimmed is closed",
    ),
    kind(
        "future_time",
        &[409],
        "`at` is more than five minutes after the time at which the queue took the job",
    ),
    kind(
        "read_only",
        &[403],
        "the board or the service is read-only, for the reason that `detail` has, until an operator takes that \
         back; nothing was written",
    ),
    kind("wrong_shard", &[409], "the job was published to another shard than its member's"),
    kind(
        "too_large",
        &[409, 413, 422],
        "a limit is exceeded: of a page, a batch, the boards of a request's jobs, metadata, or the 1 MiB \
         of a body; for a job also: it has a new member, and the shard holds as many members as it can",
    ),
    kind("unauthorized", &[401], "a bearer token is needed, and the request has none"),
    kind("invalid_token", &[401], "the token is unknown, or was removed"),
    kind("insufficient_scope", &[403], "the token does not have the scope that the request needs"),
    kind(
        "forbidden_board",
        &[403],
        "the token is confined to boards whose names begin with other prefixes; the answer does not tell whether the board exists",
    ),
    kind(
        "forbidden_profile",
        &[403],
        "the token is confined to some boards, and does not let its user read profiles (`profile=true`) or write them; the key `profiles` of its line decides",
    ),
    kind(
        "foreign_origin",
        &[403],
        "a page of another site has sent the request, as its `Origin` or `Sec-Fetch-Site` says, and the node does not allow that site (`--allow-origin`); or the node asks for no tokens and listens on a loopback address, and `Host` is not localhost or such an address",
    ),
    kind("unknown_route", &[404], "there is nothing at this path"),
    kind(
        "method_not_allowed",
        &[405],
        "the path does not support this method; `Allow` lists those that it supports",
    ),
    kind(
        "unknown_member",
        &[404],
        "the member has no entry on this board, or one that the board does not show",
    ),
    kind(
        "unknown_window",
        &[404],
        "the board does not have the window, or the instance has not begun, or was dropped; `detail` says which",
    ),
    kind("unknown_position", &[404], "the board has fewer entries than that"),
    kind("bad_parameter", &[422], "a query parameter, or a field of the body, is unknown or not valid"),
    kind(
        "bad_cursor",
        &[422],
        "the cursor was not returned for this board, window and direction, or for these filters of rejects",
    ),
    kind(
        "unsupported",
        &[422],
        "a request that changes something and writes no jobs has the header `Idempotency-Key`, by which it is not \
         recognised",
    ),
    kind("invalid_definition", &[422], "a board's definition is not valid; `detail` says why"),
    kind("unknown_shard", &[422], "the token names a shard that this service does not have"),
    kind("no_manual_seasons", &[409], "the board has no seasons, so that none can be opened"),
    kind(
        "season_conflict",
        &[409],
        "a season is planned or has just begun, so that the request looks like a repeated one; or the season \
         would not begin between those beside it, or has begun and cannot change any more; `detail` says \
         which, and what to send",
    ),
    kind("too_many_seasons", &[409], "the board has as many manual seasons as it can"),
    kind(
        "would_drop",
        &[409],
        "the change would drop instances or entries, whose numbers are in `instances` and `entries`; \
         `?force=true` consents",
    ),
    kind("board_differs", &[409], "the board exists with other values of settings that cannot change"),
    kind(
        "too_many_boards",
        &[422],
        "the node holds as many boards as it can, or the token may not create another one",
    ),
    kind(
        "body_too_slow",
        &[408],
        "the body did not arrive in time: 30 seconds, unless the node's `--body-seconds` is another",
    ),
    kind("unsupported_coding", &[501], "the body has a `Transfer-Encoding` other than `chunked`"),
    kind("internal", &[500], "the request failed because of an error in the service; its log says more"),
    kind(
        "overloaded",
        &[503],
        "too many requests are in progress, or too many connections are open, or answers would take too \
         much memory; try again after `Retry-After` seconds",
    ),
    kind(
        "shard_unavailable",
        &[503],
        "no node answers for a shard, or a shard takes no writes at the moment, or its rejects cannot be read; `detail` says why, and `shards` names shards that no node answers for",
    ),
    kind(
        "shard_damaged",
        &[503],
        "the requested data is in damaged files of a shard; trying again does not help, and `detail` says what does",
    ),
    kind("queue_full", &[503], "a shard's queue is full"),
    kind(
        "commit_unknown",
        &[503],
        "the outcome of the write was not known in time: it may be applied or not, so send it again with \
         the same `version`; with NATS this is also the answer if a commit failed, because the message \
         stays in the stream and is applied later",
    ),
    kind(
        "commit_failed",
        &[503],
        "the write could not be committed, and is not applied. Only without NATS. It may be on disk \
         nevertheless, and be applied after the store is reopened, so send it again with the same \
         `version`",
    ),
    kind(
        "unknown_snapshot",
        &[404],
        "there is no such snapshot, shard or file; an abandoned snapshot is removed",
    ),
    kind(
        "too_many_snapshots",
        &[409],
        "as many snapshots as the node holds at a time are being fetched already",
    ),
    kind("snapshot_failed", &[503], "the node's files could not be copied or read; `detail` says why"),
    kind(
        "not_ready",
        &[503],
        "a shard is not live, or too far behind its queue, or its lag is not known yet",
    ),
    kind(
        "other_history",
        &[409],
        "the token or the cursor is of what the service had before it was set back to an earlier state, by a restore \
         or `--adopt`: those writes are lost",
    ),
    kind("not_yet_applied", &[504], "the writes that the token names were not applied within `timeout_ms`"),
];

/// Problems of any request.
pub const ANY: &[(u16, &str)] = &[
    (400, "malformed"),
    (408, "body_too_slow"),
    (413, "too_large"),
    (500, "internal"),
    (501, "unsupported_coding"),
    (503, "overloaded"),
];

/// Problems of any request that needs a token.
pub const REFUSED_TOKENS: &[(u16, &str)] =
    &[(401, "unauthorized"), (401, "invalid_token"), (403, "insufficient_scope"), (403, "foreign_origin")];

/// Problems of the parameters of a read, and of the wait for a token.
pub const READ: &[(u16, &str)] = &[
    (403, "forbidden_profile"),
    (409, "other_history"),
    (422, "bad_parameter"),
    (422, "malformed"),
    (422, "too_large"),
    (422, "unknown_shard"),
    (503, "shard_unavailable"),
    (504, "not_yet_applied"),
];

/// Problems of any write that reaches its shard's queue.
pub const WRITE: &[(u16, &str)] = &[
    (403, "read_only"),
    (422, "bad_parameter"),
    (422, "malformed"),
    (422, "unsupported"),
    (503, "shard_unavailable"),
    (503, "queue_full"),
    (503, "commit_unknown"),
    (503, "commit_failed"),
];

/// Why the state refuses a job.
pub const REJECTED: &[(u16, &str)] = &[
    (409, "unknown_board"),
    (409, "bad_score"),
    (409, "out_of_range"),
    (409, "overflow"),
    (409, "stale_version"),
    (409, "closed_window"),
    (409, "future_time"),
    (409, "wrong_shard"),
    (409, "too_large"),
];

pub fn meaning(code: &str) -> &'static str {
    let known = PROBLEMS.iter().find(|problem| problem.code == code);
    known
        .map(|problem| problem.meaning)
        .expect("a test finds every code that an operation names in the table")
}

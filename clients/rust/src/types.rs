//! The types of requests and answers. `make clients-generate` writes this file: do not edit it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::query::{HasReading, Pairs, Query};
use crate::request::Request;
use crate::{Score, Season, Time, Token};

words! {
    /// Which values of a key are better.
    Order {
        Asc = "asc",
        Desc = "desc",
    }
}

words! {
    /// What the values of a key are.
    KeyType {
        Integer = "integer",
        Float = "float",
    }
}

words! {
    /// What an increment beyond a bound does.
    Beyond {
        Reject = "reject",
        Clamp = "clamp",
    }
}

words! {
    /// What a job without `op` does.
    Policy {
        Set = "set",
        Best = "best",
        Incr = "incr",
    }
}

words! {
    /// Which of equal scores comes first.
    Ties {
        First = "first",
        Last = "last",
        Member = "member",
        MemberDesc = "member_desc",
    }
}

words! {
    /// A time slice that a board has a ranking of.
    Window {
        All = "all",
        Hour = "hour",
        Day = "day",
        Week = "week",
        Month = "month",
        Season = "season",
    }
}

words! {
    /// What a board keeps.
    BoardKind {
        Ranking = "ranking",
        TopK = "top_k",
    }
}

words! {
    /// What a job does.
    Op {
        Set = "set",
        Best = "best",
        Incr = "incr",
        Create = "create",
        Update = "update",
        Remove = "remove",
        Hide = "hide",
        Show = "show",
        Profile = "profile",
    }
}

words! {
    /// Why a job was rejected.
    Reason {
        Malformed = "malformed",
        UnknownBoard = "unknown_board",
        BadMember = "bad_member",
        BadScore = "bad_score",
        OutOfRange = "out_of_range",
        Overflow = "overflow",
        StaleVersion = "stale_version",
        ClosedWindow = "closed_window",
        WrongShard = "wrong_shard",
        TooLarge = "too_large",
        FutureTime = "future_time",
        ReadOnly = "read_only",
    }
}

words! {
    /// Why a job was neither applied nor rejected.
    Failure {
        Overloaded = "overloaded",
        ShardUnavailable = "shard_unavailable",
        QueueFull = "queue_full",
        CommitUnknown = "commit_unknown",
        CommitFailed = "commit_failed",
        TooLarge = "too_large",
    }
}

words! {
    /// Which members of several boards are taken together.
    Combination {
        Union = "union",
        Inter = "inter",
        Diff = "diff",
    }
}

words! {
    /// What becomes of the scores of a member on several boards.
    Aggregate {
        Sum = "sum",
        Min = "min",
        Max = "max",
    }
}

words! {
    /// How a shard is.
    State {
        Live = "live",
        CatchingUp = "catching_up",
        Halted = "halted",
        Silent = "silent",
        Unknown = "unknown",
        NoOwner = "no_owner",
    }
}

words! {
    /// Whether the node that answers owns a shard.
    Ownership {
        Local = "local",
        Remote = "remote",
    }
}

words! {
    /// How full a stream is.
    Level {
        Roomy = "roomy",
        NearlyFull = "nearly_full",
        Full = "full",
    }
}

words! {
    /// Whether ranks may come from summaries.
    Accuracy {
        Exact = "exact",
        Approx = "approx",
    }
}

words! {
    /// What a write waits for.
    Wait {
        Applied = "applied",
    }
}

words! {
    /// What is told of each job.
    Results {
        Changed = "changed",
    }
}

words! {
    /// The end of a board that a list begins at.
    End {
        Top = "top",
        Bottom = "bottom",
    }
}

/// `KeyInput` of the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeyInput {
    /// 1 to 64 bytes, different from the names of the other keys.
    pub name: String,
    /// `desc`: greater is better; `asc`: smaller is better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// `integer`: exact signed 64-bit integers. `float`: IEEE doubles, so fractions and infinities too;
    /// `incr` adds as doubles do. It can never change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<KeyType>,
    /// The least value that a job may lead to. Existing entries stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub min: Option<i64>,
    /// The greatest value that a job may lead to; not below `min`. Existing entries stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub max: Option<i64>,
    /// What an `incr` to less than `min` does. `reject` refuses the job; `clamp` stops at the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_min: Option<Beyond>,
    /// What an `incr` to more than `max` does. `reject` refuses the job; `clamp` stops at the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_max: Option<Beyond>,
}

impl KeyInput {
    /// With `name` and nothing else.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets `order`.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = Some(order);
        self
    }

    /// Sets `type`.
    #[must_use]
    pub fn r#type(mut self, r#type: KeyType) -> Self {
        self.r#type = Some(r#type);
        self
    }

    /// Sets `min`.
    #[must_use]
    pub fn min(mut self, min: i64) -> Self {
        self.min = Some(min);
        self
    }

    /// Sets `max`.
    #[must_use]
    pub fn max(mut self, max: i64) -> Self {
        self.max = Some(max);
        self
    }

    /// Sets `below_min`.
    #[must_use]
    pub fn below_min(mut self, below_min: Beyond) -> Self {
        self.below_min = Some(below_min);
        self
    }

    /// Sets `above_max`.
    #[must_use]
    pub fn above_max(mut self, above_max: Beyond) -> Self {
        self.above_max = Some(above_max);
        self
    }
}

/// A component of a board's scores. An absent `min` or `max` means no bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Key {
    /// `name`.
    pub name: String,
    /// `order`.
    pub order: Order,
    /// `float`: IEEE doubles. Absent: exact 64-bit integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<KeyType>,
    /// `min`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub min: Option<i64>,
    /// `max`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub max: Option<i64>,
    /// `clamp`: an `incr` to less than `min` leads to `min`. Absent: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_min: Option<Beyond>,
    /// `clamp`: an `incr` to more than `max` leads to `max`. Absent: it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above_max: Option<Beyond>,
}

/// An instance of a window. It exists from its beginning on, whether or not it has entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Instance {
    /// `name`.
    pub name: String,
    /// `begin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<Time>,
    /// `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Time>,
    /// Whether jobs can still enter it: until its end and the board's `grace`.
    pub open: bool,
    /// Entries of the instance.
    pub total: u64,
}

/// A season that was planned by a request and has not begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlannedSeason {
    /// `name`.
    pub name: String,
    /// `begin`.
    pub begin: Time,
}

/// What a board's definition is to have. On a new board absent fields have their default; on one that is
/// there they keep their value. `null` is the default. Only `policy`, `keep`, `grace`, `entry_ttl`,
/// `expires_at`, `expires_after`, `capacity`, the `every` of `season` and the bounds of keys with
/// `below_min` and `above_max` can change, and windows be added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DefinitionInput {
    /// The components of a score, compared in this order. Default: one key, `score`, descending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<KeyInput>>,
    /// What a job without `op` does: `set` (the latest wins), `best` or `incr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Which of equal scores comes first: that of the `first` or the `last` member to reach it, or with
    /// `member` that of the smallest id, compared byte by byte. The id also decides if the times are equal.
    /// Equal scores share their rank regardless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ties: Option<Ties>,
    /// The kinds of time slices that the board has a ranking of, `["all"]` if absent. Each has instances:
    /// `all`, `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11`, `s7`. Weeks are those of ISO 8601. A
    /// read that names no window is of `all`, or of the first one of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<Window>>,
    /// When seasons begin. Given if, and only if, `season` is one of the windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub season: Option<Season>,
    /// Where hours, days, weeks and months begin, `+09:00`, from `-18:00` to `+18:00`. Default: `+00:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utc_offset: Option<String>,
    /// Closed instances kept per kind of window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u64>,
    /// How long an instance stays open after its end, up to `36500d`. It may keep at most 10,000 instances
    /// of a window open: with the window `hour` it is at most `10000h`. All windows together have at most
    /// 16,000 instances, those of `keep` included. A whole number and one of `s`, `m`, `h`, `d` and `w`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
    /// How long an entry stays that is not updated, `1s` to `36500d`. Default: forever. A whole number and
    /// one of `s`, `m`, `h`, `d` and `w`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_ttl: Option<String>,
    /// When the board ends: it is dropped then, as `DELETE` drops it. A time that is over is refused on a
    /// new board; on one that is there it takes `?force=true`. Default: it does not end at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// How long after its last job the board ends, `1s` to `36500d`: it is dropped then. Until the first job
    /// it is counted from when the board was defined, and anew from when this is changed. Default: it stays.
    /// A whole number and one of `s`, `m`, `h`, `d` and `w`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
    /// Each instance shows only so many entries, the best ones: those at later positions are not listed and
    /// not counted. They are kept, and shown again when those before them leave or the capacity grows.
    /// Default: all are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// `ranking` keeps all members. `top_k`, for streams of unbounded members, keeps those with the greatest
    /// counts in fixed memory (SpaceSaving): `capacity`, which must be given and cannot change later, is the
    /// number of entries that each instance has on each shard at most, and entries have `error`. It has one
    /// descending key and the policy `incr`, `ties` of `first` or `last`, no `entry_ttl` and no `movement`.
    /// Its jobs are `incr` by 0 or more and `remove`, without `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<BoardKind>,
    /// `true` keeps what `movement` of reads needs: how positions in `all` were when the current instance of
    /// each other window began. The windows must be `all` and at least one other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement: Option<bool>,
}

impl DefinitionInput {
    /// Without anything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `keys`.
    #[must_use]
    pub fn keys(mut self, keys: impl Into<Vec<KeyInput>>) -> Self {
        self.keys = Some(keys.into());
        self
    }

    /// Sets `policy`.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets `ties`.
    #[must_use]
    pub fn ties(mut self, ties: Ties) -> Self {
        self.ties = Some(ties);
        self
    }

    /// Sets `windows`.
    #[must_use]
    pub fn windows(mut self, windows: impl Into<Vec<Window>>) -> Self {
        self.windows = Some(windows.into());
        self
    }

    /// Sets `season`.
    #[must_use]
    pub fn season(mut self, season: impl Into<Season>) -> Self {
        self.season = Some(season.into());
        self
    }

    /// Sets `utc_offset`.
    #[must_use]
    pub fn utc_offset(mut self, utc_offset: impl Into<String>) -> Self {
        self.utc_offset = Some(utc_offset.into());
        self
    }

    /// Sets `keep`.
    #[must_use]
    pub fn keep(mut self, keep: u64) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Sets `grace`.
    #[must_use]
    pub fn grace(mut self, grace: impl Into<String>) -> Self {
        self.grace = Some(grace.into());
        self
    }

    /// Sets `entry_ttl`.
    #[must_use]
    pub fn entry_ttl(mut self, entry_ttl: impl Into<String>) -> Self {
        self.entry_ttl = Some(entry_ttl.into());
        self
    }

    /// Sets `expires_at`.
    #[must_use]
    pub fn expires_at(mut self, expires_at: impl Into<Time>) -> Self {
        self.expires_at = Some(expires_at.into());
        self
    }

    /// Sets `expires_after`.
    #[must_use]
    pub fn expires_after(mut self, expires_after: impl Into<String>) -> Self {
        self.expires_after = Some(expires_after.into());
        self
    }

    /// Sets `capacity`.
    #[must_use]
    pub fn capacity(mut self, capacity: u64) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Sets `kind`.
    #[must_use]
    pub fn kind(mut self, kind: BoardKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Sets `movement`.
    #[must_use]
    pub fn movement(mut self, movement: bool) -> Self {
        self.movement = Some(movement);
        self
    }
}

/// Entries of the board, by window: of `all`, or if the board does not have it of the current instance of
/// its first window. With the parameter `window`: of that one. Empty if there is no such instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BoardTotals {
    /// Entries of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<u64>,
    /// Entries of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hour: Option<u64>,
    /// Entries of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<u64>,
    /// Entries of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub week: Option<u64>,
    /// Entries of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub month: Option<u64>,
    /// Entries of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub season: Option<u64>,
}

/// A board's definition, and how many entries it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedBoard {
    /// `board`.
    pub board: String,
    /// `keys`.
    pub keys: Vec<Key>,
    /// `policy`.
    pub policy: Policy,
    /// `ties`.
    pub ties: Ties,
    /// `windows`.
    pub windows: Vec<Window>,
    /// When seasons begin: `null` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub season: Option<Season>,
    /// `utc_offset`.
    pub utc_offset: String,
    /// Closed instances kept per kind of window.
    pub keep: u64,
    /// How long an instance stays open after its end, in the longest unit that divides it.
    pub grace: String,
    /// `entry_ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_ttl: Option<String>,
    /// `capacity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Whether reads of `all` take `movement`.
    pub movement: bool,
    /// `kind`.
    pub kind: BoardKind,
    /// `read_only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<ReadOnly>,
    /// `expires_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// `expires_after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
    /// Entries of the board, by window: of `all`, or if the board does not have it of the current instance
    /// of its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    pub totals: BoardTotals,
}

/// The instances that can be read, by window, newest first: from the current one to the oldest one that has
/// entries and is not dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BoardInstances {
    /// `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<Vec<Instance>>,
    /// `hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hour: Option<Vec<Instance>>,
    /// `day`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<Vec<Instance>>,
    /// `week`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub week: Option<Vec<Instance>>,
    /// `month`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub month: Option<Vec<Instance>>,
    /// `season`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub season: Option<Vec<Instance>>,
}

/// For windows with older instances that have entries than those listed: the `cursor` that lists them. More
/// than 1,000 instances behind the newest, it may list some without entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BoardNextCursors {
    /// `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<String>,
    /// `hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hour: Option<String>,
    /// `day`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// `week`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub week: Option<String>,
    /// `month`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub month: Option<String>,
    /// `season`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub season: Option<String>,
}

/// A board's definition, and how many entries it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Board {
    /// `board`.
    pub board: String,
    /// `keys`.
    pub keys: Vec<Key>,
    /// `policy`.
    pub policy: Policy,
    /// `ties`.
    pub ties: Ties,
    /// `windows`.
    pub windows: Vec<Window>,
    /// When seasons begin: `null` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub season: Option<Season>,
    /// `utc_offset`.
    pub utc_offset: String,
    /// Closed instances kept per kind of window.
    pub keep: u64,
    /// How long an instance stays open after its end, in the longest unit that divides it.
    pub grace: String,
    /// `entry_ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_ttl: Option<String>,
    /// `capacity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Whether reads of `all` take `movement`.
    pub movement: bool,
    /// `kind`.
    pub kind: BoardKind,
    /// `read_only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<ReadOnly>,
    /// `expires_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// `expires_after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
    /// Entries of the board, by window: of `all`, or if the board does not have it of the current instance
    /// of its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    pub totals: BoardTotals,
    /// The instances that can be read, by window, newest first: from the current one to the oldest one that
    /// has entries and is not dropped.
    pub instances: BoardInstances,
    /// `ends_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Time>,
    /// `planned_seasons`.
    pub planned_seasons: Vec<PlannedSeason>,
    /// For windows with older instances that have entries than those listed: the `cursor` that lists them.
    /// More than 1,000 instances behind the newest, it may list some without entries.
    pub next_cursors: BoardNextCursors,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// A board's definition, and how many entries it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DefinedBoard {
    /// `board`.
    pub board: String,
    /// `keys`.
    pub keys: Vec<Key>,
    /// `policy`.
    pub policy: Policy,
    /// `ties`.
    pub ties: Ties,
    /// `windows`.
    pub windows: Vec<Window>,
    /// When seasons begin: `null` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub season: Option<Season>,
    /// `utc_offset`.
    pub utc_offset: String,
    /// Closed instances kept per kind of window.
    pub keep: u64,
    /// How long an instance stays open after its end, in the longest unit that divides it.
    pub grace: String,
    /// `entry_ttl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_ttl: Option<String>,
    /// `capacity`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Whether reads of `all` take `movement`.
    pub movement: bool,
    /// `kind`.
    pub kind: BoardKind,
    /// `read_only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<ReadOnly>,
    /// `expires_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// `expires_after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
    /// Entries of the board, by window: of `all`, or if the board does not have it of the current instance
    /// of its first window. With the parameter `window`: of that one. Empty if there is no such instance.
    pub totals: BoardTotals,
    /// Names every shard, with a sequence from which on the definition is in force there.
    pub token: Token,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// Boards by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BoardList {
    /// `boards`.
    pub boards: Vec<ListedBoard>,
    /// `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// The outcome of dropping a board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DroppedBoard {
    /// `board`.
    pub board: String,
    /// `dropped`.
    pub dropped: bool,
    /// `token`.
    pub token: Token,
}

/// When a planned season begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MovedSeasonInput {
    /// `at`.
    pub at: Time,
}

impl MovedSeasonInput {
    /// With `at` and nothing else.
    #[must_use]
    pub fn new(at: impl Into<Time>) -> Self {
        Self { at: at.into() }
    }
}

/// A planned season that was cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CancelledSeason {
    /// `board`.
    pub board: String,
    /// Its name.
    pub season: String,
    /// `cancelled`.
    pub cancelled: bool,
    /// Names every shard, with a sequence from which on that is known there.
    pub token: Token,
}

/// A season that was opened or moved. When it begins, the season before it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenedSeason {
    /// `board`.
    pub board: String,
    /// Its name.
    pub season: String,
    /// `begin`.
    pub begin: Time,
    /// Names every shard, with a sequence from which on the season is known there.
    pub token: Token,
}

/// Which entries are removed: give exactly one of the three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrimInput {
    /// The last position that stays, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positions_beyond: Option<u64>,
    /// The worst score that stays. On boards with several keys it may have the first keys only; then only
    /// these are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worse_than: Option<Score>,
    /// The best score that stays. It may have the first keys only, as `worse_than`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better_than: Option<Score>,
}

impl TrimInput {
    /// Without anything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `positions_beyond`.
    #[must_use]
    pub fn positions_beyond(mut self, positions_beyond: u64) -> Self {
        self.positions_beyond = Some(positions_beyond);
        self
    }

    /// Sets `worse_than`.
    #[must_use]
    pub fn worse_than(mut self, worse_than: impl Into<Score>) -> Self {
        self.worse_than = Some(worse_than.into());
        self
    }

    /// Sets `better_than`.
    #[must_use]
    pub fn better_than(mut self, better_than: impl Into<Score>) -> Self {
        self.better_than = Some(better_than.into());
        self
    }
}

/// The outcome of a removal of many entries. `window` is the instance that was trimmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RemovedEntries {
    /// `board`.
    pub board: String,
    /// `window`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// The number of removed entries, hidden ones included. Of a cleared board: those that `all`, or the
    /// current instance of its first window, held when the clear began.
    pub removed: u64,
    /// Names every shard, with a sequence from which on the entries are removed there.
    pub token: Token,
}

/// One requested change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// `board`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// `member`.
    pub member: String,
    /// `score`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// `scores`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<BTreeMap<String, Score>>,
    /// `set` replaces the score, `best` replaces a worse one, `incr` adds to it key by key, from zero for a
    /// new member; `create` sets it if the member has no entry, and `update` if it has one. Default: the
    /// board's `policy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<Op>,
    /// The job applies only if this is greater than the version stored for the member and the board, or of
    /// the profile, so that a repetition counts once. Of jobs that overtake each other the older one is
    /// rejected: an `incr` is not added then. Use `id` where several senders add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at`
    /// is more than five minutes after the queue took it is rejected with `future_time`; exactly five
    /// minutes are allowed. Default: when the queue took the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same
    /// id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its
    /// result has `repeated`. Default: each job counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Replaces the entry's metadata. Default: left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// `profile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Value>,
}

impl Job {
    /// With `member` and nothing else.
    #[must_use]
    pub fn new(member: impl Into<String>) -> Self {
        Self { member: member.into(), ..Self::default() }
    }

    /// Sets `board`.
    #[must_use]
    pub fn board(mut self, board: impl Into<String>) -> Self {
        self.board = Some(board.into());
        self
    }

    /// Sets `score`.
    #[must_use]
    pub fn score(mut self, score: impl Into<Score>) -> Self {
        self.score = Some(score.into());
        self
    }

    /// Sets `scores`.
    #[must_use]
    pub fn scores(mut self, scores: impl IntoIterator<Item = (impl Into<String>, impl Into<Score>)>) -> Self {
        self.scores = Some(scores.into_iter().map(|(key, value)| (key.into(), value.into())).collect());
        self
    }

    /// Sets `op`.
    #[must_use]
    pub fn op(mut self, op: Op) -> Self {
        self.op = Some(op);
        self
    }

    /// Sets `version`.
    #[must_use]
    pub fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets `at`.
    #[must_use]
    pub fn at(mut self, at: impl Into<Time>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// Sets `id`.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets `meta`.
    #[must_use]
    pub fn meta(mut self, meta: Value) -> Self {
        self.meta = Some(meta);
        self
    }

    /// Sets `profile`.
    #[must_use]
    pub fn profile(mut self, profile: Value) -> Self {
        self.profile = Some(profile);
        self
    }
}

/// One job whose board and member are in the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntryInput {
    /// If present, it must be the board of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// If present, it must be the member of the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// `score`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// `set` replaces the score, `best` replaces a worse one, `incr` adds to it key by key, from zero for a
    /// new member; `create` sets it if the member has no entry, and `update` if it has one. Default: the
    /// board's `policy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<Op>,
    /// The job applies only if this is greater than the version stored for the member and the board, or of
    /// the profile, so that a repetition counts once. Of jobs that overtake each other the older one is
    /// rejected: an `incr` is not added then. Use `id` where several senders add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// When the score was reached, from 1970 to April 2262, with any offset; decides ties. A job whose `at`
    /// is more than five minutes after the queue took it is rejected with `future_time`; exactly five
    /// minutes are allowed. Default: when the queue took the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// 1 to 64 bytes that the sender makes of what happened. A job whose shard has applied one of the same
    /// id, within an hour unless the node is configured otherwise, changes nothing, whoever has sent it: its
    /// result has `repeated`. Default: each job counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Replaces the entry's metadata. Default: left as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

impl EntryInput {
    /// Without anything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `board`.
    #[must_use]
    pub fn board(mut self, board: impl Into<String>) -> Self {
        self.board = Some(board.into());
        self
    }

    /// Sets `member`.
    #[must_use]
    pub fn member(mut self, member: impl Into<String>) -> Self {
        self.member = Some(member.into());
        self
    }

    /// Sets `score`.
    #[must_use]
    pub fn score(mut self, score: impl Into<Score>) -> Self {
        self.score = Some(score.into());
        self
    }

    /// Sets `op`.
    #[must_use]
    pub fn op(mut self, op: Op) -> Self {
        self.op = Some(op);
        self
    }

    /// Sets `version`.
    #[must_use]
    pub fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets `at`.
    #[must_use]
    pub fn at(mut self, at: impl Into<Time>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// Sets `id`.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets `meta`.
    #[must_use]
    pub fn meta(mut self, meta: Value) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// What the entry was before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Previous {
    /// `score`.
    pub score: Score,
    /// Its rank.
    pub rank: u64,
    /// Its position.
    pub position: u64,
}

/// What a job did on a board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BoardResult {
    /// Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its
    /// place among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether
    /// the ban began or ended.
    pub changed: bool,
    /// `entry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// `previous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
}

/// With `repeated`: what came of the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct First {
    /// Whether it changed anything.
    pub changed: bool,
    /// `token`.
    pub token: Token,
}

/// The outcome of the write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntryWritten {
    /// `token`.
    pub token: Token,
    /// Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its
    /// place among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether
    /// the ban began or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// `entry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// `previous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// With the parameter `windows`: the member's entries right after the write, by the names that were
    /// asked for; `null` where the job has entered no instance, and for all of it if the entries cannot be
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<BTreeMap<String, Option<Entry>>>,
    /// Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as
    /// it is now.
    #[serde(default)]
    pub repeated: bool,
    /// With `repeated`: what came of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<First>,
    /// The shards that did not answer; none if the entries kept changing while they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// Boards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// The number of boards that had an entry, or a remembered removal, of the member.
    pub boards: u64,
    /// The number of boards that changed.
    pub changed: u64,
    /// The number of boards that a removal with a `version` has left, as theirs is not smaller. Absent if it
    /// has left nothing, the profile included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
}

/// The outcome of the removal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemberRemoved {
    /// `token`.
    pub token: Token,
    /// Whether the job changed anything: an entry on any board, the profile, or the ban of all boards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// Boards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// What a removal with a `version` has left, and how to remove that: without one. Absent if it has left
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as
    /// it is now.
    #[serde(default)]
    pub repeated: bool,
    /// With `repeated`: what came of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<First>,
}

/// The outcome of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobResult {
    /// Whether the entry is another one afterwards for a reader who may see hidden ones: its score, its
    /// place among ties, `updated_at`, its metadata, or whether it is there. Of `hide` and `show`: whether
    /// the ban began or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// `entry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// `previous`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Previous>,
    /// For a job on several boards: the outcome on each. The `changed`, `entry` and `previous` next to it
    /// are those of the first board.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boards: Option<BTreeMap<String, BoardResult>>,
    /// With the parameter `windows`: the member's entries right after the write, by the names that were
    /// asked for; `null` where the job has entered no instance, and for all of it if the entries cannot be
    /// read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<BTreeMap<String, Option<Entry>>>,
    /// Present if a job of this `id` was applied before: this one has changed nothing, and the entry is as
    /// it is now.
    #[serde(default)]
    pub repeated: bool,
    /// With `repeated`: what came of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<First>,
    /// The shards that did not answer; none if the entries kept changing while they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
    /// Boards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// What a removal with a `version` has left, and how to remove that: without one. Absent if it has left
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `rejected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Reason>,
    /// `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failure>,
    /// `waits_for_board`.
    #[serde(default)]
    pub waits_for_board: bool,
    /// `stored`.
    #[serde(default)]
    pub stored: bool,
}

/// The outcomes of the jobs, one result per job in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobsWritten {
    /// A read with this as `after` sees these writes.
    pub token: Token,
    /// `results`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<JobResult>>,
}

/// A member's entry on a board. `meta` is `{}` if there is none, and `null` if it could not be read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// `member`.
    pub member: String,
    /// `score`.
    pub score: Score,
    /// 1 + better; shared by equal scores, "1 2 2 4".
    pub rank: u64,
    /// The place in the total order, counted from 1; ties are ordered by the board's rule.
    pub position: u64,
    /// Entries with a better score.
    pub better: u64,
    /// Entries with this score, including the entry itself.
    pub tied: u64,
    /// Entries with a worse score.
    pub worse: u64,
    /// Entries of the instance: better + tied + worse.
    pub total: u64,
    /// 100 × worse / total: the share of entries with a worse score. Entries of equal score have the same
    /// percentile, and are not worse than each other.
    pub percentile: f64,
    /// `updated_at`.
    pub updated_at: Time,
    /// `meta`.
    #[serde(default)]
    pub meta: Value,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
    /// The member's profile; `null` if there is none, or if it could not be read. Present with
    /// `profile=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Value>,
    /// The entry's position when the current instance of the window asked for began, less its position now:
    /// positive if it has climbed. `null` if it was not listed then. Present with `movement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement: Option<i64>,
    /// The most by which the score is too high. Present on boards of the kind `top_k`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub error: Option<i64>,
    /// Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the
    /// summaries that `as_of` names. 0 for the first 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_error: Option<u64>,
    /// Present with `hidden=true`, of an entry that is hidden. `rank`, `position` and the counts are those
    /// that there would be if it were not: it counts itself.
    #[serde(default)]
    pub hidden: bool,
    /// Present with `hidden=true`, of an entry that is kept and not listed, because it is beyond the board's
    /// `capacity`. `rank`, `position` and the counts are those among all entries that are kept.
    #[serde(default)]
    pub beyond_capacity: bool,
    /// `reached_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_at: Option<Time>,
    /// `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// A member's entries in several windows of a board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntryByWindow {
    /// `board`.
    pub board: String,
    /// `member`.
    pub member: String,
    /// By the names that were asked for; `null` where the member has no entry.
    pub windows: BTreeMap<String, Option<Entry>>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// A member's entry on another board than the one that is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EntryOnBoard {
    /// `score`.
    pub score: Score,
    /// The most by which the score is too high. Present on boards of the kind `top_k`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub error: Option<i64>,
    /// 1 + the number of entries of that board with a better score; shared by equal scores. Present with
    /// `with_rank=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
}

/// An entry within a list. `reached_at`, the time at which the score was reached, is present if it was asked
/// for and orders the board's ties; `version`, if it was asked for and a job had one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListedEntry {
    /// `member`.
    pub member: String,
    /// `score`.
    pub score: Score,
    /// 1 + the number of entries with a better score; shared by equal scores, "1 2 2 4".
    pub rank: u64,
    /// The place in the total order, counted from 1; ties are ordered by the board's rule.
    pub position: u64,
    /// `updated_at`.
    pub updated_at: Time,
    /// `meta`.
    #[serde(default)]
    pub meta: Value,
    /// The member's profile; `null` if there is none, or if it could not be read. Present with
    /// `profile=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Value>,
    /// The entry's position when the current instance of the window asked for began, less its position now:
    /// positive if it has climbed. `null` if it was not listed then. Present with `movement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement: Option<i64>,
    /// The most by which the score is too high. Present on boards of the kind `top_k`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub error: Option<i64>,
    /// The member on the boards that the parameter `with` names; `null` where it is not listed. Present with
    /// `with`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<BTreeMap<String, Option<EntryOnBoard>>>,
    /// `reached_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_at: Option<Time>,
    /// `version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// Entries in their order. `next_cursor` is the cursor of the next page, and `null` at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Page {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `entries`.
    pub entries: Vec<ListedEntry>,
    /// `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
    /// The instance by which each of the boards was read that the parameter `with` names; `null` where there
    /// is no such instance now. Present with `with`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_windows: Option<BTreeMap<String, Option<String>>>,
}

/// The data of the event `state`: all that is watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LiveState {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `entries`.
    pub entries: Vec<ListedEntry>,
    /// `members`.
    pub members: Vec<ListedEntry>,
    /// `not_found`.
    pub not_found: Vec<String>,
    /// `as_of`.
    pub as_of: Token,
    /// Present if a shard does not answer, or does not apply what is published.
    #[serde(default)]
    pub stale: bool,
}

/// The data of the event `changes`: `entries` of the top that are new in it or have changed, those who have
/// `left` it, watched `members` whose entries have changed, and those who are on the board no longer
/// (`not_found`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LiveChanges {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `entries`.
    pub entries: Vec<ListedEntry>,
    /// `left`.
    pub left: Vec<String>,
    /// `members`.
    pub members: Vec<ListedEntry>,
    /// `not_found`.
    pub not_found: Vec<String>,
    /// `as_of`.
    pub as_of: Token,
    /// Present if a shard does not answer, or does not apply what is published.
    #[serde(default)]
    pub stale: bool,
}

/// The member and its neighbours, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Neighbours {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `entries`.
    pub entries: Vec<ListedEntry>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
    /// The instance by which each of the boards was read that the parameter `with` names; `null` where there
    /// is no such instance now. Present with `with`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_windows: Option<BTreeMap<String, Option<String>>>,
}

/// An entry, and its rank within the group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GroupEntry {
    /// Rank among the members asked for.
    pub group_rank: u64,
    /// `member`.
    pub member: String,
    /// `score`.
    pub score: Score,
    /// 1 + the number of entries with a better score; shared by equal scores, "1 2 2 4".
    pub rank: u64,
    /// The place in the total order, counted from 1; ties are ordered by the board's rule.
    pub position: u64,
    /// `updated_at`.
    pub updated_at: Time,
    /// `meta`.
    #[serde(default)]
    pub meta: Value,
    /// The member's profile; `null` if there is none, or if it could not be read. Present with
    /// `profile=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Value>,
    /// The entry's position when the current instance of the window asked for began, less its position now:
    /// positive if it has climbed. `null` if it was not listed then. Present with `movement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub movement: Option<i64>,
    /// The most by which the score is too high. Present on boards of the kind `top_k`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub error: Option<i64>,
    /// The member on the boards that the parameter `with` names; `null` where it is not listed. Present with
    /// `with`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<BTreeMap<String, Option<EntryOnBoard>>>,
}

/// Those of the members who are on the board, best first, and those who are not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Group {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `entries`.
    pub entries: Vec<GroupEntry>,
    /// `not_found`.
    pub not_found: Vec<String>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
    /// The instance by which each of the boards was read that the parameter `with` names; `null` where there
    /// is no such instance now. Present with `with`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_windows: Option<BTreeMap<String, Option<String>>>,
}

/// A member's entries, by board. `next_cursor` is the cursor for entries on further boards, and `null` at
/// the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MemberBoards {
    /// `member`.
    pub member: String,
    /// What was asked for: the parameter `window`, or `all`; `null` with `windows`. `window` of an entry
    /// names the instance that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// `entries`.
    pub entries: Vec<Entry>,
    /// `not_found`.
    pub not_found: Vec<String>,
    /// `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
    /// The member's profile, whether it has an entry or not; `null` if there is none, or if it could not be
    /// read. Present with `profile=true` and without `boards`, unless the token is confined to some boards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Value>,
}

/// A shard's share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankShard {
    /// The shard's number.
    pub shard: u64,
    /// Better entries on the shard.
    pub better: u64,
    /// Equal entries on the shard.
    pub tied: u64,
    /// Entries on the shard.
    pub total: u64,
}

/// The rank of a score, whether a member has it or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rank {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// `score`.
    pub score: Score,
    /// The rank that this score has, or would have.
    pub rank: u64,
    /// Entries with a better score.
    pub better: u64,
    /// Entries with this score, including the entry itself.
    pub tied: u64,
    /// Entries with a worse score.
    pub worse: u64,
    /// Entries of the instance: better + tied + worse.
    pub total: u64,
    /// `shards`.
    pub shards: Vec<RankShard>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
    /// Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the
    /// summaries that `as_of` names. 0 for the first 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_error: Option<u64>,
}

/// The rank of a score, whether a member has it or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScoreRank {
    /// `score`.
    pub score: Score,
    /// The rank that this score has, or would have.
    pub rank: u64,
    /// Entries with a better score.
    pub better: u64,
    /// Entries with this score, including the entry itself.
    pub tied: u64,
    /// Entries with a worse score.
    pub worse: u64,
    /// Entries of the instance: better + tied + worse.
    pub total: u64,
    /// `shards`.
    pub shards: Vec<RankShard>,
    /// Present with `accuracy=approx`: the most by which `rank` and `position` can be off, as of the
    /// summaries that `as_of` names. 0 for the first 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank_error: Option<u64>,
}

/// The ranks of the scores, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ranks {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `ranks`.
    pub ranks: Vec<ScoreRank>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// The score at that place, and how many entries have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Place {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// `score`.
    pub score: Score,
    /// Its rank.
    pub rank: u64,
    /// Entries with a better score.
    pub better: u64,
    /// Entries with this score, including the entry itself.
    pub tied: u64,
    /// Entries with a worse score.
    pub worse: u64,
    /// Entries of the instance: better + tied + worse.
    pub total: u64,
    /// 100 × worse / total: the share of entries with a worse score. Entries of equal score have the same
    /// percentile, and are not worse than each other.
    pub percentile: f64,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// How many entries lie between the bounds, both inclusive. A bound that was not sent is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Count {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `min`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub min: Option<i64>,
    /// `max`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::integers::optional")]
    pub max: Option<i64>,
    /// Entries whose first key lies between the bounds.
    pub count: u64,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistogramBucket {
    /// `min`.
    #[serde(deserialize_with = "crate::integers::required")]
    pub min: i64,
    /// `max`.
    #[serde(deserialize_with = "crate::integers::required")]
    pub max: i64,
    /// Entries in the bucket.
    pub count: u64,
}

/// Entries by their first key. Buckets include both of their bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Histogram {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `buckets`.
    pub buckets: Vec<HistogramBucket>,
    /// Entries below the first bucket.
    pub below: u64,
    /// Entries above the last one.
    pub above: u64,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// `PercentileScore` of the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PercentileScore {
    /// `p`.
    pub p: f64,
    /// `score`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// Its rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// Entries with a better score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<u64>,
    /// Entries with this score, including the entry itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tied: Option<u64>,
    /// Entries with a worse score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worse: Option<u64>,
    /// Entries of the instance: better + tied + worse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// 100 × worse / total: the share of entries with a worse score. Entries of equal score have the same
    /// percentile, and are not worse than each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
}

/// The score at each percentile, in the order asked for. On a board without entries `score` is `null`,
/// alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// `board`.
    pub board: String,
    /// `window`.
    pub window: String,
    /// Entries of the instance.
    pub total: u64,
    /// `percentiles`.
    pub percentiles: Vec<PercentileScore>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// `CombineInput` of the API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CombineInput {
    /// Boards, and what their scores are multiplied by.
    pub boards: BTreeMap<String, f64>,
    /// `combine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combine: Option<Combination>,
    /// What is made of a member's scores. `diff` has one score of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
    /// Which results are best: the greatest or the least. By default as the boards have it, which must
    /// agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The board from which `diff` takes the others away; by default the first one that `boards` has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// How many entries the page has at most; 0 for the total, and the member, alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The `next_cursor` of the page before, with the same boards, weights, combination and order. Pages go
    /// on in the instances of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// A member whose place in the result is wanted, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
}

impl CombineInput {
    /// With `boards` and nothing else.
    #[must_use]
    pub fn new(boards: impl IntoIterator<Item = (impl Into<String>, impl Into<f64>)>) -> Self {
        Self { boards: boards.into_iter().map(|(key, value)| (key.into(), value.into())).collect(), ..Self::default() }
    }

    /// Sets `combine`.
    #[must_use]
    pub fn combine(mut self, combine: Combination) -> Self {
        self.combine = Some(combine);
        self
    }

    /// Sets `aggregate`.
    #[must_use]
    pub fn aggregate(mut self, aggregate: Aggregate) -> Self {
        self.aggregate = Some(aggregate);
        self
    }

    /// Sets `order`.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.order = Some(order);
        self
    }

    /// Sets `first`.
    #[must_use]
    pub fn first(mut self, first: impl Into<String>) -> Self {
        self.first = Some(first.into());
        self
    }

    /// Sets `limit`.
    #[must_use]
    pub fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets `cursor`.
    #[must_use]
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    /// Sets `member`.
    #[must_use]
    pub fn member(mut self, member: impl Into<String>) -> Self {
        self.member = Some(member.into());
        self
    }
}

/// A member, and what comes of its scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CombinedEntry {
    /// `member`.
    pub member: String,
    /// `score`.
    pub score: Score,
    /// 1 + the number of members with a better result; shared by equal ones, "1 2 2 4".
    pub rank: u64,
    /// The place in the total order, counted from 1.
    pub position: u64,
}

/// A member's place in the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CombinedMember {
    /// `member`.
    pub member: String,
    /// `score`.
    pub score: Score,
    /// 1 + the number of members with a better result; shared by equal ones, "1 2 2 4".
    pub rank: u64,
    /// The place in the total order, counted from 1.
    pub position: u64,
    /// Members with a better result.
    pub better: u64,
    /// Members with the same result, itself included.
    pub tied: u64,
    /// Members with a worse result.
    pub worse: u64,
    /// All members of the result.
    pub total: u64,
    /// 100 × worse / total.
    pub percentile: f64,
}

/// Boards together, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CombinedBoards {
    /// The instance by which each board was read.
    pub windows: BTreeMap<String, String>,
    /// Members of the result.
    pub total: u64,
    /// `entries`.
    pub entries: Vec<CombinedEntry>,
    /// `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
    /// The member that was asked for; `null` if it is not in the result. Present with `member`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<CombinedMember>,
}

/// A copy of a shard on its way from another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Copying {
    /// The node that gives it.
    pub from: String,
    /// Bytes that have arrived. Once all have, the copy is checked and loaded.
    pub bytes: u64,
    /// Bytes of all files.
    pub total: u64,
}

/// A node that owns a shard, as of what was last heard of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Owner {
    /// Its name.
    pub node: String,
    /// `silent`: nothing was heard of the node for ten seconds. `unknown`: the node is alive and does not
    /// say.
    pub state: State,
    /// The last sequence that it has applied; `null`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_sequence: Option<u64>,
    /// Messages that it has not applied yet; `null`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
    /// What its last checkpoint holds; `null`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_sequence: Option<u64>,
    /// With NATS, the hash of what it has applied, `sequence:hash`: equal on all owners at the same
    /// sequence. `null`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// A node on the same streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KnownNode {
    /// Its name, which `--node` sets.
    pub node: String,
    /// Where it answers, as a URL; `null`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The version of ranktree that it runs; `null`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Something was heard of it within the last ten seconds.
    pub alive: bool,
    /// Time since something was last heard of it.
    pub silent_seconds: u64,
    /// Why this node cannot read what the other says of itself, or cannot say anything of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A job that was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reject {
    /// The shard that the job was published to.
    pub shard: u64,
    /// Its message's place in the shard's queue.
    pub sequence: u64,
    /// Its place in the message, counted from 0.
    pub index: u64,
    /// `rejected_at`.
    pub rejected_at: Time,
    /// Stable; the same code is `rejected` in the job's result.
    pub reason: Reason,
    /// What was wrong with this job, for people to read.
    pub detail: String,
    /// The job as it was sent. A string if that is not JSON, or was cut to 4 KiB.
    pub job: Value,
}

/// Rejects, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RejectList {
    /// `rejects`.
    pub rejects: Vec<Reject>,
    /// `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// The state of a shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Shard {
    /// Its number.
    pub shard: u64,
    /// `local`: this node owns it. `remote`: it does not; the fields that tell of its files and its stream
    /// are absent, and `owners` tells of the nodes that own it.
    pub owner: Ownership,
    /// Of a `remote` shard the best of its owners' states, or `no_owner`.
    pub state: State,
    /// Why it is not live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which of its files were found damaged since the start, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// The last sequence that is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_sequence: Option<u64>,
    /// The last sequence in its queue, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sequence: Option<u64>,
    /// Messages that are not applied yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<u64>,
    /// Members that the shard knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<u64>,
    /// Jobs that were rejected since the shard was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejects: Option<u64>,
    /// With NATS: jobs that wait for their board to be defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<u64>,
    /// With NATS: how full its stream is; `null` until it was first read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// With NATS: the copy of another node's data that is being fetched; `null` if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copying: Option<Copying>,
    /// What the last checkpoint holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_sequence: Option<u64>,
    /// `owners`.
    pub owners: Vec<Owner>,
}

/// Not applied yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Held {
    /// Messages.
    pub messages: u64,
    /// Bytes, estimated.
    pub bytes: u64,
}

/// Why messages are still in the stream. Each is counted once, under the first of these reasons that
/// applies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StreamHeldBy {
    /// Not applied yet.
    pub lag: Held,
    /// In no checkpoint yet.
    pub checkpoint: Held,
    /// Younger than the stream's duplicate window, or not known to be older.
    pub duplicate_window: Held,
    /// Needed by another node, whose last checkpoint does not hold them.
    pub nodes: Held,
    /// Kept by `--nats-keep`, or never purged because of `--nats-no-purge`.
    pub keep: Held,
}

/// How full a shard's stream is, as it was read a second ago or less. The bytes of the parts are estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stream {
    /// `nearly_full` from seven eighths on; `full`: publishers are refused.
    pub level: Level,
    /// What is wrong with the settings of the stream, or that there is no stream of rejects; otherwise what
    /// holds the stream's messages. And what to do. `null` if nothing is wrong and it is `roomy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which other node messages are held for, or why that is unknown; `null` if none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_for: Option<String>,
    /// Bytes in the stream.
    pub bytes: u64,
    /// Bytes that the stream may hold; `null`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// Messages in the stream.
    pub messages: u64,
    /// Messages that the stream may hold; `null`: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages_max: Option<u64>,
    /// Why messages are still in the stream. Each is counted once, under the first of these reasons that
    /// applies.
    pub held_by: StreamHeldBy,
}

/// Bans. `next_cursor` is the cursor of the next page, and `null` at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HiddenList {
    /// `hidden`.
    pub hidden: Vec<Ban>,
    /// `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// `as_of`.
    pub as_of: Token,
    /// Present, and true, while a shard does not apply messages: the answer is exact at `as_of`, but may be
    /// out of date.
    #[serde(default)]
    pub stale: bool,
    /// Present if the answer lacks shards, which no node answered for: their numbers. Only with
    /// `partial=true`, or after a board was defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Vec<u64>>,
}

/// Who is hidden.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ban {
    /// `member`.
    pub member: String,
    /// On which board, in all its instances; `null`: on all boards, those to come included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// `since`.
    pub since: Time,
}

/// The state of the node. A token that is confined to some boards is not told what counts the members and
/// jobs of all boards: its shards lack `members`, `rejects`, `parked`, `stream` and `copying`, and have
/// `null` as `reason` and `damage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// `version`.
    pub version: String,
    /// Every shard that the node owns is live, and its lag is under the limit; after the lag has exceeded
    /// the limit, it must fall below half of it.
    pub ready: bool,
    /// A shard's stream is full or nearly full or was changed, the stream of rejects is gone, files of a
    /// shard are damaged, its time is far ahead of the node's clock, the node's clock is over a second from
    /// the NATS server's, no node that runs owns a shard, or jobs have waited over a minute for their board;
    /// its `stream` or `damage`, or `/readyz`, says why.
    pub degraded: bool,
    /// `read_only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<ReadOnly>,
    /// Whether a job for a board that does not exist creates it; `--no-auto-create` rejects it.
    pub auto_create: bool,
    /// The name of this node.
    pub node: String,
    /// `nodes`.
    pub nodes: Vec<KnownNode>,
    /// `shards`.
    pub shards: Vec<Shard>,
}

/// It is read-only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadOnly {
    /// Text without control characters.
    pub reason: String,
    /// `since`.
    pub since: Time,
}

/// What is to be read-only, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadOnlyInput {
    /// Absent: the service, with all boards, those to come included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// `false`: it takes writes again.
    pub readonly: bool,
    /// Needed where `readonly` is true. Who is refused is told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ReadOnlyInput {
    /// With `readonly` and nothing else.
    #[must_use]
    pub fn new(readonly: bool) -> Self {
        Self { readonly, ..Self::default() }
    }

    /// Sets `board`.
    #[must_use]
    pub fn board(mut self, board: impl Into<String>) -> Self {
        self.board = Some(board.into());
        self
    }

    /// Sets `reason`.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// Whether it is read-only now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadOnlySet {
    /// `board`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// `readonly`.
    pub readonly: bool,
    /// `reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `since`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Names every shard, with a sequence from which on that holds there.
    pub token: Token,
}

/// An invalid job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobProblem {
    /// Its place in the request, counted from 0.
    pub index: u64,
    /// `code`.
    pub code: Reason,
    /// `detail`.
    pub detail: String,
}

/// What every read may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Reading {
    pub(crate) window: Option<String>,
    pub(crate) after: Option<Token>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) partial: Option<bool>,
    pub(crate) profile: Option<bool>,
    pub(crate) accuracy: Option<Accuracy>,
}

impl Query for Reading {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("window", self.window.as_ref());
        pairs.put("after", self.after.as_ref());
        pairs.put("timeout_ms", self.timeout_ms.as_ref());
        pairs.put("partial", self.partial.as_ref());
        pairs.put("profile", self.profile.as_ref());
        pairs.put("accuracy", self.accuracy.as_ref());
    }
}

impl<Q: HasReading, A> Request<Q, A> {
    /// What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current
    /// instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or
    /// `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's
    /// `window` names the instance that was read. An instance can be read from its beginning on, also while
    /// it has no entries, until it is dropped; others, and windows that the board does not have, are
    /// `unknown_window`.
    pub fn window(mut self, window: impl Into<String>) -> Self {
        self.query.reading().window = Some(window.into());
        self
    }

    /// Waits until the writes that the token names are visible. The token is the `token` of a write, or the
    /// `as_of` of another read. It may name some of the shards; a shard that the service does not have is
    /// refused with `unknown_shard`.
    pub fn after(mut self, after: impl Into<Token>) -> Self {
        self.query.reading().after = Some(after.into());
        self
    }

    /// How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.query.reading().timeout_ms = Some(timeout_ms);
        self
    }

    /// Whether the answer may leave out shards that no node answers for. `missing` names them then. Without
    /// it the answer is 503 `shard_unavailable`, because a sum without a shard is a wrong rank.
    pub fn partial(mut self, partial: bool) -> Self {
        self.query.reading().partial = Some(partial);
        self
    }

    /// Whether each entry has its member's `profile`, as it was at the answer's `as_of`. Answers without
    /// entries take no notice of it.
    pub fn profile(mut self, profile: bool) -> Self {
        self.query.reading().profile = Some(profile);
        self
    }

    /// `approx`: `better`, `tied`, `rank` and `position` come from summaries of the shards, which are about
    /// a second old, and `rank_error` says by how much rank and position can be off as of these; `as_of`
    /// names their sequences. The first 1,000 are exact. A shard that has no summary yet, or that `after`
    /// names, is asked as for an exact answer. Only the rank of a score, the ranks of many scores and a
    /// member's entry can be approximate; other answers are always exact, and refuse it with
    /// `bad_parameter`.
    pub fn accuracy(mut self, accuracy: Accuracy) -> Self {
        self.query.reading().accuracy = Some(accuracy);
        self
    }
}

/// What `boards` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BoardsQuery {
    pub(crate) reading: Reading,
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<String>,
}

impl Query for BoardsQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("limit", self.limit.as_ref());
        pairs.put("cursor", self.cursor.as_ref());
    }
}

impl HasReading for BoardsQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<BoardsQuery, A> {
    /// How many boards the page has at most.
    pub fn limit(mut self, limit: u64) -> Self {
        self.query.limit = Some(limit);
        self
    }

    /// The `next_cursor` of the page before; empty means the first page.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.query.cursor = Some(cursor.into());
        self
    }
}

/// What `put_board` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PutBoardQuery {
    pub(crate) wait: Option<Wait>,
    pub(crate) force: Option<bool>,
}

impl Query for PutBoardQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
        pairs.put("force", self.force.as_ref());
    }
}

impl<A> Request<PutBoardQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }

    /// Whether instances and entries may be dropped.
    pub fn force(mut self, force: bool) -> Self {
        self.query.force = Some(force);
        self
    }
}

/// What `board` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BoardQuery {
    pub(crate) reading: Reading,
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<String>,
}

impl Query for BoardQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("limit", self.limit.as_ref());
        pairs.put("cursor", self.cursor.as_ref());
    }
}

impl HasReading for BoardQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<BoardQuery, A> {
    /// How many instances of a window are listed at most. An answer lists 1,000 in all: where several
    /// windows are listed, each has its share.
    pub fn limit(mut self, limit: u64) -> Self {
        self.query.limit = Some(limit);
        self
    }

    /// One of the `next_cursors` of the page before: only instances of its window are listed, older ones.
    /// Empty means the first page.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.query.cursor = Some(cursor.into());
        self
    }
}

/// What `delete_board` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DeleteBoardQuery {
    pub(crate) wait: Option<Wait>,
}

impl Query for DeleteBoardQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
    }
}

impl<A> Request<DeleteBoardQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }
}

/// What `clear_board` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ClearBoardQuery {
    pub(crate) wait: Option<Wait>,
}

impl Query for ClearBoardQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
    }
}

impl<A> Request<ClearBoardQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }
}

/// What `trim_board` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TrimBoardQuery {
    pub(crate) wait: Option<Wait>,
    pub(crate) window: Option<String>,
}

impl Query for TrimBoardQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
        pairs.put("window", self.window.as_ref());
    }
}

impl<A> Request<TrimBoardQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }

    /// What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current
    /// instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or
    /// `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's
    /// `window` names the instance that was read. An instance can be read from its beginning on, also while
    /// it has no entries, until it is dropped; others, and windows that the board does not have, are
    /// `unknown_window`.
    pub fn window(mut self, window: impl Into<String>) -> Self {
        self.query.window = Some(window.into());
        self
    }
}

/// What `open_season` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OpenSeasonQuery {
    pub(crate) wait: Option<Wait>,
    pub(crate) force: Option<bool>,
}

impl Query for OpenSeasonQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
        pairs.put("force", self.force.as_ref());
    }
}

impl<A> Request<OpenSeasonQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }

    /// Whether a season is opened also where the request looks like a repeated one.
    pub fn force(mut self, force: bool) -> Self {
        self.query.force = Some(force);
        self
    }
}

/// What `move_season` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MoveSeasonQuery {
    pub(crate) wait: Option<Wait>,
}

impl Query for MoveSeasonQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
    }
}

impl<A> Request<MoveSeasonQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }
}

/// What `cancel_season` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CancelSeasonQuery {
    pub(crate) wait: Option<Wait>,
}

impl Query for CancelSeasonQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
    }
}

impl<A> Request<CancelSeasonQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }
}

/// What `put_member` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PutMemberQuery {
    pub(crate) wait: Option<Wait>,
    pub(crate) results: Option<Results>,
    pub(crate) windows: Option<String>,
}

impl Query for PutMemberQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
        pairs.put("results", self.results.as_ref());
        pairs.put("windows", self.windows.as_ref());
    }
}

impl<A> Request<PutMemberQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }

    /// `changed`: the answer says of each job only whether it changed anything, without `entry` and
    /// `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
    pub fn results(mut self, results: Results) -> Self {
        self.query.results = Some(results);
        self
    }

    /// Names of windows or instances, joined by commas, at most 64, in place of `window`. The answer has the
    /// member's entries there as `windows`, read right after the job, so that it tells which instances the
    /// job has entered: a window's name, and `*` for each, stands for the instance that the job's own time
    /// falls in, and is `null` if that was closed or had not begun. With `wait=applied` only. Of several
    /// jobs each names one board, and the answer shows up to 1,000 entries.
    pub fn windows(mut self, windows: impl Into<String>) -> Self {
        self.query.windows = Some(windows.into());
        self
    }
}

/// What `delete_member` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DeleteMemberQuery {
    pub(crate) wait: Option<Wait>,
    pub(crate) results: Option<Results>,
    pub(crate) version: Option<u64>,
}

impl Query for DeleteMemberQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
        pairs.put("results", self.results.as_ref());
        pairs.put("version", self.version.as_ref());
    }
}

impl<A> Request<DeleteMemberQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }

    /// `changed`: the answer says of each job only whether it changed anything, without `entry` and
    /// `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
    pub fn results(mut self, results: Results) -> Self {
        self.query.results = Some(results);
        self
    }

    /// The removal applies only if this is greater than the version stored for the member and the board. The
    /// version is remembered, so that a late retry of an older write does not create the entry again.
    pub fn version(mut self, version: u64) -> Self {
        self.query.version = Some(version);
        self
    }
}

/// What `member` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemberQuery {
    pub(crate) reading: Reading,
    pub(crate) movement: Option<Window>,
    pub(crate) hidden: Option<bool>,
    pub(crate) windows: Option<String>,
    pub(crate) reached_at: Option<bool>,
    pub(crate) version: Option<bool>,
}

impl Query for MemberQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("movement", self.movement.as_ref());
        pairs.put("hidden", self.hidden.as_ref());
        pairs.put("windows", self.windows.as_ref());
        pairs.put("reached_at", self.reached_at.as_ref());
        pairs.put("version", self.version.as_ref());
    }
}

impl HasReading for MemberQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<MemberQuery, A> {
    /// The name of a window of the board, and not `all`: each entry has `movement`, how many positions it
    /// has climbed since the current instance of that window began. It is exact at the answer's `as_of`.
    /// Entries must be of `all`, and the board must be defined with `movement`; otherwise the answer is
    /// `bad_parameter`. A window that the board does not have is `unknown_window`.
    pub fn movement(mut self, movement: Window) -> Self {
        self.query.movement = Some(movement);
        self
    }

    /// Whether an entry is answered, too, that is kept and not listed: one that is hidden, with `hidden`,
    /// and one beyond the board's `capacity`, with `beyond_capacity`; each with the rank that it would have
    /// if it were listed. Such an entry has no `rank_error` and no `movement`, whatever was asked. Needs the
    /// scope `write`.
    pub fn hidden(mut self, hidden: bool) -> Self {
        self.query.hidden = Some(hidden);
        self
    }

    /// Names of windows or instances, joined by commas, at most 64, in place of `window`. `*` asks for the
    /// current instance of each window of the board.
    pub fn windows(mut self, windows: impl Into<String>) -> Self {
        self.query.windows = Some(windows.into());
        self
    }

    /// Whether an entry has `reached_at`, the time at which the score was reached, on boards where it orders
    /// ties. A copy of a board needs it to keep the order of ties. `updated_at` may be later.
    pub fn reached_at(mut self, reached_at: bool) -> Self {
        self.query.reached_at = Some(reached_at);
        self
    }

    /// Whether an entry has `version`, the greatest one of the jobs that it took, if any had one. A copy of
    /// a board needs it to refuse what the board would refuse.
    pub fn version(mut self, version: bool) -> Self {
        self.query.version = Some(version);
        self
    }
}

/// What `delete_everywhere` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DeleteEverywhereQuery {
    pub(crate) wait: Option<Wait>,
    pub(crate) results: Option<Results>,
    pub(crate) version: Option<u64>,
}

impl Query for DeleteEverywhereQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
        pairs.put("results", self.results.as_ref());
        pairs.put("version", self.version.as_ref());
    }
}

impl<A> Request<DeleteEverywhereQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }

    /// `changed`: the answer says of each job only whether it changed anything, without `entry` and
    /// `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
    pub fn results(mut self, results: Results) -> Self {
        self.query.results = Some(results);
        self
    }

    /// The removal applies only if this is greater than the version stored for the member and the board. The
    /// version is remembered, so that a late retry of an older write does not create the entry again.
    pub fn version(mut self, version: u64) -> Self {
        self.query.version = Some(version);
        self
    }
}

/// What `member_boards` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MemberBoardsQuery {
    pub(crate) reading: Reading,
    pub(crate) windows: Option<String>,
    pub(crate) boards: Option<Vec<String>>,
    pub(crate) cursor: Option<String>,
    pub(crate) hidden: Option<bool>,
}

impl Query for MemberBoardsQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("windows", self.windows.as_ref());
        pairs.put("boards", self.boards.as_ref());
        pairs.put("cursor", self.cursor.as_ref());
        pairs.put("hidden", self.hidden.as_ref());
    }
}

impl HasReading for MemberBoardsQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<MemberBoardsQuery, A> {
    /// Names of windows or instances, joined by commas, at most 64, in place of `window`. `*` asks for the
    /// current instance of each window of a board that `boards` names; without `boards`, for every instance
    /// that holds an entry of the member.
    pub fn windows(mut self, windows: impl Into<String>) -> Self {
        self.query.windows = Some(windows.into());
        self
    }

    /// Up to 1000 boards. A comma within a name is percent-encoded. Without it, all boards that the member
    /// is on, up to 1000 at a time.
    pub fn boards(mut self, boards: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.query.boards = Some(boards.into_iter().map(Into::into).collect());
        self
    }

    /// The `next_cursor` of the page before, without `boards`; empty means the first page.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.query.cursor = Some(cursor.into());
        self
    }

    /// Whether an entry is answered, too, that is kept and not listed: one that is hidden, with `hidden`,
    /// and one beyond the board's `capacity`, with `beyond_capacity`; each with the rank that it would have
    /// if it were listed. Such an entry has no `rank_error` and no `movement`, whatever was asked. Needs the
    /// scope `write`.
    pub fn hidden(mut self, hidden: bool) -> Self {
        self.query.hidden = Some(hidden);
        self
    }
}

/// What `jobs` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JobsQuery {
    pub(crate) wait: Option<Wait>,
    pub(crate) results: Option<Results>,
    pub(crate) windows: Option<String>,
}

impl Query for JobsQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
        pairs.put("results", self.results.as_ref());
        pairs.put("windows", self.windows.as_ref());
    }
}

impl<A> Request<JobsQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }

    /// `changed`: the answer says of each job only whether it changed anything, without `entry` and
    /// `previous`. Use it for a short answer if these are not needed. It has no effect on 202.
    pub fn results(mut self, results: Results) -> Self {
        self.query.results = Some(results);
        self
    }

    /// Names of windows or instances, joined by commas, at most 64, in place of `window`. The answer has the
    /// member's entries there as `windows`, read right after the job, so that it tells which instances the
    /// job has entered: a window's name, and `*` for each, stands for the instance that the job's own time
    /// falls in, and is `null` if that was closed or had not begun. With `wait=applied` only. Of several
    /// jobs each names one board, and the answer shows up to 1,000 entries.
    pub fn windows(mut self, windows: impl Into<String>) -> Self {
        self.query.windows = Some(windows.into());
        self
    }
}

/// What `set_read_only` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SetReadOnlyQuery {
    pub(crate) wait: Option<Wait>,
}

impl Query for SetReadOnlyQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("wait", self.wait.as_ref());
    }
}

impl<A> Request<SetReadOnlyQuery, A> {
    /// `applied`: the answer comes when the write is applied and on disk, and has its outcome. With NATS, a
    /// write without this parameter is answered 202 as soon as it is stored in the stream; without NATS
    /// every write waits.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.query.wait = Some(wait);
        self
    }
}

/// What `around` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AroundQuery {
    pub(crate) reading: Reading,
    pub(crate) with: Option<Vec<String>>,
    pub(crate) with_rank: Option<bool>,
    pub(crate) above: Option<u64>,
    pub(crate) below: Option<u64>,
    pub(crate) fill: Option<bool>,
    pub(crate) movement: Option<Window>,
}

impl Query for AroundQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("with", self.with.as_ref());
        pairs.put("with_rank", self.with_rank.as_ref());
        pairs.put("above", self.above.as_ref());
        pairs.put("below", self.below.as_ref());
        pairs.put("fill", self.fill.as_ref());
        pairs.put("movement", self.movement.as_ref());
    }
}

impl HasReading for AroundQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<AroundQuery, A> {
    /// Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`:
    /// its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because
    /// it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what
    /// `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says
    /// which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those
    /// that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    /// `too_large`.
    pub fn with(mut self, with: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.query.with = Some(with.into_iter().map(Into::into).collect());
        self
    }

    /// Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
    pub fn with_rank(mut self, with_rank: bool) -> Self {
        self.query.with_rank = Some(with_rank);
        self
    }

    /// How many entries before the member the answer has at most.
    pub fn above(mut self, above: u64) -> Self {
        self.query.above = Some(above);
        self
    }

    /// How many entries after the member the answer has at most.
    pub fn below(mut self, below: u64) -> Self {
        self.query.below = Some(below);
        self
    }

    /// Whether the other side has more entries if there are too few at an end of the board.
    pub fn fill(mut self, fill: bool) -> Self {
        self.query.fill = Some(fill);
        self
    }

    /// The name of a window of the board, and not `all`: each entry has `movement`, how many positions it
    /// has climbed since the current instance of that window began. It is exact at the answer's `as_of`.
    /// Entries must be of `all`, and the board must be defined with `movement`; otherwise the answer is
    /// `bad_parameter`. A window that the board does not have is `unknown_window`.
    pub fn movement(mut self, movement: Window) -> Self {
        self.query.movement = Some(movement);
        self
    }
}

/// What `lookup` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LookupQuery {
    pub(crate) reading: Reading,
    pub(crate) with: Option<Vec<String>>,
    pub(crate) with_rank: Option<bool>,
    pub(crate) movement: Option<Window>,
}

impl Query for LookupQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("with", self.with.as_ref());
        pairs.put("with_rank", self.with_rank.as_ref());
        pairs.put("movement", self.movement.as_ref());
    }
}

impl HasReading for LookupQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<LookupQuery, A> {
    /// Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`:
    /// its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because
    /// it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what
    /// `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says
    /// which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those
    /// that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    /// `too_large`.
    pub fn with(mut self, with: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.query.with = Some(with.into_iter().map(Into::into).collect());
        self
    }

    /// Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
    pub fn with_rank(mut self, with_rank: bool) -> Self {
        self.query.with_rank = Some(with_rank);
        self
    }

    /// The name of a window of the board, and not `all`: each entry has `movement`, how many positions it
    /// has climbed since the current instance of that window began. It is exact at the answer's `as_of`.
    /// Entries must be of `all`, and the board must be defined with `movement`; otherwise the answer is
    /// `bad_parameter`. A window that the board does not have is `unknown_window`.
    pub fn movement(mut self, movement: Window) -> Self {
        self.query.movement = Some(movement);
        self
    }
}

/// What `combine` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CombineQuery {
    pub(crate) reading: Reading,
}

impl Query for CombineQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
    }
}

impl HasReading for CombineQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

/// What `top` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TopQuery {
    pub(crate) reading: Reading,
    pub(crate) with: Option<Vec<String>>,
    pub(crate) with_rank: Option<bool>,
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<String>,
    pub(crate) from: Option<End>,
    pub(crate) reached_at: Option<bool>,
    pub(crate) version: Option<bool>,
    pub(crate) movement: Option<Window>,
}

impl Query for TopQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("with", self.with.as_ref());
        pairs.put("with_rank", self.with_rank.as_ref());
        pairs.put("limit", self.limit.as_ref());
        pairs.put("cursor", self.cursor.as_ref());
        pairs.put("from", self.from.as_ref());
        pairs.put("reached_at", self.reached_at.as_ref());
        pairs.put("version", self.version.as_ref());
        pairs.put("movement", self.movement.as_ref());
    }
}

impl HasReading for TopQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<TopQuery, A> {
    /// Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`:
    /// its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because
    /// it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what
    /// `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says
    /// which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those
    /// that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    /// `too_large`.
    pub fn with(mut self, with: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.query.with = Some(with.into_iter().map(Into::into).collect());
        self
    }

    /// Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
    pub fn with_rank(mut self, with_rank: bool) -> Self {
        self.query.with_rank = Some(with_rank);
        self
    }

    /// How many entries the page has at most.
    pub fn limit(mut self, limit: u64) -> Self {
        self.query.limit = Some(limit);
        self
    }

    /// The `next_cursor` of the page before; empty means the first page.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.query.cursor = Some(cursor.into());
        self
    }

    /// The end to begin at, `top` by default. With a cursor it may be left out.
    pub fn from(mut self, from: End) -> Self {
        self.query.from = Some(from);
        self
    }

    /// Whether an entry has `reached_at`, the time at which the score was reached, on boards where it orders
    /// ties. A copy of a board needs it to keep the order of ties. `updated_at` may be later.
    pub fn reached_at(mut self, reached_at: bool) -> Self {
        self.query.reached_at = Some(reached_at);
        self
    }

    /// Whether an entry has `version`, the greatest one of the jobs that it took, if any had one. A copy of
    /// a board needs it to refuse what the board would refuse.
    pub fn version(mut self, version: bool) -> Self {
        self.query.version = Some(version);
        self
    }

    /// The name of a window of the board, and not `all`: each entry has `movement`, how many positions it
    /// has climbed since the current instance of that window began. It is exact at the answer's `as_of`.
    /// Entries must be of `all`, and the board must be defined with `movement`; otherwise the answer is
    /// `bad_parameter`. A window that the board does not have is `unknown_window`.
    pub fn movement(mut self, movement: Window) -> Self {
        self.query.movement = Some(movement);
        self
    }
}

/// What `positions` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PositionsQuery {
    pub(crate) reading: Reading,
    pub(crate) with: Option<Vec<String>>,
    pub(crate) with_rank: Option<bool>,
    pub(crate) limit: Option<u64>,
}

impl Query for PositionsQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("with", self.with.as_ref());
        pairs.put("with_rank", self.with_rank.as_ref());
        pairs.put("limit", self.limit.as_ref());
    }
}

impl HasReading for PositionsQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<PositionsQuery, A> {
    /// Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`:
    /// its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because
    /// it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what
    /// `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says
    /// which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those
    /// that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    /// `too_large`.
    pub fn with(mut self, with: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.query.with = Some(with.into_iter().map(Into::into).collect());
        self
    }

    /// Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
    pub fn with_rank(mut self, with_rank: bool) -> Self {
        self.query.with_rank = Some(with_rank);
        self
    }

    /// How many entries the page has at most.
    pub fn limit(mut self, limit: u64) -> Self {
        self.query.limit = Some(limit);
        self
    }
}

/// What `range` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RangeQuery {
    pub(crate) reading: Reading,
    pub(crate) with: Option<Vec<String>>,
    pub(crate) with_rank: Option<bool>,
    pub(crate) min: Option<i64>,
    pub(crate) max: Option<i64>,
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<String>,
}

impl Query for RangeQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("with", self.with.as_ref());
        pairs.put("with_rank", self.with_rank.as_ref());
        pairs.put("min", self.min.as_ref());
        pairs.put("max", self.max.as_ref());
        pairs.put("limit", self.limit.as_ref());
        pairs.put("cursor", self.cursor.as_ref());
    }
}

impl HasReading for RangeQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<RangeQuery, A> {
    /// Up to 8 boards, joined by commas; a comma within a name is percent-encoded. Each entry has `with`:
    /// its member's score on those boards, at the same `as_of`, and `null` where it is not listed, because
    /// it has no entry there, a hidden one, or one beyond the board's `capacity`. A board is read by what
    /// `window` asks for if it has such a window, and otherwise by its default window: `with_windows` says
    /// which. A board that there is not is `unknown_board`. Entries times boards are 8000 at most, and those
    /// that are counted, with `with_rank` or because the board has a capacity, 1000; over them the answer is
    /// `too_large`.
    pub fn with(mut self, with: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.query.with = Some(with.into_iter().map(Into::into).collect());
        self
    }

    /// Whether `with` has ranks, too: 1 + the number of entries of the whole board with a better score.
    pub fn with_rank(mut self, with_rank: bool) -> Self {
        self.query.with_rank = Some(with_rank);
        self
    }

    /// The least value.
    pub fn min(mut self, min: i64) -> Self {
        self.query.min = Some(min);
        self
    }

    /// The greatest value; not below `min`.
    pub fn max(mut self, max: i64) -> Self {
        self.query.max = Some(max);
        self
    }

    /// How many entries the page has at most.
    pub fn limit(mut self, limit: u64) -> Self {
        self.query.limit = Some(limit);
        self
    }

    /// The `next_cursor` of the page before; empty means the first page.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.query.cursor = Some(cursor.into());
        self
    }
}

/// What `live` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LiveQuery {
    pub(crate) window: Option<String>,
    pub(crate) after: Option<Token>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) top: Option<u64>,
    pub(crate) members: Option<Vec<String>>,
    pub(crate) max_rate: Option<u64>,
}

impl Query for LiveQuery {
    fn write(&self, pairs: &mut Pairs) {
        pairs.put("window", self.window.as_ref());
        pairs.put("after", self.after.as_ref());
        pairs.put("timeout_ms", self.timeout_ms.as_ref());
        pairs.put("top", self.top.as_ref());
        pairs.put("members", self.members.as_ref());
        pairs.put("max_rate", self.max_rate.as_ref());
    }
}

impl<A> Request<LiveQuery, A> {
    /// What to read: a window's name, `all`, `hour`, `day`, `week`, `month` or `season`, for its current
    /// instance; or the name of an instance, such as `2026-11-20T09`, `2026-11-20`, `2026-W47`, `2026-11` or
    /// `s7`. Without it `all` is read, or the board's first window if it does not have `all`. The answer's
    /// `window` names the instance that was read. An instance can be read from its beginning on, also while
    /// it has no entries, until it is dropped; others, and windows that the board does not have, are
    /// `unknown_window`.
    pub fn window(mut self, window: impl Into<String>) -> Self {
        self.query.window = Some(window.into());
        self
    }

    /// Waits until the writes that the token names are visible. The token is the `token` of a write, or the
    /// `as_of` of another read. It may name some of the shards; a shard that the service does not have is
    /// refused with `unknown_shard`.
    pub fn after(mut self, after: impl Into<Token>) -> Self {
        self.query.after = Some(after.into());
        self
    }

    /// How long `after` waits, in milliseconds. Afterwards the answer is 504 `not_yet_applied`.
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.query.timeout_ms = Some(timeout_ms);
        self
    }

    /// How many of the best entries are watched.
    pub fn top(mut self, top: u64) -> Self {
        self.query.top = Some(top);
        self
    }

    /// Up to 100 members that are watched wherever they are. A comma within an id is percent-encoded. Over
    /// several nodes they may be of later sequences than `as_of` names.
    pub fn members(mut self, members: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.query.members = Some(members.into_iter().map(Into::into).collect());
        self
    }

    /// The most events a second.
    pub fn max_rate(mut self, max_rate: u64) -> Self {
        self.query.max_rate = Some(max_rate);
        self
    }
}

/// What `rank` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RankQuery {
    pub(crate) reading: Reading,
}

impl Query for RankQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
    }
}

impl HasReading for RankQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

/// What `ranks_of` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RanksOfQuery {
    pub(crate) reading: Reading,
}

impl Query for RanksOfQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
    }
}

impl HasReading for RanksOfQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

/// What `score` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScoreQuery {
    pub(crate) reading: Reading,
    pub(crate) rank: Option<u64>,
    pub(crate) position: Option<u64>,
    pub(crate) percentile: Option<f64>,
}

impl Query for ScoreQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("rank", self.rank.as_ref());
        pairs.put("position", self.position.as_ref());
        pairs.put("percentile", self.percentile.as_ref());
    }
}

impl HasReading for ScoreQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<ScoreQuery, A> {
    /// A rank, from 1.
    pub fn rank(mut self, rank: u64) -> Self {
        self.query.rank = Some(rank);
        self
    }

    /// A position, from 1.
    pub fn position(mut self, position: u64) -> Self {
        self.query.position = Some(position);
        self
    }

    /// A percentile, 100 × worse / total, where equal scores are not worse than each other. The answer is
    /// the lowest score whose percentile is at least this, or the best score if no percentile is that high,
    /// for example because many share the best score.
    pub fn percentile(mut self, percentile: f64) -> Self {
        self.query.percentile = Some(percentile);
        self
    }
}

/// What `count` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CountQuery {
    pub(crate) reading: Reading,
    pub(crate) min: Option<i64>,
    pub(crate) max: Option<i64>,
}

impl Query for CountQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("min", self.min.as_ref());
        pairs.put("max", self.max.as_ref());
    }
}

impl HasReading for CountQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<CountQuery, A> {
    /// The least value.
    pub fn min(mut self, min: i64) -> Self {
        self.query.min = Some(min);
        self
    }

    /// The greatest value; not below `min`.
    pub fn max(mut self, max: i64) -> Self {
        self.query.max = Some(max);
        self
    }
}

/// What `histogram` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HistogramQuery {
    pub(crate) reading: Reading,
    pub(crate) buckets: Option<u64>,
    pub(crate) edges: Option<Vec<i64>>,
}

impl Query for HistogramQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("buckets", self.buckets.as_ref());
        pairs.put("edges", self.edges.as_ref());
    }
}

impl HasReading for HistogramQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<HistogramQuery, A> {
    /// How many buckets of about equal width the range from the least to the greatest score is cut into. Not
    /// with `edges`.
    pub fn buckets(mut self, buckets: u64) -> Self {
        self.query.buckets = Some(buckets);
        self
    }

    /// 2 to 1000 integers, each greater than the one before: the bounds of the buckets. A bucket ends just
    /// below the next edge; the last bucket includes its upper edge.
    pub fn edges(mut self, edges: impl Into<Vec<i64>>) -> Self {
        self.query.edges = Some(edges.into());
        self
    }
}

/// What `percentiles` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PercentilesQuery {
    pub(crate) reading: Reading,
}

impl Query for PercentilesQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
    }
}

impl HasReading for PercentilesQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

/// What `hidden` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HiddenQuery {
    pub(crate) reading: Reading,
    pub(crate) board: Option<String>,
    pub(crate) member: Option<String>,
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<String>,
}

impl Query for HiddenQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("board", self.board.as_ref());
        pairs.put("member", self.member.as_ref());
        pairs.put("limit", self.limit.as_ref());
        pairs.put("cursor", self.cursor.as_ref());
    }
}

impl HasReading for HiddenQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<HiddenQuery, A> {
    /// Only bans that hold on this board: its own, and those of all boards.
    pub fn board(mut self, board: impl Into<String>) -> Self {
        self.query.board = Some(board.into());
        self
    }

    /// Only bans of this member.
    pub fn member(mut self, member: impl Into<String>) -> Self {
        self.query.member = Some(member.into());
        self
    }

    /// How many bans the page has at most.
    pub fn limit(mut self, limit: u64) -> Self {
        self.query.limit = Some(limit);
        self
    }

    /// The `next_cursor` of the page before; empty means the first page.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.query.cursor = Some(cursor.into());
        self
    }
}

/// What `rejects` may be asked with.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RejectsQuery {
    pub(crate) reading: Reading,
    pub(crate) shard: Option<u64>,
    pub(crate) reason: Option<Reason>,
    pub(crate) member: Option<String>,
    pub(crate) limit: Option<u64>,
    pub(crate) cursor: Option<String>,
}

impl Query for RejectsQuery {
    fn write(&self, pairs: &mut Pairs) {
        self.reading.write(pairs);
        pairs.put("shard", self.shard.as_ref());
        pairs.put("reason", self.reason.as_ref());
        pairs.put("member", self.member.as_ref());
        pairs.put("limit", self.limit.as_ref());
        pairs.put("cursor", self.cursor.as_ref());
    }
}

impl HasReading for RejectsQuery {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }
}

impl<A> Request<RejectsQuery, A> {
    /// Only rejects of this shard.
    pub fn shard(mut self, shard: u64) -> Self {
        self.query.shard = Some(shard);
        self
    }

    /// Only rejects for this reason.
    pub fn reason(mut self, reason: Reason) -> Self {
        self.query.reason = Some(reason);
        self
    }

    /// Only rejects of this member: those that the erasure of the member reaches. Of what is no readable
    /// job, those are listed in which the id stands as a JSON string.
    pub fn member(mut self, member: impl Into<String>) -> Self {
        self.query.member = Some(member.into());
        self
    }

    /// How many rejects the page has at most.
    pub fn limit(mut self, limit: u64) -> Self {
        self.query.limit = Some(limit);
        self
    }

    /// The `next_cursor` of the page before; empty means the first page. Send it with the same `shard`,
    /// `reason` and `member`.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.query.cursor = Some(cursor.into());
        self
    }
}

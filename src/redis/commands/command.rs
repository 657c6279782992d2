//! What a client asks for, in types. Borrowed from the request.

use crate::board::{Aggregate, Combination};
use crate::job::{Compare, Presence};
use crate::redis::frames::Protocol;
use crate::types::Number;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'b> {
    Connection(Connection<'b>),
    Keyspace(Keyspace<'b>),
    /// Reads one board.
    Read(&'b [u8], Read<'b>),
    Combine(Combining<'b>),
    /// Writes to one board.
    Write(&'b [u8], Write<'b>),
    Take(Taking<'b>),
    Store(Storing<'b>),
    Transaction(TransactionStep),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStep {
    Begin,
    Execute,
    Discard,
}

/// About the connection, or the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection<'b> {
    Ping(Option<&'b [u8]>),
    Echo(&'b [u8]),
    Quit,
    Reset,
    Select(i64),
    Hello {
        protocol: Option<Protocol>,
        authentication: Option<Authentication<'b>>,
        name: Option<&'b [u8]>,
    },
    Auth(Authentication<'b>),
    Client(ClientCommand<'b>),
    Command(CommandQuery<'b>),
    /// The sections asked for; none for the usual ones.
    Info(Vec<&'b [u8]>),
    ConfigGet(Vec<&'b [u8]>),
    /// The subcommands of a command.
    Help(&'static str),
    Time,
    Unwatch,
    /// For so many replicas.
    Wait(i64),
}

/// A token, whoever the client says it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Authentication<'b> {
    /// Whether it says who it is.
    pub has_user: bool,
    pub token: &'b [u8],
}

/// It does not print the token.
impl std::fmt::Debug for Authentication<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authentication(..)")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientCommand<'b> {
    Id,
    GetName,
    SetName(&'b [u8]),
    /// Noted by nobody.
    Accepted,
    Info,
    List(Listing),
}

/// Which connections are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    All,
    /// Of a type that there is not here.
    None,
    /// Those with these numbers.
    Of(Vec<u64>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandQuery<'b> {
    All,
    Count,
    Info(Vec<&'b [u8]>),
    Docs(Vec<&'b [u8]>),
    /// The keys of a command.
    GetKeys(Vec<&'b [u8]>),
}

/// About boards as keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keyspace<'b> {
    Exists(Vec<&'b [u8]>),
    Type(&'b [u8]),
    /// Drops boards.
    Delete(Vec<&'b [u8]>),
    /// How the entries of a board are kept.
    Encoding(&'b [u8]),
    /// How many bytes they take, about.
    Memory(&'b [u8]),
    Keys(&'b [u8]),
    Scan(Scan<'b>),
    Size,
    /// When a board ends.
    Ends(&'b [u8], TimeAsked),
    /// Has a board end at a time.
    Expire(Expire<'b>),
    /// Has a board not end by itself.
    Persist(&'b [u8]),
}

impl<'b> Keyspace<'b> {
    /// The boards that the command changes.
    pub fn changed_keys(&self) -> Vec<&'b [u8]> {
        match self {
            Self::Delete(keys) => keys.clone(),
            Self::Expire(Expire { key, .. }) | Self::Persist(key) => vec![key],
            _ => Vec::new(),
        }
    }
}

/// How a time is replied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeAsked {
    /// In microseconds.
    pub unit: i64,
    /// As a time since 1970, and not as what is left.
    pub is_time: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expire<'b> {
    pub key: &'b [u8],
    pub micros: i64,
    /// Whether they are since 1970, and not from now on.
    pub is_time: bool,
    pub when: WhenToExpire,
    /// Of the command.
    pub name: &'static str,
}

/// On what end of before a new one depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are four words of the command")]
pub struct WhenToExpire {
    pub if_endless: bool,
    pub if_ending: bool,
    pub if_later: bool,
    pub if_earlier: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan<'b> {
    pub cursor: u64,
    pub pattern: Option<&'b [u8]>,
    pub count: u64,
    pub of_type: Option<&'b [u8]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read<'b> {
    Score(&'b [u8]),
    Scores(Vec<&'b [u8]>),
    Card,
    Count(Selection<'b>),
    Rank { member: &'b [u8], descending: bool, with_score: bool },
    Range(RangeOf<'b>),
    Scan(EntryScan<'b>),
    Random { count: Option<RandomCount>, with_scores: bool },
}

/// Reads several boards together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combining<'b> {
    pub combined: Combined<'b>,
    pub reply: CombineReply,
}

/// Several boards together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combined<'b> {
    pub keys: Vec<&'b [u8]>,
    /// What the scores of each are multiplied by.
    pub weights: Vec<Number>,
    pub combination: Combination,
    pub aggregate: Aggregate,
}

/// What is replied of boards together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CombineReply {
    Entries {
        with_scores: bool,
    },
    /// How many members there are; up to the limit, unless that is 0.
    Count {
        limit: u64,
    },
}

/// Replaces all entries of a board by others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storing<'b> {
    pub to: &'b [u8],
    pub what: Stored<'b>,
}

impl<'b> Storing<'b> {
    /// The board that is written to, and those that are read.
    pub fn keys(&self) -> Vec<&'b [u8]> {
        let sources = match &self.what {
            Stored::Combined(combined) => combined.keys.clone(),
            Stored::Range(key, _) => vec![*key],
        };
        std::iter::once(self.to).chain(sources).collect()
    }
}

/// What replaces them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored<'b> {
    /// What several boards make together.
    Combined(Combined<'b>),
    /// A range of a board.
    Range(&'b [u8], RangeOf<'b>),
}

/// Entries in parts: those whose members match a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryScan<'b> {
    /// How many entries are passed over, from the least score up.
    pub cursor: u64,
    pub pattern: Option<&'b [u8]>,
    /// How many are to be looked at; it may be more.
    pub count: u64,
    pub with_scores: bool,
}

/// How many members are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomCount {
    /// So many different ones.
    Different(u64),
    /// So many, each drawn from all.
    Repeated(u64),
}

/// Entries in the order of Redis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeOf<'b> {
    pub selection: Selection<'b>,
    /// From the greatest score down.
    pub descending: bool,
    /// How many to pass over, and how many there may be: a negative number to pass over leaves none, a
    /// negative number of entries is no limit.
    pub limit: Option<(i64, i64)>,
    pub with_scores: bool,
}

/// Which entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection<'b> {
    /// By index in the order asked for, both inclusive; negative ones count from the end.
    Index(i64, i64),
    Score(ScoreBound, ScoreBound),
    /// Of entries that share a score.
    Lex(LexBound<'b>, LexBound<'b>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreBound {
    pub value: Number,
    pub exclusive: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LexBound<'b> {
    /// Before every member.
    Least,
    /// After every member.
    Greatest,
    Inclusive(&'b [u8]),
    Exclusive(&'b [u8]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write<'b> {
    Add(Add<'b>),
    Remove(Vec<&'b [u8]>),
}

/// Takes entries away by their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taking<'b> {
    /// Those of a range of a board.
    Range(&'b [u8], RangeOf<'b>),
    Pop(Popping<'b>),
}

impl<'b> Taking<'b> {
    /// The boards that entries may be taken from.
    pub fn keys(&self) -> Vec<&'b [u8]> {
        match self {
            Self::Range(key, _) => vec![key],
            Self::Pop(popping) => popping.keys.clone(),
        }
    }
}

/// Takes entries from an end of the first board that has any, and replies with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Popping<'b> {
    pub keys: Vec<&'b [u8]>,
    pub greatest: bool,
    pub count: u64,
    pub reply: PopReply,
}

/// What the reply to a pop looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PopReply {
    One,
    Several,
    /// The key, and entries.
    WithKey,
}

/// Scores for members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Add<'b> {
    /// What an entry must be before.
    pub presence: Presence,
    /// How an entry's score must compare with the one it has.
    pub compare: Compare,
    /// The reply counts changed entries, not only new ones.
    pub counts_changed: bool,
    /// The score of the only pair is added, and the reply is the sum.
    pub increment: bool,
    pub pairs: Vec<(Number, &'b [u8])>,
}

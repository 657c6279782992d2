//! A job: one requested change, and the reasons for which one is refused. Pure.
//!
//! Knows: what a job asks for. Must not know: the bytes it came in (`wire`), or the state that decides
//! what comes of it (`writer::plan`).

use std::fmt;

use smallvec::SmallVec;

use crate::types::{BoardName, MemberId, Score, Sequence, Timestamp};

/// A job's place in the queue: its message's sequence, and its index in the message.
pub type JobPlace = (Sequence, u32);

/// The most jobs in one message or request.
pub const MAX_JOBS_PER_MESSAGE: usize = 1_000;
/// How far a job's own time may be after its message's, in microseconds: five minutes, and not a microsecond
/// more.
pub const MAX_AHEAD_MICROS: i64 = 5 * 60 * 1_000_000;
/// The longest metadata object, in bytes of compact JSON without needless escapes.
pub const MAX_METADATA_BYTES: usize = 1_024;
/// The longest profile, in bytes of compact JSON without needless escapes.
pub const MAX_PROFILE_BYTES: usize = 4_096;
/// The most boards that one job may change.
pub const MAX_BOARDS_PER_JOB: usize = 64;
/// The most boards that the jobs of one HTTP request may change, each counted once for every job that does:
/// what comes of each is told.
pub const MAX_BOARDS_PER_REQUEST: usize = 4_000;

/// The most trees of a shard that one board of a job changes: one for each window, and with movement two more
/// for each window but `all`.
pub const MAX_TREES_PER_BOARD: usize = 16;
/// The most trees that the jobs of one message change together; those behind are rejected. A message is
/// applied under one hold of the shard's lock. As many jobs as a message may have, each of one board, are
/// never too much, whatever the windows of that board.
pub const MAX_TREES_PER_MESSAGE: usize = MAX_JOBS_PER_MESSAGE * MAX_TREES_PER_BOARD;
/// As many boards as the jobs of a message may change together, each counted once for every job that does, so
/// that it is never too much, whatever their windows. Nodes send no more in a message.
pub const BOARDS_PER_MESSAGE: usize = MAX_TREES_PER_MESSAGE / MAX_TREES_PER_BOARD;

/// What a job does to a member's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// The given score replaces whatever was there.
    Set,
    /// The given score replaces a worse one.
    Best,
    /// The given score is added, key by key; from zero for a new member.
    Incr,
    /// The entry goes away.
    Remove,
    /// The entry goes away, if its score is the given one.
    Take,
    /// A ban: the member's entries leave counts and lists, now and whenever they come. They keep scores.
    Hide,
    /// The ban ends, and hidden entries come back.
    Show,
    /// The member's profile is replaced. It names no board.
    Profile,
    /// The given score replaces the one that is there, or is added to it, under a condition. Otherwise
    /// nothing changes.
    When(When),
}

/// On what a score depends, apart from the version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct When {
    pub presence: Presence,
    pub compare: Compare,
    /// The score is added.
    pub adds: bool,
}

/// Whether the member must have an entry before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Presence {
    #[default]
    Any,
    New,
    Existing,
}

/// How the score after must compare with an entry's that is there, whatever is better on the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compare {
    #[default]
    Any,
    Greater,
    Less,
}

impl When {
    /// All but those that no condition has.
    const ALL: [Self; 12] = {
        use Compare::{Any, Greater, Less};
        const fn when(presence: Presence, compare: Compare, adds: bool) -> When {
            When { presence, compare, adds }
        }
        [
            when(Presence::New, Any, false),
            when(Presence::Existing, Any, false),
            when(Presence::Any, Greater, false),
            when(Presence::Any, Less, false),
            when(Presence::Existing, Greater, false),
            when(Presence::Existing, Less, false),
            when(Presence::New, Any, true),
            when(Presence::Existing, Any, true),
            when(Presence::Any, Greater, true),
            when(Presence::Any, Less, true),
            when(Presence::Existing, Greater, true),
            when(Presence::Existing, Less, true),
        ]
    };

    fn name(self) -> &'static str {
        let names = match (self.presence, self.compare) {
            (Presence::New, _) => ("create", "create_incr"),
            (Presence::Existing, Compare::Any) => ("update", "update_incr"),
            (Presence::Existing, Compare::Greater) => ("update_raise", "update_raise_incr"),
            (Presence::Existing, Compare::Less) => ("update_lower", "update_lower_incr"),
            (Presence::Any, Compare::Greater) => ("raise", "raise_incr"),
            (Presence::Any, Compare::Less) => ("lower", "lower_incr"),
            (Presence::Any, Compare::Any) => ("set", "incr"),
        };
        if self.adds { names.1 } else { names.0 }
    }
}

impl Op {
    /// `set`, if the member has no entry.
    pub const CREATE: Self = Self::When(When { presence: Presence::New, compare: Compare::Any, adds: false });
    /// `set`, if the member has an entry.
    pub const UPDATE: Self =
        Self::When(When { presence: Presence::Existing, compare: Compare::Any, adds: false });

    /// Those that clients are told of. Nodes also send those that only Redis' protocol has.
    pub const ALL: [Self; 9] = [
        Self::Set,
        Self::Best,
        Self::Incr,
        Self::CREATE,
        Self::UPDATE,
        Self::Remove,
        Self::Hide,
        Self::Show,
        Self::Profile,
    ];

    /// The operation of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        let conditional = When::ALL.into_iter().map(Self::When).chain([Self::Take]);
        Self::ALL.into_iter().chain(conditional).find(|op| op.name() == name)
    }

    /// The operation of a condition, which may be none.
    pub fn when(when: When) -> Self {
        match when {
            When { presence: Presence::Any, compare: Compare::Any, adds: false } => Self::Set,
            When { presence: Presence::Any, compare: Compare::Any, adds: true } => Self::Incr,
            when => Self::When(when),
        }
    }

    /// Whether its score is added to the one that is there.
    pub fn adds(self) -> bool {
        matches!(self, Self::Incr | Self::When(When { adds: true, .. }))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Best => "best",
            Self::Incr => "incr",
            Self::Remove => "remove",
            Self::Take => "take",
            Self::Hide => "hide",
            Self::Show => "show",
            Self::Profile => "profile",
            Self::When(when) => when.name(),
        }
    }

    pub fn takes_score(self) -> bool {
        matches!(self, Self::Set | Self::Best | Self::Incr | Self::When(_) | Self::Take)
    }

    /// Whether it begins or ends a ban.
    pub fn is_ban(self) -> bool {
        matches!(self, Self::Hide | Self::Show)
    }
}

/// Boards, each with the score that a job brings. Most jobs name one board, which needs no memory of its own.
pub type Boards = SmallVec<[(BoardName, Option<Score>); 1]>;

/// What a job changes: one board or several, all or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Targets {
    /// The score is `None` for operations that take none.
    Boards(Boards),
    /// Every board. For [`Op::Remove`]: those that the member is on, and its profile. For [`Op::Hide`] and
    /// [`Op::Show`]: those to come, too.
    EveryBoard,
    /// No board: the member's profile. Only for [`Op::Profile`].
    Profile(Profile),
}

/// A member's metadata: a compact JSON object of at most [`MAX_METADATA_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata(pub Box<str>);

/// What is kept of a member once, whatever boards it is on: a compact JSON object of at most
/// [`MAX_PROFILE_BYTES`]. An empty one takes the profile away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile(pub Box<str>);

impl Profile {
    /// The object; `None` if it is empty.
    pub fn json(&self) -> Option<&str> {
        Some(&*self.0).filter(|json| *json != "{}")
    }
}

/// One requested change, well-formed; whether it applies is for the state to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub member: MemberId,
    pub targets: Targets,
    /// Absent: each board's policy decides.
    pub op: Option<Op>,
    /// Applied only if greater than the stored one for that member and board, or of its profile.
    pub version: Option<u64>,
    /// When it happened. Absent: the message's timestamp.
    pub at: Option<Timestamp>,
    /// Replaces the entry's metadata. Absent: left as it is.
    pub meta: Option<Metadata>,
}

impl Job {
    /// The boards that it names: none, if it is for every board that has the member, or for its profile.
    pub fn boards(&self) -> impl Iterator<Item = &BoardName> {
        let named: &[_] = match &self.targets {
            Targets::Boards(boards) => boards,
            Targets::EveryBoard | Targets::Profile(_) => &[],
        };
        named.iter().map(|(board, _)| board)
    }

    /// As how many boards it counts where work is limited. On how many a member is that leaves all of them,
    /// only its shard knows.
    pub fn board_count(&self) -> usize {
        match &self.targets {
            Targets::Boards(boards) => boards.len().max(1),
            Targets::EveryBoard => MAX_BOARDS_PER_JOB,
            Targets::Profile(_) => 1,
        }
    }

    /// Whether the member leaves every board that it is on.
    pub fn leaves_every_board(&self) -> bool {
        self.targets == Targets::EveryBoard && self.op == Some(Op::Remove)
    }

    /// Whether it changes as many rankings as its member has, which only its shard knows: the member leaves
    /// or is hidden.
    pub fn is_wide(&self) -> bool {
        self.op.is_some_and(|op| matches!(op, Op::Remove | Op::Take) || op.is_ban())
    }

    /// As how many boards it counts in a message that is put together here, so that no job is refused for
    /// what it shares one with.
    ///
    /// # Arguments
    /// `wide`: as how many a wide one counts; [`BOARDS_PER_MESSAGE`], which gives it a message of its own,
    /// where nothing is known of its shard
    pub fn boards_in_message(&self, wide: usize) -> usize {
        if self.is_wide() { wide.max(self.board_count()) } else { self.board_count() }
    }

    /// The boards that it may create, and that it waits for if they are unknown. A ban creates none.
    pub fn awaited_boards(&self) -> impl Iterator<Item = &BoardName> {
        let awaits = !self.op.is_some_and(Op::is_ban);
        self.boards().filter(move |_| awaits)
    }
}

/// Why a job was refused. The names are stable: clients and dashboards depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RejectCode {
    Malformed,
    UnknownBoard,
    BadMember,
    BadScore,
    OutOfRange,
    Overflow,
    StaleVersion,
    ClosedWindow,
    WrongShard,
    TooLarge,
    FutureTime,
    ReadOnly,
}

impl RejectCode {
    /// In the order of their numbers on disk: new ones come last.
    pub const ALL: [Self; 12] = [
        Self::Malformed,
        Self::UnknownBoard,
        Self::BadMember,
        Self::BadScore,
        Self::OutOfRange,
        Self::Overflow,
        Self::StaleVersion,
        Self::ClosedWindow,
        Self::WrongShard,
        Self::TooLarge,
        Self::FutureTime,
        Self::ReadOnly,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownBoard => "unknown_board",
            Self::BadMember => "bad_member",
            Self::BadScore => "bad_score",
            Self::OutOfRange => "out_of_range",
            Self::Overflow => "overflow",
            Self::StaleVersion => "stale_version",
            Self::ClosedWindow => "closed_window",
            Self::WrongShard => "wrong_shard",
            Self::TooLarge => "too_large",
            Self::FutureTime => "future_time",
            Self::ReadOnly => "read_only",
        }
    }
}

impl fmt::Display for RejectCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A refused job: the stable code, and words that say what was wrong with this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    pub code: RejectCode,
    pub detail: String,
}

impl Reject {
    pub fn new(code: RejectCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_found_by_a_name_of_its_own() {
        let conditional = When::ALL.into_iter().map(Op::When).chain([Op::Take]);
        let all: Vec<Op> = Op::ALL.into_iter().chain(conditional).collect();
        for op in &all {
            assert_eq!(Op::of_name(op.name()), Some(*op));
            assert_eq!(op.takes_score(), !op.is_ban() && !matches!(op, Op::Remove | Op::Profile), "{op:?}");
        }
        for when in When::ALL {
            assert_eq!((Op::when(when), Op::when(when).adds()), (Op::When(when), when.adds));
        }
        assert_eq!([Op::of_name("create"), Op::of_name("update")], [Some(Op::CREATE), Some(Op::UPDATE)]);
        assert_eq!(Op::of_name("raise_set"), None);
    }
}

//! A board's definition: what it consists of, and which are valid.

use std::sync::Arc;

use thiserror::Error;

use crate::board::read_only::{InvalidReason, ReadOnly};
use crate::types::{MAX_KEYS, Number, Timestamp, quoted};
use crate::window::{InvalidSeasons, Seasons, Window, length_text};

/// The most closed window instances a board may keep per kind.
pub const MAX_KEEP: u32 = 1_000;

/// How long an instance stays open after its end, unless its board says otherwise: five minutes, in
/// microseconds.
pub const DEFAULT_GRACE_MICROS: i64 = 5 * 60 * 1_000_000;
/// The longest grace and the longest `entry_ttl`, in microseconds: a hundred years of 365 days.
pub const MAX_DURATION_MICROS: i64 = 100 * 365 * 24 * 60 * 60 * 1_000_000;
/// The shortest `entry_ttl`, in microseconds: a second.
pub const MIN_TTL_MICROS: i64 = 1_000_000;
/// The greatest capacity of a board.
pub const MAX_CAPACITY: u64 = 1_000_000_000_000;
/// The most instances of a window that may have ended and be open. Each of them may be changed by the next
/// job, so that each is kept in memory.
pub const OPEN_INSTANCES_MAX: i64 = 10_000;
/// The most instances that a board may have at a time, those of all its windows together.
pub const INSTANCES_MAX: i64 = 16_000;

/// Which of two values of a key is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smaller is better: times, strokes.
    Ascending,
    /// Greater is better: points.
    Descending,
}

impl Order {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// What numbers a key has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// Exact signed 64-bit integers.
    Integer,
    /// IEEE doubles, without those that are no number.
    Float,
}

impl KeyType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Float => "float",
        }
    }
}

/// What becomes of an increment that would take a key beyond a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Beyond {
    /// The job is refused.
    Reject,
    /// The key stops at the bound.
    Clamp,
}

impl Beyond {
    pub fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Clamp => "clamp",
        }
    }
}

/// One component of a board's scores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub name: String,
    pub order: Order,
    pub key_type: KeyType,
    /// The least value a job may lead to, inclusive, as [`Key::ordered`] has it. `i64::MIN`: any.
    pub min: i64,
    /// The greatest value a job may lead to, inclusive, as [`Key::ordered`] has it. `i64::MAX`: any.
    pub max: i64,
    /// What an `incr` to less than `min` does.
    pub below_min: Beyond,
    /// What an `incr` to more than `max` does.
    pub above_max: Beyond,
}

impl Key {
    /// The key of a board that names none: `score`, greater is better, any 64-bit value.
    pub fn score() -> Self {
        Self {
            name: "score".to_owned(),
            order: Order::Descending,
            key_type: KeyType::Integer,
            min: i64::MIN,
            max: i64::MAX,
            below_min: Beyond::Reject,
            above_max: Beyond::Reject,
        }
    }
}

/// What a job that names no operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    Set,
    Best,
    Incr,
}

impl Policy {
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Best => "best",
            Self::Incr => "incr",
        }
    }
}

/// Who leads among equal scores. Rank is shared regardless; this decides positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ties {
    /// The earliest to reach the score.
    First,
    /// The latest to reach it.
    Last,
    /// The smallest id, byte by byte; also the final tie-break of the two above.
    Member,
    /// The greatest id, byte by byte.
    MemberDesc,
}

impl Ties {
    pub const ALL: [Self; 4] = [Self::First, Self::Last, Self::Member, Self::MemberDesc];

    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::Member => "member",
            Self::MemberDesc => "member_desc",
        }
    }
}

/// What a board keeps of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// All of them.
    Ranking,
    /// Those with the greatest counts, in memory that does not grow: `SpaceSaving`, with at most
    /// [`Definition::capacity`] entries of each instance on each shard. Every entry has an *error*, the most
    /// by which its score is too high.
    TopK,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ranking => "ranking",
            Self::TopK => "top_k",
        }
    }
}

/// Everything a board's creator decides. Keys, kind, ties, movement, the offset, when seasons start that have
/// begun, and the windows that are there can never change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Definition {
    pub keys: Vec<Key>,
    pub kind: Kind,
    pub policy: Policy,
    pub ties: Ties,
    /// At least one, each at most once.
    pub windows: Vec<Window>,
    /// `Some` if there is a window [`Window::Season`].
    pub seasons: Option<Seasons>,
    /// Minutes east of UTC at which days and weeks begin.
    pub utc_offset_minutes: i16,
    /// Closed instances kept per window kind.
    pub keep: u32,
    /// How long an instance stays open after its end, in microseconds.
    pub grace_micros: i64,
    /// How long an entry stays that is not updated, in microseconds. `None`: forever.
    pub entry_ttl_micros: Option<i64>,
    /// Instances that had ended by then were closed when `entry_ttl` or `grace` last changed, or closed by
    /// that change: none of their entries expires. No client sends or sees it. `None`: neither has changed.
    pub final_until: Option<Timestamp>,
    /// Each instance shows this many of its entries, the best ones. `None`: all. Shards keep the others, and
    /// reads leave them out: which they are, no shard knows by itself.
    pub capacity: Option<u64>,
    /// Whether shards keep how `all` was when the current instance of each other window began.
    pub movement: bool,
    /// `Some` while clients may not write to it. It is set and taken back by itself, and no request for a
    /// definition touches it.
    pub read_only: Option<Arc<ReadOnly>>,
}

impl Default for Definition {
    fn default() -> Self {
        Self {
            keys: vec![Key::score()],
            kind: Kind::Ranking,
            policy: Policy::Set,
            ties: Ties::First,
            windows: vec![Window::All],
            seasons: None,
            utc_offset_minutes: 0,
            keep: 12,
            grace_micros: DEFAULT_GRACE_MICROS,
            entry_ttl_micros: None,
            final_until: None,
            capacity: None,
            movement: false,
            read_only: None,
        }
    }
}

/// Why a definition is refused; the text is fit for a client to read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidDefinition {
    #[error("a board must have 1 to {MAX_KEYS} keys; got {0}")]
    KeyCount(usize),
    #[error("key names must be 1 to 64 bytes long and differ from each other; got {}", quoted(.0))]
    KeyName(String),
    #[error("a key's min must not be above its max; {name} has min {min} and max {max}")]
    KeyRange { name: String, min: Number, max: Number },
    #[error("a key's min and max must be signed 64-bit integers, or their decimal strings; got {0}")]
    KeyBound(Number),
    #[error("keep must be 0 to {MAX_KEEP}; got {0}")]
    Keep(u32),
    #[error("utc_offset must be between -18:00 and +18:00; got {0} minutes east of UTC")]
    Offset(i16),
    #[error("windows must be one or more of all, hour, day, week, month and season, each at most once")]
    Windows,
    #[error(
        "the window season needs the field season, and the field season that window: add the one, or leave \
         the other out"
    )]
    SeasonWindow,
    #[error(
        "seasons need both starts and every, such as {{\"starts\":\"2026-11-02T00:00:00Z\",\"every\":\"14d\"}}; one \
         of them can be left out only where the board has it already"
    )]
    SeasonParts,
    #[error(transparent)]
    Seasons(#[from] InvalidSeasons),
    #[error("grace must be 0s to 36500d; got {}", length_text(*.0))]
    Grace(i64),
    #[error(
        "grace may keep {OPEN_INSTANCES_MAX} instances of a window open, which are {} for the window {window}; \
         got {}. Send a shorter one, or leave that window out",
        length_text(*.most), length_text(*.grace)
    )]
    GraceOfWindow { window: &'static str, most: i64, grace: i64 },
    #[error(
        "the windows of a board may have {INSTANCES_MAX} instances together, and these would have {0}: of each \
         window the current one, those that grace keeps open, and those that keep says. Send a shorter grace or \
         a smaller keep, or leave a window out"
    )]
    Instances(i64),
    #[error("entry_ttl must be 1s to 36500d; got {}", length_text(*.0))]
    EntryTtl(i64),
    #[error("capacity must be 1 to {MAX_CAPACITY}, or null for no limit; got {0}")]
    Capacity(u64),
    #[error(
        "movement is how positions in the window all changed since another window's instance began: add all \
         and one of hour, day, week, month and season to windows, or leave movement out"
    )]
    MovementWindows,
    #[error("a board of the kind top_k has {0}")]
    TopK(&'static str),
    #[error(transparent)]
    ReadOnly(#[from] InvalidReason),
}

impl Definition {
    /// # Errors
    /// The first rule that the definition breaks.
    pub fn validate(&self) -> Result<(), InvalidDefinition> {
        if self.keys.is_empty() || self.keys.len() > MAX_KEYS {
            return Err(InvalidDefinition::KeyCount(self.keys.len()));
        }
        for (index, key) in self.keys.iter().enumerate() {
            let repeated = self.keys.iter().take(index).any(|earlier| earlier.name == key.name);
            if key.name.is_empty() || key.name.len() > 64 || repeated {
                return Err(InvalidDefinition::KeyName(key.name.clone()));
            }
            if key.min > key.max {
                let (min, max) = (key.number(key.min), key.number(key.max));
                return Err(InvalidDefinition::KeyRange { name: key.name.clone(), min, max });
            }
        }
        if self.keep > MAX_KEEP {
            return Err(InvalidDefinition::Keep(self.keep));
        }
        if self.utc_offset_minutes.abs() > 18 * 60 {
            return Err(InvalidDefinition::Offset(self.utc_offset_minutes));
        }
        let is_repeated =
            |(at, window): (usize, &Window)| self.windows.iter().take(at).any(|earlier| earlier == window);
        if self.windows.is_empty() || self.windows.iter().enumerate().any(is_repeated) {
            return Err(InvalidDefinition::Windows);
        }
        if self.windows.contains(&Window::Season) != self.seasons.is_some() {
            return Err(InvalidDefinition::SeasonWindow);
        }
        if let Some(seasons) = &self.seasons {
            seasons.validate()?;
        }
        self.validate_grace()?;
        if let Some(read_only) = &self.read_only {
            ReadOnly::check_reason(&read_only.reason)?;
        }
        if let Some(capacity) = self.capacity.filter(|capacity| !(1..=MAX_CAPACITY).contains(capacity)) {
            return Err(InvalidDefinition::Capacity(capacity));
        }
        if self.movement && (!self.has_all() || self.has_only_all()) {
            return Err(InvalidDefinition::MovementWindows);
        }
        if let Some(rule) = self.is_top_k().then(|| self.broken_rule_of_top_k()).flatten() {
            return Err(InvalidDefinition::TopK(rule));
        }
        match self.entry_ttl_micros {
            Some(ttl) if !(MIN_TTL_MICROS..=MAX_DURATION_MICROS).contains(&ttl) => {
                Err(InvalidDefinition::EntryTtl(ttl))
            }
            _ => Ok(()),
        }
    }

    /// What does not fit a board of the kind `top_k`.
    fn broken_rule_of_top_k(&self) -> Option<&'static str> {
        let is_ascending = self.keys.iter().any(|key| key.order == Order::Ascending);
        let has_float = self.keys.iter().any(|key| key.key_type == KeyType::Float);
        let rules = [
            (self.capacity.is_none(), "a capacity, which is how many members it keeps: send one"),
            (self.keys.len() > 1, "one key: send one, or leave keys out"),
            (is_ascending, "a key whose order is desc: it keeps those with the greatest counts"),
            (has_float, "a key of the type integer: it counts, and sums of doubles are rounded"),
            (self.policy != Policy::Incr, "the policy incr: it counts, and keeps no scores that are set"),
            (
                matches!(self.ties, Ties::Member | Ties::MemberDesc),
                "ties of first or last: an entry's error comes before its id among equal scores",
            ),
            (self.movement, "no movement: that would have to be kept of members that are gone"),
            (
                self.entry_ttl_micros.is_some(),
                "no entry_ttl: counts that expire say nothing of the members that are gone. Use a window",
            ),
        ];
        rules.into_iter().find_map(|(is_broken, rule)| is_broken.then_some(rule))
    }

    pub fn is_top_k(&self) -> bool {
        self.kind == Kind::TopK
    }

    /// Whether the grace is within its range, and keeps few enough instances of each window open.
    fn validate_grace(&self) -> Result<(), InvalidDefinition> {
        let grace = self.grace_micros;
        if !(0..=MAX_DURATION_MICROS).contains(&grace) {
            return Err(InvalidDefinition::Grace(grace));
        }
        for window in &self.windows {
            let shortest = self.shortest(*window);
            // No length is beyond 64 bits: what is longer is longer than every grace.
            let most = shortest.map(|length| length.saturating_mul(OPEN_INSTANCES_MAX));
            if let Some(most) = most.filter(|most| grace > *most) {
                return Err(InvalidDefinition::GraceOfWindow { window: window.name(), most, grace });
            }
        }
        let instances = self.instances_max();
        if instances > INSTANCES_MAX { Err(InvalidDefinition::Instances(instances)) } else { Ok(()) }
    }

    /// How long the shortest instance of a window is. `None`: it never ends, or somebody says when.
    fn shortest(&self, window: Window) -> Option<i64> {
        match window {
            Window::Season => self.seasons.as_ref().and_then(Seasons::shortest),
            other => other.shortest(),
        }
    }

    /// How many instances of all windows but `all` the board has at a time at most: of each window the
    /// current one, those that are open for late jobs, and those that are kept.
    fn instances_max(&self) -> i64 {
        let of_window = |window: Window| {
            let open = self.shortest(window).map_or(0, |length| self.grace_micros / length.max(1) + 1);
            1 + open + i64::from(self.keep)
        };
        self.windows.iter().filter(|window| **window != Window::All).map(|window| of_window(*window)).sum()
    }

    /// How many entries are shown of so many that lead an instance.
    pub fn within_capacity(&self, entries: u64) -> u64 {
        self.capacity.map_or(entries, |capacity| entries.min(capacity))
    }

    /// How many entries may be shown after so many that lead an instance.
    pub fn capacity_after(&self, entries: u64) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(entries))
    }

    /// Whether its only window is `all`, so that a job changes one tree at most.
    pub fn has_only_all(&self) -> bool {
        self.windows == [Window::All]
    }

    /// How many trees of a shard a job with a score changes at most: one for each window, that of versions
    /// where `all` is none of them, and with movement two more for each window but `all`.
    pub fn trees_of_job(&self) -> usize {
        let windows = self.windows.len();
        let of_movement = if self.movement { 2 * windows.saturating_sub(1) } else { 0 };
        windows + usize::from(!self.has_all()) + of_movement
    }

    pub fn has_all(&self) -> bool {
        self.windows.contains(&Window::All)
    }

    /// The window that is read if a reader names none.
    pub fn default_window(&self) -> Window {
        if self.has_all() { Window::All } else { self.windows.first().copied().unwrap_or(Window::All) }
    }
}

//! What a board is: its keys and their directions, its policy, how it orders ties. Pure.
//!
//! Knows: how a score becomes words whose ascending order is best first, and back. Must not know: where
//! definitions are kept, or how they are written as JSON.

use thiserror::Error;

use crate::tree::Words;
use crate::types::{BoardName, MAX_KEYS, Score, Timestamp, quoted};
use crate::window::{Calendar, Instance, InvalidSeasons, MovementPart, Seasons, Window, length_text};

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

/// Which of two values of a key is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Smaller is better: times, strokes.
    Ascending,
    /// Greater is better: points.
    Descending,
}

impl Order {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// One component of a board's scores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    pub name: String,
    pub order: Order,
    /// The least value a job may lead to, inclusive.
    pub min: i64,
    /// The greatest value a job may lead to, inclusive.
    pub max: i64,
}

impl Key {
    /// The key of a board that names none: `score`, greater is better, any 64-bit value.
    #[must_use]
    pub fn score() -> Self {
        Self { name: "score".to_owned(), order: Order::Descending, min: i64::MIN, max: i64::MAX }
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
    #[must_use]
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
    /// The smallest id, byte by byte; also the final tie-break of the other two.
    Member,
}

impl Ties {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::Member => "member",
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
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ranking => "ranking",
            Self::TopK => "top_k",
        }
    }
}

/// Everything a board's creator decides. Keys, kind, policy, ties, windows, the offset and when seasons start
/// can never change.
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
    /// Each instance shows this many of its entries, the best ones. `None`: all. Shards keep the others, and
    /// reads leave them out: which they are, no shard knows by itself.
    pub capacity: Option<u64>,
    /// Whether shards keep how `all` was when the current instance of each other window began.
    pub movement: bool,
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
            capacity: None,
            movement: false,
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
    KeyRange { name: String, min: i64, max: i64 },
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
}

/// Why a score does not belong on a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScoreRefused {
    #[error("the score does not have as many keys as the board")]
    KeyCount,
    #[error("a key of the score is outside the board's min and max for it")]
    OutOfRange,
    #[error("a key of the score would leave the signed 64-bit range")]
    Overflow,
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
                let Key { name, min, max, .. } = key.clone();
                return Err(InvalidDefinition::KeyRange { name, min, max });
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
        let rules = [
            (self.capacity.is_none(), "a capacity, which is how many members it keeps: send one"),
            (self.keys.len() > 1, "one key: send one, or leave keys out"),
            (is_ascending, "a key whose order is desc: it keeps those with the greatest counts"),
            (self.policy != Policy::Incr, "the policy incr: it counts, and keeps no scores that are set"),
            (
                self.ties == Ties::Member,
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

    #[must_use]
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
            let shortest = match window {
                Window::Season => self.seasons.as_ref().and_then(Seasons::shortest),
                other => other.shortest(),
            };
            // No length is beyond 64 bits: what is longer is longer than every grace.
            let most = shortest.map(|length| length.saturating_mul(OPEN_INSTANCES_MAX));
            if let Some(most) = most.filter(|most| grace > *most) {
                return Err(InvalidDefinition::GraceOfWindow { window: window.name(), most, grace });
            }
        }
        Ok(())
    }

    /// How many entries are shown of so many that lead an instance.
    #[must_use]
    pub fn within_capacity(&self, entries: u64) -> u64 {
        self.capacity.map_or(entries, |capacity| entries.min(capacity))
    }

    /// How many entries may be shown after so many that lead an instance.
    #[must_use]
    pub fn capacity_after(&self, entries: u64) -> u64 {
        self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(entries))
    }

    /// Whether its only window is `all`, so that a job changes one tree at most.
    #[must_use]
    pub fn has_only_all(&self) -> bool {
        self.windows == [Window::All]
    }

    #[must_use]
    pub fn has_all(&self) -> bool {
        self.windows.contains(&Window::All)
    }

    /// The window that is read if a reader names none.
    #[must_use]
    pub fn default_window(&self) -> Window {
        if self.has_all() { Window::All } else { self.windows.first().copied().unwrap_or(Window::All) }
    }

    #[must_use]
    pub fn calendar(&self) -> Calendar<'_> {
        Calendar { utc_offset_minutes: self.utc_offset_minutes, seasons: self.seasons.as_ref() }
    }

    /// When an instance closes: from then on it is final. `None`: not as far as is known.
    #[must_use]
    pub fn closes_at(&self, instance: Instance) -> Option<Timestamp> {
        let end = self.calendar().span(instance)?.end?;
        Timestamp::from_micros(end.as_micros().checked_add(self.grace_micros)?).ok()
    }

    /// When an instance is dropped: when `keep` newer ones have closed, whether or not these have entries.
    /// `None`: not as far as is known.
    #[must_use]
    pub fn drops_at(&self, instance: Instance) -> Option<Timestamp> {
        if instance.window == Window::All {
            return None;
        }
        self.closes_at(instance.later(i64::from(self.keep)))
    }

    /// When what shards keep under a name is dropped: an instance, or what movement needs since one began.
    /// `None`: not as far as is known.
    #[must_use]
    pub fn drops_name_at(&self, name: &BoardName) -> Option<Timestamp> {
        match MovementPart::of_name_on_shards(name) {
            // Nobody asks for it once the next instance has begun.
            Some((_, instance)) => self.calendar().span(instance)?.end,
            None => self.drops_at(Instance::of_name_on_shards(name)?),
        }
    }

    /// When an entry that is not updated again leaves. `None`: not while its instance is open.
    #[must_use]
    pub fn expires_at(&self, instance: Instance, updated_at: Timestamp) -> Option<Timestamp> {
        let micros = updated_at.as_micros().checked_add(self.entry_ttl_micros?)?;
        let at = Timestamp::from_micros(micros).ok()?;
        // A closed instance is final.
        let closes_at = if instance == Instance::ALL { None } else { self.closes_at(instance) };
        closes_at.is_none_or(|closes_at| at < closes_at).then_some(at)
    }

    /// Whether entries may expire at other times than by the other definition.
    #[must_use]
    pub fn expires_like(&self, other: &Self) -> bool {
        let rule = |definition: &Self| {
            let Self { entry_ttl_micros, grace_micros, seasons, .. } = definition;
            entry_ttl_micros.map(|ttl| (ttl, *grace_micros, seasons.clone()))
        };
        rule(self) == rule(other)
    }

    /// Whether a job whose message has this time may change an instance.
    #[must_use]
    pub fn is_open(&self, instance: Instance, now: Timestamp) -> bool {
        let has_begun = self.calendar().span(instance).is_some_and(|span| span.begin <= now);
        has_begun && self.closes_at(instance).is_none_or(|closes| now < closes)
    }

    /// The definition that this one becomes if a client asks for another, which agrees with it: seasons
    /// become longer or shorter from the next one on, and manual ones stay as they were opened.
    ///
    /// # Errors
    /// When it is none: when seasons would be too short, or have changed too often, or the grace is too long
    /// for the shortest of them.
    pub fn changed_to(&self, asked: &Self, now: Timestamp) -> Result<Self, InvalidDefinition> {
        let seasons = match (&self.seasons, &asked.seasons) {
            (Some(known), Some(Seasons::Regular(series))) => match series.last() {
                Some(last) => Some(known.with_length(last.every, now)?),
                None => Some(known.clone()),
            },
            (known, _) => known.clone(),
        };
        let changed = Self { seasons, ..asked.clone() };
        changed.validate()?;
        Ok(changed)
    }

    /// Whether `other` could replace this definition: all that can never change is the same. Bounds judge
    /// jobs, and not the entries that are there.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let unbounded = |key: &Key| Key { min: i64::MIN, max: i64::MAX, ..key.clone() };
        let fixed = |definition: &Self| Self {
            keys: definition.keys.iter().map(unbounded).collect(),
            seasons: definition.seasons.as_ref().map(Seasons::first),
            keep: 0,
            grace_micros: 0,
            entry_ttl_micros: None,
            // It decides which members of a stream are kept.
            capacity: definition.capacity.filter(|_| definition.is_top_k()),
            ..definition.clone()
        };
        fixed(self) == fixed(other)
    }

    /// What a score of this board looks like in JSON, for a client that sent one with another number of keys.
    #[must_use]
    pub fn not_a_score(&self, found: &Score) -> String {
        let keys = self.score_example();
        let form = if keys.len() == 1 { keys.concat() } else { format!("[{}]", keys.join(", ")) };
        format!("{}: send {form}, not {found}{}", self.keys_told(), self.default_told())
    }

    /// The same in a query.
    #[must_use]
    pub fn not_a_score_in_query(&self, found: &Score) -> String {
        let form = |keys: Vec<String>| format!("score={}", keys.join(","));
        let found = form(found.keys().iter().map(i64::to_string).collect());
        let example = form(self.score_example());
        format!("{}: send {example}, not {found}{}", self.keys_told(), self.default_told())
    }

    fn keys_told(&self) -> String {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name.as_str()).collect();
        let (count, plural) = (names.len(), if names.len() == 1 { "" } else { "s" });
        format!("a score of this board has {count} key{plural} ({})", names.join(", "))
    }

    /// A board of the default definition may have it because nobody defined it in time.
    fn default_told(&self) -> &'static str {
        if *self == Self::default() {
            "; this is the default definition, which a board has if its first job created it. For several \
             keys, define the board with PUT /v1/boards/{board} before its first job; if it exists \
             already, DELETE it first"
        } else {
            ""
        }
    }

    /// A value for each key.
    fn score_example(&self) -> Vec<String> {
        // 1200 points in a minute and a half, or what of them the bounds allow.
        let examples = [1_200, 90_000].into_iter().chain(std::iter::repeat(0));
        let keys = self.keys.iter().zip(examples);
        keys.map(|(key, example)| example.clamp(key.min, key.max).to_string()).collect()
    }

    /// In what `asked` differs from this, of all that can never change: how it is, and how it would be.
    #[must_use]
    pub fn differences(&self, asked: &Self) -> Vec<String> {
        let mut told = Vec::new();
        let mut differ = |name: &str, is: String, asked: String| {
            if is != asked {
                told.push(format!("{name} is {is}, not {asked}"));
            }
        };
        if self.keys.len() == asked.keys.len() {
            for (number, (key, asked)) in (1..).zip(self.keys.iter().zip(&asked.keys)) {
                differ(&format!("the name of key {number}"), quoted(&key.name), quoted(&asked.name));
                let order = format!("the order of key {}", key.name);
                differ(&order, key.order.name().to_owned(), asked.order.name().to_owned());
            }
        } else {
            let names = |keys: &[Key]| {
                format!("[{}]", keys.iter().map(|key| quoted(&key.name)).collect::<Vec<_>>().join(", "))
            };
            differ("the list of keys", names(&self.keys), names(&asked.keys));
        }
        differ("kind", self.kind.name().to_owned(), asked.kind.name().to_owned());
        if self.is_top_k() && asked.is_top_k() {
            let told = |definition: &Self| definition.capacity.unwrap_or_default().to_string();
            differ("capacity of top_k", told(self), told(asked));
        }
        differ("policy", self.policy.name().to_owned(), asked.policy.name().to_owned());
        differ("ties", self.ties.name().to_owned(), asked.ties.name().to_owned());
        let windows = |definition: &Self| {
            definition.windows.iter().map(|window| window.name()).collect::<Vec<_>>().join(", ")
        };
        differ("the list of windows", windows(self), windows(asked));
        differ("season", seasons_told(self), seasons_told(asked));
        differ("movement", self.movement.to_string(), asked.movement.to_string());
        differ("utc_offset", offset(self.utc_offset_minutes), offset(asked.utc_offset_minutes));
        told
    }

    /// # Errors
    /// When the score has another number of keys than the board, or a key lies outside its bounds.
    pub fn admit(&self, score: &Score) -> Result<(), ScoreRefused> {
        if score.keys().len() != self.keys.len() {
            return Err(ScoreRefused::KeyCount);
        }
        let inside =
            self.keys.iter().zip(score.keys()).all(|(key, value)| (key.min..=key.max).contains(value));
        if inside { Ok(()) } else { Err(ScoreRefused::OutOfRange) }
    }

    /// The sum of two scores, key by key; never wrapped, never clamped.
    ///
    /// # Errors
    /// When the key counts differ, or a sum leaves 64 bits.
    pub fn add(&self, base: Option<&Score>, step: &Score) -> Result<Score, ScoreRefused> {
        if step.keys().len() != self.keys.len() {
            return Err(ScoreRefused::KeyCount);
        }
        let Some(base) = base else { return Ok(*step) };
        let mut sums = [0; MAX_KEYS];
        for ((sum, left), right) in sums.iter_mut().zip(base.keys()).zip(step.keys()) {
            *sum = left.checked_add(*right).ok_or(ScoreRefused::Overflow)?;
        }
        let sums = sums.get(..self.keys.len()).ok_or(ScoreRefused::KeyCount)?;
        Score::new(sums).map_err(|_| ScoreRefused::KeyCount)
    }

    /// The words of a score: one per key, ascending order is best first.
    ///
    /// The caller has checked the key count with [`Definition::admit`]; surplus keys are left out.
    #[must_use]
    pub fn score_words(&self, score: &Score) -> Words {
        let mut words = Words::new();
        for (key, value) in self.keys.iter().zip(score.keys()) {
            words.push(encode(*value, key.order));
        }
        words
    }

    /// The tree entry of a score: its words, then the tie-break of a member that reached it at `reached`.
    #[must_use]
    pub fn entry_words(&self, score: &Score, reached: Timestamp, member: &[u8]) -> Words {
        self.entry_words_with(score, 0, reached, member)
    }

    /// The same of an entry whose score is too high by `error` at most. Where errors are kept, that is the
    /// last word.
    #[must_use]
    pub fn entry_words_with(&self, score: &Score, error: i64, reached: Timestamp, member: &[u8]) -> Words {
        let mut words = self.score_words(score);
        words.push(match self.ties {
            Ties::First => encode(reached.as_micros(), Order::Ascending),
            Ties::Last => encode(reached.as_micros(), Order::Descending),
            Ties::Member => member_prefix(member),
        });
        if self.is_top_k() {
            words.push(encode(error, Order::Ascending));
        }
        words
    }

    /// The most by which the score of a tree entry's words is too high; `None` where scores are exact.
    #[must_use]
    pub fn error_of(&self, words: &[u64]) -> Option<i64> {
        let error = *words.get(self.keys.len() + 1).filter(|_| self.is_top_k())?;
        Some(decode(error, Order::Ascending))
    }

    /// The score of a tree entry's words, which are its first.
    #[must_use]
    pub fn score_of(&self, words: &[u64]) -> Score {
        let mut values = [0; MAX_KEYS];
        for ((value, key), word) in values.iter_mut().zip(&self.keys).zip(words) {
            *value = decode(*word, key.order);
        }
        let values = values.get(..self.keys.len()).expect("a validated definition has at most MAX_KEYS keys");
        Score::new(values).expect("a validated definition has at least one key")
    }

    /// When the entry's score was reached, where the tie-break says it.
    #[must_use]
    pub fn reached_at(&self, words: &[u64]) -> Option<Timestamp> {
        let tie = *words.get(self.keys.len())?;
        match self.ties {
            Ties::First => Timestamp::from_micros(decode(tie, Order::Ascending)).ok(),
            Ties::Last => Timestamp::from_micros(decode(tie, Order::Descending)).ok(),
            Ties::Member => None,
        }
    }

    /// Words per tree entry: one per key, the tie-break, and the error where there is one.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.keys.len() + 1 + usize::from(self.is_top_k())
    }
}

/// When a board's seasons start, in words.
fn seasons_told(definition: &Definition) -> String {
    match &definition.seasons {
        None => "none".to_owned(),
        Some(Seasons::Manual(_)) => "manual".to_owned(),
        Some(Seasons::Regular(series)) => {
            series.first().map_or_else(String::new, |first| format!("from {} on", first.begin))
        }
    }
}

/// Minutes east of UTC, as definitions have them.
#[must_use]
pub fn offset(minutes: i16) -> String {
    let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.unsigned_abs());
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// The first eight bytes of an id as a big-endian number: orders as the ids do, wherever it differs.
fn member_prefix(member: &[u8]) -> u64 {
    let mut prefix = [0; 8];
    for (to, from) in prefix.iter_mut().zip(member) {
        *to = *from;
    }
    u64::from_be_bytes(prefix)
}

/// Maps a signed value to a word whose ascending order is best first.
///
/// The direction is a bitwise NOT and never a negation: `-i64::MIN` does not exist.
#[must_use]
pub fn encode(value: i64, order: Order) -> u64 {
    let ascending = value.cast_unsigned() ^ (1 << 63);
    match order {
        Order::Ascending => ascending,
        Order::Descending => !ascending,
    }
}

/// The inverse of [`encode`].
#[must_use]
pub fn decode(word: u64, order: Order) -> i64 {
    let ascending = match order {
        Order::Ascending => word,
        Order::Descending => !word,
    };
    (ascending ^ (1 << 63)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60 * 60 * 1_000_000;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).expect("in range")
    }

    const EXTREMES: [i64; 7] = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];

    #[test]
    fn words_ascend_from_best_to_worst_over_the_whole_range() {
        for pair in EXTREMES.windows(2) {
            let [low, high] = pair else { unreachable!("windows of two") };
            assert!(encode(*low, Order::Ascending) < encode(*high, Order::Ascending));
            assert!(encode(*low, Order::Descending) > encode(*high, Order::Descending));
        }
        for value in EXTREMES {
            for order in [Order::Ascending, Order::Descending] {
                assert_eq!(decode(encode(value, order), order), value);
            }
        }
    }

    #[test]
    fn an_increment_is_refused_rather_than_wrapped() {
        let board = Definition::default();
        let top = Score::new(&[i64::MAX]).expect("one key");
        let one = Score::new(&[1]).expect("one key");
        assert_eq!(board.add(Some(&top), &one), Err(ScoreRefused::Overflow));
        assert_eq!(board.add(None, &one), Ok(one));
    }

    #[test]
    fn keep_and_the_bounds_of_keys_may_change_and_nothing_else() {
        let board = Definition::default();
        assert!(board.agrees_with(&Definition { keep: 3, ..board.clone() }));
        let keys = |key: Key| Definition { keys: vec![key], ..board.clone() };
        assert!(board.agrees_with(&keys(Key { min: -1, max: 7, ..Key::score() })));
        assert!(!board.agrees_with(&keys(Key { order: Order::Ascending, ..Key::score() })));
        assert!(!board.agrees_with(&keys(Key { name: "points".to_owned(), ..Key::score() })));
        assert!(!board.agrees_with(&Definition { ties: Ties::Last, ..board.clone() }));
        assert!(!board.agrees_with(&Definition { policy: Policy::Best, ..board.clone() }));
    }

    #[test]
    fn the_lengths_of_a_definition_may_change_and_its_windows_may_not() {
        let seasons = |begin, every| Some(Seasons::regular(at(begin), every));
        let board = Definition {
            windows: vec![Window::All, Window::Season],
            seasons: seasons(7, 14 * DAY),
            ..Definition::default()
        };
        assert!(board.agrees_with(&Definition {
            grace_micros: 0,
            entry_ttl_micros: Some(DAY),
            capacity: Some(100),
            ..board.clone()
        }));
        assert!(board.agrees_with(&Definition { seasons: seasons(7, DAY), ..board.clone() }));
        assert!(!board.agrees_with(&Definition { seasons: seasons(8, 14 * DAY), ..board.clone() }));
        let manual = |begins: &[i64]| Definition {
            seasons: Some(Seasons::Manual(begins.iter().map(|begin| at(*begin)).collect())),
            ..board.clone()
        };
        assert!(!board.agrees_with(&manual(&[])));
        assert!(manual(&[1, 2]).agrees_with(&manual(&[])));
        assert!(!board.agrees_with(&Definition { windows: vec![Window::Season], ..board.clone() }));
        assert_eq!(
            board.differences(&manual(&[])),
            ["season is from 1970-01-01T00:00:00.000007Z on, not manual"]
        );
        assert_eq!(
            board.differences(&Definition { seasons: None, windows: vec![Window::All], ..board.clone() }),
            [
                "the list of windows is all, season, not all",
                "season is from 1970-01-01T00:00:00.000007Z on, not none"
            ]
        );
        // What was opened stays, whatever a client sends.
        let changed = manual(&[1, 2]).changed_to(&Definition { keep: 3, ..manual(&[]) }, at(5));
        assert_eq!(changed, Ok(Definition { keep: 3, ..manual(&[1, 2]) }));
        // The same again is no change.
        assert_eq!(board.changed_to(&board, at(5)), Ok(board.clone()));
    }

    #[test]
    fn a_grace_that_keeps_too_many_instances_open_is_refused() {
        let with = |windows: &[Window], grace_micros| {
            let seasons = windows.contains(&Window::Season).then(|| Seasons::regular(at(0), 60_000_000));
            Definition { windows: windows.to_vec(), seasons, grace_micros, ..Definition::default() }
                .validate()
        };
        let hour = DAY / 24;
        assert_eq!(with(&[Window::All, Window::Hour], 10_000 * hour), Ok(()));
        let refused = with(&[Window::All, Window::Hour], 10_001 * hour).expect_err("too long");
        assert_eq!(
            refused.to_string(),
            "grace may keep 10000 instances of a window open, which are 10000h for the window hour; got \
             10001h. Send a shorter one, or leave that window out"
        );
        assert_eq!(with(&[Window::All, Window::Day, Window::Week, Window::Month], 10_000 * DAY), Ok(()));
        assert!(with(&[Window::Day], 10_001 * DAY).is_err());
        assert!(with(&[Window::Season], 10_001 * 60_000_000).is_err());
        assert_eq!(with(&[Window::All], MAX_DURATION_MICROS), Ok(()));
        assert_eq!(with(&[Window::All], -1), Err(InvalidDefinition::Grace(-1)));
        assert!(with(&[Window::All], MAX_DURATION_MICROS + 1).is_err());
        assert_eq!(with(&[], 0), Err(InvalidDefinition::Windows));
        assert_eq!(with(&[Window::Day, Window::Day], 0), Err(InvalidDefinition::Windows));
    }

    #[test]
    fn a_capacity_cuts_what_is_behind_it() {
        let with = |capacity| Definition { capacity, ..Definition::default() };
        let (none, ten) = (with(None), with(Some(10)));
        assert_eq!([0, 10, 11].map(|entries| ten.within_capacity(entries)), [0, 10, 10]);
        assert_eq!([0, 10, 11].map(|entries| ten.capacity_after(entries)), [10, 0, 0]);
        assert_eq!((none.within_capacity(11), none.capacity_after(11)), (11, u64::MAX));
        assert_eq!(with(Some(MAX_CAPACITY)).validate(), Ok(()));
        for capacity in [0, MAX_CAPACITY + 1] {
            assert_eq!(with(Some(capacity)).validate(), Err(InvalidDefinition::Capacity(capacity)));
        }
    }

    #[test]
    fn an_instance_is_open_through_its_grace_and_kept_until_enough_newer_ones_have_closed() {
        let board = Definition {
            windows: vec![Window::All, Window::Day],
            grace_micros: 5,
            keep: 2,
            ..Definition::default()
        };
        let day = |number| Instance { window: Window::Day, number };
        assert_eq!(board.closes_at(day(0)), Some(at(DAY + 5)));
        assert_eq!(board.drops_at(day(0)), Some(at(3 * DAY + 5)));
        assert!(board.is_open(day(0), at(DAY + 4)) && !board.is_open(day(0), at(DAY + 5)));
        assert!(board.is_open(day(1), at(DAY)) && !board.is_open(day(1), at(DAY - 1)));
        assert_eq!((board.closes_at(Instance::ALL), board.drops_at(Instance::ALL)), (None, None));
        assert!(board.is_open(Instance::ALL, at(0)));
        // The last manual season is open until it is known when it ends.
        let manual = Definition {
            windows: vec![Window::Season],
            seasons: Some(Seasons::Manual(vec![at(10), at(20)])),
            grace_micros: 5,
            keep: 0,
            ..Definition::default()
        };
        let season = |number| Instance { window: Window::Season, number };
        assert_eq!((manual.closes_at(season(1)), manual.closes_at(season(2))), (Some(at(25)), None));
        assert!(manual.is_open(season(2), at(DAY)) && !manual.is_open(season(3), at(DAY)));
        assert_eq!(manual.drops_at(season(1)), Some(at(25)));
    }

    #[test]
    fn a_definition_tells_in_what_another_differs_and_what_its_scores_are() {
        let points = Key { name: "points".to_owned(), min: 0, max: 1_000, ..Key::score() };
        let time = Key { name: "time_ms".to_owned(), order: Order::Ascending, ..Key::score() };
        let board = Definition { keys: vec![points.clone(), time], ..Definition::default() };
        let (one, two) = (Score::new(&[7]).expect("one key"), Score::new(&[7, 8]).expect("two keys"));
        let keys = "a score of this board has 2 keys (points, time_ms): send ";
        assert_eq!(board.not_a_score(&one), format!("{keys}[1000, 90000], not 7"));
        assert_eq!(board.not_a_score_in_query(&one), format!("{keys}score=1000,90000, not score=7"));
        let single = Definition { keys: vec![points.clone()], ..Definition::default() };
        let key = "a score of this board has 1 key (points): send ";
        assert_eq!(single.not_a_score(&two), format!("{key}1000, not [7, 8]"));
        assert_eq!(single.not_a_score_in_query(&two), format!("{key}score=1000, not score=7,8"));
        let told = Definition::default().not_a_score(&two);
        let advice = "; this is the default definition, which a board has if its first job created it. \
                      For several keys, define the board with PUT /v1/boards/{board} before its first \
                      job; if it exists already, DELETE it first";
        assert_eq!(told, format!("a score of this board has 1 key (score): send 1200, not [7, 8]{advice}"));
        assert!(board.differences(&Definition { keep: 3, ..board.clone() }).is_empty());
        let other = Definition { keys: vec![points.clone()], policy: Policy::Best, ..board.clone() };
        assert_eq!(
            board.differences(&other),
            [r#"the list of keys is ["points", "time_ms"], not ["points"]"#, "policy is set, not best"]
        );
        let board = Definition { keys: vec![points.clone()], ..Definition::default() };
        let other = Definition {
            keys: vec![Key { max: i64::MAX, order: Order::Ascending, ..points }],
            utc_offset_minutes: -210,
            ..board.clone()
        };
        assert_eq!(
            board.differences(&other),
            ["the order of key points is desc, not asc", "utc_offset is +00:00, not -03:30"]
        );
    }

    #[test]
    fn the_tie_break_follows_the_rule() {
        let score = Score::new(&[5]).expect("one key");
        let words = |ties, micros, id: &str| {
            Definition { ties, ..Definition::default() }.entry_words(&score, at(micros), id.as_bytes())
        };
        assert!(words(Ties::First, 1, "b").as_slice() < words(Ties::First, 2, "a").as_slice());
        assert!(words(Ties::Last, 2, "b").as_slice() < words(Ties::Last, 1, "a").as_slice());
        assert!(words(Ties::Member, 2, "a").as_slice() < words(Ties::Member, 1, "b").as_slice());
        assert_eq!(words(Ties::Member, 2, "12345678a"), words(Ties::Member, 1, "12345678b"));
    }
}

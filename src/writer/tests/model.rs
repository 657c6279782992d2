//! The oracle: boards as maps, ranks by counting. Shares no code with what it judges but the types.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::board::{Definition, Order, Policy, Ties};
use crate::job::{Compare, Job, Op, Presence, RejectCode, Targets, When};
use crate::state::{
    BANS_EVERYWHERE_MAX, BANS_OF_BOARD_MAX, BANS_OF_BOARD_SURE, BANS_SHARED_MAX, MEMBER_VERSIONS_MAX,
};
use crate::types::{BoardName, Timestamp, count};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Listed,
    Hidden,
    Removed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    pub shown: Shown,
    pub score: Vec<i64>,
    /// When the score was reached; decides ties.
    pub reached: i64,
    pub updated: i64,
    pub version: Option<u64>,
    pub meta: Option<String>,
}

#[derive(Debug, Clone)]
pub struct ModelBoard {
    pub definition: Arc<Definition>,
    pub entries: BTreeMap<String, ModelEntry>,
    /// How often the board was cleared, or began anew beside its drop, as the shard knows it.
    pub life: u32,
}

/// A place that entries are trimmed behind: a score or its first key, and for one of a member also when that
/// one reached it.
#[derive(Debug, Clone)]
pub struct Place {
    pub score: Vec<i64>,
    pub member: Option<(i64, String)>,
}

impl ModelBoard {
    fn order(&self, (a_id, a): (&str, &ModelEntry), (b_id, b): (&str, &ModelEntry)) -> Ordering {
        let ties = match self.definition.ties {
            Ties::First => a.reached.cmp(&b.reached),
            Ties::Last => b.reached.cmp(&a.reached),
            Ties::Member | Ties::MemberDesc => Ordering::Equal,
        };
        let ids = a_id.as_bytes().cmp(b_id.as_bytes());
        let ids = if self.definition.ties == Ties::MemberDesc { ids.reverse() } else { ids };
        self.by_score(&a.score, &b.score).then(ties).then(ids)
    }

    /// `Less`: the first is better.
    fn by_score(&self, a: &[i64], b: &[i64]) -> Ordering {
        let mut order = Ordering::Equal;
        for ((key, a), b) in self.definition.keys.iter().zip(a).zip(b) {
            order = order.then(match key.order {
                Order::Ascending => a.cmp(b),
                Order::Descending => b.cmp(a),
            });
        }
        order
    }

    pub fn listed(&self) -> Vec<(&str, &ModelEntry)> {
        let listed = self.entries.iter().filter(|(_, entry)| entry.shown == Shown::Listed);
        let mut listed: Vec<_> = listed.map(|(id, entry)| (id.as_str(), entry)).collect();
        listed.sort_by(|a, b| self.order(*a, *b));
        listed
    }

    /// (better, tied, ahead, total) of a listed member.
    pub fn place(&self, id: &str) -> Option<(u64, u64, u64, u64)> {
        let listed = self.listed();
        let ahead = listed.iter().position(|(other, _)| *other == id)?;
        let own = &self.entries.get(id)?.score;
        let like = |wanted| {
            count(listed.iter().filter(|(_, entry)| self.by_score(&entry.score, own) == wanted).count())
        };
        Some((like(Ordering::Less), like(Ordering::Equal), count(ahead), count(listed.len())))
    }

    /// Removes those of the members who come after a place, as a removal without a version does. How many
    /// there were.
    pub fn trim(&mut self, place: &Place, members: &[String], now: i64) -> u64 {
        let mut removed = 0;
        for id in members {
            let Some(entry) = self.entries.get(id).filter(|entry| entry.shown != Shown::Removed) else {
                continue;
            };
            let keys = place.score.len();
            let by_score = self.by_score(&entry.score[..keys], &place.score);
            let is_behind = match (&place.member, by_score) {
                (Some((reached, own)), Ordering::Equal) => {
                    let held = ModelEntry { reached: *reached, score: place.score.clone(), ..entry.clone() };
                    self.order((id, entry), (own, &held)) == Ordering::Greater
                }
                (_, by_score) => by_score == Ordering::Greater,
            };
            if !is_behind {
                continue;
            }
            removed += 1;
            let version = entry.version;
            if version.is_some() {
                let (score, reached, meta) = (Vec::new(), 0, None);
                let gone = ModelEntry { shown: Shown::Removed, score, reached, updated: now, version, meta };
                self.entries.insert(id.clone(), gone);
            } else {
                self.entries.remove(id);
            }
        }
        removed
    }

    fn score_of_board<'g>(&self, given: Option<&'g [i64]>) -> Result<&'g [i64], RejectCode> {
        given.filter(|given| given.len() == self.definition.keys.len()).ok_or(RejectCode::BadScore)
    }

    /// The entry goes away; its version is remembered.
    fn remove(&mut self, id: String, version: Option<u64>, at: i64) {
        if version.is_some() {
            let (score, reached, meta) = (Vec::new(), 0, None);
            let gone = ModelEntry { shown: Shown::Removed, score, reached, updated: at, version, meta };
            self.entries.insert(id, gone);
        } else {
            self.entries.remove(&id);
        }
    }

    /// A job whose condition does not hold: its version is remembered.
    fn leave(&mut self, id: String, version: Option<u64>, at: i64) {
        match self.entries.get_mut(&id) {
            Some(entry) => entry.version = version,
            None if version.is_some() => {
                let (score, reached, meta) = (Vec::new(), 0, None);
                let gone = ModelEntry { shown: Shown::Removed, score, reached, updated: at, version, meta };
                self.entries.insert(id, gone);
            }
            None => {}
        }
    }

    /// # Arguments
    /// - `known`: the member's version on every board
    /// - `hidden`: whether it is hidden here once the job has applied
    fn change(
        &mut self,
        job: &Job,
        given: Option<&[i64]>,
        now: i64,
        (known, hidden): (Option<u64>, bool),
    ) -> Result<(), RejectCode> {
        let id = job.member.as_str().to_owned();
        let at = job.at.map_or(now, Timestamp::as_micros);
        let op = job.op.unwrap_or(match self.definition.policy {
            Policy::Set => Op::Set,
            Policy::Best => Op::Best,
            Policy::Incr => Op::Incr,
        });
        let before = self.entries.get(&id).cloned();
        let stored = before.as_ref().and_then(|entry| entry.version);
        if let (Some(new), Some(stored)) = (job.version, stored.max(known))
            && new <= stored
        {
            return Err(RejectCode::StaleVersion);
        }
        let version = job.version.or(stored);
        match op {
            Op::Set | Op::Best | Op::Incr | Op::When(_) => {
                let given = self.score_of_board(given)?;
                let held = before.as_ref().filter(|entry| entry.shown != Shown::Removed);
                let when = match op {
                    Op::When(when) => when,
                    _ => When { presence: Presence::Any, compare: Compare::Any, adds: op == Op::Incr },
                };
                let (presence, is_held) = (when.presence, held.is_some());
                if presence != Presence::Any && (presence == Presence::Existing) != is_held {
                    self.leave(id, version, at);
                    return Ok(());
                }
                let mut score = given.to_vec();
                if let (true, Some(held)) = (when.adds, held) {
                    for (sum, base) in score.iter_mut().zip(&held.score) {
                        *sum = sum.checked_add(*base).ok_or(RejectCode::Overflow)?;
                    }
                }
                let wanted = match when.compare {
                    Compare::Any => None,
                    Compare::Greater => Some(Ordering::Greater),
                    Compare::Less => Some(Ordering::Less),
                };
                if let (Some(wanted), Some(held)) = (wanted, held)
                    && score.cmp(&held.score) != wanted
                {
                    self.leave(id, version, at);
                    return Ok(());
                }
                for (key, value) in self.definition.keys.iter().zip(&score) {
                    if *value < key.min || *value > key.max {
                        return Err(RejectCode::OutOfRange);
                    }
                }
                let compared = held.map(|held| self.by_score(&score, &held.score));
                if op == Op::Best && matches!(compared, Some(Ordering::Equal | Ordering::Greater)) {
                    if let Some(entry) = self.entries.get_mut(&id) {
                        entry.version = version;
                    }
                    return Ok(());
                }
                let reached = match held {
                    Some(held) if compared == Some(Ordering::Equal) => held.reached,
                    _ => at,
                };
                // A late job does not make an entry older.
                let updated = held.map_or(at, |held| held.updated.max(at));
                let meta = match &job.meta {
                    Some(meta) if &*meta.0 == "{}" => None,
                    Some(meta) => Some(meta.0.to_string()),
                    None => before.as_ref().and_then(|entry| entry.meta.clone()),
                };
                let shown = if hidden { Shown::Hidden } else { Shown::Listed };
                self.entries.insert(id, ModelEntry { shown, score, reached, updated, version, meta });
            }
            Op::Take => {
                let given = self.score_of_board(given)?;
                let held = before.as_ref().filter(|entry| entry.shown != Shown::Removed);
                if held.is_some_and(|held| held.score == given) {
                    self.remove(id, version, at);
                } else {
                    self.leave(id, version, at);
                }
            }
            Op::Remove => self.remove(id, version, at),
            Op::Profile => unreachable!("a profile is on no board"),
            Op::Hide | Op::Show => {
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.version = version;
                    if entry.shown != Shown::Removed {
                        entry.shown = if hidden { Shown::Hidden } else { Shown::Listed };
                    }
                } else if version.is_some() {
                    let (score, reached, meta) = (Vec::new(), 0, None);
                    let never =
                        ModelEntry { shown: Shown::Removed, score, reached, updated: at, version, meta };
                    self.entries.insert(id, never);
                }
            }
        }
        Ok(())
    }
}

/// What is left of a member's profile: its version, and its text.
pub type ModelProfile = (Option<u64>, Option<String>);

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub boards: BTreeMap<BoardName, ModelBoard>,
    /// By member.
    pub profiles: BTreeMap<String, ModelProfile>,
    /// Who is hidden, on a board or on all of them: `None`; and the version that says so.
    pub bans: BTreeMap<(Option<BoardName>, String), Option<u64>>,
    /// By member: versions that hold on every board, and the messages that brought them.
    pub versions: BTreeMap<String, (u64, u64)>,
    /// The message that is being applied.
    pub sequence: u64,
    /// Known to the node, and on their way to the shard.
    pub defined: BTreeMap<BoardName, Arc<Definition>>,
    /// Unknown to the node, and not gone from the shard yet.
    pub being_dropped: BTreeSet<BoardName>,
    /// How often each board was cleared, or began anew beside its drop, as the node knows it.
    pub lives: BTreeMap<BoardName, u32>,
}

impl Model {
    /// Creates a board, changes what may change of it, or begins a later life of it. An earlier life's
    /// definition comes too late.
    pub fn create(&mut self, name: &BoardName, definition: &Arc<Definition>, life: u32) {
        let created = ModelBoard { definition: Arc::clone(definition), entries: BTreeMap::new(), life };
        match self.boards.get_mut(name) {
            Some(board) if board.life > life => {}
            Some(board) if board.life == life => board.definition = Arc::clone(definition),
            _ => drop(self.boards.insert(name.clone(), created)),
        }
    }

    /// Of what life the node knows a board.
    pub fn life(&self, name: &BoardName) -> u32 {
        self.lives.get(name).copied().unwrap_or_default()
    }

    fn is_hidden(&self, board: &BoardName, id: &str) -> bool {
        let has = |scope: Option<BoardName>| self.bans.contains_key(&(scope, id.to_owned()));
        has(None) || has(Some(board.clone()))
    }

    /// Whether a job can find a board without creating it.
    pub fn has_board(&self, name: &BoardName) -> bool {
        self.boards.contains_key(name)
            || (self.defined.contains_key(name) && !self.being_dropped.contains(name))
    }

    /// Remembers a version of a member on every board, and forgets the oldest if there are too many.
    fn remember(&mut self, id: &str, version: u64) {
        if !self.versions.contains_key(id) && self.versions.len() == MEMBER_VERSIONS_MAX {
            let oldest = self.versions.iter().min_by_key(|(id, (_, sequence))| (*sequence, (*id).clone()));
            let oldest = oldest.map(|(id, _)| id.clone()).expect("there are some");
            self.versions.remove(&oldest);
            self.profiles.retain(|id, (_, json)| *id != oldest || json.is_some());
        }
        self.versions.insert(id.to_owned(), (version, self.sequence));
    }

    /// Applies a job that hides a member or shows it, or says why not.
    fn apply_ban(&mut self, job: &Job, begins: bool, now: i64) -> Result<(), RejectCode> {
        let id = job.member.as_str().to_owned();
        let scope = match &job.targets {
            Targets::Boards(boards) => Some(boards[0].0.clone()),
            Targets::EveryBoard | Targets::Profile(_) => None,
        };
        let ban = (scope.clone(), id.clone());
        if let Some(name) = &scope
            && !self.has_board(name)
        {
            // A ban outlasts its board.
            let Some(known) = self.bans.get(&ban).copied() else { return Err(RejectCode::UnknownBoard) };
            if job.version.is_some() && job.version <= known {
                return Err(RejectCode::StaleVersion);
            }
            if begins {
                self.bans.insert(ban, job.version.or(known));
            } else {
                self.bans.remove(&ban);
            }
            return Ok(());
        }
        let known_ban = self.bans.get(&ban).copied();
        let count = |counts: &dyn Fn(&Option<BoardName>) -> bool| {
            self.bans.keys().filter(|(scope, _)| counts(scope)).count()
        };
        let there = count(&|known| *known == scope);
        let is_full = if scope.is_none() {
            there >= BANS_EVERYWHERE_MAX
        } else {
            let shared = count(&Option::is_some) >= BANS_SHARED_MAX;
            there >= BANS_OF_BOARD_MAX || (shared && there >= BANS_OF_BOARD_SURE)
        };
        if begins && known_ban.is_none() && is_full {
            return Err(RejectCode::TooLarge);
        }
        if job.version.is_some() && known_ban.is_some_and(|known| job.version <= known) {
            return Err(RejectCode::StaleVersion);
        }
        let known = self.versions.get(&id).map(|(version, _)| *version);
        let mut next = self.clone();
        if begins {
            next.bans.insert(ban, job.version.or(known_ban.flatten()));
        } else {
            next.bans.remove(&ban);
        }
        let Some(name) = scope else {
            // Such a board is over for clients, and the ban is what begins its next life.
            let is_over = |(name, board): &(&BoardName, &ModelBoard)| {
                board.life < self.life(name) && !self.being_dropped.contains(*name)
            };
            if job.version.is_some() && job.version <= known {
                return Err(RejectCode::StaleVersion);
            }
            for (name, board) in &self.boards {
                if !board.entries.contains_key(&id) {
                    continue;
                }
                if is_over(&(name, board)) {
                    let definition = self.defined.get(name).cloned().unwrap_or_default();
                    next.create(name, &definition, self.life(name));
                    continue;
                }
                let hidden = next.is_hidden(name, &id);
                let board = next.boards.get_mut(name).expect("it is there");
                if let Some(entry) = board.entries.get_mut(&id).filter(|entry| entry.shown != Shown::Removed)
                {
                    entry.shown = if hidden { Shown::Hidden } else { Shown::Listed };
                }
            }
            if let Some(version) = job.version {
                next.remember(&id, version);
            }
            *self = next;
            return Ok(());
        };
        let life = self.life(&name);
        let is_being_dropped = self.being_dropped.contains(&name);
        if self.boards.get(&name).is_none_or(|board| board.life < life && !is_being_dropped) {
            let definition = self.defined.get(&name).cloned().unwrap_or_default();
            next.boards.insert(name.clone(), ModelBoard { definition, entries: BTreeMap::new(), life });
        }
        let hidden = next.is_hidden(&name, &id);
        next.boards.get_mut(&name).expect("it was just seen to").change(job, None, now, (known, hidden))?;
        *self = next;
        Ok(())
    }

    /// Applies a job, or says why not; then nothing has changed.
    pub fn apply(&mut self, job: &Job, now: i64) -> Result<(), RejectCode> {
        if let Some(op) = job.op.filter(|op| op.is_ban()) {
            return self.apply_ban(job, op == Op::Hide, now);
        }
        let id = job.member.as_str();
        let known = self.versions.get(id).map(|(version, _)| *version);
        if job.targets == Targets::EveryBoard && job.version.is_some() && job.version <= known {
            return Err(RejectCode::StaleVersion);
        }
        let mut next = self.boards.clone();
        let mut begun = Vec::new();
        let targets = match &job.targets {
            Targets::Boards(boards) => boards.to_vec(),
            Targets::EveryBoard => {
                let on =
                    self.boards.iter().filter(|(_, board)| board.entries.contains_key(job.member.as_str()));
                on.map(|(name, _)| (name.clone(), None)).collect()
            }
            Targets::Profile(_) => Vec::new(),
        };
        for (name, given) in targets {
            let mut life = self.life(&name);
            let is_being_dropped = self.being_dropped.contains(&name);
            // A job comes to the life that the node knows, also where its definition is still on its way.
            // Where a board is dropped already, and not everywhere, the job begins its next life.
            if next.get(&name).is_none_or(|board| board.life < life && !is_being_dropped) {
                if is_being_dropped {
                    life += 1;
                    begun.push(name.clone());
                }
                let definition = self.defined.get(&name).cloned().unwrap_or_default();
                next.insert(name.clone(), ModelBoard { definition, entries: BTreeMap::new(), life });
            }
            let board = next.get_mut(&name).expect("it was just seen to");
            let hidden = self.is_hidden(&name, id);
            let stored = board.entries.get(id).and_then(|entry| entry.version);
            // What is newer stays, on that board alone.
            if job.targets == Targets::EveryBoard && job.version.is_some() && job.version <= stored {
                continue;
            }
            board.change(job, given.as_ref().map(crate::types::Score::keys), now, (known, hidden))?;
            if job.targets == Targets::EveryBoard && job.version.is_some() {
                // It is remembered for the member.
                board.entries.remove(id);
            }
        }
        let held = self.profiles.get(job.member.as_str()).cloned();
        let brought = match &job.targets {
            Targets::Profile(profile) => Some(Some(profile.0.to_string()).filter(|json| json != "{}")),
            // Who has no profile has nothing to lose, but a version is remembered.
            Targets::EveryBoard if held.is_none() && job.version.is_none() => None,
            Targets::EveryBoard => Some(None),
            Targets::Boards(_) => None,
        };
        if let Some(json) = brought {
            let known = held.and_then(|(version, _)| version);
            let is_stale = job.version.is_some() && job.version <= known;
            if is_stale && job.targets != Targets::EveryBoard {
                return Err(RejectCode::StaleVersion);
            }
            let (member, version) = (job.member.as_str().to_owned(), job.version.or(known));
            if is_stale {
                // It is newer, and stays.
            } else if json.is_none() && version.is_none() {
                self.profiles.remove(&member);
            } else {
                self.profiles.insert(member, (version, json));
            }
        }
        self.boards = next;
        if job.targets == Targets::EveryBoard
            && let Some(version) = job.version
        {
            self.remember(id, version);
        }
        for name in begun {
            self.begin_next_life(&name);
        }
        Ok(())
    }

    /// A board is there again whose drop has not ended.
    pub fn begin_next_life(&mut self, name: &BoardName) {
        self.being_dropped.remove(name);
        *self.lives.entry(name.clone()).or_default() += 1;
    }

    pub fn place(&self, name: &BoardName, id: &str) -> Option<(u64, u64, u64, u64)> {
        self.boards.get(name)?.place(id)
    }

    /// The same just before a job is applied. It finds nobody on a board whose next life it begins.
    pub fn place_before(&self, name: &BoardName, id: &str) -> Option<(u64, u64, u64, u64)> {
        let is_here =
            |board: &&ModelBoard| board.life >= self.life(name) || self.being_dropped.contains(name);
        self.boards.get(name).filter(is_here)?.place(id)
    }

    /// Members that any board knows, hidden and remembered ones included.
    pub fn members(&self) -> BTreeSet<&str> {
        self.boards.values().flat_map(|board| board.entries.keys()).map(String::as_str).collect()
    }
}

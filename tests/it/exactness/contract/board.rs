//! One board of the model: an entry per member and instance, a version per member.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::calendar::{Slice, Window};
use super::rules::{Entry, Rules};
use super::world::{Code, shard_of};

pub type Entries = BTreeMap<String, Entry>;

#[derive(Debug, Clone)]
pub struct Instance {
    /// Its window, and when it begins: its end may become known later. `None`: `all`.
    begins: Option<(Window, i64)>,
    pub entries: Entries,
}

#[derive(Debug, Clone)]
pub struct Board {
    pub rules: Rules,
    shards: u16,
    /// By name. Those that nothing has entered are not here.
    pub instances: BTreeMap<String, Instance>,
    versions: BTreeMap<String, u64>,
    /// Of each window and shard: its current instance, and who was listed in `all` when that began.
    began: BTreeMap<(Window, u16), Began>,
}

/// An instance, and who was listed when it began.
type Began = (String, Vec<(String, Entry)>);

/// What a job asks of a board.
pub struct Asked<'a> {
    pub member: &'a str,
    pub op: &'a str,
    pub score: Option<Vec<i64>>,
    pub version: Option<u64>,
    /// The member's version on every board.
    pub known: Option<u64>,
    /// Whether the member is hidden here once the job has applied.
    pub hidden: bool,
    pub meta: Option<&'a Value>,
    /// When it happened, and when its message came.
    pub time: i64,
    pub now: i64,
}

impl Board {
    pub fn new(rules: Rules, shards: u16) -> Self {
        let (instances, versions) = (BTreeMap::new(), BTreeMap::new());
        Self { rules, shards, instances, versions, began: BTreeMap::new() }
    }

    fn slice(&self, instance: &Instance) -> Option<Slice> {
        let (window, begin) = instance.begins?;
        Some(self.rules.slice_at(window, begin).expect("it was one"))
    }

    pub fn job(&mut self, asked: &Asked<'_>) -> Result<(), Code> {
        let takes_score = matches!(asked.op, "set" | "best" | "incr");
        if self.rules.counts {
            let adds = asked.op == "incr" && asked.score.iter().flatten().all(|key| *key >= 0);
            if asked.version.is_some() || !(adds || matches!(asked.op, "remove" | "hide" | "show")) {
                return Err("bad_score");
            }
        }
        let known = self.versions.get(asked.member).copied().max(asked.known);
        if asked.version.is_some() && asked.version <= known {
            return Err("stale_version");
        }
        // A ban is of all instances, closed ones included.
        if matches!(asked.op, "hide" | "show") {
            self.versions.extend(asked.version.map(|version| (asked.member.to_owned(), version)));
            self.hide_or_show(asked.member, asked.hidden);
            return Ok(());
        }
        let entered = if takes_score { self.of_time(asked) } else { self.open(asked.now) };
        if takes_score {
            if entered.is_empty() {
                return Err("closed_window");
            }
            for (name, _) in &entered {
                self.check_score(name, asked)?;
            }
        }
        self.versions.extend(asked.version.map(|version| (asked.member.to_owned(), version)));
        for (name, slice) in entered {
            if takes_score {
                let begins = slice.map(|slice| (slice.window, slice.begin));
                let none = || Instance { begins, entries: Entries::new() };
                let instance = self.instances.entry(name).or_insert_with(none);
                change(&self.rules, &mut instance.entries, asked, self.shards);
            } else if let Some(instance) = self.instances.get_mut(&name) {
                remove(&self.rules, &mut instance.entries, asked.member, self.shards);
            }
        }
        Ok(())
    }

    /// Hides the member's entries in all instances, or shows them.
    pub fn hide_or_show(&mut self, member: &str, hidden: bool) {
        for instance in self.instances.values_mut() {
            let entries = &mut instance.entries;
            let Some(mut entry) = entries.get(member).filter(|entry| entry.hidden != hidden).cloned() else {
                continue;
            };
            if self.rules.counts && hidden {
                remove(&self.rules, entries, member, self.shards);
            } else if self.rules.counts {
                entries.remove(member);
                if !make_room_for(&self.rules, entries, (member, &mut entry), self.shards) {
                    continue;
                }
            }
            entries.insert(member.to_owned(), Entry { hidden, ..entry });
        }
    }

    /// The open instances that a job's time falls in.
    fn of_time(&self, asked: &Asked<'_>) -> Vec<(String, Option<Slice>)> {
        let mut entered = Vec::new();
        if self.rules.has_all() {
            entered.push(("all".to_owned(), None));
        }
        for window in &self.rules.windows {
            let slice = self.rules.slice_at(*window, asked.time);
            let open = slice.filter(|slice| self.rules.is_open(slice, asked.now));
            entered.extend(open.map(|slice| (slice.name.clone(), Some(slice))));
        }
        entered
    }

    fn open(&self, now: i64) -> Vec<(String, Option<Slice>)> {
        let instances = self.instances.iter().map(|(name, instance)| (name.clone(), self.slice(instance)));
        let is_open =
            |slice: &Option<Slice>| slice.as_ref().is_none_or(|slice| self.rules.is_open(slice, now));
        instances.filter(|(_, slice)| is_open(slice)).collect()
    }

    fn check_score(&self, instance: &str, asked: &Asked<'_>) -> Result<(), Code> {
        let given = asked.score.as_deref().expect("a score");
        if given.len() != self.rules.keys.len() {
            return Err("bad_score");
        }
        let held = self.instances.get(instance).and_then(|instance| instance.entries.get(asked.member));
        let held = held.filter(|_| asked.op == "incr").map(|entry| entry.score.as_slice());
        let mut result = Vec::new();
        for (index, key) in given.iter().enumerate() {
            let before = held.and_then(|held| held.get(index)).copied().unwrap_or(0);
            result.push(before.checked_add(*key).ok_or("overflow")?);
        }
        let mut keys = self.rules.keys.iter().zip(&result);
        let all_within = keys.all(|(key, value)| (key.min..=key.max).contains(value));
        if all_within { Ok(()) } else { Err("out_of_range") }
    }

    pub fn version(&self, member: &str) -> Option<u64> {
        self.versions.get(member).copied()
    }

    /// A member leaves all instances, closed ones included.
    pub fn leave(&mut self, member: &str) {
        for instance in self.instances.values_mut() {
            remove(&self.rules, &mut instance.entries, member, self.shards);
        }
    }

    pub fn clear(&mut self) {
        self.instances.clear();
        self.versions.clear();
        self.began.values_mut().for_each(|(_, listed)| listed.clear());
    }

    /// Removes from an instance what is after a place, and gives how many.
    pub fn trim(&mut self, instance: &str, is_after: impl Fn(&Rules, &str, &Entry) -> bool) -> usize {
        let Some(instance) = self.instances.get_mut(instance) else { return 0 };
        let before = instance.entries.len();
        instance.entries.retain(|id, entry| !is_after(&self.rules, id, entry));
        before - instance.entries.len()
    }

    /// Time passes on a shard: instances begin, entries expire, instances are dropped.
    pub fn pass(&mut self, shard: u16, now: i64) {
        self.begin(shard, now);
        self.expire(shard, now);
        let is_dropped = |slice: Slice| self.rules.is_dropped(&slice, now);
        let instances = self.instances.iter().map(|(name, instance)| (name.clone(), self.slice(instance)));
        let dropped: Vec<String> = instances
            .filter(|(_, slice)| slice.clone().is_some_and(is_dropped))
            .map(|(name, _)| name)
            .collect();
        for name in dropped {
            let instance = self.instances.get_mut(&name).expect("it is there");
            instance.entries.retain(|id, _| shard_of(id, self.shards) != shard);
        }
    }

    /// Notes who is listed in `all` when an instance begins.
    fn begin(&mut self, shard: u16, now: i64) {
        if !self.rules.movement {
            return;
        }
        for window in self.rules.windows.clone() {
            let Some(slice) = self.rules.slice_at(window, now) else { continue };
            if self.began.get(&(window, shard)).is_none_or(|(known, _)| *known != slice.name) {
                let all = self.instances.get("all").into_iter().flat_map(|all| &all.entries);
                let of_shard = all.filter(|(id, entry)| !entry.hidden && shard_of(id, self.shards) == shard);
                let listed = of_shard.map(|(id, entry)| (id.clone(), entry.clone())).collect();
                self.began.insert((window, shard), (slice.name, listed));
            }
        }
    }

    /// Entries that were not updated for long leave, but not from an instance that closes before.
    pub fn expire(&mut self, shard: u16, now: i64) {
        let Some(ttl) = self.rules.entry_ttl else { return };
        let closes = |instance: &Instance| self.rules.closes(&self.slice(instance)?);
        let is_final = |instance: &Instance| {
            let end = self.slice(instance).and_then(|slice| slice.end);
            end.is_some_and(|end| Some(end) <= self.rules.final_until)
        };
        let closing: Vec<i64> = self
            .instances
            .values()
            .map(|instance| if is_final(instance) { i64::MIN } else { closes(instance).unwrap_or(i64::MAX) })
            .collect();
        for (instance, closes) in self.instances.values_mut().zip(closing) {
            instance.entries.retain(|id, entry| {
                let leaves = entry.updated + ttl;
                now < leaves || closes <= leaves || shard_of(id, self.shards) != shard
            });
        }
    }

    /// What readers see of an instance: its members, best first.
    pub fn shown(&self, instance: &str) -> Vec<(&str, &Entry)> {
        let mut shown = self.listed(instance);
        shown.truncate(self.rules.capacity.unwrap_or(usize::MAX));
        shown
    }

    /// The same, with those beyond the capacity.
    pub fn listed(&self, instance: &str) -> Vec<(&str, &Entry)> {
        let entries = self.instances.get(instance).into_iter().flat_map(|instance| &instance.entries);
        let listed = entries.filter(|(_, entry)| !entry.hidden);
        let mut listed: Vec<_> = listed.map(|(id, entry)| (id.as_str(), entry)).collect();
        listed.sort_by(|one, other| self.rules.compare(*one, *other));
        listed
    }

    /// Who was shown in `all` when the current instance of a window began, best first.
    pub fn began(&self, window: Window, now: i64) -> Vec<&str> {
        let current = self.rules.slice_at(window, now).expect("there is one");
        let mut listed: Vec<(&str, &Entry)> = Vec::new();
        for shard in 0..self.shards {
            let (name, of_shard) = self.began.get(&(window, shard)).expect("the shard knows the time");
            assert_eq!(*name, current.name, "the shard knows the time");
            listed.extend(of_shard.iter().map(|(id, entry)| (id.as_str(), entry)));
        }
        listed.sort_by(|one, other| self.rules.compare(*one, *other));
        listed.truncate(self.rules.capacity.unwrap_or(usize::MAX));
        listed.into_iter().map(|(id, _)| id).collect()
    }
}

/// A job with a score on one instance.
fn change(rules: &Rules, entries: &mut Entries, asked: &Asked<'_>, shards: u16) {
    let given = asked.score.as_deref().expect("a score");
    let (mut base, mut error) = (vec![0; given.len()], 0);
    if rules.counts && !entries.contains_key(asked.member) {
        error = make_room(rules, entries, asked.member, shards, asked.hidden);
        base = vec![error];
    }
    let held = entries.get(asked.member).cloned();
    if let Some(held) = &held {
        (base, error) = (held.score.clone(), held.error);
    }
    let score = match asked.op {
        "incr" => base.iter().zip(given).map(|(held, key)| held + key).collect(),
        "best" if held.as_ref().is_some_and(|held| rules.compare_scores(given, &held.score).is_ge()) => {
            // It is an update all the same.
            if let Some(entry) = entries.get_mut(asked.member).filter(|_| rules.entry_ttl.is_some()) {
                entry.updated = entry.updated.max(asked.time);
            }
            return;
        }
        _ => given.to_vec(),
    };
    // A late job does not make an entry older, and an equal score keeps its place among the ties.
    let updated = held.as_ref().map_or(asked.time, |held| held.updated.max(asked.time));
    let kept = held.as_ref().filter(|held| held.score == score).map(|held| held.reached);
    let hidden = asked.hidden;
    let meta = asked.meta.cloned().or_else(|| held.map(|held| held.meta)).unwrap_or_else(|| json!({}));
    let reached = kept.unwrap_or(asked.time);
    entries.insert(asked.member.to_owned(), Entry { score, reached, updated, hidden, meta, error });
}

/// The listed members of an instance on a member's shard, the worst one last.
fn on_shard_of(rules: &Rules, entries: &Entries, member: &str, shards: u16) -> Vec<(String, Entry)> {
    let shard = shard_of(member, shards);
    let of_shard = entries.iter().filter(|(id, entry)| !entry.hidden && shard_of(id, shards) == shard);
    let mut of_shard: Vec<_> = of_shard.map(|(id, entry)| (id.clone(), entry.clone())).collect();
    of_shard.sort_by(|one, other| rules.compare((&one.0, &one.1), (&other.0, &other.1)));
    of_shard
}

/// `SpaceSaving`: a new member takes the place of the worst one. Gives what it may have been counted before.
/// A hidden one takes nobody's place.
fn make_room(rules: &Rules, entries: &mut Entries, member: &str, shards: u16, hidden: bool) -> i64 {
    let of_shard = on_shard_of(rules, entries, member, shards);
    let is_full = Some(of_shard.len()) == rules.capacity;
    let had_others = of_shard.iter().any(|(_, entry)| entry.error > 0);
    match of_shard.last() {
        Some((worst, entry)) if is_full || had_others => {
            if is_full && !hidden {
                entries.remove(worst);
            }
            entry.score[0]
        }
        _ => 0,
    }
}

/// A hidden entry comes back: in the place of the worst one if there is no other room, or not at all; and
/// with as much as one that is not listed may have.
fn make_room_for(
    rules: &Rules,
    entries: &mut Entries,
    (member, entry): (&str, &mut Entry),
    shards: u16,
) -> bool {
    let of_shard = on_shard_of(rules, entries, member, shards);
    let is_full = Some(of_shard.len()) == rules.capacity;
    let had_others = of_shard.iter().any(|(_, entry)| entry.error > 0);
    let Some((worst, held)) = of_shard.last().filter(|_| is_full || had_others) else { return true };
    let is_better = rules.compare((member, entry), (worst, held)).is_lt();
    match (is_full, is_better) {
        // Whoever leaves is remembered by the error of somebody who stays.
        (true, true) => {
            if of_shard.iter().all(|(id, other)| id == worst || other.error == 0) {
                entry.error = entry.error.max(held.score[0]);
            }
            entries.remove(worst);
        }
        (true, false) => {
            if !had_others && entry.score[0] > 0 {
                entries.get_mut(worst).expect("it is there").error = entry.score[0];
            }
            return false;
        }
        (false, true) => {}
        (false, false) => {
            entry.error += held.score[0] - entry.score[0];
            entry.score.clone_from(&held.score);
        }
    }
    true
}

fn remove(rules: &Rules, entries: &mut Entries, member: &str, shards: u16) {
    let Some(gone) = entries.remove(member).filter(|gone| gone.error > 0 && !gone.hidden) else { return };
    let of_shard = on_shard_of(rules, entries, member, shards);
    if of_shard.iter().all(|(_, entry)| entry.error == 0)
        && let Some((worst, _)) = of_shard.last()
    {
        entries.get_mut(worst).expect("it is there").error = gone.error;
    }
}

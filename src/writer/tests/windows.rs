//! Windows: random jobs, times, settings, batches, checkpoints and crashes against a plain model, which finds
//! the instance of a time by the calendar of civil dates and shares no code with what it judges.

mod movement;

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::oneshot;

use crate::board::{Definition, Policy};
use crate::job::{Job, MAX_AHEAD_MICROS, Op, RejectCode, Targets};
use crate::state::{EntryState, Shard};
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::types::Timestamp;
use crate::window::{MovementPart, Seasons, Window};
use crate::writer::tests::build::{bare, job, leave_all};
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, JobOutcome, Message, Payload};

const MINUTE: i64 = 60 * 1_000_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

fn micros(text: &str) -> i64 {
    Timestamp::parse(text).expect("a time").as_micros()
}

/// The name of the slice that a time falls in, its begin, and its end.
fn slice(definition: &Definition, window: Window, time: i64) -> Option<(String, i64, i64)> {
    let offset = i64::from(definition.utc_offset_minutes) * MINUTE;
    let local = jiff::Timestamp::from_microsecond(time + offset).expect("in range");
    let local = local.to_zoned_datetime(jiff::tz::TimeZone::UTC).datetime();
    let utc = |civil: jiff::civil::DateTime| {
        civil.to_zoned_datetime(jiff::tz::TimeZone::UTC).expect("a time").timestamp().as_microsecond()
            - offset
    };
    let midnight = local.date().to_datetime(jiff::civil::Time::midnight());
    let (name, begin, end) = match window {
        Window::All => unreachable!("it has no slices"),
        Window::Hour => {
            let begin = local.date().at(local.hour(), 0, 0, 0);
            (local.strftime("%Y-%m-%dT%H").to_string(), begin, begin + jiff::Span::new().hours(1))
        }
        Window::Day => {
            (local.strftime("%Y-%m-%d").to_string(), midnight, midnight + jiff::Span::new().days(1))
        }
        Window::Week => {
            let back = i64::from(local.weekday().to_monday_zero_offset());
            let begin = midnight - jiff::Span::new().days(back);
            (local.strftime("%G-W%V").to_string(), begin, begin + jiff::Span::new().days(7))
        }
        Window::Month => {
            let begin = midnight.first_of_month();
            (local.strftime("%Y-%m").to_string(), begin, begin + jiff::Span::new().months(1))
        }
        Window::Season => {
            return match definition.seasons.as_ref()? {
                Seasons::Manual(_) => None,
                Seasons::Regular(series) => {
                    let (first, every) = (series[0].begin.as_micros(), series[0].every);
                    let number = (time - first).div_euclid(every);
                    let begin = first + number * every;
                    (number >= 0).then(|| (format!("s{}", number + 1), begin, begin + every))
                }
            };
        }
    };
    Some((name, utc(begin), utc(end)))
}

/// When a slice is dropped: so many slices later, when that one closes.
fn dropped_at(definition: &Definition, window: Window, mut end: i64) -> i64 {
    for _ in 0..definition.keep {
        end = slice(definition, window, end).expect("one follows the other").2;
    }
    end + definition.grace_micros
}

#[derive(Debug, Clone, PartialEq)]
struct ModelEntry {
    score: i64,
    updated: i64,
    /// When the score was reached, which orders ties.
    reached: i64,
    hidden: bool,
}

#[derive(Default)]
struct ModelInstance {
    /// `None`: `all`.
    slice: Option<(Window, i64, i64)>,
    entries: BTreeMap<String, ModelEntry>,
}

#[derive(Default)]
struct ModelBoard {
    definition: Definition,
    instances: BTreeMap<String, ModelInstance>,
    versions: BTreeMap<String, u64>,
    /// How `all` was listed when the current slices began, by window.
    began: movement::Began,
}

/// The effective time and a leap that is not believed, after a message.
fn time_after((time, leap): (i64, Option<i64>), message: i64) -> (i64, Option<i64>) {
    let is_leap = |since: i64| since > 0 && message - since > HOUR;
    match leap {
        _ if !is_leap(time) => (if message < time { time + 1 } else { message }, None),
        None => (time, Some(message)),
        Some(first) if message - first < MINUTE => (time, Some(first.min(message))),
        Some(first) if is_leap(first) => (first, Some(message)),
        Some(_) => (message, None),
    }
}

type Entries = BTreeMap<String, BTreeMap<String, ModelEntry>>;

impl ModelBoard {
    /// # Arguments
    /// - `known_everywhere`: the member's version on every board
    /// - `is_hidden`: whether it is hidden here once the job has applied
    fn job(
        &mut self,
        job: &Job,
        score: Option<i64>,
        now: i64,
        (known_everywhere, is_hidden): (Option<u64>, bool),
    ) -> Result<(), RejectCode> {
        let time = job.at.map_or(now, Timestamp::as_micros);
        let id = job.member.as_str().to_owned();
        let known = self.versions.get(&id).copied().max(known_everywhere);
        if job.version.is_some_and(|version| known.is_some_and(|known| version <= known)) {
            return Err(RejectCode::StaleVersion);
        }
        let policy = match self.definition.policy {
            Policy::Set => Op::Set,
            Policy::Best => Op::Best,
            Policy::Incr => Op::Incr,
        };
        let op = job.op.unwrap_or(policy);
        let grace = self.definition.grace_micros;
        let mut changed = Vec::new();
        if op.takes_score() {
            for window in self.definition.windows.clone() {
                if window == Window::All {
                    changed.push(("all".to_owned(), None));
                } else if let Some((name, begin, end)) = slice(&self.definition, window, time)
                    && begin <= now
                    && now < end.saturating_add(grace)
                {
                    changed.push((name, Some((window, begin, end))));
                }
            }
            if changed.is_empty() {
                return Err(RejectCode::ClosedWindow);
            }
        } else if op.is_ban() {
            changed.extend(self.instances.iter().map(|(name, instance)| (name.clone(), instance.slice)));
        } else {
            let is_open = |instance: &ModelInstance| {
                instance.slice.is_none_or(|(_, begin, end)| begin <= now && now < end.saturating_add(grace))
            };
            let open = self.instances.iter().filter(|(_, instance)| is_open(instance));
            changed.extend(open.map(|(name, instance)| (name.clone(), instance.slice)));
        }
        // All or nothing.
        if op == Op::Incr {
            let sum = |name: &String| {
                let held = self.instances.get(name).and_then(|instance| instance.entries.get(&id));
                held.map_or(0, |entry| entry.score).checked_add(score.expect("a score"))
            };
            if changed.iter().any(|(name, _)| sum(name).is_none()) {
                return Err(RejectCode::Overflow);
            }
        }
        self.versions.extend(job.version.map(|version| (id.clone(), version)));
        for (name, slice) in changed {
            let instance = self.instances.entry(name).or_default();
            instance.slice = slice;
            let held = instance.entries.get(&id).cloned();
            match (op, held) {
                (Op::Remove, _) => drop(instance.entries.remove(&id)),
                (Op::Hide | Op::Show, Some(held)) => {
                    instance.entries.insert(id.clone(), ModelEntry { hidden: is_hidden, ..held });
                }
                (Op::Hide | Op::Show, None) => {}
                (_, held) => {
                    let given = score.expect("a score");
                    let hidden = is_hidden;
                    let score = match (op, &held) {
                        (Op::Incr, Some(held)) => held.score + given,
                        (Op::Best, Some(held)) if held.score >= given => {
                            // It is an update all the same.
                            if self.definition.entry_ttl_micros.is_some() {
                                let updated = held.updated.max(time);
                                instance.entries.insert(id.clone(), ModelEntry { updated, ..held.clone() });
                            }
                            continue;
                        }
                        _ => given,
                    };
                    // A late job does not make an entry older.
                    let updated = held.as_ref().map_or(time, |held| held.updated.max(time));
                    // An equal score keeps its place among the ties.
                    let kept = held.filter(|held| held.score == score).map(|held| held.reached);
                    let reached = kept.unwrap_or(time);
                    instance.entries.insert(id.clone(), ModelEntry { score, updated, reached, hidden });
                }
            }
        }
        Ok(())
    }
}

struct Run {
    planned: PlannedShard,
    /// Jobs that the model rejects.
    rejected: usize,
    model: BTreeMap<String, ModelBoard>,
    /// Who is hidden, on a board or on all of them: an empty name.
    bans: BTreeMap<(String, String), Option<u64>>,
    /// Versions of members that hold on every board.
    versions: BTreeMap<String, u64>,
    /// The time that the model was told last.
    told: Option<i64>,
}

#[derive(Clone)]
enum Said {
    Jobs(Vec<Job>),
    Ask(Vec<Job>),
    Define(&'static str, Definition),
    Drop(&'static str),
    Tick,
}

impl Run {
    fn new() -> Self {
        Self {
            planned: PlannedShard::new(),
            rejected: 0,
            model: BTreeMap::new(),
            bans: BTreeMap::new(),
            versions: BTreeMap::new(),
            told: None,
        }
    }

    fn tell_model(&mut self, said: &Said, now: i64) -> Vec<Result<(), RejectCode>> {
        let mut told = Vec::new();
        if matches!(said, Said::Tick) && self.told == Some(now) {
            return told;
        }
        self.told = Some(now);
        self.model.values_mut().for_each(|board| board.begin_slices(now));
        self.expire(now);
        self.drop_instances(now);
        match said {
            Said::Jobs(jobs) | Said::Ask(jobs) => {
                for job in jobs {
                    // A job takes an entry as gone that an earlier one of its message brought too late.
                    self.expire(now);
                    let outcome = self.tell_job(job, now);
                    self.rejected += usize::from(outcome.is_err());
                    told.push(outcome);
                }
            }
            Said::Define(name, definition) => {
                self.model.entry((*name).to_owned()).or_default().definition = definition.clone();
            }
            Said::Drop(name) => drop(self.model.remove(*name)),
            Said::Tick => {}
        }
        self.expire(now);
        self.drop_instances(now);
        told
    }

    fn drop_instances(&mut self, now: i64) {
        for ModelBoard { definition, instances, .. } in self.model.values_mut() {
            instances.retain(|_, instance| {
                instance.slice.is_none_or(|(window, _, end)| now < dropped_at(definition, window, end))
            });
        }
    }

    /// Entries that were not updated for long leave, but not from an instance that closes before.
    fn expire(&mut self, now: i64) {
        for ModelBoard { definition, instances, .. } in self.model.values_mut() {
            let Some(ttl) = definition.entry_ttl_micros else { continue };
            for instance in instances.values_mut() {
                let closes = instance.slice.map_or(i64::MAX, |(_, _, end)| end + definition.grace_micros);
                instance
                    .entries
                    .retain(|_, entry| now < entry.updated + ttl || closes <= entry.updated + ttl);
            }
        }
    }

    fn tell_job(&mut self, job: &Job, now: i64) -> Result<(), RejectCode> {
        if job.at.is_some_and(|at| at.as_micros() - now > MAX_AHEAD_MICROS) {
            return Err(RejectCode::FutureTime);
        }
        let id = job.member.as_str().to_owned();
        let known = self.versions.get(&id).copied();
        let ban = job.op.filter(|op| op.is_ban());
        let mut bans = self.bans.clone();
        if let Some(op) = ban {
            let of = match &job.targets {
                Targets::Boards(boards) => boards[0].0.to_string(),
                Targets::EveryBoard | Targets::Profile(_) => String::new(),
            };
            let has_board = of.is_empty() || self.model.contains_key(&of);
            let ban = (of, id.clone());
            let known = bans.get(&ban).copied();
            if !has_board && known.is_none() {
                return Err(RejectCode::UnknownBoard);
            }
            if job.version.is_some() && known.is_some_and(|known| job.version <= known) {
                return Err(RejectCode::StaleVersion);
            }
            if op == Op::Hide {
                bans.insert(ban, job.version.or(known.flatten()));
            } else {
                bans.remove(&ban);
            }
            if !has_board {
                self.bans = bans;
                return Ok(());
            }
        }
        let hidden_on = |name: &str| {
            let has = |of: &str| bans.contains_key(&(of.to_owned(), id.clone()));
            has("") || has(name)
        };
        match &job.targets {
            Targets::EveryBoard => {
                if job.version.is_some() && job.version <= known {
                    return Err(RejectCode::StaleVersion);
                }
                self.versions.extend(job.version.map(|version| (id.clone(), version)));
                if ban.is_some() {
                    for (name, board) in &mut self.model {
                        for instance in board.instances.values_mut() {
                            if let Some(entry) = instance.entries.get_mut(&id) {
                                entry.hidden = hidden_on(name);
                            }
                        }
                    }
                    self.bans = bans;
                    return Ok(());
                }
                for board in self.model.values_mut() {
                    if job.version.is_some() && job.version <= board.versions.get(&id).copied() {
                        continue;
                    }
                    if job.version.is_some() {
                        board.versions.remove(&id);
                    }
                    board.instances.values_mut().for_each(|instance| {
                        instance.entries.remove(job.member.as_str());
                    });
                }
                Ok(())
            }
            Targets::Profile(_) => panic!("no job here has a profile"),
            Targets::Boards(boards) => {
                let [(name, score)] = boards.as_slice() else { panic!("jobs here name one board") };
                let board = self.model.entry(name.to_string()).or_default();
                let hidden = hidden_on(name.as_str());
                board.job(job, score.as_ref().map(|score| score.keys()[0]), now, (known, hidden))?;
                self.bans = bans;
                Ok(())
            }
        }
    }

    /// Plans, commits and applies a batch of messages, each with its time.
    fn batch(&mut self, said: Vec<(i64, Said)>) {
        let mut messages = Vec::new();
        let mut asked = Vec::new();
        let known = self.planned.time;
        let (mut effective, mut leap) = (known.effective.as_micros(), known.leap.map(Timestamp::as_micros));
        for (time, said) in said {
            (effective, leap) = time_after((effective, leap), time);
            let answer = matches!(said, Said::Ask(_)).then(oneshot::channel);
            let payload = match &said {
                Said::Jobs(jobs) | Said::Ask(jobs) => {
                    Payload::Jobs(jobs.iter().cloned().map(Ok::<_, BadJob>).collect())
                }
                Said::Define(name, definition) => self.planned.define(name, definition),
                Said::Drop(name) => self.planned.drop_board(name),
                Said::Tick => Payload::Tick,
            };
            let expected = self.tell_model(&said, effective);
            let (answer, answered) = answer.unzip();
            asked.extend(answered.map(|answered| (answered, expected)));
            let message = self.planned.message(at(time), payload);
            messages.push(Message { answer: answer.map(Into::into), ..message });
        }
        let mut rest = messages;
        while !rest.is_empty() {
            while self.planned.shard.read(Purpose::Read).has_expiry_to_note() {
                self.planned.shard.write(Purpose::Apply).note_expiring(2);
            }
            let ends = rest.iter().position(|message| message.payload.has_entry_ttl());
            let later = ends.map_or_else(Vec::new, |end| rest.split_off(end + 1));
            self.planned.run(rest);
            rest = later;
        }
        for (mut answered, expected) in asked {
            let outcome = answered.try_recv().expect("it was answered").expect("it was committed");
            let told = outcome.jobs.into_iter().map(|job| match job {
                JobOutcome::Rejected(reject) => Err(reject.code),
                JobOutcome::Applied(_)
                | JobOutcome::Changed(_)
                | JobOutcome::Repeated(..)
                | JobOutcome::WithProfile { .. }
                | JobOutcome::Parked(_) => Ok(()),
            });
            assert_eq!(told.collect::<Vec<_>>(), expected);
        }
        assert_eq!(self.planned.rejects.len(), self.rejected);
        assert_eq!(self.planned.shard.read(Purpose::Read).time, at(effective));
    }

    fn check(&self, context: &str) {
        let mut expected = Entries::new();
        for (name, board) in &self.model {
            for (instance, held) in &board.instances {
                let key = if instance == "all" { name.clone() } else { format!("{name}#{instance}") };
                if !held.entries.is_empty() {
                    expected.insert(key, held.entries.clone());
                }
            }
        }
        assert_eq!(held(&self.planned.shard.read(Purpose::Read)), expected, "{context}");
        let due: BTreeSet<_> = self
            .planned
            .shard
            .read(Purpose::Read)
            .drops_due_after(None)
            .map(|(_, name)| name.clone())
            .collect();
        let shard = self.planned.shard.read(Purpose::Read);
        for (name, _) in shard.boards_and_instances().filter(|(name, _)| name.is_instance()) {
            let is_last_season = name.split().1.is_some_and(|name| name.starts_with('s'));
            assert!(due.contains(name) || is_last_season, "{name} is dropped some day");
        }
        assert!(due.iter().all(|name| shard.board(name.as_str()).is_some()));
        drop(shard);
        self.check_movement(context);
    }
}

/// What a shard holds, by board or instance.
fn held(shard: &Shard) -> Entries {
    let mut held = Entries::new();
    let is_kept = |name| MovementPart::of_name_on_shards(name).is_some();
    for (name, board) in shard.boards_and_instances().filter(|(name, _)| !is_kept(name)) {
        let tree = shard.tree(board.all).expect("it has a tree");
        let mut entries = BTreeMap::new();
        for handle in tree.handles() {
            let entry = tree.entry(handle).expect("it has an entry");
            let (words, hidden) = match entry.state {
                EntryState::Listed(words) => (words, false),
                EntryState::Hidden(words) => (words, true),
                EntryState::Removed => continue,
            };
            let score = board.definition.score_of(words.as_slice()).keys()[0];
            let id = String::from_utf8(shard.members.id(handle).to_vec()).expect("UTF-8");
            let reached = board.definition.reached_at(words.as_slice()).expect("it orders ties").as_micros();
            let updated = entry.updated_at.as_micros();
            entries.insert(id, ModelEntry { score, updated, reached, hidden });
        }
        if !entries.is_empty() {
            held.insert(name.as_str().to_owned(), entries);
        }
    }
    held
}

fn windowed(windows: &[Window]) -> Definition {
    Definition { windows: windows.to_vec(), ..Definition::default() }
}

fn definitions(random: &mut StdRng) -> [(&'static str, Definition); 3] {
    let all = windowed(&[Window::All, Window::Hour, Window::Day, Window::Week, Window::Month]);
    let start = at(micros("2026-12-20T00:00:00Z") + random.random_range(0..DAY));
    let has_all = random.random_range(0..2) == 0;
    [
        (
            "every",
            Definition {
                utc_offset_minutes: [0, 330, -210, 540][random.random_range(0..4)],
                keep: random.random_range(0..4),
                grace_micros: [0, 5 * MINUTE, 30 * HOUR][random.random_range(0..3)],
                policy: [Policy::Set, Policy::Best, Policy::Incr][random.random_range(0..3)],
                entry_ttl_micros: [None, Some(HOUR), Some(3 * DAY)][random.random_range(0..3)],
                movement: random.random_range(0..4) > 0,
                ..all
            },
        ),
        (
            "hours",
            Definition {
                keep: random.random_range(0..2),
                entry_ttl_micros: Some(10 * MINUTE),
                ..windowed(&[Window::Hour])
            },
        ),
        (
            "seasons",
            Definition {
                policy: Policy::Incr,
                keep: 1,
                seasons: Some(Seasons::regular(start, 3 * HOUR)),
                movement: has_all,
                ..windowed(if has_all {
                    &[Window::Season, Window::All, Window::Day]
                } else {
                    &[Window::Season, Window::Day]
                })
            },
        ),
    ]
}

fn random_job(random: &mut StdRng, now: i64) -> Job {
    let id = format!("m{}", random.random_range(0..6));
    let name = ["every", "hours", "seasons", "plain"][random.random_range(0..4)];
    let mut said = match random.random_range(0..14) {
        0 => bare(Op::Remove, &id, &[name]),
        1 => bare(Op::Hide, &id, &[name]),
        2 => bare(Op::Show, &id, &[name]),
        3 => match random.random_range(0..4) {
            0 => leave_all(&id),
            1 => leave_all(&id).op(Op::Hide),
            _ => leave_all(&id).op(Op::Show),
        },
        4 => job(&id, &[(name, &[random.random_range(-5..5)])]).op(Op::Best),
        _ => job(&id, &[(name, &[random.random_range(-5..5)])]),
    };
    if random.random_range(0..4) == 0 {
        said.version = Some(random.random_range(0..20));
    }
    if random.random_range(0..3) == 0 {
        let back = [0, 1, MINUTE, 6 * MINUTE, HOUR, DAY, 8 * DAY, -4 * MINUTE, -6 * MINUTE];
        said.at = Some(at(now - back[random.random_range(0..back.len())]));
    }
    said
}

#[test]
fn jobs_in_windows_equal_a_model_whatever_the_batches_and_after_crashes() {
    for seed in 0..16 {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut run, mut other) = (Run::new(), Run::new());
        let mut now = micros("2026-12-27T20:00:00Z");
        let defined = definitions(&mut random);
        for run in [&mut run, &mut other] {
            let defined = defined.iter().map(|(name, what)| (now, Said::Define(name, what.clone())));
            run.batch(defined.collect());
        }
        for _ in 0..40 {
            let mut batch = Vec::new();
            for _ in 0..random.random_range(1..8) {
                let step = [0, 1, MINUTE, 20 * MINUTE, HOUR, 13 * HOUR, -MINUTE][random.random_range(0..7)];
                now += step;
                if step > HOUR {
                    // The next message is believed: a minute before, one has said so.
                    batch.push((now - MINUTE, Said::Tick));
                }
                // A message does a bounded part of what is due. A definition must not come in between.
                batch.extend((0..40).map(|_| (now, Said::Tick)));
                let jobs: Vec<Job> =
                    (0..random.random_range(1..5)).map(|_| random_job(&mut random, now)).collect();
                let said = match random.random_range(0..20) {
                    0 => Said::Tick,
                    1..=6 => Said::Ask(jobs),
                    7 => {
                        let (name, definition) = &defined[random.random_range(0..2)];
                        let keep = random.random_range(0..4);
                        let ttls = [definition.entry_ttl_micros, None, Some(30 * MINUTE), Some(5 * DAY)];
                        let entry_ttl_micros = ttls[random.random_range(0..4)];
                        Said::Define(name, Definition { keep, entry_ttl_micros, ..definition.clone() })
                    }
                    8 if random.random_range(0..3) == 0 => {
                        batch.push((now, Said::Drop(defined[0].0)));
                        Said::Define(defined[0].0, defined[0].1.clone())
                    }
                    _ => Said::Jobs(jobs),
                };
                batch.push((now, said));
                // What has expired at once is gone before another instance begins.
                batch.extend((0..40).map(|_| (now, Said::Tick)));
            }
            // A message drops a bounded number of instances: these bring the rest.
            batch.extend((0..200).map(|_| (now, Said::Tick)));
            // A replica that cuts the log otherwise, and is not restarted.
            let mut rest = batch.clone();
            while !rest.is_empty() {
                let later = rest.split_off(rest.len().min(random.random_range(1..30)));
                other.batch(rest);
                rest = later;
            }
            run.batch(batch);
            assert_eq!(run.planned.hash, other.planned.hash, "seed {seed}");
            run.check(&format!("seed {seed}"));
            match random.random_range(0..6) {
                0 => run.planned.checkpoint(),
                1 => run.planned.restart(TreesFrom::Pages),
                _ => {}
            }
        }
        run.check(&format!("seed {seed}, at the end"));
        assert_eq!(run.planned.findings(), Vec::<String>::new());
    }
}

//! Boards of the kind `top_k`: random streams, removals, windows, batches, checkpoints and crashes against
//! `SpaceSaving` over a map that is searched from end to end, and against exact counts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::board::{Definition, Kind, Policy, Ties};
use crate::job::{Job, Op, RejectCode, Targets};
use crate::state::{Shard, TrimPoint, TrimSide};
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::types::{BoardName, Timestamp, count};
use crate::window::Window;
use crate::writer::tests::build::{bare, board, job, leave_all, member, score};
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, Payload};

const MINUTE: i64 = 60 * 1_000_000;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

fn counting(capacity: u64, windows: &[Window], ties: Ties) -> Definition {
    Definition {
        kind: Kind::TopK,
        policy: Policy::Incr,
        capacity: Some(capacity),
        windows: windows.to_vec(),
        ties,
        keep: 1_000,
        ..Definition::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Counted {
    score: i64,
    error: i64,
    reached: i64,
}

/// `SpaceSaving`, and beside it what each member was truly counted since it was removed, or since the
/// instance was empty.
#[derive(Debug, Clone, Default)]
struct Instance {
    entries: BTreeMap<String, Counted>,
    hidden: BTreeMap<String, Counted>,
    truth: BTreeMap<String, i64>,
}

impl Instance {
    /// The last entry, by words and then by the bytes of the id.
    fn worst(&self, ties: Ties, without: &str) -> Option<String> {
        let place = |(id, entry): (&String, &Counted)| {
            let tie = if ties == Ties::Last { -entry.reached } else { entry.reached };
            (Reverse(entry.score), tie, entry.error, id.clone())
        };
        self.entries.iter().filter(|(id, _)| **id != without).map(place).max().map(|place| place.3)
    }

    fn count(&mut self, definition: &Definition, id: &str, by: i64, time: i64, is_hidden: bool) {
        *self.truth.entry(id.to_owned()).or_default() += by;
        if let Some(entry) = self.entries.get_mut(id).or(self.hidden.get_mut(id)) {
            entry.score = entry.score.saturating_add(by);
            entry.reached = if by > 0 { time } else { entry.reached };
            return;
        }
        let worst = self.worst(definition.ties, "");
        let is_full = count(self.entries.len()) == definition.capacity.expect("it has one");
        let was_full = self.entries.values().any(|entry| entry.error > 0);
        let error = match &worst {
            Some(worst) if is_full || was_full => self.entries[worst].score,
            _ => 0,
        };
        let entry = Counted { score: error.saturating_add(by), error, reached: time };
        if is_hidden {
            self.hidden.insert(id.to_owned(), entry);
            return;
        }
        if is_full {
            self.entries.remove(&worst.expect("it is full"));
        }
        self.entries.insert(id.to_owned(), entry);
    }

    fn hide(&mut self, ties: Ties, id: &str) {
        let Some(entry) = self.entries.get(id).cloned() else { return };
        let truth = self.truth.get(id).copied();
        self.remove(ties, id);
        self.truth.extend(truth.map(|truth| (id.to_owned(), truth)));
        self.hidden.insert(id.to_owned(), entry);
    }

    /// A hidden entry comes back: with the least that those have which are not there may have, or not at all.
    fn show(&mut self, definition: &Definition, id: &str) {
        let Some(mut entry) = self.hidden.remove(id) else { return };
        let is_full = count(self.entries.len()) == definition.capacity.expect("it has one");
        let was_full = self.entries.values().any(|entry| entry.error > 0);
        if let Some(worst) = self.worst(definition.ties, "").filter(|_| is_full || was_full) {
            let (held, is_last) = (&self.entries[&worst], definition.ties == Ties::Last);
            let place = |id: &str, entry: &Counted| {
                let tie = if is_last { -entry.reached } else { entry.reached };
                (Reverse(entry.score), tie, entry.error, id.to_owned())
            };
            let is_better = place(id, &entry) < place(&worst, held);
            let others = self.entries.iter().any(|(other, entry)| *other != worst && entry.error > 0);
            match (is_full, is_better) {
                (true, true) => {
                    let replaced = self.entries.remove(&worst).expect("it is there");
                    entry.error = if others { entry.error } else { entry.error.max(replaced.score) };
                }
                (true, false) => {
                    if !was_full && entry.score > 0 {
                        self.entries.get_mut(&worst).expect("it is there").error = entry.score;
                    }
                    return;
                }
                (false, true) => {}
                (false, false) => {
                    entry.error += held.score - entry.score;
                    entry.score = held.score;
                }
            }
        }
        self.entries.insert(id.to_owned(), entry);
    }

    fn remove(&mut self, ties: Ties, id: &str) {
        if self.hidden.remove(id).is_some() {
            self.truth.remove(id);
        }
        let Some(gone) = self.entries.get(id).cloned() else { return };
        let others = self.entries.iter().any(|(other, entry)| other != id && entry.error > 0);
        if gone.error > 0
            && !others
            && let Some(worst) = self.worst(ties, id)
        {
            self.entries.get_mut(&worst).expect("it is there").error = gone.error;
        }
        self.entries.remove(id);
        self.truth.remove(id);
        if self.entries.is_empty() {
            self.truth.retain(|id, _| self.hidden.contains_key(id));
        }
    }

    /// What is promised of errors, whatever was removed.
    fn check(&self, context: &str) {
        let least = self.entries.values().map(|entry| entry.score).min().unwrap_or_default();
        for (id, truth) in &self.truth {
            match self.entries.get(id).or(self.hidden.get(id)) {
                Some(Counted { score, error, .. }) => {
                    assert!(score - error <= *truth && truth <= score, "{context}: {id} {truth} {self:?}");
                }
                None => assert!(*truth <= least, "{context}: {id} {truth} {self:?}"),
            }
        }
    }
}

#[derive(Clone)]
enum Said {
    Jobs(Vec<Job>),
    Define(&'static str, Definition),
    Drop(&'static str),
    /// Scores worse than this go, of these members in this order.
    Trim(&'static str, i64, Vec<String>),
}

struct Run {
    planned: PlannedShard,
    definitions: BTreeMap<String, Definition>,
    /// By name on the shard.
    model: BTreeMap<String, Instance>,
    expected_rejects: Vec<RejectCode>,
    /// Who is hidden, on a board or on all of them: an empty name.
    bans: BTreeSet<(String, String)>,
}

impl Run {
    fn new() -> Self {
        let planned = PlannedShard::new();
        let (definitions, model) = (BTreeMap::new(), BTreeMap::new());
        Self { planned, definitions, model, expected_rejects: Vec::new(), bans: BTreeSet::new() }
    }

    fn tell_model(&mut self, said: &Said, now: i64) {
        match said {
            Said::Jobs(jobs) => jobs.iter().for_each(|job| self.tell_job(job, now)),
            Said::Define(name, definition) => {
                self.definitions.insert((*name).to_owned(), definition.clone());
            }
            Said::Drop(name) => {
                self.definitions.remove(*name);
                self.model.retain(|known, _| known.split('#').next() != Some(*name));
            }
            Said::Trim(name, least, members) => {
                let ties = self.definitions[*name].ties;
                let Some(instance) = self.model.get_mut(*name) else { return };
                for id in members {
                    let held = instance.entries.get(id).or(instance.hidden.get(id));
                    if held.is_some_and(|entry| entry.score < *least) {
                        instance.remove(ties, id);
                    }
                }
            }
        }
    }

    fn tell_job(&mut self, job: &Job, now: i64) {
        let id = job.member.as_str();
        if let Some(op) = job.op.filter(|op| op.is_ban()) {
            let of = match &job.targets {
                Targets::Boards(boards) => boards[0].0.to_string(),
                Targets::EveryBoard | Targets::Profile(_) => String::new(),
            };
            if op == Op::Hide {
                self.bans.insert((of, id.to_owned()));
            } else {
                self.bans.remove(&(of, id.to_owned()));
            }
            for (key, instance) in &mut self.model {
                let name = key.split('#').next().expect("a name");
                let definition = &self.definitions[name];
                let has = |of: &str| self.bans.contains(&(of.to_owned(), id.to_owned()));
                if has("") || has(name) {
                    instance.hide(definition.ties, id);
                } else {
                    instance.show(definition, id);
                }
            }
            return;
        }
        let Targets::Boards(boards) = &job.targets else {
            for (name, instance) in &mut self.model {
                instance.remove(self.definitions[name.split('#').next().expect("a name")].ties, id);
            }
            return;
        };
        let refuses = |op: Op| !matches!(op, Op::Incr | Op::Remove);
        let by = |score: &Option<crate::types::Score>| score.as_ref().map_or(0, |score| score.keys()[0]);
        if boards.iter().any(|(name, _)| self.definitions[name.as_str()].kind == Kind::TopK)
            && (job.version.is_some()
                || job.op.is_some_and(refuses)
                || boards.iter().any(|(_, score)| by(score) < 0))
        {
            self.expected_rejects.push(RejectCode::BadScore);
            return;
        }
        for (name, score) in boards {
            let definition = self.definitions[name.as_str()].clone();
            if !definition.is_top_k() {
                continue;
            }
            for window in definition.windows.iter().filter(|_| job.op != Some(Op::Remove)) {
                let hour: String = at(now).to_string().chars().take(13).collect();
                let key = if *window == Window::All { name.to_string() } else { format!("{name}#{hour}") };
                let has = |of: &str| self.bans.contains(&(of.to_owned(), id.to_owned()));
                let is_hidden = has("") || has(name.as_str());
                self.model.entry(key).or_default().count(&definition, id, by(score), now, is_hidden);
            }
            for (key, instance) in self.model.iter_mut().filter(|_| job.op == Some(Op::Remove)) {
                let (of, hour) = key.split_once('#').unwrap_or((key, ""));
                let is_open = |hour: &str| {
                    let begin = Timestamp::parse(&format!("{hour}:00:00Z")).expect("a time").as_micros();
                    now < begin + 65 * MINUTE
                };
                if of == name.as_str() && (hour.is_empty() || is_open(hour)) {
                    instance.remove(definition.ties, id);
                }
            }
        }
    }

    fn batch(&mut self, said: Vec<(i64, Said)>) {
        let mut messages = Vec::new();
        for (time, said) in said {
            let payload = match &said {
                Said::Jobs(jobs) => Payload::Jobs(jobs.iter().cloned().map(Ok::<_, BadJob>).collect()),
                Said::Define(name, definition) => self.planned.define(name, definition),
                Said::Drop(name) => self.planned.drop_board(name),
                Said::Trim(name, least, members) => {
                    let known = self.planned.known(name);
                    let words = known.definition.score_words(&score(&[*least]));
                    let members = members.iter().map(|id| member(id)).collect();
                    let point = TrimPoint { side: TrimSide::Worse, words, member: None };
                    Payload::Trim { board: board(name), incarnation: known.incarnation, point, members }
                }
            };
            self.tell_model(&said, time);
            messages.push(self.planned.message(at(time), payload));
        }
        self.planned.run(messages);
    }

    fn checkpoint(&self) {
        self.planned.checkpoint();
        while self.planned.shard.write(Purpose::Release).members.free_slice() {}
    }

    fn check(&self, context: &str) {
        let shard = self.planned.shard.read(Purpose::Read);
        let mut held: BTreeMap<String, BTreeMap<String, Counted>> = BTreeMap::new();
        for (name, known) in shard.boards_and_instances() {
            let tree = shard.tree(known.all).expect("it has a tree");
            if known.definition.is_top_k() {
                let unlisted = tree.unlisted().map(|handle| entry(&shard, name, handle));
                let expected = self.model.get(name.as_str()).map(|instance| instance.hidden.clone());
                assert_eq!(
                    unlisted.collect::<BTreeMap<_, _>>(),
                    expected.unwrap_or_default(),
                    "{context}: {name}"
                );
            }
            if !known.definition.is_top_k() || tree.total() == 0 {
                assert_eq!(tree.with_error(), 0);
                continue;
            }
            let entries: BTreeMap<String, Counted> =
                tree.tree.cursor_at(0).map(|(handle, _)| entry(&shard, name, handle)).collect();
            assert!(Some(tree.total()) <= known.definition.capacity, "{context}: {name}");
            assert_eq!(count(entries.len()), tree.total(), "{context}: {name} remembers nobody else");
            let with_error = entries.values().filter(|entry| entry.error > 0).count();
            assert_eq!(tree.with_error(), count(with_error), "{context}: {name}");
            held.insert(name.as_str().to_owned(), entries);
        }
        let model = self.model.iter().filter(|(_, instance)| !instance.entries.is_empty());
        let expected: BTreeMap<_, _> =
            model.clone().map(|(name, instance)| (name.clone(), instance.entries.clone())).collect();
        assert_eq!(held, expected, "{context}");
        model.for_each(|(name, instance)| instance.check(&format!("{context}: {name}")));
        assert_eq!(self.planned.rejects, self.expected_rejects, "{context}");
    }

    fn check_on_disk(&self) {
        assert_eq!(self.planned.findings(), Vec::<String>::new());
    }
}

fn entry(shard: &Shard, name: &BoardName, handle: crate::tree::Handle) -> (String, Counted) {
    let known = shard.board(name.as_str()).expect("it is there");
    let entry = shard.tree(known.all).and_then(|tree| tree.entry(handle)).expect("it has an entry");
    let words = entry.words().expect("all are listed or hidden");
    let score = known.definition.score_of(words.as_slice()).keys()[0];
    let error = known.definition.error_of(words.as_slice()).expect("all have one");
    let reached = known.definition.reached_at(words.as_slice()).expect("it orders ties").as_micros();
    let id = String::from_utf8(shard.members.id(handle).to_vec()).expect("UTF-8");
    (id, Counted { score, error, reached })
}

const BOARDS: [&str; 4] = ["three", "both", "hours", "one"];

fn definitions() -> [(&'static str, Definition); 5] {
    [
        ("three", counting(3, &[Window::All], Ties::First)),
        ("both", counting(5, &[Window::All, Window::Hour], Ties::Last)),
        ("hours", counting(2, &[Window::Hour], Ties::First)),
        ("one", counting(1, &[Window::All], Ties::First)),
        ("plain", Definition { policy: Policy::Incr, ..Definition::default() }),
    ]
}

fn random_job(random: &mut StdRng) -> Job {
    let id = format!("m{}", random.random_range(0..9));
    let name = BOARDS[random.random_range(0..4)];
    let other = BOARDS[random.random_range(0..4)];
    let by = random.random_range(0..4);
    match random.random_range(0..24) {
        0..=2 => bare(Op::Remove, &id, &[name]),
        3 => leave_all(&id),
        4 => job(&id, &[(name, &[by])]).version(7),
        5 => job(&id, &[(name, &[by])]).op([Op::Set, Op::Best][random.random_range(0..2)]),
        6 => bare([Op::Hide, Op::Show][random.random_range(0..2)], &id, &[name]),
        14 => leave_all(&id).op([Op::Hide, Op::Show, Op::Show][random.random_range(0..3)]),
        7 => job(&id, &[(name, &[-1])]),
        8..=11 if name != other => job(&id, &[(name, &[by]), (other, &[1])]),
        12 => job(&id, &[("plain", &[by]), (name, &[2])]),
        13 | 15 => job(&id, &[(name, &[by])]).meta(r#"{"a":1}"#),
        _ => job(&id, &[(name, &[by])]),
    }
}

#[test]
fn entries_and_errors_equal_a_model_whatever_the_batches_and_after_crashes() {
    for seed in 0..24 {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut run, mut other) = (Run::new(), Run::new());
        let mut now = Timestamp::parse("2026-12-27T20:00:00Z").expect("a time").as_micros();
        for run in [&mut run, &mut other] {
            let said = definitions().map(|(name, what)| (now, Said::Define(name, what)));
            run.batch(said.into());
        }
        for _ in 0..40 {
            let mut batch = Vec::new();
            for _ in 0..random.random_range(1..12) {
                now += [0, 1, MINUTE, 50 * MINUTE][random.random_range(0..4)] + 1;
                let name = BOARDS[[0, 3][random.random_range(0..2)]];
                let jobs = (0..random.random_range(1..40)).map(|_| random_job(&mut random)).collect();
                let said = match random.random_range(0..30) {
                    0 => {
                        batch.push((now, Said::Drop(name)));
                        let (_, definition) =
                            definitions().into_iter().find(|(other, _)| *other == name).expect("it is one");
                        now += 1;
                        Said::Define(name, definition)
                    }
                    1..=3 => {
                        let mut members: Vec<String> = (0..9).map(|id| format!("m{id}")).collect();
                        members.rotate_left(random.random_range(0..9));
                        Said::Trim(name, random.random_range(0..60), members)
                    }
                    _ => Said::Jobs(jobs),
                };
                batch.push((now, said));
            }
            // A replica that cuts the log otherwise, and is not restarted.
            let mut rest = batch.clone();
            while !rest.is_empty() {
                let later = rest.split_off(rest.len().min(random.random_range(1..6)));
                other.batch(rest);
                rest = later;
            }
            run.batch(batch);
            assert_eq!(run.planned.hash, other.planned.hash, "seed {seed}");
            run.check(&format!("seed {seed}"));
            match random.random_range(0..6) {
                0 => run.checkpoint(),
                1 => run.planned.restart(TreesFrom::Pages),
                2 => run.planned.restart(TreesFrom::Members),
                _ => {}
            }
        }
        other.check(&format!("seed {seed}, the other one"));
        run.planned.restart(TreesFrom::Pages);
        run.check(&format!("seed {seed}, at the end"));
        run.check_on_disk();
    }
}

/// Numbers from 0 on, of which `n` is about as frequent as `1 / (n + 1)`; or all alike.
fn drawn(random: &mut StdRng, is_zipf: bool, members: u32) -> u32 {
    let most = if is_zipf { members >> random.random_range(0..12) } else { members };
    random.random_range(0..most.max(1))
}

#[test]
fn frequent_members_are_there_and_errors_bound_their_counts() {
    const CAPACITY: u64 = 64;
    const MEMBERS: u32 = 5_000;
    for is_zipf in [true, false] {
        let mut random = StdRng::seed_from_u64(5);
        let mut run = Run::new();
        run.batch(vec![(1, Said::Define("b", counting(CAPACITY, &[Window::All], Ties::First)))]);
        let (mut truth, mut total) = (BTreeMap::<String, i64>::new(), 0);
        let mut most_known = 0;
        for round in 0..40 {
            let mut jobs = Vec::new();
            for _ in 0..500 {
                let (id, by) =
                    (format!("m{}", drawn(&mut random, is_zipf, MEMBERS)), random.random_range(1..4));
                jobs.push(job(&id, &[("b", &[by])]));
                *truth.entry(id).or_default() += by;
                total += by;
            }
            run.batch(vec![(2 + round, Said::Jobs(jobs))]);
            run.checkpoint();
            most_known = most_known.max(run.planned.shard.read(Purpose::Read).members.len());
        }
        assert!(truth.len() > 1_000, "a stream of many members: {}", truth.len());
        assert_eq!(count(most_known), CAPACITY, "no other member has a handle");
        run.check("at the end");
        let entries = &run.model["b"].entries;
        let frequent: BTreeSet<_> =
            truth.iter().filter(|(_, truth)| **truth * 64 > total).map(|(id, _)| id).collect();
        assert_eq!(!frequent.is_empty(), is_zipf);
        assert!(frequent.iter().all(|id| entries.contains_key(*id)), "{frequent:?} {entries:?}");
        for (id, Counted { score, error, .. }) in entries {
            assert!(score - error <= truth[id] && truth[id] <= *score, "{id}");
        }
        run.planned.restart(TreesFrom::Pages);
        run.check("after a start");
        let shard = run.planned.shard.read(Purpose::Read);
        assert_eq!(count(shard.members.len()), CAPACITY);
        // Freed handles are given out again, so the dictionary has no more than one checkpoint's members.
        assert!(shard.members.handle_space() < 1_500, "{}", shard.members.handle_space());
    }
}

#[test]
fn a_score_that_would_leave_its_bounds_is_refused_and_replaces_nobody() {
    let mut run = Run::new();
    run.batch(vec![(1, Said::Define("b", counting(1, &[Window::All], Ties::First)))]);
    run.batch(vec![(2, Said::Jobs(vec![job("a", &[("b", &[i64::MAX])])]))]);
    let before = run.model.clone();
    run.batch(vec![(3, Said::Jobs(vec![job("c", &[("b", &[1])]).op(Op::Incr)]))]);
    assert_eq!(run.planned.rejects, [RejectCode::Overflow]);
    (run.model, run.expected_rejects) = (before, vec![RejectCode::Overflow]);
    run.check("it is as it was");
    run.batch(vec![(4, Said::Jobs(vec![job("c", &[("b", &[0])])]))]);
    run.check("an increment of 0 fits");
    assert_eq!(run.model["b"].entries["c"].error, i64::MAX);
}

//! What becomes of entries when a board is defined otherwise: closed instances are final, and a season that
//! was moved or cancelled and had begun begins anew. The same in memory, after a restart at any message, and
//! on a replica that cuts the log otherwise.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::board::{Definition, DefinitionPatch, Field, Policy};
use crate::job::Job;
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::types::Timestamp;
use crate::window::{Seasons, Window};
use crate::writer::tests::build::{board, job};
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, BoardChange, Payload, SeasonChange};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const BOARD: &str = "board";

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

/// The midnight at which a test begins.
fn midnight() -> i64 {
    Timestamp::parse("2026-11-27T00:00:00Z").expect("a time").as_micros()
}

/// What a message says.
#[derive(Clone)]
enum Said {
    Tick,
    /// A point for each of these members.
    Points(Vec<Job>),
    Define(Definition),
}

/// An instance, or what movement needs, with its members and their words.
type Listed = (String, Vec<(String, String)>);

struct Replica {
    planned: PlannedShard,
    restarts: Option<TreesFrom>,
}

impl Replica {
    fn new(definition: &Definition, restarts: Option<TreesFrom>) -> Self {
        let mut replica = Self { planned: PlannedShard::new(), restarts };
        let define = replica.planned.define(BOARD, definition);
        let message = replica.planned.message(at(midnight()), define);
        replica.planned.run(vec![message]);
        replica
    }

    fn say(&mut self, said: &[(i64, Said)]) {
        let messages = said.iter().map(|(time, said)| {
            let payload = match said {
                Said::Tick => Payload::Tick,
                Said::Points(jobs) => Payload::Jobs(jobs.iter().cloned().map(Ok::<_, BadJob>).collect()),
                Said::Define(definition) => Payload::Define {
                    board: board(BOARD),
                    incarnation: self.planned.known(BOARD).incarnation,
                    number: None,
                    definition: Arc::new(definition.clone()),
                },
            };
            self.planned.message(at(*time), payload)
        });
        let messages = messages.collect();
        self.planned.run(messages);
        while self.planned.shard.read(Purpose::Read).has_expiry_to_note() {
            self.planned.shard.write(Purpose::Apply).note_expiring(64);
        }
        if let Some(from) = self.restarts {
            self.planned.restart(from);
        }
    }

    fn listed(&self) -> Vec<Listed> {
        let shard = self.planned.shard.read(Purpose::Read);
        let listed = shard.boards_and_instances().map(|(name, known)| {
            let tree = shard.tree(known.all).expect("a board has a tree");
            let mut entries: Vec<_> = (tree.tree.cursor_at(0))
                .map(|(handle, words)| {
                    let score = known.definition.score_of(words.as_slice());
                    let id = String::from_utf8_lossy(shard.members.id(handle)).into_owned();
                    (id, format!("{:?}", score.keys()))
                })
                .collect();
            entries.sort_unstable();
            (name.split().1.unwrap_or("all").to_owned(), entries)
        });
        listed.collect()
    }
}

/// The same log on replicas: one that lives, two that restart after each message.
struct Replicas {
    all: Vec<Replica>,
    known: Definition,
}

impl Replicas {
    fn new(definition: &Definition) -> Self {
        let restarts = [None, Some(TreesFrom::Pages), Some(TreesFrom::Members)];
        let all = restarts.map(|restarts| Replica::new(definition, restarts)).into();
        Self { all, known: definition.clone() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "what is said is made where it is said")]
    fn say(&mut self, time: i64, said: Said) {
        self.all.iter_mut().for_each(|replica| replica.say(&[(time, said.clone())]));
        let (first, others) = self.all.split_first().expect("three");
        for other in others {
            assert_eq!(first.planned.hash, other.planned.hash);
            assert_eq!(first.listed(), other.listed());
        }
    }

    fn points(&mut self, time: i64, members: &[&str]) {
        let jobs = members.iter().map(|id| job(id, &[(BOARD, &[1])])).collect();
        self.say(time, Said::Points(jobs));
    }

    /// Time passes until then, and is believed.
    fn pass(&mut self, time: i64) {
        self.say(time - 2 * MINUTE, Said::Tick);
        self.say(time, Said::Tick);
    }

    /// A change that is decided at one time and comes to the shard at another.
    fn change(&mut self, decided: i64, arrives: i64, change: &BoardChange) {
        self.known = change.applied_to(Some(&self.known), at(decided)).expect("it may change so");
        self.say(arrives, Said::Define(self.known.clone()));
    }

    fn put(&mut self, now: i64, patch: DefinitionPatch) {
        self.change(now, now, &BoardChange::Define(patch));
    }

    /// The entries of an instance. `None`: nothing is kept under that name.
    fn of(&self, instance: &str) -> Option<Vec<(String, String)>> {
        let listed = self.all.first().expect("three").listed();
        listed.into_iter().find(|(name, _)| name == instance).map(|(_, entries)| entries)
    }

    fn names(&self) -> Vec<String> {
        self.all.first().expect("three").listed().into_iter().map(|(name, _)| name).collect()
    }

    fn verify(&self) {
        for replica in &self.all {
            assert_eq!(replica.planned.findings(), Vec::<String>::new());
            assert!(replica.planned.rejects.is_empty(), "{:?}", replica.planned.rejects);
        }
    }
}

fn lasting(ttl: i64) -> DefinitionPatch {
    DefinitionPatch { entry_ttl_micros: Field::Value(ttl), ..DefinitionPatch::default() }
}

fn open_for(grace: i64) -> DefinitionPatch {
    DefinitionPatch { grace_micros: Field::Value(grace), ..DefinitionPatch::default() }
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what an instance has, if there is one")]
fn points(members: &[(&str, i64)]) -> Option<Vec<(String, String)>> {
    Some(members.iter().map(|(id, score)| ((*id).to_owned(), format!("{:?}", [score]))).collect())
}

#[test]
fn what_has_closed_is_final_whatever_is_defined_afterwards() {
    let both = |ttl, grace| DefinitionPatch { grace_micros: Field::Value(grace), ..lasting(ttl) };
    for (ttl, grace, changes) in [
        (None, 0, vec![lasting(HOUR)]),
        (None, MINUTE, vec![lasting(HOUR), lasting(SECOND)]),
        (Some(3 * DAY), 0, vec![lasting(HOUR), open_for(20 * DAY)]),
        (Some(3 * DAY), 0, vec![open_for(20 * DAY), lasting(HOUR), open_for(0)]),
        (Some(23 * HOUR), 0, vec![open_for(HOUR), open_for(36 * HOUR), open_for(20 * DAY)]),
        (None, 0, vec![both(HOUR, 20 * DAY), both(SECOND, 0), open_for(9 * DAY)]),
        (None, 20 * DAY, vec![both(HOUR, 0)]),
    ] {
        let (first, told) = (midnight(), format!("{ttl:?} {grace} {changes:?}"));
        let mut replicas = Replicas::new(&Definition {
            windows: vec![Window::All, Window::Day, Window::Season],
            seasons: Some(Seasons::Manual(vec![at(first), at(first + 25 * HOUR)])),
            entry_ttl_micros: ttl,
            grace_micros: grace,
            policy: Policy::Incr,
            ..Definition::default()
        });
        replicas.points(first + HOUR, &["early", "both"]);
        replicas.pass(first + 23 * HOUR);
        replicas.points(first + 23 * HOUR, &["late", "both"]);
        replicas.pass(first + 49 * HOUR);
        let (day, season) = (replicas.of("2026-11-27"), replicas.of("s1"));
        assert_eq!(day, points(&[("both", 2), ("early", 1), ("late", 1)]), "{told}");
        replicas.points(first + 49 * HOUR, &["open"]);
        let mut now = first + 49 * HOUR;
        for change in changes {
            replicas.put(now + MINUTE, change);
            now += 30 * MINUTE;
            replicas.say(now, Said::Tick);
            assert_eq!(
                (replicas.of("2026-11-27"), replicas.of("s1")),
                (day.clone(), season.clone()),
                "{told}"
            );
        }
        now += 2 * HOUR;
        replicas.pass(now);
        assert_eq!((replicas.of("2026-11-27"), replicas.of("s1")), (day.clone(), season), "{told}");
        // What is open is not.
        if replicas.known.entry_ttl_micros.is_some_and(|ttl| ttl <= HOUR) {
            assert_eq!(replicas.of("2026-11-29"), points(&[]), "{told}");
            assert_eq!((replicas.of("s2"), replicas.of("all")), (points(&[]), points(&[])), "{told}");
        }
        // A longer grace opens it again: for late jobs, not for time.
        replicas.put(now + MINUTE, open_for(20 * DAY));
        let late = Job { at: Some(at(first + HOUR)), ..job("history", &[(BOARD, &[1])]) };
        replicas.say(now + 2 * MINUTE, Said::Points(vec![late]));
        replicas.pass(now + 5 * HOUR);
        let with_history = points(&[("both", 2), ("early", 1), ("history", 1), ("late", 1)]);
        assert_eq!(replicas.of("2026-11-27"), with_history, "{told}");
        replicas.verify();
    }
}

/// A board with a running season and one that is planned for `begin`.
fn planned(begin: i64, is_regular: bool, movement: bool) -> Definition {
    let first = at(midnight() - 3 * DAY);
    let seasons = if is_regular {
        Seasons::regular(first, 20 * DAY).with_early_end(at(begin), at(midnight())).expect("a good end")
    } else {
        Seasons::Manual(vec![first, at(begin)])
    };
    Definition {
        windows: vec![Window::All, Window::Season],
        seasons: Some(seasons),
        policy: Policy::Incr,
        movement,
        ..Definition::default()
    }
}

fn is_of_second(name: &str) -> bool {
    name == "s2" || name.starts_with("s2.")
}

/// The change was decided before the season began, and came to the shard after jobs had entered it.
#[test]
fn a_season_that_is_moved_or_cancelled_too_late_for_a_shard_begins_anew_on_every_replica() {
    let begin = midnight() + 10 * MINUTE;
    for change in [SeasonChange::Move { number: 2, at: at(begin + DAY) }, SeasonChange::Cancel { number: 2 }]
    {
        for (is_regular, movement) in [(false, false), (false, true), (true, true)] {
            let told = format!("{change:?} {is_regular} {movement}");
            let mut replicas = Replicas::new(&planned(begin, is_regular, movement));
            replicas.points(begin - 1, &["m1", "m2"]);
            replicas.points(begin, &["m1"]);
            replicas.points(begin + 1_000, &["m2", "m3"]);
            assert_eq!(replicas.of("s2"), points(&[("m1", 1), ("m2", 1), ("m3", 1)]), "{told}");
            replicas.change(begin - 2 * SECOND, begin + 2_000, &BoardChange::Season(change));
            if movement {
                // A message drops two in tests: the season, and one of the two trees of movement.
                replicas.say(begin + 2_000, Said::Tick);
            }
            assert!(
                !replicas.names().iter().any(|name| is_of_second(name)),
                "{told}: {:?}",
                replicas.names()
            );
            // They are in the running season again, and have lost nothing of the others.
            replicas.points(begin + 3_000, &["m3"]);
            assert_eq!(replicas.of("s1"), points(&[("m1", 1), ("m2", 1), ("m3", 1)]), "{told}");
            assert_eq!(replicas.of("all"), points(&[("m1", 2), ("m2", 2), ("m3", 2)]), "{told}");
            // One that begins later is empty when it does.
            let mut again = begin + DAY;
            if matches!(change, SeasonChange::Cancel { .. }) {
                again = begin + MINUTE;
                let open = SeasonChange::Open { number: Some(2), at: Some(at(again)), force: false };
                replicas.change(begin + 4_000, begin + 5_000, &BoardChange::Season(open));
            }
            replicas.pass(again);
            replicas.points(again + SECOND, &["m1"]);
            assert_eq!(replicas.of("s2"), points(&[("m1", 1)]), "{told}");
            replicas.verify();
        }
    }
}

/// No message comes between: the next season must not begin with what the cancelled one had.
#[test]
fn a_season_that_is_opened_right_after_a_late_cancellation_begins_empty() {
    let begin = midnight() + 10 * MINUTE;
    let mut replicas = Replicas::new(&planned(begin, false, false));
    replicas.points(begin, &["m1"]);
    let cancel = BoardChange::Season(SeasonChange::Cancel { number: 2 });
    replicas.change(begin - 2 * SECOND, begin + 1_000, &cancel);
    let open = SeasonChange::Open { number: None, at: None, force: true };
    replicas.change(begin + 2_000, begin + 5 * SECOND, &BoardChange::Season(open));
    replicas.points(begin + 6 * SECOND, &["m2"]);
    assert_eq!(replicas.of("s2"), points(&[("m2", 1)]));
    replicas.verify();
}

/// Random changes of seasons that come late, while clocks are wrong: a replica that cuts the log otherwise
/// and restarts at other places has the same.
#[test]
fn replicas_agree_on_seasons_that_change_late_however_they_cut_the_log_and_whenever_they_restart() {
    let mut taken_back = 0;
    for seed in 0..6 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut known = planned(midnight() + MINUTE, seed % 3 == 0, seed % 2 == 0);
        let (mut one, mut other) = (Replica::new(&known, None), Replica::new(&known, None));
        let mut now = midnight();
        for _ in 0..25 {
            let mut log = Vec::new();
            for _ in 0..random.random_range(1..10) {
                now += [1, SECOND, 20 * SECOND, MINUTE][random.random_range(0..4)];
                let wrong = [0, 0, 0, 0, 0, 3 * HOUR][random.random_range(0..6)];
                let seasons = known.seasons.clone().expect("it has seasons");
                let late = [0, 2 * SECOND, MINUTE][random.random_range(0..3)];
                let decided = at(now - late);
                let last = seasons.planned(decided).last().map(|(number, _)| *number);
                let ahead = [SECOND, 5 * SECOND, MINUTE, 10 * MINUTE][random.random_range(0..4)];
                let change = match (random.random_range(0..8), last) {
                    (0, _) => Some(SeasonChange::Open { number: None, at: None, force: true }),
                    (1 | 2, Some(number)) => Some(SeasonChange::Cancel { number }),
                    (1..=3, Some(number)) => Some(SeasonChange::Move { number, at: at(now + ahead) }),
                    _ => None,
                };
                let changed = change
                    .and_then(|change| BoardChange::Season(change).applied_to(Some(&known), decided).ok());
                let said = match changed {
                    Some(changed) => {
                        taken_back += u64::from(
                            seasons.number_at(at(now))
                                > changed.seasons.as_ref().and_then(|seasons| seasons.number_at(at(now))),
                        );
                        known = changed;
                        Said::Define(known.clone())
                    }
                    None if random.random_range(0..6) == 0 => Said::Tick,
                    None => {
                        Said::Points(vec![job(&format!("m{}", random.random_range(0..4)), &[(BOARD, &[1])])])
                    }
                };
                log.push((now + wrong, said));
            }
            one.say(&log);
            let mut rest = &log[..];
            while !rest.is_empty() {
                let (first, later) = rest.split_at(random.random_range(1..=rest.len()));
                rest = later;
                other.say(first);
                if random.random_range(0..3) == 0 {
                    other.planned.restart(TreesFrom::Pages);
                }
            }
            assert_eq!(one.planned.hash, other.planned.hash, "seed {seed}");
            assert_eq!(one.listed(), other.listed(), "seed {seed}");
        }
        assert_eq!(one.planned.findings(), Vec::<String>::new(), "seed {seed}");
    }
    assert!(taken_back > 5, "only {taken_back} seasons were taken back");
}

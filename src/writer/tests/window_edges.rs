//! The edges of windows, a microsecond to either side, with a restart after every message.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::board::{Definition, Policy};
use crate::job::{Job, MAX_AHEAD_MICROS, RejectCode};
use crate::state_lock::Purpose;
use crate::types::Timestamp;
use crate::window::Window;
use crate::writer::tests::build::{board, job};
use crate::writer::tests::source::{Running, VecSource, jobs};
use crate::writer::{Defined, JobOutcome, Payload};

const MINUTE: i64 = 60 * 1_000_000;
const HOUR: i64 = 60 * MINUTE;
/// The end of a year and of a month, in the middle of a week.
const MIDNIGHT: &str = "2027-01-01T00:00:00Z";

thread_local! {
    /// The time of every message.
    static NOW: Cell<i64> = const { Cell::new(0) };
}

fn micros(text: &str) -> i64 {
    Timestamp::parse(text).expect("a time").as_micros()
}

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

/// What came of a job.
type Told = Option<RejectCode>;
const DONE: Told = None;
const CLOSED: Told = Some(RejectCode::ClosedWindow);

/// A shard with a board `b`.
struct Edge {
    running: Running,
}

impl Edge {
    fn new(now: i64, definition: Definition) -> Self {
        let edge = Self { running: Running::new(true) };
        edge.define(now, definition);
        edge
    }

    fn define(&self, now: i64, definition: Definition) {
        let defined = self.running.registry.define(&board("b"), definition).expect("it may be defined");
        let (Defined::Created(known) | Defined::Changed(known) | Defined::Same(known)) = defined;
        let (incarnation, definition) = (known.incarnation, known.definition);
        self.say(now, Payload::Define { board: board("b"), incarnation, number: None, definition });
    }

    fn outcomes(&self, now: i64, payload: Payload) -> Vec<JobOutcome> {
        let known = self.running.shard.read(Purpose::Read).time.as_micros();
        if known > 0 && now - known > HOUR {
            // A leap, until a message of a minute later says so, too.
            self.send(now - MINUTE, Payload::Tick);
        }
        self.send(now, payload)
    }

    fn send(&self, now: i64, payload: Payload) -> Vec<JobOutcome> {
        NOW.set(now);
        let (mut source, answers) = VecSource::new(vec![payload]);
        source.time = |_| at(NOW.get());
        let outcomes = self.running.run(source, answers);
        outcomes.into_iter().next().expect("there is one").expect("committed").jobs
    }

    fn say(&self, now: i64, payload: Payload) -> Told {
        self.outcomes(now, payload).into_iter().find_map(|job| match job {
            JobOutcome::Rejected(reject) => Some(reject.code),
            JobOutcome::Applied(_)
            | JobOutcome::Changed(_)
            | JobOutcome::Repeated(..)
            | JobOutcome::WithProfile { .. }
            | JobOutcome::Parked(_) => None,
        })
    }

    /// A job of one point for a member, at a time, in a message of another.
    fn point(&self, now: i64, id: &str, time: i64) -> Told {
        self.say(now, jobs(vec![Job { at: Some(at(time)), ..job(id, &[("b", &[1])]) }]))
    }

    fn tick(&self, now: i64) {
        self.say(now, Payload::Tick);
    }

    /// `day: a=1 b=2, all: a=1`: the instances that have entries.
    fn entries(&self) -> String {
        let shard = self.running.shard.read(Purpose::Read);
        let mut told = BTreeMap::new();
        for (name, known) in shard.boards_and_instances() {
            let tree = shard.tree(known.all).expect("it has a tree");
            let listed = |handle| Some((handle, tree.entry(handle)?.listed()?));
            let mut entries: Vec<String> = tree
                .handles()
                .filter_map(listed)
                .map(|(handle, words)| {
                    let id = String::from_utf8_lossy(shard.members.id(handle)).into_owned();
                    format!("{id}={}", known.definition.score_of(words.as_slice()).keys()[0])
                })
                .collect();
            entries.sort_unstable();
            if !entries.is_empty() {
                let instance = name.split().1.unwrap_or("all").to_owned();
                told.insert(instance, entries.join(" "));
            }
        }
        told.into_iter().map(|(name, entries)| format!("{name}: {entries}")).collect::<Vec<_>>().join(", ")
    }
}

fn definition(windows: &[Window], grace: i64, keep: u32) -> Definition {
    Definition {
        windows: windows.to_vec(),
        grace_micros: grace,
        keep,
        policy: Policy::Incr,
        ..Definition::default()
    }
}

#[test]
fn a_late_job_is_taken_until_the_last_microsecond_of_the_grace() {
    let midnight = micros(MIDNIGHT);
    for grace in [0, 5 * MINUTE] {
        let closes = midnight + grace;
        let edge = Edge::new(midnight - HOUR, definition(&[Window::Day, Window::Week], grace, 12));
        assert_eq!(edge.point(closes - 1, "a", midnight - 1), DONE);
        assert_eq!(edge.point(closes - 1, "b", midnight - HOUR), DONE);
        let before = "2026-12-31: a=1 b=1, 2026-W53: a=1 b=1";
        assert_eq!(edge.entries(), before);
        // The day is final, and the week goes on over the end of the year.
        assert_eq!(edge.point(closes, "a", midnight - 1), DONE);
        assert_eq!(edge.entries(), "2026-12-31: a=1 b=1, 2026-W53: a=2 b=1");
        assert_eq!(edge.point(closes, "c", midnight), DONE);
        assert_eq!(edge.entries(), "2026-12-31: a=1 b=1, 2026-W53: a=2 b=1 c=1, 2027-01-01: c=1");
        let only_days = Edge::new(midnight - HOUR, definition(&[Window::Day], grace, 12));
        assert_eq!(only_days.point(closes - 1, "a", midnight - 1), DONE);
        assert_eq!(only_days.point(closes, "a", midnight - 1), CLOSED);
        assert_eq!(only_days.entries(), "2026-12-31: a=1");
    }
}

#[test]
fn a_time_ahead_is_taken_until_five_minutes_but_into_no_instance_that_has_not_begun() {
    let midnight = micros(MIDNIGHT);
    let now = midnight - MAX_AHEAD_MICROS;
    let edge = Edge::new(now - HOUR, definition(&[Window::All, Window::Day], 5 * MINUTE, 12));
    assert_eq!(edge.point(now, "a", midnight), DONE);
    assert_eq!(edge.point(now, "b", midnight - 1), DONE);
    assert_eq!(edge.point(now, "c", midnight + 1), Some(RejectCode::FutureTime));
    assert_eq!(edge.entries(), "2026-12-31: b=1, all: a=1 b=1");
    let only_days = Edge::new(now - HOUR, definition(&[Window::Day], 5 * MINUTE, 12));
    assert_eq!(only_days.point(now, "a", midnight), CLOSED);
    assert_eq!(only_days.point(midnight - 1, "a", midnight), CLOSED);
    assert_eq!(only_days.point(midnight, "a", midnight), DONE);
    assert_eq!(only_days.entries(), "2027-01-01: a=1");
}

#[test]
fn with_keep_0_an_instance_is_dropped_when_it_closes_and_with_1_when_the_next_one_does() {
    let (midnight, grace) = (micros(MIDNIGHT), 5 * MINUTE);
    for keep in [0, 1] {
        let edge = Edge::new(midnight - HOUR, definition(&[Window::All, Window::Day], grace, keep));
        assert_eq!(edge.point(midnight - HOUR, "a", midnight - HOUR), DONE);
        // No job enters the days after it, which close all the same.
        let drops = midnight + i64::from(keep) * 24 * HOUR + grace;
        edge.tick(drops - 1);
        assert_eq!(edge.entries(), "2026-12-31: a=1, all: a=1", "keep {keep}");
        edge.tick(drops);
        assert_eq!(edge.entries(), "all: a=1", "keep {keep}");
        assert_eq!(edge.point(drops, "b", drops), DONE);
        assert!(edge.entries().contains("b=1, all: a=1 b=1"), "{}", edge.entries());
    }
    // A shorter keep lets go of what it kept no longer, at the next message.
    let edge = Edge::new(midnight - HOUR, definition(&[Window::Day], 0, 1));
    assert_eq!(edge.point(midnight - HOUR, "a", midnight - HOUR), DONE);
    edge.tick(midnight);
    assert_eq!(edge.entries(), "2026-12-31: a=1");
    edge.define(midnight + 1, definition(&[Window::Day], 0, 0));
    edge.tick(midnight + 2);
    assert_eq!(edge.entries(), "");
}

#[test]
fn an_entry_that_expires_at_a_rollover_stays_in_what_is_final_then_and_leaves_the_rest() {
    let midnight = micros(MIDNIGHT);
    let noon = midnight - 12 * HOUR;
    let expiring = |ttl: i64, grace: i64| Definition {
        entry_ttl_micros: Some(ttl),
        ..definition(&[Window::All, Window::Day], grace, 12)
    };
    // It would expire as the day closes.
    let edge = Edge::new(noon, expiring(12 * HOUR, 0));
    assert_eq!(edge.point(noon, "a", noon), DONE);
    edge.tick(midnight - 1);
    assert_eq!(edge.entries(), "2026-12-31: a=1, all: a=1");
    edge.tick(midnight);
    assert_eq!(edge.entries(), "2026-12-31: a=1");
    assert_eq!(edge.point(midnight, "a", midnight), DONE);
    assert_eq!(edge.entries(), "2026-12-31: a=1, 2027-01-01: a=1, all: a=1", "it counts from zero");
    // It expires a microsecond before, or while the day is open for late jobs.
    for (ttl, grace, expires) in
        [(12 * HOUR - 1, 0, midnight - 1), (12 * HOUR, 1, midnight), (12 * HOUR, MINUTE, midnight)]
    {
        let edge = Edge::new(noon, expiring(ttl, grace));
        assert_eq!(edge.point(noon, "a", noon), DONE);
        edge.tick(expires - 1);
        assert_eq!(edge.entries(), "2026-12-31: a=1, all: a=1", "{ttl} {grace}");
        // The job that comes with that time counts from zero, too, in whatever is open.
        assert_eq!(edge.point(expires, "a", expires), DONE);
        let day = if expires < midnight { "2026-12-31" } else { "2027-01-01" };
        assert_eq!(edge.entries(), format!("{day}: a=1, all: a=1"), "{ttl} {grace}");
    }
}

/// On either side of the time as long ago as entries stay. What a job is answered is what readers see.
#[test]
fn a_job_that_is_older_than_entries_stay_is_told_to_have_changed_nothing() {
    let now = micros(MIDNIGHT) - 6 * HOUR;
    let expiring = |windows: &[Window]| Definition {
        entry_ttl_micros: Some(HOUR),
        ..definition(windows, 5 * MINUTE, 12)
    };
    for windows in [&[Window::All][..], &[Window::All, Window::Day], &[Window::Day]] {
        let edge = Edge::new(now, expiring(windows));
        let told = |id: &str, time: i64, version: Option<u64>| {
            let job = Job { at: Some(at(time)), version, ..job(id, &[("b", &[1])]) };
            let [JobOutcome::Applied(boards)] = &edge.outcomes(now, jobs(vec![job]))[..] else {
                panic!("it is applied")
            };
            let [board] = &boards[..] else { panic!("{boards:?}") };
            (board.changed, board.before.is_some(), board.after.is_some())
        };
        assert_eq!(told("old", now - HOUR, None), (false, false, false), "{windows:?}");
        assert_eq!(told("versioned", now - HOUR, Some(7)), (false, false, false), "{windows:?}");
        assert_eq!(told("young", now - HOUR + 1, None), (true, false, true), "{windows:?}");
        // A late job does not make it older.
        assert_eq!(told("young", now - 2 * HOUR, None), (true, true, true), "{windows:?}");
        let listed = ["young=2"; 2];
        let entries = edge.entries();
        let found: Vec<&str> =
            entries.split(", ").filter_map(|one| one.split_once(": ")).map(|of| of.1).collect();
        assert_eq!(found, listed[..windows.len()], "{entries}");
        // A version is remembered all the same.
        let again = Job { at: Some(at(now)), version: Some(7), ..job("versioned", &[("b", &[1])]) };
        assert_eq!(edge.say(now, jobs(vec![again])), Some(RejectCode::StaleVersion));
        // Of several jobs in a message, each is on its own.
        let points = [now - HOUR, now].map(|time| Job { at: Some(at(time)), ..job("both", &[("b", &[1])]) });
        assert_eq!(edge.say(now, jobs(points.to_vec())), DONE);
        assert!(edge.entries().contains("both=1"), "{}", edge.entries());
    }
}

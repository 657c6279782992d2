//! A clock that is wrong for a while destroys nothing, whatever it says; one that stays is believed. Of a
//! shard that was away for long, jobs count in the instances of their time at once.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::board::{Definition, Policy};
use crate::job::{Job, Op, RejectCode};
use crate::state::ShardTime;
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::types::Timestamp;
use crate::window::{Seasons, Window};
use crate::writer::tests::build::{bare, job};
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, Payload};

const MINUTE: i64 = 60 * 1_000_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// A Friday, in the middle of a day and of an hour.
const FRIDAY: &str = "2026-11-27T12:30:00Z";

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

fn friday() -> i64 {
    Timestamp::parse(FRIDAY).expect("a time").as_micros()
}

struct Leaping {
    planned: PlannedShard,
    /// Whether it is read from its directory after each message.
    restarts: bool,
}

impl Leaping {
    fn new(restarts: bool) -> Self {
        let mut leaping = Self { planned: PlannedShard::new(), restarts };
        let all = vec![Window::All, Window::Hour, Window::Day, Window::Week, Window::Month, Window::Season];
        let board = Definition {
            windows: all,
            seasons: Some(Seasons::regular(at(friday() - 3 * DAY), 20 * DAY)),
            keep: 2,
            entry_ttl_micros: Some(30 * DAY),
            policy: Policy::Incr,
            movement: true,
            ..Definition::default()
        };
        let days = Definition { windows: vec![Window::Day], keep: 1, ..Definition::default() };
        for (name, definition) in [("board", &board), ("days", &days)] {
            let define = leaping.planned.define(name, definition);
            leaping.say(friday(), define);
        }
        leaping
    }

    fn say(&mut self, time: i64, payload: Payload) {
        let message = self.planned.message(at(time), payload);
        self.planned.run(vec![message]);
        if self.restarts {
            self.planned.restart(TreesFrom::Pages);
        }
    }

    fn jobs(&mut self, time: i64, jobs: Vec<Job>) {
        self.say(time, Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect()));
    }

    /// A point for a member, on both boards.
    fn point(&mut self, time: i64, id: &str) {
        self.jobs(time, vec![job(id, &[("board", &[1])]), job(id, &[("days", &[1])])]);
    }

    fn ticks(&mut self, time: i64, count: usize) {
        (0..count).for_each(|_| self.say(time, Payload::Tick));
    }

    /// The instances of a board in which a member has an entry, by name, with the score.
    fn of(&self, board: &str, id: &str) -> Vec<(String, i64)> {
        let shard = self.planned.shard.read(Purpose::Read);
        let Some(handle) = shard.members.get(id.as_bytes()) else { return Vec::new() };
        let mut found = Vec::new();
        for (name, known) in shard.boards_and_instances().filter(|(name, _)| name.split().0 == board) {
            let instance = name.split().1.unwrap_or("all");
            let entry = shard.entry(known.all, handle).and_then(|entry| entry.words());
            if !instance.contains('.')
                && let Some(words) = entry
            {
                found.push((instance.to_owned(), known.definition.score_of(words.as_slice()).keys()[0]));
            }
        }
        found.sort_unstable();
        found
    }

    fn scores(&self, id: &str) -> Vec<(String, i64)> {
        self.of("board", id)
    }

    fn known(&self) -> ShardTime {
        self.planned.shard.read(Purpose::Read).known_time()
    }
}

/// In all windows of the Friday.
fn on_friday(score: i64) -> Vec<(String, i64)> {
    let names = ["2026-11", "2026-11-27", "2026-11-27T12", "2026-W48", "all", "s1"];
    names.map(|name| (name.to_owned(), score)).to_vec()
}

#[test]
fn a_clock_that_is_40_days_ahead_for_one_message_and_right_again_destroys_nothing() {
    for restarts in [false, true] {
        for ahead in [2 * HOUR, 3 * DAY, 40 * DAY, 400 * DAY, 100_000 * HOUR] {
            let mut leaping = Leaping::new(restarts);
            let now = friday();
            leaping.point(now, "truthful");
            leaping.point(now + ahead, "ahead");
            // What it brought is due at the same message, and at each one that says the same.
            leaping.ticks(now + ahead + 1, 50);
            assert_eq!(leaping.scores("truthful"), on_friday(1), "{ahead}");
            assert_eq!(leaping.of("days", "truthful"), [("2026-11-27".to_owned(), 1)], "{ahead}");
            // Right again: truthful jobs count at once, and where they belong.
            leaping.point(now + MINUTE, "truthful");
            assert_eq!(leaping.known(), ShardTime::from(at(now + MINUTE)));
            assert_eq!(leaping.scores("truthful"), on_friday(2), "{ahead}");
            leaping.ticks(now + 2 * MINUTE, 20);
            // Of the job itself is left what is not ahead.
            let of_ahead = leaping.scores("ahead");
            assert!(of_ahead.contains(&("all".to_owned(), 1)), "{ahead}: {of_ahead:?}");
            let names: Vec<&String> = of_ahead.iter().map(|(name, _)| name).collect();
            let is_known = |name: &&&String| on_friday(1).iter().any(|(known, _)| known == **name);
            assert!(names.iter().all(|name| is_known(&name)), "{ahead}: {names:?}");
            assert!(leaping.planned.rejects.is_empty(), "{:?}", leaping.planned.rejects);
            assert_eq!(leaping.planned.findings(), Vec::<String>::new());
        }
    }
}

#[test]
fn a_clock_that_stays_ahead_is_believed_after_a_minute() {
    let mut leaping = Leaping::new(true);
    let (now, ahead) = (friday(), friday() + 40 * DAY);
    leaping.point(now, "old");
    leaping.point(ahead, "new");
    leaping.ticks(ahead + MINUTE - 1, 20);
    assert_eq!(leaping.scores("old"), on_friday(1));
    leaping.ticks(ahead + MINUTE, 20);
    assert_eq!(leaping.known(), ShardTime::from(at(ahead + MINUTE)));
    // What is over by then is gone, as the documents say; of the month and the season one is kept.
    let left: Vec<String> = leaping.scores("old").into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["2026-11", "s1"]);
    // The job that came first was counted where it belongs, before the leap was believed.
    let names: Vec<String> = leaping.scores("new").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["2027-01", "2027-01-06", "2027-01-06T12", "2027-W01", "all", "s3"]);
    leaping.point(ahead + 2 * MINUTE, "new");
    assert_eq!(leaping.scores("new").iter().filter(|(_, score)| *score == 2).count(), 6);
}

/// The service was stopped over the weekend, and longer than entries of the board stay.
#[test]
fn jobs_after_a_long_stop_count_in_the_instances_of_their_time_immediately_and_stay() {
    for stopped in [9 * HOUR, 3 * DAY, 45 * DAY] {
        let mut leaping = Leaping::new(true);
        let (now, later) = (friday(), friday() + stopped);
        leaping.point(now, "old");
        leaping.point(later, "new");
        let day_of_new = vec![(at(later).to_string()[..10].to_owned(), 1)];
        assert_eq!(leaping.of("days", "new"), day_of_new, "{stopped}");
        assert_eq!(leaping.scores("new").len(), 6, "{stopped}");
        // A removal finds what has just come, and a job says when it happened.
        leaping.jobs(later + 1, vec![bare(Op::Remove, "new", &["board"])]);
        assert!(leaping.scores("new").is_empty(), "{stopped}");
        leaping.jobs(later + 2, vec![Job { at: Some(at(later - 5)), ..job("new", &[("board", &[7])]) }]);
        assert_eq!(leaping.scores("new").len(), 6, "{stopped}");
        leaping.ticks(later + MINUTE + 2, 20);
        assert_eq!(leaping.known(), ShardTime::from(at(later + MINUTE + 2)), "{stopped}");
        assert_eq!(leaping.of("days", "new"), day_of_new, "{stopped}");
        assert_eq!(leaping.scores("new").len(), 6, "it is not as old as the stop: {stopped}");
        assert!(leaping.planned.rejects.is_empty(), "{:?}", leaping.planned.rejects);
    }
}

/// A leap that is not believed closes nothing, and a job ahead of its own message is refused as ever.
#[test]
fn late_jobs_are_taken_during_a_leap_and_times_ahead_of_it_are_not() {
    let mut leaping = Leaping::new(false);
    let (now, ahead) = (friday(), friday() + 40 * DAY);
    leaping.point(now, "old");
    let said = |time: i64| Job { at: Some(at(time)), ..job("old", &[("days", &[5])]) };
    leaping.jobs(ahead, vec![said(now + 1), said(ahead + 6 * MINUTE)]);
    assert_eq!(leaping.of("days", "old"), [("2026-11-27".to_owned(), 5)]);
    assert_eq!(leaping.planned.rejects, [RejectCode::FutureTime]);
}

/// Random clocks: replicas that cut the log otherwise and restart at other places have the same.
#[test]
fn replicas_agree_on_leaps_however_they_cut_the_log_and_whenever_they_restart() {
    for seed in 0..8 {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut one, mut other) = (Leaping::new(false), Leaping::new(false));
        let (mut now, mut wrong) = (friday(), 0);
        let mut highest = 0;
        for _ in 0..60 {
            let mut batch = Vec::new();
            for _ in 0..random.random_range(1..12) {
                now += [1, MINUTE / 2, MINUTE, 20 * MINUTE, 2 * HOUR, 3 * DAY][random.random_range(0..6)];
                if random.random_range(0..6) == 0 {
                    wrong = [0, 0, 3 * HOUR, 2 * DAY, 40 * DAY, -HOUR][random.random_range(0..6)];
                }
                let id = format!("m{}", random.random_range(0..5));
                let said = match random.random_range(0..6) {
                    0 => None,
                    1 => Some(bare(Op::Remove, &id, &["board"])),
                    2 => Some(job(&id, &[("days", &[1])])),
                    _ => Some(job(&id, &[("board", &[1])])),
                };
                batch.push((now + wrong, said));
            }
            let payload = |said: &Option<Job>| match said {
                None => Payload::Tick,
                Some(job) => Payload::Jobs([Ok::<_, BadJob>(job.clone())].into_iter().collect()),
            };
            let messages: Vec<_> =
                batch.iter().map(|(time, said)| one.planned.message(at(*time), payload(said))).collect();
            one.planned.run(messages);
            let mut rest = &batch[..];
            while !rest.is_empty() {
                let (first, later) = rest.split_at(random.random_range(1..=rest.len()));
                rest = later;
                let messages: Vec<_> = first
                    .iter()
                    .map(|(time, said)| other.planned.message(at(*time), payload(said)))
                    .collect();
                other.planned.run(messages);
                if random.random_range(0..3) == 0 {
                    other.planned.restart(TreesFrom::Pages);
                }
            }
            assert_eq!(one.planned.hash, other.planned.hash, "seed {seed}");
            assert_eq!(one.known(), other.known(), "seed {seed}");
            let time = one.known().effective.as_micros();
            assert!(time >= highest, "seed {seed}: it never decreases");
            highest = time;
            // Without a leap, nothing is ahead for longer than the drops of a few messages take.
            one.ticks(now + wrong, 20);
            other.ticks(now + wrong, 20);
            if one.known().leap.is_none() {
                let early = one.planned.shard.read(Purpose::Read).early_instances();
                assert!(early.is_empty(), "seed {seed}: {early:?}");
            }
        }
        assert_eq!(one.planned.findings(), Vec::<String>::new(), "seed {seed}");
    }
}

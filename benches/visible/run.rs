//! The same measurement for every system: saturation in a closed loop, latency in an open one, and reads at
//! rest.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::workload::id;
use crate::system::{Job, MARKER, Publish, Read, System};

/// Every so many jobs, one is the marker's.
const MARKER_EVERY: i64 = 20;
/// Jobs on their way in the closed loop.
const WINDOW: i64 = 20_000;
const READ_EVERY: Duration = Duration::from_micros(500);
/// A publisher that is early waits at most so long; what is due by then goes out together.
const PUBLISH_EVERY: Duration = Duration::from_micros(200);
/// Until the last jobs are visible. A system that cannot keep up has this long to say so.
const DRAIN_WITHIN: Duration = Duration::from_secs(60);
const SCORES: i64 = 1 << 40;
/// Rank queries; fewer if they take longer than this together.
const RANK_READS: u64 = 5_000;
const RANK_TIME: Duration = Duration::from_secs(10);

pub struct Figures {
    pub name: String,
    /// Jobs per second.
    pub saturation: f64,
    /// By share in per cent of the jobs a second that loads are shares of; in microseconds.
    pub latencies: Vec<(u64, Histogram<u64>)>,
    /// In nanoseconds.
    pub rank_reads: Histogram<u64>,
}

impl Figures {
    pub fn print(&self) {
        println!("{}: saturation {:.0} jobs/s", self.name, self.saturation);
        for (load, latency) in &self.latencies {
            let at = |quantile| latency.value_at_quantile(quantile) as f64 / 1e3;
            println!(
                "{} at {load} %: p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, most {:.2} ms, {} jobs timed",
                self.name,
                at(0.5),
                at(0.99),
                at(0.999),
                latency.max() as f64 / 1e3,
                latency.len()
            );
        }
        let at = |quantile| self.rank_reads.value_at_quantile(quantile) as f64 / 1e3;
        let reads = self.rank_reads.len();
        if reads == 0 {
            return;
        }
        println!(
            "{} rank of a score: p50 {:.1} us, p99 {:.1} us, {reads} reads",
            self.name,
            at(0.5),
            at(0.99)
        );
    }
}

/// # Arguments
/// `of`: the jobs a second that loads are shares of; `None`: what the system itself takes.
pub fn measure(
    system: &mut dyn System,
    members: u64,
    loads: &[u64],
    of: Option<f64>,
    time: Duration,
) -> Figures {
    eprintln!("  loading {members} members into {}", system.name());
    let mut random = SmallRng::seed_from_u64(1);
    system.load(&mut (0..members).map(|n| Job { member: id(n), score: random.random_range(0..SCORES) }));
    let mut jobs = Jobs { random: SmallRng::seed_from_u64(2), members, number: 0 };
    let (mut publisher, mut reader) = (system.publisher(), system.reader());
    let saturation = saturation(&mut *publisher, &mut *reader, &mut jobs, time);
    eprintln!("  {} takes {saturation:.0} jobs/s", system.name());
    let mut latencies = Vec::new();
    for load in loads {
        let rate = of.unwrap_or(saturation) * *load as f64 / 100.0;
        latencies.push((*load, latency(&mut *publisher, &mut *reader, &mut jobs, rate, time)));
    }
    let mut rank_reads = histogram();
    let began = Instant::now();
    let reads = if system.ranks() { RANK_READS } else { 0 };
    for _ in 0..reads {
        let score = jobs.random.random_range(0..SCORES);
        let asked = Instant::now();
        let better = reader.better(score);
        rank_reads.saturating_record(asked.elapsed().as_nanos() as u64);
        assert!(better <= members + 1, "{better} are better of {members}");
        if began.elapsed() > RANK_TIME {
            break;
        }
    }
    Figures { name: system.name(), saturation, latencies, rank_reads }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("these bounds are well-formed")
}

/// Makes jobs up, numbered from 1; a marker's score is its own number.
struct Jobs {
    random: SmallRng,
    members: u64,
    number: i64,
}

impl Jobs {
    fn next(&mut self) -> Job {
        self.number += 1;
        if self.number % MARKER_EVERY == 0 {
            return Job { member: MARKER.to_owned(), score: self.number };
        }
        let member = self.random.random_range(0..self.members);
        Job { member: id(member), score: self.random.random_range(0..SCORES) }
    }
}

/// Reads the marker until told to stop, and calls `seen` with every new value.
fn watch(reader: &mut dyn Read, stop: &AtomicBool, mut seen: impl FnMut(i64)) {
    let (mut last, mut due) = (0, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let marker = reader.marker();
        if marker != last {
            last = marker;
            seen(marker);
        }
        due += READ_EVERY;
        match due.checked_duration_since(Instant::now()) {
            Some(early) => std::thread::sleep(early),
            // A slow read is no reason for a burst of them.
            None => due = Instant::now(),
        }
    }
}

fn saturation(publisher: &mut dyn Publish, reader: &mut dyn Read, jobs: &mut Jobs, time: Duration) -> f64 {
    let (visible, stop) = (AtomicI64::new(jobs.number), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| watch(reader, &stop, |marker| visible.store(marker, Ordering::Relaxed)));
        let started = Instant::now();
        // The first quarter warms up.
        let mut began = None;
        while started.elapsed() < time {
            while jobs.number - visible.load(Ordering::Relaxed) < WINDOW {
                publisher.publish(jobs.next());
                if jobs.number % 100 == 0 {
                    publisher.flush();
                }
            }
            publisher.flush();
            std::thread::sleep(PUBLISH_EVERY);
            if began.is_none() && started.elapsed() > time / 4 {
                began = Some((Instant::now(), visible.load(Ordering::Relaxed)));
            }
        }
        let (since, before) = began.expect("the time is longer than a quarter of itself");
        let rate = (visible.load(Ordering::Relaxed) - before) as f64 / since.elapsed().as_secs_f64();
        wait_until_visible(&visible, jobs.number);
        stop.store(true, Ordering::Relaxed);
        rate
    })
}

fn wait_until_visible(visible: &AtomicI64, number: i64) {
    let started = Instant::now();
    while visible.load(Ordering::Relaxed) < number - number % MARKER_EVERY {
        assert!(started.elapsed() < DRAIN_WITHIN, "the last jobs are not visible after {DRAIN_WITHIN:?}");
        std::thread::sleep(READ_EVERY);
    }
}

fn latency(
    publisher: &mut dyn Publish,
    reader: &mut dyn Read,
    jobs: &mut Jobs,
    rate: f64,
    time: Duration,
) -> Histogram<u64> {
    let (visible, stop) = (AtomicI64::new(jobs.number), AtomicBool::new(false));
    let first = jobs.number + 1;
    let started = Instant::now();
    // The job `first` is meant for the start, and so on: when each was meant needs no list.
    let meant = |number: i64| started + Duration::from_secs_f64((number - first) as f64 / rate);
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut latency = histogram();
            let mut next = first - 1 + MARKER_EVERY - (first - 1) % MARKER_EVERY;
            watch(reader, &stop, |marker| {
                let now = Instant::now();
                while next <= marker {
                    let took = now.saturating_duration_since(meant(next)).as_micros() as u64;
                    latency.saturating_record(took.max(1));
                    next += MARKER_EVERY;
                }
                visible.store(marker, Ordering::Relaxed);
            });
            latency
        });
        loop {
            let now = Instant::now();
            while meant(jobs.number + 1) <= now {
                publisher.publish(jobs.next());
            }
            publisher.flush();
            if started.elapsed() >= time {
                break;
            }
            std::thread::sleep(PUBLISH_EVERY);
        }
        wait_until_visible(&visible, jobs.number);
        stop.store(true, Ordering::Relaxed);
        watching.join().expect("the reader does not panic")
    })
}

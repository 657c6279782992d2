//! Counts and latencies of a run, in full and since the last look.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

/// Latencies are kept in microseconds, up to an hour, to three digits.
const LATENCY_US_MAX: u64 = 3_600_000_000;
const DIGITS: u8 = 3;
/// An operation that began this much after it was due was late. Below it are the pauses of any busy machine.
const LATE_AFTER: Duration = Duration::from_millis(10);

/// An operation's times. It was `intended` to begin when it was due; without a schedule, when it `started`.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    pub intended: Instant,
    pub started: Instant,
    pub ended: Instant,
}

/// Why an operation failed: a stable word to count by, and an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationError {
    pub kind: String,
    pub detail: String,
    /// How long the target asks to be left alone.
    pub pause: Option<Duration>,
}

impl OperationError {
    pub fn new(kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: kind.into(), detail: detail.into(), pause: None }
    }
}

/// What a message's jobs came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored {
    /// Applied, or stored to be applied.
    pub jobs: u64,
    /// Refused one by one, by reason.
    pub rejected: BTreeMap<String, u64>,
}

/// One kind of latency.
pub struct Latencies {
    pub total: Histogram<u64>,
    interval: Histogram<u64>,
}

impl Latencies {
    fn new() -> Self {
        let empty = || {
            Histogram::new_with_bounds(1, LATENCY_US_MAX, DIGITS)
                .expect("the bounds are two constants, the lower one first")
        };
        Self { total: empty(), interval: empty() }
    }

    fn record(&mut self, latency: Duration, counts: bool) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(LATENCY_US_MAX);
        if counts {
            self.total.saturating_record(micros);
        }
        self.interval.saturating_record(micros);
    }
}

/// Everything that is counted; jobs and operations of the warm-up are only in `warmup_*` and `errors`.
pub struct Counts {
    pub messages_acked: u64,
    pub messages_failed: u64,
    pub jobs_acked: u64,
    pub jobs_failed: u64,
    pub jobs_rejected: BTreeMap<String, u64>,
    pub reads_answered: u64,
    pub reads_not_found: u64,
    pub reads_failed: u64,
    pub warmup_messages: u64,
    pub warmup_jobs: u64,
    pub warmup_reads: u64,
    /// Of all operations, how many began late, and how late at most.
    pub late: u64,
    pub late_max: Duration,
    pub writes: Latencies,
    pub reads: Latencies,
    pub visible: Latencies,
    /// By kind: how many, and the first one's explanation. The warm-up's too.
    pub errors: BTreeMap<String, (u64, String)>,
    /// When something succeeded last.
    pub succeeded: Option<Instant>,
    /// When an operation ended last, well or not.
    pub ended: Option<Instant>,
    jobs_in_interval: u64,
    reads_in_interval: u64,
}

impl Counts {
    /// Jobs that were stored or applied, or rejected one by one, those of the warm-up included.
    pub fn jobs_stored(&self) -> u64 {
        self.jobs_acked + self.warmup_jobs + self.jobs_rejected.values().sum::<u64>()
    }
}

/// What happened since the last look, and how far it is altogether.
#[derive(Debug, Clone, Default)]
pub struct Interval {
    pub seconds: f64,
    pub jobs: u64,
    pub reads: u64,
    /// Of the interval's writes, in microseconds; 0 if there were none.
    pub write_p50_us: u64,
    pub write_p99_us: u64,
    pub read_p50_us: u64,
    pub read_p99_us: u64,
    /// Since the start, the warm-up included.
    pub jobs_acked: u64,
    pub elapsed: Duration,
    pub in_warmup: bool,
    /// By kind, since the start.
    pub errors: Vec<(String, u64)>,
}

pub struct Tally {
    /// What was intended to begin earlier is warm-up.
    measured_from: Instant,
    counts: Mutex<Counts>,
}

impl Tally {
    pub fn new(measured_from: Instant) -> Self {
        let counts = Counts {
            messages_acked: 0,
            messages_failed: 0,
            jobs_acked: 0,
            jobs_failed: 0,
            jobs_rejected: BTreeMap::new(),
            reads_answered: 0,
            reads_not_found: 0,
            reads_failed: 0,
            warmup_messages: 0,
            warmup_jobs: 0,
            warmup_reads: 0,
            late: 0,
            late_max: Duration::ZERO,
            writes: Latencies::new(),
            reads: Latencies::new(),
            visible: Latencies::new(),
            errors: BTreeMap::new(),
            succeeded: None,
            ended: None,
            jobs_in_interval: 0,
            reads_in_interval: 0,
        };
        Self { measured_from, counts: Mutex::new(counts) }
    }

    /// A message of `jobs` jobs is done.
    pub fn write(&self, times: Times, jobs: u32, outcome: Result<Stored, OperationError>) {
        let mut counts = self.counts.lock();
        let measured = self.is_measured(times);
        counts.note_times(times);
        match outcome {
            Ok(stored) => {
                counts.succeeded = Some(times.ended);
                counts.jobs_in_interval += stored.jobs;
                counts.writes.record(times.ended - times.intended, measured);
                if measured {
                    counts.messages_acked += 1;
                    counts.jobs_acked += stored.jobs;
                    for (reason, count) in stored.rejected {
                        *counts.jobs_rejected.entry(reason).or_default() += count;
                    }
                } else {
                    counts.warmup_messages += 1;
                    counts.warmup_jobs += stored.jobs;
                }
            }
            Err(error) => {
                if measured {
                    counts.messages_failed += 1;
                    counts.jobs_failed += u64::from(jobs);
                }
                counts.note_error(error);
            }
        }
    }

    /// A read is done, and found what it asked for or not.
    pub fn read(&self, times: Times, outcome: Result<bool, OperationError>) {
        let mut counts = self.counts.lock();
        let measured = self.is_measured(times);
        counts.note_times(times);
        match outcome {
            Ok(found) => {
                counts.succeeded = Some(times.ended);
                counts.reads_in_interval += 1;
                counts.reads.record(times.ended - times.intended, measured);
                if measured {
                    counts.reads_answered += 1;
                    counts.reads_not_found += u64::from(!found);
                } else {
                    counts.warmup_reads += 1;
                }
            }
            Err(error) => {
                if measured {
                    counts.reads_failed += 1;
                }
                counts.note_error(error);
            }
        }
    }

    /// A write was seen by a reader.
    pub fn visible(&self, intended: Instant, seen: Instant) {
        self.counts.lock().visible.record(seen - intended, intended >= self.measured_from);
    }

    /// Something beside the operations themselves failed.
    pub fn error(&self, error: OperationError) {
        self.counts.lock().note_error(error);
    }

    pub fn last_success(&self) -> Option<Instant> {
        self.counts.lock().succeeded
    }

    /// What happened in the `seconds` since the last call.
    pub fn interval(&self, started: Instant, seconds: f64) -> Interval {
        let mut counts = self.counts.lock();
        let quantile = |latencies: &Latencies, quantile| {
            let interval = &latencies.interval;
            if interval.is_empty() { 0 } else { interval.value_at_quantile(quantile) }
        };
        let interval = Interval {
            seconds,
            jobs: counts.jobs_in_interval,
            reads: counts.reads_in_interval,
            write_p50_us: quantile(&counts.writes, 0.5),
            write_p99_us: quantile(&counts.writes, 0.99),
            read_p50_us: quantile(&counts.reads, 0.5),
            read_p99_us: quantile(&counts.reads, 0.99),
            jobs_acked: counts.warmup_jobs + counts.jobs_acked,
            elapsed: started.elapsed(),
            in_warmup: Instant::now() < self.measured_from,
            errors: counts.errors.iter().map(|(kind, (count, _))| (kind.clone(), *count)).collect(),
        };
        counts.jobs_in_interval = 0;
        counts.reads_in_interval = 0;
        counts.writes.interval.clear();
        counts.reads.interval.clear();
        counts.visible.interval.clear();
        interval
    }

    pub fn measured_from(&self) -> Instant {
        self.measured_from
    }

    pub fn with<T>(&self, look: impl FnOnce(&Counts) -> T) -> T {
        look(&self.counts.lock())
    }

    fn is_measured(&self, times: Times) -> bool {
        times.intended >= self.measured_from
    }
}

impl Counts {
    fn note_times(&mut self, times: Times) {
        self.ended = self.ended.max(Some(times.ended));
        let late = times.started.saturating_duration_since(times.intended);
        self.late += u64::from(late > LATE_AFTER);
        self.late_max = self.late_max.max(late);
    }

    fn note_error(&mut self, error: OperationError) {
        let (count, _) = self.errors.entry(error.kind).or_insert((0, error.detail));
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, intended: u64, started: u64, ended: u64) -> Times {
        let after = |millis| start + Duration::from_millis(millis);
        Times { intended: after(intended), started: after(started), ended: after(ended) }
    }

    #[test]
    fn latency_counts_from_the_intended_start() {
        let start = Instant::now();
        let tally = Tally::new(start);
        // A target that stalls for a second, with one operation due every 100 ms and sent as soon as it
        // answers.
        for number in 0..10 {
            let stored = Stored { jobs: 1, ..Stored::default() };
            tally.write(at(start, number * 100, 1_000, 1_000), 1, Ok(stored));
        }
        tally.with(|counts| {
            let slowest = counts.writes.total.max();
            assert!((1_000_000..1_002_000).contains(&slowest), "{slowest}");
            let median = counts.writes.total.value_at_quantile(0.5);
            assert!((500_000..700_000).contains(&median), "{median}: the wait of most is not left out");
            assert_eq!((counts.jobs_acked, counts.late), (10, 10));
            assert_eq!(counts.late_max, Duration::from_secs(1));
        });
    }

    #[test]
    fn the_warm_up_is_kept_apart_and_errors_are_counted_by_kind() {
        let start = Instant::now();
        let tally = Tally::new(start + Duration::from_secs(1));
        let stored = || Ok(Stored { jobs: 5, ..Stored::default() });
        tally.write(at(start, 0, 0, 2_000), 5, stored());
        tally.write(at(start, 1_000, 1_000, 1_001), 5, stored());
        let rejected = BTreeMap::from([("overflow".to_owned(), 2)]);
        tally.write(at(start, 1_000, 1_000, 1_001), 5, Ok(Stored { jobs: 3, rejected }));
        for detail in ["first", "second"] {
            tally.write(at(start, 1_000, 1_000, 1_001), 5, Err(OperationError::new("stream_full", detail)));
        }
        tally.read(at(start, 1_000, 1_000, 1_001), Ok(true));
        tally.read(at(start, 1_000, 1_000, 1_001), Ok(false));
        let interval = tally.interval(start, 1.0);
        assert_eq!((interval.jobs, interval.reads, interval.jobs_acked), (13, 2, 13));
        assert_eq!(interval.errors, [("stream_full".to_owned(), 2)]);
        assert_eq!(tally.interval(start, 1.0).jobs, 0, "each interval begins anew");
        tally.with(|counts| {
            assert_eq!((counts.warmup_messages, counts.warmup_jobs), (1, 5));
            assert_eq!((counts.messages_acked, counts.jobs_acked), (2, 8));
            assert_eq!(counts.jobs_rejected["overflow"], 2);
            assert_eq!((counts.messages_failed, counts.jobs_failed), (2, 10));
            assert_eq!((counts.reads_answered, counts.reads_not_found), (2, 1));
            assert_eq!(counts.writes.total.len(), 2);
            assert_eq!(counts.errors["stream_full"], (2, "first".to_owned()));
        });
    }
}

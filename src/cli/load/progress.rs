//! Shows how a run goes, every second on a terminal and now and then elsewhere. Writes to standard error.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use crate::loadgen::Interval;

/// Between two lines where there is no terminal: rare enough for a log.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

pub struct Progress {
    bar: ProgressBar,
    /// How long the run is to take, if that is what ends it.
    duration: Option<Duration>,
    jobs: Option<u64>,
    next_line: Mutex<Instant>,
}

impl Progress {
    pub fn new(duration: Option<Duration>, jobs: Option<u64>) -> Self {
        // Thousandths of whatever ends the run; a run that ends by both shows its time.
        let has_end = duration.is_some() || jobs.is_some();
        let bar = ProgressBar::with_draw_target(has_end.then_some(1_000), ProgressDrawTarget::stderr());
        let template = if has_end { "{bar:20} {percent:>3} %  {wide_msg}" } else { "{spinner} {wide_msg}" };
        bar.set_style(ProgressStyle::with_template(template).expect("the templates above are well-formed"));
        Self { bar, duration, jobs, next_line: Mutex::new(Instant::now() + LINE_INTERVAL) }
    }

    pub fn show(&self, interval: &Interval) {
        if !self.bar.is_hidden() {
            self.bar.set_position(self.thousandths(interval));
            self.bar.set_message(line(interval));
            return;
        }
        let now = Instant::now();
        let mut next_line = self.next_line.lock();
        if now >= *next_line {
            *next_line = now + LINE_INTERVAL;
            eprintln!("{}: {}", HumanDuration(interval.elapsed), line(interval));
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn thousandths(&self, interval: &Interval) -> u64 {
        let part = |done: u128, of: u128| u64::try_from(done * 1_000 / of.max(1)).unwrap_or(1_000).min(1_000);
        match (self.duration, self.jobs) {
            (Some(duration), _) => part(interval.elapsed.as_millis(), duration.as_millis()),
            (None, Some(jobs)) => part(interval.jobs_acked.into(), jobs.into()),
            (None, None) => 0,
        }
    }
}

fn line(interval: &Interval) -> String {
    let Interval { seconds, jobs, reads, .. } = *interval;
    // An interval is a second, give or take: per second without leaving whole numbers.
    let millis = u64::try_from(Duration::from_secs_f64(seconds.clamp(0.001, 1e6)).as_millis()).unwrap_or(1);
    let rate = |count: u64| HumanCount(count.saturating_mul(1_000) / millis.max(1));
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = write!(line, "{} jobs/s", rate(jobs));
    if jobs > 0 {
        let _ = write!(line, " p50 {} p99 {}", time(interval.write_p50_us), time(interval.write_p99_us));
    }
    if reads > 0 {
        let _ = write!(line, "  {} reads/s", rate(reads));
        let _ = write!(line, " p50 {} p99 {}", time(interval.read_p50_us), time(interval.read_p99_us));
    }
    let _ = write!(line, "  {} acked", HumanCount(interval.jobs_acked));
    if interval.in_warmup {
        line.push_str("  warming up");
    }
    for (kind, count) in &interval.errors {
        let _ = write!(line, "  {kind} {}", HumanCount(*count));
    }
    line
}

fn time(micros: u64) -> String {
    crate::loadgen::human_time(Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_happens_now() {
        let interval = Interval {
            seconds: 2.0,
            jobs: 5_000,
            write_p50_us: 800,
            write_p99_us: 4_200,
            jobs_acked: 12_345,
            elapsed: Duration::from_secs(5),
            errors: vec![("stream_full".to_owned(), 7)],
            ..Interval::default()
        };
        let expected = "2,500 jobs/s p50 800 µs p99 4.2 ms  12,345 acked  stream_full 7";
        assert_eq!(line(&interval), expected);
        let by_time = Progress::new(Some(Duration::from_secs(10)), Some(1)).thousandths(&interval);
        let by_jobs = Progress::new(None, Some(24_690)).thousandths(&interval);
        assert_eq!((by_time, by_jobs), (500, 500));
    }
}

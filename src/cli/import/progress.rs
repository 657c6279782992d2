//! Shows how far an import is: a bar on a terminal, a line now and then elsewhere. Writes to standard error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

/// Between two lines where there is no terminal: rare enough for a log.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Reading the clock for every row would cost more than the row.
const ROWS_PER_LOOK: u64 = 256;

const WITH_SIZE: &str =
    "{bar:30} {percent:>3} %  {bytes} of {total_bytes}  {bytes_per_sec}  ETA {eta}  {msg}";
const WITHOUT_SIZE: &str = "{spinner} {bytes}  {bytes_per_sec}  {elapsed}  {msg}";

const OF_ROWS: &str = "{bar:30} {percent:>3} %  {human_pos} of {human_len}  {per_sec}  ETA {eta}  {msg}";

pub struct Progress {
    bar: ProgressBar,
    /// What the bar's position is; `None` for rows.
    bytes_read: Option<Arc<AtomicU64>>,
    started: Instant,
    /// What is done with rows, in one word.
    verb: &'static str,
    lines: Mutex<Lines>,
}

/// What was said where there is no terminal.
struct Lines {
    next: Instant,
    /// Rows, if anything was said.
    last: Option<u64>,
}

impl Progress {
    /// `bytes_total` is `None` for a pipe, whose length nobody knows.
    pub fn new(bytes_read: Arc<AtomicU64>, bytes_total: Option<u64>) -> Self {
        let template = if bytes_total.is_some() { WITH_SIZE } else { WITHOUT_SIZE };
        Self::with(bytes_total, Some(bytes_read), template)
    }

    /// For input whose number of rows is known.
    pub fn of_rows(total: u64) -> Self {
        Self::with(Some(total), None, OF_ROWS)
    }

    fn with(total: Option<u64>, bytes_read: Option<Arc<AtomicU64>>, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        bar.set_style(ProgressStyle::with_template(template).expect("the templates above are well-formed"));
        let started = Instant::now();
        Self {
            bar,
            bytes_read,
            started,
            verb: "read",
            lines: Mutex::new(Lines { next: started + LINE_INTERVAL, last: None }),
        }
    }

    /// Of the pass before anything is sent.
    pub fn of_check(self) -> Self {
        Self { verb: "checked", ..self }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Called for every row, with the number of rows read so far.
    pub fn show(&self, rows: u64) {
        if !rows.is_multiple_of(ROWS_PER_LOOK) {
            return;
        }
        self.set_position(rows);
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{} rows {}", HumanCount(rows), self.verb));
            return;
        }
        let now = Instant::now();
        let mut lines = self.lines.lock();
        if now >= lines.next {
            *lines = Lines { next: now + LINE_INTERVAL, last: Some(rows) };
            eprintln!("{}", self.line(rows));
        }
    }

    /// Says something beside the bar.
    pub fn note(&self, text: &str) {
        if self.bar.is_hidden() { eprintln!("{text}") } else { self.bar.println(text) }
    }

    /// Removes the bar. If lines were printed, prints a last one, because the line before may show less than
    /// the total.
    pub fn finish(&self, rows: u64) {
        let last = self.lines.lock().last;
        if last.is_some_and(|last| last < rows) {
            self.set_position(rows);
            eprintln!("{}", self.line(rows));
        }
        self.bar.finish_and_clear();
    }

    fn set_position(&self, rows: u64) {
        self.bar.set_position(self.bytes_read.as_ref().map_or(rows, |bytes| bytes.load(Ordering::Relaxed)));
    }

    fn line(&self, rows: u64) -> String {
        let seconds = self.elapsed().as_secs().max(1);
        let rate = HumanCount(rows / seconds);
        let (rows, verb) = (HumanCount(rows), self.verb);
        match self.bar.length() {
            Some(total) => {
                let percent = self.bar.position() * 100 / total.max(1);
                let left = HumanDuration(self.bar.eta());
                format!("{rows} rows {verb}, {percent} % of the file, {rate} rows/s, {left} left")
            }
            None => format!("{rows} rows {verb}, {rate} rows/s"),
        }
    }
}

//! Progress of long work, on standard error: a bar on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

/// Off a terminal, a line at most this often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows what is being done to one shard.
pub struct Progress {
    title: String,
    bar: ProgressBar,
    shown: Mutex<(String, Instant)>,
}

impl Progress {
    #[must_use]
    pub fn new(title: String) -> Self {
        let bar = ProgressBar::new(0);
        let style =
            ProgressStyle::with_template("{prefix} {msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_prefix(title.clone());
        Self { title, bar, shown: Mutex::new((String::new(), Instant::now())) }
    }

    /// Notes progress: what is being done, how much of it is, and of how much (0: unknown).
    pub fn note(&self, what: &str, done: u64, total: u64) {
        let mut shown = self.shown.lock();
        let new = shown.0 != what;
        if self.bar.is_hidden() {
            if new || shown.1.elapsed() >= LINE_EVERY {
                let of = if total == 0 { String::new() } else { format!(" of {total}") };
                eprintln!("{}: {what}: {done}{of}", self.title);
                *shown = (what.to_owned(), Instant::now());
            }
            return;
        }
        if new {
            self.bar.set_message(what.to_owned());
            what.clone_into(&mut shown.0);
        }
        self.bar.set_length(total.max(done));
        self.bar.set_position(done);
    }

    /// What is being done to what.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}: {}", self.title, self.shown.lock().0)
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

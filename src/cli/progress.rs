//! Progress of long work, on standard error: a bar on a terminal, a line now and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

/// Off a terminal, a line at most this often.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows what is being done to one shard.
pub struct Progress {
    title: String,
    bar: ProgressBar,
    shown: Mutex<Shown>,
}

struct Shown {
    what: String,
    at: Instant,
    /// What was noted since the last line.
    unshown: Option<(u64, u64)>,
}

impl Progress {
    pub fn new(title: String) -> Self {
        let bar = ProgressBar::new(0);
        let style =
            ProgressStyle::with_template("{prefix} {msg} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_prefix(title.clone());
        Self {
            title,
            bar,
            shown: Mutex::new(Shown { what: String::new(), at: Instant::now(), unshown: None }),
        }
    }

    /// Notes progress: what is being done, how much of it is, and of how much (0: unknown).
    pub fn note(&self, what: &str, done: u64, total: u64) {
        let mut shown = self.shown.lock();
        let new = shown.what != what;
        if self.bar.is_hidden() {
            if new || shown.at.elapsed() >= LINE_INTERVAL {
                self.show_rest(&mut shown, new);
                eprintln!("{}", self.line(what, done, total));
                *shown = Shown { what: what.to_owned(), at: Instant::now(), unshown: None };
            } else {
                shown.unshown = Some((done, total));
            }
            return;
        }
        if new {
            self.bar.set_message(what.to_owned());
            what.clone_into(&mut shown.what);
        }
        self.bar.set_length(total.max(done));
        self.bar.set_position(done);
    }

    fn line(&self, what: &str, done: u64, total: u64) -> String {
        let of = if total == 0 { String::new() } else { format!(" of {total}") };
        format!("{}: {what}: {done}{of}", self.title)
    }

    /// Prints a last line when the work is done, because the line before may show less than the total.
    fn show_rest(&self, shown: &mut Shown, is_over: bool) {
        if let Some((done, total)) = shown.unshown.take().filter(|_| is_over) {
            eprintln!("{}", self.line(&shown.what, done, total));
        }
    }

    /// The shard and the current work.
    pub fn place(&self) -> String {
        format!("{}: {}", self.title, self.shown.lock().what)
    }

    pub fn finish(&self) {
        self.show_rest(&mut self.shown.lock(), true);
        self.bar.finish_and_clear();
    }
}

//! What Linux counts of a thread: how long it ran, how long it was ready to go on while others had the cores,
//! and how often it touched memory that the system had yet to give.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

pub struct ThreadFigures {
    schedstat: File,
    stat: File,
}

impl ThreadFigures {
    pub fn of_this_thread() -> Self {
        let open = |name: &str| File::open(format!("/proc/thread-self/{name}")).expect("Linux tells it");
        Self { schedstat: open("schedstat"), stat: open("stat") }
    }

    /// Its processor time so far.
    pub fn ran(&self) -> Duration {
        Duration::from_nanos(with_text(&self.schedstat, |text| figure(text, 0)))
    }

    /// How long it waited for a core so far.
    pub fn core_waits(&self) -> Duration {
        Duration::from_nanos(with_text(&self.schedstat, |text| figure(text, 1)))
    }

    /// Page faults so far, those that read from disk among them.
    pub fn page_faults(&self) -> u64 {
        // The second field is the thread's name, which may have spaces, in parentheses. The tenth is the
        // number of faults that needed no disk, the twelfth of those that did.
        with_text(&self.stat, |text| {
            let (_, fields) = text.rsplit_once(") ").expect("a thread has a name");
            figure(fields, 7) + figure(fields, 9)
        })
    }
}

fn with_text<T>(file: &File, parse: impl FnOnce(&str) -> T) -> T {
    let mut text = [0; 512];
    let length = file.read_at(&mut text, 0).expect("Linux tells it");
    parse(std::str::from_utf8(text.get(..length).unwrap_or_default()).expect("figures"))
}

fn figure(text: &str, at: usize) -> u64 {
    text.split(' ').nth(at).and_then(|figure| figure.trim().parse().ok()).expect("a figure")
}

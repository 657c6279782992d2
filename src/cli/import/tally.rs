//! The outcome of the rows: counts, rejected lines, the summary. Shared by all connections.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::HumanCount;
use parking_lot::Mutex;

use crate::cli::as_owner::{create_file, open_file};
use crate::cli::escaped::escaped_text;
use crate::cli::import::ImportError;
use crate::cli::import::progress::Progress;
use crate::cli::import::read::{Place, RejectedLine, Row};
use crate::cli::outside_data::check_outside_data;

/// Rejected lines in the summary; `--rejects` has them all.
const LISTED_MAX: usize = 20;
/// Longer than the first line of a file of rejected lines.
const FIRST_LINE_MAX: u64 = 256;
/// Boards that the summary names.
const BOARDS_NAMED: usize = 10;

/// Whoever imports once more to give entries their times would take a success for one.
const TIMES_STAY: &str = "times         stay as they are, too: equal scores keep the times at which they were reached. With those of the \
    file they come into a board that is new (--board NAME, or DELETE /v1/boards/NAME before)\n";

/// What rejected lines are written with. The first one where there are several files.
const REJECTS_HEADER: [&str; 4] = ["file", "line", "code", "detail"];

/// Refuses a place for rejected lines that has something else.
///
/// # Errors
/// When it is in a data directory, or has a file that no import wrote rejected lines into.
pub fn check_rejects(path: &Path) -> Result<(), ImportError> {
    check_outside_data(path, "--rejects").map_err(|error| rejects_error(path, io::Error::other(error)))?;
    // A pipe or a device is written to. What cannot be read, cannot be created either.
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    let Some(file) = is_file.then(|| open_file(path).ok()).flatten() else { return Ok(()) };
    let mut first = String::new();
    let read = io::BufReader::new(file).take(FIRST_LINE_MAX).read_line(&mut first);
    let is_ours = (0..2).any(|skipped| {
        let header = REJECTS_HEADER.get(skipped..).unwrap_or_default();
        first.trim_end() == header.join(",")
    });
    match read {
        Ok(0) => Ok(()),
        Ok(_) if is_ours => Ok(()),
        _ => Err(ImportError::RejectsIsAnother(path.to_owned())),
    }
}

pub struct Tally {
    progress: Progress,
    rejected_max: Option<u64>,
    rejects_path: Option<PathBuf>,
    read: AtomicU64,
    /// Rows add to scores, and have no versions.
    adds_twice: AtomicBool,
    /// Rows are for members who have no entry.
    if_absent: AtomicBool,
    /// Rows have times of their own.
    has_times: AtomicBool,
    /// The names of the files, where rows are of files.
    files: Vec<String>,
    // Held for a few additions and, where lines are rejected, a buffered write.
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    applied: u64,
    changed: u64,
    /// Of these, rows that nothing came of because of their versions.
    outdated: u64,
    /// Sent again after an answer was lost, and applied by the first try.
    repeated: u64,
    rejected: u64,
    /// Left out, as `--blank` says: how many of each text.
    blanks: BTreeMap<String, u64>,
    /// Where rows were sent to.
    boards: BTreeSet<Arc<str>>,
    last_named: Option<Arc<str>>,
    rejected_by_code: BTreeMap<String, u64>,
    /// The first ones by line, whichever connection reported them first.
    listed: BTreeMap<Place, RejectedLine>,
    rejects: Option<csv::Writer<File>>,
}

impl Tally {
    /// # Errors
    /// When the file for rejected lines cannot be created.
    pub fn new(
        progress: Progress,
        rejected_max: Option<u64>,
        rejects: Option<&Path>,
        files: Vec<String>,
    ) -> Result<Self, ImportError> {
        let mut counts = Counts::default();
        if let Some(path) = rejects {
            let create = || {
                let mut file = csv::Writer::from_writer(create_file(path).map_err(io::Error::other)?);
                file.write_record(REJECTS_HEADER.iter().skip(usize::from(files.len() < 2)))?;
                Ok(file)
            };
            counts.rejects = Some(create().map_err(|source| rejects_error(path, source))?);
        }
        let rejects_path = rejects.map(Path::to_owned);
        let read = AtomicU64::new(0);
        Ok(Self {
            progress,
            rejected_max,
            rejects_path,
            read,
            adds_twice: AtomicBool::new(false),
            if_absent: AtomicBool::new(false),
            has_times: AtomicBool::new(false),
            files,
            counts: Mutex::new(counts),
        })
    }

    /// Says something that is not part of the summary.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// A line was read that is not blank.
    pub fn read(&self) {
        self.progress.show(self.read.fetch_add(1, Ordering::Relaxed) + 1);
    }

    /// A row is left out, as `--blank` says.
    pub fn blank(&self, text: String) {
        *self.counts.lock().blanks.entry(text).or_default() += 1;
    }

    /// Rows add to scores, so that sending them twice counts them twice.
    pub fn add_twice(&self) {
        self.adds_twice.store(true, Ordering::Relaxed);
    }

    /// A row that is sent may have a time of its own.
    pub fn note_time(&self, row: &Row) {
        if !row.takes_time && !self.has_times.load(Ordering::Relaxed) && row.job.contains("\"at\":") {
            self.has_times.store(true, Ordering::Relaxed);
        }
    }

    pub fn adds_twice(&self) -> bool {
        self.adds_twice.load(Ordering::Relaxed)
    }

    /// Rows change nothing of members who have an entry, and how many have one is told.
    pub fn tell_absent(&self) {
        self.if_absent.store(true, Ordering::Relaxed);
    }

    pub fn tells_absent(&self) -> bool {
        self.if_absent.load(Ordering::Relaxed)
    }

    /// Where a row is, in words.
    pub fn place(&self, place: Place) -> String {
        match self.files.get(place.file) {
            Some(file) => format!("{file} line {}", place.line),
            None => format!("line {}", place.line),
        }
    }

    /// How many rows are rejected so far.
    pub fn rejected_rows(&self) -> u64 {
        self.counts.lock().rejected
    }

    /// A row would have been sent.
    pub fn checked(&self, row: &Row) {
        let mut counts = self.counts.lock();
        row.boards.iter().for_each(|board| counts.name(board));
        counts.applied += 1;
    }

    /// Rows go to a board.
    pub fn named(&self, board: &Arc<str>) {
        self.counts.lock().name(board);
    }

    pub fn applied(&self, applied: u64, changed: u64) {
        let mut counts = self.counts.lock();
        counts.applied += applied;
        counts.changed += changed;
    }

    /// A row was refused for its version, which is no news where only absent members are entered: an entry of
    /// its member, or a removal, is as new.
    pub fn outdated(&self, rows: u64) {
        let mut counts = self.counts.lock();
        counts.applied += rows;
        counts.outdated += rows;
    }

    /// Rows of a request that was sent again, whose version the service had already.
    pub fn repeated(&self, repeated: u64) {
        self.counts.lock().repeated += repeated;
    }

    /// # Errors
    /// When there are more than `--limit-errors` now, or the line cannot be written to the file of rejects.
    pub fn rejected(&self, line: RejectedLine) -> Result<(), ImportError> {
        let mut counts = self.counts.lock();
        counts.rejected += 1;
        *counts.rejected_by_code.entry(line.code.clone()).or_default() += 1;
        if let (Some(file), Some(path)) = (&mut counts.rejects, &self.rejects_path) {
            let name = self.files.get(line.place.file).filter(|_| self.files.len() > 1);
            let number = line.place.line.to_string();
            let record = name.into_iter().chain([&number, &line.code, &line.detail]);
            file.write_record(record).map_err(|error| rejects_error(path, error.into()))?;
        }
        // Of a document on one line, the first of its rows.
        counts.listed.entry(line.place).or_insert(line);
        if counts.listed.len() > LISTED_MAX {
            counts.listed.pop_last();
        }
        match self.rejected_max {
            Some(max) if counts.rejected > max => Err(ImportError::TooManyRejected(max)),
            _ => Ok(()),
        }
    }

    /// Whether anything came of any row.
    pub fn has_outcomes(&self) -> bool {
        let counts = self.counts.lock();
        counts.applied + counts.repeated + counts.rejected > 0
    }

    /// The summary, and whether no row was rejected.
    ///
    /// # Errors
    /// When the file of rejects cannot be completed.
    pub fn finish(&self, dry_run: bool) -> Result<(String, bool), ImportError> {
        let mut counts = self.counts.lock();
        let read = self.read.load(Ordering::Relaxed);
        self.progress.finish(read);
        if let (Some(file), Some(path)) = (&mut counts.rejects, &self.rejects_path) {
            file.flush().map_err(|error| rejects_error(path, error))?;
        }
        let place = |place| self.place(place);
        let if_absent = self.tells_absent();
        let mut summary = counts.summary(read, self.progress.elapsed(), (dry_run, if_absent), &place);
        let is_unchanged = counts.applied > 0 && counts.changed == 0 && !dry_run && !if_absent;
        if is_unchanged && self.has_times.load(Ordering::Relaxed) {
            summary += TIMES_STAY;
        }
        Ok((summary, counts.rejected == 0))
    }
}

impl Counts {
    fn name(&mut self, board: &Arc<str>) {
        // Rows that come together mostly share one name.
        if self.last_named.as_ref().is_none_or(|last| !Arc::ptr_eq(last, board)) {
            self.boards.insert(Arc::clone(board));
            self.last_named = Some(Arc::clone(board));
        }
    }

    fn boards_named(&self) -> String {
        let named = self.boards.iter().take(BOARDS_NAMED).map(|name| &**name).collect::<Vec<_>>().join(", ");
        match self.boards.len().checked_sub(BOARDS_NAMED) {
            Some(more @ 1..) => format!("{named} and {more} more"),
            Some(0) | None => named,
        }
    }

    fn summary(
        &self,
        read: u64,
        elapsed: Duration,
        (dry_run, if_absent): (bool, bool),
        place: &dyn Fn(Place) -> String,
    ) -> String {
        let line = |name: &str, value: &dyn Display| format!("{name:<14}{:>12}", value.to_string());
        let count = |name: &str, count: u64| line(name, &HumanCount(count));
        let mut lines = vec![count("rows read", read)];
        if !self.boards.is_empty() {
            lines.push(format!("{:<14}{}", "boards", self.boards_named()));
        }
        if dry_run {
            lines.push(count("well-formed", self.applied));
        } else {
            lines.push(count("applied", self.applied));
            lines.push(count("  changed", self.changed));
        }
        if if_absent && !dry_run {
            let by_version = match self.outdated {
                0 => String::new(),
                rows => format!("  {rows} of them by their versions, which may be those of removals"),
            };
            lines.push(count("there already", self.applied - self.changed) + &by_version);
        }
        if self.repeated > 0 {
            let or_there = if if_absent { ", or there already" } else { "" };
            lines.push(format!(
                "{}  applied by a first request whose answer was lost{or_there}",
                count("sent twice", self.repeated)
            ));
        }
        if !self.blanks.is_empty() {
            let each: Vec<String> =
                self.blanks.iter().map(|(text, rows)| format!("{rows} with {text:?}")).collect();
            let left_out = count("left out", self.blanks.values().sum());
            lines.push(format!("{left_out}  blank: {}", each.join(", ")));
        }
        lines.push(count("rejected", self.rejected));
        lines.extend(
            self.rejected_by_code
                .iter()
                .map(|(code, number)| count(&format!("  {}", escaped_text(code)), *number)),
        );
        lines.push(line("seconds", &format!("{:.2}", elapsed.as_secs_f64())));
        lines.push(count("rows/s", per_second(self.applied + self.repeated + self.rejected, elapsed)));
        let listed = self.listed.values();
        lines.extend(listed.map(|line| {
            escaped_text(&format!("{}: {}: {}", place(line.place), line.code, line.detail)).into_owned()
        }));
        let unlisted = self.rejected - u64::try_from(self.listed.len()).unwrap_or(0);
        if unlisted > 0 {
            lines.push(format!(
                "and {} more; --rejects FILE writes all of them to a file",
                HumanCount(unlisted)
            ));
        }
        lines.join("\n") + "\n"
    }
}

fn per_second(rows: u64, elapsed: Duration) -> u64 {
    u64::try_from(u128::from(rows) * 1_000_000 / elapsed.as_micros().max(1)).unwrap_or(u64::MAX)
}

fn rejects_error(path: &Path, source: io::Error) -> ImportError {
    ImportError::Rejects { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::job::RejectCode;

    fn tally(rejected_max: Option<u64>, rejects: Option<&Path>) -> Tally {
        Tally::new(Progress::new(Arc::default(), None), rejected_max, rejects, Vec::new())
            .expect("the folder is there")
    }

    fn reject(line: u64) -> RejectedLine {
        RejectedLine::new(line, RejectCode::BadScore, "\"that\" is not a number")
    }

    #[test]
    fn the_summary_lists_the_first_rejected_lines_in_order_and_the_file_has_all() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("rejects.csv");
        let tally = tally(None, Some(&path));
        for line in (2..=30).rev() {
            tally.read();
            tally.rejected(reject(line)).expect("the file can be written");
        }
        tally.read();
        tally.applied(1, 0);
        let (summary, all_applied) = tally.finish(false).expect("the file can be written");
        assert!(!all_applied);
        let listed: Vec<_> = summary.lines().filter(|line| line.starts_with("line ")).collect();
        assert_eq!(listed.len(), LISTED_MAX);
        assert_eq!(listed.first(), Some(&"line 2: bad_score: \"that\" is not a number"));
        assert_eq!(listed.last(), Some(&"line 21: bad_score: \"that\" is not a number"));
        assert!(summary.ends_with("and 9 more; --rejects FILE writes all of them to a file\n"), "{summary}");
        for line in ["rows read               30", "applied                  1", "  bad_score             29"]
        {
            assert!(summary.lines().any(|found| found == line), "{line:?} in {summary}");
        }
        let file = std::fs::read_to_string(path).expect("it was written");
        assert_eq!(file.lines().count(), 30);
        assert_eq!(file.lines().nth(1), Some("30,bad_score,\"\"\"that\"\" is not a number\""));
    }

    #[test]
    fn the_summary_names_the_boards_that_rows_went_to() {
        let tally = tally(None, None);
        for number in 0..12 {
            let boards = smallvec![Arc::from(format!("b{number:02}"))];
            tally.checked(&Row::new(1, String::new(), "m", None, false, boards));
        }
        let (summary, _) = tally.finish(true).expect("no file to write");
        let named = "boards        b00, b01, b02, b03, b04, b05, b06, b07, b08, b09 and 2 more";
        assert!(summary.lines().any(|line| line == named), "{summary}");
    }

    #[test]
    fn more_rejects_than_allowed_end_the_import() {
        let tally = tally(Some(1), None);
        assert!(tally.rejected(reject(2)).is_ok());
        let error = tally.rejected(reject(3)).expect_err("that is one too many");
        assert_eq!(error.to_string(), "stopped because more than 1 rows were rejected (--limit-errors)");
    }
}

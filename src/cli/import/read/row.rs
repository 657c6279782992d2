//! One row on its way to becoming a job, whatever file it came from.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::quality::FixedState;
use smallvec::SmallVec;

use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::job::{Op, RejectCode};
use crate::types::Timestamp;

/// A file's rows, in order. Lines that are no rows come as [`Parsed::Rejected`] and do not end it.
pub trait Rows: Iterator<Item = Result<Parsed, ImportError>> {}

impl<T: Iterator<Item = Result<Parsed, ImportError>>> Rows for T {}

/// Where a row is: in which of the files, from 0, and on which line, counted from 1, as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    pub file: usize,
    pub line: u64,
    /// Other rows may begin on the same line, as they do in a JSON document.
    pub is_shared: bool,
}

impl Place {
    /// Reads `--from-line`: a line of the first file, or `2:1235`.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (file, line) = text.split_once(':').unwrap_or(("1", text));
        let parsed =
            file.parse::<usize>().ok().and_then(|file| Some((file.checked_sub(1)?, line.parse().ok()?)));
        parsed.map(|(file, line)| Self { file, line, is_shared: false }).ok_or_else(|| {
            "it must be a line, or the number of a file, from 1, and a line of it, such as 2:1235".to_owned()
        })
    }

    /// As [`Place::parse`] has it.
    pub fn told(self) -> String {
        let line = self.line.max(1);
        if self.file == 0 { line.to_string() } else { format!("{}:{line}", self.file + 1) }
    }

    /// From where to go on once the row here is settled. Of a line with several rows, that is the line
    /// itself: none of them may be passed over.
    pub fn behind(self) -> Self {
        Self { line: self.line + u64::from(!self.is_shared), ..self }
    }
}

impl From<u64> for Place {
    /// A line of the only file.
    fn from(line: u64) -> Self {
        Self { line, ..Self::default() }
    }
}

/// Rows behind one row of a file that belong to it: the entry once more, that its member is hidden, the
/// member's profile. The last one comes first.
pub type Followers = Vec<Row>;

/// What a line turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Row(Row),
    Rejected(RejectedLine),
    /// Not a row: the definition of the board of the rows that follow.
    Board(BoardLine),
    /// A row without a score, as `--blank` has it; by what it has in its place.
    Blank(String),
}

/// The boards that a row names. Rows that come together mostly name the same one, and share its name.
pub type Boards = SmallVec<[Arc<str>; 1]>;

/// The name of the board of the last row.
#[derive(Debug, Default)]
pub struct LastBoard(Option<Arc<str>>);

impl LastBoard {
    pub fn is(&self, name: &str) -> bool {
        self.0.as_deref() == Some(name)
    }

    /// The same name, which becomes that of the last row.
    pub fn share(&mut self, name: &str) -> Arc<str> {
        match &self.0 {
            Some(last) if **last == *name => Arc::clone(last),
            _ => Arc::clone(self.0.insert(name.into())),
        }
    }
}

/// A well-formed row.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own of the row")]
pub struct Row {
    pub place: Place,
    /// The job, as JSON.
    pub job: String,
    /// Its own time. `None` also where the row was kept, and is known.
    pub at: Option<Timestamp>,
    /// It has no time of its own, and its place among equal scores is that in the file.
    pub takes_time: bool,
    /// Applying it twice differs from applying it once.
    pub adds: bool,
    /// Whether it adds depends on the policies of its boards.
    pub is_undecided: bool,
    /// The boards that it names; empty for a job on every board.
    pub boards: Boards,
    pub member_hash: u64,
    /// It gives the entry of the row before it the time of its last update, and is no row of the file.
    pub is_repeat: bool,
    /// Why its score is none of a board of integers, and the option that makes it one; `None`: it is.
    pub no_integer: Option<Box<str>>,
}

impl Row {
    /// `op` and `has_version` are as the job has them, with the defaults filled in.
    pub fn new(
        place: impl Into<Place>,
        job: String,
        member: &str,
        op: Option<&str>,
        has_version: bool,
        boards: Boards,
    ) -> Self {
        let place = place.into();
        let is_undecided = op.is_none() && !has_version;
        let adds = op == Some(Op::Incr.name()) && !has_version;
        let member_hash = FixedState::default().hash_one(member);
        Self {
            place,
            job,
            at: None,
            takes_time: false,
            adds,
            is_undecided,
            boards,
            member_hash,
            is_repeat: false,
            no_integer: None,
        }
    }

    /// Gives a row without a time its own.
    pub fn set_time(&mut self, at: Timestamp) {
        self.takes_time = false;
        let mut job = std::mem::take(&mut self.job).into_bytes();
        if job.pop() == Some(b'}') {
            job.extend_from_slice(b",\"at\":\"");
            at.append_to(&mut job);
            job.extend_from_slice(b"\"}");
        }
        self.job = String::from_utf8(job).expect("a text and a time are one");
    }

    /// The same, in want of a time.
    pub fn without_time(self) -> Self {
        Self { takes_time: true, ..self }
    }

    /// The same score once more, at the time of the entry's last update. An equal score keeps its place among
    /// ties, which is that of the time at which it was reached.
    ///
    /// # Arguments
    /// `job`: with that time.
    pub fn repeated(&self, job: String) -> Self {
        let (boards, no_integer) = (self.boards.clone(), self.no_integer.clone());
        Self { job, boards, no_integer, takes_time: false, is_repeat: true, ..*self }
    }

    /// Which of `lanes` (at least 1) sends it: always the same for a member.
    pub fn lane(&self, lanes: usize) -> usize {
        let lanes = u64::try_from(lanes).unwrap_or(1);
        usize::try_from(self.member_hash % lanes).unwrap_or(0)
    }
}

/// The version of the first of two jobs that make an entry of a version: a service that has the entry already
/// refuses both.
pub fn version_before(version: u64) -> u64 {
    version.saturating_sub(1)
}

/// A line that was refused, here or by the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedLine {
    pub place: Place,
    pub code: String,
    pub detail: String,
}

impl RejectedLine {
    pub fn new(place: impl Into<Place>, code: RejectCode, detail: impl Into<String>) -> Self {
        Self { place: place.into(), code: code.name().to_owned(), detail: detail.into() }
    }
}

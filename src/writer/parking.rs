//! Parked jobs: they wait for the definition of a board, where definitions come through the queue.
//!
//! They are stored on disk in **lines**. All parked jobs of a member are in one line, in their order, and a
//! line is unparked from its front, so a member's jobs apply in their order. While jobs are in a member's
//! line, its next job is appended there, even if its boards are defined. A member has a line of its own,
//! unless a great many lines are in use: further members then share lines. So the memory for lines is
//! bounded, however many jobs are parked. Of the jobs themselves, only those of the batch being planned are
//! in memory.
//!
//! Knows: which lines there are, and how many jobs are in each. Must not know: how a definition is decided,
//! or where the jobs are kept. Which jobs are parked and unparked follows from the messages alone, so every
//! replica and every replay parks and unparks the same jobs at the same messages. In particular, the order of
//! lines ([`order`]) does not depend on when this process started.
//!
//! [`order`]: crate::writer::order

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use crate::job::{Job, JobPlace};
use crate::types::{BoardName, MemberId, Sequence, Timestamp, fnv1a_32};
use crate::writer::board_change::MAX_BOARDS;
use crate::writer::long_wait::LongWait;
use crate::writer::order::LineOrder;
use crate::writer::outcome::UnparkedOutcome;
use crate::writer::parked_names::ParkedNames;
use crate::writer::parked_places::{BoardPlaces, ParkedChange, ParkedChanges};
use crate::writer::wanted::{WantedBoards, WantedReporter};

/// Once this many lines are in use, further members share lines. A line in use takes some hundred bytes. The
/// number is arbitrary, but must be the same on all replicas.
pub const OWN_LINES: usize = 1 << 15;
/// Number of shared lines. It is part of the disk format, as is the function from a member to its line.
pub const SHARED_LINES: u32 = 1 << 14;
/// With this many jobs, a line takes no other that waits for a board itself: each may wait for another board,
/// and all that a member sends later waits behind them. The number must be the same on all replicas.
pub const JOBS_OF_LINE_MAX: usize = 10_000;
/// Marks the number of a shared line.
const SHARED: u32 = 1 << 31;
/// The lowest bit of a member's hash that selects its shared line.
const SHARED_FROM_BIT: u32 = 16;
// Two members whose hashes select the same own line must also have the same shared line. Otherwise one of
// them could have jobs in its shared line when the other one opens their own line; the first member's next
// job would go to the own line, and overtake those in the shared one. So the bits that select a shared line
// are among those that select an own line.
const _: () = assert!(SHARED_LINES.is_power_of_two() && SHARED_LINES <= SHARED >> SHARED_FROM_BIT);

/// With fewer waiting clients than this, those that disconnected are not looked for.
const WAITERS_MIN: usize = 1_024;
/// Boards looked at per iteration of the writer's loop when all wanted boards are reported again: a
/// millisecond at most.
const REPORTED_PER_ITERATION: usize = 4_096;

/// A job that waits for a board, or behind another job of its member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedJob {
    /// The timestamp of the message that brought it: the time of a job that names none.
    pub timestamp: Timestamp,
    pub job: Job,
    /// Index, among the boards that it names, of the one that it waits for, as of when it was last looked at.
    pub board: u32,
}

impl ParkedJob {
    /// The board that it is filed under; `None` if it names none.
    pub fn filed_under(&self) -> Option<&BoardName> {
        usize::try_from(self.board).ok().and_then(|board| self.job.awaited_boards().nth(board))
    }
}

/// A client that waits for the outcome of a parked job.
pub struct OutcomeWaiter {
    pub place: JobPlace,
    pub line: u32,
    pub sender: oneshot::Sender<UnparkedOutcome>,
}

/// A line in use.
struct Line {
    /// [`ParkedJob::board`] of the first one.
    board: u32,
    /// How many there are.
    jobs: usize,
    /// The last of them, which came with the batch being planned and are not on disk yet.
    fresh: VecDeque<(JobPlace, ParkedJob)>,
}

impl Line {
    fn on_disk(&self) -> usize {
        self.jobs - self.fresh.len()
    }
}

/// A shard's parked jobs.
pub struct Parking {
    /// Whether jobs create boards. If not, a job for an unknown board is rejected and never parked.
    pub auto_create: bool,
    /// The board limit. On a shard that has reached it, no job waits for a further board.
    pub boards_max: usize,
    /// [`OWN_LINES`]; tests set fewer.
    pub own_lines: usize,
    pub shared_lines: u32,
    /// [`JOBS_OF_LINE_MAX`]; tests set fewer.
    pub jobs_of_line_max: usize,
    wants: WantedReporter,
    lines: HashMap<u32, Line>,
    order: LineOrder,
    names: ParkedNames,
    long_wait: LongWait,
    jobs: usize,
    /// Lines with jobs that are not on disk yet.
    with_fresh: BTreeSet<u32>,
    /// The clients that wait for outcomes of parked jobs.
    waiters: HashMap<JobPlace, OutcomeWaiter>,
    /// With this many of them, those that disconnected are removed.
    waiters_max: usize,
}

/// A line that was taken out of the order. [`Parking::check_in_line`] puts it back.
pub struct CheckedOutLine {
    pub line: u32,
    pub first: JobPlace,
    /// [`ParkedJob::board`] of that job.
    pub board: u32,
    /// How many of its jobs are on disk; the others follow them, in `fresh`.
    pub on_disk: usize,
    pub fresh: VecDeque<(JobPlace, ParkedJob)>,
}

impl Parking {
    pub fn new(auto_create: bool, wanted: Arc<WantedBoards>) -> Self {
        Self {
            auto_create,
            boards_max: MAX_BOARDS,
            own_lines: OWN_LINES,
            shared_lines: SHARED_LINES,
            jobs_of_line_max: JOBS_OF_LINE_MAX,
            wants: WantedReporter::new(wanted),
            lines: HashMap::new(),
            order: LineOrder::default(),
            names: ParkedNames::default(),
            long_wait: LongWait::default(),
            jobs: 0,
            with_fresh: BTreeSet::new(),
            waiters: HashMap::new(),
            waiters_max: WAITERS_MIN,
        }
    }

    /// Replaces the lines in memory by those on disk: for each, its number of jobs, and the first one.
    ///
    /// # Arguments
    /// `names`: the boards that all the jobs name.
    pub fn load(
        &mut self,
        lines: impl IntoIterator<Item = (u32, usize, JobPlace, ParkedJob)>,
        names: ParkedNames,
        is_known: impl Fn(&BoardName) -> bool,
    ) {
        self.lines.clear();
        self.with_fresh.clear();
        (self.order, self.names, self.jobs) = (LineOrder::default(), names, 0);
        for (line, jobs, first, parked) in lines {
            self.lines.insert(line, Line { board: parked.board, jobs, fresh: VecDeque::new() });
            self.jobs += jobs;
            self.file(line, first, &parked, &is_known);
        }
    }

    /// What has changed since the last call of where jobs are parked, for readers.
    pub fn take_changes(&mut self) -> ParkedChanges {
        let mut lowest: BTreeMap<BoardName, BoardPlaces> = BTreeMap::new();
        for (board, sequence) in self.order.take_changed() {
            lowest.entry(board).or_default().filed = Some(sequence);
        }
        for (board, sequence) in self.names.take_changed() {
            lowest.entry(board).or_default().named = Some(sequence);
        }
        let boards = lowest.into_iter().map(|(board, lowest)| {
            let now = BoardPlaces { filed: self.order.first_of(&board), named: self.names.since(&board) };
            ParkedChange { board, lowest, now }
        });
        let (everywhere, oldest) = (self.names.everywhere_since(), self.order.oldest());
        ParkedChanges { boards: boards.collect(), everywhere, oldest }
    }

    /// A job of a line that is checked out is unparked.
    pub fn note_unparked(&mut self, job: &Job) {
        self.names.remove(job);
    }

    /// Takes the clients that wait for outcomes of parked jobs.
    pub fn take_waiters(&mut self) -> Vec<OutcomeWaiter> {
        self.waiters.drain().map(|(_, waiter)| waiter).collect()
    }

    /// How many jobs are parked.
    pub fn len(&self) -> usize {
        self.jobs
    }

    pub fn is_empty(&self) -> bool {
        self.jobs == 0
    }

    /// Whether there may be jobs that can be unparked.
    pub fn has_ready(&self) -> bool {
        self.order.has_next()
    }

    /// The shared line that a member's hash selects.
    pub fn shared_line(&self, member: &MemberId) -> u32 {
        shared_line(member, self.shared_lines)
    }

    /// The line in use that this member's jobs are in, or must be appended to. While its own line is in use,
    /// all of them are there; else, while its shared line is in use, they may be in that one.
    fn line_in_use(&self, member: &MemberId) -> Option<u32> {
        if self.jobs == 0 {
            return None;
        }
        let lines = [own_line(member), self.shared_line(member)];
        lines.into_iter().find(|line| self.lines.contains_key(line))
    }

    /// Whether jobs of this member may be parked, so that its next job has to wait behind them.
    pub fn has_parked(&self, member: &MemberId) -> bool {
        self.line_in_use(member).is_some()
    }

    /// Whether the line of this member takes no other job that waits for a board.
    pub fn is_line_full(&self, member: &MemberId) -> bool {
        let line = self.line_in_use(member).and_then(|line| self.lines.get(&line));
        line.is_some_and(|line| line.jobs >= self.jobs_of_line_max)
    }

    /// Parks a job, and sets in it which board it waits for. Returns the line.
    pub fn park(
        &mut self,
        place: JobPlace,
        parked: &mut ParkedJob,
        is_known: impl Fn(&BoardName) -> bool,
    ) -> u32 {
        let member = &parked.job.member;
        let id = self.line_in_use(member).unwrap_or_else(|| {
            if self.lines.len() < self.own_lines { own_line(member) } else { self.shared_line(member) }
        });
        if self.auto_create {
            self.wants.add(parked.job.awaited_boards().filter(|board| !is_known(board)));
        }
        parked.board = (0..)
            .zip(parked.job.awaited_boards())
            .find(|(_, board)| !is_known(board))
            .map_or(0, |(at, _)| at);
        let line = self.lines.entry(id);
        let line = line.or_insert_with(|| Line { board: parked.board, jobs: 0, fresh: VecDeque::new() });
        line.jobs += 1;
        line.fresh.push_back((place, parked.clone()));
        let is_first = line.jobs == 1;
        self.jobs += 1;
        self.names.add(&parked.job, place.0);
        self.with_fresh.insert(id);
        if is_first {
            self.file(id, place, parked, is_known);
        }
        id
    }

    /// The planned batch is committed: all parked jobs are on disk.
    pub fn note_committed(&mut self) {
        for line in std::mem::take(&mut self.with_fresh) {
            if let Some(line) = self.lines.get_mut(&line) {
                line.fresh = VecDeque::new();
            }
        }
    }

    /// A board was defined: lines that wait for it are ready.
    pub fn note_defined(&mut self, board: &BoardName) {
        self.order.note_board(board, true);
    }

    /// A board was dropped: lines that are filed under it wait for its next definition.
    pub fn note_dropped(&mut self, board: &BoardName) {
        if self.order.note_board(board, false) && self.auto_create {
            self.wants.add(std::iter::once(board));
        }
    }

    /// Sets whether the shard is at its board limit. If so, jobs that wait for another board are unparked,
    /// and are rejected.
    pub fn set_at_board_limit(&mut self, at_board_limit: bool) {
        self.order.set_at_board_limit(at_board_limit);
    }

    /// Takes the next line: of the ready ones, the one with the oldest first job.
    pub fn check_out_line(&mut self) -> Option<CheckedOutLine> {
        let (first, id) = self.order.take_next()?;
        let line = self.lines.get_mut(&id)?;
        let (board, on_disk) = (line.board, line.on_disk());
        Some(CheckedOutLine { line: id, first, board, on_disk, fresh: std::mem::take(&mut line.fresh) })
    }

    /// Puts a line back after some of its jobs were unparked.
    ///
    /// # Arguments
    /// `unparked`: how many of its jobs were unparked. `fresh`: the rest of [`CheckedOutLine::fresh`].
    /// `next`: the job that is first now, with the board that it waits for; `None` if no job is left.
    pub fn check_in_line(
        &mut self,
        id: u32,
        unparked: usize,
        fresh: VecDeque<(JobPlace, ParkedJob)>,
        next: Option<&(JobPlace, ParkedJob)>,
        is_known: impl Fn(&BoardName) -> bool,
    ) {
        self.jobs -= unparked;
        let Some((place, parked)) = next else {
            self.lines.remove(&id);
            self.with_fresh.remove(&id);
            return;
        };
        if let Some(line) = self.lines.get_mut(&id) {
            line.board = parked.board;
            line.jobs -= unparked;
            line.fresh = fresh;
        }
        if self.auto_create {
            self.wants.add(parked.filed_under().filter(|board| !is_known(board)).into_iter());
        }
        self.file(id, *place, parked, is_known);
    }

    fn file(&mut self, id: u32, first: JobPlace, parked: &ParkedJob, is_known: impl Fn(&BoardName) -> bool) {
        let board = parked.filed_under();
        self.order.file((first, id), board.cloned(), board.is_none_or(is_known));
    }

    /// Registers a client that waits for a parked job. The receiver gets the outcome once the job is
    /// unparked.
    pub fn add_waiter(&mut self, place: JobPlace, line: u32) -> oneshot::Receiver<UnparkedOutcome> {
        let (sender, receiver) = oneshot::channel();
        self.requeue_waiter(OutcomeWaiter { place, line, sender });
        receiver
    }

    /// Registers a client again whose job is still parked after a batch failed.
    pub fn requeue_waiter(&mut self, waiter: OutcomeWaiter) {
        if self.waiters.len() >= self.waiters_max {
            self.waiters.retain(|_, waiter| !waiter.sender.is_closed());
            // The limit doubles, so that each client is looked at once or twice on average.
            self.waiters_max = WAITERS_MIN.max(2 * self.waiters.len());
        }
        self.waiters.insert(waiter.place, waiter);
    }

    /// Removes and returns the client that waits for a job's outcome.
    pub fn take_waiter(&mut self, place: JobPlace) -> Option<OutcomeWaiter> {
        // Usually empty: only writes over HTTP wait for outcomes.
        if self.waiters.is_empty() {
            return None;
        }
        self.waiters.remove(&place).filter(|waiter| !waiter.sender.is_closed())
    }

    /// Reports wanted boards: those that jobs named since the last call, and from time to time all that lines
    /// wait for, in case an earlier report was lost. Each call covers a part of them.
    pub fn report_wanted(&mut self) {
        if self.auto_create {
            self.wants.report(|from| self.order.wanted(from, REPORTED_PER_ITERATION));
        }
    }

    /// Notes which job has waited longest for a board. Returns whether it waits long, and the board if that
    /// is to be logged.
    ///
    /// # Arguments
    /// `applied`: the shard's sequence now.
    pub fn note_long_wait(&mut self, applied: Sequence, now: Instant) -> (bool, Option<&BoardName>) {
        self.long_wait.note(self.order.oldest_blocked(), applied, now)
    }

    /// Defers reports of wanted boards. They are all reported once this is no longer called.
    pub fn defer_wanted(&mut self) {
        self.wants.defer();
    }
}

/// A member's own line. Two members share it if their hashes collide, which is rare; their jobs then wait in
/// one order.
fn own_line(member: &MemberId) -> u32 {
    fnv1a_32(member.as_bytes()) & !SHARED
}

/// The lines that a member's parked jobs may be in: its own, and its shared one.
pub fn lines_of(member: &MemberId) -> [u32; 2] {
    [own_line(member), shared_line(member, SHARED_LINES)]
}

fn shared_line(member: &MemberId, shared_lines: u32) -> u32 {
    // The upper half: the lower bits chose the shard.
    SHARED | ((fnv1a_32(member.as_bytes()) >> SHARED_FROM_BIT) % shared_lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These numbers are on people's disks.
    #[test]
    fn a_members_lines_never_change() {
        let parking = Parking::new(true, Arc::default());
        // With the published vectors of FNV-1a.
        for (id, hash) in [("p42", 2_517_926_281_u32), ("alice", 2_267_157_479), ("日本", 2_670_128_721)] {
            let member = MemberId::new(id).expect("an id");
            assert_eq!(own_line(&member), hash & 0x7fff_ffff);
            assert_eq!(parking.shared_line(&member), 0x8000_0000 | ((hash >> 16) & 0x3fff));
        }
    }
}

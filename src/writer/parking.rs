//! Jobs that wait for the definition of a board, where definitions come through the queue.
//!
//! They wait on disk, in **lines**. All jobs of a member are in one line, in their order, and a line is freed
//! from its front: so a member's jobs apply in their order. A job of a member in whose line others wait,
//! waits behind them. A member has a line of its own, unless a great many members wait: those that come then
//! share lines. So what is known of lines in memory is bounded however many jobs wait; of the jobs themselves
//! only those are in memory that the batch being planned has brought.
//!
//! Knows: which lines there are, and how many jobs wait in each. Must not know: how a definition is decided,
//! or where the jobs are kept. What waits and what is freed follows from the messages alone, so that every
//! replica and every replay parks and frees the same jobs at the same messages: the order in which lines are
//! freed ([`order`]) does not depend on when this process started.
//!
//! [`order`]: crate::writer::order

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::job::Job;
use crate::types::{BoardName, MemberId, Timestamp, fnv1a_32};
use crate::writer::order::Order;
pub use crate::writer::order::Place;
use crate::writer::outcome::Freed;
use crate::writer::registry::MAX_BOARDS;
use crate::writer::wanted::{WantedBoards, Wants};

/// While so many lines are in use, members that begin to wait share lines. A line takes some hundred bytes
/// while jobs wait in it. Any number would do, but it is the same on all replicas.
pub const OWN_LINES: usize = 1 << 15;
/// Lines that are shared. It is part of the disk format, as is how a member's line is told.
pub const SHARED_LINES: u32 = 1 << 14;
/// Marks the number of a shared line.
const SHARED: u32 = 1 << 31;
/// The lowest bit of a member's hash that tells its shared line.
const SHARED_FROM_BIT: u32 = 16;
// Members of the same line of their own have the same shared line. Else one of them could wait in the shared
// line while another comes to use their own, and the first one's next job would go there and overtake those
// that wait already. So the bits that tell a shared line are among those that tell a line of one's own.
const _: () = assert!(SHARED_LINES.is_power_of_two() && SHARED_LINES <= SHARED >> SHARED_FROM_BIT);

/// Jobs asked for before askers that went away are looked for: few enough not to notice.
const ASKED_MIN: usize = 1_024;
/// Boards that lines wait for and that are looked at in a turn, to be told once more: a millisecond's worth
/// at most.
const TOLD_PER_TURN: usize = 4_096;

/// A job that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedJob {
    /// The timestamp of the message that brought it: the time of a job that names none.
    pub timestamp: Timestamp,
    pub job: Job,
    /// Which of the boards that it names it waits for, as of when it was last looked at.
    pub board: u32,
}

impl ParkedJob {
    /// The board that it is filed under; `None` if it names none.
    #[must_use]
    pub fn filed_under(&self) -> Option<&BoardName> {
        usize::try_from(self.board).ok().and_then(|board| self.job.boards().nth(board))
    }
}

/// Who waits for the outcome of a job that waits.
pub struct Asker {
    pub place: Place,
    pub line: u32,
    pub tell: oneshot::Sender<Freed>,
}

/// Jobs that wait for a board, or behind one that does.
struct Line {
    /// [`ParkedJob::board`] of the first one.
    board: u32,
    /// How many there are.
    jobs: usize,
    /// The last of them, which came with the batch being planned and are not on disk yet.
    fresh: VecDeque<(Place, ParkedJob)>,
}

impl Line {
    fn on_disk(&self) -> usize {
        self.jobs - self.fresh.len()
    }
}

/// A shard's waiting jobs.
pub struct Parking {
    /// Whether a job may want a board; if not, one for an unknown board is rejected and never waits.
    pub auto_create: bool,
    /// Boards that there can be. On a shard that has so many, no job waits for another.
    pub boards_max: usize,
    /// [`OWN_LINES`] and [`SHARED_LINES`], but in tests.
    pub own_lines: usize,
    pub shared_lines: u32,
    wants: Wants,
    lines: HashMap<u32, Line>,
    order: Order,
    jobs: usize,
    /// Lines with jobs that are not on disk yet.
    with_fresh: BTreeSet<u32>,
    /// Who waits for the outcomes of jobs.
    asked: HashMap<Place, Asker>,
    /// With so many of them, those that went away are looked for.
    asked_max: usize,
}

/// A line whose turn it is, to be given back by [`Parking::give_back`].
pub struct Turn {
    pub line: u32,
    pub first: Place,
    /// [`ParkedJob::board`] of that job.
    pub board: u32,
    /// How many of its jobs are on disk; the others are in `fresh`, behind those.
    pub on_disk: usize,
    pub fresh: VecDeque<(Place, ParkedJob)>,
}

impl Parking {
    #[must_use]
    pub fn new(auto_create: bool, wanted: Arc<WantedBoards>) -> Self {
        Self {
            auto_create,
            boards_max: MAX_BOARDS,
            own_lines: OWN_LINES,
            shared_lines: SHARED_LINES,
            wants: Wants::new(wanted),
            lines: HashMap::new(),
            order: Order::default(),
            jobs: 0,
            with_fresh: BTreeSet::new(),
            asked: HashMap::new(),
            asked_max: ASKED_MIN,
        }
    }

    /// Takes over what is on disk, in place of what was there: lines, how many jobs each has, and its first
    /// one.
    pub fn load(
        &mut self,
        lines: impl IntoIterator<Item = (u32, usize, Place, ParkedJob)>,
        is_known: impl Fn(&BoardName) -> bool,
    ) {
        self.lines.clear();
        self.with_fresh.clear();
        (self.order, self.jobs) = (Order::default(), 0);
        for (line, jobs, first, parked) in lines {
            self.lines.insert(line, Line { board: parked.board, jobs, fresh: VecDeque::new() });
            self.jobs += jobs;
            self.file(line, first, &parked, &is_known);
        }
    }

    /// How many jobs wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs == 0
    }

    /// Whether there may be jobs that need to wait no longer.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        self.order.has_next()
    }

    /// The line that a member shares with others, whoever comes to be in it.
    #[must_use]
    pub fn shared_line(&self, member: &MemberId) -> u32 {
        shared_line(member, self.shared_lines)
    }

    /// The line in use in which this member's jobs wait, or would have to. While a line of its own is in use,
    /// all of them are there; else, while the shared one is, they may be in that one.
    fn line_in_use(&self, member: &MemberId) -> Option<u32> {
        if self.jobs == 0 {
            return None;
        }
        let lines = [own_line(member), self.shared_line(member)];
        lines.into_iter().find(|line| self.lines.contains_key(line))
    }

    /// Whether a job of this member has to wait behind others.
    #[must_use]
    pub fn holds(&self, member: &MemberId) -> bool {
        self.line_in_use(member).is_some()
    }

    /// Has a job wait, for boards that are unknown or behind another job. Gives the line, and says in the job
    /// what it waits for.
    pub fn park(
        &mut self,
        place: Place,
        parked: &mut ParkedJob,
        is_known: impl Fn(&BoardName) -> bool,
    ) -> u32 {
        let member = &parked.job.member;
        let id = self.line_in_use(member).unwrap_or_else(|| {
            if self.lines.len() < self.own_lines { own_line(member) } else { self.shared_line(member) }
        });
        if self.auto_create {
            self.wants.add(parked.job.boards().filter(|board| !is_known(board)));
        }
        parked.board =
            (0..).zip(parked.job.boards()).find(|(_, board)| !is_known(board)).map_or(0, |(at, _)| at);
        let line = self.lines.entry(id);
        let line = line.or_insert_with(|| Line { board: parked.board, jobs: 0, fresh: VecDeque::new() });
        line.jobs += 1;
        line.fresh.push_back((place, parked.clone()));
        let is_first = line.jobs == 1;
        self.jobs += 1;
        self.with_fresh.insert(id);
        if is_first {
            self.file(id, place, parked, is_known);
        }
        id
    }

    /// The batch that was planned is committed: all that waits is on disk.
    pub fn note_committed(&mut self) {
        for line in std::mem::take(&mut self.with_fresh) {
            if let Some(line) = self.lines.get_mut(&line) {
                line.fresh = VecDeque::new();
            }
        }
    }

    /// A board is defined: lines that wait for it may go on.
    pub fn note_defined(&mut self, board: &BoardName) {
        self.order.note_board(board, true);
    }

    /// A board is dropped: lines that were not freed yet wait for its next life.
    pub fn note_dropped(&mut self, board: &BoardName) {
        if self.order.note_board(board, false) && self.auto_create {
            self.wants.add(std::iter::once(board));
        }
    }

    /// Whether the shard has as many boards as there can be. What waits for another one may go on, and be
    /// rejected.
    pub fn note_has_all(&mut self, has_all: bool) {
        self.order.note_has_all(has_all);
    }

    /// Takes the line whose turn it is: of those that may go on, the one with the oldest first job.
    pub fn take_turn(&mut self) -> Option<Turn> {
        let (first, id) = self.order.take_next()?;
        let line = self.lines.get_mut(&id)?;
        let (board, on_disk) = (line.board, line.on_disk());
        Some(Turn { line: id, first, board, on_disk, fresh: std::mem::take(&mut line.fresh) })
    }

    /// Gives back a line after its turn.
    ///
    /// # Arguments
    /// `freed`: how many of its jobs wait no longer. `fresh`: what is left of [`Turn::fresh`]. `next`: the
    /// job that is first now, which says what it waits for; `None` if no job is left.
    pub fn give_back(
        &mut self,
        id: u32,
        freed: usize,
        fresh: VecDeque<(Place, ParkedJob)>,
        next: Option<&(Place, ParkedJob)>,
        is_known: impl Fn(&BoardName) -> bool,
    ) {
        self.jobs -= freed;
        let Some((place, parked)) = next else {
            self.lines.remove(&id);
            self.with_fresh.remove(&id);
            return;
        };
        if let Some(line) = self.lines.get_mut(&id) {
            line.board = parked.board;
            line.jobs -= freed;
            line.fresh = fresh;
        }
        if self.auto_create {
            self.wants.add(parked.filed_under().filter(|board| !is_known(board)).into_iter());
        }
        self.file(id, *place, parked, is_known);
    }

    fn file(&mut self, id: u32, first: Place, parked: &ParkedJob, is_known: impl Fn(&BoardName) -> bool) {
        let board = parked.filed_under();
        self.order.file((first, id), board.cloned(), board.is_none_or(is_known));
    }

    /// The outcome of a job that waits in a line, once it is freed.
    pub fn ask(&mut self, place: Place, line: u32) -> oneshot::Receiver<Freed> {
        let (tell, told) = oneshot::channel();
        self.ask_again(Asker { place, line, tell });
        told
    }

    /// Whoever asked for the outcome of a job that still waits, after all, goes on waiting.
    pub fn ask_again(&mut self, asker: Asker) {
        if self.asked.len() >= self.asked_max {
            self.asked.retain(|_, asker| !asker.tell.is_closed());
            // Each is looked at once or twice, however many there are.
            self.asked_max = ASKED_MIN.max(2 * self.asked.len());
        }
        self.asked.insert(asker.place, asker);
    }

    /// Who waits for the outcome of a job.
    pub fn take_asked(&mut self, place: Place) -> Option<Asker> {
        // Only writes over HTTP ask.
        if self.asked.is_empty() {
            return None;
        }
        self.asked.remove(&place).filter(|asker| !asker.tell.is_closed())
    }

    /// Tells that boards are wanted: those that jobs named since the last call, and now and then all that
    /// lines wait for, a part of them at each call, should the first time have come to nothing.
    pub fn tell_wanted(&mut self) {
        if self.auto_create {
            self.wants.tell(|from| self.order.wanted(from, TOLD_PER_TURN));
        }
    }

    /// Nobody is told what is wanted for the time being. What is wanted then is told later.
    pub fn defer_wanted(&mut self) {
        self.wants.defer();
    }
}

/// The line of a member that shares it with nobody, or hardly ever: two that do wait along with one another.
fn own_line(member: &MemberId) -> u32 {
    fnv1a_32(member.as_bytes()) & !SHARED
}

/// The lines in which a member's jobs may wait: its own, and one that it shares.
#[must_use]
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

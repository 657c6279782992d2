//! Jobs that wait for the definition of a board, where definitions come through the queue.
//!
//! They wait on disk, in **lines**. All jobs of a member are in one line, in their order, and a line is freed from its
//! front: so a member's jobs apply in their order. A job of a member in whose line others wait, waits behind them. A member
//! has a line of its own, unless a great many members wait: those that come then share lines. So what is known of lines in
//! memory is bounded however many jobs wait; of the jobs themselves only those are in memory that the batch being
//! planned has brought.
//!
//! Knows: which lines there are, and which of them wait for which board. Must not know: how a definition is decided, or
//! where the jobs are kept. What waits and what is freed follows from the messages alone, so that every replica and every
//! replay parks and frees the same jobs at the same messages: the order in which lines are freed is that of the
//! places of their first jobs, which does not depend on when this process started.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::job::{Job, Targets};
use crate::types::{BoardName, MemberId, Sequence, Timestamp, fnv1a_32};
use crate::writer::outcome::Freed;
use crate::writer::registry::MAX_BOARDS;
use crate::writer::wanted::{WantedBoards, Wants};

/// While so many lines are in use, members that begin to wait share lines. A line takes some hundred bytes while jobs wait in
/// it, and a definition may have to look at every one: some milliseconds in all.
pub const OWN_LINES: usize = 1 << 15;
/// Lines that are shared. It is part of the disk format, as is how a member's line is told.
pub const SHARED_LINES: u32 = 1 << 14;
/// Marks the number of a shared line.
const SHARED: u32 = 1 << 31;

/// A message, and a job's place in it.
pub type Place = (Sequence, u32);

/// A job that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedJob {
    /// The timestamp of the message that brought it: the time of a job that names none.
    pub timestamp: Timestamp,
    pub job: Job,
}

/// Jobs that wait for the same boards as the first of them.
struct Line {
    /// The place of the first one.
    first: Place,
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
    /// Lines whose first job waits for a board: for the first one that it names and the shard does not know.
    by_board: HashMap<BoardName, BTreeSet<u32>>,
    /// Lines whose first job may wait no longer, by its place.
    ready: BTreeSet<(Place, u32)>,
    jobs: usize,
    /// Lines with jobs that are not on disk yet.
    with_fresh: BTreeSet<u32>,
    /// No board will come that the shard does not have: nobody waits for one any longer.
    has_all: bool,
    /// Who waits for the outcomes of jobs.
    asked: HashMap<Place, oneshot::Sender<Freed>>,
}

/// A line whose turn it is, to be given back by [`Parking::give_back`].
pub struct Turn {
    pub line: u32,
    pub first: Place,
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
            by_board: HashMap::new(),
            ready: BTreeSet::new(),
            jobs: 0,
            with_fresh: BTreeSet::new(),
            has_all: false,
            asked: HashMap::new(),
        }
    }

    /// Takes over what is on disk, in place of what was there: lines, how many jobs each has, and its first one.
    pub fn load(
        &mut self,
        lines: impl IntoIterator<Item = (u32, usize, Place, ParkedJob)>,
        is_known: impl Fn(&BoardName) -> bool,
    ) {
        self.lines.clear();
        self.by_board.clear();
        self.ready.clear();
        self.with_fresh.clear();
        (self.jobs, self.has_all) = (0, false);
        for (line, jobs, first, parked) in lines {
            self.lines.insert(line, Line { first, jobs, fresh: VecDeque::new() });
            self.jobs += jobs;
            self.put_in_order(line, first, boards(&parked.job).find(|board| !is_known(board)).cloned());
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
        !self.ready.is_empty()
    }

    /// The line that a member shares with others, whoever comes to be in it.
    #[must_use]
    pub fn shared_line(&self, member: &MemberId) -> u32 {
        // The upper half: the lower bits chose the shard.
        SHARED | ((fnv1a_32(member.as_bytes()) >> 16) % self.shared_lines)
    }

    /// The line in use in which this member's jobs wait, or would have to. While a line of its own is in use, all of them
    /// are there; else, while the shared one is, they may be in that one.
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

    /// Has a job wait, for boards that are unknown or behind another job. Gives the line.
    pub fn park(&mut self, place: Place, parked: ParkedJob, is_known: impl Fn(&BoardName) -> bool) -> u32 {
        let member = &parked.job.member;
        let id = self.line_in_use(member).unwrap_or_else(|| {
            if self.lines.len() < self.own_lines { own_line(member) } else { self.shared_line(member) }
        });
        let unknown: Vec<&BoardName> = boards(&parked.job).filter(|board| !is_known(board)).collect();
        if self.auto_create {
            self.wants.add(unknown.iter().copied());
        }
        let waits_for = unknown.first().copied().cloned();
        let line =
            self.lines.entry(id).or_insert_with(|| Line { first: place, jobs: 0, fresh: VecDeque::new() });
        line.jobs += 1;
        line.fresh.push_back((place, parked));
        let is_first = line.jobs == 1;
        self.jobs += 1;
        self.with_fresh.insert(id);
        if is_first {
            self.put_in_order(id, place, waits_for);
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
        for line in self.by_board.remove(board).unwrap_or_default() {
            self.make_ready(line);
        }
    }

    /// Whether the shard has as many boards as there can be. What waits for another one may go on, and be rejected.
    pub fn note_has_all(&mut self, has_all: bool) {
        if has_all && !self.has_all {
            let lines: Vec<u32> = self.by_board.drain().flat_map(|(_, lines)| lines).collect();
            for line in lines {
                self.make_ready(line);
            }
        }
        self.has_all = has_all;
    }

    fn make_ready(&mut self, id: u32) {
        if let Some(line) = self.lines.get(&id) {
            self.ready.insert((line.first, id));
        }
    }

    /// Takes the line whose turn it is: of those that may go on, the one with the oldest first job.
    pub fn take_turn(&mut self) -> Option<Turn> {
        let (first, id) = self.ready.pop_first()?;
        let line = self.lines.get_mut(&id)?;
        let on_disk = line.on_disk();
        Some(Turn { line: id, first, on_disk, fresh: std::mem::take(&mut line.fresh) })
    }

    /// Gives back a line after its turn.
    ///
    /// # Arguments
    /// `freed`: how many of its jobs wait no longer. `fresh`: what is left of [`Turn::fresh`]. `next`: the place of the
    /// job that is first now, and the board that it waits for, if it does; `None` if no job is left.
    pub fn give_back(
        &mut self,
        id: u32,
        freed: usize,
        fresh: VecDeque<(Place, ParkedJob)>,
        next: Option<(Place, Option<BoardName>)>,
    ) {
        self.jobs -= freed;
        let Some((first, waits_for)) = next else {
            self.lines.remove(&id);
            self.with_fresh.remove(&id);
            return;
        };
        if let Some(line) = self.lines.get_mut(&id) {
            line.jobs -= freed;
            line.first = first;
            line.fresh = fresh;
        }
        if self.auto_create {
            self.wants.add(waits_for.iter());
        }
        self.put_in_order(id, first, waits_for);
    }

    fn put_in_order(&mut self, id: u32, first: Place, waits_for: Option<BoardName>) {
        match waits_for {
            Some(board) => {
                self.by_board.entry(board).or_default().insert(id);
            }
            None => {
                self.ready.insert((first, id));
            }
        }
    }

    /// The outcome of a job that waits, once it is freed.
    pub fn ask(&mut self, place: Place) -> oneshot::Receiver<Freed> {
        let (tell, told) = oneshot::channel();
        self.asked.insert(place, tell);
        told
    }

    /// Who waits for the outcome of a job.
    pub fn take_asked(&mut self, place: Place) -> Option<oneshot::Sender<Freed>> {
        // Only writes over HTTP ask.
        if self.asked.is_empty() {
            return None;
        }
        self.asked.remove(&place).filter(|tell| !tell.is_closed())
    }

    /// Tells that boards are wanted: those that jobs named since the last call, and now and then all that lines wait for,
    /// should the first time have come to nothing.
    pub fn tell_wanted(&mut self) {
        let all = self.by_board.keys();
        if self.auto_create && self.wants.tell(all) {
            self.asked.retain(|_, tell| !tell.is_closed());
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

/// The boards that a job names.
pub fn boards(job: &Job) -> impl Iterator<Item = &BoardName> {
    let named: &[_] = match &job.targets {
        Targets::Boards(boards) => boards,
        Targets::EveryBoard => &[],
    };
    named.iter().map(|(board, _)| board)
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

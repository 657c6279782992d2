//! Jobs that wait for the definition of a board, where definitions come through the queue.
//!
//! Knows: their order, and which of them a definition sets free. Must not know: how a definition is decided. What waits
//! follows from the messages alone, so that every replica and every replay parks and frees the same jobs at the same
//! messages. A member whose job waits has its later jobs wait behind it: a member's jobs apply in their order.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::job::{Job, Targets};
use crate::types::{BoardName, MemberId, Sequence, Timestamp};
use crate::writer::registry::MAX_BOARDS;

/// Jobs that may wait on a shard, for a board or behind one of their member that does. They are held in memory, and what
/// a definition frees is one step, which readers wait for; beyond it, jobs are rejected that would have to wait.
pub(super) const PARKED_JOBS_MAX: usize = 100_000;

/// A message, and a job's place in it.
pub type Place = (Sequence, u32);

/// A job that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedJob {
    /// The timestamp of the message that brought it: the time of a job that names none.
    pub timestamp: Timestamp,
    pub job: Job,
}

/// Boards that jobs wait for, over all shards: whoever can have them defined is told.
#[derive(Default)]
pub struct WantedBoards {
    boards: Mutex<BTreeSet<BoardName>>,
    pub changed: Notify,
}

impl WantedBoards {
    fn want(&self, boards: impl IntoIterator<Item = BoardName>) {
        self.boards.lock().extend(boards);
        self.changed.notify_one();
    }

    /// The boards wanted since the last call.
    #[must_use]
    pub fn take(&self) -> BTreeSet<BoardName> {
        std::mem::take(&mut *self.boards.lock())
    }
}

/// A shard's waiting jobs.
pub struct Parking {
    /// Whether a job may want a board; if not, one for an unknown board is rejected and never waits.
    pub auto_create: bool,
    /// Boards that there can be. On a shard that has so many, no job waits for another.
    pub boards_max: usize,
    wanted: Arc<WantedBoards>,
    jobs: BTreeMap<Place, ParkedJob>,
    /// How many jobs of each member wait.
    members: HashMap<MemberId, usize>,
}

impl Parking {
    #[must_use]
    pub fn new(auto_create: bool, wanted: Arc<WantedBoards>) -> Self {
        let (jobs, members) = (BTreeMap::new(), HashMap::new());
        Self { auto_create, boards_max: MAX_BOARDS, wanted, jobs, members }
    }

    /// Takes over what is on disk, in place of what was there.
    pub fn load(&mut self, jobs: impl IntoIterator<Item = (Place, ParkedJob)>) {
        self.jobs.clear();
        self.members.clear();
        for (place, parked) in jobs {
            self.park(place, parked);
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    #[must_use]
    pub fn is_full(&self) -> bool {
        self.jobs.len() >= PARKED_JOBS_MAX
    }

    /// Whether a job of this member waits.
    #[must_use]
    pub fn holds(&self, member: &MemberId) -> bool {
        !self.members.is_empty() && self.members.contains_key(member)
    }

    pub fn park(&mut self, place: Place, parked: ParkedJob) {
        *self.members.entry(parked.job.member.clone()).or_default() += 1;
        self.jobs.insert(place, parked);
    }

    /// Takes out what waits no longer, in order: jobs whose boards are all known, unless an earlier one of their member
    /// goes on waiting.
    pub fn take_free(&mut self, is_known: impl Fn(&BoardName) -> bool) -> Vec<(Place, ParkedJob)> {
        let mut held: HashSet<&MemberId> = HashSet::new();
        let mut free = Vec::new();
        for (place, parked) in &self.jobs {
            let member = &parked.job.member;
            if !held.contains(member) && boards(&parked.job).all(&is_known) {
                free.push(*place);
            } else {
                held.insert(member);
            }
        }
        let mut taken = Vec::with_capacity(free.len());
        for place in free {
            let Some(parked) = self.jobs.remove(&place) else { continue };
            if let Some(count) = self.members.get_mut(&parked.job.member) {
                *count -= 1;
                if *count == 0 {
                    self.members.remove(&parked.job.member);
                }
            }
            taken.push((place, parked));
        }
        taken
    }

    /// Tells that the boards are wanted that the waiting jobs name and that are not known.
    pub fn tell_wanted(&self, is_known: impl Fn(&BoardName) -> bool) {
        if !self.auto_create || self.jobs.is_empty() {
            return;
        }
        let named: BTreeSet<&BoardName> = self
            .jobs
            .values()
            .flat_map(|parked| boards(&parked.job))
            .filter(|board| !is_known(board))
            .collect();
        self.wanted.want(named.into_iter().cloned());
    }
}

/// The boards that a job names.
pub fn boards(job: &Job) -> impl Iterator<Item = &BoardName> {
    let named: &[_] = match &job.targets {
        Targets::Boards(boards) => boards,
        Targets::EveryBoard => &[],
    };
    named.iter().map(|(board, _)| board)
}

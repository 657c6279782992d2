//! A step: what is applied to a shard under one hold of its lock, and the parts that it may be applied in.
//!
//! Knows: the order of what a step does. Must not know: how it was planned.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::board::Definition;
use crate::state::bans::BanChange;
use crate::state::dropped::{Incarnation, RecordNumber};
use crate::state::job_ids::JobIdChange;
use crate::state::last_jobs::LastJobChange;
use crate::state::member_versions::MemberVersionChange;
use crate::state::shard_time::ShardTime;
use crate::state::window_tree::Change;
use crate::types::{BoardName, Sequence, Timestamp};

/// A change to the set of boards. Has the number of its record, if boards are decided in the boards' stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoardEvent {
    /// Creates the board or the instance, or changes its changeable settings.
    Define {
        board: BoardName,
        incarnation: Incarnation,
        number: Option<RecordNumber>,
        definition: Arc<Definition>,
    },
    /// Drops the board with its instances and all their entries, or an instance with its entries.
    Drop { board: BoardName, incarnation: Incarnation, number: Option<RecordNumber> },
}

/// The message that the state is exact at, and how to recognise it in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Applied {
    pub sequence: Sequence,
    /// The message's timestamp.
    pub timestamp: Timestamp,
    /// A hash of the message's payload; 0 for sources that need none.
    pub hash: u64,
}

/// A member's id on its way. Most are short, and need no memory of their own.
pub type IdBytes = SmallVec<[u8; 24]>;

/// The changes of one or more whole messages. Board events come first, then entries, each (tree, member) at
/// most once: in each of its parts, if it is applied in parts.
#[derive(Debug, Clone, Default)]
pub struct Step {
    pub events: Vec<BoardEvent>,
    /// New members, in the order of the handles that
    /// [`Members::nth_next_handle`](crate::state::Members::nth_next_handle) gave.
    pub added: Vec<IdBytes>,
    pub changes: Vec<Change>,
    /// Bans that begin or end, in their order. They take effect at the end of the step.
    pub bans: Vec<BanChange>,
    /// Versions of members that are remembered or forgotten, likewise.
    pub versions: Vec<MemberVersionChange>,
    /// The last jobs of boards that end after a quiet time, likewise.
    pub last_jobs: Vec<LastJobChange>,
    /// Ids of jobs that are kept or forgotten, likewise.
    pub job_ids: Vec<JobIdChange>,
    pub applied: Applied,
    /// What is known of the time after its last message. Earlier than the shard's: it does not count.
    pub time: ShardTime,
    /// Whether what it does belongs to the message behind `applied`: it removes what expires there.
    pub is_ahead: bool,
}

/// A place in a step: so many events, new members and changes come before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepPlace {
    events: usize,
    added: usize,
    changes: usize,
}

/// A part of a step, such as what one of its jobs does. The parts of a step are applied in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepPart {
    begin: StepPlace,
    end: StepPlace,
}

impl StepPart {
    pub fn between(begin: StepPlace, end: StepPlace) -> Self {
        Self { begin, end }
    }

    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// How many events and changes it has.
    pub fn len(&self) -> usize {
        self.end.events - self.begin.events + self.end.changes - self.begin.changes
    }
}

impl Step {
    /// The place behind all that it does so far.
    pub fn end(&self) -> StepPlace {
        StepPlace { events: self.events.len(), added: self.added.len(), changes: self.changes.len() }
    }

    /// All that it does, as one part.
    pub fn whole(&self) -> StepPart {
        StepPart::between(StepPlace::default(), self.end())
    }

    pub fn events_of(&self, part: StepPart) -> &[BoardEvent] {
        self.events.get(part.begin.events..part.end.events).unwrap_or_default()
    }

    pub fn added_by(&self, part: StepPart) -> &[IdBytes] {
        self.added.get(part.begin.added..part.end.added).unwrap_or_default()
    }

    pub fn changes_of(&self, part: StepPart) -> &[Change] {
        self.changes.get(part.begin.changes..part.end.changes).unwrap_or_default()
    }

    /// Brings the changes of each tree together. Jobs change one tree after the other, and applying a tree's
    /// changes at once takes half the time: their cache misses overlap.
    pub fn group_by_tree(&mut self) {
        if !self.changes.is_sorted_by_key(|change| change.tree) {
            self.changes.sort_by_cached_key(|change| change.tree);
        }
    }
}

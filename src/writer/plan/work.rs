//! Counts the trees that the jobs of a message change, and rejects the jobs for which there are too many: a
//! message is applied under one hold of the lock, and a job may change a thousand trees.
//!
//! Knows: that jobs are counted in their order, whatever comes of them, so that replicas reject the same
//! ones. Must not know: which trees a job changes.

use crate::job::{MAX_BOARDS_PER_JOB, MAX_TREES_PER_BOARD, MAX_TREES_PER_MESSAGE, Reject, RejectCode};
use crate::writer::plan::Batch;

/// The most trees that a job changes which names its boards.
const TREES_OF_JOB_MAX: usize = MAX_BOARDS_PER_JOB * MAX_TREES_PER_BOARD;

impl Batch<'_> {
    /// A message begins.
    pub(super) fn begin_work(&mut self) {
        self.trees_counted = 0;
    }

    /// A job begins.
    pub(super) fn begin_job(&mut self) {
        self.trees_counted_before = self.trees_counted;
    }

    /// Counts trees that a job may change, before it is decided on them.
    ///
    /// # Errors
    /// When the jobs of the message would change too many. All jobs behind are refused, too: what the rest of
    /// a message does must not depend on which of its jobs happen to be small.
    pub(super) fn count_trees(&mut self, trees: usize) -> Result<(), Reject> {
        self.trees_counted = self.trees_counted.saturating_add(trees);
        // A member may be on any number of boards, and a board have any number of instances: the first job of
        // a message may leave them all. Parked jobs are only taken up where there is room.
        if self.trees_counted <= MAX_TREES_PER_MESSAGE || self.trees_counted_before == 0 {
            return Ok(());
        }
        self.check_room()
    }

    /// Refuses a job of a message that has changed too many trees already, before anything is looked up for
    /// it: a member may be on a hundred thousand boards.
    pub(super) fn check_room(&self) -> Result<(), Reject> {
        if self.trees_counted <= MAX_TREES_PER_MESSAGE || self.replaying_parked {
            return Ok(());
        }
        let detail = format!(
            "the jobs of its message before it, and this one, would change more than {MAX_TREES_PER_MESSAGE} \
             rankings together, counting each window of each board that a job names; send them in several messages"
        );
        Err(Reject::new(RejectCode::TooLarge, detail))
    }

    /// Whether the message may do another parked job, whichever it is.
    pub(super) fn has_room_for_parked(&self) -> bool {
        self.trees_counted == 0 || self.trees_counted + TREES_OF_JOB_MAX <= MAX_TREES_PER_MESSAGE
    }
}

//! How long a write waits, how detailed its answer is, and how large that may be.

use crate::job::{Job, MAX_METADATA_BYTES, Targets};
use crate::writer::OutcomeDetail;

/// The most bytes of a job's result beside what it did on boards: a reject's reason, with a name or two in
/// it.
const RESULT_BYTES_MAX: usize = 512;
/// The most bytes that tell whether a board changed.
pub const CHANGED_BYTES_MAX: usize = 100;
/// The most bytes that tell of a board's entry, beside metadata and the member's id: names of fields, the
/// board's name twice, two scores of eight keys, a dozen numbers.
const ENTRY_BYTES_MAX: usize = 1_100;
/// And for each shard, its part of `as_of`.
const AS_OF_BYTES_MAX: usize = 24;

/// How long a write waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until it is safe in the queue.
    UntilStored,
    /// Until this node has applied it, to tell what came of it.
    UntilApplied,
}

/// The options of a write of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    pub wait: Wait,
    /// What the answer tells of each job: where its entry stands now and stood before, or whether it changed
    /// anything.
    pub detail: OutcomeDetail,
}

/// The most bytes that the answer to these jobs can have as JSON, in which nodes answer one another, too.
pub fn answer_bytes_max(shard_count: u16, jobs: &[Job], options: WriteOptions) -> usize {
    let as_of = AS_OF_BYTES_MAX * usize::from(shard_count);
    let of_job = |job: &Job| {
        let boards = match &job.targets {
            _ if options.wait == Wait::UntilStored => 0,
            Targets::Boards(boards) => boards.len(),
            // Counted, and not listed.
            Targets::EveryBoard | Targets::Profile(_) => 0,
        };
        let each = match options.detail {
            OutcomeDetail::Changed => CHANGED_BYTES_MAX,
            // An id may be all quotation marks.
            OutcomeDetail::Rankings | OutcomeDetail::Scores => {
                ENTRY_BYTES_MAX + MAX_METADATA_BYTES + as_of + 2 * job.member.as_bytes().len()
            }
        };
        // The answer repeats the first of several boards.
        RESULT_BYTES_MAX + each * (boards + usize::from(boards > 1))
    };
    as_of + jobs.iter().map(of_job).sum::<usize>()
}

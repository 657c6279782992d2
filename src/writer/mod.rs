//! The write path, one writer per shard: fetch → decode → plan → commit → apply → publish.
//!
//! [`Writer`] is the loop. Each verb has a file of its own, except fetch and decode, which the source does.

mod source;

mod decide;
mod plan;

mod apply;
mod order;
mod outcome;
mod parking;
mod wanted;

mod checkpoint_gate;
mod checkpointer;
mod gauges;
mod health;
mod queue_room;
mod registry;
mod reject_log;
mod rejects_kept;

mod reopen;
mod turn;

pub use apply::apply;
pub use checkpoint_gate::CheckpointGate;
pub use checkpointer::{CheckpointPolicy, Checkpointer};
pub use gauges::Gauges;
pub use health::{Health, ShardState};
pub use outcome::{BoardOutcome, CommitFailed, Freed, JobOutcome, Later, MessageOutcome, Place};
pub use parking::{ParkedJob, Parking, lines_of};
pub use plan::{FREED_PER_MESSAGE, Plan, PlannedStep, Planner};
pub use queue_room::{Held, HeldBy, QueueLevel, QueueRoom};
pub use registry::{DefineRefused, Defined, Known, MAX_BOARDS, Named, Registry};
pub use reject_log::RejectLog;
pub use rejects_kept::RejectsKept;
pub use source::{
    AnswerTo, BadJob, BatchLimits, Fetched, JobSource, Message, OriginChanged, Outcome, Payload,
};
pub use turn::Writer;
pub use wanted::WantedBoards;

#[cfg(test)]
mod tests;

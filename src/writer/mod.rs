//! The write path, one writer per shard: fetch → decode → plan → commit → apply → publish.
//!
//! [`Writer`] is the loop; each verb has a file of its own, and fetch and decode are the source's.

mod source;

mod decide;
mod plan;

mod apply;
mod outcome;
mod parking;

mod checkpoint_gate;
mod checkpointer;
mod gauges;
mod health;
mod registry;
mod rejects_kept;

mod turn;

pub use apply::apply;
pub use checkpoint_gate::CheckpointGate;
pub use checkpointer::{CheckpointPolicy, Checkpointer};
pub use gauges::Gauges;
pub use health::{Health, ShardState};
pub use outcome::{BoardOutcome, JobOutcome, MessageOutcome, Place};
pub use parking::{ParkedJob, Parking, WantedBoards};
pub use plan::{Plan, PlannedStep, Planner};
pub use registry::{DefineRefused, Defined, Known, MAX_BOARDS, Registry};
pub use rejects_kept::RejectsKept;
pub use source::{
    AnswerTo, BadJob, BatchLimits, CommitFailed, Fetched, JobSource, Message, Outcome, Payload, Renamed,
};
pub use turn::Writer;

#[cfg(test)]
mod tests;

//! The write path, one writer per shard: fetch → plan → commit → apply → show.
//!
//! - `writer_loop`: [`Writer`], the loop over the five verbs; show is the end of `process_batch`
//! - `source`: what fetch gives: jobs that are decoded already. The sources are in `queue`
//! - `plan`: what a batch changes; `decide`: what one operation does to one entry
//! - commit is `storage::commit`; `reopen`: what follows when it fails; `install`:
//!   goes on from a copy of another node's data
//! - `one_batch`: where a batch ends
//! - `apply`: steps of a plan, put into the state in memory
//! - `time_log`: what is logged of leaps of time, and of seasons that come to begin later
//! - `traced`: the spans of messages that are sampled
//! - `outcome`: what came of a job, for the client that waits
//! - `registry`: which boards there are, in `registered`; `board_change`, `season_change`: what a definition
//!   may become
//! - `parking`, `order`, `wanted`, `long_wait`: jobs whose board is unknown yet; `parked_places`,
//!   `parked_names`: where they are, for readers; `stored_parked`: on disk

mod source;

mod decide;
mod plan;

mod apply;
mod long_wait;
mod one_batch;
mod order;
mod outcome;
mod parked_names;
mod parked_places;
mod parking;
mod stored_parked;
mod wanted;

mod board_change;
mod checkpoint_gate;
mod checkpointer;
mod gauges;
mod health;
mod queue_room;
mod registered;
mod registry;
mod reject_erasure;
mod reject_log;
mod reject_retention;
mod season_change;

mod install;
mod reopen;
mod time_log;
mod traced;
mod writer_loop;

pub use apply::apply;
pub use board_change::{BoardChange, DefineRefused, MAX_BOARDS};
pub use checkpoint_gate::CheckpointGate;
pub use checkpointer::{CheckpointPolicy, Checkpointer};
pub use gauges::Gauges;
pub use health::{CopyProgress, Diverged, Filling, Health, HealthFacts, ShardState};
pub use outcome::{
    BoardOutcome, BoardOutcomes, CommitFailed, FoundBoard, JobOutcome, LeftBehind, MessageOutcome,
    OutcomeDetail, ParkedOutcome, UnparkedOutcome,
};
pub use parked_places::ParkedPlaces;
pub use parking::{ParkedJob, Parking, lines_of};
pub use plan::{Plan, PlannedStep, Planner, UNPARKED_PER_MESSAGE};
pub use queue_room::{QueueFault, QueueLevel, QueueRoom, RetainedBy, RetainedMessages};
pub use registered::{EndingBoard, RegisteredBoard};
pub use registry::{BoardLookup, Defined, Registry};
pub use reject_erasure::RejectErasure;
pub use reject_log::RejectLog;
pub use reject_retention::RejectRetention;
pub use season_change::{SeasonChange, SeasonRefused};
pub use source::{
    BadJob, BatchLimits, CopyToInstall, Fetched, JobSource, Jobs, Message, OriginChanged, Outcome,
    OutcomeSender, Payload,
};
pub use wanted::WantedBoards;
pub use writer_loop::Writer;

#[cfg(test)]
mod tests;

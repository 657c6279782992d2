//! What front ends ask of a node, in types: reads that wait for earlier writes, writes of jobs and what came
//! of each, boards, trims, and who is watching.
//!
//! A front end parses what its clients send, asks here, and writes the answer in its own words. So this must
//! not know: HTTP, its JSON, or any other front end. It knows which queue a shard has, which shards other
//! nodes own, and how those are reached.
//!
//! - `shared`: what all operations share: the shards, their queues, the boards
//! - `admission`: what all requests may take together, and what one of them takes
//! - `offload`: work apart from the threads that connections share
//! - `failure`: why an operation was not done, or what is not known of it
//! - `reads`: reads, the waits before them, and metadata
//! - `write`: jobs to shards, and their results back in order. `write_options` says how long a write waits,
//!   `publish` sends messages, `remote` has other nodes apply jobs, `results` says what came of each, in the
//!   windows of `entered`; `score_change` what of that a front end is told that speaks of scores alone
//! - `boards`: definitions, clears and drops; `would_drop`: what a definition would take away;
//!   `board_repair`: completes what a crash interrupted; `board_ends`: drops those that are over; `trim`:
//!   removes entries; `store`: what boards make together, stored; `read_only`: whether there may be writes

mod admission;
mod offload;

mod failure;
mod shared;

mod reads;

mod write_options;

mod entered;
mod publish;
mod remote;
mod results;
mod score_change;
mod write;

mod board_ends;
mod boards;
mod read_only;
mod store;
mod trim;
mod would_drop;

pub mod board_repair;

pub use admission::{
    Admission, BodyBytes, FIRST_BYTES, FIRST_HEAD_BYTES, HeadBytes, InProgress, RequestLimits, RequestPermit,
    count_shed,
};
pub use boards::{BoardChanges, ChangedSeasons, DefinedBoard};
pub use entered::{JobTimes, entered};
pub use failure::{Failure, WouldDrop};
pub use offload::Offload;
pub use read_only::SetReadOnly;
pub use reads::Reading;
#[cfg(test)]
pub use remote::{RemoteOutcome, read_answer};
pub use results::{FirstResult, JobResult};
pub use score_change::ScoreChange;
pub use shared::{Cluster, Operations};
pub use store::{NotStored, StoreRefused, StoredResult};
pub use trim::Removed;
pub use write::Written;
pub use write_options::{CHANGED_BYTES_MAX, Wait, WriteOptions, answer_bytes_max};

// What failures and answers consist of: front ends name no queue and no writer.
pub use crate::queue::nats::{BoardRefused, KnownNode, OwnedShard};
pub use crate::queue::{NotPublished, ThisNode, reject_text};
pub use crate::writer::{
    CommitFailed, DefineRefused, OutcomeDetail, QueueLevel, QueueRoom, SeasonChange, SeasonRefused,
};

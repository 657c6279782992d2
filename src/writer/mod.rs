//! The write path, one writer per shard: fetch → decode → plan → commit → apply → publish.

mod health;
mod outcome;
mod registry;
mod source;

pub use health::{Health, ShardState};
pub use outcome::{BoardOutcome, JobOutcome, MessageOutcome, Place};
pub use registry::{Defined, DefineRefused, Known, MAX_BOARDS, Registry};
pub use source::{BadJob, BatchLimits, CommitFailed, Fetched, JobSource, Message, Payload};

//! Load for a service: a repeatable stream of jobs and reads, sent at a fixed rate or as fast as possible,
//! and measured.
//!
//! Knows: what to send, when, and how long it took. Must not know: the command line (`cli::load`), or what a
//! service does with it. Benchmarks use it too.
//!
//! - [`random`], [`workload`]: the operations, the same for the same seed
//! - [`schedule`], [`feed`]: when each is due, and who gets it
//! - [`service`], [`http`], [`nats`]: the ways to a service
//! - [`applied`], [`tally`], [`summary`]: what came of it
//! - [`run()`]: puts it together

mod applied;
mod feed;
mod http;
mod nats;
mod random;
mod run;
mod schedule;
mod service;
mod summary;
mod tally;
mod workload;

pub use nats::Via;
pub use random::{Random, Zipf};
pub use run::{Ended, LoadError, Plan, Target, run};
pub use schedule::Schedule;
pub use summary::{Summary, human_time};
pub use tally::Interval;
pub use workload::{Distribution, MEMBERS_MAX, Message, OpMix, Operation, Read, Spec, Workload, encoded};

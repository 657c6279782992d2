//! What the engine costs, in what does not depend on the machine's speed.
//!
//! - [`instructions`]: a job takes no more instructions and cache misses than it did
//! - [`checksums`]: RocksDB computes them with the processor's instruction
//!
//! The benches' own engine and workload are counted.

#![allow(
    dead_code,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "as in the benches, whose code it is; and a part of it is used"
)]

#[path = "../../../benches/support/counts.rs"]
mod counts;
#[path = "../../../benches/support/engine.rs"]
mod engine;
#[path = "../../../benches/support/raw_scores.rs"]
mod raw_scores;
#[path = "../../../benches/support/workload.rs"]
mod workload;

mod checksums;
mod instructions;

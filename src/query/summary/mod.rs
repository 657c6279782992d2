//! Approximate ranks, with a bound, from summaries of the shards' trees. `docs/internals/reads.md` has the
//! theorem and its proof.
//!
//! - `estimate`: a count that is known within bounds
//! - `tree_summary`: what a shard tells of one tree, and what follows from it
//! - `make`: a summary from a shard in memory
//! - `made`: the summaries that a shard has made, so that each is made once for all who ask
//! - `kept`: the newest summaries that a node knows, and which it asks shards for
//! - `approximate_shards`: shards as an approximate read asks them

mod approximate_shards;
mod estimate;
mod kept;
mod made;
mod make;
mod tree_summary;

pub use approximate_shards::ApproximateShards;
pub use estimate::Estimate;
pub use kept::{Summaries, keep_summaries};
pub use made::{MadeSummaries, TooBusy};
pub use make::{SummarySizes, summarize};
pub use tree_summary::{SharedScore, Summary};

use std::sync::Arc;

use crate::types::Sequence;

/// Which summary a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownSummary {
    pub sequence: Sequence,
    /// Of what it says ([`Summary::hash`]). Two owners of a shard look at a tree at different times, and one
    /// may miss a change that the other one has seen. So a sequence alone does not say which summary it is.
    pub hash: u64,
}

/// What a shard replies that is asked for a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryReply {
    Made(Arc<Summary>),
    /// The one that the asking node has is also of the reply's sequence.
    Unchanged,
    /// The board was dropped or cleared.
    Over,
}

//! One shard of a node, as reads see it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::applied_sequence::AppliedSequenceReader;
use crate::query::summary::MadeSummaries;
use crate::state_lock::StateLock;
use crate::storage::StoreSlot;
use crate::types::ShardId;
use crate::writer::Health;

/// One shard as reads see it; clone it freely.
#[derive(Clone)]
pub struct ShardHandle {
    pub id: ShardId,
    /// The state at one applied sequence. Held for microseconds at a time, and never across an await or a
    /// disk read.
    pub state: Arc<StateLock>,
    /// The applied sequence, after readers can see it.
    pub applied: AppliedSequenceReader,
    /// Whether the writer has begun to work.
    pub started: watch::Receiver<bool>,
    pub health: Arc<Health>,
    /// Holds metadata and rejects.
    pub store: Arc<StoreSlot>,
    /// Those that were made for approximate ranks.
    pub summaries: Arc<MadeSummaries>,
}

//! What boards make together, stored on one of them: a command to each shard, which makes its part by itself
//! at the command's place in its log.
//!
//! Knows: how much a shard does for one, and that all are looked at before any is told. Must not know: what a
//! front end calls it.

use std::time::Duration;

use futures_util::future::join_all;

use crate::board::COMBINED_ENTRIES_MAX;
use crate::job::Reject;
use crate::operations::failure::Failure;
use crate::operations::shared::Operations;
use crate::state::{STORE_SOURCES_MAX, Shard, StoreOrder, WindowTree};
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, ShardId, count};
use crate::writer::{JobOutcome, MessageOutcome, Payload};

/// How long the shards may take, which is mostly milliseconds.
const APPLIED_WITHIN: Duration = Duration::from_secs(30);
/// The size of a message beside its names.
const MESSAGE_BYTES: usize = 512;

/// What came of a result that was stored.
pub struct StoredResult {
    /// On the shards that have it.
    pub entries: u64,
    /// Where they have it.
    pub token: AsOf,
    /// How many shards were told.
    pub shards: usize,
    /// Why others have not.
    pub failed: Vec<NotStored>,
}

/// Why a shard has not stored its part, or what is not known of it.
pub enum NotStored {
    /// The shard has nothing of it, and what it had before.
    Rejected(Reject),
    Failed(Failure),
}

/// Why a result is not stored at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreRefused {
    /// It would be made of too many boards.
    Sources,
    /// This node lacks shards.
    OtherShards,
    /// A shard would look at so many entries.
    Entries(u64),
    /// The board has so many entries on a shard.
    Replaced(u64),
    /// A source has more entries than it shows.
    Capacity(BoardName),
}

impl StoreRefused {
    pub fn words(&self) -> String {
        let most = COMBINED_ENTRIES_MAX;
        match self {
            Self::Sources => format!("{STORE_SOURCES_MAX} boards are combined at most; name fewer"),
            Self::OtherShards => {
                "this node does not own all shards, and what boards make together is stored by a node that does: \
                 send the command to such a node"
                    .to_owned()
            }
            Self::Entries(entries) => format!(
                "the boards have {entries} entries on a shard, and up to {most} are combined there; name boards \
                 that have fewer"
            ),
            Self::Replaced(entries) => format!(
                "the board has {entries} entries on a shard, and up to {most} are replaced there; drop it before"
            ),
            Self::Capacity(board) => {
                format!("the board {board} has more entries than its capacity, and the others are not combined")
            }
        }
    }
}

impl Operations {
    /// Looks at all shards before any is told to store a result. Returns how many entries that may have at
    /// most.
    ///
    /// # Errors
    /// When it would be too much, or this node lacks shards.
    pub fn check_store(&self, order: &StoreOrder) -> Result<u64, StoreRefused> {
        if order.sources.len() > STORE_SOURCES_MAX {
            return Err(StoreRefused::Sources);
        }
        if self.node.not_owned().next().is_some() {
            return Err(StoreRefused::OtherShards);
        }
        let (mut entries, mut of_sources) = (0, vec![0; order.sources.len()]);
        for own in &self.node.shards {
            let shard = own.state.read(Purpose::Read);
            let total = |shard: &Shard, board: &BoardName| {
                shard
                    .board(board.as_str())
                    .and_then(|board| shard.tree(board.all))
                    .map_or(0, WindowTree::total)
            };
            let totals: Vec<u64> = order.sources.iter().map(|source| total(&shard, &source.board)).collect();
            // Who asks for a range has counted it.
            if order.sources.iter().all(|source| source.range.is_none()) {
                order.combination.base(&totals).map_err(StoreRefused::Entries)?;
            }
            for (sum, total) in of_sources.iter_mut().zip(&totals) {
                *sum += total;
            }
            let replaced = shard.board(order.board.as_str()).and_then(|board| shard.tree(board.all));
            let replaced = replaced.map_or(0, |tree| tree.total() + count(tree.hidden_count()));
            if replaced > COMBINED_ENTRIES_MAX {
                return Err(StoreRefused::Replaced(replaced));
            }
            entries += order.combination.entries_at_most(&totals);
        }
        for (source, total) in order.sources.iter().zip(of_sources) {
            let board = source.board.board();
            let capacity = self.registry.get(board.as_str()).and_then(|known| known.definition.capacity);
            // A range is of those that are shown.
            if source.range.is_none() && capacity.is_some_and(|capacity| total > capacity) {
                return Err(StoreRefused::Capacity(board));
            }
        }
        Ok(entries)
    }

    /// Has every shard store its part of a result.
    ///
    /// # Errors
    /// When none is told: the board is read-only, or none for it, or a shard takes no writes.
    pub async fn store(&self, order: &StoreOrder) -> Result<StoredResult, Failure> {
        self.check_writable(&order.board)?;
        self.check_every_shard()?;
        let mut named: Vec<BoardName> = order.sources.iter().map(|source| source.board.board()).collect();
        named.push(order.board.clone());
        self.wait_for_decisions(&named).await?;
        let publishing = self.node.shards.iter().map(|shard| self.store_on(shard.id, order));
        let outcomes = tokio::time::timeout(APPLIED_WITHIN, join_all(publishing)).await;
        let outcomes = outcomes.map_err(|_| Failure::Unanswered)?;
        let (mut token, shards) = (Vec::with_capacity(outcomes.len()), outcomes.len());
        let (mut entries, mut failed) = (0, Vec::new());
        for (shard, outcome) in outcomes {
            match outcome {
                Ok(MessageOutcome { sequence, mut jobs, entries: stored }) => {
                    token.push((shard, sequence));
                    match jobs.pop() {
                        Some(JobOutcome::Rejected(reject)) => failed.push(NotStored::Rejected(reject)),
                        _ => entries += stored,
                    }
                }
                Err(why) => failed.push(NotStored::Failed(why)),
            }
        }
        token.sort_by_key(|(shard, _)| *shard);
        Ok(StoredResult { entries, token: AsOf(token), shards, failed })
    }

    async fn store_on(
        &self,
        shard: ShardId,
        order: &StoreOrder,
    ) -> (ShardId, Result<MessageOutcome, Failure>) {
        let names = order.sources.iter().map(|source| source.board.as_str().len());
        let bytes = MESSAGE_BYTES + names.sum::<usize>();
        let payload = Payload::Store(order.clone());
        let applied = self.publishers.of(shard).apply_command(payload, bytes).await;
        (shard, applied.map_err(Failure::from))
    }
}

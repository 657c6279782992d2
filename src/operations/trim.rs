//! The entries after a trim point, removed on every shard: on those of this node by itself, on others by
//! their owners.

use futures_util::future::{BoxFuture, FutureExt as _, join_all};

use crate::cluster::{TrimOrder, TrimTerms, Trimmed, TrimmingShard};
use crate::operations::failure::Failure;
use crate::operations::shared::Operations;
use crate::state::{Incarnation, TrimPoint};
use crate::types::{AsOf, BoardName, Sequence, ShardId};

/// Entries that a clear or a trim removed, and the token of the last removal.
pub struct Removed {
    pub entries: u64,
    pub token: AsOf,
}

impl Operations {
    /// Refuses a trim while the board is read-only or a shard of this node takes no writes, and waits until
    /// the decisions on the board are known here.
    ///
    /// # Errors
    /// When a shard takes none, or the boards' stream cannot be read.
    pub async fn before_trim(&self, board: &BoardName) -> Result<(), Failure> {
        self.check_writable(board)?;
        self.check_live(self.node.shards.iter().map(|shard| shard.id))?;
        self.wait_for_decisions(std::slice::from_ref(board)).await
    }

    /// Waits until the decisions on boards are in the shards of this node, before a command is.
    ///
    /// # Errors
    /// When the boards' stream cannot be read.
    pub(super) async fn wait_for_decisions(&self, boards: &[BoardName]) -> Result<(), Failure> {
        let Some(cluster) = &self.cluster else { return Ok(()) };
        cluster.boards.wait_until_following().await;
        let shards = self.node.shards.iter();
        let named = shards.flat_map(|shard| boards.iter().map(|board| (shard.id, board)));
        let due = cluster.boards.decisions_before(named);
        Ok(cluster.boards.wait_for_decisions(due).await?)
    }

    /// Removes the entries after a trim point, for as long as the client waits. The same request removes what
    /// is left then.
    ///
    /// # Arguments
    /// - `board`: the name of the instance on the shards.
    /// - `as_of`: where the trim point was found.
    ///
    /// # Errors
    /// When a shard does not take a message, or does not answer in time.
    pub async fn trim(
        &self,
        board: BoardName,
        (incarnation, point): (Incarnation, TrimPoint),
        as_of: &AsOf,
    ) -> Result<Removed, Failure> {
        let order = &TrimOrder { board, incarnation, point };
        let mut trims: Vec<BoxFuture<'_, Result<Trimmed, Failure>>> = Vec::with_capacity(as_of.0.len());
        for (shard, found) in &as_of.0 {
            trims.push(self.trim_shard(*shard, order, *found).boxed());
        }
        let (mut entries, mut token) = (0, Vec::with_capacity(as_of.0.len()));
        for ((shard, found), trimmed) in as_of.0.iter().zip(join_all(trims).await) {
            let trimmed = trimmed?;
            entries += trimmed.removed;
            token.push((*shard, trimmed.sequence.max(*found)));
        }
        Ok(Removed { entries, token: AsOf(token) })
    }

    /// Trims a shard in as many steps as it takes.
    ///
    /// # Arguments
    /// `found`: the sequence of the shard at which the trim point was found.
    async fn trim_shard(
        &self,
        shard: ShardId,
        order: &TrimOrder,
        found: Sequence,
    ) -> Result<Trimmed, Failure> {
        let own = self.node.owned(shard);
        let own = own.map(|own| TrimmingShard::new(own, self.publishers.of(shard).clone()));
        let others = self.cluster.as_ref().and_then(|cluster| cluster.other_owners.as_ref());
        let mut all = Trimmed { sequence: found, ..Trimmed::default() };
        while !all.is_finished {
            let step = match (&own, others) {
                (Some(own), _) => own.trim(order, TrimTerms::WHOLE).await?,
                (None, Some(others)) => {
                    let trimmed = others.trim(shard, order, all.sequence).await;
                    trimmed.map_err(|why| Failure::NotPublishedThere(shard, why))?
                }
                (None, None) => return Err(Failure::NoOwner(vec![shard])),
            };
            let sequence = all.sequence.max(step.sequence);
            all = Trimmed { removed: all.removed + step.removed, sequence, is_finished: step.is_finished };
        }
        Ok(all)
    }
}

//! Asks shards of this node as remote ones are asked, without asking other nodes: where there are none.

use futures_util::future::BoxFuture;

use crate::query::answering_shard::{AnsweringShard, NotAnswered, ShardHandle};
use crate::query::question::{Question, ShardReply};
use crate::query::remote_shards::{AskTerms, NoReply, ShardClient};
use crate::types::ShardId;

/// The shards in this node's memory. A shard of another node is unavailable.
pub struct LocalShards {
    /// By number; `None` for shards of other nodes.
    shards: Vec<Option<AnsweringShard>>,
}

impl LocalShards {
    /// # Arguments
    /// - `owned`: the shards in memory.
    /// - `shard_count`: the number of all shards.
    pub fn new(owned: &[ShardHandle], shard_count: u16) -> Self {
        let of = |id| owned.iter().find(|shard| shard.id == ShardId(id)).map(AnsweringShard::of);
        Self { shards: (0..shard_count).map(of).collect() }
    }
}

impl ShardClient for LocalShards {
    fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).unwrap_or(u16::MAX)
    }

    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        terms: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
        Box::pin(async move {
            let Some(Some(own)) = self.shards.get(shard.index()) else {
                return Err(NoReply::unavailable(shard, "this node does not own it, and asks no other node"));
            };
            own.answer(question, terms).await.map_err(|why| match why {
                NotAnswered::NotYetApplied { .. } => NoReply::NotYetApplied(shard),
                NotAnswered::OtherHistory(_) => NoReply::OtherHistory(shard),
                NotAnswered::Invalid(_)
                | NotAnswered::Unfilled
                | NotAnswered::Ending
                | NotAnswered::TooBusy(_)
                | NotAnswered::Unreadable(_) => NoReply::unavailable(shard, why.to_string()),
            })
        })
    }
}

//! Shards of the test's own memory that are asked as remote shards are.

use std::borrow::Borrow;

use futures_util::future::BoxFuture;

use crate::query::question::{Question, ShardReply, answer, check};
use crate::query::{AskTerms, NoReply, ShardClient};
use crate::state_lock::{Purpose, StateLock};
use crate::types::ShardId;

pub struct AnsweringShards<'a, S = StateLock>(pub &'a [S]);

impl<S: Borrow<StateLock> + Send + Sync> ShardClient for AnsweringShards<'_, S> {
    fn shard_count(&self) -> u16 {
        u16::try_from(self.0.len()).expect("a few")
    }

    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        _: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
        let reply = check(question).map_err(|why| NoReply::unavailable(shard, why.to_string()));
        Box::pin(async move {
            reply?;
            Ok(reply_of(self.0[shard.index()].borrow(), question))
        })
    }
}

/// What a live shard replies.
pub fn reply_of(state: &StateLock, question: &Question<'_>) -> ShardReply {
    let state = state.read(Purpose::Read);
    ShardReply { sequence: state.applied.sequence, is_live: true, reply: answer(&state, question) }
}

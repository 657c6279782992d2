//! Puts questions to remote shards, and remembers what the replies are exact at.
//!
//! Knows: that all shards are asked at the same time, and that an answer is of each shard's last reply. Must
//! not know: how a question travels, or what it asks.

use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use thiserror::Error;

use crate::query::question::{EntryMetadata, Question, Reply, ShardReply, is_consistent};
use crate::query::read_options::ReadOptions;
use crate::types::{AsOf, Sequence, ShardId};

/// Puts questions to shards, on this node or on others.
pub trait ShardClient: Send + Sync {
    /// The number of all shards.
    fn shard_count(&self) -> u16;

    /// Asks one shard. An error is text for the client and the log: why the shard did not reply.
    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
    ) -> BoxFuture<'a, Result<ShardReply, ShardUnavailable>>;
}

/// A shard that no node replies for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("shard {shard}: {reason}")]
pub struct ShardUnavailable {
    pub shard: ShardId,
    pub reason: String,
}

/// Why a read has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// No node replied for these shards.
    #[error("{}", list(.0))]
    Unavailable(Vec<ShardUnavailable>),
    /// What was asked for moved from one round trip to the next, too often to follow.
    #[error("the entries asked for changed while they were counted, {0} times in a row; ask again")]
    KeptChanging(u32),
}

fn list(shards: &[ShardUnavailable]) -> String {
    shards.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Remote shards as one read sees them: what each replied last.
pub struct RemoteShards<'v> {
    shards: &'v dyn ShardClient,
    seen: Mutex<Vec<Option<Seen>>>,
    /// `None`: the defaults.
    options: Option<&'v ReadOptions>,
}

/// What a shard's last reply was exact at.
#[derive(Debug, Clone, Copy)]
struct Seen {
    sequence: Sequence,
    is_live: bool,
    /// Entries of the board that is read, if it is one and the reply told.
    total: Option<u64>,
}

impl<'v> RemoteShards<'v> {
    #[must_use]
    pub fn new(shards: &'v dyn ShardClient) -> Self {
        let seen = Mutex::new(vec![None; usize::from(shards.shard_count())]);
        Self { shards, seen, options: None }
    }

    /// The same for a read with options.
    #[must_use]
    pub fn with_options(self, options: &'v ReadOptions) -> Self {
        Self { options: Some(options), ..self }
    }

    /// Whether shards that do not reply are left out ([`ReadOptions::partial`]).
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.options.is_some_and(|options| options.partial)
    }

    /// Shards that were left out, because they did not reply.
    #[must_use]
    pub fn missing(&self) -> Vec<ShardId> {
        Vec::new()
    }

    #[must_use]
    pub fn shard_count(&self) -> u16 {
        self.shards.shard_count()
    }

    /// Every shard, by number.
    pub fn ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.shard_count()).map(ShardId)
    }

    /// The sequence of each shard's last reply; shards that were not asked are missing.
    #[must_use]
    pub fn as_of(&self) -> AsOf {
        let seen = self.seen.lock();
        let known = self.ids().zip(seen.iter());
        AsOf(known.filter_map(|(shard, seen)| Some((shard, seen.as_ref()?.sequence))).collect())
    }

    /// Whether some shard that replied does not apply what is published at present.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.seen.lock().iter().flatten().any(|seen| !seen.is_live)
    }

    /// Notes how many entries of the board a shard has, by its last reply.
    pub(super) fn note_total(&self, shard: ShardId, total: u64) {
        if let Some(Some(seen)) = self.seen.lock().get_mut(shard.index()) {
            seen.total = Some(total);
        }
    }

    /// The entries of the board, by each shard's last reply; `None` unless all have told.
    #[must_use]
    pub(super) fn total(&self) -> Option<u64> {
        self.seen.lock().iter().map(|seen| seen.as_ref()?.total).sum()
    }

    /// Asks shards at the same time, each its question. Returns the replies in the same order.
    ///
    /// # Errors
    /// When some shard does not reply.
    pub async fn ask<'q>(
        &self,
        questions: impl IntoIterator<Item = (ShardId, &'q Question<'q>)>,
    ) -> Result<Vec<(ShardId, Reply)>, ReadError> {
        let asked = questions.into_iter().map(|(shard, question)| async move {
            let reply = self.shards.ask(shard, question).await;
            (shard, reply.map(|reply| is_consistent(question, &reply.reply).then_some(reply)))
        });
        let (mut replies, mut missing) = (Vec::new(), Vec::new());
        for (shard, reply) in join_all(asked).await {
            match reply {
                Ok(Some(ShardReply { sequence, is_live, mut reply })) => {
                    // Only the node that replied could read them from its disk.
                    reply.each_entry(&mut |entry| {
                        if matches!(entry.metadata, EntryMetadata::OnDisk(_)) {
                            entry.metadata = EntryMetadata::Unreadable;
                        }
                    });
                    if let Some(seen) = self.seen.lock().get_mut(shard.index()) {
                        *seen = Some(Seen { sequence, is_live, total: None });
                    }
                    replies.push((shard, reply));
                }
                Ok(None) => return Err(unexpected(shard)),
                Err(why) => missing.push(why),
            }
        }
        if missing.is_empty() { Ok(replies) } else { Err(ReadError::Unavailable(missing)) }
    }

    /// Asks every shard the same.
    ///
    /// # Errors
    /// When some shard does not reply.
    pub async fn ask_all(&self, question: &Question<'_>) -> Result<Vec<(ShardId, Reply)>, ReadError> {
        self.ask(self.ids().map(|shard| (shard, question))).await
    }
}

/// A reply that cannot be one to its question: the other node is at fault.
pub(super) fn unexpected(shard: ShardId) -> ReadError {
    let reason = "its node sent a reply that does not fit the question".to_owned();
    ReadError::Unavailable(vec![ShardUnavailable { shard, reason }])
}

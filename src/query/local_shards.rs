//! Asks shards of this node as remote ones are asked: for reads that go over several nodes.
//!
//! Knows: that a reply, its sequence and whether the shard is live are of one hold of its lock, and that
//! metadata of the same moment comes from the disk afterwards. Must not know: other nodes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::query::metadata::log_unreadable;
use crate::query::node::ShardHandle;
use crate::query::question::{self, EntryMetadata, Question, Reply, ShardReply};
use crate::query::remote_shards::{ShardClient, ShardUnavailable};
use crate::state_lock::Purpose;
use crate::storage::StoreSlot;
use crate::types::{Sequence, ShardId};

/// Entries whose metadata is read without handing over to a thread that may block: it is mostly cached.
const INLINE_DISK_READS: usize = 4;
/// How often a question is put again because metadata changed while it was read.
const ATTEMPTS: u32 = 16;
/// How long the shard may take to show what its disk has already: a fraction of a millisecond, mostly.
const SHOWN_WITHIN: Duration = Duration::from_millis(20);

/// The shards in this node's memory. A shard of another node is unavailable.
pub struct LocalShards {
    /// By number; `None` for shards of other nodes.
    shards: Vec<Option<ShardHandle>>,
}

impl LocalShards {
    /// # Arguments
    /// - `owned`: the shards in memory.
    /// - `shard_count`: the number of all shards.
    #[must_use]
    pub fn new(owned: &[ShardHandle], shard_count: u16) -> Self {
        let of = |id| owned.iter().find(|shard| shard.id == ShardId(id)).cloned();
        Self { shards: (0..shard_count).map(of).collect() }
    }

    /// The shard, if it is in this node's memory.
    #[must_use]
    pub fn get(&self, shard: ShardId) -> Option<&ShardHandle> {
        self.shards.get(shard.index())?.as_ref()
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
    ) -> BoxFuture<'a, Result<ShardReply, ShardUnavailable>> {
        Box::pin(async move {
            let unavailable = |reason: String| ShardUnavailable { shard, reason };
            let Some(handle) = self.get(shard) else {
                return Err(unavailable("this node does not own it, and no other node answers yet".to_owned()));
            };
            question::check(question).map_err(|why| unavailable(why.to_string()))?;
            Ok(answer_with_metadata(handle, question).await)
        })
    }
}

/// Answers from memory, and adds the metadata that the entries had at that moment.
pub async fn answer_with_metadata(shard: &ShardHandle, question: &Question<'_>) -> ShardReply {
    let mut reply = answer(shard, question);
    for _ in 0..ATTEMPTS {
        let ahead;
        (reply, ahead) = fill(shard, reply).await;
        let Some(ahead) = ahead else { return reply };
        // The disk is ahead of what readers see. If the shard has stopped, what it has shown must do.
        let mut applied = shard.applied.clone();
        let shown = applied.wait_for(|applied| *applied >= ahead);
        let _ = tokio::time::timeout(SHOWN_WITHIN, shown).await;
        reply = answer(shard, question);
    }
    reply
}

fn answer(shard: &ShardHandle, question: &Question<'_>) -> ShardReply {
    let state = shard.state.read(Purpose::Read);
    ShardReply {
        sequence: state.applied.sequence,
        is_live: shard.health.is_live(),
        reply: question::answer(&state, question),
    }
}

/// Reads the metadata that the reply lacks. Returns the sequence at which the disk is known to be ahead of
/// the reply, if it is; then some of it is still missing.
async fn fill(shard: &ShardHandle, mut reply: ShardReply) -> (ShardReply, Option<Sequence>) {
    let mut missing = 0;
    reply.reply.each_entry(&mut |entry| {
        missing += usize::from(matches!(entry.metadata, EntryMetadata::OnDisk(_)));
    });
    if missing == 0 {
        return (reply, None);
    }
    let (id, store, sequence) = (shard.id, Arc::clone(&shard.store), reply.sequence);
    if missing <= INLINE_DISK_READS {
        let ahead = read_metadata(id, &store, &mut reply.reply, sequence);
        return (reply, ahead);
    }
    let ShardReply { is_live, reply: mut entries, .. } = reply;
    let read = tokio::task::spawn_blocking(move || {
        let ahead = read_metadata(id, &store, &mut entries, sequence);
        (entries, ahead)
    });
    match read.await {
        Ok((entries, ahead)) => (ShardReply { sequence, is_live, reply: entries }, ahead),
        // It panicked, which the log tells. The question is put again.
        Err(_) => (ShardReply { sequence, is_live, reply: Reply::Counts(Vec::new()) }, Some(sequence)),
    }
}

fn read_metadata(id: ShardId, store: &StoreSlot, reply: &mut Reply, told: Sequence) -> Option<Sequence> {
    let opened = store.get();
    // All of it is of one moment, however long reading takes.
    let snapshot = opened.as_ref().ok().map(|store| store.snapshot());
    let mut ahead: Option<Sequence> = None;
    reply.each_entry(&mut |entry| {
        let EntryMetadata::OnDisk(tree) = entry.metadata else { return };
        let Some(snapshot) = &snapshot else {
            entry.metadata = EntryMetadata::Unreadable;
            return;
        };
        let newer = match snapshot.metadata(tree, &entry.member) {
            Ok(Some(record)) if record.sequence <= told.0 => {
                entry.metadata = EntryMetadata::Json(record.json.into());
                return;
            }
            Ok(Some(record)) => Sequence(record.sequence),
            Ok(None) => told.next(),
            Err(error) => {
                log_unreadable(id, &error);
                entry.metadata = EntryMetadata::Unreadable;
                return;
            }
        };
        ahead = ahead.max(Some(newer));
    });
    ahead
}

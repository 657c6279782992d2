//! The newest summaries that a node knows, of its own shards and others', and the task that asks for them.
//!
//! Knows: that only trees are asked for which a read has named lately, and how much memory and how many
//! questions that may take. Must not know: what an answer is made of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use metrics::{counter, gauge};
use parking_lot::RwLock;
use tokio::sync::Notify;

use crate::metrics::{APPROXIMATE_PARTS_TOTAL, SUMMARY_AGE_SECONDS, SUMMARY_BYTES};
use crate::query::question::{BoardLife, Question, Reply, is_consistent};
use crate::query::remote_shards::{AskTerms, ShardClient};
use crate::query::summary::{Summary, SummaryReply};
use crate::types::{Sequence, ShardId, count};

/// How often shards are asked for summaries.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pause after trees were asked for that are new, so that many new ones are asked for together.
const NEW_PAUSE: Duration = Duration::from_millis(50);
/// A tree that no read has named for so long is not asked for any more, and its summaries are forgotten.
const WANTED: Duration = Duration::from_secs(60);
/// Trees that are asked for. Reads of others are exact until there is room.
const TREES_MAX: usize = 1_024;
/// Memory of all summaries. Those of the tree that was named the longest ago are forgotten first.
const BYTES_MAX: usize = 64 << 20;
/// Questions in one round. With more trees than that, those go first that were asked for the longest ago.
const QUESTIONS_PER_ROUND: usize = 4_096;
/// Questions at the same time.
const AT_ONCE: usize = 32;
/// A summary that no owner has confirmed for so long makes the answer stale.
const STALE_AFTER: Duration = Duration::from_secs(5);
/// After so long without a confirmation, a summary of an earlier sequence is taken, too: the shard's data was
/// restored from an earlier time.
const REPLACED_AFTER: Duration = Duration::from_secs(15);

/// The summaries of all shards that this node knows.
pub struct Summaries {
    shards: Arc<dyn ShardClient>,
    trees: RwLock<HashMap<BoardLife, Arc<KeptTree>>>,
    /// A tree is wanted that was not before.
    added: Arc<Notify>,
    began: Instant,
}

/// One tree's summaries.
#[derive(Debug)]
pub(super) struct KeptTree {
    /// When a read has named it last, and when it was asked for last, in milliseconds since the node began;
    /// 0: never.
    named_ms: AtomicU64,
    asked_ms: AtomicU64,
    /// By the number of the shard.
    shards: Box<[RwLock<Option<KeptSummary>>]>,
}

#[derive(Debug, Clone)]
pub(super) struct KeptSummary {
    pub(super) summary: Arc<Summary>,
    pub(super) sequence: Sequence,
    /// When an owner has said last that it is its newest one.
    confirmed: Instant,
    is_live: bool,
}

impl KeptSummary {
    /// Whether the shard's owner applies what is published, and has been heard of lately.
    pub(super) fn is_live(&self) -> bool {
        self.is_live && self.confirmed.elapsed() < STALE_AFTER
    }
}

impl KeptTree {
    pub(super) fn of_shard(&self, shard: ShardId) -> Option<KeptSummary> {
        self.shards.get(shard.index())?.read().clone()
    }

    fn bytes(&self) -> usize {
        let bytes =
            |kept: &RwLock<Option<KeptSummary>>| kept.read().as_ref().map_or(0, |kept| kept.summary.bytes());
        self.shards.iter().map(bytes).sum()
    }

    fn take(&self, shard: ShardId, sequence: Sequence, is_live: bool, reply: SummaryReply) {
        let Some(slot) = self.shards.get(shard.index()) else { return };
        let mut slot = slot.write();
        let confirmed = Instant::now();
        match (reply, &mut *slot) {
            (SummaryReply::Made(summary), kept) => {
                let may_go_back = |kept: &KeptSummary| kept.confirmed.elapsed() >= REPLACED_AFTER;
                if kept.as_ref().is_none_or(|kept| kept.sequence <= sequence || may_go_back(kept)) {
                    *kept = Some(KeptSummary { summary, sequence, confirmed, is_live });
                }
            }
            (SummaryReply::Unchanged, Some(kept)) => {
                kept.sequence = kept.sequence.max(sequence);
                (kept.confirmed, kept.is_live) = (confirmed, is_live);
            }
            (SummaryReply::Unchanged, None) => {}
            (SummaryReply::Over, kept) => *kept = None,
        }
    }
}

impl Summaries {
    /// # Arguments
    /// `shards`: asks all shards, those of this node among them.
    #[must_use]
    pub fn new(shards: Arc<dyn ShardClient>) -> Self {
        // Before the first summary, too, there is a number.
        gauge!(SUMMARY_BYTES).set(0.0);
        for source in ["summary", "shard"] {
            counter!(APPROXIMATE_PARTS_TOTAL, "source" => source).increment(0);
        }
        for shard in 0..shards.shard_count() {
            gauge!(SUMMARY_AGE_SECONDS, "shard" => ShardId(shard).to_string()).set(0.0);
        }
        Self { shards, trees: RwLock::default(), added: Arc::default(), began: Instant::now() }
    }

    pub(super) fn shards(&self) -> &dyn ShardClient {
        &*self.shards
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// The summaries of a board or an instance, which are asked for from now on. `None` if there are too many
    /// trees.
    pub(super) fn of(&self, life: &BoardLife) -> Option<Arc<KeptTree>> {
        let now = self.now_ms();
        if let Some(tree) = self.trees.read().get(life) {
            tree.named_ms.store(now, Ordering::Relaxed);
            return Some(Arc::clone(tree));
        }
        let mut trees = self.trees.write();
        if trees.len() >= TREES_MAX && !trees.contains_key(life) {
            return None;
        }
        let new = || {
            Arc::new(KeptTree {
                named_ms: AtomicU64::new(now),
                asked_ms: AtomicU64::new(0),
                shards: (0..self.shards.shard_count()).map(|_| RwLock::new(None)).collect(),
            })
        };
        let tree = Arc::clone(trees.entry(life.clone()).or_insert_with(new));
        drop(trees);
        self.added.notify_one();
        Some(tree)
    }

    /// Asks for the summaries of the trees that reads have named lately.
    ///
    /// # Arguments
    /// `only_new`: of those only that were not asked for yet.
    pub async fn refresh(&self, only_new: bool) {
        let now = self.now_ms();
        let of_shards = usize::from(self.shards.shard_count()).max(1);
        let mut due: Vec<(u64, BoardLife, Arc<KeptTree>)> = Vec::new();
        for (life, tree) in self.trees.read().iter() {
            let asked = tree.asked_ms.load(Ordering::Relaxed);
            if asked == 0 || !only_new {
                due.push((asked, life.clone(), Arc::clone(tree)));
            }
        }
        due.sort_unstable_by_key(|(asked, ..)| *asked);
        due.truncate((QUESTIONS_PER_ROUND / of_shards).max(1));
        // A shard that no owner answers for is left out for the rest of the round: each question to it waits.
        let down: Vec<AtomicBool> = (0..of_shards).map(|_| AtomicBool::new(false)).collect();
        let mut questions = Vec::with_capacity(due.len() * of_shards);
        for (_, life, tree) in &due {
            tree.asked_ms.store(now, Ordering::Relaxed);
            questions.extend((0..self.shards.shard_count()).map(|shard| (life, tree, ShardId(shard))));
        }
        let down = &down;
        let asking = stream::iter(questions).for_each_concurrent(AT_ONCE, |(life, tree, shard)| async move {
            let is_down = down.get(shard.index());
            if is_down.is_some_and(|down| down.load(Ordering::Relaxed)) {
                return;
            }
            if !self.ask(life, tree, shard).await
                && let Some(is_down) = is_down
            {
                is_down.store(true, Ordering::Relaxed);
            }
        });
        asking.await;
        self.forget();
        self.show();
    }

    /// Asks a shard; returns whether it has replied.
    async fn ask(&self, life: &BoardLife, tree: &KeptTree, shard: ShardId) -> bool {
        let known = tree.of_shard(shard).map(|kept| kept.sequence);
        let question = Question::Summary { board: life.clone(), known };
        match self.shards.ask(shard, &question, AskTerms::default()).await {
            Ok(reply) if is_consistent(&question, &reply.reply) => {
                if let Reply::Summary(summary) = reply.reply {
                    tree.take(shard, reply.sequence, reply.is_live, summary);
                }
                true
            }
            _ => false,
        }
    }

    /// Forgets what no read has named for long, and more if all takes too much memory.
    fn forget(&self) {
        let now = self.now_ms();
        let wanted_ms = u64::try_from(WANTED.as_millis()).unwrap_or(u64::MAX);
        let mut trees = self.trees.write();
        trees.retain(|_, tree| now.saturating_sub(tree.named_ms.load(Ordering::Relaxed)) < wanted_ms);
        let mut sizes: Vec<(u64, usize, BoardLife)> = trees
            .iter()
            .map(|(life, tree)| (tree.named_ms.load(Ordering::Relaxed), tree.bytes(), life.clone()))
            .collect();
        sizes.sort_unstable_by_key(|(named, ..)| *named);
        let mut bytes: usize = sizes.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, freed, life) in sizes {
            if bytes <= BYTES_MAX {
                break;
            }
            bytes -= freed;
            trees.remove(&life);
        }
    }

    #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "a gauge is a float")]
    fn show(&self) {
        let trees: Vec<Arc<KeptTree>> = self.trees.read().values().cloned().collect();
        let bytes: usize = trees.iter().map(|tree| tree.bytes()).sum();
        gauge!(SUMMARY_BYTES).set(count(bytes) as f64);
        for shard in (0..self.shards.shard_count()).map(ShardId) {
            let ages =
                trees.iter().filter_map(|tree| tree.of_shard(shard)).map(|kept| kept.confirmed.elapsed());
            let oldest = ages.max().unwrap_or_default();
            gauge!(SUMMARY_AGE_SECONDS, "shard" => shard.to_string()).set(oldest.as_secs_f64());
        }
    }
}

/// Keeps the summaries up to date for as long as there is somebody who reads them.
pub async fn keep_summaries(summaries: Weak<Summaries>) {
    let Some(added) = summaries.upgrade().map(|summaries| Arc::clone(&summaries.added)) else { return };
    let mut next = tokio::time::Instant::now() + INTERVAL;
    loop {
        let only_new = tokio::select! {
            () = tokio::time::sleep_until(next) => false,
            () = added.notified() => true,
        };
        let Some(summaries) = summaries.upgrade() else { return };
        summaries.refresh(only_new).await;
        drop(summaries);
        if only_new {
            tokio::time::sleep(NEW_PAUSE).await;
        } else {
            next = tokio::time::Instant::now() + INTERVAL;
        }
    }
}

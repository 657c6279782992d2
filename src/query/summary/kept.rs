//! The newest summaries that a node knows, of its own shards and others', and the task that asks for them.
//!
//! Knows: that only trees are asked for which a read has named lately, and how much memory and how many
//! questions that may take. Must not know: what an answer is made of.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use metrics::{counter, gauge};
use parking_lot::RwLock;
use tokio::sync::Notify;

use crate::metrics::{APPROXIMATE_PARTS_TOTAL, SUMMARY_AGE_SECONDS, SUMMARY_BYTES};
use crate::query::question::{BoardLife, Question, Reply, ShardReply, is_consistent};
use crate::query::remote_shards::{AskTerms, ShardClient};
use crate::query::summary::{KnownSummary, Summary, SummaryReply};
use crate::types::{Sequence, ShardId, count};

/// How often shards are asked for summaries.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pause after trees were asked for that are new, so that many new ones are asked for together.
const NEW_PAUSE: Duration = Duration::from_millis(50);
/// A tree that no read has named for so long is not asked for any more, and its summaries are forgotten.
const WANTED: Duration = Duration::from_secs(60);
/// Trees that are asked for, and of many shards fewer ([`trees_max`]). Reads of others are exact until there
/// is room.
const TREES_MAX: usize = 1_024;
/// Memory of all summaries. Once it is full, no tree is added before one is not wanted any more.
const BYTES_MAX: usize = 64 << 20;
/// Questions in one round. There are no more trees than one round can ask for, so that each summary is
/// confirmed about once a second, however many shards there are.
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
    /// Memory of the summaries of all trees.
    bytes: AtomicUsize,
    /// The summaries have taken too much memory, and no tree has been forgotten since for want of readers. A
    /// tree that was added now would push out another one, whose readers would add it again.
    is_full: AtomicBool,
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
    added: Instant,
    /// By the number of the shard.
    shards: Box<[RwLock<Option<KeptSummary>>]>,
}

#[derive(Debug, Clone)]
pub(super) struct KeptSummary {
    pub(super) summary: Arc<Summary>,
    pub(super) sequence: Sequence,
    hash: u64,
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
        self.shards.iter().map(|slot| bytes_of(slot.read().as_ref())).sum()
    }

    /// Takes what a shard has replied, and keeps the bytes of all summaries right.
    fn take(&self, (shard, reply): (ShardId, ShardReply), bytes: &AtomicUsize) {
        let ShardReply { sequence, is_live, reply: Reply::Summary(reply) } = reply else { return };
        let Some(slot) = self.shards.get(shard.index()) else { return };
        let mut slot = slot.write();
        let bytes_before = bytes_of(slot.as_ref());
        let confirmed = Instant::now();
        match (reply, &mut *slot) {
            (SummaryReply::Made(summary), kept) => {
                let may_go_back = |kept: &KeptSummary| kept.confirmed.elapsed() >= REPLACED_AFTER;
                if kept.as_ref().is_none_or(|kept| kept.sequence <= sequence || may_go_back(kept)) {
                    let hash = summary.hash();
                    *kept = Some(KeptSummary { summary, sequence, hash, confirmed, is_live });
                }
            }
            (SummaryReply::Unchanged, Some(kept)) => {
                kept.sequence = kept.sequence.max(sequence);
                (kept.confirmed, kept.is_live) = (confirmed, is_live);
            }
            (SummaryReply::Unchanged, None) => {}
            (SummaryReply::Over, kept) => *kept = None,
        }
        bytes.fetch_add(bytes_of(slot.as_ref()), Ordering::Relaxed);
        bytes.fetch_sub(bytes_before, Ordering::Relaxed);
    }
}

fn bytes_of(kept: Option<&KeptSummary>) -> usize {
    kept.map_or(0, |kept| kept.summary.bytes())
}

/// How many trees are asked for.
fn trees_max(shards: u16) -> usize {
    (QUESTIONS_PER_ROUND / usize::from(shards).max(1)).clamp(1, TREES_MAX)
}

impl Summaries {
    /// # Arguments
    /// `shards`: asks all shards, those of this node among them.
    pub fn new(shards: Arc<dyn ShardClient>) -> Self {
        // Before the first summary, too, there is a number.
        gauge!(SUMMARY_BYTES).set(0.0);
        for source in ["summary", "shard"] {
            counter!(APPROXIMATE_PARTS_TOTAL, "source" => source).increment(0);
        }
        for shard in 0..shards.shard_count() {
            gauge!(SUMMARY_AGE_SECONDS, "shard" => ShardId(shard).to_string()).set(0.0);
        }
        Self {
            shards,
            trees: RwLock::default(),
            bytes: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
            added: Arc::default(),
            began: Instant::now(),
        }
    }

    pub(super) fn shards(&self) -> &dyn ShardClient {
        &*self.shards
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn is_over(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > BYTES_MAX
    }

    /// The summaries of a board or an instance, which are asked for from now on. `None` if there is no room
    /// for another tree.
    pub(super) fn of(&self, life: &BoardLife) -> Option<Arc<KeptTree>> {
        let now = self.now_ms();
        let has_room = |trees: &HashMap<_, _>| {
            trees.len() < trees_max(self.shards.shard_count()) && !self.is_full.load(Ordering::Relaxed)
        };
        {
            let trees = self.trees.read();
            if let Some(tree) = trees.get(life) {
                tree.named_ms.store(now, Ordering::Relaxed);
                return Some(Arc::clone(tree));
            }
            // So that reads for which there is no room do not wait for one another.
            if !has_room(&trees) {
                return None;
            }
        }
        let mut trees = self.trees.write();
        if !trees.contains_key(life) && !has_room(&trees) {
            return None;
        }
        let new = || {
            Arc::new(KeptTree {
                named_ms: AtomicU64::new(now),
                asked_ms: AtomicU64::new(0),
                added: Instant::now(),
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
        // Those asked for the longest ago go first, because a round may end before its last tree.
        let mut due: Vec<(u64, BoardLife, Arc<KeptTree>)> = Vec::new();
        for (life, tree) in self.trees.read().iter() {
            let asked = tree.asked_ms.load(Ordering::Relaxed);
            if asked == 0 || !only_new {
                due.push((asked, life.clone(), Arc::clone(tree)));
            }
        }
        due.sort_unstable_by_key(|(asked, _, tree)| (*asked, tree.added));
        // A shard that no owner answers for is left out for the rest of the round: each question to it waits.
        let down: Vec<AtomicBool> = (0..of_shards).map(|_| AtomicBool::new(false)).collect();
        let mut questions = Vec::with_capacity(due.len() * of_shards);
        for (_, life, tree) in &due {
            questions.extend((0..self.shards.shard_count()).map(|shard| (life, tree, ShardId(shard))));
        }
        let down = &down;
        let asking = stream::iter(questions).for_each_concurrent(AT_ONCE, |(life, tree, shard)| async move {
            let is_down = down.get(shard.index());
            if self.is_over() {
                return;
            }
            tree.asked_ms.store(now, Ordering::Relaxed);
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
        let known = |kept: KeptSummary| KnownSummary { sequence: kept.sequence, hash: kept.hash };
        let known = tree.of_shard(shard).map(known);
        let question = Question::Summary { board: life.clone(), known };
        match self.shards.ask(shard, &question, AskTerms::default()).await {
            Ok(reply) if is_consistent(&question, &reply.reply) => {
                tree.take((shard, reply), &self.bytes);
                true
            }
            _ => false,
        }
    }

    /// Forgets what no read has named for long. If all takes too much memory, the trees that were added last
    /// are forgotten as well, and reads of them are exact.
    fn forget(&self) {
        let now = self.now_ms();
        let wanted_ms = u64::try_from(WANTED.as_millis()).unwrap_or(u64::MAX);
        let mut trees = self.trees.write();
        let trees_before = trees.len();
        trees.retain(|_, tree| now.saturating_sub(tree.named_ms.load(Ordering::Relaxed)) < wanted_ms);
        let mut is_full = self.is_full.load(Ordering::Relaxed) && trees.len() == trees_before;
        let mut sizes: Vec<(Instant, usize, BoardLife)> =
            trees.iter().map(|(life, tree)| (tree.added, tree.bytes(), life.clone())).collect();
        sizes.sort_unstable_by_key(|(added, ..)| *added);
        let mut bytes: usize = sizes.iter().map(|(_, bytes, _)| bytes).sum();
        // Boards may have become smaller.
        is_full &= bytes > BYTES_MAX / 2;
        while bytes > BYTES_MAX
            && let Some((_, freed, life)) = sizes.pop()
        {
            bytes -= freed;
            trees.remove(&life);
            is_full = true;
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        self.is_full.store(is_full, Ordering::Relaxed);
    }

    #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "a gauge is a float")]
    fn show(&self) {
        let trees: Vec<Arc<KeptTree>> = self.trees.read().values().cloned().collect();
        gauge!(SUMMARY_BYTES).set(count(self.bytes.load(Ordering::Relaxed)) as f64);
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use super::*;
    use crate::query::remote_shards::NoReply;
    use crate::state::Incarnation;
    use crate::types::BoardName;

    const MIB: usize = 1 << 20;

    /// Shards whose summaries say nothing and take much memory.
    struct Large {
        shards: u16,
        /// Memory of each summary.
        bytes: AtomicUsize,
        /// Whether each question finds another summary.
        is_changing: AtomicBool,
        asked: AtomicUsize,
        /// Summaries that were sent.
        sent: AtomicUsize,
    }

    impl ShardClient for Large {
        fn shard_count(&self) -> u16 {
            self.shards
        }

        fn ask<'a>(
            &'a self,
            _: ShardId,
            question: &'a Question<'a>,
            _: AskTerms,
        ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
            let Question::Summary { known, .. } = question else { panic!("{question:?}") };
            self.asked.fetch_add(1, Ordering::Relaxed);
            let is_known = known.is_some_and(|known| known.hash == Summary::default().hash());
            let reply = if is_known && !self.is_changing.load(Ordering::Relaxed) {
                SummaryReply::Unchanged
            } else {
                self.sent.fetch_add(1, Ordering::Relaxed);
                let ids = Vec::with_capacity(self.bytes.load(Ordering::Relaxed));
                SummaryReply::Made(Arc::new(Summary { ids, ..Summary::default() }))
            };
            let reply = ShardReply { sequence: Sequence(7), is_live: true, reply: Reply::Summary(reply) };
            Box::pin(async move { Ok(reply) })
        }
    }

    fn large(shards: u16, bytes: usize) -> (Arc<Large>, Summaries) {
        let (bytes, is_changing) = (AtomicUsize::new(bytes), AtomicBool::new(false));
        let asked =
            Large { shards, bytes, is_changing, asked: AtomicUsize::new(0), sent: AtomicUsize::new(0) };
        let asked = Arc::new(asked);
        let mut summaries = Summaries::new(Arc::<Large>::clone(&asked));
        // So that something can have been named long ago.
        summaries.began = Instant::now().checked_sub(2 * WANTED).expect("the machine is older");
        (asked, summaries)
    }

    fn life(number: usize) -> BoardLife {
        let board = BoardName::new(&format!("b{number}")).expect("a good name");
        BoardLife { board, incarnation: Incarnation(1) }
    }

    /// Reads boards; gives those that are kept.
    fn read(summaries: &Summaries, boards: std::ops::Range<usize>) -> Vec<usize> {
        boards.filter(|number| summaries.of(&life(*number)).is_some()).collect()
    }

    fn refresh(summaries: &Summaries, only_new: bool) {
        summaries.refresh(only_new).now_or_never().expect("nothing is waited for");
        let held: usize = summaries.trees.read().values().map(|tree| tree.bytes()).sum();
        assert_eq!(summaries.bytes.load(Ordering::Relaxed), held, "the running count is right");
        assert!(held <= BYTES_MAX);
    }

    fn count_of(counter: &AtomicUsize) -> usize {
        counter.load(Ordering::Relaxed)
    }

    #[test]
    fn once_memory_is_full_no_summary_is_fetched_again_and_again() {
        // Ten trees of 10 MiB each, all of them read all the time.
        let (shards, summaries) = large(2, 5 * MIB);
        assert_eq!(read(&summaries, 0..10).len(), 10);
        refresh(&summaries, true);
        assert_eq!(count_of(&shards.sent), 13, "the round ends with the summary that is too much");
        for _ in 0..5 {
            assert_eq!(read(&summaries, 0..10), [0, 1, 2, 3, 4, 5], "reads of the others are exact");
            refresh(&summaries, true);
            refresh(&summaries, false);
        }
        assert_eq!(count_of(&shards.sent), 13);
        // Nobody reads one of them any more.
        summaries.of(&life(3)).expect("it is kept").named_ms.store(1, Ordering::Relaxed);
        refresh(&summaries, false);
        assert_eq!(read(&summaries, 7..8), [7], "there is room");
        for _ in 0..5 {
            refresh(&summaries, true);
            assert_eq!(read(&summaries, 0..3), [0, 1, 2]);
            assert_eq!(read(&summaries, 7..8), [7]);
        }
        assert_eq!(count_of(&shards.sent), 15);
    }

    #[test]
    fn when_summaries_grow_the_trees_that_were_added_first_stay() {
        let (shards, summaries) = large(2, MIB);
        assert_eq!(read(&summaries, 0..10).len(), 10);
        refresh(&summaries, true);
        assert_eq!(read(&summaries, 0..10).len(), 10);
        shards.bytes.store(5 * MIB, Ordering::Relaxed);
        shards.is_changing.store(true, Ordering::Relaxed);
        for _ in 0..10 {
            refresh(&summaries, false);
            read(&summaries, 0..10);
        }
        assert_eq!(read(&summaries, 0..10), [0, 1, 2, 3, 4, 5]);
        // Once they are small, there is room again.
        shards.bytes.store(MIB, Ordering::Relaxed);
        refresh(&summaries, false);
        assert_eq!(read(&summaries, 0..10).len(), 10);
    }

    #[test]
    fn one_round_asks_for_every_tree_whatever_the_number_of_shards() {
        for (shards, most) in [(1, 1_024), (4, 1_024), (16, 256), (64, 64), (5_000, 1)] {
            let (asked, summaries) = large(shards, 0);
            assert_eq!(read(&summaries, 0..1_100).len(), most, "{shards} shards");
            for round in 1..4 {
                refresh(&summaries, false);
                assert_eq!(count_of(&asked.asked), round * most * usize::from(shards), "{shards} shards");
            }
        }
    }
}

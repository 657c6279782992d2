//! Shards as an approximate read asks them: what their summaries tell is not asked.
//!
//! A read is the same function as an exact one. Counts at a score, and at the key of an entry of another
//! shard, are guessed from the summaries, and the bounds of the guesses are summed here. Everything else is
//! asked of the shards: a member's entry, and counts of a shard of which there is no summary yet, or of which
//! the read needs what it has applied just now.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use metrics::counter;
use parking_lot::Mutex;

use crate::metrics::APPROXIMATE_PARTS_TOTAL;
use crate::query::question::{
    BoardCounts, BoardLife, Counted, LifeOnShard, Mark, Question, Reply, RunQuestion, RunReply, RunStart,
    ShardReply, SortKey,
};
use crate::query::remote_shards::{AskTerms, NoReply, ShardClient};
use crate::query::summary::kept::{KeptSummary, KeptTree};
use crate::query::summary::{Estimate, Summaries, Summary};
use crate::types::{Sequence, ShardId};

/// The shards, for one read.
pub struct ApproximateShards<'s> {
    summaries: &'s Summaries,
    /// The tree that is read.
    tree: Mutex<Option<(BoardLife, Option<Arc<KeptTree>>)>>,
    /// What each shard has told last, by its number: for each mark, what may be off.
    guessed: Mutex<Vec<Vec<Guessed>>>,
}

/// What is guessed of one mark.
#[derive(Debug, Clone, Copy, Default)]
struct Guessed {
    /// Entries that are better: what ranks are made of.
    better: Estimate,
    /// Entries before an entry: what positions are made of.
    before: Estimate,
}

impl<'s> ApproximateShards<'s> {
    pub fn new(summaries: &'s Summaries) -> Self {
        let shards = usize::from(summaries.shards().shard_count());
        Self { summaries, tree: Mutex::new(None), guessed: Mutex::new(vec![Vec::new(); shards]) }
    }

    /// The most by which the rank of the `nth` mark of the read, and the position there, can be off.
    pub fn rank_error(&self, nth: usize) -> u64 {
        let mut sum = Guessed::default();
        for guessed in self.guessed.lock().iter().filter_map(|marks| marks.get(nth)) {
            sum.better += guessed.better;
            sum.before += guessed.before;
        }
        sum.better.error().max(sum.before.error())
    }

    /// The summary to use, if there is one. Names the tree in any case.
    fn summary_of(&self, shard: ShardId, life: &BoardLife, terms: AskTerms) -> Option<KeptSummary> {
        let mut tree = self.tree.lock();
        if tree.as_ref().is_none_or(|(known, _)| known != life) {
            *tree = Some((life.clone(), self.summaries.of(life)));
        }
        // Of a shard that must have applied something, only the shard itself knows.
        if terms.least > Sequence::default() {
            return None;
        }
        let (_, tree) = tree.as_ref()?;
        tree.as_ref()?.of_shard(shard)
    }

    /// The reply of a summary, if the question is one that it can answer.
    fn reply(&self, shard: ShardId, question: &Question<'_>, terms: AskTerms) -> Option<ShardReply> {
        let (kept, reply, guessed) = match question {
            Question::Counts(boards) => {
                let [(life, marks)] = boards.as_slice() else { return None };
                let kept = self.summary_of(shard, life, terms)?;
                let (counts, guessed) = marks.iter().map(|mark| at_mark(&kept.summary, mark)).unzip();
                let counts = BoardCounts {
                    life: LifeOnShard::Here,
                    total: kept.summary.total,
                    hidden: 0,
                    marks: counts,
                };
                (kept, Reply::Counts(vec![counts]), guessed)
            }
            Question::Runs(life, runs) => {
                let [
                    RunQuestion {
                        start: RunStart::Before(Mark::Entry(key)),
                        above: 0,
                        below: 0,
                        worst: None,
                        ..
                    },
                ] = runs.as_slice()
                else {
                    return None;
                };
                let kept = self.summary_of(shard, life, terms)?;
                let (run, guessed) = before_entry(&kept.summary, key);
                (kept, Reply::Runs(vec![Some(run)]), vec![guessed])
            }
            _ => return None,
        };
        self.note(shard, guessed);
        Some(ShardReply { sequence: kept.sequence, is_live: kept.is_live(), reply })
    }

    fn note(&self, shard: ShardId, marks: Vec<Guessed>) {
        if let Some(of_shard) = self.guessed.lock().get_mut(shard.index()) {
            *of_shard = marks;
        }
    }
}

fn at_mark(summary: &Summary, mark: &Mark<'_>) -> (Counted, Guessed) {
    match mark {
        Mark::Score(score) => {
            let (better, through) = summary.at_score(score.as_slice());
            let counted = Counted { before: better.guess, through: through.guess };
            (counted, Guessed { better, before: Estimate::default() })
        }
        Mark::Entry(key) => {
            let before = summary.before(key.words.as_slice(), key.member);
            (Counted { before: before.guess, through: before.guess }, Guessed { better: before, before })
        }
    }
}

/// An empty run before the place of an entry, with the counts there.
fn before_entry(summary: &Summary, key: &SortKey<'_>) -> (RunReply, Guessed) {
    let words = key.words.as_slice();
    let (better, through) = summary.at_score(words.get(..summary.score_words).unwrap_or(words));
    let before = summary.before(key.words.as_slice(), key.member);
    let run = RunReply {
        life: LifeOnShard::Here,
        total: summary.total,
        start: before.guess,
        remaining: summary.total - before.guess,
        at_start: Counted { before: better.guess, through: through.guess },
        better_than_first: better.guess.min(before.guess),
        above: Vec::new(),
        below: Vec::new(),
    };
    (run, Guessed { better, before })
}

impl ShardClient for ApproximateShards<'_> {
    fn shard_count(&self) -> u16 {
        self.summaries.shards().shard_count()
    }

    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        terms: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
        if let Some(reply) = self.reply(shard, question, terms) {
            counter!(APPROXIMATE_PARTS_TOTAL, "source" => "summary").increment(1);
            return Box::pin(async move { Ok(reply) });
        }
        counter!(APPROXIMATE_PARTS_TOTAL, "source" => "shard").increment(1);
        self.note(shard, Vec::new());
        self.summaries.shards().ask(shard, question, terms)
    }
}

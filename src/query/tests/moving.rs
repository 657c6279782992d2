//! The law of reads over shards that move while they are asked: every answer is what one sorted vector of the
//! entries says, as each shard had them at the sequence that the answer names.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::remote::reply_of;
use super::{BOARD, Row, check_listed, check_run, check_shards, id, known, numbered_rows, ok, shards, time};
use crate::board::Definition;
use crate::query::model::Model;
use crate::query::question::{Question, ShardReply};
use crate::query::{
    Around, AskTerms, BoardView, End, NoReply, RemoteShards, ScoreTarget, ShardClient, Start, around, count,
    edges_over, from_position, histogram, lookup, member, ranks_of_scores, scores_at, top,
};
use crate::state::{Applied, Change, Entry, EntryState, Step, TreeId};
use crate::state_lock::{Purpose, StateLock};
use crate::types::{AsOf, BoardName, MemberId, Score, Sequence, ShardId, shard_of};

/// Shards of which some entries change before each reply.
pub(super) struct MovingShards {
    pub(super) definition: Arc<Definition>,
    pub(super) shards: Vec<StateLock>,
    /// For each shard, its rows at each of its sequences.
    history: Vec<Mutex<BTreeMap<Sequence, Vec<Row>>>>,
    random: Mutex<StdRng>,
    /// Changes before a reply, at most.
    changes: usize,
    /// Scores are below this.
    pub(super) scores: i64,
}

impl MovingShards {
    fn new(rows: &[Row], count: u16, seed: u64, changes: usize, scores: i64, capacity: Option<u64>) -> Self {
        let definition = Arc::new(Definition { capacity, ..Definition::default() });
        let shards = shards(&definition, rows, count);
        let history = shards.iter().enumerate().map(|(number, shard)| {
            let home = |row: &&Row| shard_of(&id(&row.entry.member), count).index() == number;
            let rows: Vec<Row> = rows.iter().filter(home).cloned().collect();
            Mutex::new(BTreeMap::from([(shard.read(Purpose::Read).applied.sequence, rows)]))
        });
        let history = history.collect();
        let random = Mutex::new(StdRng::seed_from_u64(seed));
        Self { definition, shards, history, random, changes, scores }
    }

    /// Some entries of a shard get other scores, are hidden or shown.
    fn change(&self, shard: ShardId) {
        let mut random = self.random.lock();
        let mut history = self.history[shard.index()].lock();
        let (sequence, rows) = history.last_key_value().expect("it began with one");
        let (sequence, mut rows) = (sequence.next(), rows.clone());
        if rows.is_empty() || self.changes == 0 {
            return;
        }
        let mut state = self.shards[shard.index()].write(Purpose::Apply);
        let mut step = Step { applied: Applied { sequence, ..Applied::default() }, ..Step::default() };
        for _ in 0..random.random_range(0..=self.changes) {
            let row = random.random_range(0..rows.len());
            let row = &mut rows[row];
            row.entry.score = vec![random.random_range(0..self.scores)];
            row.hidden = random.random_range(0..8) == 0;
            let member = row.entry.member.as_bytes();
            let score = Score::new(&row.entry.score).expect("one key");
            let words = self.definition.entry_words(&score, time(row.entry.reached), member);
            let handle = state.members.get(member).expect("it was there from the start");
            step.changes.retain(|change| change.handle != handle);
            step.changes.push(Change {
                tree: TreeId(0),
                handle,
                after: Some(Entry {
                    state: if row.hidden { EntryState::Hidden(words) } else { EntryState::Listed(words) },
                    updated_at: time(row.entry.reached),
                    version: None,
                    has_metadata: false,
                }),
            });
        }
        state.apply(&step);
        history.insert(sequence, rows);
    }

    /// The entries as each shard had them at its sequence.
    pub(super) fn model(&self, as_of: &AsOf) -> Model {
        self.model_of(Arc::clone(&self.definition), as_of)
    }

    /// The same with those beyond the capacity.
    pub(super) fn whole(&self, as_of: &AsOf) -> Model {
        self.model_of(Arc::new(Definition { capacity: None, ..(*self.definition).clone() }), as_of)
    }

    fn model_of(&self, definition: Arc<Definition>, as_of: &AsOf) -> Model {
        assert_eq!(as_of.0.len(), self.shards.len(), "each shard has a part in the answer");
        let rows = as_of.0.iter().flat_map(|(shard, sequence)| {
            self.history[shard.index()].lock().get(sequence).expect("a sequence of the shard").clone()
        });
        let listed = rows.filter(|row| !row.hidden).map(|row| row.entry);
        Model::new(definition, listed.collect())
    }
}

impl ShardClient for MovingShards {
    fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).expect("a few")
    }

    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        _: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
        Box::pin(async move {
            self.change(shard);
            Ok(reply_of(&self.shards[shard.index()], question))
        })
    }
}

/// Asks boards of few and of many ties, on few and on many shards, slowly and quickly moving, some of them
/// with more entries than their capacity.
pub(super) fn on_moving_boards(
    check: impl Fn(&MovingShards, &BoardView<'_>, &RemoteShards<'_>, &mut StdRng),
) {
    let mut seed = 0;
    for (members, shards, changes, scores) in [
        (40, 2, 3, 1_000_000),
        (40, 3, 2, 4),
        (2_000, 5, 8, 1_000_000),
        (2_000, 16, 1, 30),
        (3_000, 3, 1, 1_000),
        (5, 3, 1, 3),
        // More entries share a score than a run shows.
        (1_500, 3, 2, 3),
    ] {
        let half = members as u64 / 2;
        for capacity in [None, Some(1), None, Some(half), None, Some(half / 3 + 1)] {
            seed += 1;
            let rows = numbered_rows(members, |index| (index as i64 * 7_919 + 13) % scores);
            let moving = MovingShards::new(&rows, shards, seed, changes, scores, capacity);
            let name = BoardName::new(BOARD).expect("a good name");
            let mut random = StdRng::seed_from_u64(seed + 1_000);
            for _ in 0..20 {
                let remote = RemoteShards::new(&moving);
                let board = BoardView::remote(&remote, name.clone(), &known(&moving.definition));
                check(&moving, &board, &remote, &mut random);
            }
        }
    }
}

pub(super) fn some_member(moving: &MovingShards, random: &mut StdRng) -> MemberId {
    let members: usize = moving
        .history
        .iter()
        .map(|shard| shard.lock().first_key_value().map_or(0, |(_, rows)| rows.len()))
        .sum();
    id(&format!("m{}", random.random_range(0..members + 1)))
}

#[test]
fn ranks_and_counts_are_of_the_sequences_named() {
    on_moving_boards(|moving, board, remote, random| {
        let scores: Vec<i64> = (0..5).map(|_| random.random_range(-1..=moving.scores)).collect();
        let asked_scores: Vec<Score> =
            scores.iter().map(|score| Score::new(&[*score]).expect("one key")).collect();
        let ranks = ok(ranks_of_scores(board, &asked_scores));
        let model = moving.model(&remote.as_of());
        for (score, ranked) in scores.iter().zip(&ranks) {
            assert_eq!(ranked.standing.better, model.better(&[*score]));
            assert_eq!(ranked.standing.tied, model.tied(&[*score]));
            assert_eq!(ranked.standing.total, model.entries.len() as u64);
            check_shards(ranked, &[*score], &model).expect("as the model says");
        }
        let (low, high) = (random.random_range(0..moving.scores), random.random_range(0..moving.scores));
        let counted = ok(count(board, low, high));
        let model = moving.model(&remote.as_of());
        assert_eq!(counted, model.count(|entry| (low..=high).contains(&entry.score[0])));
        let edges = ok(edges_over(board, 4));
        let spread = ok(histogram(board, &edges));
        let model = moving.model(&remote.as_of());
        let inside: u64 = spread.buckets.iter().map(|bucket| bucket.count).sum();
        assert_eq!(spread.below + inside + spread.above, model.entries.len() as u64);
        for bucket in &spread.buckets {
            let within = |entry: &_| (bucket.min..=bucket.max).contains(&score_of(entry));
            assert_eq!(bucket.count, model.count(within));
        }
    });
}

fn score_of(entry: &crate::query::model::ModelEntry) -> i64 {
    entry.score[0]
}

#[test]
fn members_and_their_neighbours_are_of_the_sequences_named() {
    on_moving_boards(|moving, board, remote, random| {
        let member_id = some_member(moving, random);
        let found = ok(member(board, &member_id));
        if let Some(found) = found {
            let model = moving.model(&remote.as_of());
            let index = model.index_of(member_id.as_str()).expect("it is listed");
            let entry = &model.entries[index];
            check_listed(&found.listed, &model, index, entry).expect("as the model says");
            assert_eq!(found.standing.better, model.better(&entry.score));
            assert_eq!(found.standing.tied, model.tied(&entry.score));
            assert_eq!(found.standing.total, model.entries.len() as u64);
        } else if remote.as_of().0.len() == moving.shards.len() {
            // Its home shard has it, and all of them say that it is beyond the capacity.
            assert_eq!(moving.model(&remote.as_of()).index_of(member_id.as_str()), None);
        }
        let wanted = Around { above: 3, below: 2, fill: random.random_range(0..2) == 0 };
        if let Some(found) = ok(around(board, &member_id, wanted)) {
            let model = moving.model(&remote.as_of());
            let index = model.index_of(member_id.as_str()).expect("it is listed");
            let (mut first, mut past) = (index.saturating_sub(3), (index + 3).min(model.entries.len()));
            if wanted.fill {
                past = past.max(first + 6).min(model.entries.len());
                first = first.min(past.saturating_sub(6));
            }
            check_run(&found, &model, first, past - first).expect("as the model says");
        }
    });
}

#[test]
fn a_group_is_of_the_sequences_named() {
    on_moving_boards(|moving, board, remote, random| {
        let members: Vec<MemberId> = (0..6).map(|_| some_member(moving, random)).collect();
        // Members that change at each round trip cannot be counted at one moment.
        let Ok(found) = crate::query::run_in_memory(lookup(board, &members)) else { return };
        let model = moving.model(&remote.as_of());
        let listed: Vec<_> = found.entries.iter().map(|(listed, _)| listed).collect();
        for listed in &listed {
            let index = model.index_of(&listed.member).expect("it is listed");
            check_listed(listed, &model, index, &model.entries[index]).expect("as the model says");
        }
        for index in &found.not_found {
            assert_eq!(model.index_of(members[*index].as_str()), None);
        }
    });
}

#[test]
fn pages_are_of_the_sequences_named() {
    on_moving_boards(|moving, board, remote, random| {
        let limit = random.random_range(1..30);
        for from in [End::Top, End::Bottom] {
            let mut start = Start::End(from);
            for nth in 0..3 {
                let page = ok(top(board, &start, limit));
                let model = moving.model(&remote.as_of());
                for listed in &page.entries {
                    let index = model.index_of(&listed.member).expect("it is listed");
                    check_listed(listed, &model, index, &model.entries[index]).expect("as the model says");
                }
                if nth == 0 && from == End::Top {
                    check_run(&page.entries, &model, 0, limit).expect("as the model says");
                }
                if nth == 0 && from == End::Bottom {
                    let last = model.entries.iter().rev().take(limit).map(|entry| &*entry.member);
                    assert!(page.entries.iter().map(|listed| &*listed.member).eq(last));
                }
                let Some(next) = page.next else { break };
                start = Start::After(next);
            }
        }
    });
}

#[test]
fn positions_and_percentiles_are_of_the_sequences_named() {
    let mut answered = 0_u32;
    let count = std::cell::Cell::new(0_u32);
    on_moving_boards(|moving, board, remote, random| {
        let members = moving.model(&AsOf(first_sequences(moving))).entries.len() as u64;
        let position = random.random_range(1..=members.max(1));
        let limit = random.random_range(1..20);
        let page = ok(from_position(board, position, limit));
        let model = moving.model(&remote.as_of());
        check_run(&page.entries, &model, position as usize - 1, limit).expect("as the model says");
        let target = ScoreTarget::Position(position);
        if let Ok(found) = crate::query::run_in_memory(scores_at(board, &[target])) {
            let model = moving.model(&remote.as_of());
            let entry = model.entries.get(position as usize - 1);
            assert_eq!(found[0].is_some(), entry.is_some());
            if let (Some((score, standing)), Some(entry)) = (&found[0], entry) {
                count.set(count.get() + 1);
                assert_eq!(score.keys(), &entry.score);
                assert_eq!(standing.better, model.better(&entry.score));
                assert_eq!(standing.tied, model.tied(&entry.score));
                assert_eq!(standing.total, model.entries.len() as u64);
            }
        }
        let wanted = f64::from(random.random_range(0..=1_000)) / 10.0;
        if let Ok(found) = crate::query::run_in_memory(scores_at(board, &[ScoreTarget::Percentile(wanted)])) {
            let model = moving.model(&remote.as_of());
            let total = model.entries.len() as u64;
            let percentile = |entry: &crate::query::model::ModelEntry| {
                let worse = total - model.better(&entry.score) - model.tied(&entry.score);
                100.0 * worse as f64 / total as f64
            };
            let expected = model.entries.iter().rev().find(|entry| percentile(entry) >= wanted);
            let expected = expected.or(model.entries.first()).map(|entry| entry.score.clone());
            assert_eq!(found[0].as_ref().map(|(score, _)| score.keys().to_vec()), expected);
        }
    });
    answered += count.get();
    assert!(answered > 600, "most positions have an answer, however the board moves: {answered} of 840");
}

fn first_sequences(moving: &MovingShards) -> Vec<(ShardId, Sequence)> {
    let shards = moving.history.iter().zip(0_u16..);
    let first = shards.filter_map(|(history, shard)| {
        history.lock().last_key_value().map(|(sequence, _)| (ShardId(shard), *sequence))
    });
    first.collect()
}

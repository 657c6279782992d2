//! More reads over shards that move while they are asked; see `moving`.

use std::sync::Arc;

use super::moving::{MovingShards, on_moving_boards, some_member};
use super::{BOARD, check_listed, check_run, id, ok};
use crate::query::model::{Model, ModelEntry};
use crate::query::question::{BoardLife, FoundMember, found_member};
use crate::query::shard_board::ShardBoard;
use crate::query::{
    BoardSelection, FoundOutcome, InstanceAsked, ReadShards, ScoreTarget, add_other_shards,
    entries_of_member, range, run_in_memory, scores_at, trim_point_of_position,
};
use crate::state::{Incarnation, ShardRanking};
use crate::state_lock::Purpose;
use crate::types::{BoardName, MemberId, ShardId, shard_of};
use crate::writer::{BoardOutcome, FoundBoard, Registry};
use rand::RngExt as _;

fn life() -> BoardLife {
    BoardLife { board: BoardName::new(BOARD).expect("a good name"), incarnation: Incarnation(7) }
}

#[test]
fn pages_between_two_scores_are_of_the_sequences_named() {
    on_moving_boards(|moving, board, remote, random| {
        let (a, b) = (random.random_range(0..moving.scores), random.random_range(0..moving.scores));
        let (min, max) = (a.min(b), a.max(b));
        let limit = random.random_range(1..40);
        let page = ok(range(board, min, max, None, limit));
        let model = moving.model(&remote.as_of());
        let is_within = |entry: &ModelEntry| (min..=max).contains(&entry.score[0]);
        let first = model.entries.iter().position(is_within).unwrap_or(0);
        let count = model.entries.iter().filter(|entry| is_within(entry)).count();
        check_run(&page.entries, &model, first, count.min(limit)).expect("as the model says");
        assert_eq!(page.next.is_some(), count > limit);
        let Some(next) = page.next else { return };
        let second = ok(range(board, min, max, Some(&next), limit));
        let model = moving.model(&remote.as_of());
        for listed in &second.entries {
            let index = model.index_of(&listed.member).expect("it is listed");
            check_listed(listed, &model, index, &model.entries[index]).expect("as the model says");
        }
    });
}

/// The score at a percentile, as a person would find it.
fn expected(model: &Model, wanted: f64) -> Option<Vec<i64>> {
    let total = model.entries.len() as u64;
    let mut worse = 0_u64;
    let mut before: Option<&ModelEntry> = None;
    let mut at = 0_u64;
    // From the worst up: `worse` are the entries of worse scores.
    for entry in model.entries.iter().rev() {
        if before.is_some_and(|before| before.score != entry.score) {
            worse = at;
        }
        (before, at) = (Some(entry), at + 1);
        if 100.0 * worse as f64 / total as f64 >= wanted {
            return Some(entry.score.clone());
        }
    }
    model.entries.first().map(|entry| entry.score.clone())
}

#[test]
fn several_percentiles_and_positions_are_all_of_the_sequences_named() {
    let answered = std::cell::Cell::new(0_u32);
    on_moving_boards(|moving, board, remote, random| {
        let target = |_| {
            if random.random_range(0..2) == 0 {
                ScoreTarget::Percentile(f64::from(random.random_range(0..=1_000)) / 10.0)
            } else {
                ScoreTarget::Position(random.random_range(1..2_000))
            }
        };
        let targets: Vec<ScoreTarget> = (0..6).map(target).collect();
        let Ok(found) = run_in_memory(scores_at(board, &targets)) else { return };
        answered.set(answered.get() + 1);
        let model = moving.model(&remote.as_of());
        for (target, found) in targets.iter().zip(found) {
            let expected = match target {
                ScoreTarget::Percentile(wanted) => expected(&model, *wanted),
                ScoreTarget::Position(position) => {
                    model.entries.get(*position as usize - 1).map(|entry| entry.score.clone())
                }
            };
            assert_eq!(found.as_ref().map(|(score, _)| score.keys().to_vec()), expected, "{target:?}");
            if let Some((score, standing)) = found {
                assert_eq!(standing.better, model.better(score.keys()));
                assert_eq!(standing.tied, model.tied(score.keys()));
                assert_eq!(standing.total, model.entries.len() as u64);
            }
        }
    });
    let answered = answered.get();
    assert!(answered > 800, "they have an answer, however the board moves: {answered} of 840");
}

#[test]
fn a_members_boards_are_of_the_sequences_named() {
    on_moving_boards(|moving, _, remote, random| {
        let registry = Registry::new(true);
        registry.register_boards_of(&moving.shards[0].read(Purpose::Read));
        let member = some_member(moving, random);
        let name = BoardName::new(BOARD).expect("a good name");
        let selection = if random.random_range(0..2) == 0 {
            BoardSelection::Named(vec![name])
        } else {
            BoardSelection::All { after: None, limit: 10, prefixes: None }
        };
        let (shards, instance) = (ReadShards::Remote(remote), InstanceAsked::default());
        let found = ok(entries_of_member(shards, &registry, &member, &selection, (instance, None), false));
        let model = moving.model(&found.as_of);
        let index = model.index_of(member.as_str());
        assert_eq!(found.entries.len(), usize::from(index.is_some()));
        let Some(((_, entry), index)) = found.entries.first().zip(index) else { return };
        check_listed(&entry.listed, &model, index, &model.entries[index]).expect("as the model says");
        assert_eq!(entry.standing.better, model.better(&model.entries[index].score));
        assert_eq!(entry.standing.tied, model.tied(&model.entries[index].score));
        assert_eq!(entry.standing.total, model.entries.len() as u64);
    });
}

/// What the writer of the member's shard would say of it now.
fn outcome_of(
    moving: &MovingShards,
    member: &MemberId,
) -> Option<(ShardId, crate::types::Sequence, BoardOutcome)> {
    let home = shard_of(member, u16::try_from(moving.shards.len()).expect("a few"));
    let state = moving.shards[home.index()].read(Purpose::Read);
    let found = found_member(&ShardBoard::of_life(&state, &life()), member.as_bytes(), false)?;
    let FoundMember { entry, at_score, index, total, is_hidden: _ } = found;
    let ranking = ShardRanking {
        words: entry.words,
        updated_at: entry.updated_at,
        has_metadata: false,
        better: at_score.before,
        tied: at_score.through - at_score.before,
        ahead: index,
        total,
    };
    let BoardLife { board: name, incarnation } = life();
    let definition = Arc::clone(&moving.definition);
    let outcome = BoardOutcome {
        board: Arc::new(FoundBoard { name, definition, incarnation }),
        changed: true,
        takes_metadata: false,
        before: Some(ranking),
        after: Some(ranking),
    };
    Some((home, state.applied.sequence, outcome))
}

#[test]
fn what_a_job_did_is_of_the_sequences_named() {
    on_moving_boards(|moving, _, remote, random| {
        let member = some_member(moving, random);
        let Some((home, sequence, outcome)) = outcome_of(moving, &member) else { return };
        let found = [FoundOutcome { member: &member, sequence, outcome: &outcome }];
        let changes = ok(add_other_shards(ReadShards::Remote(remote), home, &found, |_| None));
        let change = &changes[0];
        let model = moving.model(&change.as_of);
        let Some(index) = model.index_of(member.as_str()) else {
            assert!(change.entry.is_none() && change.previous.is_none(), "it is beyond the capacity");
            return;
        };
        let entry = change.entry.as_ref().expect("it is listed");
        check_listed(&entry.listed, &model, index, &model.entries[index]).expect("as the model says");
        assert_eq!(entry.standing.tied, model.tied(&model.entries[index].score));
        assert_eq!(entry.standing.total, model.entries.len() as u64);
        let previous = change.previous.as_ref().expect("it was listed");
        assert_eq!((previous.rank, previous.position), (entry.standing.rank(), index as u64 + 1));
    });
}

#[test]
fn a_trim_point_is_of_the_sequences_named() {
    on_moving_boards(|moving, board, remote, random| {
        let position = random.random_range(1..50_u64);
        let point = ok(trim_point_of_position(board, position));
        let model = moving.whole(&remote.as_of());
        let expected = model.entries.get(position as usize - 1).map(|entry| entry.member.as_bytes().to_vec());
        assert_eq!(point.map(|point| point.member.expect("of an entry").to_vec()), expected);
    });
}

#[test]
fn a_member_that_nobody_knows_costs_its_home_shard_one_question() {
    on_moving_boards(|moving, board, remote, _| {
        assert!(ok(crate::query::member(board, &id("nobody"))).is_none());
        let home = shard_of(&id("nobody"), u16::try_from(moving.shards.len()).expect("a few"));
        let asked: Vec<ShardId> = remote.as_of().0.iter().map(|(shard, _)| *shard).collect();
        assert_eq!(asked, [home]);
    });
}

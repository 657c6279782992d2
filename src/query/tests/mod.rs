//! The law of all reads: members split over any number of shards answer as one sorted vector does.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a test's numbers are small, and a bad index fails the test"
)]

mod approximate;
mod columns;
mod combine;
mod large_reads;
mod missing;
mod movement;
mod moving;
mod moving_more;
mod remote;
mod windows;

use std::future::Future;
use std::sync::Arc;

use proptest::prelude::*;
use tokio::sync::watch;

use crate::applied_sequence::applied_sequence;
use crate::board::{Definition, Key, Order, Ties};
use crate::query::find_place::find_counting_rounds;
use crate::query::model::{Model, ModelEntry};
use crate::query::tests::remote::AnsweringShards;
use crate::query::{
    Around, BoardSelection, BoardView, End, InstanceAsked, Listed, MemberOnBoards, Node, ReadError,
    RemoteShards, ScoreRank, ScoreTarget, ShardHandle, Start, TrimScan, View, around, count, edges_over,
    from_position, histogram, lookup, member, range, ranks_of_scores, read_in_memory, run_in_memory,
    scores_at, top, trim_point_of_position, trim_point_of_score,
};
use crate::state::{
    Applied, BoardEvent, Change, Entry, EntryState, Incarnation, Shard, Step, TreeId, TrimSide,
};
use crate::state_lock::{Purpose, StateLock};
use crate::types::{BoardName, MemberId, Score, Sequence, ShardId, Timestamp, shard_of};
use crate::window::Instance;
use crate::writer::{RegisteredBoard, Registry};

const BOARD: &str = "arena";
const SPLITS: [u16; 4] = [1, 2, 3, 16];

/// How a member stands with the board.
#[derive(Debug, Clone)]
struct Row {
    entry: ModelEntry,
    hidden: bool,
    /// Set when it is not when the score was reached.
    updated: Option<i64>,
}

fn id(text: &str) -> MemberId {
    MemberId::new(text).expect("a good id")
}

fn time(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

fn known(definition: &Arc<Definition>) -> RegisteredBoard {
    RegisteredBoard { incarnation: Incarnation(7), definition: Arc::clone(definition) }
}

/// The rows on so many shards, each shard's in the order given, a step per few rows.
fn shards(definition: &Arc<Definition>, rows: &[Row], count: u16) -> Vec<StateLock> {
    let board = BoardName::new(BOARD).expect("a good name");
    let build = |number: u16| {
        let mut shard = Shard::new(ShardId(number));
        let define = BoardEvent::Define {
            board: board.clone(),
            incarnation: Incarnation(7),
            number: None,
            definition: Arc::clone(definition),
        };
        let mut sequence = Sequence(u64::from(number) * 100 + 1);
        let applied = |sequence| Applied { sequence, ..Applied::default() };
        shard.apply(&Step { events: vec![define], applied: applied(sequence), ..Step::default() });
        let home: Vec<&Row> =
            rows.iter().filter(|row| shard_of(&id(&row.entry.member), count) == ShardId(number)).collect();
        for rows in home.chunks(5) {
            let mut step = Step::default();
            for (nth, row) in rows.iter().enumerate() {
                let member = row.entry.member.as_bytes();
                let score = Score::new(&row.entry.score).expect("one to eight keys");
                let words = definition.entry_words(&score, time(row.entry.reached), member);
                step.added.push(member.into());
                step.changes.push(Change {
                    tree: TreeId(0),
                    handle: shard.members.nth_next_handle(nth),
                    after: Some(Entry {
                        state: if row.hidden { EntryState::Hidden(words) } else { EntryState::Listed(words) },
                        updated_at: time(row.updated.unwrap_or(row.entry.reached)),
                        version: None,
                        has_metadata: false,
                    }),
                });
            }
            sequence = sequence.next();
            step.applied = applied(sequence);
            shard.apply(&step);
        }
        StateLock::new(shard)
    };
    (0..count).map(build).collect()
}

/// Runs a check on each split, over shards in memory and over remote ones.
fn on_every_split(
    definition: &Arc<Definition>,
    rows: &[Row],
    check: impl Fn(&BoardView<'_>, &Model, &[StateLock]) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let listed = rows.iter().filter(|row| !row.hidden).map(|row| row.entry.clone());
    let model = Model::new(Arc::clone(definition), listed.collect());
    for count in SPLITS {
        let shards = shards(definition, rows, count);
        {
            let view = View { shards: shards.iter().map(|shard| shard.read(Purpose::Read)).collect() };
            check(&BoardView::new(&view, BOARD, &known(definition)), &model, &shards)?;
        }
        let answering = AnsweringShards(&shards);
        let remote = RemoteShards::new(&answering);
        let name = BoardName::new(BOARD).expect("a good name");
        check(&BoardView::remote(&remote, name, &known(definition)), &model, &shards)?;
    }
    Ok(())
}

/// The answer of a read that has nothing to wait for.
fn ok<A>(read: impl Future<Output = Result<A, ReadError>>) -> A {
    run_in_memory(read).expect("all shards answer")
}

/// Compares a run of entries with the model's, `first` being the first one's index there.
fn check_run(found: &[Listed], model: &Model, first: usize, count: usize) -> Result<(), TestCaseError> {
    let expected = model.entries.iter().enumerate().skip(first).take(count);
    prop_assert_eq!(found.len(), expected.clone().count());
    for (listed, (index, entry)) in found.iter().zip(expected) {
        check_listed(listed, model, index, entry)?;
    }
    Ok(())
}

fn check_listed(
    listed: &Listed,
    model: &Model,
    index: usize,
    entry: &ModelEntry,
) -> Result<(), TestCaseError> {
    prop_assert_eq!(&*listed.member, entry.member.as_str());
    prop_assert_eq!(listed.score.keys(), &entry.score);
    prop_assert_eq!(listed.rank(), model.better(&entry.score) + 1);
    prop_assert_eq!(listed.position, index as u64 + 1);
    Ok(())
}

/// Each shard's part of a rank is that of its members among those that are shown.
fn check_shards(ranked: &ScoreRank, score: &[i64], model: &Model) -> Result<(), TestCaseError> {
    let mut expected = vec![[0_u64; 3]; ranked.shards.len()];
    for entry in &model.entries {
        let order = super::model::compare(&model.definition, &entry.score, score);
        let of_shard = &mut expected[shard_of(&id(&entry.member), ranked.shards.len() as u16).index()];
        of_shard[0] += u64::from(order.is_lt());
        of_shard[1] += u64::from(order.is_eq());
        of_shard[2] += 1;
    }
    let found: Vec<[u64; 3]> =
        ranked.shards.iter().map(|shard| [shard.better, shard.tied, shard.total]).collect();
    prop_assert_eq!(found, expected);
    Ok(())
}

fn definitions() -> impl Strategy<Value = Arc<Definition>> {
    let key = prop::sample::select(vec![Order::Ascending, Order::Descending]);
    let ties = prop::sample::select(Ties::ALL.to_vec());
    // Boards have 70 entries at most.
    let capacity = prop_oneof![4 => Just(None), 1 => Just(Some(1)), 5 => (1_u64..75).prop_map(Some)];
    (prop::collection::vec(key, 1..4), ties, capacity).prop_map(|(orders, ties, capacity)| {
        let keys = orders.into_iter().enumerate();
        let keys = keys.map(|(index, order)| Key { name: format!("k{index}"), order, ..Key::score() });
        Arc::new(Definition { keys: keys.collect(), ties, capacity, ..Definition::default() })
    })
}

/// All entries that are not hidden, those beyond the capacity included.
fn whole(definition: &Arc<Definition>, rows: &[Row]) -> Model {
    let listed = rows.iter().filter(|row| !row.hidden).map(|row| row.entry.clone());
    Model::new(Arc::new(Definition { capacity: None, ..(**definition).clone() }), listed.collect())
}

fn value() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -2_i64..3,
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX]),
    ]
}

/// Few scores and times, so that ties are everywhere; ids that share their first eight bytes, so that the
/// tie-break's prefix does not tell them apart.
fn rows(keys: usize) -> impl Strategy<Value = Vec<Row>> {
    let row = (prop::collection::vec(value(), keys), 0_i64..4, 0_u8..8, any::<bool>());
    prop::collection::vec(row, 0..70).prop_map(|rows| {
        let name = |index: usize| match index % 3 {
            0 => format!("member-{index}"),
            1 => format!("{index}"),
            _ => format!("日本 / {index}"),
        };
        let row = |(index, (score, reached, hidden, updated)): (usize, (Vec<i64>, i64, u8, bool))| Row {
            entry: ModelEntry { member: name(index), score, reached },
            hidden: hidden == 0,
            updated: updated.then_some(reached + 10),
        };
        rows.into_iter().enumerate().map(row).collect()
    })
}

fn boards() -> impl Strategy<Value = (Arc<Definition>, Vec<Row>)> {
    definitions().prop_flat_map(|definition| {
        let keys = definition.keys.len();
        (Just(definition), rows(keys))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_score_ranks_alike((definition, rows) in boards(), asked in prop::collection::vec(value(), 3)) {
        let asked = &asked[..definition.keys.len()];
        on_every_split(&definition, &rows, |board, model, _| {
            let ranks = ok(ranks_of_scores(board, &[Score::new(asked).expect("one to three keys")]));
            let ranked = &ranks[0];
            prop_assert_eq!(ranked.standing.better, model.better(asked));
            prop_assert_eq!(ranked.standing.tied, model.tied(asked));
            prop_assert_eq!(ranked.standing.total, model.entries.len() as u64);
            prop_assert_eq!(ranked.shards.len(), usize::from(board.shard_count()));
            check_shards(ranked, asked, model)?;
            Ok(())
        })?;
    }

    #[test]
    fn every_member_stands_alike((definition, rows) in boards()) {
        on_every_split(&definition, &rows, |board, model, _| {
            for row in &rows {
                let found = ok(member(board, &id(&row.entry.member)));
                let index = model.index_of(&row.entry.member);
                prop_assert_eq!(found.is_none(), index.is_none());
                let (Some(found), Some(index)) = (found, index) else { continue };
                check_listed(&found.listed, model, index, &row.entry)?;
                prop_assert_eq!(found.standing.better, model.better(&row.entry.score));
                prop_assert_eq!(found.standing.tied, model.tied(&row.entry.score));
                let worse = model.entries.len() as u64 - found.standing.better - found.standing.tied;
                prop_assert_eq!(found.standing.worse(), worse);
                prop_assert_eq!(found.listed.updated_at, time(row.updated.unwrap_or(row.entry.reached)));
            }
            prop_assert!(ok(member(board, &id("nobody"))).is_none());
            Ok(())
        })?;
    }

    #[test]
    fn neighbours_are_alike(
        (definition, rows) in boards(),
        above in 0_u64..6,
        below in 0_u64..6,
        fill: bool,
    ) {
        on_every_split(&definition, &rows, |board, model, _| {
            for row in rows.iter().step_by(7) {
                let found = ok(around(board, &id(&row.entry.member), Around { above, below, fill }));
                prop_assert_eq!(found.is_none(), model.index_of(&row.entry.member).is_none());
                let (Some(found), Some(index)) = (found, model.index_of(&row.entry.member)) else { continue };
                let (above, below) = (above as usize, below as usize);
                let mut first = index.saturating_sub(above);
                let mut past = (index + below + 1).min(model.entries.len());
                if fill {
                    let wanted = above + below + 1;
                    past = past.max(first + wanted).min(model.entries.len());
                    first = first.min(past.saturating_sub(wanted));
                }
                check_run(&found, model, first, past - first)?;
            }
            Ok(())
        })?;
    }

    #[test]
    fn pages_follow_one_another_from_either_end((definition, rows) in boards(), limit in 1_usize..20) {
        on_every_split(&definition, &rows, |board, model, _| {
            for from in [End::Top, End::Bottom] {
                let mut start = Start::End(from);
                let mut read = Vec::new();
                loop {
                    let page = ok(top(board, &start, limit));
                    prop_assert!(page.entries.len() <= limit);
                    read.extend(page.entries);
                    let Some(next) = page.next else { break };
                    let text = next.encode(BOARD, Instance::ALL);
                    let decoded = super::PageCursor::decode(&text, BOARD, definition.columns());
                    prop_assert_eq!(decoded, Some((next.clone(), Instance::ALL)));
                    start = Start::After(next);
                }
                if from == End::Bottom {
                    read.reverse();
                }
                check_run(&read, model, 0, usize::MAX)?;
            }
            Ok(())
        })?;
    }

    /// The capacity was lowered after the page before.
    #[test]
    fn a_cursor_beyond_the_capacity_goes_on_at_its_end(
        (definition, rows) in boards(), capacity in 1_u64..30, limit in 1_usize..9,
    ) {
        let whole = whole(&definition, &rows);
        let definition = Arc::new(Definition { capacity: Some(capacity), ..(*definition).clone() });
        on_every_split(&definition, &rows, |board, model, _| {
            let shown = model.entries.len();
            for (index, entry) in whole.entries.iter().enumerate().step_by(3) {
                let score = Score::new(&entry.score).expect("one to three keys");
                let words = definition.entry_words(&score, time(entry.reached), entry.member.as_bytes());
                let page = |from| {
                    let member = entry.member.as_bytes().into();
                    ok(top(board, &Start::After(super::PageCursor { from, words, member }), limit))
                };
                let down = page(End::Top);
                check_run(&down.entries, model, index + 1, limit)?;
                prop_assert_eq!(down.next.is_some(), index + 1 + limit < shown);
                let mut up = page(End::Bottom);
                up.entries.reverse();
                let end = index.min(shown);
                check_run(&up.entries, model, end.saturating_sub(limit), limit.min(end))?;
                prop_assert_eq!(up.next.is_some(), limit < end);
            }
            Ok(())
        })?;
    }

    #[test]
    fn every_position_begins_the_same_page((definition, rows) in boards(), limit in 1_usize..9) {
        on_every_split(&definition, &rows, |board, model, _| {
            for position in 1..=model.entries.len() + 2 {
                let page = ok(from_position(board, position as u64, limit));
                check_run(&page.entries, model, position - 1, limit)?;
                prop_assert_eq!(page.next.is_some(), position - 1 + limit < model.entries.len());
            }
            Ok(())
        })?;
    }

    #[test]
    fn groups_rank_alike((definition, rows) in boards(), step in 1_usize..4) {
        on_every_split(&definition, &rows, |board, model, _| {
            let mut asked: Vec<MemberId> =
                rows.iter().step_by(step).map(|row| id(&row.entry.member)).collect();
            asked.push(id("nobody"));
            // Each counts once, however often it is named.
            let named_once = asked.len();
            asked.extend_from_within(..);
            asked.extend(asked.first().cloned());
            let found = ok(lookup(board, &asked));
            let named = |entry: &(usize, &ModelEntry)| asked.iter().any(|id| id.as_str() == entry.1.member);
            let group: Vec<_> = model.entries.iter().enumerate().filter(named).collect();
            prop_assert_eq!(found.entries.len(), group.len());
            for ((listed, group_rank), (index, entry)) in found.entries.iter().zip(&group) {
                check_listed(listed, model, *index, entry)?;
                let better = model.better(&entry.score);
                let ahead = group.iter().filter(|(_, other)| model.better(&other.score) < better);
                prop_assert_eq!(*group_rank, ahead.count() as u64 + 1);
                let row = rows.iter().find(|row| row.entry.member == entry.member).expect("it is one of them");
                prop_assert_eq!(listed.updated_at, time(row.updated.unwrap_or(row.entry.reached)));
            }
            let missing: Vec<&str> = found.not_found.iter().map(|index| asked[*index].as_str()).collect();
            let expected = asked[..named_once].iter().map(MemberId::as_str);
            prop_assert_eq!(missing, expected.filter(|id| model.index_of(id).is_none()).collect::<Vec<_>>());
            Ok(())
        })?;
    }

    #[test]
    fn marks_find_the_same_score((definition, rows) in boards(), percent in 0_u32..=1000) {
        on_every_split(&definition, &rows, |board, model, _| {
            let total = model.entries.len() as u64;
            for position in 0..=total + 1 {
                let found = ok(scores_at(board, &[ScoreTarget::Position(position)])).remove(0);
                let entry = position.checked_sub(1).and_then(|index| model.entries.get(index as usize));
                prop_assert_eq!(found.is_some(), entry.is_some());
                let (Some((score, standing)), Some(entry)) = (found, entry) else { continue };
                prop_assert_eq!(score.keys(), &entry.score);
                prop_assert_eq!(standing.better, model.better(&entry.score));
                prop_assert_eq!(standing.tied, model.tied(&entry.score));
            }
            let percentile = |entry: &ModelEntry| {
                let worse = total - model.better(&entry.score) - model.tied(&entry.score);
                100.0 * worse as f64 / total as f64
            };
            // An entry's own percentile finds its score, as does any that nobody lower has.
            let marks = model.entries.iter().map(percentile).chain([f64::from(percent) / 10.0, 0.0, 100.0]);
            for mark in marks {
                let expected = model.entries.iter().rev().find(|entry| percentile(entry) >= mark);
                let expected = expected.or(model.entries.first()).map(|entry| entry.score.clone());
                let found = ok(scores_at(board, &[ScoreTarget::Percentile(mark)])).remove(0);
                prop_assert_eq!(found.map(|(score, _)| score.keys().to_vec()), expected);
            }
            Ok(())
        })?;
    }

    #[test]
    fn pages_between_two_scores_are_alike(
        (definition, rows) in boards(),
        a in value(),
        b in value(),
        limit in 1_usize..9,
    ) {
        on_every_split(&definition, &rows, |board, model, _| {
            let is_within = |entry: &&ModelEntry| (a..=b).contains(&entry.score[0]);
            let count = model.entries.iter().filter(is_within).count();
            let first = model.entries.iter().position(|entry| is_within(&entry)).unwrap_or(0);
            let (mut read, mut after): (Vec<Listed>, _) = (Vec::new(), None);
            loop {
                let page = ok(range(board, a, b, after.as_ref(), limit));
                prop_assert_eq!(page.entries.len(), limit.min(count - read.len()));
                read.extend(page.entries);
                prop_assert_eq!(page.next.is_some(), read.len() < count);
                let Some(next) = page.next else { break };
                after = Some(next);
            }
            check_run(&read, model, first, count)?;
            // Behind any entry of the board, within the bounds or not, come those of the rest that are
            // within.
            for (index, entry) in model.entries.iter().enumerate().step_by(5) {
                let score = Score::new(&entry.score).expect("one to three keys");
                let words = definition.entry_words(&score, time(entry.reached), entry.member.as_bytes());
                let member = entry.member.as_bytes().into();
                let cursor = super::PageCursor { from: End::Top, words, member };
                let page = ok(range(board, a, b, Some(&cursor), 100));
                let begin = (index + 1).max(first);
                check_run(&page.entries, model, begin, (first + count).saturating_sub(begin))?;
                prop_assert!(page.next.is_none());
            }
            Ok(())
        })?;
    }

    #[test]
    fn each_member_after_a_trim_point_is_found_once(
        (definition, rows) in boards(), asked in prop::collection::vec(value(), 3), position in 0_usize..40,
        better in any::<bool>(),
    ) {
        let side = if better { TrimSide::Better } else { TrimSide::Worse };
        for keys in 0..=definition.keys.len() {
            // For no keys, a position.
            let score = Score::new(&asked[..keys]).ok();
            // What is beyond the capacity is trimmed as well.
            let model = whole(&definition, &rows);
            let place = position.checked_sub(1).and_then(|index| model.entries.get(index));
            let is_removed = |entry: &ModelEntry| match &score {
                Some(score) => {
                    let order = super::model::compare(&definition, score.keys(), &entry.score[..keys]);
                    if better { order.is_gt() } else { order.is_lt() }
                }
                None => place.is_some_and(|place| {
                    let two = vec![place.clone(), entry.clone()];
                    *entry != *place && Model::new(Arc::clone(&definition), two).entries[0] == *place
                }),
            };
            let removed = rows.iter().filter(|row| is_removed(&row.entry));
            let mut expected: Vec<_> = removed.map(|row| row.entry.member.clone()).collect();
            expected.sort();
            on_every_split(&definition, &rows, |board, _, shards| {
                let point = match &score {
                    Some(score) => Some(trim_point_of_score(board, score, side)),
                    None => ok(trim_point_of_position(board, position as u64)),
                };
                prop_assert_eq!(point.is_some(), score.is_some() || place.is_some());
                let mut found = Vec::new();
                for shard in shards.iter().filter(|_| point.is_some()) {
                    let point = point.clone().expect("there is a place");
                    let name = BoardName::new(BOARD).expect("a good name");
                    let mut scan = TrimScan::new(name, board.incarnation, point);
                    let mut looks = 0;
                    while !scan.is_finished() {
                        let seen = scan.next_slice(&shard.read(Purpose::Read));
                        prop_assert!(seen.len() <= 4);
                        found.extend(seen.into_iter().map(|member| member.to_string()));
                        looks += 1;
                    }
                    prop_assert!(looks <= rows.len() + 3, "{} looks", looks);
                }
                found.sort();
                prop_assert_eq!(&found, &expected);
                Ok(())
            })?;
        }
    }

    #[test]
    fn counts_are_alike((definition, rows) in boards(), a in value(), b in value(), buckets in 1_u32..9) {
        on_every_split(&definition, &rows, |board, model, _| {
            let expected = |min: i64, max: i64| model.count(|entry| (min..=max).contains(&entry.score[0]));
            prop_assert_eq!(ok(count(board, a, b)), expected(a, b));
            for edges in [ok(edges_over(board, buckets)), vec![-2, 0, 2], vec![i64::MIN, 0, i64::MAX]] {
                let found = ok(histogram(board, &edges));
                prop_assert!(found.buckets.len() <= buckets as usize || edges.len() == 3);
                let inside: u64 = found.buckets.iter().map(|bucket| bucket.count).sum();
                prop_assert_eq!(found.below + inside + found.above, model.entries.len() as u64);
                for bucket in &found.buckets {
                    prop_assert_eq!(bucket.count, expected(bucket.min, bucket.max));
                }
                if let (Some(first), Some(last)) = (edges.first(), edges.last()) {
                    prop_assert_eq!(found.below, model.count(|entry| entry.score[0] < *first));
                    prop_assert_eq!(found.above, model.count(|entry| entry.score[0] > *last));
                }
            }
            Ok(())
        })?;
    }
}

fn numbered_rows(count: usize, score: impl Fn(usize) -> i64) -> Vec<Row> {
    let row = |index: usize| Row {
        entry: ModelEntry { member: format!("m{index}"), score: vec![score(index)], reached: 5 },
        hidden: false,
        updated: None,
    };
    (0..count).map(row).collect()
}

#[test]
fn a_deep_position_is_found_in_a_handful_of_round_trips() {
    let definition = Arc::new(Definition::default());
    let check = |rows: &[Row], count: u16, most: u32| {
        let model = Model::new(Arc::clone(&definition), rows.iter().map(|row| row.entry.clone()).collect());
        let shards = shards(&definition, rows, count);
        let view = View { shards: shards.iter().map(|shard| shard.read(Purpose::Read)).collect() };
        let answering = AnsweringShards(&shards);
        let remote = RemoteShards::new(&answering);
        let name = BoardName::new(BOARD).expect("a good name");
        let in_memory = BoardView::new(&view, BOARD, &known(&definition));
        for board in [in_memory, BoardView::remote(&remote, name, &known(&definition))] {
            for before in (0..rows.len() as u64).filter(|before| before % 997 < 2) {
                let index_of = |total| Some(before).filter(|before| *before < total);
                let (place, round_trips) = ok(find_counting_rounds(&board, index_of, 3, false));
                let place = place.expect("it is on the board");
                let found = place.entries(3);
                let expected = model.entries.iter().skip(before as usize).take(3);
                let members: Vec<&[u8]> = found.iter().map(|found| found.key.member).collect();
                assert_eq!(members, expected.map(|entry| entry.member.as_bytes()).collect::<Vec<_>>());
                assert!(round_trips <= most, "{round_trips} round trips for {before}");
            }
        }
    };
    check(&numbered_rows(30_000, |index| (index as i64 * 7_919) % 30_011), 1, 2);
    check(&numbered_rows(30_000, |index| (index as i64 * 7_919) % 30_011), 10, 6);
    check(&numbered_rows(30_000, |index| index as i64 % 3), 10, 6);
    // Scores that follow the shards: nothing is where the hash makes one expect it.
    let skewed =
        |index: usize| i64::from(shard_of(&id(&format!("m{index}")), 10).0) * 1_000_000 + index as i64;
    check(&numbered_rows(30_000, skewed), 10, 9);
}

/// Each shard is asked for a share of a page, and some shards have all of it.
#[test]
fn a_page_that_is_on_one_shard_alone_is_whole() {
    let definition = Arc::new(Definition::default());
    let shard = |index: usize| i64::from(shard_of(&id(&format!("m{index}")), 10).0);
    let rows = numbered_rows(2_000, |index| shard(index) * 1_000_000 + index as i64 / 3);
    let model = Model::new(Arc::clone(&definition), rows.iter().map(|row| row.entry.clone()).collect());
    let shards = shards(&definition, &rows, 10);
    let answering = AnsweringShards(&shards);
    let remote = RemoteShards::new(&answering);
    let name = BoardName::new(BOARD).expect("a good name");
    let board = BoardView::remote(&remote, name, &known(&definition));
    let all = model.entries.len();
    for limit in [1, 20, 60, 100, 500] {
        let found = ok(top(&board, &Start::End(End::Top), limit)).entries;
        check_run(&found, &model, 0, limit).expect("as the model says");
        let mut found = ok(top(&board, &Start::End(End::Bottom), limit)).entries;
        found.reverse();
        check_run(&found, &model, all - limit, limit).expect("as the model says");
        for index in (0..all).step_by(97) {
            let page = ok(from_position(&board, index as u64 + 1, limit));
            check_run(&page.entries, &model, index, limit).expect("as the model says");
            let member = id(&model.entries[index].member);
            let wanted = Around { above: limit as u64, below: limit as u64, fill: false };
            let found = ok(around(&board, &member, wanted)).expect("it is listed");
            let (first, past) = (index.saturating_sub(limit), (index + limit + 1).min(all));
            check_run(&found, &model, first, past - first).expect("as the model says");
        }
        let page = ok(range(&board, 3_000_000, 4_999_999, None, limit));
        let first = model.entries.iter().position(|entry| entry.score[0] < 5_000_000).expect("some");
        let count = model.count(|entry| (3_000_000..5_000_000).contains(&entry.score[0])) as usize;
        check_run(&page.entries, &model, first, count.min(limit)).expect("as the model says");
        assert_eq!(page.next.is_some(), count > limit);
    }
}

#[test]
fn a_cursor_neither_skips_nor_repeats_while_scores_move() {
    let definition = Arc::new(Definition::default());
    let mut rows = numbered_rows(100, |index| 100 - index as i64 / 3);
    let page = |rows: &[Row], start: &Start| {
        let shards = shards(&definition, rows, 3);
        let view = View { shards: shards.iter().map(|shard| shard.read(Purpose::Read)).collect() };
        ok(top(&BoardView::new(&view, BOARD, &known(&definition)), start, 10))
    };
    let model = Model::new(Arc::clone(&definition), rows.iter().map(|row| row.entry.clone()).collect());
    let order: Vec<String> = model.entries.iter().map(|entry| entry.member.clone()).collect();
    let first = page(&rows, &Start::End(End::Top));
    let last = first.entries.last().expect("ten entries").member.to_string();
    // The page's last entry leaves the board, and two from further down overtake all.
    for row in &mut rows {
        row.hidden = row.entry.member == last;
        if [&order[50], &order[60]].contains(&&row.entry.member) {
            row.entry.score = vec![1_000];
        }
    }
    let second = page(&rows, &Start::After(first.next.expect("there is more")));
    let members: Vec<&str> = second.entries.iter().map(|listed| &*listed.member).collect();
    assert_eq!(members, order[10..20].iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(second.entries.first().map(|listed| listed.position), Some(12));
}

#[test]
fn an_earlier_life_of_a_board_is_not_seen() {
    let definition = Arc::new(Definition::default());
    let shards = shards(&definition, &numbered_rows(10, |index| index as i64), 2);
    let view = View { shards: shards.iter().map(|shard| shard.read(Purpose::Read)).collect() };
    let later = RegisteredBoard { incarnation: Incarnation(8), ..known(&definition) };
    let board = BoardView::new(&view, BOARD, &later);
    assert_eq!(ok(board.total()), 0);
    assert_eq!(ok(top(&board, &Start::End(End::Top), 10)).entries, []);
    assert_eq!(board.as_of().to_string().split(',').count(), 2);
}

/// Trees of dropped boards know their members until those are let go of.
#[test]
fn a_page_of_a_members_boards_looks_at_a_bounded_number_of_dropped_ones() {
    let (boards, kept) = (12_u32, 11);
    let definition: Arc<Definition> = Arc::default();
    let name = |number: u32| BoardName::new(&format!("b{number}")).expect("a good name");
    let member = id("m");
    let words = definition.entry_words(&Score::new(&[1]).expect("one key"), time(0), member.as_bytes());
    let mut shard = Shard::new(ShardId(0));
    let handle = shard.members.nth_next_handle(0);
    let events = (0..boards).map(|number| BoardEvent::Define {
        board: name(number),
        incarnation: Incarnation(7),
        number: None,
        definition: Arc::clone(&definition),
    });
    let after = Some(Entry {
        state: EntryState::Listed(words),
        updated_at: time(0),
        version: None,
        has_metadata: false,
    });
    let changes = (0..boards).map(|number| Change { tree: TreeId(number), handle, after });
    let added = vec![member.as_bytes().into()];
    shard.apply(&Step { events: events.collect(), added, changes: changes.collect(), ..Step::default() });
    let drop = |number| BoardEvent::Drop { board: name(number), incarnation: Incarnation(7), number: None };
    shard.apply(&Step { events: (0..kept).map(drop).collect(), ..Step::default() });
    let registry = Registry::new(true);
    registry.register_boards_of(&shard);
    let node = Node::in_memory(vec![ShardHandle {
        id: ShardId(0),
        state: Arc::new(StateLock::new(shard)),
        applied: applied_sequence(Sequence(0)).1,
        started: watch::channel(true).1,
        health: Arc::default(),
        store: Arc::default(),
        summaries: Arc::default(),
    }]);
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let boards = BoardSelection::All { after, limit: 10, prefixes: None };
        let instance = InstanceAsked::default();
        let asked = MemberOnBoards { member: member.clone(), boards, instance, hidden: false, windows: None };
        let page = read_in_memory(&node, &registry, &asked).expect("shards in memory answer");
        pages.push(page.entries.len());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, [0, 0, 1], "five boards a page, whether they are there or not");
}

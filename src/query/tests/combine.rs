//! Boards together are what a sorted vector of all members' results says, over any split, in memory and
//! remote, in slices and at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::id;
use super::windows::{DAY, FRIDAY, Windows, asked, name};
use crate::board::{Aggregate, Combination, Definition, Key, KeyType, Order, Ties};
use crate::query::combine::on_shard::{combine, combine_in_slices};
use crate::query::question::{CombineQuestion, CombinedKey, NotCombined, Question, Reply, is_consistent};
use crate::query::{
    Combine, CombineRefused, CombinedAnswer, CombinedBoard, NoBoard, NoCombination, Ranking, WindowChoice,
    read,
};
use crate::state::Incarnation;
use crate::state_lock::Purpose;
use crate::types::{Double, Number};
use crate::window::Window;

const NOW: i64 = FRIDAY + DAY / 2;
const SPLITS: [u16; 3] = [1, 3, 5];
const BOARDS: [&str; 3] = ["a", "b", "c"];

/// By board, then by member.
type Rows = BTreeMap<&'static str, BTreeMap<String, i64>>;

fn key(order: Order, key_type: KeyType) -> Key {
    Key { order, key_type, ..Key::score() }
}

/// What a read asks for.
fn wanted(weights: [i64; 3]) -> Combine {
    let board = |(name, weight)| CombinedBoard {
        board: super::windows::name(name),
        choice: WindowChoice::Default,
        weight: Number::Integer(weight),
    };
    Combine {
        boards: BOARDS.into_iter().zip(weights).map(board).collect(),
        combination: Combination::Union,
        aggregate: Aggregate::Sum,
        ranking: None,
        now: asked("", NOW).now,
        cursor: None,
        limit: 1_000,
        member: None,
        is_lenient: false,
    }
}

/// Boards of one order, with members on some of them and few scores: many ties.
fn filled(shards: u16, order: Order, ties: Ties, random: &mut StdRng) -> (Windows, Rows) {
    let windows = Windows::new(shards);
    let mut rows = Rows::new();
    for board in BOARDS {
        let keys = vec![key(order, KeyType::Integer)];
        windows.define_as(board, Definition { keys, ties, ..Definition::default() });
        for number in 0..60 {
            if random.random_range(0..3) > 0 {
                let (member, score) = (format!("m{number}"), random.random_range(-3..4));
                windows.enter(board, &member, score, FRIDAY);
                rows.entry(board).or_default().insert(member, score);
            }
        }
    }
    (windows, rows)
}

/// The result as simply as possible: members and scores, best first.
fn model(rows: &Rows, asked: &Combine, weights: [i64; 3], ranking: Ranking) -> Vec<(String, i64)> {
    let mut members: BTreeMap<&String, Vec<Option<i64>>> = BTreeMap::new();
    for (nth, board) in BOARDS.into_iter().enumerate() {
        for (member, score) in &rows[board] {
            members.entry(member).or_insert(vec![None; 3])[nth] = Some(score * weights[nth]);
        }
    }
    let mut result: Vec<(String, i64)> = Vec::new();
    for (member, scores) in members {
        let is_in = match asked.combination {
            Combination::Union => true,
            Combination::Inter => scores.iter().all(Option::is_some),
            Combination::Diff => scores[0].is_some() && scores[1..].iter().all(Option::is_none),
        };
        let scores = scores.into_iter().flatten();
        let score = match asked.aggregate {
            Aggregate::Sum => scores.sum(),
            Aggregate::Min => scores.min().expect("one at least"),
            Aggregate::Max => scores.max().expect("one at least"),
        };
        if is_in {
            result.push((member.clone(), score));
        }
    }
    result.sort_by(|(one, of_one), (other, of_other)| {
        let by_score =
            if ranking.order == Order::Descending { of_other.cmp(of_one) } else { of_one.cmp(of_other) };
        by_score.then(if ranking.ids_descend { other.cmp(one) } else { one.cmp(other) })
    });
    result
}

fn score_of(number: Number) -> i64 {
    number.integer().expect("integers are combined as such")
}

/// Entries are those of the model from a place on, with their ranks and positions.
fn check_entries(answer: &CombinedAnswer, model: &[(String, i64)], first: usize) {
    assert_eq!(answer.total, model.len() as u64);
    for (index, entry) in (first..).zip(&answer.entries) {
        let (member, score) = &model[index];
        assert_eq!((&*entry.member, score_of(entry.score)), (member.as_str(), *score));
        let better = model.iter().position(|(_, other)| other == score).expect("it is there");
        assert_eq!((entry.rank(), entry.position), (better as u64 + 1, index as u64 + 1), "{member}");
    }
}

#[tokio::test]
async fn pages_members_and_counts_are_those_of_one_sorted_vector() {
    let mut random = StdRng::seed_from_u64(7);
    let orders = [(Order::Descending, Ties::MemberDesc), (Order::Ascending, Ties::First)];
    for (shards, (order, ties)) in SPLITS.into_iter().flat_map(|shards| orders.map(|of| (shards, of))) {
        let (windows, rows) = filled(shards, order, ties, &mut random);
        let weights = [1, -2, 3];
        for combination in [Combination::Union, Combination::Inter, Combination::Diff] {
            for aggregate in [Aggregate::Sum, Aggregate::Min, Aggregate::Max] {
                let asked = Combine { combination, aggregate, ..wanted(weights) };
                let ranking = Ranking { order, ids_descend: ties == Ties::MemberDesc };
                let expect = model(&rows, &asked, weights, ranking);
                for answer in windows.read(&asked).await {
                    let answer = answer.expect("the boards are there");
                    assert_eq!((answer.entries.len(), &answer.next), (expect.len(), &None));
                    check_entries(&answer, &expect, 0);
                }
                check_pages(&windows, &asked, &expect).await;
                for (index, (member, score)) in expect.iter().enumerate().step_by(5) {
                    let asked = Combine { member: Some(id(member)), limit: 0, ..asked.clone() };
                    for answer in windows.read(&asked).await {
                        let (entry, standing) =
                            answer.expect("the boards are there").member.expect("it is there");
                        let better =
                            expect.iter().position(|(_, other)| other == score).expect("it is there");
                        let tied = expect.iter().filter(|(_, other)| other == score).count();
                        assert_eq!(score_of(entry.score), *score);
                        assert_eq!((entry.better, entry.position), (better as u64, index as u64 + 1));
                        assert_eq!(
                            (standing.better, standing.tied, standing.total),
                            (better as u64, tied as u64, expect.len() as u64)
                        );
                    }
                }
                let nobody = Combine { member: Some(id("nobody")), ..asked };
                for answer in windows.read(&nobody).await {
                    assert_eq!(answer.expect("the boards are there").member, None);
                }
            }
        }
    }
}

/// Pages of four follow one another to the end.
async fn check_pages(windows: &Windows, asked: &Combine, expect: &[(String, i64)]) {
    let (mut cursor, mut first) = (None, 0);
    loop {
        let page = Combine { cursor: cursor.clone(), limit: 4, ..asked.clone() };
        let [in_memory, remote] =
            windows.read(&page).await.map(|answer| answer.expect("the boards are there"));
        assert_eq!(in_memory, remote);
        check_entries(&in_memory, expect, first);
        first += in_memory.entries.len();
        assert_eq!(in_memory.next.is_some(), first < expect.len());
        if in_memory.next.is_none() {
            return;
        }
        cursor = in_memory.next;
    }
}

#[tokio::test]
async fn a_shard_combines_in_slices_what_it_combines_at_once() {
    let mut random = StdRng::seed_from_u64(8);
    let (windows, rows) = filled(1, Order::Descending, Ties::First, &mut random);
    for combination in [Combination::Union, Combination::Inter, Combination::Diff] {
        let boards = BOARDS.map(|board| {
            let incarnation = windows.registry.get(board).expect("it is defined").incarnation;
            (crate::query::question::BoardLife { board: name(board), incarnation }, Number::Integer(1))
        });
        let asked = CombineQuestion {
            boards: boards.to_vec(),
            combination,
            aggregate: Aggregate::Sum,
            numbers: KeyType::Integer,
            ranking: Ranking { order: Order::Descending, ids_descend: false },
            after: Some(CombinedKey {
                word: crate::board::encode(1, Order::Descending),
                member: (*b"m3").into(),
            }),
            limit: 7,
            member: rows["a"].keys().next().map(|member| member.as_str().into()),
            at: Some(CombinedKey {
                word: crate::board::encode(0, Order::Descending),
                member: (*b"m5").into(),
            }),
        };
        let at_once = combine(&windows.shards[0].read(Purpose::Read), &asked);
        let (_, in_slices) =
            combine_in_slices(&windows.shards[0], &asked).expect("good boards").expect("nothing is ahead");
        assert_eq!(in_slices, at_once);
        let has_several = at_once.combined.as_ref().is_ok_and(|combined| combined.entries.len() > 1);
        let reply = Reply::Combine(at_once);
        assert!(is_consistent(&Question::Combine(Arc::new(asked.clone())), &reply), "{reply:?}");
        let other = CombineQuestion { limit: 1, ..asked };
        let is_as_asked = is_consistent(&Question::Combine(Arc::new(other)), &reply);
        assert_eq!(is_as_asked, !has_several, "more than was asked for");
        assert!(has_several || combination == Combination::Diff);
    }
    let other = crate::query::question::BoardLife { board: name("a"), incarnation: Incarnation(u64::MAX) };
    let question = Question::Changed(vec![other]);
    assert!(!is_consistent(&question, &Reply::Changed(Vec::new())));
}

/// A node that has the shards in memory asks them one by one, so that none is held for long.
#[tokio::test]
async fn a_node_with_all_shards_combines_shard_by_shard() {
    let mut random = StdRng::seed_from_u64(9);
    let (windows, rows) = filled(3, Order::Descending, Ties::First, &mut random);
    let asked = wanted([1, 1, 1]);
    let found = read(&windows.node(), &windows.registry, &asked, &crate::query::ReadOptions::default()).await;
    let answer = found.expect("all shards answer").answer.expect("the boards are there");
    let ranking = Ranking { order: Order::Descending, ids_descend: false };
    check_entries(&answer, &model(&rows, &asked, [1, 1, 1], ranking), 0);
    assert_eq!(answer.as_of.0.len(), 3);
}

#[tokio::test]
async fn what_cannot_be_combined_is_refused_in_words() {
    let windows = Windows::new(3);
    windows.define_as("a", Definition::default());
    let ascending = vec![key(Order::Ascending, KeyType::Integer)];
    windows.define_as("b", Definition { keys: ascending, ..Definition::default() });
    windows.define_as("c", Definition { capacity: Some(2), ..Definition::default() });
    let two = vec![Key { name: "x".into(), ..Key::score() }, Key { name: "y".into(), ..Key::score() }];
    windows.define_as("two", Definition { keys: two, ..Definition::default() });
    let board = |board: &str| CombinedBoard {
        board: name(board),
        choice: WindowChoice::Default,
        weight: Number::Integer(i64::MAX >> 11),
    };
    let of = |boards: &[&str]| Combine {
        boards: boards.iter().map(|name| board(name)).collect(),
        ..wanted([1, 1, 1])
    };
    let refused = async |asked: &Combine| {
        let [in_memory, remote] = windows.read(asked).await;
        assert_eq!(in_memory, remote);
        in_memory.expect_err("it is refused")
    };
    assert_eq!(refused(&of(&["a", "b"])).await, CombineRefused::Orders.into());
    let two = CombineRefused::SeveralKeys { board: name("two"), keys: 2 };
    assert_eq!(refused(&of(&["a", "two"])).await, two.into());
    let unknown = NoCombination::NoBoard(NoBoard::UnknownColumn(name("x")));
    assert_eq!(refused(&of(&["a", "x"])).await, unknown);
    let week = CombinedBoard { choice: WindowChoice::Current(Window::Week), ..board("a") };
    let week = Combine { boards: vec![week], ..wanted([1, 1, 1]) };
    assert!(matches!(refused(&week).await, NoCombination::NoBoard(NoBoard::Window(_))), "no such window");
    // A board of a capacity is combined until it has more than it shows.
    for (member, is_refused) in [("p1", false), ("p2", false), ("p3", true)] {
        windows.enter("c", member, 1, FRIDAY);
        for answer in windows.read(&of(&["a", "c"])).await {
            let expect = Err(NoCombination::from(CombineRefused::Capacity(name("c"))));
            assert_eq!(answer.is_err(), is_refused);
            assert!(!is_refused || answer == expect);
        }
    }
    windows.enter("a", "p1", i64::MAX, FRIDAY);
    assert_eq!(refused(&of(&["a"])).await, CombineRefused::Overflow.into());
    let cursor = Combine { cursor: Some("00".to_owned()), ..of(&["a"]) };
    assert_eq!(refused(&cursor).await, CombineRefused::Cursor.into());
}

#[tokio::test]
async fn boards_beyond_the_bound_are_refused_unless_few_are_looked_up_in_them() {
    let windows = Windows::new(1);
    for board in BOARDS {
        windows.define_as(board, Definition::default());
    }
    for number in 0..601 {
        windows.enter("b", &format!("m{number}"), number, FRIDAY);
    }
    for number in 590..610 {
        windows.enter("a", &format!("m{number}"), 1, FRIDAY);
    }
    let of = |combination, boards: &[&str]| {
        let asked = wanted([1, 1, 1]);
        let board = |name: &&str| asked.boards.iter().find(|asked| asked.board.as_str() == *name).cloned();
        Combine { combination, boards: boards.iter().filter_map(board).collect(), ..asked }
    };
    for (combination, boards, expect) in [
        (Combination::Union, &["a", "b"][..], None),
        (Combination::Diff, &["b", "a"], None),
        (Combination::Inter, &["b", "a"], Some(11)),
        (Combination::Inter, &["a", "b"], Some(11)),
        (Combination::Diff, &["a", "b"], Some(9)),
        (Combination::Inter, &["a", "b", "c"], Some(0)),
    ] {
        for answer in windows.read(&of(combination, boards)).await {
            let found = answer.as_ref().ok().map(|answer| answer.total);
            assert_eq!(found, expect, "{combination:?} {boards:?}");
            if expect.is_none() {
                assert_eq!(answer, Err(CombineRefused::TooMany { entries: 621 }.into()));
            }
        }
    }
    let many = NotCombined::TooMany(621);
    assert_ne!(many, NotCombined::Overflow);
}

#[tokio::test]
async fn doubles_are_combined_as_doubles_and_windows_by_themselves() {
    let windows = Windows::new(3);
    let float = vec![key(Order::Descending, KeyType::Float)];
    windows.define_as("a", Definition { keys: float, ..Definition::default() });
    let with_day = vec![Window::All, Window::Day];
    windows.define_as("b", Definition { windows: with_day, ..Definition::default() });
    let double = |value| Double::new(value).expect("a number");
    windows.enter("a", "p1", double(0.5).ordered(), FRIDAY);
    windows.enter("a", "p2", double(f64::INFINITY).ordered(), FRIDAY);
    windows.enter("b", "p1", 10, FRIDAY);
    windows.enter("b#2026-11-20", "p1", 4, FRIDAY);
    let of = |choice, weights: [f64; 2]| {
        let boards = [("a", WindowChoice::Default), ("b", choice)].into_iter().zip(weights);
        let boards = boards.map(|((board, choice), weight)| CombinedBoard {
            board: name(board),
            choice,
            weight: Number::Float(double(weight)),
        });
        Combine { boards: boards.collect(), ..wanted([1, 1, 1]) }
    };
    for (choice, weights, expect) in [
        (WindowChoice::Default, [1.0, 0.1], vec![("p2", f64::INFINITY), ("p1", 1.5)]),
        (WindowChoice::Current(Window::Day), [1.0, 0.5], vec![("p2", f64::INFINITY), ("p1", 2.5)]),
        // Infinity times nothing is nothing.
        (WindowChoice::Default, [0.0, 1.0], vec![("p1", 10.0), ("p2", 0.0)]),
    ] {
        for answer in windows.read(&of(choice, weights)).await {
            let answer = answer.expect("the boards are there");
            let found: Vec<(&str, f64)> =
                answer.entries.iter().map(|entry| (&*entry.member, entry.score.double().value())).collect();
            assert_eq!(found, expect);
        }
    }
}

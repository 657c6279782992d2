//! A read that looks up much does not hold all shards in memory at once, and finds the same.

use super::windows::{DAY, FRIDAY, asked, name};
use super::{BOARD, id, movement, time};
use crate::query::read::is_one_by_one;
use crate::query::{
    BoardRead, BoardSelection, BoardView, End, ListInstances, LookupMembers, MemberOnBoards, MovementAsked,
    OfBoard, RanksOf, ReadError, ReadOptions, ShardsRead, Start, Top, TotalsOf, VisitEntries as _,
    WithMovement, read, read_in_memory,
};
use crate::state::Incarnation;
use crate::types::Score;
use crate::window::Window;
use crate::writer::RegisteredBoard;

const NOW: i64 = FRIDAY + DAY / 2;

/// A read of so many look-ups. Answers whether the shards are held as long as it takes.
struct LookUp(usize);

impl BoardRead for LookUp {
    type Answer = bool;

    fn lookups(&self) -> usize {
        self.0
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<bool, ReadError> {
        Ok(board.is_snapshot())
    }
}

fn of_board<R: BoardRead>(read: R) -> OfBoard<R> {
    OfBoard { board: name(BOARD), instance: asked("", NOW), read }
}

#[tokio::test]
async fn a_read_that_looks_up_much_holds_one_shard_at_a_time() {
    for (shards, lookups, holds_all) in
        [(1, 1, true), (1, 1_000, true), (1, 2_000, false), (16, 64, true), (16, 65, false)]
    {
        let windows = movement::windows(shards);
        let node = windows.node();
        let asked = of_board(LookUp(lookups));
        let reply = read(&node, &windows.registry, &asked, &ReadOptions::default()).await;
        let answer = reply.expect("it asks nothing").answer.expect("the board is there");
        assert_eq!(answer.body, holds_all, "{shards} shards, {lookups} look-ups");
    }
}

#[test]
fn reads_of_many_boards_and_instances_hold_one_shard_at_a_time() {
    let windows = movement::windows(16);
    windows.enter(BOARD, "m1", 1, FRIDAY);
    let node = windows.node();
    let known = windows.registry.get(BOARD).expect("it is defined");
    let boards = |number| vec![(name(BOARD), known.clone()); number];
    let totals = |number| {
        let boards = boards(number);
        is_one_by_one(&node, &TotalsOf { boards: &boards, instance: asked("", NOW) })
    };
    assert_eq!([totals(64), totals(65)], [false, true]);
    let member = |number| {
        let boards = BoardSelection::Named(vec![name(BOARD); number]);
        is_one_by_one(
            &node,
            &MemberOnBoards {
                member: id("m1"),
                boards,
                instance: asked("", NOW),
                hidden: false,
                windows: None,
            },
        )
    };
    assert_eq!([member(32), member(33)], [false, true]);
    let instances = |of: &str| {
        let read = ListInstances { board: name(of), asked: asked("", NOW), before: None, limit: 1 };
        is_one_by_one(&node, &read)
    };
    windows.define("endless", &[Window::All], 12);
    assert_eq!([BOARD, "endless"].map(instances), [true, false], "the second has one instance");
}

#[tokio::test]
async fn totals_of_a_board_that_is_over_meanwhile_are_zero_and_not_asked_again() {
    let windows = movement::windows(16);
    windows.enter(BOARD, "m1", 1, FRIDAY);
    let node = windows.node();
    let known = windows.registry.get(BOARD).expect("it is defined");
    // On the shards the board's next life has begun since it was listed.
    let listed = RegisteredBoard { incarnation: Incarnation(0), ..known.clone() };
    assert!(listed.incarnation < known.incarnation);
    let boards: Vec<_> =
        (0..65).map(|nth| (name(BOARD), if nth == 0 { &listed } else { &known }.clone())).collect();
    let totals = TotalsOf { boards: &boards, instance: asked("", NOW) };
    assert!(is_one_by_one(&node, &totals));
    let reply = read(&node, &windows.registry, &totals, &ReadOptions::default()).await;
    let (found, _) = reply.expect("it is not asked until it is given up").answer;
    let found: Vec<u64> = found.iter().flatten().map(|(_, total)| *total).collect();
    assert_eq!(found, [&[0][..], &[1; 64]].concat());
}

#[test]
fn a_member_has_as_many_look_ups_as_it_has_boards() {
    let windows = movement::windows(16);
    for tree in [BOARD, "arena#2026-11-20.now", "arena#2026-11-20.then"] {
        windows.enter(tree, "m1", 1, FRIDAY);
    }
    let node = windows.node();
    let lookups = |member: &str, boards: BoardSelection| {
        MemberOnBoards { member: id(member), boards, instance: asked("", NOW), hidden: false, windows: None }
            .lookups_on(&node)
    };
    let all = |limit| BoardSelection::All { after: None, limit, prefixes: None };
    assert_eq!([lookups("m1", all(1_000)), lookups("m1", all(2)), lookups("m2", all(1_000))], [6, 4, 0]);
    assert_eq!(lookups("m2", BoardSelection::Named(vec![name(BOARD); 5])), 10);
}

#[tokio::test]
async fn it_finds_what_is_found_under_all_locks() {
    let windows = movement::windows(16);
    for number in 0..200 {
        let member = format!("m{number}");
        // Few scores: many ties.
        windows.enter(BOARD, &member, number % 7, FRIDAY + number);
        if number % 3 == 0 {
            windows.enter("arena#2026-11-20.now", &member, number % 7, FRIDAY + number);
            windows.enter("arena#2026-11-20.then", &member, number % 5, FRIDAY - number);
        }
    }
    let options = ReadOptions::default();
    let node = windows.node();
    let both = async |asked: &OfBoard<WithMovement<Top>>| {
        let reply = read(&node, &windows.registry, asked, &options).await.expect("all shards answer");
        let held = read_in_memory(&node, &windows.registry, asked).expect("they are in memory");
        [reply.answer, held].map(|answer| {
            let mut answer = answer.expect("the board has movement");
            let mut entries = Vec::new();
            answer.body.each_entry(&mut |listed| entries.push(listed.clone()));
            (answer.as_of, answer.total, entries)
        })
    };
    let movement =
        |entries| Some(MovementAsked { board: name(BOARD), window: Window::Day, now: time(NOW), entries });
    let top = |limit| {
        let read = Top { start: Start::End(End::Top), limit };
        of_board(WithMovement { read, movement: movement(limit) })
    };
    let [one_by_one, held] = both(&top(150)).await;
    assert_eq!(one_by_one, held);
    assert_eq!(held.2.len(), 150);

    let names = (0..250).map(|number| id(&format!("m{number}")));
    let asked = of_board(LookupMembers { members: names.collect() });
    assert!(asked.lookups() * 16 > 1_024);
    let reply = read(&node, &windows.registry, &asked, &options).await.expect("all shards answer");
    let held = read_in_memory(&node, &windows.registry, &asked).expect("they are in memory");
    let [found, held] = [reply.answer, held].map(|answer| answer.expect("the board is there").body);
    assert_eq!((&found.entries, &found.not_found), (&held.entries, &held.not_found));
    assert_eq!((found.entries.len(), found.not_found.len()), (200, 50));

    let scores: Vec<Score> = (-50..50).map(|score| Score::new(&[score]).expect("one key")).collect();
    let asked = of_board(RanksOf { scores: &scores });
    let reply = read(&node, &windows.registry, &asked, &options).await.expect("all shards answer");
    let held = read_in_memory(&node, &windows.registry, &asked).expect("they are in memory");
    let standings = [reply.answer, held].map(|answer| {
        let ranks = answer.expect("the board is there").body.expect("one key");
        ranks.into_iter().map(|rank| rank.standing).collect::<Vec<_>>()
    });
    assert_eq!(standings[0], standings[1]);
}

/// In memory a member's entry tells where it stands on its home shard. One shard at a time, each counts at
/// its key, from the root of its tree.
#[tokio::test]
async fn members_of_large_trees_stand_alike_both_ways() {
    let windows = movement::windows(3);
    for number in 0..3_000 {
        windows.enter(BOARD, &format!("m{number}"), number * 7_919 % 500, FRIDAY + number);
    }
    let names = (0..3_000).step_by(5).map(|number| id(&format!("m{number}"))).chain([id("nobody")]);
    let asked = of_board(LookupMembers { members: names.collect() });
    assert!(asked.lookups() * 3 > 1_024);
    let node = windows.node();
    let reply = read(&node, &windows.registry, &asked, &ReadOptions::default()).await;
    let one_by_one = reply.expect("all shards answer").answer.expect("the board is there").body;
    let held = read_in_memory(&node, &windows.registry, &asked).expect("they are in memory");
    let held = held.expect("the board is there").body;
    assert_eq!((&held.entries, &held.not_found), (&one_by_one.entries, &one_by_one.not_found));
    assert_eq!((held.entries.len(), &*held.not_found), (600, &[600][..]));
}

//! When a tree has changed last, as those are told who have read it before.

use std::sync::Arc;

use crate::board::Definition;
use crate::state::{
    Applied, BoardEvent, Change, Dropped, Entry, EntryState, Incarnation, Members, Shard, Step,
};
use crate::tree::Words;
use crate::types::{BoardName, Sequence, ShardId, Timestamp};

fn applied(sequence: u64) -> Applied {
    Applied { sequence: Sequence(sequence), ..Applied::default() }
}

fn board(name: &str) -> BoardName {
    BoardName::new(name).expect("a good name")
}

/// A shard with the boards a and b, at 1.
fn shard() -> Shard {
    let mut shard = Shard::new(ShardId(0));
    let define = |name| BoardEvent::Define {
        board: board(name),
        incarnation: Incarnation(1),
        number: None,
        definition: Arc::new(Definition::default()),
    };
    shard.apply(&Step { events: vec![define("a"), define("b")], applied: applied(1), ..Step::default() });
    shard
}

/// Sets the score of a member on a board, as a part of a message.
fn set(shard: &mut Shard, name: &str, score: u64, sequence: u64) {
    let tree = shard.board(name).expect("it is defined").all;
    let known = shard.members.get(b"m");
    let handle = known.unwrap_or_else(|| shard.members.nth_next_handle(0));
    let state = EntryState::Listed(Words::from_slice(&[score, 0]));
    let entry = Entry { state, updated_at: Timestamp::default(), version: None, has_metadata: false };
    let added = if known.is_none() { vec![b"m".as_slice().into()] } else { Vec::new() };
    let changes = vec![Change { tree, handle, after: Some(entry) }];
    shard.apply(&Step { added, changes, applied: applied(sequence), ..Step::default() });
}

fn changed(shard: &Shard, name: &str) -> u64 {
    let tree = shard.tree(shard.board(name).expect("it is defined").all).expect("it has a tree");
    shard.changed(tree).0
}

#[test]
fn a_change_is_of_its_message_and_leaves_other_boards_alone() {
    let mut shard = shard();
    assert_eq!((changed(&shard, "a"), changed(&shard, "b")), (0, 0));
    shard.begin_changes(applied(5));
    set(&mut shard, "a", 7, 5);
    // Another job of the same message, before anybody could look.
    set(&mut shard, "a", 8, 5);
    assert_eq!((changed(&shard, "a"), changed(&shard, "b")), (5, 0));
    shard.begin_changes(applied(6));
    set(&mut shard, "b", 7, 6);
    assert_eq!((changed(&shard, "a"), changed(&shard, "b")), (5, 6));
}

#[test]
fn what_comes_later_of_a_message_is_as_if_it_were_of_the_next_one() {
    let mut shard = shard();
    shard.begin_changes(applied(5));
    set(&mut shard, "a", 7, 5);
    // A reader may have read it at 5 in between.
    shard.begin_changes(applied(5));
    set(&mut shard, "a", 8, 5);
    assert_eq!(changed(&shard, "a"), 6);
    shard.begin_changes(applied(6));
    set(&mut shard, "b", 7, 6);
    assert_eq!((changed(&shard, "a"), changed(&shard, "b")), (6, 6));
}

#[test]
fn after_a_start_every_tree_may_have_changed_until_then() {
    let restored =
        Shard::restore(ShardId(0), applied(40), Members::new(), [].into(), [].into(), Dropped::default(), 0);
    let mut shard = restored;
    let event = BoardEvent::Define {
        board: board("a"),
        incarnation: Incarnation(1),
        number: None,
        definition: Arc::new(Definition::default()),
    };
    shard.apply(&Step { events: vec![event], applied: applied(41), ..Step::default() });
    assert_eq!(changed(&shard, "a"), 40);
    set(&mut shard, "a", 7, 42);
    assert_eq!(changed(&shard, "a"), 42);
}

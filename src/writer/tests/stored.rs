//! What boards make together, stored by one message: all of it or nothing, the same on every replica, and in
//! steps that nobody sees one by one.

use std::collections::BTreeMap;

use crate::board::{Aggregate, Combination, Definition, KeyType, Policy};
use crate::job::{Job, Op, RejectCode};
use crate::state::{Incarnation, LogHash, StoreOrder, StoreRange, StoreSource, TrimPoint, TrimSide};
use crate::state_lock::Purpose;
use crate::storage::TreesFrom;
use crate::tree::Words;
use crate::types::{BoardName, Number, Timestamp};
use crate::window::Window;
use crate::writer::apply::apply;
use crate::writer::tests::build::{bare, board, job};
use crate::writer::tests::planned_shard::PlannedShard;
use crate::writer::{BadJob, Message, OutcomeSender, Payload};

/// Of each board.
type Entries = BTreeMap<&'static str, Vec<(String, i64)>>;

const HOUR: i64 = 3_600_000_000;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).expect("in range")
}

struct Run {
    planned: PlannedShard,
    now: i64,
}

impl Run {
    fn new(boards: &[&str]) -> Self {
        let mut run = Self { planned: PlannedShard::new(), now: 0 };
        for name in boards {
            run.define(name, &Definition::default());
        }
        run
    }

    fn define(&mut self, name: &str, definition: &Definition) {
        let payload = self.planned.define(name, definition);
        self.say(payload);
    }

    fn message(&mut self, payload: Payload) -> Message {
        self.now += 1;
        self.planned.message(at(self.now), payload)
    }

    fn say(&mut self, payload: Payload) {
        let message = self.message(payload);
        self.planned.run(vec![message]);
    }

    fn jobs(&mut self, jobs: impl IntoIterator<Item = Job>) {
        self.say(Payload::Jobs(jobs.into_iter().map(Ok::<_, BadJob>).collect()));
    }

    fn fill(&mut self, name: &str, scores: &[(&str, i64)]) {
        self.jobs(scores.iter().map(|(member, score)| job(member, &[(name, &[*score])])));
    }

    /// What the client is told: how many entries the result has, or why there is none.
    fn store(&mut self, order: &StoreOrder) -> Result<u64, RejectCode> {
        let (sender, mut told) = tokio::sync::oneshot::channel();
        let mut message = self.message(Payload::Store(order.clone()));
        message.answer = Some(OutcomeSender::from(sender));
        self.planned.run(vec![message]);
        let outcome = told.try_recv().expect("it is told").expect("it is committed");
        match outcome.jobs.as_slice() {
            [] => Ok(outcome.entries),
            [crate::writer::JobOutcome::Rejected(reject)] => Err(reject.code),
            other => panic!("{other:?}"),
        }
    }

    /// Listed entries.
    fn entries(&self, name: &str) -> Vec<(String, i64)> {
        let shard = self.planned.shard.read(Purpose::Read);
        let tree = shard.board_tree(name).expect("it is there");
        let entry = |(handle, words): (_, Words)| {
            let id = String::from_utf8(shard.members.id(handle).to_vec()).expect("UTF-8");
            (id, tree.definition.score_of(words.as_slice()).keys()[0])
        };
        tree.tree.cursor_at(0).map(entry).collect()
    }

    fn check(&mut self) {
        assert_eq!(self.planned.findings(), Vec::<String>::new());
    }
}

fn order(to: &str, of: &[(&str, i64)], combination: Combination) -> StoreOrder {
    let source = |(name, weight): &(&str, i64)| StoreSource {
        board: board(name),
        weight: Number::Integer(*weight),
        range: None,
    };
    let (aggregate, numbers) = (Aggregate::Sum, KeyType::Integer);
    StoreOrder { board: board(to), sources: of.iter().map(source).collect(), combination, aggregate, numbers }
}

fn named(entries: &[(&str, i64)]) -> Vec<(String, i64)> {
    entries.iter().map(|(member, score)| ((*member).to_owned(), *score)).collect()
}

/// A board may be made of itself; what it had and the result has not goes, with its metadata.
#[test]
fn a_result_replaces_all_that_the_board_had() {
    let mut run = Run::new(&["a", "b", "to"]);
    run.fill("a", &[("x", 1), ("y", 2), ("z", 3)]);
    run.fill("b", &[("y", 10), ("z", 20), ("w", 30)]);
    run.jobs([job("old", &[("to", &[5])]).meta(r#"{"a":1}"#), job("y", &[("to", &[7])]).meta(r#"{"b":1}"#)]);
    assert_eq!(run.store(&order("to", &[("a", 2), ("b", 1)], Combination::Union)), Ok(4));
    assert_eq!(run.entries("to"), named(&[("w", 30), ("z", 26), ("y", 14), ("x", 2)]));
    assert_eq!(run.store(&order("to", &[("to", 1), ("a", -1)], Combination::Inter)), Ok(3));
    assert_eq!(run.entries("to"), named(&[("z", 23), ("y", 12), ("x", 1)]));
    assert_eq!(run.store(&order("to", &[("to", 1), ("b", 1)], Combination::Diff)), Ok(1));
    assert_eq!(run.entries("to"), named(&[("x", 1)]));
    run.planned.checkpoint();
    assert_eq!(run.store(&order("to", &[("none", 1), ("a", 1)], Combination::Inter)), Ok(0));
    assert_eq!(run.entries("to"), named(&[]));
    assert_eq!(run.store(&order("a", &[("a", 3)], Combination::Union)), Ok(3));
    run.check();
    run.planned.restart(TreesFrom::Pages);
    assert_eq!(run.entries("a"), named(&[("z", 9), ("y", 6), ("x", 3)]));
    assert_eq!(run.entries("to"), named(&[]));
    run.check();
}

/// Who is hidden is in no source, and hidden on the board that has the result.
#[test]
fn hidden_members_are_no_part_of_a_result() {
    let mut run = Run::new(&["a", "b", "to"]);
    for name in ["a", "b"] {
        run.fill(name, &[("x", 1), ("y", 2), ("z", 4)]);
    }
    run.fill("to", &[("x", 9), ("old", 9)]);
    run.jobs([bare(Op::Hide, "y", &["a"]), bare(Op::Hide, "x", &["to"]), bare(Op::Hide, "old", &["to"])]);
    assert_eq!(run.store(&order("to", &[("a", 1), ("b", 1)], Combination::Union)), Ok(2));
    assert_eq!(run.entries("to"), named(&[("z", 8), ("y", 2)]));
    run.jobs([bare(Op::Show, "x", &["to"]), bare(Op::Show, "old", &["to"])]);
    assert_eq!(run.entries("to"), named(&[("z", 8), ("x", 2), ("y", 2)]));
    run.check();
}

#[test]
fn a_range_begins_and_ends_with_an_entry_wherever_it_is_now() {
    let mut run = Run::new(&["a", "to"]);
    run.fill(
        "a",
        &[("r", 9), ("s", 8), ("t", 7), ("u", 6), ("v", 5), ("w", 4), ("x", 3), ("y", 2), ("z", 1)],
    );
    let place = |run: &Run, side, id: &str| {
        let shard = run.planned.shard.read(Purpose::Read);
        let handle = shard.members.get(id.as_bytes()).expect("a member");
        let words = shard.board_tree("a").expect("it is there").tree.get(handle).expect("an entry");
        TrimPoint { side, words: Words::from_slice(words.as_slice()), member: Some(id.as_bytes().into()) }
    };
    let incarnation = run.planned.known("a").incarnation;
    let (first, last) = (place(&run, TrimSide::Better, "t"), place(&run, TrimSide::Worse, "y"));
    let ranged = |incarnation: Incarnation| {
        let mut order = order("to", &[("a", 1)], Combination::Union);
        let range = StoreRange { incarnation, first: first.clone(), last: last.clone() };
        order.sources[0].range = Some(range);
        order
    };
    assert_eq!(run.store(&ranged(incarnation)), Ok(6));
    let all = [("t", 7), ("u", 6), ("v", 5), ("w", 4), ("x", 3), ("y", 2)];
    assert_eq!(run.entries("to"), named(&all));
    run.fill("a", &[("t", 100), ("z", 6), ("new", 4)]);
    assert_eq!(run.store(&ranged(incarnation)), Ok(7));
    let now = [("u", 6), ("z", 6), ("v", 5), ("w", 4), ("new", 4), ("x", 3), ("y", 2)];
    assert_eq!(run.entries("to"), named(&now));
    assert_eq!(run.store(&ranged(Incarnation(incarnation.0 + 1))), Ok(0), "it is of another life");
    run.check();
}

/// A board that is not for it, is read-only or has too much is left as it is, as are all others.
#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    let mut run = Run::new(&["a", "to"]);
    run.define("best", &Definition { policy: Policy::Best, ..Definition::default() });
    run.define("windows", &Definition { windows: vec![Window::All, Window::Day], ..Definition::default() });
    let mut narrow = Definition::default();
    narrow.keys[0].max = 2;
    run.define("narrow", &narrow);
    run.fill("a", &[("x", 1), ("y", 3), ("great", i64::MAX)]);
    run.fill("narrow", &[("x", 2)]);
    run.fill("to", &[("x", 2)]);
    let before = run.entries("to");
    for (to, of, expect) in [
        ("best", &[("a", 1)][..], RejectCode::BadScore),
        ("windows", &[("a", 1)], RejectCode::BadScore),
        ("narrow", &[("a", 1)], RejectCode::OutOfRange),
        ("to", &[("a", 2)], RejectCode::Overflow),
    ] {
        assert_eq!(run.store(&order(to, of, Combination::Union)), Err(expect), "{to}");
    }
    assert_eq!((run.entries("to"), run.entries("narrow")), (before.clone(), before));
    for part in 0..7 {
        run.jobs((0..100).map(|number| job(&format!("m{part}-{number}"), &[("a", &[number])])));
    }
    assert_eq!(run.store(&order("to", &[("a", 0)], Combination::Union)), Err(RejectCode::TooLarge));
    assert_eq!(run.store(&order("a", &[("to", 1)], Combination::Union)), Err(RejectCode::TooLarge));
    // The small one is looked up on the other.
    assert_eq!(run.store(&order("to", &[("a", 1), ("to", 0)], Combination::Inter)), Ok(1));
    assert_eq!(run.entries("to"), named(&[("x", 1)]));
    run.check();
}

/// Steps before the last one are of the message before, and nobody is shown the board meanwhile.
#[test]
fn no_reader_is_shown_half_of_a_result() {
    let mut run = Run::new(&["a", "to"]);
    run.jobs((0..20).map(|number| job(&format!("m{number}"), &[("a", &[number]), ("to", &[1])])));
    let other = run.message(Payload::Jobs(vec![Ok(job("m0", &[("a", &[50])]))].into()));
    let (before, is_to) = (other.sequence, |name: &BoardName| name.as_str() == "to");
    let store = run.message(Payload::Store(order("to", &[("a", 1)], Combination::Union)));
    let steps = run.planned.plan(vec![other, store]);
    let last = steps.len() - 1;
    assert!(last >= 6, "{last} steps");
    for (nth, step) in steps.into_iter().enumerate() {
        assert!(step.step().changes.len() <= 3);
        let (sequence, _) = apply(&run.planned.shard, step);
        let shard = run.planned.shard.read(Purpose::Read);
        let is_between = nth > 0 && nth < last;
        assert_eq!(shard.is_ahead(is_to), is_between, "step {nth} of {last}");
        assert!(!shard.is_ahead(|name| name.as_str() == "a"));
        assert_eq!(sequence == before, nth < last);
    }
    let mut entries = run.entries("to");
    entries.truncate(2);
    assert_eq!(entries, named(&[("m0", 50), ("m19", 19)]), "as the message before it has left them");
    run.check();
}

/// However the log is cut into batches: what a batch has changed before counts, and what expires by then.
#[test]
fn every_cut_into_batches_comes_to_the_same() {
    let mut seen: Vec<(Entries, LogHash)> = Vec::new();
    for cut in [1, 2, 3, 100] {
        let mut run = Run::new(&["a", "to"]);
        let ttl = Definition { entry_ttl_micros: Some(HOUR), ..Definition::default() };
        run.define("b", &ttl);
        run.fill("b", &[("old", 1), ("older", 2)]);
        run.now += HOUR + 10;
        let mut said = Vec::new();
        let scores = |name: &'static str, from: i64| {
            let jobs = (from..from + 9)
                .map(move |number| Ok::<_, BadJob>(job(&format!("m{number}"), &[(name, &[number * 3 % 7])])));
            Payload::Jobs(jobs.collect())
        };
        said.push(scores("a", 0));
        said.push(scores("b", 4));
        said.push(Payload::Store(order("to", &[("a", 2), ("b", -1)], Combination::Union)));
        said.push(Payload::Jobs(vec![Ok(bare(Op::Remove, "m5", &["a", "to"]))].into()));
        said.push(scores("to", 8));
        said.push(Payload::Store(order("a", &[("to", 1), ("a", 1)], Combination::Inter)));
        said.push(Payload::Store(order("to", &[("to", 1), ("a", 1)], Combination::Diff)));
        said.push(Payload::Store(order("b", &[("b", 1)], Combination::Union)));
        let mut messages: Vec<Message> = said.into_iter().map(|payload| run.message(payload)).collect();
        while !messages.is_empty() {
            let rest = messages.split_off(cut.min(messages.len()));
            run.planned.run(messages);
            while run.planned.shard.read(Purpose::Read).has_expiry_to_note() {
                run.planned.shard.write(Purpose::Apply).note_expiring(64);
            }
            messages = rest;
        }
        run.check();
        let boards = ["a", "b", "to"].map(|name| (name, run.entries(name)));
        seen.push((BTreeMap::from(boards), run.planned.hash));
    }
    let first = seen.first().expect("there are some").clone();
    assert!(first.0["a"].len() > 3 && first.0["to"].len() > 3, "{first:?}");
    assert!(seen.iter().all(|(boards, hash)| (boards, hash) == (&first.0, &first.1)), "{seen:?}");
}

//! Short ways to say jobs and messages.

use std::sync::Arc;

use crate::board::{Definition, Key, Order, Policy, Ties};
use crate::job::{Job, Metadata, Op, Profile, Targets};
use crate::types::{BoardName, MemberId, Score};

pub fn member(id: &str) -> MemberId {
    MemberId::new(id).expect("a well-formed member id")
}

pub fn board(name: &str) -> BoardName {
    BoardName::new(name).expect("a well-formed board name")
}

pub fn score(keys: &[i64]) -> Score {
    Score::new(keys).expect("1 to 8 keys")
}

/// A job without an operation of its own.
pub fn job(id: &str, boards: &[(&str, &[i64])]) -> Job {
    let boards = boards.iter().map(|(name, keys)| (board(name), Some(score(keys)))).collect();
    Job {
        member: member(id),
        targets: Targets::Boards(boards),
        op: None,
        version: None,
        at: None,
        meta: None,
        id: None,
    }
}

/// A job of an operation that takes no score.
pub fn bare(op: Op, id: &str, boards: &[&str]) -> Job {
    let boards = boards.iter().map(|name| (board(name), None)).collect();
    Job { op: Some(op), targets: Targets::Boards(boards), ..job(id, &[]) }
}

pub fn leave_all(id: &str) -> Job {
    Job { op: Some(Op::Remove), targets: Targets::EveryBoard, ..job(id, &[]) }
}

/// A job that brings a profile; `{}` takes it away.
pub fn profile(id: &str, json: &str) -> Job {
    Job { op: Some(Op::Profile), targets: Targets::Profile(Profile(json.into())), ..job(id, &[]) }
}

impl Job {
    pub fn op(self, op: Op) -> Self {
        Self { op: Some(op), ..self }
    }

    pub fn version(self, version: u64) -> Self {
        Self { version: Some(version), ..self }
    }

    pub fn meta(self, json: &str) -> Self {
        Self { meta: Some(Metadata(json.into())), ..self }
    }
}

/// Two keys of different directions with narrow bounds, best, the latest first among ties.
pub fn race() -> Arc<Definition> {
    let key = |name: &str, order| Key { name: name.to_owned(), order, min: -3, max: 3, ..Key::score() };
    Arc::new(Definition {
        keys: vec![key("points", Order::Descending), key("time", Order::Ascending)],
        policy: Policy::Best,
        ties: Ties::Last,
        ..Definition::default()
    })
}

/// One ascending key, incremented, ties by member, the greatest id first.
pub fn strokes() -> Arc<Definition> {
    let key = Key { name: "strokes".to_owned(), order: Order::Ascending, ..Key::score() };
    Arc::new(Definition {
        keys: vec![key],
        policy: Policy::Incr,
        ties: Ties::MemberDesc,
        ..Definition::default()
    })
}

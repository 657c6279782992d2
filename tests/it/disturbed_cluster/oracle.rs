//! What an answer has to be: each shard's messages up to the sequence that the answer names, applied one by
//! one, and everybody sorted. Too simple to be wrong.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::disturbed_cluster::readers::{Answer, Question};
use crate::disturbed_cluster::recorder::{Log, Stored};
use crate::disturbed_cluster::world::SEASON;
use crate::support::client::count_of;

/// A shard's state is kept after every so many messages, and worked out from there.
const KEPT_EVERY: usize = 64;

/// A board on one shard: the life it has there, and its entries.
#[derive(Debug, Clone, Default)]
struct Board {
    incarnation: u64,
    entries: BTreeMap<String, i64>,
}

type Shard = BTreeMap<String, Board>;

/// One entry, in the order of the board: best first, ties by the bytes of the id.
type Entry = (std::cmp::Reverse<i64>, String);

pub struct Oracle {
    logs: Vec<Log>,
    /// Each shard after 0, [`KEPT_EVERY`], twice as many, ... messages.
    kept: Vec<Vec<Shard>>,
}

impl Oracle {
    pub fn new(logs: Vec<Log>) -> Self {
        let kept = logs.iter().map(|log| {
            let (mut shard, mut kept) = (Shard::new(), vec![Shard::new()]);
            for (index, stored) in log.iter().enumerate() {
                apply(&mut shard, stored);
                if (index + 1) % KEPT_EVERY == 0 {
                    kept.push(shard.clone());
                }
            }
            kept
        });
        Self { kept: kept.collect(), logs }
    }

    pub fn logs(&self) -> &[Log] {
        &self.logs
    }

    fn at(&self, shard: usize, sequence: usize) -> Shard {
        let log = &self.logs[shard];
        assert!(sequence <= log.len(), "shard {shard} has applied {sequence}, and {} were stored", log.len());
        let nearest = sequence / KEPT_EVERY;
        let mut state = self.kept[shard][nearest].clone();
        log[nearest * KEPT_EVERY..sequence].iter().for_each(|stored| apply(&mut state, stored));
        state
    }

    /// A member's score on its shard after a message; `None` if it has none.
    pub fn score(&self, shard: usize, sequence: usize, board: &str, member: &str) -> Option<i64> {
        self.at(shard, sequence).get(board)?.entries.get(member).copied()
    }

    /// Why the answer is wrong; `Ok` if it is right. A board that is dropped and defined again has several
    /// lives, and the answer may be of any one of them, but not of two.
    pub fn check(&self, answer: &Answer) -> Result<(), String> {
        let as_of = parse_as_of(answer.body["as_of"].as_str().ok_or("it has no as_of")?);
        if as_of.len() != self.logs.len() {
            return Err(format!("it is of {} shards", as_of.len()));
        }
        let boards: Vec<_> = as_of
            .iter()
            .map(|(shard, sequence)| self.at(*shard, *sequence).remove(answer.board).unwrap_or_default())
            .collect();
        let mut lives: Vec<u64> = boards.iter().map(|board| board.incarnation).collect();
        // Of a life that no shard has yet, nobody is listed. Only the season gets another life.
        if answer.board == SEASON {
            lives.push(u64::MAX);
        }
        lives.sort_unstable();
        lives.dedup();
        let mut problems = Vec::new();
        for life in lives {
            let shards: Vec<Vec<Entry>> = boards.iter().map(|board| sorted(board, life)).collect();
            match check_life(&shards, answer) {
                Ok(()) => return Ok(()),
                Err(problem) => problems.push(format!("life {life}: {problem}")),
            }
        }
        Err(problems.join("; "))
    }
}

fn apply(shard: &mut Shard, stored: &Stored) {
    match stored {
        Stored::Define { board, incarnation } => {
            let held = shard.entry(board.clone()).or_default();
            // The same definition again changes nothing; a later life begins empty.
            if held.incarnation < *incarnation {
                *held = Board { incarnation: *incarnation, entries: BTreeMap::new() };
            }
        }
        Stored::Drop { board, incarnation } => {
            if shard.get(board).is_some_and(|held| held.incarnation <= *incarnation) {
                shard.remove(board);
            }
        }
        Stored::Jobs(jobs) => jobs.iter().for_each(|job| apply_job(shard, job)),
    }
}

fn apply_job(shard: &mut Shard, job: &Value) {
    let board = job["board"].as_str().expect("a name");
    let member = job["member"].as_str().expect("an id");
    // Of a board that the shard does not have, a job is rejected.
    let Some(board) = shard.get_mut(board) else { return };
    if job["op"] == "remove" {
        board.entries.remove(member);
        return;
    }
    let by = match &job["score"] {
        Value::Array(keys) => keys[0].as_i64(),
        key => key.as_i64(),
    };
    *board.entries.entry(member.to_owned()).or_insert(0) += by.expect("an integer");
}

fn sorted(board: &Board, life: u64) -> Vec<Entry> {
    if board.incarnation != life {
        return Vec::new();
    }
    let entry = |(member, score): (&String, &i64)| (std::cmp::Reverse(*score), member.clone());
    let mut entries: Vec<Entry> = board.entries.iter().map(entry).collect();
    entries.sort();
    entries
}

/// The shards and sequences of an `as_of`.
pub fn parse_as_of(text: &str) -> Vec<(usize, usize)> {
    let parts = text.split(',').filter(|part| !part.is_empty()).map(|part| {
        let (shard, sequence) = part.split_once(':').expect("a shard and a sequence");
        (shard.parse().expect("a number"), sequence.parse().expect("a number"))
    });
    parts.collect()
}

fn check_life(shards: &[Vec<Entry>], answer: &Answer) -> Result<(), String> {
    let mut all: Vec<Entry> = shards.concat();
    all.sort();
    let body = &answer.body;
    let equal = |what: &str, found: &Value, expected: usize| {
        if found.as_u64().is_some_and(|found| usize::try_from(found) == Ok(expected)) {
            Ok(())
        } else {
            Err(format!("{what} is {found} and has to be {expected}"))
        }
    };
    let better = |score: i64| all.iter().filter(|entry| entry.0.0 > score).count();
    let tied = |score: i64| all.iter().filter(|entry| entry.0.0 == score).count();
    let listed = |from: usize, to: usize| -> Result<(), String> {
        let expected = all.get(from.min(all.len())..to.min(all.len())).unwrap_or_default();
        let found = body["entries"].as_array().ok_or("it lists nothing")?;
        if found.len() != expected.len() {
            return Err(format!("it lists {} and has to list {}", found.len(), expected.len()));
        }
        for (index, (found, entry)) in found.iter().zip(expected).enumerate() {
            if found["member"] != *entry.1 || found["score"] != entry.0.0 {
                return Err(format!("entry {index} is {found} and has to be {entry:?}"));
            }
            equal("position", &found["position"], from + index + 1)?;
            equal("rank", &found["rank"], better(entry.0.0) + 1)?;
        }
        Ok(())
    };
    equal("total", &body["total"], all.len())?;
    match &answer.question {
        Question::Rank(score) => {
            equal("better", &body["better"], better(*score))?;
            equal("tied", &body["tied"], tied(*score))?;
            for part in body["shards"].as_array().ok_or("it has no shards")? {
                let shard = &shards[count_of(&part["shard"])];
                equal(
                    "a shard's better",
                    &part["better"],
                    shard.iter().filter(|entry| entry.0.0 > *score).count(),
                )?;
                equal("a shard's total", &part["total"], shard.len())?;
            }
            Ok(())
        }
        Question::Member(member) => {
            let at = all.iter().position(|entry| entry.1 == *member).ok_or("it is not listed")?;
            if body["score"] != all[at].0.0 {
                return Err(format!("the score is {} and has to be {}", body["score"], all[at].0.0));
            }
            equal("position", &body["position"], at + 1)?;
            equal("better", &body["better"], better(all[at].0.0))?;
            equal("tied", &body["tied"], tied(all[at].0.0))
        }
        Question::Around(member) => {
            let at = all.iter().position(|entry| entry.1 == *member).ok_or("it is not listed")?;
            listed(at.saturating_sub(3), at + 4)
        }
        Question::Top => listed(0, 10),
        Question::Positions(from) => listed(from - 1, from - 1 + 5),
        Question::All => listed(0, 1_000),
        Question::Count(min, max) => equal(
            "count",
            &body["count"],
            all.iter().filter(|entry| (*min..=*max).contains(&entry.0.0)).count(),
        ),
        Question::ScoreAt(position) => {
            let entry = all.get(position - 1).ok_or("there is no such position")?;
            if body["score"] == entry.0.0 { Ok(()) } else { Err(format!("it has to be {}", entry.0.0)) }
        }
        Question::Lookup(members) => {
            let found = body["entries"].as_array().ok_or("it lists nothing")?;
            let expected: Vec<_> =
                all.iter().enumerate().filter(|(_, entry)| members.contains(&entry.1)).collect();
            if found.len() != expected.len() {
                return Err(format!("it lists {} and has to list {}", found.len(), expected.len()));
            }
            for (found, (at, entry)) in found.iter().zip(expected) {
                if found["member"] != *entry.1 || found["score"] != entry.0.0 {
                    return Err(format!("{found} has to be {entry:?}"));
                }
                equal("position", &found["position"], at + 1)?;
                equal("rank", &found["rank"], better(entry.0.0) + 1)?;
            }
            Ok(())
        }
    }
}

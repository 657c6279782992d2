//! A job as JSON again: for lists of rejects, for the queue, and for jobs that wait for their board.

use serde_json::{Map, Value, json};

use crate::job::{Job, Targets};
use crate::queue::wire;
use crate::types::Score;

/// The job in the form of the wire, as compact JSON.
#[must_use]
pub fn describe(job: &Job) -> Vec<u8> {
    let mut object = Map::new();
    object.insert("member".to_owned(), job.member.as_str().into());
    if let Targets::Boards(boards) = &job.targets {
        match boards.as_slice() {
            [(board, score)] => {
                object.insert("board".to_owned(), board.as_str().into());
                if let Some(score) = score {
                    object.insert("score".to_owned(), score_json(score));
                }
            }
            boards => {
                let score = |score: &Option<Score>| score.as_ref().map_or(Value::Null, score_json);
                let scores = boards.iter().map(|(board, given)| (board.to_string(), score(given)));
                object.insert("scores".to_owned(), Value::Object(scores.collect()));
            }
        }
    }
    if let Some(op) = job.op {
        object.insert("op".to_owned(), op.name().into());
    }
    if let Some(version) = job.version {
        object.insert("version".to_owned(), version.into());
    }
    if let Some(at) = job.at {
        object.insert("at".to_owned(), at.to_string().into());
    }
    if let Some(metadata) = &job.meta {
        object.insert("meta".to_owned(), serde_json::from_str(&metadata.0).unwrap_or(Value::Null));
    }
    Value::Object(object).to_string().into_bytes()
}

/// What [`describe`] described.
#[must_use]
pub fn read_described(bytes: &[u8]) -> Option<Job> {
    let mut jobs = wire::decode(bytes).ok()?;
    let job = jobs.pop()?.ok()?;
    jobs.is_empty().then_some(job)
}

fn score_json(score: &Score) -> Value {
    match score.keys() {
        [key] => json!(key),
        keys => json!(keys),
    }
}

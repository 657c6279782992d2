//! The results of jobs as JSON: over HTTP, and over NATS alike.

use axum::http::StatusCode;

use crate::http::render::fields;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::render::repeated::Repeated;
use crate::http::render::reply::Reply;
use crate::operations::{CHANGED_BYTES_MAX, JobResult, Wait, Written};
use crate::types::{AsOf, count};

/// What most results take that have no entry.
const RESULT_BYTES: usize = 24;
/// What most entries take.
const ENTRY_BYTES: usize = 420;

/// About how many bytes these results take.
fn answer_bytes(results: &[JobResult]) -> usize {
    let of_result = |result: &JobResult| match result {
        JobResult::Applied { changes, .. } => ENTRY_BYTES * (changes.len() + 1),
        JobResult::Repeated { .. } => ENTRY_BYTES,
        JobResult::Changed { by_board, .. } => CHANGED_BYTES_MAX * by_board.as_ref().map_or(0, Vec::len),
        JobResult::Remote { json, .. } => json.get().len(),
        _ => 0,
    };
    results.iter().map(|result| RESULT_BYTES + of_result(result)).sum()
}

/// Writes a job's result: what it changed, why it was rejected, or why its message failed.
pub fn write_result<'a>(object: &mut Object<'_>, result: &'a JobResult, repeated: &mut Repeated<'a>) {
    match result {
        JobResult::Rejected(reject) => {
            object.text("rejected", reject.code.name());
            object.text("detail", &reject.detail);
        }
        JobResult::Parked => {
            object.bool("changed", false);
            object.bool("waits_for_board", true);
        }
        JobResult::Repeated { now, first } => {
            write_result(object, now, repeated);
            object.bool("repeated", true);
            let mut told = object.object("first");
            told.bool("changed", first.changed);
            told.plain("token", &first.token);
            told.end();
        }
        JobResult::Stored => object.bool("stored", true),
        JobResult::Remote { json, .. } => object.members(json.get()),
        JobResult::Failed(why) => {
            let problem = Problem::from(why.clone());
            object.text("failed", problem.code());
            object.text("detail", problem.detail());
        }
        JobResult::Changed { changed, by_board, unranked } => {
            object.bool("changed", *changed);
            if let Some(boards) = by_board {
                fields::changed_by_board(object, boards);
            }
            if let Some(shards) = unranked {
                object.array("missing", shards, |out, shard| json::unsigned(out, u64::from(shard.0)));
            }
        }
        JobResult::Scores(change) => object.bool("changed", change.before != change.after),
        JobResult::Profile { changed } => {
            object.bool("changed", *changed);
            write_no_entry(object);
        }
        JobResult::Everywhere { boards, changed, profile, left } => {
            object.bool("changed", *changed > 0 || *profile);
            write_no_entry(object);
            let mut counts = object.object("counts");
            counts.count("boards", count(*boards));
            counts.count("changed", count(*changed));
            if let Some(left) = left {
                counts.count("left", count(left.boards));
                counts.end();
                object.text("detail", &left.to_string());
                return;
            }
            counts.end();
        }
        JobResult::Applied { changes, by_board } => {
            if let Some(first) = changes.first() {
                fields::change(object, first, repeated);
            } else {
                object.bool("changed", false);
                write_no_entry(object);
            }
            if *by_board {
                fields::changes_by_board(object, changes, repeated);
            }
        }
    }
}

fn write_no_entry(object: &mut Object<'_>) {
    object.null("entry");
    object.null("previous");
}

/// The answer to a write that is safe in the queue. A read may wait for it by its token.
pub fn accepted(token: &AsOf) -> Reply {
    Reply::object(|object| object.plain("token", token)).with_status(StatusCode::ACCEPTED)
}

/// The answer to the jobs.
///
/// # Arguments
/// `more`: writes what else is told of a job, behind its result.
///
/// # Errors
/// When some of them may not have been applied. The problem has what came of each.
pub fn reply(written: &Written, wait: Wait, more: impl Fn(usize, &mut Object<'_>)) -> Result<Reply, Problem> {
    let members = |object: &mut Object<'_>| write_results(object, &written.token, &written.results, &more);
    let failed = written.results.iter().find_map(|result| match result {
        JobResult::Failed(why) => Some(why.clone()),
        _ => None,
    });
    match failed {
        None if wait == Wait::UntilStored => Ok(accepted(&written.token)),
        None => Ok(Reply::sized(answer_bytes(&written.results), members)),
        Some(why) => {
            // Some of the jobs may have been applied: say which.
            let mut bytes = Vec::new();
            let mut object = Object::begin(&mut bytes);
            members(&mut object);
            let inside = bytes.get(1..).unwrap_or_default().to_vec();
            Err(Problem::from(why).with(inside))
        }
    }
}

fn write_results(
    object: &mut Object<'_>,
    token: &AsOf,
    results: &[JobResult],
    more: &impl Fn(usize, &mut Object<'_>),
) {
    // Where no shard took a job there is nothing to wait for, and an empty token is not valid.
    if !token.0.is_empty() {
        object.plain("token", token);
    }
    let mut repeated = Repeated::default();
    object.array("results", results.iter().enumerate(), |out, (index, result)| {
        let mut object = Object::begin(out);
        write_result(&mut object, result, &mut repeated);
        more(index, &mut object);
        object.end();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::{CommitFailed, NotPublished, RemoteOutcome, read_answer};
    use crate::types::{Sequence, ShardId};

    fn read(answer: &str, jobs: usize) -> Result<RemoteOutcome, NotPublished> {
        read_answer(answer.as_bytes(), ShardId(2), jobs)
    }

    fn written(result: &JobResult) -> String {
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        write_result(&mut object, result, &mut Repeated::default());
        object.end();
        String::from_utf8(out).expect("JSON")
    }

    #[test]
    fn an_owners_answer_is_read_and_its_results_are_passed_on() {
        let results = [
            r#"{"changed":true,"entry":{"score":"9223372036854775807","meta":{"a":1.10}},"previous":null}"#,
            r#"{"rejected":"overflow","detail":"too much"}"#,
            r#"{"failed":"queue_full","detail":"this shard takes no writes now: its stream is full"}"#,
            r#"{"changed":false,"waits_for_board":true}"#,
            r#"{"changed":true,"missing":[1]}"#,
        ];
        let body = format!(r#"{{"code":"queue_full","token":"1:5,2:17","results":[{}]}}"#, results.join(","));
        let outcome = read(&body, 5).expect("it has results");
        assert_eq!(outcome.sequence, Some(Sequence(17)));
        assert_eq!(outcome.results.iter().map(written).collect::<Vec<_>>(), results);
        assert!(matches!(outcome.results.get(1), Some(JobResult::Rejected(_))));
        assert!(matches!(outcome.results.get(2), Some(JobResult::Failed(NotPublished::Full(_)))));
    }

    #[test]
    fn problems_say_what_is_known_of_the_jobs() {
        for failure in [
            NotPublished::Overloaded,
            NotPublished::Unavailable("halted".to_owned()),
            NotPublished::Full("its stream is full".to_owned()),
            NotPublished::TooLarge("send fewer".to_owned()),
            NotPublished::Unknown("gone".to_owned()),
            NotPublished::CommitFailed(CommitFailed { reason: "no room".to_owned() }),
        ] {
            let problem = String::from_utf8(Problem::from(failure.clone()).to_json()).expect("JSON");
            assert_eq!(read(&problem, 1).err(), Some(failure), "{problem}");
        }
        let unheard_of = r#"{"results":[{"rejected":"unheard of"}]}"#;
        for strange in ["", "[]", "{}", r#"{"results":[]}"#, r#"{"results":[7]}"#, unheard_of] {
            assert!(matches!(read(strange, 1), Err(NotPublished::Unknown(_))), "{strange}");
        }
    }
}

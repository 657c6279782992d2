//! Jobs that an owner on another node applies while the client waits.
//!
//! Knows: that the owner answers as `POST /v1/jobs?wait=applied` does, and how jobs are cut into requests
//! whose answers fit into a message. Must not know: how the jobs get there (`cluster`).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cluster::WriteClient;
use crate::job::{Job, Reject, RejectCode};
use crate::operations::results::JobResult;
use crate::operations::write_options::{WriteOptions, answer_bytes_max};
use crate::queue::NotPublished;
use crate::types::{AsOf, Sequence, ShardId};
use crate::wire;
use crate::writer::{CommitFailed, OutcomeDetail};

/// What came of some jobs of a shard on another node.
pub struct RemoteOutcome {
    /// Where on the shard they hold; `None` if that is not known.
    pub sequence: Option<Sequence>,
    /// One for each job, in order.
    pub results: Vec<JobResult>,
}

/// Results, or a problem, which has results as well if some of the jobs may have been applied.
#[derive(Deserialize)]
struct AnswerJson {
    token: Option<String>,
    results: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    code: String,
    #[serde(default)]
    detail: String,
}

/// What decides how a result is reported; the rest is passed on.
#[derive(Deserialize)]
struct ResultJson {
    rejected: Option<String>,
    failed: Option<String>,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    changed: bool,
    #[serde(default)]
    waits_for_board: bool,
}

/// Has jobs applied by an owner of their shard, in their order. After a request that failed, none of the
/// others is sent: a later job of a member must not overtake an earlier one.
pub async fn write_remotely(
    writer: &WriteClient,
    (shard, shard_count): (ShardId, u16),
    jobs: &[Job],
    options: WriteOptions,
) -> RemoteOutcome {
    let mut all = RemoteOutcome { sequence: None, results: Vec::with_capacity(jobs.len()) };
    let answer_bytes = |job: &Job| answer_bytes_max(shard_count, std::slice::from_ref(job), options);
    let (mut left, mut has_failed) = (jobs, false);
    while !left.is_empty() && !has_failed {
        let (body, count) = next_request(left, writer.bytes_max(), answer_bytes);
        let answer = writer.write(shard, body, options.detail == OutcomeDetail::Changed).await;
        let outcome = answer.and_then(|answer| read_answer(&answer, shard, count));
        let RemoteOutcome { sequence, results } = outcome.unwrap_or_else(|why| RemoteOutcome {
            sequence: None,
            results: (0..count).map(|_| JobResult::Failed(why.clone())).collect(),
        });
        has_failed = results.iter().any(|result| matches!(result, JobResult::Failed(_)));
        all.sequence = all.sequence.max(sequence);
        all.results.extend(results);
        left = left.get(count..).unwrap_or_default();
    }
    let not_sent = "this job was not sent, because an earlier job of the request may not have been stored";
    let not_sent = |_: &Job| JobResult::Failed(NotPublished::Unavailable(not_sent.to_owned()));
    all.results.extend(left.iter().map(not_sent));
    all
}

/// The body of a request with as many of the jobs as fit, one at least, and how many these are.
///
/// # Arguments
/// `answer_bytes`: the most that the answer to a job may take.
fn next_request(jobs: &[Job], bytes_max: usize, answer_bytes: impl Fn(&Job) -> usize) -> (Vec<u8>, usize) {
    let (mut body, mut answer, mut count) = (b"[".to_vec(), 0, 0);
    for job in jobs {
        let json = wire::encode(job);
        answer += answer_bytes(job);
        let fits = answer <= bytes_max && body.len() + json.len() + 2 <= bytes_max;
        if count > 0 && !fits {
            break;
        }
        if count > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&json);
        count += 1;
    }
    body.push(b']');
    (body, count)
}

/// The results of jobs that an owner answered with.
///
/// # Errors
/// When the jobs were not taken, or the answer is not one to so many jobs.
pub fn read_answer(answer: &[u8], shard: ShardId, jobs: usize) -> Result<RemoteOutcome, NotPublished> {
    let strange =
        || NotPublished::Unknown("another node sent an answer to the write that cannot be read".to_owned());
    let AnswerJson { token, results, code, detail } =
        serde_json::from_slice(answer).map_err(|_| strange())?;
    let Some(results) = results else {
        return Err(if code.is_empty() { strange() } else { failure(&code, detail) });
    };
    let token = token.and_then(|token| AsOf::parse(&token).ok()).unwrap_or_default();
    let sequence = token.0.iter().find(|(of, _)| *of == shard).map(|(_, sequence)| *sequence);
    let results = results.into_iter().map(read_result).collect::<Option<Vec<_>>>();
    let results = results.filter(|results| results.len() == jobs).ok_or_else(strange)?;
    Ok(RemoteOutcome { sequence, results })
}

fn read_result(json: Box<RawValue>) -> Option<JobResult> {
    let said: ResultJson = serde_json::from_str(json.get()).ok()?;
    Some(if let Some(code) = said.rejected {
        let code = RejectCode::ALL.into_iter().find(|known| known.name() == code)?;
        JobResult::Rejected(Reject::new(code, said.detail))
    } else if let Some(code) = said.failed {
        JobResult::Failed(failure(&code, said.detail))
    } else if said.waits_for_board {
        JobResult::Parked
    } else {
        JobResult::Remote { changed: said.changed, json }
    })
}

/// Why a write failed on its owner, by the code and the detail of its problem.
fn failure(code: &str, detail: String) -> NotPublished {
    // What is added when the failure is told once more.
    let without = |prefix: &str| detail.strip_prefix(prefix).unwrap_or(&detail).to_owned();
    let unavailable = || without("this shard takes no writes now: ");
    match code {
        "overloaded" => NotPublished::Overloaded,
        "queue_full" => NotPublished::Full(unavailable()),
        "too_large" => NotPublished::TooLarge(detail),
        "commit_failed" => {
            NotPublished::CommitFailed(CommitFailed { reason: without("the batch could not be committed: ") })
        }
        "commit_unknown" => {
            let known = detail.strip_suffix("; a job with a version, or a trim, may safely be sent again");
            NotPublished::Unknown(known.unwrap_or(&detail).to_owned())
        }
        _ => NotPublished::Unavailable(unavailable()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_hold_as_many_jobs_as_their_bodies_and_answers_allow() {
        let job = |member: &str| {
            let job = format!(r#"{{"member":"{member}","board":"arena","score":1}}"#);
            wire::decode_one(job.as_bytes()).expect("a good job")
        };
        let jobs = ["a", "b", "c"].map(job);
        let one = wire::encode(&jobs[0]).len();
        for (bytes, answer, expected) in
            [(1 << 20, 100, 3), (1 << 20, 400_000, 2), (2 * one + 3, 1, 2), (2 * one + 2, 1, 1), (1, 9, 1)]
        {
            let (body, count) = next_request(&jobs, bytes, |_| answer);
            assert_eq!(count, expected, "{bytes} {answer}");
            assert_eq!(wire::decode(&body).expect("an array").len(), expected);
        }
    }
}

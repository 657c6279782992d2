//! Answers the requests of the write service (`cluster`) as `POST /v1/jobs?wait=applied` is answered.
//!
//! Tokens do not apply: NATS permissions say who may send such requests. The limits on what all requests take
//! together are those of requests over HTTP.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};

use crate::cluster::{Refusal, WriteAnswer, WriteHandler, WriteRequest};
use crate::http::api::Api;
use crate::http::guard::admission::BodyBytes;
use crate::http::guard::in_progress::InProgress;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::body::BODY_BYTES_MAX;
use crate::http::request::params::invalid_value;
use crate::http::writes::job_list::{check_numbers, decode, reply};
use crate::http::writes::options::{Detail, Wait, WriteOptions};
use crate::http::writes::results::JobResult;
use crate::http::writes::results_json::answer_bytes_max;
use crate::http::writes::scatter::{Written, write_jobs};
use crate::job::{Job, Reject, RejectCode};
use crate::types::{ShardId, count};

/// Writes requests of the write service.
pub struct NatsWrites(Arc<Api>);

impl NatsWrites {
    pub fn new(api: Arc<Api>) -> Self {
        Self(api)
    }

    async fn write(&self, request: WriteRequest) -> Result<WriteAnswer, Problem> {
        let api = &self.0;
        if request.jobs.len() > BODY_BYTES_MAX {
            return Err(Problem::body_too_large());
        }
        let mut body_bytes = BodyBytes::none(&api.admission);
        if !body_bytes.take(request.jobs.len()) {
            return Err(Problem::overloaded());
        }
        if request.has_message_id {
            let detail = "the write service does not recognise repetitions by Nats-Msg-Id; give the jobs a version, or publish them to the stream's subject";
            return Err(Problem::unsupported(detail));
        }
        let detail = match request.results.as_deref() {
            None => Detail::Entries,
            Some("changed") => Detail::Changed,
            Some(other) => return Err(invalid_value("the header Ranktree-Results must be changed", other)),
        };
        let jobs = decode(&request.jobs, |job| {
            check_home(api, request.shard, job)?;
            check_numbers(api, job)
        })?;
        let shortest = WriteOptions { wait: Wait::UntilApplied, detail: Detail::Changed };
        if answer_bytes_max(api, &jobs, shortest) > request.answer_bytes_max {
            return Err(Problem::over_limit(
                "the answer might be larger than the NATS server allows a message to be; send fewer jobs at a time",
            ));
        }
        let taken = count(jobs.len());
        let in_progress = InProgress::new(&api.admission);
        let options = WriteOptions { detail, ..shortest };
        let written = write_jobs(api, &in_progress, jobs, options).await?;
        let body = answer(written, request.answer_bytes_max)?;
        // The jobs are applied, so they are answered, however much memory all answers take.
        let _ = in_progress.count_answer(body.len());
        Ok(WriteAnswer { body, jobs: taken, refusal: None, held: Some(Box::new(in_progress)) })
    }
}

/// The answer with entries if it is small enough, and without them otherwise.
fn answer(written: Written, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let answer = reply(&written, Wait::UntilApplied).map(Reply::into_body);
    let bytes = answer.as_ref().map_or_else(|problem| problem.to_json().len(), Vec::len);
    if bytes <= bytes_max {
        return answer;
    }
    let results = written.results.into_iter().map(JobResult::without_entries).collect();
    reply(&Written { results, ..written }, Wait::UntilApplied).map(Reply::into_body)
}

impl WriteHandler for NatsWrites {
    fn write(&self, request: WriteRequest) -> BoxFuture<'_, WriteAnswer> {
        self.write(request).map(|answer| answer.unwrap_or_else(|problem| refused(&problem))).boxed()
    }

    fn overloaded(&self) -> WriteAnswer {
        refused(&Problem::overloaded())
    }
}

fn refused(problem: &Problem) -> WriteAnswer {
    let refusal = Refusal { status: problem.status(), code: problem.code() };
    WriteAnswer { body: problem.to_json(), jobs: 0, refusal: Some(refusal), held: None }
}

fn check_home(api: &Api, shard: ShardId, job: &Job) -> Result<(), Reject> {
    let home = api.node.home_of(&job.member);
    if home == shard {
        return Ok(());
    }
    let detail = format!(
        "the member is of shard {home}, and the request was sent to shard {shard}; the shard is the FNV-1a hash of the member, modulo {}",
        api.node.shard_count()
    );
    Err(Reject::new(RejectCode::WrongShard, detail))
}

//! Writes over NATS: the write service of the shards that this node owns. Requests are answered as
//! `POST /v1/jobs?wait=applied` is.
//!
//! Tokens do not apply: NATS permissions say who may send such requests. The limits on what all requests take
//! together are those of requests over HTTP. Must not know: how requests travel (`cluster`), or what comes of
//! them (`operations`).

use std::future::Future;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};

use crate::cluster::{Refusal, ServedShard, WriteAnswer, WriteHandler, WriteRequest, WriteService};
use crate::http::{
    BODY_BYTES_MAX, Problem, REQUEST_ID_BYTES_MAX, Reply, check_numbers, decode_jobs, identify,
    invalid_value, reply_of_jobs,
};
use crate::job::{Job, JobId, Reject, RejectCode};
use crate::operations::{
    BodyBytes, InProgress, JobResult, Operations, OutcomeDetail, Wait, WriteOptions, Written,
    answer_bytes_max,
};
use crate::queue::ThisNode;
use crate::queue::nats::{Connection, Names};
use crate::types::{ShardId, count};

/// Begins to take requests for the shards that this node owns.
pub fn start(
    (connection, subjects): &(Connection, Names),
    this: ThisNode,
    operations: &Arc<Operations>,
) -> WriteService {
    let shards = operations.node.shards.iter();
    let served = shards.map(|shard| ServedShard { id: shard.id, health: Arc::clone(&shard.health) });
    let handler: Arc<dyn WriteHandler> = Arc::new(NatsWrites(Arc::clone(operations)));
    WriteService::start(connection, subjects, this, served.collect(), &handler)
}

/// Completes when `shutdown` does. From then on no more requests are taken over NATS.
pub async fn stop_first(write_service: Option<Arc<WriteService>>, shutdown: impl Future<Output = ()>) {
    shutdown.await;
    if let Some(write_service) = write_service {
        write_service.begin_stop();
    }
}

/// # Errors
/// When a message's id cannot be that of jobs.
fn request_id(text: &str) -> Result<JobId, Problem> {
    let id = JobId::new(text).filter(|id| id.as_str().len() <= REQUEST_ID_BYTES_MAX);
    id.ok_or_else(|| {
        let rule = format!("the header Nats-Msg-Id must have 1 to {REQUEST_ID_BYTES_MAX} bytes");
        invalid_value(&rule, text)
    })
}

/// Writes requests of the write service.
struct NatsWrites(Arc<Operations>);

impl NatsWrites {
    async fn write(&self, request: WriteRequest) -> Result<WriteAnswer, Problem> {
        let operations = &self.0;
        if request.jobs.len() > BODY_BYTES_MAX {
            return Err(Problem::body_too_large());
        }
        let mut body_bytes = BodyBytes::none(&operations.admission);
        if !body_bytes.take(request.jobs.len()) {
            return Err(Problem::overloaded());
        }
        let message_id = request.message_id.as_deref().map(request_id).transpose()?;
        let detail = match request.results.as_deref() {
            None => OutcomeDetail::Rankings,
            Some("changed") => OutcomeDetail::Changed,
            Some(other) => return Err(invalid_value("the header Ranktree-Results must be changed", other)),
        };
        let mut jobs = decode_jobs(&request.jobs, |job| {
            check_home(operations, request.shard, job)?;
            check_numbers(operations, job)
        })?;
        if let Some(id) = &message_id {
            identify(&mut jobs, id);
        }
        let shortest = WriteOptions { wait: Wait::UntilApplied, detail: OutcomeDetail::Changed };
        if answer_bytes_max(operations.node.shard_count(), &jobs, shortest) > request.answer_bytes_max {
            return Err(Problem::over_limit(
                "the answer might be larger than the NATS server allows a message to be; send fewer jobs at a time",
            ));
        }
        let taken = count(jobs.len());
        let in_progress = InProgress::new(&operations.admission);
        let options = WriteOptions { detail, ..shortest };
        in_progress.count_answer(answer_bytes_max(operations.node.shard_count(), &jobs, options))?;
        let written = operations.write(jobs, options, None).await?;
        let body = answer(written, request.answer_bytes_max)?;
        // The jobs are applied, so they are answered, however much memory all answers take.
        let _ = in_progress.count_answer(body.len());
        Ok(WriteAnswer { body, jobs: taken, refusal: None, held: Some(Box::new(in_progress)) })
    }
}

/// The answer with entries if it is small enough, and without them otherwise.
fn answer(written: Written, bytes_max: usize) -> Result<Vec<u8>, Problem> {
    let answer = reply_of_jobs(&written, Wait::UntilApplied, |_, _| {}).map(Reply::into_body);
    let bytes = answer.as_ref().map_or_else(|problem| problem.to_json().len(), Vec::len);
    if bytes <= bytes_max {
        return answer;
    }
    let results = written.results.into_iter().map(JobResult::without_entries).collect();
    reply_of_jobs(&Written { results, ..written }, Wait::UntilApplied, |_, _| {}).map(Reply::into_body)
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

fn check_home(operations: &Operations, shard: ShardId, job: &Job) -> Result<(), Reject> {
    let home = operations.node.home_of(&job.member);
    if home == shard {
        return Ok(());
    }
    let detail = format!(
        "the member is of shard {home}, and the request was sent to shard {shard}; the shard is the FNV-1a hash of the member, modulo {}",
        operations.node.shard_count()
    );
    Err(Reject::new(RejectCode::WrongShard, detail))
}

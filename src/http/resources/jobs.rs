//! `POST /v1/jobs`: one job or many, any members.

use crate::access::Grant;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::{FORBIDDEN_BOARD, Problem};
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::params::Params;
use crate::http::writes::new_boards::create_for;
use crate::http::writes::options::{Wait, WriteOptions};
use crate::http::writes::results::JobResult;
use crate::http::writes::results_json::{accepted, answer_bytes, write_result};
use crate::http::writes::scatter::write;
use crate::job::{Job, MAX_BOARDS_PER_REQUEST, Reject, Targets};
use crate::types::{AsOf, BoardName};
use crate::wire;

pub async fn post(call: Call) -> Result<Reply, Problem> {
    let options = WriteOptions::read(&call.api, &Params::parse(call.query(), &WriteOptions::PARAMS)?)?;
    // What is not JSON at all is one invalid job.
    let decoded = wire::decode(&call.body).map_err(|reject| invalid(&[(0, reject)]))?;
    let mut jobs = Vec::with_capacity(decoded.len());
    let mut rejects = Vec::new();
    for (index, job) in decoded.into_iter().enumerate() {
        match job {
            Ok(job) => jobs.push(job),
            Err(reject) => rejects.push((index, reject)),
        }
    }
    if !rejects.is_empty() {
        return Err(invalid(&rejects));
    }
    check_count(&jobs)?;
    if let Some(grant) = call.confined_to() {
        check_boards(grant, &jobs).inspect_err(|problem| call.note_refusal(problem))?;
    }
    create_for(&call, &jobs).await?;
    let written = write(&call, jobs, options).await?;
    let members = |object: &mut Object<'_>| members(object, &written.token, &written.results);
    let failed = written.results.iter().find_map(|result| match result {
        JobResult::Failed(why) => Some(why.clone()),
        _ => None,
    });
    match failed {
        None if options.wait == Wait::UntilStored => Ok(accepted(&written.token)),
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

fn members(object: &mut Object<'_>, token: &AsOf, results: &[JobResult]) {
    // Where no shard took a job there is nothing to wait for, and an empty token is not valid.
    if !token.0.is_empty() {
        object.plain("token", token);
    }
    object.array("results", results, |out, result| {
        let mut object = Object::begin(out);
        write_result(&mut object, result);
        object.end();
    });
}

/// Refuses jobs that change too many boards together, because the size of an answer is limited.
fn check_count(jobs: &[Job]) -> Result<(), Problem> {
    let boards = |job: &Job| match &job.targets {
        Targets::Boards(boards) => boards.len(),
        Targets::EveryBoard => 1,
    };
    let boards: usize = jobs.iter().map(boards).sum();
    if boards > MAX_BOARDS_PER_REQUEST {
        return Err(Problem::over_limit(format!(
            "the jobs of a request change at most {MAX_BOARDS_PER_REQUEST} boards, counted for each job: these change {boards}; \
             send them in several requests"
        )));
    }
    Ok(())
}

/// Refuses all jobs if one of them touches a board that the token may not touch.
fn check_boards(grant: &Grant, jobs: &[Job]) -> Result<(), Problem> {
    let mut refused = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        match &job.targets {
            Targets::Boards(boards) => {
                let forbidden = boards.iter().find(|(board, _)| !grant.allows_board(board.as_str()));
                let detail = |(board, _): &(BoardName, _)| {
                    format!("the token does not give access to the board {board}")
                };
                refused.extend(forbidden.map(|forbidden| (index, detail(forbidden))));
            }
            Targets::EveryBoard => {
                let detail =
                    "the job affects all boards of its member, but the token is confined to some boards";
                refused.push((index, detail.to_owned()));
            }
        }
    }
    let Some((_, detail)) = refused.first().cloned() else { return Ok(()) };
    let errors = errors(refused.iter().map(|(index, detail)| (*index, FORBIDDEN_BOARD, detail.as_str())));
    Err(Problem::forbidden_board(detail).with(errors))
}

/// The request as a whole is refused, and nothing is applied.
fn invalid(rejects: &[(usize, Reject)]) -> Problem {
    let refused = rejects.iter().map(|(index, reject)| (*index, reject.code.name(), reject.detail.as_str()));
    let errors = errors(refused);
    let first = rejects.first().map(|(_, reject)| reject.clone());
    first.map_or_else(Problem::internal, Problem::invalid_job).with(errors)
}

/// The member `errors` of a problem: the index, the code and the detail of each wrong job.
fn errors<'a>(wrong: impl Iterator<Item = (usize, &'a str, &'a str)>) -> Vec<u8> {
    let mut errors = b"\"errors\":".to_vec();
    json::array(&mut errors, wrong, |out, (index, code, detail)| {
        let mut object = Object::begin(out);
        object.count("index", u64::try_from(index).unwrap_or(0));
        object.text("code", code);
        object.text("detail", detail);
        object.end();
    });
    errors
}

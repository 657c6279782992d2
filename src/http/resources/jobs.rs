//! `POST /v1/jobs`: one job or many, any members.

use crate::access::{Grant, ProfileAccess};
use crate::http::render::problem::{FORBIDDEN_BOARD, FORBIDDEN_PROFILE, Problem};
use crate::http::render::reply::Reply;
use crate::http::render::results::reply;
use crate::http::request::call::Call;
use crate::http::request::job_list::{check_numbers, decode, errors};
use crate::http::request::params::{Params, WRITES};
use crate::http::resources::entered::{EnteredInstances, WindowsAsked};
use crate::job::{Job, Targets};
use crate::types::BoardName;

pub async fn post(call: Box<Call>) -> Result<Reply, Problem> {
    let params = Params::parse(call.query(), &[&WRITES[..], &["windows"]].concat())?;
    let options = params.write_options(call.api.operations.default_wait())?;
    let windows = WindowsAsked::of(&params, options)?;
    let jobs = decode(&call.body, |job| check_numbers(&call.api.operations, job))?;
    if let Some(grant) = call.confined_to() {
        check_boards(grant, &jobs).inspect_err(|problem| call.note_refusal(problem))?;
    }
    if let Some(windows) = &windows {
        windows.check(&jobs)?;
    }
    let entered = windows.map(|windows| EnteredInstances::of(&call, &jobs, windows));
    let change = call.begin_jobs(&jobs);
    let written = call.write(jobs, options).await;
    if let Some(change) = change {
        change.finish(&written);
    }
    let written = written?;
    let entered = match entered {
        Some(entered) => Box::pin(entered.read(&call, &written)).await,
        None => Vec::new(),
    };
    reply(&written, options.wait, |index, object| {
        if let Some(entered) = entered.get(index) {
            entered.write(object);
        }
    })
}

/// Refuses all jobs if one of them touches a board that the token may not touch, or a profile.
fn check_boards(grant: &Grant, jobs: &[Job]) -> Result<(), Problem> {
    let mut refused = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        match &job.targets {
            Targets::Boards(boards) => {
                let forbidden = boards.iter().find(|(board, _)| !grant.allows_board(board.as_str()));
                let detail = |(board, _): &(BoardName, _)| {
                    format!("the token does not give access to the board {board}")
                };
                refused.extend(forbidden.map(|forbidden| (index, FORBIDDEN_BOARD, detail(forbidden))));
            }
            Targets::Profile(_) if grant.profiles >= ProfileAccess::Write => {}
            Targets::Profile(_) => {
                let detail = "a profile shows on all boards of its member, and the token, which is confined \
                              to some boards, does not let you write profiles (`profiles`)";
                refused.push((index, FORBIDDEN_PROFILE, detail.to_owned()));
            }
            Targets::EveryBoard => {
                let detail =
                    "the job affects all boards of its member, but the token is confined to some boards";
                refused.push((index, FORBIDDEN_BOARD, detail.to_owned()));
            }
        }
    }
    let Some((_, code, detail)) = refused.first().cloned() else { return Ok(()) };
    let errors = errors(refused.iter().map(|(index, code, detail)| (*index, *code, detail.as_str())));
    let problem = if code == FORBIDDEN_PROFILE {
        Problem::forbidden_profile(detail)
    } else {
        Problem::forbidden_board(detail)
    };
    Err(problem.with(errors))
}

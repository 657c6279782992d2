//! The jobs of a request, from JSON: over HTTP, and over NATS alike.

use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::job::{Job, JobId, MAX_BOARDS_PER_REQUEST, MAX_JOB_ID_BYTES, Reject, RejectCode, Targets};
use crate::operations::Operations;
use crate::types::Floats;
use crate::wire::{self, BoardNames};

/// The most bytes of a key of a whole request: the id of each of its jobs has an index behind it.
pub const REQUEST_ID_BYTES_MAX: usize = MAX_JOB_ID_BYTES - "#999".len();

/// Gives the jobs of a request ids that follow from its own, unless they have some.
pub fn identify(jobs: &mut [Job], request: &JobId) {
    let is_only = jobs.len() == 1;
    for (index, job) in jobs.iter_mut().enumerate().filter(|(_, job)| job.id.is_none()) {
        job.id = if is_only { Some(request.clone()) } else { request.of_part(index) };
    }
}

/// Decodes one job or many.
///
/// # Arguments
/// `check`: refuses jobs that the request may not have, whatever the state.
///
/// # Errors
/// When any of them is invalid: then the request as a whole is refused.
pub fn decode(body: &[u8], check: impl Fn(&Job) -> Result<(), Reject>) -> Result<Vec<Job>, Problem> {
    let (mut jobs, mut rejects) = (Vec::new(), Vec::new());
    // A job is large: in the commonest form, each goes straight where it is needed.
    let is_plain = wire::decode_plain(&mut BoardNames::default(), body, |job| match check(&job) {
        Ok(()) => jobs.push(job),
        Err(reject) => rejects.push((jobs.len() + rejects.len(), reject)),
    });
    if !is_plain {
        (jobs, rejects) = (Vec::new(), Vec::new());
        // What is not JSON at all is one invalid job.
        let decoded = wire::decode_strictly(body).map_err(|reject| invalid(&[(0, reject)]))?;
        for (index, job) in decoded.into_iter().enumerate() {
            match job.and_then(|job| check(&job).map(|()| job)) {
                Ok(job) => jobs.push(job),
                Err(reject) => rejects.push((index, reject)),
            }
        }
    }
    if !rejects.is_empty() {
        return Err(invalid(&rejects));
    }
    check_count(&jobs)?;
    Ok(jobs)
}

/// Refuses a job with a number that is no integer for a board that has integers: nobody has to be asked, and
/// no board is made for it. Of a board that may have been defined elsewhere, its shards decide.
///
/// # Errors
/// When a number is none of its key.
pub fn check_numbers(operations: &Operations, job: &Job) -> Result<(), Reject> {
    let Targets::Boards(boards) = &job.targets else { return Ok(()) };
    for (board, score) in boards {
        let Some(score) = score.as_ref().filter(|score| score.floats() != Floats::NONE) else { continue };
        let typed = match operations.registry.get(board.as_str()) {
            Some(known) => known.definition.typed_first_keys(score).map(drop),
            None if operations.has_streams() => Ok(()),
            None => score.numbers().try_for_each(|number| number.integer().map(drop)),
        };
        typed.map_err(|why| {
            let about = if boards.len() > 1 { format!("{board}: ") } else { String::new() };
            Reject::new(RejectCode::BadScore, format!("{about}not a score: {why}"))
        })?;
    }
    Ok(())
}

/// Refuses jobs that change too many boards together, because the size of an answer is limited.
fn check_count(jobs: &[Job]) -> Result<(), Problem> {
    let boards = |job: &Job| match &job.targets {
        Targets::Boards(boards) => boards.len(),
        Targets::EveryBoard | Targets::Profile(_) => 1,
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

/// The request as a whole is refused, and nothing is applied.
fn invalid(rejects: &[(usize, Reject)]) -> Problem {
    let refused = rejects.iter().map(|(index, reject)| (*index, reject.code.name(), reject.detail.as_str()));
    let errors = errors(refused);
    let first = rejects.first().map(|(_, reject)| reject.clone());
    first.map_or_else(Problem::internal, Problem::invalid_job).with(errors)
}

/// The member `errors` of a problem: the index, the code and the detail of each wrong job.
pub fn errors<'a>(wrong: impl Iterator<Item = (usize, &'a str, &'a str)>) -> Vec<u8> {
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

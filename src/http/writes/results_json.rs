//! The results of jobs as JSON, and how large they may be.

use axum::http::StatusCode;

use crate::http::api::Api;
use crate::http::render::fields;
use crate::http::render::json::{self, Object};
use crate::http::render::problem::Problem;
use crate::http::render::repeated::Repeated;
use crate::http::render::reply::Reply;
use crate::http::writes::options::{Detail, Wait, WriteOptions};
use crate::http::writes::results::JobResult;
use crate::job::{Job, MAX_METADATA_BYTES, Targets};
use crate::types::{AsOf, count};

/// The most bytes of a job's result beside what it did on boards: a reject's reason, with a name or two in
/// it.
const RESULT_BYTES_MAX: usize = 512;
/// The most bytes that tell whether a board changed.
const CHANGED_BYTES_MAX: usize = 100;
/// The most bytes that tell of a board's entry, beside metadata and the member's id: names of fields, the
/// board's name twice, two scores of eight keys, a dozen numbers.
const ENTRY_BYTES_MAX: usize = 1_100;
/// And for each shard, its part of `as_of`.
const AS_OF_BYTES_MAX: usize = 24;
/// What most results take that have no entry.
const RESULT_BYTES: usize = 24;
/// What most entries take.
const ENTRY_BYTES: usize = 420;

/// The most bytes that the answer to these jobs can have.
pub fn answer_bytes_max(api: &Api, jobs: &[Job], options: WriteOptions) -> usize {
    let as_of = AS_OF_BYTES_MAX * usize::from(api.node.shard_count());
    let of_job = |job: &Job| {
        let boards = match &job.targets {
            _ if options.wait == Wait::UntilStored => 0,
            Targets::Boards(boards) => boards.len(),
            // Counted, and not listed.
            Targets::EveryBoard | Targets::Profile(_) => 0,
        };
        let each = match options.detail {
            Detail::Changed => CHANGED_BYTES_MAX,
            // An id may be all quotation marks.
            Detail::Entries => ENTRY_BYTES_MAX + MAX_METADATA_BYTES + as_of + 2 * job.member.as_bytes().len(),
        };
        // The answer repeats the first of several boards.
        RESULT_BYTES_MAX + each * (boards + usize::from(boards > 1))
    };
    as_of + jobs.iter().map(of_job).sum::<usize>()
}

/// About how many bytes these results take.
pub fn answer_bytes(results: &[JobResult]) -> usize {
    let of_result = |result: &JobResult| match result {
        JobResult::Applied { changes, .. } => ENTRY_BYTES * (changes.len() + 1),
        JobResult::Changed { by_board, .. } => CHANGED_BYTES_MAX * by_board.as_ref().map_or(0, Vec::len),
        JobResult::Remote(json) => json.get().len(),
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
        JobResult::Stored => object.bool("stored", true),
        JobResult::Remote(json) => object.members(json.get()),
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
        JobResult::Profile { changed } => {
            object.bool("changed", *changed);
            object.null("entry");
            object.null("previous");
        }
        JobResult::Everywhere { boards, changed, profile } => {
            object.bool("changed", *changed > 0 || *profile);
            object.null("entry");
            object.null("previous");
            let mut counts = object.object("counts");
            counts.count("boards", count(*boards));
            counts.count("changed", count(*changed));
            counts.end();
        }
        JobResult::Applied { changes, by_board } => {
            if let Some(first) = changes.first() {
                fields::change(object, first, repeated);
            } else {
                object.bool("changed", false);
                object.null("entry");
                object.null("previous");
            }
            if *by_board {
                fields::changes_by_board(object, changes, repeated);
            }
        }
    }
}

/// The answer to a write that is safe in the queue. A read may wait for it by its token.
pub fn accepted(token: &AsOf) -> Reply {
    Reply::object(|object| object.plain("token", token)).with_status(StatusCode::ACCEPTED)
}

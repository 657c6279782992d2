//! `GET /v1/rejects`: rejected jobs, newest first, from the shards' stores.
//!
//! They are read from disk only, so that requests do not wait for the state in memory. Those of other nodes'
//! shards are on the disks of their owners, who are asked.

use std::sync::Arc;
use std::time::Instant;

use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::params::{Params, member_id};
use crate::http::resources::lists::PAGE_MAX;
use crate::job::RejectCode;
use crate::operations::reject_text;
use crate::query::{RejectFilters, RemoteShards, ShardClient, is_reject_of, page_of_remote_rejects};
use crate::storage::codec::RejectRecord;
use crate::storage::{RejectsBefore, RejectsLimits, StorageError, UnreadableRejects, page_of_rejects};
use crate::types::ShardId;
use crate::wire::names_only;

/// Rejects of a page when the request does not say.
pub const REJECTS: u64 = 100;
/// Rejects that are read for a page beyond those that it holds, because the filters or the token leave them
/// out: a few megabytes.
const READ_BEYOND: usize = 1_000;
/// A page is full when it takes so many bytes: what was sent in place of a job can take 24 KiB as JSON text.
const ANSWER_BYTES: usize = 1 << 20;
/// Where many shards have rejects, each replies so many bytes of them at least.
const REPLY_BYTES: usize = 64 << 10;
/// The longest reject in a page: each byte of its job six, as `\u0000`, and of its reason too.
const REJECT_BYTES_MAX: usize = 32 << 10;

/// A page of rejects.
struct Page {
    /// As a JSON array.
    rejects: Vec<u8>,
    next: Option<RejectsBefore>,
}

pub async fn list(call: Box<Call>) -> Result<Reply, Problem> {
    let params = call.read_params(&["shard", "reason", "member", "limit", "cursor"]).await?;
    let count = call.api.operations.node.shard_count();
    let member = params.given("member").map(member_id).transpose()?;
    let filters = RejectFilters { shard: shard_of(&params, count)?, reason: reason_of(&params)?, member };
    let shards: Vec<ShardId> = filters.shards(count).collect();
    let limit = params.bounded("limit", REJECTS, 1, PAGE_MAX)?;
    let limit = usize::try_from(limit).unwrap_or(READ_BEYOND);
    let before = match params.given("cursor") {
        None => None,
        Some(text) => Some(filters.read_cursor(text, &shards).ok_or_else(Problem::bad_cursor_of_rejects)?),
    };
    if let Some(RejectsBefore(places)) = &before {
        let places: Vec<_> = places.iter().map(|(shard, (sequence, _))| (*shard, *sequence)).collect();
        call.api.operations.check_history(&places)?;
    }
    let started = Instant::now();
    let page = match &call.api.operations.node.remote {
        None => read_own(&call, shards, filters.clone(), before, limit).await?,
        Some(all) => ask_owners(&call, &**all, &filters, before.as_ref(), limit).await?,
    };
    call.record_read(started);
    Ok(Reply::sized(page.rejects.len() + 2_000, |object| {
        object.name("rejects").extend_from_slice(&page.rejects);
        let next = page.next.as_ref().map(|next| filters.cursor(next));
        object.or_null("next_cursor", next.as_deref(), Object::text);
        call.write_missing(object);
    }))
}

/// Appends a reject to a JSON array. Returns the bytes that this takes.
fn append(rejects: &mut Vec<u8>, shard: ShardId, reject: &RejectRecord) -> usize {
    let before = rejects.len();
    if before > 1 {
        rejects.push(b',');
    }
    rejects.extend_from_slice(reject_text(shard, reject).as_bytes());
    rejects.len() - before
}

/// A page of a node that owns every shard.
async fn read_own(
    call: &Call,
    shards: Vec<ShardId>,
    filters: RejectFilters,
    before: Option<RejectsBefore>,
    limit: usize,
) -> Result<Page, Problem> {
    // The most that it may come to, before any of it is read.
    call.reading.in_progress.count_answer(ANSWER_BYTES + REJECT_BYTES_MAX)?;
    let (api, grant) = (Arc::clone(&call.api), call.confined_to().cloned());
    let read = move || {
        let mut stores = Vec::new();
        for shard in shards.iter().filter_map(|shard| api.operations.node.owned(*shard)) {
            stores.push(shard.store.get().map_err(|error| UnreadableRejects { shard: shard.id, error })?);
        }
        let limits =
            RejectsLimits { rejects: limit, read: limit.saturating_add(READ_BEYOND), bytes: ANSWER_BYTES };
        let mut rejects = b"[".to_vec();
        let next = page_of_rejects(&stores, before.as_ref(), limits, |shard, reject| {
            let is_wanted = filters.reason.is_none_or(|reason| reason == reject.code)
                && filters.member.as_ref().is_none_or(|member| is_reject_of(member.as_str(), &reject.job))
                && grant
                    .as_ref()
                    .is_none_or(|grant| names_only(&reject.job, |board| grant.allows_board(board)));
            is_wanted.then(|| append(&mut rejects, shard, reject))
        });
        rejects.push(b']');
        next.map(|next| Page { rejects, next })
    };
    let page = call.api.operations.offload.read_disk(call.reading.in_progress.permit(), read).await?;
    page.map_err(|unread| unreadable(&unread))
}

/// A page of shards that other nodes own, some of them at least.
async fn ask_owners(
    call: &Call,
    all: &dyn ShardClient,
    filters: &RejectFilters,
    before: Option<&RejectsBefore>,
    limit: usize,
) -> Result<Page, Problem> {
    // With many shards, each has a part of the page only.
    let shards = filters.shards(call.api.operations.node.shard_count()).count().max(1);
    let bytes = (2 * ANSWER_BYTES / shards).clamp(REPLY_BYTES, ANSWER_BYTES);
    call.reading
        .in_progress
        .count_answer(ANSWER_BYTES + REJECT_BYTES_MAX + shards * (bytes + REJECT_BYTES_MAX))?;
    let options = call.reading.options();
    let remote = RemoteShards::new(all).with_options(options);
    let limits = RejectsLimits { rejects: limit, read: limit.saturating_add(READ_BEYOND), bytes };
    let prefixes = call.confined_to().and_then(|grant| grant.board_prefixes.as_deref());
    let mut rejects = b"[".to_vec();
    let visit = |shard: ShardId, reject: &RejectRecord| append(&mut rejects, shard, reject);
    let next = page_of_remote_rejects(&remote, filters, prefixes, before, limits, visit).await?;
    call.reading.note_missing(&remote.missing());
    rejects.push(b']');
    Ok(Page { rejects, next })
}

fn shard_of(params: &Params<'_>, shards: u16) -> Result<Option<ShardId>, Problem> {
    let Some(shard) = params.given("shard").map(|_| params.number::<u64>("shard")).transpose()?.flatten()
    else {
        return Ok(None);
    };
    let known = u16::try_from(shard).ok().filter(|shard| *shard < shards);
    let known = known.ok_or_else(|| {
        Problem::bad_parameter(format!(
            "there is no shard {shard}; shards are numbered from 0 to {}",
            shards - 1
        ))
    })?;
    Ok(Some(ShardId(known)))
}

fn reason_of(params: &Params<'_>) -> Result<Option<RejectCode>, Problem> {
    let Some(reason) = params.given("reason") else { return Ok(None) };
    let known = RejectCode::ALL.into_iter().find(|code| code.name() == reason);
    let known = known.ok_or_else(|| {
        let cut: String = reason.chars().take(40).collect();
        let all = RejectCode::ALL.map(RejectCode::name).join(", ");
        Problem::bad_parameter(format!("there is no reason {cut:?}; the reasons are {all}"))
    })?;
    Ok(Some(known))
}

/// The files are damaged, or the writer may be opening the store again, after a commit that failed.
fn unreadable(UnreadableRejects { shard, error }: &UnreadableRejects) -> Problem {
    tracing::warn!(%shard, %error, "rejects cannot be read");
    if let StorageError::Damaged { .. } = error {
        return Problem::shard_damaged(format!(
            "the rejects of shard {shard} cannot be read, because its files are damaged; GET /v1/status \
             says more. Stop the node, run ranktree verify to list all damage, and restore the data \
             directory from a copy. To list the rejects of another shard meanwhile, pass its number as \
             shard="
        ));
    }
    let detail = format!(
        "the rejects of shard {shard} cannot be read now; try again in a moment, or list those of another shard with shard="
    );
    Problem::shard_unavailable(detail)
}

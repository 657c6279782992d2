//! Snapshots: copies of the node's files, which a client fetches piece by piece.
//!
//! The files are copied when a snapshot begins, so that all pieces are of the same moment. A client that lost
//! its connection asks for the piece again.

use std::sync::Arc;

use axum::http::StatusCode;

use crate::http::render::json::Object;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::Call;
use crate::http::request::params::{Params, number};
use crate::snapshot::{IDLE, SnapshotError, Snapshots, TakenSnapshot, append_checksum};
use crate::storage::ShardCopy;

/// The longest piece, and what a request gets that does not say: long enough that requests cost little, and a
/// small part of what all answers may take together.
pub const PIECE_BYTES_MAX: u64 = 4 << 20;
/// About what a shard takes in the answer that lists its files.
const SHARD_BYTES: usize = 4 << 10;

fn snapshots(call: &Call) -> Result<Arc<Snapshots>, Problem> {
    call.api.snapshots.clone().ok_or_else(Problem::no_snapshots)
}

pub async fn begin(call: Box<Call>) -> Result<Reply, Problem> {
    Params::parse(call.query(), &[])?;
    let snapshots = snapshots(&call)?;
    let stores: Vec<_> =
        call.api.operations.node.shards.iter().map(|shard| (shard.id, Arc::clone(&shard.store))).collect();
    // Shards are copied one after the other. A board that is dropped in between would be on some only, and a
    // later shard might have forgotten the drop already.
    let _unchanged = call.api.operations.board_changes.lock().await;
    let change = call.begin_change("a snapshot was begun");
    let copy = move || {
        let taken = snapshots.take(&stores).map_err(|why| failed(&why));
        change.finish(&taken);
        taken
    };
    let taken = call.api.operations.offload.read_disk(call.reading.in_progress.permit(), copy).await??;
    let shard_count = call.api.operations.node.shard_count();
    Ok(Reply::sized(SHARD_BYTES * taken.shards.len(), |object| write(object, shard_count, &taken))
        .with_status(StatusCode::CREATED))
}

fn write(object: &mut Object<'_>, shard_count: u16, taken: &TakenSnapshot) {
    object.text("snapshot", &taken.id);
    object.text("version", env!("CARGO_PKG_VERSION"));
    object.text("taken_at", &taken.taken_at);
    object.count("expires_seconds", IDLE.as_secs());
    // Of all nodes: this one may own fewer.
    object.count("shard_count", u64::from(shard_count));
    object.array("shards", &taken.shards, |out, shard| {
        let ShardCopy { shard, applied, stream, files } = shard;
        let mut object = Object::begin(out);
        object.count("shard", u64::from(shard.0));
        object.count("applied_sequence", applied.0);
        object.text("stream", stream);
        object.array("files", files, |out, (name, bytes)| {
            let mut object = Object::begin(out);
            object.text("name", name);
            object.count("bytes", *bytes);
            object.end();
        });
        object.end();
    });
}

pub async fn file(call: Box<Call>) -> Result<Reply, Problem> {
    let params = Params::parse(call.query(), &["offset", "length"])?;
    let offset = params.number("offset")?.unwrap_or(0);
    let length = params.bounded("length", PIECE_BYTES_MAX, 1, PIECE_BYTES_MAX)?;
    let snapshots = snapshots(&call)?;
    let (snapshot, file) = (call.segment("snapshot").to_owned(), call.segment("file").to_owned());
    let shard = number(call.segment("shard")).ok_or_else(|| failed(&SnapshotError::Unknown))?;
    // The most that it may come to, before any of it is read.
    call.reading.in_progress.count_answer(usize::try_from(length).unwrap_or(usize::MAX))?;
    let read = move || snapshots.read(&snapshot, shard, &file, offset, length);
    let piece = call
        .api
        .operations
        .offload
        .read_disk(call.reading.in_progress.permit(), read)
        .await?
        .map_err(|why| failed(&why))?;
    let checksum = append_checksum(0, &piece);
    Ok(Reply::piece(piece, checksum))
}

pub async fn delete(call: Box<Call>) -> Result<Reply, Problem> {
    Params::parse(call.query(), &[])?;
    let (snapshots, snapshot) = (snapshots(&call)?, call.segment("snapshot").to_owned());
    let release = move || snapshots.release(&snapshot).map(|()| snapshot);
    let released = call.api.operations.offload.read_disk(call.reading.in_progress.permit(), release).await?;
    let snapshot = released.map_err(|why| failed(&why))?;
    Ok(Reply::object(|object| object.text("snapshot", &snapshot)))
}

fn failed(why: &SnapshotError) -> Problem {
    match why {
        SnapshotError::TooMany | SnapshotError::Unknown => {}
        _ => tracing::warn!(error = %why, "a snapshot failed"),
    }
    Problem::snapshot(why)
}

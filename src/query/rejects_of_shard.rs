//! The rejects of one shard of this node, as it replies them to a question.
//!
//! Knows: that they are on the disk. Must not know: who asks, or that other shards have rejects too.

use std::sync::Arc;

use crate::query::question::{RejectsQuestion, RejectsReply};
use crate::query::reject_cursor::is_reject_of;
use crate::storage::{RejectsBefore, RejectsLimits, StorageError, StoreSlot, page_of_rejects};
use crate::types::ShardId;
use crate::wire::names_only;

/// What a reject takes beside its job and its detail.
const OTHER_BYTES: usize = 64;

/// Reads the rejects that are wanted, on a thread that may block.
///
/// # Errors
/// When the disk cannot be read, in words for the client.
pub async fn read_rejects(
    id: ShardId,
    store: Arc<StoreSlot>,
    wanted: &RejectsQuestion<'_>,
) -> Result<RejectsReply, String> {
    let RejectsQuestion { before, reason, member, prefixes, rejects, read, bytes } = wanted;
    let prefixes: Option<Vec<String>> =
        prefixes.as_ref().map(|prefixes| prefixes.iter().map(ToString::to_string).collect());
    let member = member.map(str::to_owned);
    let (before, reason) = (before.map(|place| RejectsBefore(vec![(id, place)])), *reason);
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let limits = RejectsLimits { rejects: size(*rejects), read: size(*read), bytes: size(*bytes) };
    let reading = move || {
        let store = store.get().map_err(|error| unreadable(id, &error))?;
        let mut reply = RejectsReply::default();
        let may_see = |board: &str| {
            prefixes.as_ref().is_none_or(|prefixes| prefixes.iter().any(|prefix| board.starts_with(prefix)))
        };
        let next = page_of_rejects(&[store], before.as_ref(), limits, |_, reject| {
            let is_wanted = reason.is_none_or(|reason| reason == reject.code)
                && member.as_ref().is_none_or(|member| is_reject_of(member, &reject.job))
                && (prefixes.is_none() || names_only(&reject.job, may_see));
            is_wanted.then(|| {
                reply.rejects.push(reject.clone());
                reject.job.len() + reject.detail.len() + OTHER_BYTES
            })
        });
        let next = next.map_err(|unread| unreadable(id, &unread.error))?;
        reply.next = next.and_then(|RejectsBefore(places)| places.first().map(|(_, place)| *place));
        Ok(reply)
    };
    tokio::task::spawn_blocking(reading).await.map_err(|error| error.to_string())?
}

fn unreadable(shard: ShardId, error: &StorageError) -> String {
    tracing::warn!(%shard, %error, "rejects cannot be read");
    match error {
        StorageError::Damaged { .. } => format!(
            "the rejects of shard {shard} cannot be read, because its files are damaged on the node that has \
             them; stop that node, and run ranktree verify to list all damage"
        ),
        _ => format!("the rejects of shard {shard} cannot be read now; try again in a moment"),
    }
}

//! The metadata of an answer's entries, read from disk after the shards were released.
//!
//! The disk may be ahead of the answer. A record that is newer than the answer's `as_of`, or gone, says that
//! the entry has changed since. Then the read is repeated ([`with_metadata`]).

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::query::answer::ListedMetadata;
use crate::query::entries::ConsistentAnswer;
use crate::query::node::Node;
use crate::query::read::{ShardsRead, read_in_memory};
use crate::query::remote_shards::ReadError;
use crate::state::TreeId;
use crate::storage::StorageError;
use crate::storage::codec::MetadataRecord;
use crate::types::{AsOf, Sequence, ShardId};
use crate::writer::Registry;

/// The least time between two log lines about metadata that cannot be read.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// How often a read is repeated because metadata changed while it ran. Each repetition first waits for that
/// change, so a second one is rare. Metadata that still changed at the last attempt is null in the answer,
/// instead of being that of another moment.
const ATTEMPTS: u32 = 16;
/// A batch is on disk shortly before readers see it, mostly a fraction of a millisecond.
const PAUSE: Duration = Duration::from_micros(50);
/// Pauses after which a read stops waiting: the shard may have stopped.
const PAUSES_MAX: u32 = 400;

/// Entries whose metadata is still to be read.
pub fn missing_metadata(answer: &mut impl ConsistentAnswer) -> usize {
    let mut missing = 0;
    answer.each_entry_as_of(&mut |listed, _| {
        missing += usize::from(matches!(listed.metadata, ListedMetadata::OnDisk(..)));
    });
    missing
}

/// Reads shards in memory, all of them, and metadata that belongs to the same moment. Blocks on the disk.
///
/// # Errors
/// When the read gives up.
pub fn with_metadata<R: ShardsRead<Answer: ConsistentAnswer>>(
    node: &Node,
    registry: &Registry,
    read: &R,
) -> Result<R::Answer, ReadError> {
    let ask = || read_in_memory(node, registry, read);
    let mut answer = ask()?;
    for _ in 0..ATTEMPTS {
        let ahead = fill_from_snapshots(node, &mut answer);
        if ahead.is_empty() {
            break;
        }
        wait_for(node, &ahead);
        answer = ask()?;
    }
    Ok(answer)
}

/// Waits until readers see what the disk has.
fn wait_for(node: &Node, ahead: &[(ShardId, Sequence)]) {
    let seen = |(shard, sequence): &(ShardId, Sequence)| {
        node.owned(*shard).is_none_or(|shard| *shard.applied.borrow() >= *sequence)
    };
    for _ in 0..PAUSES_MAX {
        if ahead.iter().all(seen) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Reads the missing metadata from the disk as it is now. False: some of it is newer than the answer, or
/// gone, and is still missing.
pub fn fill_metadata(node: &Node, answer: &mut impl ConsistentAnswer) -> bool {
    let read = |shard: ShardId, tree, member: &str| {
        node.owned(shard).map(|handle| handle.store.metadata(tree, member.as_bytes()))
    };
    fill(answer, read).is_empty()
}

/// As [`fill_metadata`], from snapshots of one moment, however long reading takes. Returns for each shard the
/// sequence at which its disk is known to be ahead.
fn fill_from_snapshots(node: &Node, answer: &mut impl ConsistentAnswer) -> Vec<(ShardId, Sequence)> {
    let stores: Vec<_> = node.shards.iter().map(|shard| shard.store.get()).collect();
    let snapshots: Vec<_> =
        stores.iter().map(|store| store.as_ref().ok().map(|store| store.snapshot())).collect();
    let read = |shard: ShardId, tree, member: &str| {
        snapshots.get(shard.index()).map(|snapshot| match snapshot {
            Some(snapshot) => snapshot.metadata(tree, member.as_bytes()),
            None => Err(StorageError::Closed),
        })
    };
    fill(answer, read)
}

/// Fills in what `read` finds, and returns for each shard the newest sequence that was too new.
fn fill(
    answer: &mut impl ConsistentAnswer,
    read: impl Fn(ShardId, TreeId, &str) -> Option<Result<Option<MetadataRecord>, StorageError>>,
) -> Vec<(ShardId, Sequence)> {
    let mut ahead: Vec<(ShardId, Sequence)> = Vec::new();
    answer.each_entry_as_of(&mut |listed, as_of| {
        if let ListedMetadata::OnDisk(shard, tree) = listed.metadata {
            let Some(record) = read(shard, tree, &listed.member) else { return };
            let told = sequence_of(as_of, shard);
            let newer = match record {
                Ok(Some(record)) if record.sequence <= told.0 => {
                    listed.metadata = ListedMetadata::Json(record.json.into());
                    return;
                }
                Err(error) => {
                    log_unreadable(shard, &error);
                    listed.metadata = ListedMetadata::Unreadable;
                    return;
                }
                Ok(Some(record)) => Sequence(record.sequence),
                Ok(None) => told.next(),
            };
            match ahead.iter_mut().find(|(known, _)| *known == shard) {
                Some((_, known)) => *known = newer.max(*known),
                None => ahead.push((shard, newer)),
            }
        }
    });
    ahead
}

/// Reads metadata that a job did not change. If another job has changed them since, they stay missing: those
/// on disk belong to a later moment.
pub fn fill_unchanged_metadata(node: &Node, change: &mut impl ConsistentAnswer) {
    change.each_entry_as_of(&mut |listed, as_of| {
        if let ListedMetadata::OnDisk(shard, tree) = listed.metadata {
            let Some(handle) = node.owned(shard) else { return };
            listed.metadata = match handle.store.metadata(tree, listed.member.as_bytes()) {
                Ok(Some(record)) if Sequence(record.sequence) < sequence_of(as_of, shard) => {
                    ListedMetadata::Json(record.json.into())
                }
                Ok(_) => ListedMetadata::Unreadable,
                Err(error) => {
                    log_unreadable(shard, &error);
                    ListedMetadata::Unreadable
                }
            };
        }
    });
}

/// Logs that the disk cannot be read, at most every ten seconds.
pub(super) fn log_unreadable(shard: ShardId, error: &StorageError) {
    static LAST_LINE: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST_LINE.lock();
    if last.is_none_or(|at| at.elapsed() >= LINE_INTERVAL) {
        *last = Some(Instant::now());
        tracing::error!(%shard, %error, "metadata cannot be read and is answered as null; ranktree verify tells what is damaged");
    }
}

fn sequence_of(as_of: &AsOf, shard: ShardId) -> Sequence {
    as_of.0.iter().find(|(id, _)| *id == shard).map_or(Sequence::default(), |(_, sequence)| *sequence)
}

//! The metadata of an answer's entries, and their members' profiles, read from disk after the shards were
//! released.
//!
//! The disk may be ahead of the answer. Metadata that are newer than the answer's `as_of`, or gone, say that
//! the entry has changed since; of a profile that is gone, the disk knows when one was removed last. Then the
//! read is repeated ([`with_metadata`]).

use crate::query::answer::{Listed, ListedMetadata, ListedProfile};
use crate::query::answering_shard::{INLINE_DISK_READS, log_unreadable};
use crate::query::entries::ConsistentAnswer;
use crate::query::node::Node;
use crate::query::read::{ShardsRead, read_in_memory, wait_until_shown};
use crate::query::remote_shards::ReadError;
use crate::state::TreeId;
use crate::storage::codec::MetadataRecord;
use crate::storage::{ProfileAt, StorageError};
use crate::types::{AsOf, MemberId, Sequence, ShardId, shard_of};
use crate::writer::Registry;

/// How often a read is repeated because metadata changed while it ran. Each repetition first waits for that
/// change, so a second one is rare. Metadata that still changed at the last attempt is null in the answer,
/// instead of being that of another moment.
const ATTEMPTS: u32 = 16;

/// Entries of which something is still to be read: metadata, or profiles.
pub fn missing_metadata(answer: &mut impl ConsistentAnswer) -> usize {
    let mut missing = 0;
    answer.each_entry_as_of(&mut |listed, _| missing += usize::from(is_on_disk(listed)));
    missing
}

fn is_on_disk(listed: &Listed) -> bool {
    matches!(listed.metadata, ListedMetadata::OnDisk(..))
        || matches!(listed.profile, ListedProfile::OnDisk(_))
}

/// Marks the profiles that no shard has replied with as still to be read, from the members' home shards. On a
/// node that has every shard in memory; other shards reply with profiles.
pub fn ask_for_profiles(node: &Node, answer: &mut impl ConsistentAnswer) {
    let shards = node.shard_count();
    answer.each_entry_as_of(&mut |listed, _| {
        if listed.profile == ListedProfile::NotAsked
            && let Ok(member) = MemberId::new(&*listed.member)
        {
            listed.profile = ListedProfile::OnDisk(shard_of(&member, shards));
        }
    });
}

/// Reads shards in memory, all of them, and metadata that belongs to the same moment. Blocks on the disk.
///
/// # Arguments
/// `profiles`: whether the members' profiles are read as well.
pub fn with_metadata<R: ShardsRead<Answer: ConsistentAnswer>>(
    node: &Node,
    registry: &Registry,
    read: &R,
    profiles: bool,
) -> Result<R::Answer, ReadError> {
    let ask = || {
        let mut answer = read_in_memory(node, registry, read)?;
        if profiles {
            ask_for_profiles(node, &mut answer);
        }
        Ok(answer)
    };
    let mut answer = ask()?;
    for _ in 0..ATTEMPTS {
        let ahead = fill_from_snapshots(node, &mut answer);
        if ahead.is_empty() {
            break;
        }
        // What the disk has.
        wait_until_shown(node, &ahead);
        answer = ask()?;
    }
    Ok(answer)
}

/// Reads the missing metadata and profiles from the disk as it is now, if they are few. False: they are more,
/// or some are newer than the answer, or gone, and are still missing.
pub fn fill_few(node: &Node, answer: &mut impl ConsistentAnswer) -> bool {
    let missing = missing_metadata(answer);
    if missing == 0 || missing > INLINE_DISK_READS {
        return missing == 0;
    }
    let metadata = |shard: ShardId, tree, member: &str| {
        node.owned(shard).map(|handle| handle.store.metadata(tree, member.as_bytes()))
    };
    let profile = |shard: ShardId, member: &str, at| {
        node.owned(shard).map(|handle| handle.store.get()?.profile_at(member.as_bytes(), at))
    };
    fill(answer, metadata, profile).is_empty()
}

/// As [`fill_few`], from snapshots of one moment, however long reading takes. Returns for each shard the
/// sequence at which its disk is known to be ahead.
fn fill_from_snapshots(node: &Node, answer: &mut impl ConsistentAnswer) -> Vec<(ShardId, Sequence)> {
    let stores: Vec<_> = node.shards.iter().map(|shard| shard.store.get()).collect();
    let snapshots: Vec<_> =
        stores.iter().map(|store| store.as_ref().ok().map(|store| store.snapshot())).collect();
    let metadata = |shard: ShardId, tree, member: &str| {
        snapshots.get(shard.index()).map(|snapshot| match snapshot {
            Some(snapshot) => snapshot.metadata(tree, member.as_bytes()),
            None => Err(StorageError::Closed),
        })
    };
    let profile = |shard: ShardId, member: &str, at| {
        snapshots.get(shard.index()).map(|snapshot| match snapshot {
            Some(snapshot) => snapshot.profile_at(member.as_bytes(), at),
            None => Err(StorageError::Closed),
        })
    };
    fill(answer, metadata, profile)
}

/// Fills in what `metadata` and `profile` find, and returns for each shard the newest sequence that was too
/// new.
fn fill(
    answer: &mut impl ConsistentAnswer,
    metadata: impl Fn(ShardId, TreeId, &str) -> Option<Result<Option<MetadataRecord>, StorageError>>,
    profile: impl Fn(ShardId, &str, Sequence) -> Option<Result<ProfileAt, StorageError>>,
) -> Vec<(ShardId, Sequence)> {
    let mut ahead: Vec<(ShardId, Sequence)> = Vec::new();
    let mut note_ahead =
        |shard: ShardId, newer: Sequence| match ahead.iter_mut().find(|(known, _)| *known == shard) {
            Some((_, known)) => *known = newer.max(*known),
            None => ahead.push((shard, newer)),
        };
    // Of a member on many boards, it is read once.
    let mut last: Option<(Box<str>, ListedProfile)> = None;
    answer.each_entry_as_of(&mut |listed, as_of| {
        if let ListedMetadata::OnDisk(shard, tree) = listed.metadata
            && let Some(record) = metadata(shard, tree, &listed.member)
        {
            let told = sequence_of(as_of, shard);
            match record {
                Ok(Some(record)) if record.sequence <= told.0 => {
                    listed.metadata = ListedMetadata::Json(record.json.into());
                }
                Err(error) => {
                    log_unreadable(shard, &error);
                    listed.metadata = ListedMetadata::Unreadable;
                }
                Ok(Some(record)) => note_ahead(shard, Sequence(record.sequence)),
                Ok(None) => note_ahead(shard, told.next()),
            }
        }
        let ListedProfile::OnDisk(shard) = listed.profile else { return };
        if let Some((_, known)) = last.as_ref().filter(|(member, _)| *member == listed.member) {
            listed.profile = known.clone();
            return;
        }
        listed.profile = match profile(shard, &listed.member, sequence_of(as_of, shard)) {
            None => return,
            Some(Ok(Ok(Some(json)))) => ListedProfile::Json(json.into()),
            Some(Ok(Ok(None))) => ListedProfile::None,
            Some(Ok(Err(newer))) => return note_ahead(shard, newer),
            Some(Err(error)) => {
                log_unreadable(shard, &error);
                ListedProfile::Unreadable
            }
        };
        last = Some((listed.member.clone(), listed.profile.clone()));
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

fn sequence_of(as_of: &AsOf, shard: ShardId) -> Sequence {
    as_of.0.iter().find(|(id, _)| *id == shard).map_or(Sequence::default(), |(_, sequence)| *sequence)
}

//! The entries after a trim point, removed in a series of messages.
//!
//! Each message names some members, and removes those that are still after the trim point when it is applied.
//! So no message is large. What an interrupted trim has removed stays removed.

use std::collections::VecDeque;

use crate::http::api::Api;
use crate::http::render::problem::Problem;
use crate::http::writes::boards::Removed;
use crate::http::writes::publish::{COMMAND_BYTES, Publishing, publish_all};
use crate::query::{ShardHandle, TrimScan};
use crate::queue::Publishers;
use crate::state::{Incarnation, TrimPoint};
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, MemberId, Sequence, ShardId};
use crate::writer::{MessageOutcome, Payload};

/// Members that a message names: as many edits as a reader may have to wait for. Their ids take 64 KiB at
/// most.
const MEMBERS_PER_MESSAGE: usize = 256;
/// Messages of a shard that are sent at a time: enough to share the cost of a commit.
const MESSAGES_AT_ONCE: usize = 8;

/// Removes the entries after a trim point, for as long as the client waits. The same request removes what is
/// left then.
///
/// # Arguments
/// `as_of`: where the trim point was found.
///
/// # Errors
/// When a shard does not take a message, or does not answer in time.
pub async fn trim_board(
    api: &Api,
    name: &BoardName,
    incarnation: Incarnation,
    point: TrimPoint,
    as_of: &AsOf,
) -> Result<Removed, Problem> {
    let of_shard = |(shard, (_, as_of)): (_, &(ShardId, Sequence))| ShardTrim {
        shard,
        scan: TrimScan::new(name.clone(), incarnation, point.clone()),
        found: VecDeque::new(),
        sequence: *as_of,
    };
    let mut shards: Vec<ShardTrim<'_>> = api.node.shards.iter().zip(&as_of.0).map(of_shard).collect();
    let trim = Trim { name: name.clone(), incarnation, point: point.clone() };
    let mut entries = 0;
    while let Some(removed) = trim.next_messages(&api.publishers, &mut shards).await? {
        entries += removed;
    }
    let token = AsOf(shards.iter().map(|part| (part.shard.id, part.sequence)).collect());
    Ok(Removed { entries, token })
}

/// What all messages of a trim have in common.
struct Trim {
    name: BoardName,
    incarnation: Incarnation,
    point: TrimPoint,
}

/// The progress of a trim on one shard.
struct ShardTrim<'a> {
    shard: &'a ShardHandle,
    scan: TrimScan,
    /// Members whose entries were found, and that no message has named yet.
    found: VecDeque<MemberId>,
    /// The sequence of the last message; before the first, the one at which the trim point was found.
    sequence: Sequence,
}

impl ShardTrim<'_> {
    /// Finds the members that the next messages name.
    async fn find_members(&mut self) {
        while self.found.len() < MEMBERS_PER_MESSAGE * MESSAGES_AT_ONCE && !self.scan.is_finished() {
            self.found.extend(self.scan.next_slice(&self.shard.state.read(Purpose::Read)));
            // Finding few hidden entries among many others may take long.
            tokio::task::yield_now().await;
        }
    }
}

impl Trim {
    /// Publishes the next messages of every shard, and waits until they are applied. Returns how many entries
    /// they removed; `None` if nothing is left to remove.
    async fn next_messages(
        &self,
        publishers: &Publishers,
        shards: &mut [ShardTrim<'_>],
    ) -> Result<Option<u64>, Problem> {
        let mut publishings: Vec<(ShardId, Publishing<'_, MessageOutcome>)> = Vec::new();
        for part in shards.iter_mut() {
            part.find_members().await;
            for _ in 0..MESSAGES_AT_ONCE {
                let members: Vec<MemberId> =
                    part.found.drain(..part.found.len().min(MEMBERS_PER_MESSAGE)).collect();
                if members.is_empty() {
                    break;
                }
                let bytes =
                    members.iter().map(|member| member.as_bytes().len()).sum::<usize>() + COMMAND_BYTES;
                let (board, incarnation, point) = (self.name.clone(), self.incarnation, self.point.clone());
                let payload = Payload::Trim { board, incarnation, point, members };
                let shard = part.shard.id;
                let publishing = publishers.of(shard).apply_command(payload, bytes);
                publishings.push((shard, Box::pin(publishing)));
            }
        }
        if publishings.is_empty() {
            return Ok(None);
        }
        let ids: Vec<ShardId> = publishings.iter().map(|(id, _)| *id).collect();
        let mut removed = 0;
        for (id, outcome) in ids.iter().zip(publish_all(publishings).await?) {
            let outcome = outcome?;
            removed += outcome.removed;
            if let Some(part) = shards.iter_mut().find(|part| part.shard.id == *id) {
                part.sequence = part.sequence.max(outcome.sequence);
            }
        }
        Ok(Some(removed))
    }
}

//! A trim of one shard: the entries on one side of a trim point, removed in a series of messages.
//!
//! Knows: that an owner finds the entries in its memory, and hears what its messages have removed. Must not
//! know: who asks for the trim, or how the trim point was found.
//!
//! Each message names some members, and removes those that are still on that side when it is applied.
//! So no message is large, and what an interrupted trim has removed stays removed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::query::{ShardHandle, TrimScan};
use crate::queue::NotPublished;
use crate::queue::publisher::Publisher;
use crate::state::{Incarnation, TrimPoint};
use crate::state_lock::{Purpose, StateLock};
use crate::types::{BoardName, MemberId, Sequence, ShardId};
use crate::writer::{Health, Payload};

/// Members that a message names: as many edits as a reader may have to wait for. Their ids take 97 KiB at
/// most, if each is of 256 bytes that JSON escapes.
const MEMBERS_PER_MESSAGE: usize = 192;
/// Messages of a shard that are sent at a time: enough to share the cost of a commit.
const MESSAGES_AT_ONCE: usize = 8;
/// The size of a message beside its members' ids.
const MESSAGE_BYTES: usize = 512;
const UNANSWERED: &str = "the write was not committed in time, but may be committed later";

/// What is to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimOrder {
    pub board: BoardName,
    pub incarnation: Incarnation,
    pub point: TrimPoint,
}

/// How far a trim has come on a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    pub removed: u64,
    /// The sequence of the last message; 0 if there was none.
    pub sequence: Sequence,
    /// Whether nothing is left to remove.
    pub is_finished: bool,
}

/// How long a trim may take on a shard.
#[derive(Debug, Clone, Copy)]
pub struct TrimTerms {
    /// After so long no more messages are sent; `None`: all entries are removed. Some are removed in any
    /// case, unless there are none, so that whoever asks again comes to an end.
    at_most: Option<Duration>,
    /// How long messages may take to be applied, which is mostly milliseconds.
    apply_timeout: Duration,
}

impl TrimTerms {
    /// For the client of this node, who waits.
    pub const WHOLE: Self = Self { at_most: None, apply_timeout: Duration::from_secs(30) };
    /// For another node, which asks again. An owner that has failed is noticed soon.
    pub const STEP: Self =
        Self { at_most: Some(Duration::from_millis(500)), apply_timeout: Duration::from_secs(10) };
}

/// A shard of this node, with what publishes to it.
#[derive(Clone)]
pub struct TrimmingShard {
    pub id: ShardId,
    state: Arc<StateLock>,
    pub(super) health: Arc<Health>,
    publisher: Publisher,
}

impl TrimmingShard {
    pub fn new(shard: &ShardHandle, publisher: Publisher) -> Self {
        let (state, health) = (Arc::clone(&shard.state), Arc::clone(&shard.health));
        Self { id: shard.id, state, health, publisher }
    }

    /// Removes entries.
    ///
    /// # Errors
    /// When the shard does not take a message before anything was removed, or it is unknown what one did.
    pub async fn trim(&self, order: &TrimOrder, terms: TrimTerms) -> Result<Trimmed, NotPublished> {
        let began = Instant::now();
        let scan = TrimScan::new(order.board.clone(), order.incarnation, order.point.clone());
        let mut walk = Walk { scan, found: VecDeque::new() };
        let mut trimmed = Trimmed::default();
        loop {
            let messages = walk.next_messages(&self.state).await;
            if messages.is_empty() {
                return Ok(Trimmed { is_finished: true, ..trimmed });
            }
            let sending = messages.into_iter().map(|members| self.remove(order, members));
            let outcomes = tokio::time::timeout(terms.apply_timeout, join_all(sending)).await;
            let outcomes = outcomes.map_err(|_| NotPublished::Unknown(UNANSWERED.to_owned()))?;
            let mut refused = None;
            for outcome in outcomes {
                match outcome {
                    Ok((removed, sequence)) => {
                        trimmed.removed += removed;
                        trimmed.sequence = trimmed.sequence.max(sequence);
                    }
                    Err(why @ (NotPublished::Unknown(_) | NotPublished::CommitFailed(_))) => return Err(why),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if trimmed.sequence == Sequence::default() => return Err(why),
                // The next request hears why. This one tells what was removed.
                Some(_) => return Ok(trimmed),
                None if terms.at_most.is_some_and(|most| began.elapsed() >= most) => return Ok(trimmed),
                None => {}
            }
        }
    }

    async fn remove(
        &self,
        order: &TrimOrder,
        members: Vec<MemberId>,
    ) -> Result<(u64, Sequence), NotPublished> {
        let bytes = members.iter().map(|member| member.as_bytes().len()).sum::<usize>() + MESSAGE_BYTES;
        let TrimOrder { board, incarnation, point } = order.clone();
        let payload = Payload::Trim { board, incarnation, point, members };
        let outcome = self.publisher.apply_command(payload, bytes).await?;
        Ok((outcome.entries, outcome.sequence))
    }
}

/// A walk over the entries to be removed.
struct Walk {
    scan: TrimScan,
    /// Members whose entries were found, and that no message has named yet.
    found: VecDeque<MemberId>,
}

impl Walk {
    /// The members that each of the next messages names.
    async fn next_messages(&mut self, state: &StateLock) -> Vec<Vec<MemberId>> {
        while self.found.len() < MEMBERS_PER_MESSAGE * MESSAGES_AT_ONCE && !self.scan.is_finished() {
            self.found.extend(self.scan.next_slice(&state.read(Purpose::Read)));
            // Finding few hidden entries among many others may take long.
            tokio::task::yield_now().await;
        }
        let mut messages = Vec::with_capacity(MESSAGES_AT_ONCE);
        while messages.len() < MESSAGES_AT_ONCE && !self.found.is_empty() {
            messages.push(self.found.drain(..self.found.len().min(MEMBERS_PER_MESSAGE)).collect());
        }
        messages
    }
}

//! Trims of shards of other nodes: this node asks an owner, and answers the other nodes.
//!
//! An owner is asked after the other, and never two at the same time: each would tell a part of what was
//! removed. An owner that was asked and does not answer may have removed entries. Then the count is lost,
//! and the client is told so. So where there are several owners, all are first asked a question that costs
//! nothing, and the first one to answer it gets the trim.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::cluster::first_there::first_there;
use crate::cluster::questions::client::AskingShards;
use crate::cluster::questions::parts::Arrived;
use crate::cluster::questions::refusal::{Reason, Refusal};
use crate::cluster::questions::wire::{self, AskedQuestion, AskedTrim};
use crate::cluster::trim::{TrimOrder, TrimTerms, Trimmed, TrimmingShard};
use crate::query::question::Question;
use crate::queue::NotPublished;
use crate::types::{NodeName, Sequence, ShardId};

/// How long an owner may take for a step: longer than the step and what may hold its messages up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);
/// How long it is tried to find an owner that has applied what the trim point was found at.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an owner waits for that before it says that it has not.
const WAIT_AT_ONCE: Duration = Duration::from_millis(500);
/// Trims of other nodes that a node works on at the same time. Each fills batches of its shard, so more of
/// them would only take turns.
const TRIMS_AT_ONCE: usize = 8;

/// The shards of this node that other nodes may have trimmed.
pub struct Trimming {
    shards: Vec<TrimmingShard>,
    at_once: Semaphore,
}

impl Trimming {
    pub fn new(shards: Vec<TrimmingShard>) -> Arc<Self> {
        Arc::new(Self { shards, at_once: Semaphore::new(TRIMS_AT_ONCE) })
    }

    /// Removes some entries of a shard, which has applied what the trim needs.
    ///
    /// # Errors
    /// When nothing was removed, or it is unknown what was.
    pub(super) async fn step(&self, shard: ShardId, order: &TrimOrder) -> Result<Trimmed, Refusal> {
        let Some(shard) = self.shards.iter().find(|own| own.id == shard) else {
            return Err(Refusal::new(Reason::NoWrites, "this node does not trim the shard"));
        };
        let Ok(_turn) = self.at_once.try_acquire() else {
            return Err(Refusal::new(Reason::Overloaded, "the node has too many trims in work"));
        };
        if !shard.health.is_live() {
            return Err(Refusal::new(Reason::NoWrites, "the shard is not live there"));
        }
        shard.trim(order, TrimTerms::STEP).await.map_err(|why| match why {
            NotPublished::Unknown(words) => Refusal::new(Reason::Unknown, words),
            NotPublished::Overloaded => Refusal::new(Reason::Overloaded, why),
            NotPublished::Unavailable(words) | NotPublished::Full(words) | NotPublished::TooLarge(words) => {
                Refusal::new(Reason::NoWrites, words)
            }
            NotPublished::CommitFailed(why) => Refusal::new(Reason::Unknown, why),
        })
    }
}

impl AskingShards {
    /// Has an owner remove some entries of a shard of other nodes.
    ///
    /// # Arguments
    /// `least`: the sequence that the owner must have applied.
    ///
    /// # Errors
    /// When no owner does it, or it is unknown what one did.
    pub async fn trim(
        &self,
        shard: ShardId,
        order: &TrimOrder,
        least: Sequence,
    ) -> Result<Trimmed, NotPublished> {
        let wait_ms = u32::try_from(WAIT_AT_ONCE.as_millis()).unwrap_or(u32::MAX);
        let bytes = wire::encode_trim(&AskedTrim { order: order.clone(), least, wait_ms });
        let bytes = bytes.map_err(|why| NotPublished::TooLarge(why.to_string()))?;
        let until = Instant::now() + SEARCH_TIMEOUT;
        let choices = self.owners.choices(shard).into_iter().filter(|choice| !choice.may_be_behind);
        let mut owners: Vec<NodeName> = choices.filter_map(|choice| choice.node).collect();
        if owners.is_empty() {
            // An owner may have come that is not known yet.
            let trimmed = self.trim_at(shard, None, &bytes).await?;
            return trimmed.map_err(|refusal| NotPublished::Unavailable(refusal.to_string()));
        }
        let mut last = "none of its owners answers".to_owned();
        while let Some(node) = first_there(&owners, |node| self.is_there(shard, node)).await {
            let refusal = match self.trim_at(shard, Some(&node), &bytes).await? {
                Ok(trimmed) => return Ok(trimmed),
                Err(refusal) => refusal,
            };
            last = refusal.to_string();
            match refusal.reason {
                Reason::Unknown => return Err(NotPublished::Unknown(refusal.words)),
                Reason::NotYetApplied if Instant::now() < until => continue,
                Reason::Ending => self.owners.note_absent(&node, shard),
                _ => {}
            }
            owners.retain(|owner| *owner != node);
        }
        Err(NotPublished::Unavailable(format!("no owner of shard {shard} trims it: {last}")))
    }

    /// Whether an owner of the shard answers an empty question.
    async fn is_there(&self, shard: ShardId, node: &NodeName) -> bool {
        let question = Question::Counts(Vec::new());
        let probe =
            AskedQuestion { question, least: Sequence(0), wait_ms: 0, may_be_behind: true, profiles: false };
        let Ok(bytes) = wire::encode_question(&probe) else { return false };
        match self.mailbox.send(self.subjects.of_node(shard, node), bytes, None).await {
            Ok(mut in_flight) => !matches!(in_flight.arrived().await, Arrived::NobodyThere),
            Err(_) => false,
        }
    }

    /// # Arguments
    /// `node`: `None`: whoever of the queue group gets it.
    async fn trim_at(
        &self,
        shard: ShardId,
        node: Option<&NodeName>,
        bytes: &[u8],
    ) -> Result<Result<Trimmed, Refusal>, NotPublished> {
        let subject = match node {
            Some(node) => self.subjects.of_node(shard, node),
            None => self.subjects.any(shard),
        };
        let sent = self.mailbox.send(subject, bytes.to_vec(), None).await;
        let mut in_flight = sent.map_err(NotPublished::Unavailable)?;
        let Ok(arrived) = tokio::time::timeout(ANSWER_TIMEOUT, in_flight.arrived()).await else {
            if let Some(node) = node {
                self.owners.note_silent(node);
            }
            let words = "the owner of a shard was asked to trim it and did not answer in time";
            return Err(NotPublished::Unknown(words.to_owned()));
        };
        let strange = || NotPublished::Unknown("another node's answer to a trim cannot be read".to_owned());
        match arrived {
            Arrived::Reply(bytes) => wire::decode_trimmed(&bytes).map(Ok).map_err(|_| strange()),
            Arrived::Refused(refusal) => Ok(Err(refusal)),
            Arrived::NobodyThere => {
                if let Some(node) = node {
                    self.owners.note_absent(node, shard);
                }
                Ok(Err(Refusal::new(Reason::NoWrites, "no node that is up owns it")))
            }
            Arrived::Garbage => Err(strange()),
        }
    }
}

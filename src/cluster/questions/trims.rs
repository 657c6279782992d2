//! Trims of shards of other nodes: this node asks an owner, and answers the other nodes.
//!
//! An owner is asked after the other, and never two at the same time: each would tell a part of what was
//! removed. An owner that was asked and does not answer may have removed entries. Then the count is lost, and
//! the client is told so. So an owner is first asked a question that costs nothing, if there is another one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::cluster::questions::client::AskingShards;
use crate::cluster::questions::owners::Choice;
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
/// How long an owner may take to say that it is there, before the next one is asked.
const PROBE_TIMEOUT: Duration = Duration::from_millis(250);
/// Trims of other nodes that a node works on at the same time. Each fills batches of its shard, so more of them
/// would only take turns.
const TRIMS_AT_ONCE: usize = 8;

/// The shards of this node that other nodes may have trimmed.
pub struct Trimming {
    shards: Vec<TrimmingShard>,
    at_once: Semaphore,
}

impl Trimming {
    #[must_use]
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
            NotPublished::Unavailable(words) | NotPublished::Full(words) => {
                Refusal::new(Reason::NoWrites, words)
            }
            NotPublished::TooLarge(words) => Refusal::new(Reason::NoWrites, words),
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
        let mut choices: VecDeque<Choice> = choices.collect();
        let mut last = "no node that owns the shard is known".to_owned();
        let is_probed = choices.iter().filter(|choice| choice.node.is_some()).count() > 1;
        while let Some(choice) = choices.pop_front() {
            if let (true, Some(node)) = (is_probed, &choice.node)
                && !self.is_there(shard, node).await
            {
                "an owner did not answer in time".clone_into(&mut last);
                continue;
            }
            let refusal = match self.trim_at(shard, &choice, &bytes).await? {
                Ok(trimmed) => return Ok(trimmed),
                Err(refusal) => refusal,
            };
            last = refusal.to_string();
            let absent = || choice.node.iter().for_each(|node| self.owners.note_absent(node, shard));
            match refusal.reason {
                Reason::Unknown => return Err(NotPublished::Unknown(refusal.words)),
                Reason::NotYetApplied if Instant::now() < until => choices.push_back(choice),
                Reason::Ending => absent(),
                // An owner of an earlier version does not know trims, and answers questions all the same.
                _ => {}
            }
        }
        Err(NotPublished::Unavailable(format!("no owner of shard {shard} trims it: {last}")))
    }

    /// Whether an owner answers at once.
    async fn is_there(&self, shard: ShardId, node: &NodeName) -> bool {
        let question = Question::Counts(Vec::new());
        let probe = AskedQuestion { question, least: Sequence(0), wait_ms: 0, may_be_behind: true };
        let Ok(bytes) = wire::encode_question(&probe) else { return false };
        let Ok(mut in_flight) = self.mailbox.send(self.subjects.of_node(shard, node), bytes).await else {
            return false;
        };
        let arrived = tokio::time::timeout(PROBE_TIMEOUT, in_flight.arrived()).await;
        if arrived.is_err() {
            self.owners.note_silent(node);
        }
        arrived.is_ok_and(|arrived| !matches!(arrived, Arrived::NobodyThere))
    }

    async fn trim_at(
        &self,
        shard: ShardId,
        choice: &Choice,
        bytes: &[u8],
    ) -> Result<Result<Trimmed, Refusal>, NotPublished> {
        let subject = match &choice.node {
            Some(node) => self.subjects.of_node(shard, node),
            None => self.subjects.any(shard),
        };
        let sent = self.mailbox.send(subject, bytes.to_vec()).await;
        let mut in_flight = sent.map_err(NotPublished::Unavailable)?;
        let Ok(arrived) = tokio::time::timeout(ANSWER_TIMEOUT, in_flight.arrived()).await else {
            choice.node.iter().for_each(|node| self.owners.note_silent(node));
            let words = "the owner of a shard was asked to trim it and did not answer in time";
            return Err(NotPublished::Unknown(words.to_owned()));
        };
        let strange = || NotPublished::Unknown("another node's answer to a trim cannot be read".to_owned());
        match arrived {
            Arrived::Reply(bytes) => wire::decode_trimmed(&bytes).map(Ok).map_err(|_| strange()),
            Arrived::Refused(refusal) => Ok(Err(refusal)),
            Arrived::NobodyThere => {
                choice.node.iter().for_each(|node| self.owners.note_absent(node, shard));
                Ok(Err(Refusal::new(Reason::NoWrites, "no node that is up owns it")))
            }
            Arrived::Garbage => Err(strange()),
        }
    }
}

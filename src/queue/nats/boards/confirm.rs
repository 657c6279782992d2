//! What a node knows of the boards on shards that it does not own: what their owners confirm.
//!
//! A node that owns every shard looks into its shards' memory. Any other node stores an inquiry in the
//! boards' stream. An owner that reads it, and whose shard has been compared with this very stream, stores a
//! confirmation: every decision that was stored before the inquiry is in force on the shard, and so in the
//! shard's stream. There is one inquiry in the stream, and one confirmation for each shard, the last ones.
//!
//! Nothing is decided here before every other shard was confirmed since this node began to follow the stream:
//! the stream may have lost boards that only those shards hold. Both kinds of messages are in the stream that
//! they are about, so they are lost with it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::queue::nats::boards::boards_stream::{BoardRefused, BoardsStream, Confirmations};
use crate::queue::nats::boards::deliver::has_arrived;
use crate::queue::nats::names::BoardsMessage;
use crate::queue::nats::shard::NatsShard;
use crate::state::RecordNumber;
use crate::state_lock::Purpose;
use crate::types::ShardId;

/// How long confirmations may take before the log says which are missing.
const LOG_AFTER: Duration = Duration::from_secs(10);
/// Between two inquiries that are not for a start.
const INQUIRY_INTERVAL: Duration = Duration::from_secs(10);
/// Pending boards that are looked at under one hold of the lock.
const LOOKED_AT_ONCE: usize = 128;

/// An inquiry as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct InquiryJson {
    /// The process that asks.
    inquiry: String,
}

/// A confirmation as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct ConfirmationJson {
    /// The sequence of the inquiry.
    confirmed: u64,
    /// The highest number of a record that the shard has seen.
    number: u64,
}

impl BoardsStream {
    /// The stream is read again from the beginning. It may be another one.
    pub(super) fn forget_confirmations(&self) {
        self.confirmations.send_modify(|known| *known = Confirmations::default());
    }

    /// Notes a message that is no record.
    pub(super) fn note_message(&self, kind: BoardsMessage, sequence: u64, body: &[u8]) {
        match kind {
            BoardsMessage::Fence => {}
            BoardsMessage::Inquiry => {
                // A stranger can have an acknowledgement stored here.
                if serde_json::from_slice::<InquiryJson>(body).is_err() {
                    return;
                }
                self.confirmations.send_modify(|known| known.inquired = known.inquired.max(sequence));
                self.inquired.notify_one();
            }
            BoardsMessage::Confirmation(shard) => {
                let Ok(ConfirmationJson { confirmed, number }) = serde_json::from_slice(body) else { return };
                // The next record of this node gets a higher number.
                self.registry.observe_number(RecordNumber(number));
                self.confirmations.send_modify(|known| {
                    let of_shard = known.confirmed.entry(shard).or_default();
                    *of_shard = confirmed.max(*of_shard);
                });
            }
        }
    }

    /// Asks the owners of other shards, and waits until all have confirmed.
    ///
    /// # Errors
    /// When the servers do not answer.
    pub(super) async fn wait_for_confirmations(&self) -> Result<(), String> {
        if self.others.is_empty() {
            return Ok(());
        }
        let asked = self.inquire().await.map_err(|error| error.to_string())?;
        let mut known = self.confirmations.subscribe();
        let all = known.wait_for(|known| self.others.iter().all(|other| known.of(other.id) >= asked));
        if tokio::time::timeout(LOG_AFTER, all).await.is_ok() {
            return Ok(());
        }
        tracing::warn!(
            shards = ?self.unconfirmed(asked),
            "no owner of these shards has confirmed yet which boards they hold; until then boards cannot be \
             defined, cleared or dropped through this node, and jobs do not create them"
        );
        // The sender lives as long as `self`.
        let _ = known.wait_for(|known| self.others.iter().all(|other| known.of(other.id) >= asked)).await;
        Ok(())
    }

    /// Other shards that have not confirmed this node's last inquiry.
    pub(super) fn missing_confirmations(&self) -> Vec<u16> {
        let asked = self.confirmations.borrow().own;
        self.unconfirmed(asked)
    }

    fn unconfirmed(&self, asked: u64) -> Vec<u16> {
        let known = self.confirmations.borrow();
        let lacks = |shard: &ShardId| known.of(*shard) < asked.max(1);
        self.others.iter().map(|other| other.id).filter(lacks).map(|shard| shard.0).collect()
    }

    async fn inquire(&self) -> Result<u64, BoardRefused> {
        let asks = InquiryJson { inquiry: self.process.clone() };
        let stored = self.store_message(BoardsMessage::Inquiry, &asks).await?;
        self.confirmations.send_modify(|known| {
            known.own = known.own.max(stored);
            known.own_at = Some(Instant::now());
        });
        Ok(stored)
    }

    /// Asks again, if owners could confirm more than they have, and were not asked a moment ago.
    ///
    /// # Arguments
    /// `sequence`: of the decision that should be in force on every shard.
    pub(super) async fn inquire_after(&self, sequence: u64) -> Result<(), BoardRefused> {
        let is_due = {
            let known = self.confirmations.borrow();
            let lacks = self.others.iter().any(|other| known.of(other.id) < sequence);
            let lately = known.own_at.is_some_and(|at| at.elapsed() < INQUIRY_INTERVAL);
            lacks && !lately
        };
        if is_due { self.inquire().await.map(drop) } else { Ok(()) }
    }

    /// Confirms the last inquiry for each of this node's shards, as far as that is right.
    pub(super) async fn confirm(&self) -> Result<(), BoardRefused> {
        let asked = self.confirmations.borrow().inquired;
        for shard in &self.shards {
            let is_due = self.confirmations.borrow().of(shard.id) < asked;
            if !is_due || !*self.compared.borrow() || !self.has_all_decisions(shard, asked).await {
                continue;
            }
            let number = {
                let seen = shard.state.read(Purpose::Boards).dropped().latest().0;
                seen.max(self.registry.last_incarnation().0)
            };
            let confirmation = ConfirmationJson { confirmed: asked, number };
            self.store_message(BoardsMessage::Confirmation(shard.id), &confirmation).await?;
        }
        Ok(())
    }

    /// Whether every decision that was stored before a message is in force on a shard.
    async fn has_all_decisions(&self, shard: &NatsShard, before: u64) -> bool {
        // A shard that is behind its stream may come to hold a board that is dropped already.
        if !shard.health.is_live() {
            return false;
        }
        let mut after = None;
        loop {
            {
                let pending = self.pending.lock();
                let names = pending.names_after(after.as_ref(), LOOKED_AT_ONCE);
                let lacks = |name| {
                    pending.get(name).is_some_and(|pending_decision| {
                        pending_decision.recorded.sequence <= before
                            && !has_arrived(name, pending_decision, shard)
                    })
                };
                if names.iter().any(lacks) {
                    return false;
                }
                match names.last() {
                    Some(last) => after = Some(last.clone()),
                    None => return true,
                }
            }
            // Let other tasks of this thread run.
            tokio::task::yield_now().await;
        }
    }
}

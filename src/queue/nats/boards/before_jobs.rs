//! Decisions that have to be in a shard's stream in front of the next job.
//!
//! A client that has seen a board dropped or cleared may write to it again. If the job came before the drop
//! in the shard's stream, it would be removed with the life before. So the node that publishes the job
//! publishes the decision first, unless it knows that the shard has it. Shards ignore a second one.
//!
//! Knows: which decisions a shard may lack. A node that has just begun to follow the boards' stream cannot
//! tell which decisions shards of other nodes lack: the node that made one may have died before it had
//! delivered it. So until their owners have confirmed what they hold, every decision counts as lacking.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::queue::nats::boards::boards_stream::{BoardRefused, BoardsStream};
use crate::queue::nats::boards::decision::Record;
use crate::queue::nats::boards::deliver::{has_arrived, in_force_at};
use crate::queue::nats::boards::following::Following;
use crate::queue::nats::boards::pending::PendingDecision;
use crate::queue::nats::shard::{NatsShard, OtherShard};
use crate::state_lock::Purpose;
use crate::types::{BoardName, ShardId};

/// How long a write waits for the drop of a board that it names.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);
/// How long writes wait for the boards' stream to be read again after it was lost. Writes do not depend on
/// that stream otherwise, so they go on if it cannot be read.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Decisions by shard and board, each with whether it was delivered to the shard a moment ago.
pub type DecisionsDue = BTreeMap<(ShardId, BoardName), (Record, bool)>;

impl BoardsStream {
    /// Waits until this node has read what the stream says of boards, but not for long.
    pub async fn wait_until_following(&self) {
        let mut following = self.following.subscribe();
        let since = match &*following.borrow_and_update() {
            Following::NotSince(since) => *since,
            Following::Unconfirmed(_) | Following::Confirmed => return,
        };
        let is_read = |following: &Following| !matches!(following, Following::NotSince(_));
        let left = READ_TIMEOUT.saturating_sub(since.elapsed());
        let _ = tokio::time::timeout(left, following.wait_for(is_read)).await;
    }

    /// Decisions about the named boards that shards may lack: drops and clears that this node knows, and
    /// while owners have not confirmed, whatever was decided. [`BoardsStream::wait_for_decisions`] comes
    /// before the jobs.
    pub fn decisions_before<'a>(
        &self,
        named: impl IntoIterator<Item = (ShardId, &'a BoardName)>,
    ) -> DecisionsDue {
        let mut due = DecisionsDue::new();
        let following = self.following.borrow();
        let unconfirmed = match &*following {
            Following::Unconfirmed(unconfirmed) => Some(unconfirmed),
            Following::NotSince(_) | Following::Confirmed => None,
        };
        let pending = self.pending.lock();
        if pending.is_empty() && unconfirmed.is_none() {
            return due;
        }
        for (id, name) in named {
            let pending_decision = pending.get(name);
            if let Some(other) = self.other(id) {
                let lacking = pending_decision.filter(|known| !self.has_reached(known, other));
                let lacking = lacking
                    .map(|known| &known.recorded)
                    .or_else(|| unconfirmed?.lacking(id, name, self.confirmations.borrow().of(id)));
                due.extend(lacking.map(|recorded| ((id, name.clone()), (recorded.clone(), false))));
                continue;
            }
            let shard = self.shards.iter().find(|shard| shard.id == id);
            if let Some((pending_decision, shard)) = pending_decision.zip(shard)
                && ends_a_life_on(name, pending_decision, shard)
                && !has_arrived(name, pending_decision, shard)
            {
                let was_delivered = pending.was_delivered_lately(name, id);
                due.insert((id, name.clone()), (pending_decision.recorded.clone(), was_delivered));
            }
        }
        due
    }

    fn other(&self, shard: ShardId) -> Option<&OtherShard> {
        self.others.iter().find(|other| other.id == shard)
    }

    /// Publishes decisions to shards that may lack them, and waits until this node's shards have applied
    /// them, and until they are in the streams of other nodes' shards.
    ///
    /// # Errors
    /// When a decision cannot be brought, or does not arrive in time.
    pub async fn wait_for_decisions(&self, due: DecisionsDue) -> Result<(), BoardRefused> {
        let deadline = tokio::time::Instant::now() + DROP_TIMEOUT;
        // It is enough that they are in the streams of other nodes' shards in front of the job. All are in
        // flight at once.
        let mut sent = Vec::new();
        for ((id, name), (recorded, _)) in &due {
            if let Some(other) = self.other(*id) {
                let sending = other.publisher.send_command(&recorded.payload(name)).await?;
                sent.push((*id, name, sending));
            }
        }
        for (id, name, sending) in sent {
            sending.stored().await?;
            self.pending.lock().note_delivered(name, id);
            self.note_published(id, name);
        }
        for ((id, name), (recorded, was_delivered)) in due {
            let Some(shard) = self.shards.iter().find(|shard| shard.id == id) else { continue };
            if !was_delivered {
                let sending = shard.publisher.send_command(&recorded.payload(&name)).await?;
                self.pending.lock().note_delivered(&name, id);
                sending.stored().await?;
            }
            // A shard that lags may be far from applying the clear. If it holds no other life that the job
            // could be applied to, it is enough that the new life is in the stream in front of the job.
            let is_far = !shard.health.is_live() && recorded.is_alive();
            if is_far && shard.state.read(Purpose::Boards).board(name.as_str()).is_none() {
                continue;
            }
            in_force_at(shard, &name, || self.latest_of(&name, &recorded), deadline).await?;
        }
        Ok(())
    }

    fn note_published(&self, shard: ShardId, name: &BoardName) {
        self.following.send_if_modified(|following| {
            following.note_published(shard, name);
            // Nobody waits for this.
            false
        });
    }
}

/// Whether a decision drops the board or ends the life of it that a shard holds. A shard that lags may come
/// to hold one.
fn ends_a_life_on(name: &BoardName, pending_decision: &PendingDecision, shard: &NatsShard) -> bool {
    let PendingDecision { recorded, .. } = pending_decision;
    let holds_another = || {
        let state = shard.state.read(Purpose::Boards);
        match state.board(name.as_str()) {
            Some(board) => board.incarnation < recorded.decision.incarnation,
            None => !shard.health.is_live(),
        }
    };
    !recorded.is_alive() || holds_another()
}

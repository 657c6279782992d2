//! Delivers decisions to shards: a decision that a shard lacks is published into its stream.
//!
//! Knows: which decisions are pending, so that none is delivered twice without need, and which boards jobs
//! wait for.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::queue::error::NotPublished;
use crate::queue::nats::boards::boards_stream::{BoardRefused, BoardsStream};
use crate::queue::nats::boards::decision::Record;
use crate::queue::nats::boards::pending::PendingDecision;
use crate::queue::nats::shard::{NatsShard, OtherShard};
use crate::state_lock::Purpose;
use crate::types::{BoardName, Sequence, ShardId};

/// How often pending decisions are compared with the shards.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// How long a decision may take to arrive everywhere.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);
/// Pending boards that are looked at under one hold of the lock.
const LOOKED_AT_ONCE: usize = 128;
/// Boards that jobs wait for and that are decided and delivered together.
const WANTED_AT_ONCE: usize = 1_000;

impl BoardsStream {
    /// Delivers one decision to every shard where it is not in force, and to those of other nodes, of which
    /// that is not known.
    pub(super) async fn deliver_one(
        &self,
        name: &BoardName,
        recorded: &Record,
    ) -> Result<BTreeMap<ShardId, Sequence>, NotPublished> {
        let mut sent = Vec::with_capacity(self.others.len());
        for other in &self.others {
            sent.push((other.id, other.publisher.send_command(&recorded.payload(name)).await?));
        }
        let one = [(name.clone(), recorded.clone())];
        let mut delivered = self.deliver(&one, |_, _| true).await?;
        for (shard, sending) in sent {
            delivered.insert(shard, sending.stored().await?);
            self.pending.lock().note_delivered(name, shard);
        }
        Ok(delivered)
    }

    /// Whether a decision is in the stream of a shard that this node does not own, as far as it matters to
    /// jobs.
    pub(super) fn has_reached(&self, pending_decision: &PendingDecision, other: &OtherShard) -> bool {
        let sequence = pending_decision.recorded.sequence;
        !pending_decision.ends_life
            || pending_decision.was_delivered(other.id)
            || (sequence > 0 && self.confirmations.borrow().of(other.id) >= sequence)
    }

    /// Publishes decisions to this node's shards where they are not in force, all in flight at once.
    async fn deliver(
        &self,
        decisions: &[(BoardName, Record)],
        is_due: impl Fn(&BoardName, &NatsShard) -> bool,
    ) -> Result<BTreeMap<ShardId, Sequence>, NotPublished> {
        let mut sent = Vec::new();
        for shard in &self.shards {
            for (name, recorded) in decisions {
                let arrived = recorded.is_in_force(&shard.state.read(Purpose::Boards), name);
                if arrived || !is_due(name, shard) {
                    continue;
                }
                let sending = shard.publisher.send_command(&recorded.payload(name)).await?;
                self.pending.lock().note_delivered(name, shard.id);
                sent.push((shard.id, sending));
            }
        }
        let mut delivered = BTreeMap::new();
        for (shard, sending) in sent {
            delivered.insert(shard, sending.stored().await?);
        }
        Ok(delivered)
    }

    /// Waits until a decision is in force on this node's shards. Returns for every shard a sequence from
    /// which on it is.
    pub(super) async fn wait_until_in_force(
        &self,
        name: &BoardName,
        recorded: &Record,
        delivered: &BTreeMap<ShardId, Sequence>,
    ) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        let deadline = tokio::time::Instant::now() + DELIVERY_TIMEOUT;
        let mut token = Vec::with_capacity(self.shards.len());
        for shard in &self.shards {
            let sequence = in_force_at(shard, name, || self.latest_of(name, recorded), deadline).await?;
            token.push((shard.id, delivered.get(&shard.id).copied().unwrap_or(sequence)));
        }
        // On the others it holds from its place in their streams on.
        token.extend(self.others.iter().filter_map(|other| Some((other.id, *delivered.get(&other.id)?))));
        token.sort_by_key(|(shard, _)| *shard);
        Ok(token)
    }

    /// A decision, or a later one that has changed the same board since: then the first one may never be in
    /// force again.
    pub(super) fn latest_of(&self, name: &BoardName, recorded: &Record) -> Record {
        let pending = self.pending.lock();
        let later = pending.get(name).map(|known| &known.recorded);
        later.filter(|later| later.number > recorded.number).unwrap_or(recorded).clone()
    }

    /// The drop of a board that was decided and that a shard has yet to apply.
    pub(super) fn pending_drop(&self, name: &BoardName) -> Option<Record> {
        let pending = self.pending.lock();
        let pending_decision = pending.get(name).filter(|known| !known.recorded.is_alive())?;
        let lacks = |shard: &NatsShard| !has_arrived(name, pending_decision, shard);
        let other_lacks = |other: &OtherShard| !self.has_reached(pending_decision, other);
        let is_pending = self.shards.iter().any(lacks) || self.others.iter().any(other_lacks);
        is_pending.then(|| pending_decision.recorded.clone())
    }

    /// Delivers to the shards the decisions that they lack, for as long as the service runs: decisions of
    /// other nodes, boards that jobs wait for, and deliveries that a crash interrupted.
    pub async fn run_delivery(&self) {
        let mut ticks = tokio::time::interval(CHECK_INTERVAL);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let is_wanted_only = tokio::select! {
                _ = ticks.tick() => false,
                () = self.inquired.notified() => false,
                () = self.wanted.changed.notified() => true,
            };
            if !*self.compared.borrow() {
                let mut compared = self.compared.subscribe();
                // The sender lives as long as `self`.
                let _ = compared.wait_for(|compared| *compared).await;
            }
            if !is_wanted_only {
                self.deliver_pending().await;
                if let Err(error) = self.confirm().await
                    && self.managing.should_log(&error.to_string())
                {
                    tracing::warn!(%error, "an inquiry of another node about boards could not be answered; trying again");
                }
            }
            // Boards that are wanted before the stream is reconciled stay wanted.
            if *self.reconciled.borrow() {
                self.create_wanted().await;
            }
        }
    }

    async fn create_wanted(&self) {
        let mut wanted = self.still_wanted(self.wanted.take()).await.into_iter().peekable();
        while wanted.peek().is_some() {
            let names = wanted.by_ref().take(WANTED_AT_ONCE).collect();
            let mut decided = Vec::new();
            for (name, outcome) in self.decide_defaults(names).await {
                match outcome {
                    Ok(recorded) => decided.push((name, recorded)),
                    // They are tried again every two seconds.
                    Err(error) if !self.managing.should_log(&format!("{name}: {error}")) => {}
                    Err(error) => {
                        tracing::warn!(board = %name, %error, "a board that jobs wait for could not be created; trying again");
                    }
                }
            }
            let due = |name: &BoardName, shard: &NatsShard| {
                !self.pending.lock().was_delivered_lately(name, shard.id)
            };
            if let Err(error) = self.deliver(&decided, due).await
                && self.managing.should_log(&error.to_string())
            {
                tracing::warn!(%error, "definitions or drops of boards could not be sent to the shards; trying again");
            }
        }
    }

    /// Looks at a slice of the pending boards, by name behind `after`. Forgets decisions that have arrived
    /// everywhere and are not watched, and adds those that are due to `found`, if all shards are live.
    /// Returns the last board of the slice; `None` at the end.
    ///
    /// Writes take the same lock to see whether their boards are being dropped. So they wait for a slice, and
    /// not for all pending boards.
    fn check_pending(
        &self,
        after: Option<&BoardName>,
        all_live: bool,
        found: &mut Undelivered,
    ) -> Option<BoardName> {
        let read_through = self.read_through.load(Ordering::Relaxed);
        let mut pending = self.pending.lock();
        let names = pending.names_after(after, LOOKED_AT_ONCE);
        for name in &names {
            let Some(pending_decision) = pending.get(name) else { continue };
            // Until the decision's own record was read, earlier records may still come.
            let is_read = pending_decision.recorded.sequence <= read_through;
            if is_read && self.shards.iter().all(|shard| has_arrived(name, pending_decision, shard)) {
                let lacks = |other: &OtherShard| !self.has_reached(pending_decision, other);
                if self.others.iter().any(lacks) {
                    found.awaited = found.awaited.max(pending_decision.recorded.sequence);
                } else if !pending_decision.is_watched() {
                    pending.remove(name);
                }
                continue;
            }
            if !all_live {
                continue;
            }
            let due = |shard: &&NatsShard| {
                !has_arrived(name, pending_decision, shard) && !pending.was_delivered_lately(name, shard.id)
            };
            let known = (name.clone(), pending_decision.recorded.clone());
            if self.is_too_late(name, &pending_decision.recorded) {
                found.doubtful.push(known);
            } else if self.shards.iter().filter(due).any(|shard| pending.was_delivered(name, shard.id)) {
                // The delivery was lost or ignored, or another decision has replaced this one. The stream
                // shows which.
                found.doubtful.push(known);
            } else if self.shards.iter().any(|shard| due(&shard)) {
                found.lacking.push(known);
            }
        }
        names.last().cloned()
    }

    /// Delivers decisions that shards lack, and forgets those that have arrived everywhere.
    async fn deliver_pending(&self) {
        // A shard that is behind its stream may find the decision there.
        let all_live = self.shards.iter().all(|shard| shard.health.is_live());
        let (mut found, mut after) = (Undelivered::default(), None);
        while let Some(last) = self.check_pending(after.as_ref(), all_live, &mut found) {
            after = Some(last);
            // Let other tasks of this thread run.
            tokio::task::yield_now().await;
        }
        let Undelivered { mut lacking, doubtful, awaited } = found;
        // The owners of other shards deliver to those. This node only has to hear that it is done.
        if awaited > 0
            && *self.compared.borrow()
            && let Err(error) = self.inquire_after(awaited).await
            && self.managing.should_log(&error.to_string())
        {
            tracing::warn!(%error, "the owners of other shards cannot be asked about boards; trying again");
        }
        lacking.extend(self.renew_all(doubtful).await);
        let due = |name: &BoardName, shard: &NatsShard| {
            let pending = self.pending.lock();
            let pending_decision = pending.get(name);
            pending_decision.is_some_and(|pending_decision| !has_arrived(name, pending_decision, shard))
                && !pending.was_delivered_lately(name, shard.id)
        };
        if let Err(error) = self.deliver(&lacking, due).await
            && self.managing.should_log(&error.to_string())
        {
            tracing::warn!(%error, "definitions or drops of boards could not be sent to the shards; trying again");
        }
    }
}

/// Pending decisions that have not arrived.
#[derive(Default)]
struct Undelivered {
    lacking: Vec<(BoardName, Record)>,
    /// The boards' stream is asked first what holds.
    doubtful: Vec<(BoardName, Record)>,
    /// The last decision that shards of other nodes are not known to have; 0 for none.
    awaited: u64,
}

/// Waits until a decision is in force on a shard. Returns a sequence from which on it is.
///
/// # Arguments
/// `recorded`: the decision, or the one that has taken its place meanwhile.
pub(super) async fn in_force_at(
    shard: &NatsShard,
    name: &BoardName,
    recorded: impl Fn() -> Record,
    deadline: tokio::time::Instant,
) -> Result<Sequence, BoardRefused> {
    loop {
        let seen = shard.applied.get();
        let arrived = {
            let recorded = recorded();
            let state = shard.state.read(Purpose::Boards);
            recorded.is_in_force(&state, name).then_some(state.applied.sequence)
        };
        if let Some(as_of) = arrived {
            return Ok(as_of);
        }
        match tokio::time::timeout_at(deadline, shard.applied.pass(seen)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Err(BoardRefused::Late),
        }
    }
}

pub(super) fn has_arrived(name: &BoardName, pending_decision: &PendingDecision, shard: &NatsShard) -> bool {
    let PendingDecision { recorded, everywhere, .. } = pending_decision;
    let state = shard.state.read(Purpose::Boards);
    recorded.is_in_force(&state, name)
        || if recorded.is_alive() {
            state.has_ended(name.as_str(), recorded.decision.incarnation)
        } else {
            !everywhere && shard.health.is_live() && !recorded.decision.ends_board_of(&state, name)
        }
}

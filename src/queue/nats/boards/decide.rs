//! Decisions about boards: definitions, drops and clears.
//!
//! Knows: the boards that shards hold count as much as the stream's records, because the stream may have been
//! lost. A board that a shard holds gets a new incarnation only by a clear.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;

use crate::board::Definition;
use crate::queue::nats::boards::boards_stream::{BoardRefused, BoardsStream, ForeignShard};
use crate::queue::nats::boards::decision::{Decision, Record};
use crate::queue::nats::boards::limit::{BoardLimit, NEAR_THE_LIMIT};
use crate::queue::nats::boards::record::RecordJson;
use crate::queue::nats::boards::store::NewRecord;
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, Sequence, ShardId, Timestamp};
use crate::writer::{BoardChange, DefineRefused, MAX_BOARDS};

/// How long a definition, drop or clear waits until the stream is reconciled with the shards.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(10);
/// Boards that are decided at once if they have a record already, which has to be read first.
const DECIDED_AT_ONCE: usize = 64;

/// A board as it was decided.
#[derive(Debug, Clone)]
pub struct Decided {
    /// Whether the board is new.
    pub created: bool,
    pub definition: Arc<Definition>,
    /// Names every shard, with a sequence from which on the definition is in force there.
    pub token: AsOf,
}

impl BoardsStream {
    /// Decides what a board is, and waits until all of this node's shards have it.
    ///
    /// # Arguments
    /// - `limit`: of the client's token, if it has one.
    /// - `now`: seasons that have begun by then stay as they are.
    ///
    /// # Errors
    /// When the board cannot become what is asked, or the decision could not be made or has not arrived.
    pub async fn change(
        &self,
        name: &BoardName,
        change: &BoardChange,
        now: Timestamp,
        limit: Option<&BoardLimit>,
    ) -> Result<Decided, BoardRefused> {
        let asked = Instant::now();
        self.wait_until_reconciled().await?;
        let (created, recorded) = self.decide(name, change, (now, asked), limit).await?;
        let delivered = self.deliver_one(name, &recorded).await?;
        let token = AsOf(self.wait_until_in_force(name, &recorded, &delivered).await?);
        let definition = recorded.decision.definition.ok_or(DefineRefused::Unknown)?;
        Ok(Decided { created, definition, token })
    }

    /// A board's definition as it was last decided, by whichever node. `None`: there is no such board.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub async fn definition(&self, name: &BoardName) -> Result<Option<Arc<Definition>>, BoardRefused> {
        self.wait_until_reconciled().await?;
        let said = self.last(name).await?.map(|last| last.decision);
        Ok(Decision::later(said, self.held(name)).and_then(|decision| decision.definition))
    }

    /// Drops a board, and waits until none of this node's shards has it. Returns for every shard a sequence
    /// from which on it is gone.
    ///
    /// # Errors
    /// When there is none, or the decision could not be made or has not arrived.
    pub async fn drop_board(&self, name: &BoardName) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        self.wait_until_reconciled().await?;
        let mut last = self.last(name).await?;
        let recorded = loop {
            let after = last.as_ref().map_or(0, |last| last.sequence);
            let known = Decision::later(last.map(|last| last.decision), self.held(name));
            let Some(Decision { incarnation, definition: Some(_) }) = known else {
                // The drop was decided before, but has not arrived everywhere. Its delivery continues.
                break self.pending_drop(name).ok_or(DefineRefused::Unknown)?;
            };
            let record = RecordJson::of(&Decision::dropped(incarnation), self.next_number());
            if let Some(recorded) = self.store(NewRecord { name: name.clone(), record, after }).await? {
                break recorded;
            }
            last = self.last_after(name, after).await?;
        };
        self.carry_out(name, &recorded).await
    }

    /// Begins another life of a board with its definition, and waits until all of this node's shards have it.
    /// Returns for every shard a sequence from which on the entries of the life before are gone.
    ///
    /// # Errors
    /// When there is none, or the decision could not be made or has not arrived.
    pub async fn clear_board(&self, name: &BoardName) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        self.wait_until_reconciled().await?;
        let mut last = self.last(name).await?;
        let recorded = loop {
            let after = last.as_ref().map_or(0, |last| last.sequence);
            let known = Decision::later(last.map(|last| last.decision), self.held(name));
            let Some(Decision { definition: Some(definition), .. }) = known else {
                return Err(DefineRefused::Unknown.into());
            };
            let record = RecordJson::first(self.next_number(), &definition);
            if let Some(recorded) = self.store(NewRecord { name: name.clone(), record, after }).await? {
                break recorded;
            }
            last = self.last_after(name, after).await?;
        };
        self.carry_out(name, &recorded).await
    }

    /// Delivers a decision to all of this node's shards, and waits until they have it. Returns for every
    /// shard a sequence from which on it holds.
    async fn carry_out(
        &self,
        name: &BoardName,
        recorded: &Record,
    ) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        self.note(name, recorded, true);
        let delivered = self.deliver_one(name, recorded).await?;
        self.wait_until_in_force(name, recorded, &delivered).await
    }

    /// Waits until the stream is reconciled with the shards. Nothing may be decided before.
    pub(super) async fn wait_until_reconciled(&self) -> Result<(), BoardRefused> {
        let mut reconciled = self.reconciled.subscribe();
        if *reconciled.borrow_and_update() {
            return Ok(());
        }
        if !self.managing.is_up() {
            return Err(BoardRefused::Unavailable(self.managing.why_down()));
        }
        if let Some(ForeignShard { shard, why }) = self.foreign.lock().first() {
            return Err(BoardRefused::Unavailable(format!(
                "the data of this node's shard {shard} are not of its stream, so that nothing about boards is \
                 decided through this node: {why}; see GET /v1/status for what to do, and ask another node \
                 meanwhile"
            )));
        }
        let waited =
            tokio::time::timeout(RECONCILE_TIMEOUT, reconciled.wait_for(|reconciled| *reconciled)).await;
        if let Ok(Ok(_)) = waited {
            return Ok(());
        }
        let missing = if *self.compared.borrow() { self.missing_confirmations() } else { Vec::new() };
        let why = if missing.is_empty() {
            "it is still being compared with the boards that the shards hold; try again in a moment"
                .to_owned()
        } else {
            format!(
                "no owner of the shards {missing:?} has confirmed which boards they hold; try again once they \
                 have live owners (GET /v1/status lists them)"
            )
        };
        Err(BoardRefused::Unavailable(why))
    }

    /// Decides what a board is. The first definition wins; a later one must agree with it.
    pub(super) async fn decide(
        &self,
        name: &BoardName,
        change: &BoardChange,
        (now, since): (Timestamp, Instant),
        limit: Option<&BoardLimit>,
    ) -> Result<(bool, Record), BoardRefused> {
        // A board that this node does not know mostly has no record. If it has one, the server refuses
        // another. No board is made for a season, or to be read-only.
        let mut last =
            if change.needs_board() || self.held(name).is_some() { self.last(name).await? } else { None };
        loop {
            let after = last.as_ref().map_or(0, |last| last.sequence);
            // To wait, and to read and write the stream, takes time, in which a season may begin.
            let now = now.plus(since.elapsed());
            if let Some(decided) = self.decide_after(last, name, change, now, limit).await? {
                return Ok(decided);
            }
            // Another node was first: its decision holds.
            last = self.last_after(name, after).await?;
        }
    }

    /// Decides what a board is whose last record is this one. `None`: another one was stored meanwhile.
    async fn decide_after(
        &self,
        last: Option<Record>,
        name: &BoardName,
        change: &BoardChange,
        now: Timestamp,
        limit: Option<&BoardLimit>,
    ) -> Result<Option<(bool, Record)>, BoardRefused> {
        let after = last.as_ref().map_or(0, |last| last.sequence);
        let said = last.as_ref().map(|last| last.decision.clone());
        let begun = Decision::later(said, self.held(name)).and_then(|held| held.known());
        let definition = change.applied_to(begun.as_ref().map(|known| &*known.definition), now)?;
        let record = match &begun {
            Some(known) => {
                let decision = Decision::from(known);
                let is_said = |last: &Record| {
                    *known.definition == definition
                        && last.decision == decision
                        && !self.is_too_late(name, last)
                };
                if let Some(recorded) = last.filter(is_said) {
                    self.note(name, &recorded, true);
                    return Ok(Some((false, recorded)));
                }
                // The definition changes, or the stream has lost what a shard holds, or a shard needs a later
                // number.
                let definition = Some(Arc::new(definition));
                RecordJson::of(&Decision { definition, ..decision }, self.next_number())
            }
            None => RecordJson::first(self.next_number(), &definition),
        };
        let new = NewRecord { name: name.clone(), record, after };
        let stored = match &begun {
            Some(_) => self.store(new).await?,
            // It is no board, and is not counted.
            None if name.is_service() => self.store(new).await?,
            None => self.store_new(new, limit).await?,
        };
        Ok(stored.map(|recorded| {
            self.note(name, &recorded, true);
            (begun.is_none(), recorded)
        }))
    }

    /// Decides a board that jobs were seen to wait for and that has a record. `None`: it was dropped, and no
    /// job waits for it any more. Where it was also defined since the jobs were seen, that freed them;
    /// another life would bring the board back.
    async fn decide_wanted(&self, name: &BoardName) -> Result<Option<Record>, BoardRefused> {
        let mut last = self.last(name).await?;
        loop {
            let after = last.as_ref().map_or(0, |last| last.sequence);
            let is_dropped = last.as_ref().is_some_and(|last| !last.is_alive());
            if is_dropped && self.still_wanted([name.clone()].into()).await.is_empty() {
                return Ok(None);
            }
            // A board that there is stays as it is. No season of it changes, whatever the time is.
            let now = Timestamp::default();
            if let Some((_, recorded)) =
                self.decide_after(last, name, &BoardChange::Create, now, None).await?
            {
                return Ok(Some(recorded));
            }
            last = self.last_after(name, after).await?;
        }
    }

    /// Creates boards with the default definition, unless they are defined already. All records are in flight
    /// at once, so that many take hardly longer than one. Returns the decision for each board that a shard
    /// lacks.
    pub(super) async fn decide_defaults(
        &self,
        names: Vec<BoardName>,
    ) -> Vec<(BoardName, Result<Record, BoardRefused>)> {
        let definition = Definition::default();
        let (mut decided, mut new, mut others) = (Vec::with_capacity(names.len()), Vec::new(), Vec::new());
        for name in names {
            if self
                .shards
                .iter()
                .all(|shard| shard.state.read(Purpose::Boards).board(name.as_str()).is_some())
            {
                // The board has arrived meanwhile.
                continue;
            }
            let pending =
                self.pending.lock().get(&name).map(|pending_decision| pending_decision.recorded.clone());
            match (self.held(&name), pending) {
                (Some(held), Some(pending)) if pending.is_alive() && held == pending.decision => {
                    decided.push((name, Ok(pending)));
                }
                (Some(_), _) => others.push(name),
                (None, _) => new.push(name),
            }
        }
        // Near the limit of all boards, each is counted.
        let room = (MAX_BOARDS - NEAR_THE_LIMIT).saturating_sub(self.registry.count_named(None));
        others.extend(new.split_off(room.min(new.len())));
        let record = RecordJson::first(self.next_number(), &definition);
        let records =
            new.iter().map(|name| NewRecord { name: name.clone(), record: record.clone(), after: 0 });
        let outcomes = self.store_all(records.collect()).await;
        for (name, outcome) in new.into_iter().zip(outcomes) {
            match outcome {
                Ok(Some(recorded)) => {
                    self.note(&name, &recorded, true);
                    decided.push((name, Ok(recorded)));
                }
                Ok(None) => others.push(name),
                Err(error) => decided.push((name, Err(error))),
            }
        }
        let others = others.into_iter().map(|name| async move {
            let outcome = self.decide_wanted(&name).await.transpose();
            outcome.map(|outcome| (name, outcome))
        });
        let others = futures_util::stream::iter(others).buffer_unordered(DECIDED_AT_ONCE);
        let others: Vec<_> = others.filter_map(std::future::ready).collect().await;
        decided.extend(others);
        decided
    }
}

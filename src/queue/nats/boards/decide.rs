//! Decisions on boards: each is a record that follows the one that its writer has read, or it is not stored.
//!
//! Knows: that what a shard holds counts as much as what the stream says, because the stream may have been lost. A board
//! that a shard holds is never begun anew.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use futures_util::StreamExt as _;
use futures_util::future::join_all;

use crate::board::Definition;
use crate::queue::nats::boards::record::{Decision, Record, Recorded, is_foreign};
use crate::queue::nats::boards::{BoardRefused, Boards};
use crate::state::{Incarnation, RecordNumber};
use crate::state_lock::Purpose;
use crate::types::{BoardName, Sequence, ShardId};
use crate::writer::{DefineRefused, Known, MAX_BOARDS};

/// How long a definition or a drop waits for the stream to be compared with the shards.
const COMPARED_WITHIN: Duration = Duration::from_secs(10);
/// A server refuses a record at once that follows the same one as another that it is still replicating; a moment later
/// that one can be read.
const OTHER_IS_STORED: Duration = Duration::from_millis(20);
/// Records on their way at once.
const STORED_AT_ONCE: usize = 1_000;
/// Decisions at once of boards that have a record already, which has to be read first.
const DECIDED_AT_ONCE: usize = 64;

/// A record to be stored behind the one at `after`; 0 for none.
pub struct Stored {
    pub name: BoardName,
    pub record: Record,
    pub after: u64,
}

impl Boards {
    /// Decides a definition, and waits until all of this node's shards have it. Whether it is new, and for every shard a
    /// sequence as of which it holds.
    ///
    /// # Errors
    /// When the board is something else, or the decision could not be made or has not arrived.
    pub async fn define(
        &self,
        name: &BoardName,
        definition: &Definition,
    ) -> Result<(bool, Vec<(ShardId, Sequence)>), BoardRefused> {
        self.wait_until_compared().await?;
        let (created, recorded) = self.decide(name, definition).await?;
        let brought = self.bring_at_once(name, &recorded).await?;
        Ok((created, self.arrival(name, &recorded, &brought).await?))
    }

    /// Drops a board, and waits until none of this node's shards has it. For every shard a sequence as of which it is gone.
    ///
    /// # Errors
    /// When there is none, or the decision could not be made or has not arrived.
    pub async fn drop_board(&self, name: &BoardName) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        self.wait_until_compared().await?;
        let mut last = self.last(name).await?;
        let recorded = loop {
            let after = last.as_ref().map_or(0, |last| last.sequence);
            let known = Decision::later(last.map(|last| last.decision), self.held(name));
            let Some(Decision { incarnation, definition: Some(_) }) = known else {
                // Decided before, and it has not arrived everywhere: it goes on.
                break self.drop_on_its_way(name).ok_or(BoardRefused::Unknown)?;
            };
            let record = Record::of(&Decision::dropped(incarnation), self.next_number());
            if let Some(recorded) = self.store(Stored { name: name.clone(), record, after }).await? {
                break recorded;
            }
            last = self.last_behind(name, after).await?;
        };
        self.carry_out(name, &recorded).await
    }

    /// Begins another life of a board, with the definition that it has, and waits until all of this node's shards have it. For
    /// every shard a sequence as of which the entries of the life before are gone.
    ///
    /// # Errors
    /// When there is none, or the decision could not be made or has not arrived.
    pub async fn clear_board(&self, name: &BoardName) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        self.wait_until_compared().await?;
        let mut last = self.last(name).await?;
        let recorded = loop {
            let after = last.as_ref().map_or(0, |last| last.sequence);
            let known = Decision::later(last.map(|last| last.decision), self.held(name));
            let Some(Decision { definition: Some(definition), .. }) = known else {
                return Err(BoardRefused::Unknown);
            };
            let record = Record::first(self.next_number(), &definition);
            if let Some(recorded) = self.store(Stored { name: name.clone(), record, after }).await? {
                break recorded;
            }
            last = self.last_behind(name, after).await?;
        };
        self.carry_out(name, &recorded).await
    }

    /// Brings a decision to all of this node's shards and waits until they have it; for every shard a sequence as of which it is so.
    async fn carry_out(
        &self,
        name: &BoardName,
        recorded: &Recorded,
    ) -> Result<Vec<(ShardId, Sequence)>, BoardRefused> {
        self.note(name, recorded, true);
        let brought = self.bring_at_once(name, recorded).await?;
        self.arrival(name, recorded, &brought).await
    }

    /// Nothing may be decided before what the shards hold is known to the stream.
    pub(super) async fn wait_until_compared(&self) -> Result<(), BoardRefused> {
        let mut compared = self.compared.subscribe();
        if *compared.borrow_and_update() {
            return Ok(());
        }
        if !self.managing.is_up() {
            return Err(BoardRefused::Unavailable(self.managing.why_down()));
        }
        let waited = tokio::time::timeout(COMPARED_WITHIN, compared.wait_for(|compared| *compared)).await;
        if let Ok(Ok(_)) = waited {
            return Ok(());
        }
        let why = "it is still being compared with what the shards hold; try again in a moment";
        Err(BoardRefused::Unavailable(why.to_owned()))
    }

    /// The first definition wins; a later one must agree with it.
    pub(super) async fn decide(
        &self,
        name: &BoardName,
        definition: &Definition,
    ) -> Result<(bool, Recorded), BoardRefused> {
        // A board that nobody here knows of has no record, mostly; if it has one, the server refuses another.
        let mut last = if self.held(name).is_some() { self.last(name).await? } else { None };
        loop {
            let after = last.as_ref().map_or(0, |last| last.sequence);
            let said = last.as_ref().map(|last| last.decision.clone());
            let begun = Decision::later(said, self.held(name)).and_then(|held| held.known());
            let record = match &begun {
                Some(known) => {
                    if !known.definition.agrees_with(definition) {
                        return Err(DefineRefused::conflict(&known.definition, definition).into());
                    }
                    let decision = Decision::from(known);
                    let is_said = |last: &Recorded| {
                        *known.definition == *definition
                            && last.decision == decision
                            && !self.is_too_late(name, last)
                    };
                    if let Some(recorded) = last.filter(is_said) {
                        self.note(name, &recorded, true);
                        return Ok((false, recorded));
                    }
                    // Something that may change does, or the stream has lost what a shard holds, or a shard wants it later.
                    let definition = Some(Arc::new(definition.clone()));
                    Record::of(&Decision { definition, ..decision }, self.next_number())
                }
                None if self.registry.count_named(None) >= MAX_BOARDS => {
                    return Err(DefineRefused::TooMany.into());
                }
                None => Record::first(self.next_number(), definition),
            };
            if let Some(recorded) = self.store(Stored { name: name.clone(), record, after }).await? {
                self.note(name, &recorded, true);
                return Ok((begun.is_none(), recorded));
            }
            // Another one was first: what it decided holds.
            last = self.last_behind(name, after).await?;
        }
    }

    /// Sees to it that boards are there, with the defaults unless they are something else already: all of them on their
    /// way at once, so that many take hardly longer than one. Gives what is decided of each that a shard lacks.
    pub(super) async fn decide_defaults(
        &self,
        names: Vec<BoardName>,
    ) -> Vec<(BoardName, Result<Recorded, BoardRefused>)> {
        let definition = Definition::default();
        let (mut decided, mut new, mut others) = (Vec::with_capacity(names.len()), Vec::new(), Vec::new());
        for name in names {
            if self
                .shards
                .iter()
                .all(|shard| shard.state.read(Purpose::Boards).board(name.as_str()).is_some())
            {
                // It has come meanwhile.
                continue;
            }
            let pending = self.pending.lock().get(&name).map(|on_its_way| on_its_way.recorded.clone());
            match (self.held(&name), pending) {
                (Some(held), Some(pending)) if pending.is_alive() && held == pending.decision => {
                    decided.push((name, Ok(pending)));
                }
                (Some(_), _) => others.push(name),
                (None, _) => new.push(name),
            }
        }
        let room = MAX_BOARDS.saturating_sub(self.registry.count_named(None));
        let too_many = new.split_off(room.min(new.len()));
        decided.extend(too_many.into_iter().map(|name| (name, Err(DefineRefused::TooMany.into()))));
        let record = Record::first(self.next_number(), &definition);
        let records = new.iter().map(|name| Stored { name: name.clone(), record: record.clone(), after: 0 });
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
        let others = others.into_iter().map(|name| async {
            let outcome = self.decide_default(&name).await;
            (name, outcome)
        });
        let others: Vec<_> =
            futures_util::stream::iter(others).buffer_unordered(DECIDED_AT_ONCE).collect().await;
        decided.extend(others);
        decided
    }

    async fn decide_default(&self, name: &BoardName) -> Result<Recorded, BoardRefused> {
        loop {
            match self.decide(name, &Definition::default()).await {
                Ok((_, recorded)) => return Ok(recorded),
                // Somebody defined it otherwise, which is just as well, unless it was dropped meanwhile.
                Err(BoardRefused::Refused(conflict @ DefineRefused::Conflict(_))) => {
                    let Some(recorded) = self.last(name).await? else {
                        return Err(conflict.into());
                    };
                    if recorded.is_alive() {
                        self.note(name, &recorded, true);
                        return Ok(recorded);
                    }
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// A number for the next record: above all that this node ever met, in the stream or on its shards. Where nothing was lost
    /// the record's own sequence is as high, and counts; a stream that was lost begins low again.
    pub(super) fn next_number(&self) -> RecordNumber {
        let met = self.shards.iter().map(|shard| shard.state.read(Purpose::Boards).dropped().latest().0);
        let latest = met.max().unwrap_or(0).max(self.registry.last_incarnation().0);
        RecordNumber(latest.saturating_add(1))
    }

    /// Whether a shard lacks a board, and would not take this record of it any more.
    pub(super) fn is_too_late(&self, name: &BoardName, recorded: &Recorded) -> bool {
        self.shards.iter().any(|shard| recorded.is_too_late_for(&shard.state.read(Purpose::Boards), name))
    }

    /// The last record of a board that is on its way, to be brought to the shards once more: this node may have missed that it
    /// was dropped since. A record that a shard would not take any more is stored again behind itself, with a later number.
    ///
    /// # Errors
    /// When the servers do not answer.
    pub(super) async fn renew(
        &self,
        name: &BoardName,
        known: &Recorded,
    ) -> Result<Option<Recorded>, BoardRefused> {
        let Some(last) = self.last(name).await? else {
            let life = known.decision.incarnation;
            if !known.is_alive() {
                return Ok(Some(known.clone()));
            }
            let is_held = self.shards.iter().any(|shard| {
                shard
                    .state
                    .read(Purpose::Boards)
                    .board(name.as_str())
                    .is_some_and(|board| board.incarnation == life)
            });
            // It was dropped, and that was so long ago that the stream has forgotten it. If a shard holds it, either that one has
            // the drop before it, or the stream is another one, which is compared with the shards before long.
            if !is_held {
                self.pending.lock().forget(name, life);
                self.registry.forget(name, life);
            }
            return Ok(None);
        };
        if !self.is_too_late(name, &last) {
            self.note(name, &last, true);
            return Ok(Some(last));
        }
        let record = Record::of(&last.decision, self.next_number());
        // If another one was first, its record is met at the next look.
        let renewed = self.store(Stored { name: name.clone(), record, after: last.sequence }).await?;
        if let Some(renewed) = &renewed {
            self.note(name, renewed, true);
        }
        Ok(renewed)
    }

    /// As [`Boards::renew`], for many boards. What cannot be asked for now is left out.
    pub(super) async fn renew_all(&self, known: Vec<(BoardName, Recorded)>) -> Vec<(BoardName, Recorded)> {
        let renewing = known.into_iter().map(|(name, known)| async move {
            let renewed = self.renew(&name, &known).await;
            if let Err(error) = &renewed {
                tracing::warn!(board = %name, %error, "a board cannot be brought to its shards yet");
            }
            Some((name, renewed.ok()??))
        });
        let renewing = futures_util::stream::iter(renewing).buffer_unordered(DECIDED_AT_ONCE);
        renewing.filter_map(std::future::ready).collect().await
    }

    /// What this node knows of a board, from its shards and from what is on its way to them.
    pub(super) fn held(&self, name: &BoardName) -> Option<Decision> {
        let mut held = self.registry.get(name.as_str()).map(|known| Decision::from(&known));
        let pending = self.pending.lock().get(name).map(|on_its_way| on_its_way.recorded.decision.clone());
        held = Decision::later(held, pending);
        for shard in &self.shards {
            let shard = shard.state.read(Purpose::Boards);
            let alive = shard.board(name.as_str()).map(|board| Decision {
                incarnation: board.incarnation,
                definition: Some(Arc::clone(&board.definition)),
            });
            let over = shard.dropped().get(name.as_str()).map(Decision::dropped);
            held = Decision::later(held, Decision::later(alive, over));
        }
        held
    }

    /// Takes note of what the stream says of a board, and sees to it that the shards hear of it.
    ///
    /// # Arguments
    /// `everywhere`: whether a drop concerns shards that never had the board, too.
    pub(super) fn note(&self, name: &BoardName, recorded: &Recorded, everywhere: bool) {
        let Recorded { sequence, number, decision } = recorded;
        {
            let mut pending = self.pending.lock();
            if pending.knows_later(name, *sequence) {
                return;
            }
            let arrived = |shard: &super::BoardsOfShard| {
                let state = shard.state.read(Purpose::Boards);
                recorded.is_in_force(&state, name)
                    // A shard that is behind may come to have it.
                    || (!everywhere && shard.health.is_live() && decision.definition.is_none()
                        && !decision.ends_board_of(&state, name))
            };
            if pending.get(name).is_some() || !self.shards.iter().all(arrived) {
                pending.note(name, recorded, everywhere);
            }
        }
        self.registry.note_number((*number).max(RecordNumber(decision.incarnation.0)));
        match decision.known() {
            Some(Known { incarnation, definition }) => {
                self.registry.adopt(name, &Known { incarnation, definition });
            }
            None => self.registry.forget(name, decision.incarnation),
        }
    }

    /// The last record of a board.
    pub(super) async fn last(&self, name: &BoardName) -> Result<Option<Recorded>, BoardRefused> {
        let unavailable = |error: &dyn std::fmt::Display| self.unavailable(error);
        let stream = self.managing.context.get_stream_no_info(self.names.boards_stream()).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        match stream.get_last_raw_message_by_subject(&self.names.board_subject(name)).await {
            Ok(message) if is_foreign(&message.payload) => {
                let sequence = message.sequence;
                let decision = self.held(name).unwrap_or(Decision::dropped(Incarnation(sequence)));
                Ok(Some(Recorded { sequence, number: RecordNumber(sequence), decision }))
            }
            Ok(message) => {
                let last = Recorded::read(message.sequence, &message.payload);
                let last =
                    last.ok_or_else(|| unavailable(&format!("what it says of {name} cannot be read")))?;
                // What is stored behind it gets a higher one.
                self.registry.note_number(last.number);
                Ok(Some(last))
            }
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// The last record of a board after another one was stored behind the one at `after`, or is about to be.
    async fn last_behind(&self, name: &BoardName, after: u64) -> Result<Option<Recorded>, BoardRefused> {
        let last = self.last(name).await?;
        if last.as_ref().map_or(0, |last| last.sequence) == after {
            tokio::time::sleep(OTHER_IS_STORED).await;
            return self.last(name).await;
        }
        Ok(last)
    }

    /// Stores a record if it follows the one at `after`; `None` if another one does.
    pub(super) async fn store(&self, stored: Stored) -> Result<Option<Recorded>, BoardRefused> {
        let record = stored.record.clone();
        let sent = self.send(stored).await?;
        self.stored(record, sent.await)
    }

    /// Stores records, all on their way at once. Each as it is stored, or `None` where another one was first.
    pub(super) async fn store_all(
        &self,
        records: Vec<Stored>,
    ) -> Vec<Result<Option<Recorded>, BoardRefused>> {
        let mut outcomes = Vec::with_capacity(records.len());
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let mut sent = Vec::new();
            for stored in records.by_ref().take(STORED_AT_ONCE) {
                sent.push((stored.record.clone(), self.send(stored).await));
            }
            // Together: each waits its timeout from when it is first polled, and a server may be gone with all of them.
            let stored = sent.into_iter().map(async |(record, sent)| match sent {
                Ok(sent) => self.stored(record, sent.await),
                Err(error) => Err(error),
            });
            outcomes.extend(join_all(stored).await);
        }
        outcomes
    }

    async fn send(&self, stored: Stored) -> Result<PublishAckFuture, BoardRefused> {
        let Stored { name, record, after } = stored;
        let message =
            PublishMessage::build().expected_last_subject_sequence(after).payload(record.encode().into());
        let sent = self.managing.context.send_publish(self.names.board_subject(&name), message).await;
        sent.map_err(|error| self.unavailable(&error))
    }

    fn stored(
        &self,
        record: Record,
        outcome: Result<PublishAck, PublishError>,
    ) -> Result<Option<Recorded>, BoardRefused> {
        match outcome {
            Ok(stored) => Ok(Some(record.stored_at(stored.sequence).expect("it was just written"))),
            Err(error) if another_was_first(&error) => Ok(None),
            Err(error) => Err(self.unavailable(&error)),
        }
    }
}

/// A single server says so with the sequence that it found. Of replicas, the one that leads refuses what follows the same
/// record as another that is not stored by all yet, and says so by another code, which the client has no name for.
fn another_was_first(error: &PublishError) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<jetstream::Error>());
    error.kind() == PublishErrorKind::WrongLastSequence
        || cause.is_some_and(|cause| cause.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}

//! Decisions on boards: each is a record that follows the one that its writer has read, or it is not stored.
//!
//! Knows: that what a shard holds counts as much as what the stream says, because the stream may have been lost. A board
//! that a shard holds is never begun anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;
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
use crate::queue::jetstream::boards::record::{Decision, Record, Recorded, is_foreign};
use crate::queue::jetstream::boards::{BoardRefused, Boards};
use crate::state::Incarnation;
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
        let brought = self.bring_at_once(name, &recorded.decision).await?;
        Ok((created, self.arrival(name, &recorded.decision, &brought).await?))
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
                return Err(BoardRefused::Unknown);
            };
            let decision = Decision::dropped(incarnation);
            let record = Record::of(&decision);
            if let Some(sequence) = self.store(Stored { name: name.clone(), record, after }).await? {
                break Recorded { sequence, decision };
            }
            last = self.last_behind(name, after).await?;
        };
        self.note(name, &recorded, true);
        let brought = self.bring_at_once(name, &recorded.decision).await?;
        self.arrival(name, &recorded.decision, &brought).await
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
            let said = last.map(|last| last.decision);
            let begun = Decision::later(said.clone(), self.held(name)).and_then(|held| held.known());
            let record = match &begun {
                Some(known) => {
                    if !known.definition.agrees_with(definition) {
                        return Err(DefineRefused::Conflict.into());
                    }
                    let decision = Decision::from(known);
                    if *known.definition == *definition && said.as_ref() == Some(&decision) {
                        let recorded = Recorded { sequence: after, decision };
                        self.note(name, &recorded, true);
                        return Ok((false, recorded));
                    }
                    // Something that may change does, or the stream has lost what a shard holds.
                    Record::first(Some(known.incarnation), definition)
                }
                None if self.registry.count_named(None) >= MAX_BOARDS => {
                    return Err(DefineRefused::TooMany.into());
                }
                None => Record::first(self.next_incarnation(), definition),
            };
            let body = record.encode();
            if let Some(sequence) = self.store(Stored { name: name.clone(), record, after }).await? {
                let recorded = Recorded::read(sequence, &body).expect("it was just written");
                self.note(name, &recorded, true);
                return Ok((begun.is_none(), recorded));
            }
            // Another one was first: what it decided holds.
            last = self.last_behind(name, after).await?;
        }
    }

    /// Sees to it that boards are there, with the defaults unless they are something else already: all of them on their
    /// way at once, so that many take hardly longer than one. Gives what is decided of each.
    pub(super) async fn decide_defaults(
        &self,
        names: Vec<BoardName>,
    ) -> Vec<(BoardName, Result<Decision, BoardRefused>)> {
        let definition = Definition::default();
        let (mut decided, mut new, mut others) = (Vec::with_capacity(names.len()), Vec::new(), Vec::new());
        for name in names {
            match self.held(&name) {
                Some(held) if held.definition.is_some() => decided.push((name, Ok(held))),
                Some(_) => others.push(name),
                None => new.push(name),
            }
        }
        let room = MAX_BOARDS.saturating_sub(self.registry.count_named(None));
        let too_many = new.split_off(room.min(new.len()));
        decided.extend(too_many.into_iter().map(|name| (name, Err(DefineRefused::TooMany.into()))));
        let records = new.iter().map(|name| Stored {
            name: name.clone(),
            record: Record::first(self.next_incarnation(), &definition),
            after: 0,
        });
        let records: Vec<_> = records.collect();
        let bodies: Vec<_> = records.iter().map(|stored| stored.record.encode()).collect();
        let outcomes = self.store_all(records).await;
        for ((name, body), outcome) in new.into_iter().zip(bodies).zip(outcomes) {
            match outcome {
                Ok(Some(sequence)) => {
                    let recorded = Recorded::read(sequence, &body).expect("it was just written");
                    self.note(&name, &recorded, true);
                    decided.push((name, Ok(recorded.decision)));
                }
                Ok(None) => others.push(name),
                Err(error) => decided.push((name, Err(error))),
            }
        }
        let others = others.into_iter().map(|name| async {
            let outcome = self.decide_default(&name).await;
            (name, outcome.map(|recorded| recorded.decision))
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
                Err(BoardRefused::Refused(DefineRefused::Conflict)) => {
                    let Some(recorded) = self.last(name).await? else {
                        return Err(DefineRefused::Conflict.into());
                    };
                    if recorded.decision.definition.is_some() {
                        self.note(name, &recorded, true);
                        return Ok(recorded);
                    }
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// The number of the next life, where the sequence of its first message might be lower than one that a shard knows.
    fn next_incarnation(&self) -> Option<Incarnation> {
        let latest = self.registry.last_incarnation();
        (self.reached.load(Ordering::Relaxed) < latest.0).then_some(Incarnation(latest.0 + 1))
    }

    /// What this node knows of a board, from its shards and from what is on its way to them.
    pub(super) fn held(&self, name: &BoardName) -> Option<Decision> {
        let mut held = self.registry.get(name.as_str()).map(|known| Decision::from(&known));
        let pending = self.pending.lock().get(name).map(|on_its_way| on_its_way.decision.clone());
        held = Decision::later(held, pending);
        for shard in &self.shards {
            let shard = shard.state.read();
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
        let Recorded { sequence, decision } = recorded;
        self.reached.fetch_max(*sequence, Ordering::Relaxed);
        {
            let mut pending = self.pending.lock();
            if pending.knows_later(name, *sequence) {
                return;
            }
            let arrived = |shard: &super::BoardsOfShard| {
                let state = shard.state.read();
                decision.is_in_force(&state, name)
                    // A shard that is behind may come to have it.
                    || (!everywhere && shard.health.is_live() && decision.definition.is_none()
                        && !decision.ends_board_of(&state, name))
            };
            if pending.get(name).is_some() || !self.shards.iter().all(arrived) {
                pending.note(name, recorded, everywhere);
            }
        }
        self.registry.note_incarnation(decision.incarnation);
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
                Ok(Some(Recorded { sequence, decision }))
            }
            Ok(message) => Recorded::read(message.sequence, &message.payload)
                .map(Some)
                .ok_or_else(|| unavailable(&format!("what it says of {name} cannot be read"))),
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
    pub(super) async fn store(&self, stored: Stored) -> Result<Option<u64>, BoardRefused> {
        let sent = self.send(stored).await?;
        self.stored(sent.await)
    }

    /// Stores records, all on their way at once. Of each its sequence, or `None` where another one was first.
    pub(super) async fn store_all(&self, records: Vec<Stored>) -> Vec<Result<Option<u64>, BoardRefused>> {
        let mut outcomes = Vec::with_capacity(records.len());
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let mut sent = Vec::new();
            for stored in records.by_ref().take(STORED_AT_ONCE) {
                sent.push(self.send(stored).await);
            }
            // Together: each waits its timeout from when it is first polled, and a server may be gone with all of them.
            let stored = sent.into_iter().map(async |sent| match sent {
                Ok(sent) => self.stored(sent.await),
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

    fn stored(&self, outcome: Result<PublishAck, PublishError>) -> Result<Option<u64>, BoardRefused> {
        match outcome {
            Ok(stored) => {
                self.reached.fetch_max(stored.sequence, Ordering::Relaxed);
                Ok(Some(stored.sequence))
            }
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

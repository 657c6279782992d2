//! Reconciles the boards' stream with the shards, after the stream may have lost records.
//!
//! The stream can be lost: deleted and created again, or restored from an old copy. The shards keep their
//! boards, which were delivered through their own streams. So a board that a shard holds and the stream does
//! not know is stored in the stream again, as the same life, before anything may be decided. Otherwise the
//! next definition of it would begin a new life, and every shard would drop the entries of the old one.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::stream::LastRawMessageErrorKind;

use crate::applied_sequence::Ending;
use crate::queue::nats::boards::boards_stream::{BoardsStream, ForeignShard};
use crate::queue::nats::boards::decision::Decision;
use crate::queue::nats::boards::following::LastRecords;
use crate::queue::nats::boards::record::RecordJson;
use crate::queue::nats::boards::store::NewRecord;
use crate::queue::nats::message::{self, Control};
use crate::queue::nats::shard::NatsShard;
use crate::state::{Incarnation, RecordNumber};
use crate::state_lock::Purpose;
use crate::types::{BoardName, Sequence};
use crate::writer::Payload;

/// Boards looked at under one hold of a lock.
const LOOKED_AT_ONCE: usize = 256;
/// How often a shard that is waited for is checked for being halted.
const RECHECK_INTERVAL: Duration = Duration::from_millis(200);
/// How often shards are compared with their streams again while one does not fit.
const COMPARE_INTERVAL: Duration = Duration::from_secs(1);

impl BoardsStream {
    /// Stores records again that the stream has lost, and ends that it has not heard of. Nothing is stored
    /// while this node has a shard whose data are not of its stream: a node with the wrong data must not
    /// change what boards there are on others.
    ///
    /// # Arguments
    /// `in_stream`: the records of the stream, read from the beginning.
    ///
    /// # Errors
    /// When the servers do not answer.
    pub(super) async fn reconcile(&self, in_stream: &LastRecords) -> Result<(), String> {
        loop {
            self.wait_until_none_is_foreign(in_stream).await?;
            let mut all_waited_for = true;
            for shard in &self.shards {
                all_waited_for &=
                    self.wait_for_commands(shard, |board, life| in_stream.has_life(board, life)).await?;
            }
            let mut records = self.lost(in_stream);
            if !records.is_empty() {
                // A board that seems lost may have been dropped: the stream has forgotten the drop, and the
                // shard has yet to apply it. And an end counts on the word of a shard that is live.
                for shard in self.shards.iter().filter(|_| !all_waited_for) {
                    self.wait_for_commands(shard, |_, _| false).await?;
                }
                for shard in &self.shards {
                    wait_until_live(shard).await?;
                }
                records = self.lost(in_stream);
            }
            self.set_aside(in_stream, |shard| !shard.is_halted());
            if records.is_empty() {
                return Ok(());
            }
            // The streams may have been made again while shards were waited for.
            if self.foreign_shards().await?.is_empty() {
                return self.store_lost(records).await;
            }
        }
    }

    async fn store_lost(&self, records: Vec<NewRecord>) -> Result<(), String> {
        let boards = records.len();
        tracing::warn!(
            boards,
            "the boards' stream lost records of boards that shards hold; storing them there again"
        );
        let names: Vec<BoardName> = records.iter().map(|new| new.name.clone()).collect();
        let outcomes = self.store_all(records).await;
        for (name, outcome) in names.iter().zip(outcomes) {
            // If another node won the race, its record is read in its turn.
            if let Some(recorded) = outcome.map_err(|error| error.to_string())? {
                self.note(name, &recorded, true);
            }
        }
        Ok(())
    }

    /// Waits until the data of all of this node's shards are of their streams: an operator may mend the
    /// streams, or accept them.
    async fn wait_until_none_is_foreign(&self, in_stream: &LastRecords) -> Result<(), String> {
        loop {
            let foreign = self.foreign_shards().await?;
            let is_none = foreign.is_empty();
            for ForeignShard { shard, why } in &foreign {
                if !self.foreign.lock().iter().any(|known| known.shard == *shard) {
                    tracing::warn!(%shard, why, "the data of this shard are not of its stream: this node does not ask it about boards, and changes nothing in the boards' stream");
                }
            }
            self.foreign.lock().clone_from(&foreign);
            if is_none {
                return Ok(());
            }
            self.set_aside(in_stream, |shard| !foreign.iter().any(|foreign| foreign.shard == shard.id));
            tokio::time::sleep(COMPARE_INTERVAL).await;
        }
    }

    /// Waits until a shard has applied the last command in its stream, because what it knows of boards may be
    /// out of date before. There is no need to wait if the boards' stream has that command's record. Returns
    /// whether it waited.
    async fn wait_for_commands(
        &self,
        shard: &NatsShard,
        is_said: impl Fn(&BoardName, Incarnation) -> bool,
    ) -> Result<bool, String> {
        let Some((sequence, command)) = self.last_command(shard).await? else { return Ok(true) };
        let said = match command {
            Control::Command(
                Payload::Define { board, incarnation, .. } | Payload::Drop { board, incarnation, .. },
            ) => is_said(&board, incarnation),
            // These say nothing about which boards there are.
            Control::Command(
                Payload::Jobs(_)
                | Payload::Trim { .. }
                | Payload::Store(_)
                | Payload::Erase { .. }
                | Payload::Unpark { .. }
                | Payload::Tick,
            )
            | Control::Unknown(_) => false,
        };
        if said {
            return Ok(false);
        }
        self.wait_until_applied(shard, sequence).await?;
        Ok(true)
    }

    /// The last command in a shard's stream, with its sequence there; `None` if there is none.
    pub(super) async fn last_command(&self, shard: &NatsShard) -> Result<Option<(u64, Control)>, String> {
        let (stream, subject) = (self.names.jobs_stream(shard.id), self.names.control_subject(shard.id));
        let stream = self.managing.context.get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(last) => {
                let command = message::decode_control(Some(&last.headers), &last.payload);
                Ok(Some((last.sequence, command)))
            }
            Err(error) => match error.kind() {
                LastRawMessageErrorKind::NoMessageFound => Ok(None),
                // A shard without its stream halts, and learns nothing more.
                LastRawMessageErrorKind::JetStream(error) if error.code() == 404 => Ok(None),
                _ => Err(error.to_string()),
            },
        }
    }

    /// Waits until a shard has applied its stream up to a sequence, or is halted.
    pub(super) async fn wait_until_applied(&self, shard: &NatsShard, sequence: u64) -> Result<(), String> {
        let is_applied = |applied: Sequence| {
            // Unknown until a session has read the stream's state.
            let offset = shard.stream.sequence_offset();
            offset.is_some_and(|offset| applied.0 >= sequence.saturating_add(offset))
        };
        loop {
            let seen = shard.applied.get();
            if is_applied(seen) || shard.is_halted() {
                return Ok(());
            }
            // After a change, or after a while, the loop checks again.
            if let Ok(Err(Ending)) = tokio::time::timeout(RECHECK_INTERVAL, shard.applied.pass(seen)).await {
                return Err(format!("the writer of shard {} has ended", shard.id));
            }
        }
    }

    /// The records that the stream lacks. Halted shards are not asked: the stream may have forgotten drops
    /// that such a shard never applied. That a life has ended is stored on the word of a live shard alone,
    /// which has applied what its stream holds.
    fn lost(&self, in_stream: &LastRecords) -> Vec<NewRecord> {
        let mut held: BTreeMap<BoardName, Decision> = BTreeMap::new();
        let mut hold = |name: &BoardName, decision: Decision| {
            let said = in_stream.records.get(name).map(|recorded| &recorded.decision);
            if said.is_none_or(|said| said.incarnation < decision.incarnation) {
                let known = held.remove(name);
                held.extend(Decision::later(known, Some(decision)).map(|later| (name.clone(), later)));
            }
        };
        for shard in &self.shards {
            self.registry.observe_number(shard.state.read(Purpose::Boards).dropped().latest());
            if shard.is_halted() {
                continue;
            }
            let mut after: Option<BoardName> = None;
            loop {
                let state = shard.state.read(Purpose::Boards);
                let mut looked = 0;
                for (name, board) in state.boards_after(after.clone().as_ref()).take(LOOKED_AT_ONCE) {
                    self.registry.observe_number(RecordNumber(board.incarnation.0));
                    let definition = Some(std::sync::Arc::clone(&board.definition));
                    hold(name, Decision { incarnation: board.incarnation, definition });
                    after = Some(name.clone());
                    looked += 1;
                }
                if looked < LOOKED_AT_ONCE {
                    break;
                }
            }
        }
        let mut after: Option<BoardName> = None;
        loop {
            let boards = self.registry.decided_after(after.as_ref(), LOOKED_AT_ONCE);
            for (name, known) in &boards {
                if !self.is_held_only_by_halted(name, known.incarnation) {
                    hold(name, Decision::from(known));
                }
            }
            match boards.into_iter().next_back() {
                Some((name, _)) => after = Some(name),
                None => break,
            }
        }
        // An incarnation that ended on one shard has ended on all.
        let has_ended = |name: &BoardName, decision: &Decision| {
            let says_so = |shard: &NatsShard| {
                shard.state.read(Purpose::Boards).has_ended(name.as_str(), decision.incarnation)
            };
            self.shards.iter().any(|shard| shard.health.is_live() && says_so(shard))
        };
        let held = held.into_iter().map(|(name, decision)| {
            let over = has_ended(&name, &decision);
            (name, if over { Decision::dropped(decision.incarnation) } else { decision })
        });
        let alive = in_stream.records.iter().filter(|(_, recorded)| recorded.is_alive());
        let outlived = alive.filter(|(name, recorded)| has_ended(name, &recorded.decision));
        let outlived =
            outlived.map(|(name, recorded)| (name.clone(), Decision::dropped(recorded.decision.incarnation)));
        let records = outlived.chain(held).collect::<BTreeMap<_, _>>().into_iter();
        // A record of a newer version that cannot be read here stays as it is.
        let records = records.filter(|(name, _)| !in_stream.unreadable.contains(name));
        let number = self.next_number();
        let records = records.map(|(name, decision)| {
            let after = in_stream.records.get(&name).map_or(0, |recorded| recorded.sequence);
            NewRecord { record: RecordJson::of(&decision, number), name, after }
        });
        records.collect()
    }

    /// Whether shards of this node hold this life of a board, and all of them are halted.
    fn is_held_only_by_halted(&self, name: &BoardName, life: Incarnation) -> bool {
        let holds = |shard: &&NatsShard| {
            let state = shard.state.read(Purpose::Boards);
            state.board(name.as_str()).is_some_and(|board| board.incarnation == life)
        };
        let mut holders = self.shards.iter().filter(holds).peekable();
        holders.peek().is_some() && holders.all(NatsShard::is_halted)
    }
}

/// Waits until a shard is live, or is halted and so left out.
async fn wait_until_live(shard: &NatsShard) -> Result<(), String> {
    loop {
        let seen = shard.applied.get();
        if shard.health.is_live() || shard.is_halted() {
            return Ok(());
        }
        // After a change, or after a while, the loop checks again.
        if let Ok(Err(Ending)) = tokio::time::timeout(RECHECK_INTERVAL, shard.applied.pass(seen)).await {
            return Err(format!("the writer of shard {} has ended", shard.id));
        }
    }
}

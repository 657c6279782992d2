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
use crate::queue::nats::boards::boards_stream::BoardsStream;
use crate::queue::nats::boards::decision::Decision;
use crate::queue::nats::boards::last_records::LastRecords;
use crate::queue::nats::boards::record::RecordJson;
use crate::queue::nats::boards::store::NewRecord;
use crate::queue::nats::message::{self, Control};
use crate::queue::nats::shard::NatsShard;
use crate::state::{Incarnation, RecordNumber};
use crate::state_lock::Purpose;
use crate::types::{BoardName, Sequence, ShardId};
use crate::writer::{Payload, ShardState};

/// Boards looked at under one hold of a lock.
const LOOKED_AT_ONCE: usize = 256;
/// How often a shard that is waited for is checked for being halted.
const RECHECK_INTERVAL: Duration = Duration::from_millis(200);

impl BoardsStream {
    /// Stores records again that the stream has lost.
    ///
    /// # Arguments
    /// `in_stream`: the records of the stream, read from the beginning.
    ///
    /// # Errors
    /// When the servers do not answer.
    pub(super) async fn reconcile(&self, in_stream: &LastRecords) -> Result<(), String> {
        let without_nats = self.filled_without_nats()?;
        let mut all_waited_for = true;
        for shard in &self.shards {
            all_waited_for &=
                self.wait_for_commands(shard, |board, life| in_stream.has_life(board, life)).await?;
        }
        let mut records = self.lost(in_stream, &without_nats);
        if !records.is_empty() && !all_waited_for {
            // A board that seems lost may have been dropped: the stream has forgotten the drop, and the shard
            // has yet to apply it.
            for shard in &self.shards {
                self.wait_for_commands(shard, |_, _| false).await?;
            }
            records = self.lost(in_stream, &without_nats);
        }
        if records.is_empty() {
            return Ok(());
        }
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

    /// Waits until a shard has applied the last command in its stream, because what it knows of boards may be
    /// out of date before. There is no need to wait if the boards' stream has that command's record. Returns
    /// whether it waited.
    async fn wait_for_commands(
        &self,
        shard: &NatsShard,
        is_said: impl Fn(&BoardName, Incarnation) -> bool,
    ) -> Result<bool, String> {
        let (stream, subject) = (self.names.jobs_stream(shard.id), self.names.control_subject(shard.id));
        let stream = self.managing.context.get_stream_no_info(stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let last = match stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => message,
            Err(error) => {
                return match error.kind() {
                    LastRawMessageErrorKind::NoMessageFound => Ok(true),
                    // A shard without its stream halts, and learns nothing more.
                    LastRawMessageErrorKind::JetStream(error) if error.code() == 404 => Ok(true),
                    _ => Err(error.to_string()),
                };
            }
        };
        let said = match message::decode_control(Some(&last.headers), &last.payload) {
            Control::Command(
                Payload::Define { board, incarnation, .. } | Payload::Drop { board, incarnation, .. },
            ) => is_said(&board, incarnation),
            // These say nothing about which boards there are.
            Control::Command(
                Payload::Jobs(_) | Payload::Trim { .. } | Payload::Unpark { .. } | Payload::Tick,
            )
            | Control::Unknown(_) => false,
        };
        let is_applied = |applied: Sequence| {
            // Unknown until a session has read the stream's state.
            let offset = shard.stream.sequence_offset();
            offset.is_some_and(|offset| applied.0 >= last.sequence.saturating_add(offset))
        };
        if said {
            return Ok(false);
        }
        loop {
            let seen = shard.applied.get();
            if is_applied(seen) || is_halted(shard) {
                return Ok(true);
            }
            // After a change, or after a while, the loop checks again.
            if let Ok(Err(Ending)) = tokio::time::timeout(RECHECK_INTERVAL, shard.applied.pass(seen)).await {
                return Err(format!("the writer of shard {} has ended", shard.id));
            }
        }
    }

    /// The shards that were filled without NATS. No stream continues them, so they halt, and their boards are
    /// none of this stream's: it has not lost them.
    fn filled_without_nats(&self) -> Result<Vec<ShardId>, String> {
        let mut found = Vec::new();
        // Halted shards are left out anyhow, and some of them have closed their stores.
        for shard in self.shards.iter().filter(|shard| !is_halted(shard)) {
            let meta = shard.store.get().and_then(|store| store.meta()).map_err(|error| error.to_string())?;
            if meta.is_some_and(|meta| meta.applied_sequence > 0 && meta.stream.is_empty()) {
                found.push(shard.id);
            }
        }
        Ok(found)
    }

    /// The records that the stream lacks. Halted shards are not asked: the stream may have forgotten drops
    /// that such a shard never applied. Boards that only halted shards hold are kept, because `decide` asks
    /// those shards, too.
    fn lost(&self, in_stream: &LastRecords, without_nats: &[ShardId]) -> Vec<NewRecord> {
        let is_left_out = |shard: &NatsShard| is_halted(shard) || without_nats.contains(&shard.id);
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
            if is_left_out(shard) {
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
            let boards = self.registry.page_after(after.as_ref(), LOOKED_AT_ONCE, |_| true);
            for (name, known) in boards.iter().filter(|(name, _)| !self.is_held_only_by(name, is_left_out)) {
                hold(name, Decision::from(known));
            }
            match boards.into_iter().next_back() {
                Some((name, _)) => after = Some(name),
                None => break,
            }
        }
        // An incarnation that ended on one shard has ended on all.
        let has_ended = |name: &BoardName, decision: &Decision| {
            self.shards
                .iter()
                .any(|shard| shard.state.read(Purpose::Boards).has_ended(name.as_str(), decision.incarnation))
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

    fn is_held_only_by(&self, name: &BoardName, those: impl Fn(&NatsShard) -> bool) -> bool {
        let holds = |shard: &&NatsShard| shard.state.read(Purpose::Boards).board(name.as_str()).is_some();
        let mut holders = self.shards.iter().filter(holds).peekable();
        holders.peek().is_some() && holders.all(those)
    }
}

fn is_halted(shard: &NatsShard) -> bool {
    matches!(shard.health.state(), ShardState::Halted(_))
}

//! What this node knows of a board, from the stream and from its own shards. The stream may have been lost,
//! so what a shard holds counts as much as what the stream says, unless the shard is halted.

use std::sync::Arc;

use crate::queue::nats::boards::boards_stream::BoardsStream;
use crate::queue::nats::boards::decision::{Decision, Record};
use crate::queue::nats::shard::NatsShard;
use crate::state::RecordNumber;
use crate::state_lock::Purpose;
use crate::types::BoardName;
use crate::writer::RegisteredBoard;

impl BoardsStream {
    /// What this node knows of a board, from its shards and from decisions that are pending.
    pub(super) fn held(&self, name: &BoardName) -> Option<Decision> {
        let mut held = self.registry.get(name.as_str()).map(|known| Decision::from(&known));
        let pending = self.pending.lock().get(name).map(|on_its_way| on_its_way.recorded.decision.clone());
        held = Decision::later(held, pending);
        // A shard that is halted may lack what ended, or hold what another stream numbered.
        for shard in self.shards.iter().filter(|shard| !shard.is_halted()) {
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

    /// Notes what the stream says of a board, and has it delivered to the shards that lack it.
    ///
    /// # Arguments
    /// `everywhere`: whether a drop is delivered to shards that never had the board, too.
    pub(super) fn note(&self, name: &BoardName, recorded: &Record, everywhere: bool) {
        let Record { sequence, number, decision } = recorded;
        // Held until the registry has it: whoever notes a drop meanwhile must not be overtaken by the
        // definition that it ends.
        let mut pending = self.pending.lock();
        if pending.knows_later(name, *sequence) {
            return;
        }
        let arrived = |shard: &NatsShard| {
            let state = shard.state.read(Purpose::Boards);
            recorded.is_in_force(&state, name)
                // A shard that is behind its stream may come to have the board.
                || (!everywhere && shard.health.is_live() && decision.definition.is_none()
                    && !decision.ends_board_of(&state, name))
        };
        let ends_life = !self.others.is_empty()
            && self.registry.get(name.as_str()).is_some_and(|known| match decision.definition {
                Some(_) => known.incarnation < decision.incarnation,
                None => known.incarnation <= decision.incarnation,
            });
        if pending.get(name).is_some() || ends_life || !self.shards.iter().all(arrived) {
            pending.note(name, recorded, everywhere, ends_life);
        }
        self.registry.observe_number((*number).max(RecordNumber(decision.incarnation.0)));
        match decision.known() {
            Some(RegisteredBoard { incarnation, definition }) => {
                self.registry.apply_remote(name, &RegisteredBoard { incarnation, definition });
            }
            None => self.registry.forget(name, decision.incarnation),
        }
    }

    /// A number for the next record, above all that this node ever saw in the stream or on its shards. If
    /// nothing was lost, the record's own sequence is as high. A stream that was lost begins again with low
    /// sequences.
    pub(super) fn next_number(&self) -> RecordNumber {
        let met = self.shards.iter().map(|shard| shard.state.read(Purpose::Boards).dropped().latest().0);
        let latest = met.max().unwrap_or(0).max(self.registry.last_incarnation().0);
        RecordNumber(latest.saturating_add(1))
    }

    /// Whether a shard lacks the board and would ignore this record as a late one.
    pub(super) fn is_too_late(&self, name: &BoardName, recorded: &Record) -> bool {
        self.shards.iter().any(|shard| recorded.is_too_late_for(&shard.state.read(Purpose::Boards), name))
    }
}

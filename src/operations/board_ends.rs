//! Boards that end by themselves: one that is over is dropped as `DELETE` drops one.
//!
//! Knows: that a board is over by the time of the shards, which no clock of a node has to say. Each node
//! looks at its registry; the first one that decides drops the board, and to the others it is unknown then.
//! The order of each shard's log says what goes with the board: a job before the drop does, and one after it
//! is of the name's next life.

use std::sync::Arc;
use std::time::Duration;

use crate::board::{DefinitionPatch, Field};
use crate::operations::boards::BoardChanges;
use crate::operations::failure::Failure;
use crate::operations::shared::Operations;
use crate::query::{BoardEnd, BoardEnds, NoBoard, ReadOptions, read};
use crate::queue::nats::BoardRefused;
use crate::types::{AsOf, BoardName, Timestamp};
use crate::writer::{BoardChange, DefineRefused, EndingBoard};

/// It is tried again after so long if a board could not be dropped, or it is not known whether it is over.
const RETRY: Duration = Duration::from_secs(5);

impl Operations {
    /// When a board ends, as far as is known. `None`: there is no such board.
    ///
    /// # Errors
    /// When some shard does not reply.
    pub async fn board_end(&self, board: &BoardName) -> Result<Option<BoardEnd>, Failure> {
        let asked = BoardEnds { board: board.clone() };
        Ok(read(&self.node, &self.registry, &asked, &ReadOptions::default()).await?.answer)
    }

    /// Drops a board if it is over by a time that the shards have reached. Otherwise it is noted when that is
    /// to be looked at next.
    pub async fn end_board(self: &Arc<Self>, ending: EndingBoard, reached: Timestamp) {
        let (name, life) = (ending.name.clone(), ending.known.incarnation);
        // In case it fails, and until the registry has heard of the drop.
        self.registry.look_later(&name, life, reached.plus(RETRY));
        let ended = self.change_boards(move |boards| boards.end(ending, reached), |_| ()).await;
        match ended {
            Ok(true) => tracing::info!(board = %name, "a board ended, and was dropped"),
            Ok(false)
            // It ends once it is not read-only any more.
            | Err(
                Failure::ReadOnly(..)
                | Failure::NoBoard(NoBoard::Unknown)
                | Failure::Board(BoardRefused::Refused(DefineRefused::Unknown)),
            ) => {}
            Err(why) => {
                tracing::warn!(board = %name, ?why, "a board that ended could not be dropped; trying again");
            }
        }
    }
}

impl BoardChanges {
    /// Has a board end at a time, or not by itself: `None`. Returns `None` if there is no such board.
    ///
    /// # Errors
    /// When a shard does not take the change.
    pub async fn expire(self, name: BoardName, at: Option<Timestamp>) -> Result<Option<AsOf>, Failure> {
        if self.definition_of(&name).await?.is_none() {
            return Ok(None);
        }
        let patch = DefinitionPatch {
            expires_at: at.map_or(Field::Default, Field::Value),
            expires_after_micros: Field::Default,
            ..DefinitionPatch::default()
        };
        let change = BoardChange::Define(patch);
        self.check_change(&name, &change).await?;
        Ok(Some(self.change(&name, &change, None).await?.token))
    }

    /// Drops a board if it is over by a time. Says whether it was.
    async fn end(self, ending: EndingBoard, reached: Timestamp) -> Result<bool, Failure> {
        let EndingBoard { name, known, being_dropped } = ending;
        if !being_dropped {
            let Some(end) = self.operations.board_end(&name).await? else { return Ok(false) };
            if end.known != known {
                // It was defined anew meanwhile, and is looked at anew.
                return Ok(false);
            }
            if end.at.is_none_or(|at| at > reached) {
                let at = if end.is_unheard { end.at.min(Some(reached.plus(RETRY))) } else { end.at };
                let at = at.unwrap_or_else(|| reached.plus(RETRY));
                self.operations.registry.look_later(&name, known.incarnation, at);
                return Ok(false);
            }
        }
        let _: AsOf = self.drop_life(name, Some(&known)).await?;
        Ok(true)
    }
}

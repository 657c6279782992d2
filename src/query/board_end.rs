//! When a board ends that ends by itself.
//!
//! Knows: that the last job of a board may be on any shard. Must not know: who drops it then.

use crate::query::question::BoardLife;
use crate::query::read::ShardsRead;
use crate::query::read_shards::ReadShards;
use crate::query::remote_shards::ReadError;
use crate::types::{BoardName, Timestamp};
use crate::writer::{RegisteredBoard, Registry};

/// Reads when a board ends. `None`: there is no such board.
pub struct BoardEnds {
    pub board: BoardName,
}

/// When a board ends, as far as is known.
#[derive(Debug, Clone)]
pub struct BoardEnd {
    pub known: RegisteredBoard,
    /// `None`: it does not by itself, or some shard has not heard yet that it does.
    pub at: Option<Timestamp>,
    /// Whether some shard has not heard of it yet.
    pub is_unheard: bool,
}

impl ShardsRead for BoardEnds {
    type Answer = Option<BoardEnd>;

    /// Last jobs are no entries.
    fn is_about(&self, _: &BoardName) -> bool {
        false
    }

    async fn read<'r>(
        &'r self,
        shards: ReadShards<'r>,
        registry: &'r Registry,
    ) -> Result<Self::Answer, ReadError> {
        let Some(known) = registry.get(self.board.as_str()) else { return Ok(None) };
        if known.definition.expires_after_micros.is_none() {
            let at = known.definition.ends_at(None);
            return Ok(Some(BoardEnd { known, at, is_unheard: false }));
        }
        let life = BoardLife { board: self.board.clone(), incarnation: known.incarnation };
        let last = shards.last_jobs(life).await?;
        let is_unheard = last.iter().any(Option::is_none);
        // What a shard may still hear of is later than what the others know.
        let latest = last.into_iter().flatten().max().filter(|_| !is_unheard);
        let at = known.definition.ends_at(latest);
        Ok(Some(BoardEnd { known, at, is_unheard }))
    }
}

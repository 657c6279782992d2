//! The lives of boards that questions are about.

use crate::state::{Incarnation, Shard};
use crate::types::BoardName;

/// A board as one of its lives, so that no count mixes two of them; or an instance of one of its windows,
/// under the name by which shards keep it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoardLife {
    pub board: BoardName,
    pub incarnation: Incarnation,
}

/// Whether a life of a board is on a shard at the reply's sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LifeOnShard {
    /// The shard does not know of it yet. It counts as empty.
    #[default]
    NotYet,
    Here,
    /// It was dropped or cleared, so the registry that the question was made from is behind.
    Over,
}

/// Whether the life is on the shard. Instances are over when their board is. One that no job has entered, or
/// that was dropped because enough newer ones have closed, counts as empty.
pub fn life_of(shard: &Shard, life: &BoardLife) -> LifeOnShard {
    if shard.board(life.board.as_str()).is_some_and(|board| board.incarnation == life.incarnation) {
        LifeOnShard::Here
    } else if shard.has_ended(life.board.split().0, life.incarnation) {
        LifeOnShard::Over
    } else {
        LifeOnShard::NotYet
    }
}

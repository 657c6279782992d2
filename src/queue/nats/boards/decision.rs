//! What was decided about a board, and whether a shard has it.

use std::sync::Arc;

use crate::board::Definition;
use crate::state::{Incarnation, RecordNumber, Shard};
use crate::types::BoardName;
use crate::writer::{Payload, RegisteredBoard};

/// What was decided about a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub incarnation: Incarnation,
    /// `None`: the board is dropped.
    pub definition: Option<Arc<Definition>>,
}

impl Decision {
    pub fn dropped(incarnation: Incarnation) -> Self {
        Self { incarnation, definition: None }
    }

    pub fn known(&self) -> Option<RegisteredBoard> {
        let definition = Arc::clone(self.definition.as_ref()?);
        Some(RegisteredBoard { incarnation: self.incarnation, definition })
    }

    /// The later one of two decisions. A drop comes after all other decisions about the same life.
    pub fn later(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let order = |decision: &Self| (decision.incarnation, decision.definition.is_none());
        match (one, other) {
            (Some(one), Some(other)) => Some(if order(&other) > order(&one) { other } else { one }),
            (one, other) => one.or(other),
        }
    }

    /// Whether a shard holds a life that this decision has ended.
    pub fn ends_board_of(&self, shard: &Shard, name: &BoardName) -> bool {
        let held = shard.board(name.as_str()).map(|board| board.incarnation);
        self.definition.is_none() && held.is_some_and(|held| held <= self.incarnation)
    }
}

impl From<&RegisteredBoard> for Decision {
    fn from(known: &RegisteredBoard) -> Self {
        Self { incarnation: known.incarnation, definition: Some(Arc::clone(&known.definition)) }
    }
}

/// A decision as its record says it, with its place in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The record's sequence, which the next record of this board has to follow.
    pub sequence: u64,
    /// Rises along the records of a board, also if the stream was lost between two of them. At least the
    /// sequence.
    pub number: RecordNumber,
    pub decision: Decision,
}

impl Record {
    pub fn is_alive(&self) -> bool {
        self.decision.definition.is_some()
    }

    /// The command that delivers the decision to a shard.
    pub fn payload(&self, name: &BoardName) -> Payload {
        let (board, incarnation, number) = (name.clone(), self.decision.incarnation, Some(self.number));
        match &self.decision.definition {
            Some(definition) => {
                Payload::Define { board, incarnation, number, definition: Arc::clone(definition) }
            }
            None => Payload::Drop { board, incarnation, number },
        }
    }

    /// Whether a shard holds the board as it was decided, or its next life already. For a drop: whether no
    /// earlier definition can bring the board back.
    pub fn is_in_force(&self, shard: &Shard, name: &BoardName) -> bool {
        let Decision { incarnation, definition } = &self.decision;
        match (definition, shard.board(name.as_str())) {
            (None, Some(board)) => board.incarnation > *incarnation,
            (None, None) => {
                let dropped = shard.dropped();
                dropped.has_ended(name.as_str(), *incarnation) || dropped.is_forgotten(Some(self.number))
            }
            (Some(_), None) => false,
            (Some(definition), Some(board)) => {
                board.incarnation > *incarnation
                    || (board.incarnation == *incarnation && board.definition == *definition)
            }
        }
    }

    /// Whether a shard would ignore this definition as a late one: it lacks the board, and has forgotten
    /// drops with later numbers. A later record of the same life would be accepted.
    pub fn is_too_late_for(&self, shard: &Shard, name: &BoardName) -> bool {
        self.is_alive()
            && shard.board(name.as_str()).is_none()
            && !shard.has_ended(name.as_str(), self.decision.incarnation)
            && shard.dropped().is_forgotten(Some(self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{BoardEvent, REMEMBERED_MAX, Step};
    use crate::types::ShardId;

    #[test]
    fn the_later_life_wins_and_of_one_life_its_drop() {
        let alive = |life| Decision { incarnation: Incarnation(life), definition: Some(Arc::default()) };
        let dropped = |life| Decision::dropped(Incarnation(life));
        for (one, other, expect) in [
            (Some(alive(1)), Some(alive(2)), Some(alive(2))),
            (Some(alive(1)), Some(dropped(1)), Some(dropped(1))),
            (Some(alive(2)), Some(dropped(1)), Some(alive(2))),
            (None, Some(alive(1)), Some(alive(1))),
            (None, None, None),
        ] {
            assert_eq!(Decision::later(one.clone(), other.clone()), expect);
            assert_eq!(Decision::later(other, one), expect);
        }
    }

    /// By forgotten drops a shard judges that a drop is in force, and that a definition is late. Boards that
    /// the shard holds are not affected, however low their numbers are.
    #[test]
    fn forgotten_drops_end_no_board_that_a_shard_holds() {
        let name = |text: &str| BoardName::new(text).expect("a good name");
        let number = |number| Some(RecordNumber(number));
        let mut shard = Shard::new(ShardId(0));
        let define = BoardEvent::Define {
            board: name("held"),
            incarnation: Incarnation(1),
            number: number(1),
            definition: Arc::default(),
        };
        let most = u64::try_from(REMEMBERED_MAX).expect("a count");
        let drops = (1..=most + 9).map(|life| BoardEvent::Drop {
            board: name(&format!("b{life}")),
            incarnation: Incarnation(life),
            number: number(life),
        });
        let events = std::iter::once(define).chain(drops).collect();
        shard.apply(&Step { events, ..Step::default() });
        assert_eq!(shard.dropped().forgotten(), RecordNumber(9));
        let recorded = |number, life, definition: Option<Arc<Definition>>| Record {
            sequence: 1,
            number: RecordNumber(number),
            decision: Decision { incarnation: Incarnation(life), definition },
        };
        let alive = |number, life| recorded(number, life, Some(Arc::default()));
        for (board, record, in_force, too_late) in [
            ("held", alive(1, 1), true, false),
            ("held", recorded(2, 1, None), false, false),
            ("lost", alive(9, 9), false, true),
            ("lost", alive(10, 9), false, false),
            ("lost", recorded(9, 9, None), true, false),
            ("lost", recorded(10, 9, None), false, false),
            ("b10", alive(10, 10), false, false),
            ("b10", recorded(11, 10, None), true, false),
        ] {
            assert_eq!(record.is_in_force(&shard, &name(board)), in_force, "{board} {record:?}");
            assert_eq!(record.is_too_late_for(&shard, &name(board)), too_late, "{board} {record:?}");
        }
        assert!(!shard.has_ended("held", Incarnation(1)) && !shard.has_ended("lost", Incarnation(9)));
    }
}

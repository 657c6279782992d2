//! What the boards' stream says of a board, as bytes and read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::board::Definition;
use crate::queue::nats::message::DefinitionJson;
use crate::state::{Incarnation, RecordNumber, Shard};
use crate::types::BoardName;
use crate::writer::{Known, Payload};

/// A message of the boards' stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Absent in a life's first message, whose number it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<u64>,
    /// The record's number, unless its sequence is higher. Absent in records of before there were numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    /// Absent once it is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionJson>,
}

impl Record {
    /// The first message of a life.
    ///
    /// # Arguments
    /// `number`: above that of every record of the name before it.
    pub fn first(number: RecordNumber, definition: &Definition) -> Self {
        Self { incarnation: None, number: Some(number.0), definition: Some(definition.into()) }
    }

    /// Another message of a life.
    ///
    /// # Arguments
    /// `number`: above that of every record of the name before it.
    pub fn of(decision: &Decision, number: RecordNumber) -> Self {
        Self {
            incarnation: Some(decision.incarnation.0),
            number: Some(number.0),
            definition: decision.definition.as_deref().map(Into::into),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has no maps with odd keys")
    }

    /// What it says where it is stored; `None` if its definition is none.
    pub fn stored_at(self, sequence: u64) -> Option<Recorded> {
        let number = RecordNumber(sequence.max(self.number.unwrap_or(0)));
        let incarnation = Incarnation(self.incarnation.unwrap_or(number.0));
        let definition = match self.definition {
            Some(definition) => Some(Arc::new(definition.read()?)),
            None => None,
        };
        Some(Recorded { sequence, number, decision: Decision { incarnation, definition } })
    }
}

/// What is decided of a board.
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

    pub fn known(&self) -> Option<Known> {
        let definition = Arc::clone(self.definition.as_ref()?);
        Some(Known { incarnation: self.incarnation, definition })
    }

    /// The later one of two: a life's end comes after all that was decided of it.
    pub fn later(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let order = |decision: &Self| (decision.incarnation, decision.definition.is_none());
        match (one, other) {
            (Some(one), Some(other)) => Some(if order(&other) > order(&one) { other } else { one }),
            (one, other) => one.or(other),
        }
    }

    /// Whether a shard holds a life that this decision ended.
    pub fn ends_board_of(&self, shard: &Shard, name: &BoardName) -> bool {
        let held = shard.board(name.as_str()).map(|board| board.incarnation);
        self.definition.is_none() && held.is_some_and(|held| held <= self.incarnation)
    }
}

impl From<&Known> for Decision {
    fn from(known: &Known) -> Self {
        Self { incarnation: known.incarnation, definition: Some(Arc::clone(&known.definition)) }
    }
}

/// A record, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its own sequence: the next record of this board has to follow it.
    pub sequence: u64,
    /// Along the records of a board these rise, also where the stream was lost between two: at least the sequence.
    pub number: RecordNumber,
    pub decision: Decision,
}

impl Recorded {
    pub fn read(sequence: u64, body: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Record>(body).ok()?.stored_at(sequence)
    }

    pub fn is_alive(&self) -> bool {
        self.decision.definition.is_some()
    }

    /// As a message to a shard.
    pub fn payload(&self, name: &BoardName) -> Payload {
        let (board, incarnation, number) = (name.clone(), self.decision.incarnation, Some(self.number));
        match &self.decision.definition {
            Some(definition) => {
                Payload::Define { board, incarnation, number, definition: Arc::clone(definition) }
            }
            None => Payload::Drop { board, incarnation, number },
        }
    }

    /// Whether a shard holds the board as it was decided, or the next life of it already; of a drop, whether no definition
    /// from before can bring the board back.
    pub fn is_in_force(&self, shard: &Shard, name: &BoardName) -> bool {
        let Decision { incarnation, definition } = &self.decision;
        match (definition, shard.board(name.as_str())) {
            (None, Some(board)) => board.incarnation > *incarnation,
            (None, None) => {
                let dropped = shard.dropped();
                dropped.is_over(name.as_str(), *incarnation) || dropped.is_forgotten(Some(self.number))
            }
            (Some(_), None) => false,
            (Some(definition), Some(board)) => {
                board.incarnation > *incarnation
                    || (board.incarnation == *incarnation && board.definition == *definition)
            }
        }
    }

    /// Whether a shard would take this definition for one that comes too late: it lacks the board, and has forgotten drops
    /// of later numbers. It takes a later record of the same life.
    pub fn is_too_late_for(&self, shard: &Shard, name: &BoardName) -> bool {
        self.is_alive()
            && shard.board(name.as_str()).is_none()
            && !shard.is_over(name.as_str(), self.decision.incarnation)
            && shard.dropped().is_forgotten(Some(self.number))
    }
}

/// Whether no node wrote this: every record says a life or a definition. A server answers a publisher wherever that one
/// asks to be answered, without asking whether he might publish there: an acknowledgement is what a stranger can bring
/// here, and must not pass for a drop.
pub fn is_foreign(body: &[u8]) -> bool {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    json.get("incarnation").or(json.get("definition")).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{BoardEvent, REMEMBERED_MAX, Step};
    use crate::types::ShardId;

    #[test]
    fn records_read_back_as_they_were() {
        let definition = Definition { keep: 3, ..Definition::default() };
        let read = |record: &Record, sequence| Recorded::read(sequence, &record.encode()).expect("readable");
        let first = |number| Record::first(RecordNumber(number), &definition);
        // The number is the sequence's at least, and a life has that of its first record.
        for (number, sequence, expect) in [(17, 17, 17), (3, 17, 17), (30, 17, 30)] {
            let read = read(&first(number), sequence);
            assert_eq!((read.sequence, read.number), (sequence, RecordNumber(expect)));
            assert_eq!(read.decision.incarnation, Incarnation(expect));
            assert_eq!(read.decision.definition.as_deref(), Some(&definition));
        }
        let alive = read(&first(30), 17).decision;
        for decision in [alive, Decision::dropped(Incarnation(30))] {
            let again = read(&Record::of(&decision, RecordNumber(31)), 18);
            assert_eq!((again.number, again.decision), (RecordNumber(31), decision));
        }
        // Before there were numbers.
        let older = Recorded::read(18, br#"{"incarnation":7}"#).expect("readable");
        assert_eq!((older.number, older.decision), (RecordNumber(18), Decision::dropped(Incarnation(7))));
        assert!(is_foreign(br#"{"stream":"S","seq":3}"#) && is_foreign(b"x"));
        assert!(!is_foreign(&Record::of(&Decision::dropped(Incarnation(1)), RecordNumber(2)).encode()));
    }

    #[test]
    fn of_two_decisions_the_later_life_counts_and_of_one_life_its_end() {
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

    /// What a shard has forgotten says that a drop is in force, and a definition late. It says nothing of boards that the shard
    /// holds, however low their numbers are.
    #[test]
    fn what_is_forgotten_ends_no_board_that_a_shard_holds() {
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
        let recorded = |number, life, definition: Option<Arc<Definition>>| Recorded {
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
        assert!(!shard.is_over("held", Incarnation(1)) && !shard.is_over("lost", Incarnation(9)));
    }
}

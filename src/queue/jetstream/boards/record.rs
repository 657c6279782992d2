//! What the boards' stream says of a board, as bytes and read.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::board::Definition;
use crate::queue::jetstream::command::DefinitionJson;
use crate::state::{Incarnation, Shard};
use crate::types::BoardName;
use crate::writer::{Known, Payload};

/// A message of the boards' stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Absent in a life's first message, whose sequence it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<u64>,
    /// Absent once it is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionJson>,
}

impl Record {
    /// The first message of a life.
    ///
    /// # Arguments
    /// `incarnation`: the life's number, where the sequence of the message would be too low.
    pub fn first(incarnation: Option<Incarnation>, definition: &Definition) -> Self {
        Self { incarnation: incarnation.map(|life| life.0), definition: Some(definition.into()) }
    }

    pub fn of(decision: &Decision) -> Self {
        Self {
            incarnation: Some(decision.incarnation.0),
            definition: decision.definition.as_deref().map(Into::into),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("it has no maps with odd keys")
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

    /// As a message to a shard.
    pub fn payload(&self, name: &BoardName, settled: Incarnation) -> Payload {
        let (board, incarnation) = (name.clone(), self.incarnation);
        match &self.definition {
            Some(definition) => Payload::Define { board, incarnation, definition: Arc::clone(definition) },
            None => Payload::Drop { board, incarnation, settled },
        }
    }

    /// Whether a shard holds the board as it was decided, or the next life of it already.
    pub fn is_in_force(&self, shard: &Shard, name: &BoardName) -> bool {
        match (&self.definition, shard.board(name.as_str())) {
            (None, _) => shard.is_over(name.as_str(), self.incarnation),
            (Some(_), None) => false,
            (Some(definition), Some(board)) => {
                board.incarnation > self.incarnation
                    || (board.incarnation == self.incarnation && board.definition == *definition)
            }
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
    pub decision: Decision,
}

impl Recorded {
    pub fn read(sequence: u64, body: &[u8]) -> Option<Self> {
        let record: Record = serde_json::from_slice(body).ok()?;
        let incarnation = Incarnation(record.incarnation.unwrap_or(sequence));
        let definition = match record.definition {
            Some(definition) => Some(Arc::new(definition.read()?)),
            None => None,
        };
        Some(Self { sequence, decision: Decision { incarnation, definition } })
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

    #[test]
    fn records_read_back_as_they_were() {
        let definition = Definition { keep: 3, ..Definition::default() };
        let read = |record: &Record, sequence| Recorded::read(sequence, &record.encode()).expect("readable");
        let first = read(&Record::first(None, &definition), 17);
        assert_eq!((first.sequence, first.decision.incarnation), (17, Incarnation(17)));
        assert_eq!(first.decision.definition.as_deref(), Some(&definition));
        let numbered = read(&Record::first(Some(Incarnation(30)), &definition), 17);
        assert_eq!(numbered.decision.incarnation, Incarnation(30));
        for decision in [numbered.decision, Decision::dropped(Incarnation(30))] {
            assert_eq!(read(&Record::of(&decision), 18).decision, decision);
        }
        assert!(is_foreign(br#"{"stream":"S","seq":3}"#) && is_foreign(b"x"));
        assert!(!is_foreign(&Record::of(&Decision::dropped(Incarnation(1))).encode()));
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
}

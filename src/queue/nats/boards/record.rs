//! The form of a record, which is a message of the boards' stream.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::board::Definition;
use crate::queue::nats::boards::decision::{Decision, Record};
use crate::queue::nats::definition_json::{DEFINITION_FORMAT_MAX, DefinitionJson, format_of};
use crate::state::{Incarnation, RecordNumber};

/// Above every number that nodes reach: a number is at most as high as its record's sequence, or one above
/// the highest before it. A higher one would leave none for the records after it.
const NUMBER_MAX: u64 = 1 << 53;
/// The highest format that this version reads. A record has the format of its definition.
const FORMAT: u32 = DEFINITION_FORMAT_MAX;

/// A record as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordJson {
    /// Absent: 1. Fields that a reader does not know are passed over, so a later version that gives a record
    /// another meaning states a higher format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
    /// Absent in a life's first record, whose number it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<u64>,
    /// The record's number, unless its sequence is higher. Absent in records from before there were numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    /// Absent if the board is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionJson>,
}

impl RecordJson {
    /// The first record of a life.
    ///
    /// # Arguments
    /// `number`: above that of every record of the name before it.
    pub fn first(number: RecordNumber, definition: &Definition) -> Self {
        Self {
            format: stated_format(Some(definition)),
            incarnation: None,
            number: Some(number.0),
            definition: Some(definition.into()),
        }
    }

    /// A later record of a life.
    ///
    /// # Arguments
    /// `number`: above that of every record of the name before it.
    pub fn of(decision: &Decision, number: RecordNumber) -> Self {
        Self {
            format: stated_format(decision.definition.as_deref()),
            incarnation: Some(decision.incarnation.0),
            number: Some(number.0),
            definition: decision.definition.as_deref().map(Into::into),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("the value has no maps whose keys are not strings")
    }

    /// Reads a message of the stream; `None` if it is no record.
    pub fn read(sequence: u64, body: &[u8]) -> Option<Record> {
        serde_json::from_slice::<Self>(body).ok()?.stored_at(sequence)
    }

    /// What the record says, stored at this sequence; `None` if its definition is invalid, or its format is
    /// that of a later version.
    pub fn stored_at(self, sequence: u64) -> Option<Record> {
        if self.format.is_some_and(|format| format > FORMAT) {
            return None;
        }
        let number = RecordNumber(sequence.max(self.number.unwrap_or(0)));
        let incarnation = Incarnation(self.incarnation.unwrap_or(number.0));
        let definition = match self.definition {
            Some(definition) => Some(Arc::new(definition.read()?)),
            None => None,
        };
        Some(Record { sequence, number, decision: Decision { incarnation, definition } })
    }
}

/// The format that a record states: none for the first one.
fn stated_format(definition: Option<&Definition>) -> Option<u32> {
    definition.map(format_of).filter(|format| *format > 1)
}

/// Whether no node wrote this message: every record has an incarnation or a definition, and its numbers are
/// numbers that nodes reach. A server sends an acknowledgement to any subject that a publisher names, whether
/// that publisher may publish there or not. So a stranger can have an acknowledgement stored here, and it
/// must not be read as a drop.
pub fn is_foreign(body: &[u8]) -> bool {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    // What a later version writes is not judged here.
    let format = json.get("format").and_then(serde_json::Value::as_u64);
    let is_later = format.is_some_and(|format| format > u64::from(FORMAT));
    let is_forged = |name: &str| {
        json.get(name).is_some_and(|number| number.as_u64().is_none_or(|number| number > NUMBER_MAX))
    };
    json.get("incarnation").or(json.get("definition")).is_none()
        || !is_later && (is_forged("incarnation") || is_forged("number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Window;

    #[test]
    fn records_read_back_as_they_were() {
        let definition = Definition { keep: 3, ..Definition::default() };
        let read =
            |record: &RecordJson, sequence| RecordJson::read(sequence, &record.encode()).expect("readable");
        let first = |number| RecordJson::first(RecordNumber(number), &definition);
        // The number is the sequence's at least, and a life has that of its first record.
        for (number, sequence, expect) in [(17, 17, 17), (3, 17, 17), (30, 17, 30)] {
            let read = read(&first(number), sequence);
            assert_eq!((read.sequence, read.number), (sequence, RecordNumber(expect)));
            assert_eq!(read.decision.incarnation, Incarnation(expect));
            assert_eq!(read.decision.definition.as_deref(), Some(&definition));
        }
        let alive = read(&first(30), 17).decision;
        for decision in [alive, Decision::dropped(Incarnation(30))] {
            let again = read(&RecordJson::of(&decision, RecordNumber(31)), 18);
            assert_eq!((again.number, again.decision), (RecordNumber(31), decision));
        }
        // From before there were numbers.
        let older = RecordJson::read(18, br#"{"incarnation":7}"#).expect("readable");
        assert_eq!((older.number, older.decision), (RecordNumber(18), Decision::dropped(Incarnation(7))));
        // Of a later version: which of them can be read, the record says itself.
        for (format, is_readable) in [(1, true), (2, true), (3, true), (4, false)] {
            let later = format!(r#"{{"format":{format},"incarnation":7,"more":1}}"#);
            assert_eq!(RecordJson::read(18, later.as_bytes()).is_some(), is_readable, "{later}");
            assert!(!is_foreign(later.as_bytes()));
        }
        // What older versions cannot read says so.
        let windowed = Definition { windows: vec![Window::Day], ..definition.clone() };
        for (definition, format) in [(&definition, None), (&windowed, Some(2))] {
            let first = RecordJson::first(RecordNumber(1), definition);
            let decision = read(&first, 17).decision;
            assert_eq!(decision.definition.as_deref(), Some(definition));
            let later = RecordJson::of(&decision, RecordNumber(31));
            assert_eq!((first.format, later.format), (format, format));
        }
        assert!(is_foreign(br#"{"stream":"S","seq":3}"#) && is_foreign(b"x"));
        for forged in [
            r#"{"number":18446744073709551615,"definition":{}}"#,
            r#"{"incarnation":9007199254740993}"#,
            r#"{"incarnation":-1,"number":5}"#,
            r#"{"incarnation":7,"number":"8"}"#,
        ] {
            assert!(is_foreign(forged.as_bytes()), "{forged}");
        }
        assert!(!is_foreign(&RecordJson::of(&Decision::dropped(Incarnation(1)), RecordNumber(2)).encode()));
    }
}

//! The first line of an export: what the board is, so that an import elsewhere makes the same one.
//!
//! Ranks follow from a board's keys, their directions and the rule for ties. An import that had to guess
//! these would rank the same rows otherwise, and say nothing.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::types::{BoardName, shown};
use crate::wire::json_words;

/// What the line begins with in CSV, before its JSON. No header of anybody's begins so.
pub const IN_CSV: &str = "#ranktree ";

/// What of a definition can never change, and decides ranks.
const IMMUTABLE_FIELDS: [&str; 5] = ["keys", "policy", "ties", "windows", "utc_offset"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardLine {
    pub board: BoardName,
    /// A JSON object, as `PUT /v1/boards/{board}` takes it.
    pub definition: String,
}

/// As it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Json<'a> {
    board: String,
    #[serde(borrow)]
    definition: &'a RawValue,
}

impl BoardLine {
    /// # Errors
    /// What is wrong with it.
    pub fn parse(json: &str) -> Result<Self, String> {
        let Json { board, definition } =
            serde_json::from_str(json).map_err(|why| json_words(json.as_bytes(), &why))?;
        let board = BoardName::new(&board).map_err(|why| why.got(&board))?;
        let definition = definition.get().to_owned();
        if !definition.starts_with('{') {
            return Err(format!("a board's definition must be a JSON object; got {}", shown(&definition)));
        }
        Ok(Self { board, definition })
    }

    /// The same for another board, if one is given.
    #[must_use]
    pub fn with_name(self, board: Option<&BoardName>) -> Self {
        Self { board: board.cloned().unwrap_or(self.board), ..self }
    }

    /// Without an end of line.
    pub fn json(&self) -> String {
        // A board's name has nothing to escape.
        format!(r#"{{"board":"{}","definition":{}}}"#, self.board, self.definition)
    }

    /// Whether a board of this definition, of which the rest may change, is the same.
    pub fn is_met_by(&self, found: &Value) -> bool {
        let definition: Value = serde_json::from_str(&self.definition).unwrap_or_default();
        IMMUTABLE_FIELDS
            .iter()
            .all(|name| definition.get(name).is_some_and(|field| found.get(name) == Some(field)))
            && season_starts(&definition) == season_starts(found)
    }
}

/// When the seasons of a definition start, or that they are manual. How long they are may change.
fn season_starts(definition: &Value) -> Option<&Value> {
    let season = definition.get("season").filter(|season| !season.is_null())?;
    season.get("starts").or(Some(season))
}

/// The definition in what `GET /v1/boards/{board}` answers, or `None` where that is no object.
///
/// What is not known here is passed on: the service that it is for takes it, or refuses it by name.
pub fn definition_in(answer: &str) -> Option<String> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(answer) else { return None };
    for about_it in ["board", "totals", "instances", "next_cursors", "as_of", "stale"] {
        // What is left keeps its order.
        fields.shift_remove(about_it);
    }
    Some(json!(fields).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Definition, Key, Order, Ties};
    use crate::http::definition_json;
    use crate::types::Timestamp;
    use crate::window::{Seasons, Window};

    fn line(definition: &Definition) -> BoardLine {
        BoardLine {
            board: BoardName::new("arena").expect("a good name"),
            definition: definition_json(definition),
        }
    }

    #[test]
    fn a_line_reads_back_and_tells_what_differs() {
        let ascending = Key { order: Order::Ascending, min: i64::MIN + 1, ..Key::score() };
        let definition =
            Definition { keys: vec![ascending], ties: Ties::Last, keep: 3, ..Definition::default() };
        let ours = line(&definition);
        assert_eq!(BoardLine::parse(&ours.json()), Ok(ours.clone()));
        let answer = ours.definition.replacen('{', r#"{"board":"arena","#, 1).replace(
            r#""capacity":null}"#,
            r#""capacity":null,"totals":{"all":3},"as_of":"0:3","stale":true}"#,
        );
        assert_eq!(definition_in(&answer), Some(ours.definition.clone()));
        let is_met = |other: &Definition| {
            ours.is_met_by(&serde_json::from_str(&definition_json(other)).expect("JSON"))
        };
        assert!(is_met(&definition) && is_met(&Definition { keep: 4, ..definition.clone() }));
        assert!(!is_met(&Definition { ties: Ties::First, ..definition.clone() }));
        assert!(!is_met(&Definition::default()));
        let seasonal = |seasons| Definition {
            windows: vec![Window::Season],
            seasons: Some(seasons),
            ..Definition::default()
        };
        let begin = |micros| Timestamp::from_micros(micros).expect("in range");
        let of_weeks = seasonal(Seasons::regular(begin(0), 7 * 86_400_000_000));
        for (other, expect) in [
            (Seasons::regular(begin(0), 86_400_000_000), true),
            (Seasons::regular(begin(1), 7 * 86_400_000_000), false),
            (Seasons::Manual(Vec::new()), false),
        ] {
            let found = serde_json::from_str(&definition_json(&seasonal(other))).expect("JSON");
            assert_eq!(line(&of_weeks).is_met_by(&found), expect, "{found}");
        }
        for bad in [
            "",
            "{}",
            r#"{"board":"arena"}"#,
            r#"{"board":"no spaces","definition":{}}"#,
            r#"{"board":"arena","definition":[]}"#,
            r#"{"board":"arena","definition":{},"more":1}"#,
        ] {
            assert!(BoardLine::parse(bad).is_err(), "{bad}");
        }
    }
}

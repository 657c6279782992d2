//! The first line of an export: what the board is, so that an import elsewhere makes the same one, and which
//! of its instances the rows are of.
//!
//! Ranks follow from a board's keys, their directions and the rule for ties. An import that had to guess
//! these would rank the same rows otherwise, and say nothing. When an instance began and ended is in the line
//! too, because it does not always follow from the definition: manual seasons begin when they are opened.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::types::{BoardName, Timestamp, quoted, shown};
use crate::window::{Instance, Span};
use crate::wire::json_words;

/// What the line begins with in CSV, before its JSON. No header of anybody's begins so.
pub const IN_CSV: &str = "#ranktree ";

/// What of a definition decides ranks, and can never change.
const FIXED_FIELDS: [&str; 3] = ["keys", "ties", "utc_offset"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardLine {
    pub board: BoardName,
    /// What the rows are of; `None`: of `all`.
    pub instance: Option<ExportedInstance>,
    /// Whether the cells of a CSV have an apostrophe where a spreadsheet would compute them (`spreadsheet`).
    pub spreadsheet_safe: bool,
    /// A JSON object, as `PUT /v1/boards/{board}` takes it.
    pub definition: String,
}

/// An instance that the rows of an export are of, and from when to when it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportedInstance {
    pub instance: Instance,
    pub span: Span,
}

/// As it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Json<'a> {
    board: String,
    window: Option<String>,
    begin: Option<String>,
    end: Option<String>,
    #[serde(default)]
    spreadsheet_safe: bool,
    #[serde(borrow)]
    definition: &'a RawValue,
}

impl BoardLine {
    /// # Errors
    /// What is wrong with it.
    pub fn parse(json: &str) -> Result<Self, String> {
        let Json { board, window, begin, end, spreadsheet_safe, definition } =
            serde_json::from_str(json).map_err(|why| json_words(json.as_bytes(), &why))?;
        let board = BoardName::new(&board).map_err(|why| why.got(&board))?;
        let instance = window.map(|name| ExportedInstance::parse(&name, begin.as_deref(), end.as_deref()));
        let instance = instance.transpose()?;
        let definition = definition.get().to_owned();
        if !definition.starts_with('{') {
            return Err(format!("a board's definition must be a JSON object; got {}", shown(&definition)));
        }
        Ok(Self { board, instance, spreadsheet_safe, definition })
    }

    /// The same for another board, if one is given.
    pub fn with_name(self, board: Option<&BoardName>) -> Self {
        Self { board: board.cloned().unwrap_or(self.board), ..self }
    }

    /// Without an end of line.
    pub fn json(&self) -> String {
        // The names of instances have nothing to escape.
        let of_rows = self.instance.map(ExportedInstance::json).unwrap_or_default();
        let safe = if self.spreadsheet_safe { r#""spreadsheet_safe":true,"# } else { "" };
        let board = json!(self.board.as_str());
        format!(r#"{{"board":{board},{of_rows}{safe}"definition":{}}}"#, self.definition)
    }

    /// Whether a board of this definition, of which the rest may change, is the same.
    pub fn is_met_by(&self, found: &Value) -> bool {
        let definition: Value = serde_json::from_str(&self.definition).unwrap_or_default();
        definition.get("windows").is_some_and(|windows| found.get("windows") == Some(windows))
            && fixed_part(&definition) == fixed_part(found)
            && season_starts(&definition) == season_starts(found)
    }

    /// The part of the definition that a board which is there has to agree with, as a request.
    pub fn fixed_part(&self) -> String {
        let definition: Value = serde_json::from_str(&self.definition).unwrap_or_default();
        Value::from(fixed_part(&definition)).to_string()
    }
}

impl ExportedInstance {
    fn parse(name: &str, begin: Option<&str>, end: Option<&str>) -> Result<Self, String> {
        let instance = Instance::of_name(name).filter(|instance| *instance != Instance::ALL);
        let instance = instance.ok_or_else(|| {
            format!("window must be the name of an instance, such as 2026-W47; got {}", quoted(name))
        })?;
        let time = |text: &str| Timestamp::parse(text).map_err(|why| why.got(text));
        let begin = time(begin.ok_or("begin is missing, the time at which the instance began")?)?;
        Ok(Self { instance, span: Span { begin, end: end.map(time).transpose()? } })
    }

    /// Its fields, with a comma behind each.
    fn json(self) -> String {
        let Span { begin, end } = self.span;
        let end = end.map(|end| format!(r#""end":"{end}","#)).unwrap_or_default();
        format!(r#""window":"{}","begin":"{begin}",{end}"#, self.instance)
    }
}

/// What can never change: of keys, their names and orders.
fn fixed_part(definition: &Value) -> Map<String, Value> {
    let mut fixed = Map::new();
    for name in FIXED_FIELDS {
        fixed.extend(definition.get(name).map(|field| (name.to_owned(), field.clone())));
    }
    for key in fixed.get_mut("keys").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = key.as_object_mut() {
            fields.retain(|name, _| name == "name" || name == "order");
        }
    }
    fixed
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
    for about_it in [
        "board",
        "read_only",
        "totals",
        "instances",
        "planned_seasons",
        "ends_at",
        "next_cursors",
        "as_of",
        "stale",
    ] {
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
            instance: None,
            spreadsheet_safe: false,
            definition: definition_json(definition),
        }
    }

    #[test]
    fn a_line_tells_which_instance_its_rows_are_of() {
        let time = |text| Timestamp::parse(text).expect("a time");
        let of = |name, end| ExportedInstance {
            instance: Instance::of_name(name).expect("an instance"),
            span: Span { begin: time("2026-11-16T00:00:00Z"), end },
        };
        let ended = of("2026-W47", Some(time("2026-11-23T00:00:00Z")));
        for (instance, told) in [
            (ended, r#""window":"2026-W47","begin":"2026-11-16T00:00:00Z","end":"2026-11-23T00:00:00Z","#),
            (of("s7", None), r#""window":"s7","begin":"2026-11-16T00:00:00Z","#),
        ] {
            let ours = BoardLine { instance: Some(instance), ..line(&Definition::default()) };
            let json = ours.json();
            assert!(json.starts_with(&format!(r#"{{"board":"arena",{told}"definition":"#)), "{json}");
            assert_eq!(BoardLine::parse(&json), Ok(ours.clone()));
            let safe = BoardLine { spreadsheet_safe: true, ..ours };
            assert_eq!(BoardLine::parse(&safe.json()), Ok(safe));
        }
        for bad in [
            r#""window":"week","begin":"2026-11-16T00:00:00Z","#,
            r#""window":"all","begin":"2026-11-16T00:00:00Z","#,
            r#""window":"s7","#,
            r#""window":"s7","begin":"yesterday","#,
        ] {
            let json = format!(r#"{{"board":"arena",{bad}"definition":{{}}}}"#);
            assert!(BoardLine::parse(&json).is_err(), "{json}");
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
        let bounded = Key { max: 7, ..definition.keys[0].clone() };
        assert!(is_met(&Definition { keys: vec![bounded], ..definition.clone() }), "bounds can change");
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

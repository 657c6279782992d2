//! The output of an export: a file, which appears when it is complete; or standard output, a pipe or a
//! device.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::json;

use crate::cli::Failure;
use crate::cli::board_line::{BoardLine, IN_CSV};
use crate::cli::escaped::escaped_json;
use crate::cli::export::Format;
use crate::cli::export::file::{self, Unfinished};
use crate::cli::export::row::{Hidden, Row};
use crate::cli::spreadsheet::{guarded, guarded_json};

const BUFFER_BYTES: usize = 256 * 1024;
/// An export's columns. An import reads all but rank; position says that it is an export.
const COLUMNS: [&str; 10] =
    ["board", "member", "score", "rank", "position", "at", "updated_at", "meta", "version", "hidden"];

pub struct Output {
    sink: Sink,
    /// The row that is being written.
    line: String,
    unfinished: Option<Unfinished>,
    /// Members whose profiles are written already.
    written: HashSet<Box<str>>,
    /// Members who are hidden everywhere, and written already.
    hidden_everywhere: HashSet<Box<str>>,
    /// Whether cells have an apostrophe where a spreadsheet would compute them.
    is_spreadsheet_safe: bool,
}

enum Sink {
    Nothing,
    Lines(Box<dyn Write>),
    Cells(Box<dyn Write>),
}

impl Output {
    /// For a dry run.
    pub fn nothing() -> Self {
        Self::of(Sink::Nothing, None)
    }

    fn of(sink: Sink, unfinished: Option<Unfinished>) -> Self {
        let (line, written, hidden_everywhere) = (String::new(), HashSet::new(), HashSet::new());
        Self { sink, line, unfinished, written, hidden_everywhere, is_spreadsheet_safe: false }
    }

    /// # Arguments
    /// `is_safe`: whether cells have an apostrophe where a spreadsheet would compute them.
    pub fn spreadsheet_safe(mut self, is_safe: bool) -> Self {
        self.is_spreadsheet_safe = is_safe;
        self
    }

    /// # Arguments
    /// `replaces`: a file that is there may be replaced.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: Option<&Path>, replaces: bool, format: Format) -> Result<Self, Failure> {
        let (writer, unfinished): (Box<dyn Write>, _) = match path {
            None => (Box::new(io::stdout()), None),
            Some(path) => {
                let (file, unfinished) = file::create(path, replaces)?;
                (Box::new(file), unfinished)
            }
        };
        let writer: Box<dyn Write> = Box::new(BufWriter::with_capacity(BUFFER_BYTES, writer));
        let sink = match format {
            Format::Ndjson => Sink::Lines(writer),
            Format::Csv => Sink::Cells(writer),
        };
        Ok(Self::of(sink, unfinished))
    }

    /// Begins a board, with what it is if that is given. A CSV has one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, board: Option<&BoardLine>) -> io::Result<()> {
        match &mut self.sink {
            Sink::Nothing => Ok(()),
            Sink::Lines(writer) => match board {
                Some(board) => writeln!(writer, "{}", escaped_json(&board.json())),
                None => Ok(()),
            },
            Sink::Cells(writer) => {
                if let Some(board) = board {
                    writeln!(writer, "{IN_CSV}{}", escaped_json(&board.json()))?;
                }
                writeln!(writer, "{}", COLUMNS.join(","))
            }
        }
    }

    /// # Errors
    /// When it cannot be written, or the row is not whole.
    pub fn write(&mut self, board: &str, row: &Row<'_>) -> io::Result<()> {
        check_whole(row)?;
        self.line.clear();
        match &mut self.sink {
            Sink::Nothing => Ok(()),
            Sink::Lines(writer) => {
                if let Some(profile) = &row.profile
                    && self.written.insert(row.member.as_ref().into())
                {
                    push_profile(&mut self.line, row, profile);
                }
                push_object(&mut self.line, board, row, Place::Listed);
                writer.write_all(escaped_json(&self.line).as_bytes())
            }
            Sink::Cells(writer) => {
                push_cells(&mut self.line, board, row, self.is_spreadsheet_safe);
                writer.write_all(self.line.as_bytes())
            }
        }
    }

    /// A member who is hidden, behind the rows of the board.
    ///
    /// # Arguments
    /// `is_of_all`: whether other boards are exported, too.
    pub fn write_hidden(&mut self, board: &str, hidden: &Hidden, is_of_all: bool) -> io::Result<()> {
        if let Some(row) = &hidden.entry {
            check_whole(row)?;
        }
        self.line.clear();
        match &mut self.sink {
            Sink::Nothing => Ok(()),
            Sink::Lines(writer) => {
                if let Some(row) = &hidden.entry {
                    if let Some(profile) = &row.profile
                        && self.written.insert(row.member.as_ref().into())
                    {
                        push_profile(&mut self.line, row, profile);
                    }
                    push_object(&mut self.line, board, row, Place::Hidden);
                }
                let is_everywhere = hidden.is_everywhere && is_of_all;
                if !is_everywhere || self.hidden_everywhere.insert(hidden.member.as_str().into()) {
                    push_hide(&mut self.line, (!is_everywhere).then_some(board), &hidden.member);
                }
                writer.write_all(escaped_json(&self.line).as_bytes())
            }
            Sink::Cells(writer) => {
                push_hidden_cells(&mut self.line, board, hidden, self.is_spreadsheet_safe);
                writer.write_all(self.line.as_bytes())
            }
        }
    }

    pub const fn is_csv(&self) -> bool {
        matches!(self.sink, Sink::Cells(_))
    }

    /// Makes it complete, and gives it its name.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn finish(mut self) -> Result<(), Failure> {
        match &mut self.sink {
            Sink::Nothing => {}
            Sink::Lines(writer) | Sink::Cells(writer) => writer.flush()?,
        }
        self.unfinished.take().map_or(Ok(()), Unfinished::complete)
    }
}

fn push_all(line: &mut String, parts: &[&str]) {
    for part in parts {
        line.push_str(part);
    }
}

/// A text as JSON.
fn push_text(line: &mut String, text: &str) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        push_all(line, &["\"", text, "\""]);
    } else {
        line.push_str(&json!(text).to_string());
    }
}

fn push_profile(line: &mut String, row: &Row<'_>, profile: &str) {
    line.push_str("{\"member\":");
    push_text(line, &row.member);
    push_all(line, &[",\"op\":\"profile\",\"profile\":", profile, "}\n"]);
}

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On the board, with a rank and a position.
    Listed,
    Hidden,
}

fn push_object(line: &mut String, board: &str, row: &Row<'_>, place: Place) {
    let Row { score, rank, position, updated_at, .. } = row;
    line.push_str("{\"board\":");
    push_text(line, board);
    line.push_str(",\"member\":");
    push_text(line, &row.member);
    push_all(line, &[",\"op\":\"set\",\"score\":", score, ",\"at\":\"", row.at(), "\","]);
    if let Some(version) = &row.version {
        push_all(line, &["\"version\":", version, ","]);
    }
    if row.has_meta() {
        push_all(line, &["\"meta\":", &row.meta, ","]);
    }
    match place {
        Place::Listed => push_all(line, &["\"rank\":", rank, ",\"position\":", position]),
        Place::Hidden => line.push_str("\"hidden\":true"),
    }
    push_all(line, &[",\"updated_at\":\"", updated_at, "\"}\n"]);
}

/// The job that hides a member, on a board or on all of them.
fn push_hide(line: &mut String, board: Option<&str>, member: &str) {
    line.push('{');
    if let Some(board) = board {
        line.push_str("\"board\":");
        push_text(line, board);
        line.push(',');
    }
    line.push_str("\"member\":");
    push_text(line, member);
    line.push_str(",\"op\":\"hide\"}\n");
}

/// # Errors
/// When the service could not read all of the entry.
fn check_whole(row: &Row<'_>) -> io::Result<()> {
    if !row.lacks_meta() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the service could not read the metadata of member {} from its disk; ranktree verify lists what is damaged",
        row.member
    )))
}

fn push_cells(line: &mut String, board: &str, row: &Row<'_>, is_safe: bool) {
    push_names(line, board, &row.member, is_safe);
    push_text_cell(line, &row.score_keys(), false);
    push_all(line, &[",", &row.rank, ",", &row.position, ","]);
    push_rest(line, row, is_safe);
    line.push_str(",\n");
}

fn push_hidden_cells(line: &mut String, board: &str, hidden: &Hidden, is_safe: bool) {
    push_names(line, board, &hidden.member, is_safe);
    match &hidden.entry {
        Some(row) => {
            push_text_cell(line, &row.score_keys(), false);
            line.push_str(",,,");
            push_rest(line, row, is_safe);
        }
        None => line.push_str(",,,,,,"),
    }
    line.push_str(",true\n");
}

fn push_names(line: &mut String, board: &str, member: &str, is_safe: bool) {
    for name in [board, member] {
        let name = if is_safe { guarded(name) } else { Cow::Borrowed(name) };
        push_text_cell(line, &name, is_safe);
        line.push(',');
    }
}

/// From at to version.
fn push_rest(line: &mut String, row: &Row<'_>, is_safe: bool) {
    push_all(line, &[row.at(), ",", &row.updated_at, ","]);
    let meta = escaped_json(if row.has_meta() { &row.meta } else { "" });
    let safe = if is_safe { guarded_json(&meta) } else { Cow::Borrowed(&*meta) };
    push_text_cell(line, &safe, is_safe);
    push_all(line, &[",", row.version.as_deref().unwrap_or_default()]);
}

/// A cell, in quotation marks if it needs them, or if it must hold for a spreadsheet, whose separator may be
/// another one.
fn push_text_cell(line: &mut String, text: &str, is_quoted: bool) {
    if !is_quoted && !text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        line.push_str(text);
        return;
    }
    line.push('"');
    for (index, part) in text.split('"').enumerate() {
        if index > 0 {
            line.push_str("\"\"");
        }
        line.push_str(part);
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(member: &'a str, meta: &'a str) -> Row<'a> {
        Row {
            member: member.into(),
            score: "[-1,\"9007199254740992\"]".into(),
            rank: "1".into(),
            position: "2".into(),
            updated_at: "2026-11-20T09:59:58Z".into(),
            reached_at: Some("2026-11-20T09:59:57Z".into()),
            version: Some("18446744073709551615".into()),
            meta: meta.into(),
            profile: None,
        }
    }

    const MEMBERS: [&str; 9] = ["m", "a,b", "\"", "a\"\"b", " ", "#a", "'", "日本", "a\\b"];

    #[test]
    fn cells_read_back_as_what_they_were_and_are_quoted_as_the_csv_crate_would() {
        for member in MEMBERS {
            let meta = r#"{"a":"1,\"2\""}"#;
            let mut line = String::new();
            push_cells(&mut line, "b", &row(member, meta), false);
            let cells = ["b", member, "-1,9007199254740992", "1", "2"];
            let cells = [&cells[..], &["2026-11-20T09:59:57Z", "2026-11-20T09:59:58Z", meta]].concat();
            let cells = [&cells[..], &["18446744073709551615", ""]].concat();
            let mut writer = csv::Writer::from_writer(Vec::new());
            writer.write_record(&cells).expect("into memory");
            let expect = writer.into_inner().expect("into memory");
            assert_eq!(line.as_bytes(), expect, "{member}");
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
            let record = reader.records().next().expect("a row").expect("a row");
            assert!(record.iter().eq(cells), "{line}");
        }
    }

    /// A spreadsheet may be told of another separator.
    #[test]
    fn cells_for_a_spreadsheet_are_quoted_and_read_back() {
        for member in MEMBERS.iter().chain(&["a;=1+1;b", " =1", "\u{200b}=1"]) {
            let meta = r#"{"a":"x;=1+1;\u200b"}"#;
            let mut line = String::new();
            push_cells(&mut line, "b", &row(member, meta), true);
            assert!(
                line.starts_with(&format!("\"b\",\"{}\",\"-1", guarded(member).replace('"', "\"\""))),
                "{line}"
            );
            assert!(line.contains(r";\u003d1+1;"), "{line}");
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
            let record = reader.records().next().expect("a row").expect("a row");
            assert_eq!(crate::cli::spreadsheet::unguarded(&record[1]), *member, "{line}");
            let read: serde_json::Value = serde_json::from_str(&record[7]).expect("JSON");
            assert_eq!(read, json!({"a": "x;=1+1;\u{200b}"}), "{line}");
        }
    }

    #[test]
    fn hidden_members_have_as_many_cells_as_others() {
        let hidden = |entry| Hidden { member: "m".to_owned(), is_everywhere: false, entry };
        for (hidden, score) in [(hidden(Some(row("m", "{}"))), "-1,9007199254740992"), (hidden(None), "")] {
            let mut line = String::new();
            push_hidden_cells(&mut line, "b", &hidden, false);
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
            let record = reader.records().next().expect("a row").expect("a row");
            let cells: Vec<_> = record.iter().collect();
            assert_eq!(
                (cells.len(), cells[2], cells[3], cells[9]),
                (COLUMNS.len(), score, "", "true"),
                "{line}"
            );
        }
    }

    #[test]
    fn objects_read_back_as_what_they_were() {
        for member in MEMBERS {
            let mut line = String::new();
            push_object(&mut line, "b", &row(member, r#"{"a":1}"#), Place::Listed);
            let mut expect = json!({
                "board": "b", "member": member, "op": "set", "score": [-1, "9007199254740992"],
                "at": "2026-11-20T09:59:57Z", "version": u64::MAX, "meta": {"a": 1}, "rank": 1, "position": 2,
                "updated_at": "2026-11-20T09:59:58Z"
            });
            assert_eq!(line, format!("{expect}\n"));
            line.clear();
            push_object(&mut line, "b", &row(member, r#"{"a":1}"#), Place::Hidden);
            let fields = expect.as_object_mut().expect("an object");
            fields.remove("rank");
            fields.remove("position");
            fields.insert("hidden".to_owned(), json!(true));
            let read: serde_json::Value = serde_json::from_str(&line).expect("an object");
            assert_eq!(read, expect);
            line.clear();
            push_hide(&mut line, Some("b"), member);
            push_hide(&mut line, None, member);
            let hide = [
                json!({"board": "b", "member": member, "op": "hide"}),
                json!({"member": member, "op": "hide"}),
            ];
            assert_eq!(line, format!("{}\n{}\n", hide[0], hide[1]));
            line.clear();
            push_profile(&mut line, &row(member, "{}"), r#"{"name":"A"}"#);
            let expect = json!({"member": member, "op": "profile", "profile": {"name": "A"}});
            assert_eq!(line, format!("{expect}\n"));
        }
    }

    /// An export that lacks what the board has would be taken for a copy of it.
    #[test]
    fn an_entry_whose_metadata_cannot_be_read_ends_the_export() {
        let mut output = Output::nothing();
        for meta in ["{}", r#"{"a":1}"#] {
            output.write("b", &row("m", meta)).expect("it is whole");
        }
        let why = output.write("b", &row("m", "null")).expect_err("it is not whole").to_string();
        assert!(why.contains("metadata of member m") && why.contains("ranktree verify"), "{why}");
    }
}

//! Rows of an NDJSON file: one job object per line, passed on as it is written.
//!
//! An import reads only what it must know of a job. The service judges whether the job is valid.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::read::limits::MAX_JOB_BYTES;
use crate::cli::import::read::row::{Boards, Defaults, LastBoard, Parsed, RejectedLine, Row, version_before};
use crate::job::{MAX_BOARDS_PER_JOB, Op, Reject, RejectCode};
use crate::types::{BoardName, decimal, quoted};
use crate::wire;
use crate::wire::json_words;

/// Reads lines as jobs.
pub struct NdjsonRows<R> {
    reader: R,
    line: u64,
    buffer: Vec<u8>,
    defaults: Defaults,
    last_board: LastBoard,
    /// Comes before the next line.
    repeat: Option<Row>,
    /// Why the first line that cannot be read cannot be, if no line before it describes a board. Rows of an
    /// export behind it would go to another board than theirs, or to other windows.
    undescribed: Option<String>,
    is_described: bool,
}

/// The fields of a job that decide its lane and whether it may be sent twice.
#[derive(Deserialize)]
#[expect(
    clippy::zero_sized_map_values,
    reason = "the line is a JSON map, of which only the boards' names are read"
)]
struct Peek<'a> {
    #[serde(borrow)]
    member: Option<Cow<'a, str>>,
    #[serde(borrow)]
    board: Option<Cow<'a, str>>,
    scores: Option<BTreeMap<String, IgnoredAny>>,
    #[serde(borrow)]
    op: Option<Cow<'a, str>>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(borrow)]
    at: Option<Cow<'a, str>>,
    /// Only an export has it, as those that follow.
    #[serde(borrow)]
    updated_at: Option<Cow<'a, str>>,
    position: Option<IgnoredAny>,
    /// In place of the position, of entries that have none.
    #[serde(borrow)]
    hidden: Option<&'a RawValue>,
    /// Of its first line.
    definition: Option<IgnoredAny>,
}

/// The part of an export's line that is a job, byte for byte.
#[derive(Deserialize, Serialize)]
struct Exported<'a> {
    #[serde(borrow)]
    member: &'a RawValue,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    board: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    op: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    score: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    version: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    at: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
}

impl<R: BufRead> NdjsonRows<R> {
    pub fn new(reader: R, defaults: Defaults) -> Self {
        let (line, buffer, last_board) = (0, Vec::new(), LastBoard::default());
        let (repeat, undescribed, is_described) = (None, None, false);
        Self { reader, line, buffer, defaults, last_board, repeat, undescribed, is_described }
    }

    /// Fills the buffer with the next line, its end included. `Ok(None)` at the end of the input.
    fn next_line(&mut self) -> io::Result<Option<LineLength>> {
        self.buffer.clear();
        let limit = u64::try_from(MAX_JOB_BYTES).unwrap_or(u64::MAX);
        let read = (&mut self.reader).take(limit + 1).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        if read <= MAX_JOB_BYTES || self.buffer.last() == Some(&b'\n') {
            return Ok(Some(LineLength::Fits));
        }
        // A line without an end must not fill the memory.
        self.reader.skip_until(b'\n')?;
        Ok(Some(LineLength::TooLong))
    }

    /// What the service would say of a job that is JSON, and of which a field is of another kind than it
    /// should be.
    fn refusal(&self, text: &str) -> Option<RejectedLine> {
        let refused = match wire::decode(text.as_bytes()) {
            Ok(jobs) => jobs.into_iter().find_map(Result::err),
            Err(reject) => Some(reject),
        };
        refused.map(|Reject { code, detail }| RejectedLine::new(self.line, code, detail))
    }

    /// As [`NdjsonRows::parse`], unless the rows of an export come without their board.
    fn parse_behind_board(&mut self) -> Result<Parsed, ImportError> {
        let (parsed, repeat) = self.parse().unwrap_or_else(|rejected| (Parsed::Rejected(rejected), None));
        self.repeat = repeat;
        match &parsed {
            Parsed::Board(_) => self.is_described = true,
            Parsed::Rejected(line) if !self.is_described && self.undescribed.is_none() => {
                self.undescribed = Some(line.detail.clone());
            }
            Parsed::Row(_) if self.undescribed.is_some() && !self.is_described && self.is_exported() => {
                if let Some(why) = self.undescribed.take() {
                    return Err(ImportError::BoardLine(why));
                }
            }
            Parsed::Row(_) | Parsed::Rejected(_) => {}
        }
        Ok(parsed)
    }

    /// Whether the line is a row that an export has written.
    fn is_exported(&self) -> bool {
        serde_json::from_slice::<Peek<'_>>(&self.buffer).is_ok_and(|peek| peek.is_exported())
    }

    /// What the line is, and the row that is to follow it.
    fn parse(&mut self) -> Result<(Parsed, Option<Row>), RejectedLine> {
        let malformed = |why: String| {
            RejectedLine::new(self.line, RejectCode::Malformed, format!("not a job object: {why}"))
        };
        let text = std::str::from_utf8(&self.buffer);
        let text = text.map_err(|_| malformed("the line is not UTF-8".to_owned()))?.trim();
        let words = |why: serde_json::Error| malformed(json_words(text.as_bytes(), &why));
        if !text.starts_with('{') {
            return Err(malformed(format!("the line begins with {}, not with {{", quoted(text))));
        }
        let peek: Peek<'_> =
            serde_json::from_str(text).map_err(|why| self.refusal(text).unwrap_or_else(|| words(why)))?;
        if peek.definition.is_some() && peek.member.is_none() {
            let line = BoardLine::parse(text).map_err(malformed)?;
            return Ok((Parsed::Board(line.with_name(self.defaults.board.as_ref())), None));
        }
        if peek.scores.as_ref().is_some_and(|scores| scores.len() > MAX_BOARDS_PER_JOB) {
            let why = || malformed(format!("it names more than {MAX_BOARDS_PER_JOB} boards"));
            return Err(self.refusal(text).unwrap_or_else(why));
        }
        let twice = twice(text, &peek, self.defaults.board.as_ref()).map_err(words)?;
        let exported = peek.is_exported().then(|| {
            let job: Exported<'_> = serde_json::from_str(text)?;
            let first = twice.as_ref().and_then(|twice| twice.first_version.as_deref());
            serde_json::to_string(&Exported { version: first.or(job.version), ..job })
        });
        let exported = exported.transpose().map_err(words)?;
        let text = exported.as_deref().unwrap_or(text);
        // A profile is on no board.
        let is_profile = peek.op.as_deref() == Some(Op::Profile.name());
        let given = self.defaults.board.as_ref().filter(|_| !is_profile);
        if let (Some(given), Some(_)) = (given, &peek.scores) {
            return Err(malformed(format!("it has scores, which name boards, and --board names {given}")));
        }
        let renamed = given.filter(|_| peek.board.is_some()).map(|_| without_board(text));
        let renamed = renamed.transpose().map_err(words)?;
        let fields = renamed.as_deref().unwrap_or(text).trim_start_matches('{');
        let Some(member) = peek.member else {
            return Err(malformed("member is missing".to_owned()));
        };

        // Defaults of the command line are written in front of the job's own fields, which stay byte for byte
        // as they were: a parser could lose digits of numbers. Names of boards and operations need no
        // escapes.
        let board = given.map(|board| format!("\"board\":\"{board}\",")).unwrap_or_default();
        let op = self.defaults.op.filter(|_| peek.op.is_none());
        let op = op.map(|op| format!("\"op\":\"{}\",", op.name())).unwrap_or_default();
        let job = format!("{{{board}{op}{fields}");
        if job.len() > MAX_JOB_BYTES {
            return Err(too_long(self.line));
        }

        let op = peek.op.as_deref().or(self.defaults.op.map(Op::name));
        let mut boards: Boards = peek.scores.unwrap_or_default().into_keys().map(Arc::from).collect();
        let named = given.map(BoardName::as_str).or(peek.board.as_deref());
        boards.extend(named.map(|name| self.last_board.share(name)));
        let row = Row::new(self.line, job, &member, op, peek.version.is_some(), boards);
        let repeat = twice.map(|twice| row.repeated(twice.second));
        Ok((Parsed::Row(row), repeat))
    }
}

impl Peek<'_> {
    /// Whether the line is an entry of an export, of which not every field is a job's.
    fn is_exported(&self) -> bool {
        self.position.is_some() || self.hidden.is_some_and(|hidden| hidden.get() == "true")
    }
}

/// An entry that was updated after its score was reached, which takes two jobs.
struct Twice {
    /// Of the job of the line, if the entry has a version.
    first_version: Option<Box<RawValue>>,
    /// The job that gives the entry the time of its last update, and its version.
    second: String,
}

fn twice(text: &str, peek: &Peek<'_>, board: Option<&BoardName>) -> serde_json::Result<Option<Twice>> {
    let (Some(updated_at), Some(at)) = (&peek.updated_at, &peek.at) else { return Ok(None) };
    let is_set = peek.op.as_deref() == Some(Op::Set.name());
    // No version is before 0, and what is no version is the service's to refuse.
    let version = peek.version.map(|version| decimal::<u64>(version.get().trim_matches('"')).unwrap_or(0));
    if !is_set || !peek.is_exported() || updated_at == at || version == Some(0) {
        return Ok(None);
    }
    let first_version = version.map(|version| to_raw_value(&version_before(version))).transpose()?;
    let board = board.map(|board| to_raw_value(board.as_str())).transpose()?;
    let (job, at) = (serde_json::from_str::<Exported<'_>>(text)?, to_raw_value(updated_at)?);
    let job = Exported { board: board.as_deref().or(job.board), at: Some(&at), meta: None, ..job };
    Ok(Some(Twice { first_version, second: serde_json::to_string(&job)? }))
}

/// A job without the board that it names, and otherwise byte for byte as it was.
fn without_board(job: &str) -> serde_json::Result<String> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(job)?;
    fields.remove("board");
    serde_json::to_string(&fields)
}

enum LineLength {
    Fits,
    TooLong,
}

fn too_long(line: u64) -> RejectedLine {
    RejectedLine::new(line, RejectCode::TooLarge, format!("a job must be at most {MAX_JOB_BYTES} bytes long"))
}

impl<R: BufRead> Iterator for NdjsonRows<R> {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(repeat) = self.repeat.take() {
            return Some(Ok(Parsed::Row(repeat)));
        }
        loop {
            match self.next_line() {
                Ok(Some(LineLength::Fits)) if self.buffer.trim_ascii().is_empty() => {}
                Ok(Some(LineLength::Fits)) => return Some(self.parse_behind_board()),
                Ok(Some(LineLength::TooLong)) => return Some(Ok(Parsed::Rejected(too_long(self.line)))),
                Ok(None) => return None,
                Err(source) => return Some(Err(ImportError::Read { line: self.line + 1, source })),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::BoardName;

    fn rows(text: &str, defaults: Defaults) -> Vec<Parsed> {
        NdjsonRows::new(text.as_bytes(), defaults).collect::<Result<_, _>>().expect("readable")
    }

    fn one(text: &str, defaults: Defaults) -> Row {
        let mut parsed = rows(text, defaults);
        match (parsed.pop(), parsed.len()) {
            (Some(Parsed::Row(row)), 0) => row,
            other => panic!("{text:?} is one row, and not {other:?}"),
        }
    }

    fn names(boards: &Boards) -> Vec<&str> {
        boards.iter().map(|name| &**name).collect()
    }

    #[test]
    fn a_job_is_passed_on_to_the_letter() {
        for job in [
            "{\"board\":\"arena\",\"member\":\"p42\",\"score\":1200}",
            "{ \"member\" : \"日本\", \"scores\":{\"a\":[1,2],\"b\":3}, \"meta\":{\"n\":1e400} }",
            "{\"member\":\"p42\",\"board\":\"arena\",\"score\":123456789012345678901234567890}",
        ] {
            assert_eq!(one(&format!("  {job}\r\n"), Defaults::default()).job, job);
        }
    }

    #[test]
    fn a_profile_gets_no_board() {
        let job = "{\"member\":\"p42\",\"op\":\"profile\",\"profile\":{\"name\":\"A\"}}";
        let defaults = Defaults { board: BoardName::new("arena").ok(), op: Some(Op::Best) };
        let row = one(job, defaults);
        assert_eq!((row.job.as_str(), row.boards.len(), row.adds, row.is_undecided), (job, 0, false, false));
    }

    #[test]
    fn what_a_board_is_may_stand_before_its_rows() {
        let board = "{\"board\":\"arena\",\"definition\":{\"ties\":\"last\"}}";
        let parsed = rows(&format!("{board}\n{{\"member\":\"m\"}}\n{board}"), Defaults::default());
        let [Parsed::Board(first), Parsed::Row(row), Parsed::Board(_)] = parsed.as_slice() else {
            panic!("{parsed:?}")
        };
        assert_eq!((first.json().as_str(), row.line), (board, 2));
        // A job of that field is a job, and for the service to judge.
        let job = "{\"member\":\"m\",\"definition\":{}}";
        assert_eq!(one(job, Defaults::default()).job, job);
        let bad = rows("{\"board\":\"no spaces\",\"definition\":{}}", Defaults::default());
        assert!(matches!(bad.as_slice(), [Parsed::Rejected(line)] if line.code == "malformed"), "{bad:?}");
    }

    #[test]
    fn the_command_line_fills_in_what_a_job_does_not_say() {
        let defaults = Defaults { board: BoardName::new("arena").ok(), op: Some(Op::Best) };
        for (job, expect) in [
            (
                "{\"member\":\"m\",\"score\":1}",
                "{\"board\":\"arena\",\"op\":\"best\",\"member\":\"m\",\"score\":1}",
            ),
            (
                "{\"member\":\"m\",\"board\":\"b\",\"score\":1e2,\"meta\":{\"n\":1.10}}",
                "{\"board\":\"arena\",\"op\":\"best\",\"member\":\"m\",\"meta\":{\"n\":1.10},\"score\":1e2}",
            ),
            ("{\"member\":\"m\",\"op\":\"set\"}", "{\"board\":\"arena\",\"member\":\"m\",\"op\":\"set\"}"),
        ] {
            let row = one(job, defaults.clone());
            assert_eq!((row.job.as_str(), names(&row.boards)), (expect, vec!["arena"]));
        }
        let several = rows("{\"member\":\"m\",\"scores\":{\"b\":1}}", defaults.clone());
        let [Parsed::Rejected(line)] = several.as_slice() else { panic!("refused, and not {several:?}") };
        assert_eq!(
            line.detail,
            "not a job object: it has scores, which name boards, and --board names arena"
        );
        let other = rows("{\"board\":\"b\",\"definition\":{}}", defaults);
        assert!(
            matches!(other.as_slice(), [Parsed::Board(line)] if line.board.as_str() == "arena"),
            "{other:?}"
        );
    }

    #[test]
    fn rows_of_an_export_keep_versions_times_and_who_is_hidden() {
        let (at, later) = ("2026-11-20T09:59:58Z", "2026-11-20T10:00:00Z");
        let line = |of_export: &str, version: &str, updated_at: &str| {
            format!(
                "{{\"board\":\"b\",\"member\":\"m\",\"op\":\"set\",\"score\":1,\"at\":\"{at}\"{version},\
                 {of_export},\"updated_at\":\"{updated_at}\"}}"
            )
        };
        let job = |version: &str, at: &str| {
            format!(
                "{{\"member\":\"m\",\"board\":\"b\",\"op\":\"set\",\"score\":1{version},\"at\":\"{at}\"}}"
            )
        };
        let (six, seven) = (",\"version\":6", ",\"version\":7");
        for of_export in ["\"rank\":1,\"position\":1", "\"hidden\":true"] {
            for (text, expect) in [
                (line(of_export, "", at), vec![job("", at)]),
                (line(of_export, seven, at), vec![job(seven, at)]),
                (line(of_export, "", later), vec![job("", at), job("", later)]),
                (line(of_export, seven, later), vec![job(six, at), job(seven, later)]),
                (line(of_export, ",\"version\":0", later), vec![job(",\"version\":0", at)]),
            ] {
                let parsed = rows(&text, Defaults::default());
                let jobs = parsed.into_iter().map(|parsed| match parsed {
                    Parsed::Row(row) => row.job,
                    other => panic!("{other:?}"),
                });
                assert_eq!(jobs.collect::<Vec<_>>(), expect, "{text}");
            }
        }
        // Who is hidden without an entry is a job as it stands.
        for hide in
            ["{\"board\":\"b\",\"member\":\"m\",\"op\":\"hide\"}", "{\"member\":\"m\",\"op\":\"hide\"}"]
        {
            assert_eq!(one(hide, Defaults::default()).job, hide);
        }
    }

    #[test]
    fn a_job_that_names_too_many_boards_is_rejected_without_keeping_their_names() {
        let job = |boards: usize| {
            let scores: Vec<_> = (0..boards).map(|number| format!("\"b{number}\":1")).collect();
            format!("{{\"member\":\"m\",\"scores\":{{{}}}}}", scores.join(","))
        };
        assert_eq!(one(&job(MAX_BOARDS_PER_JOB), Defaults::default()).boards.len(), MAX_BOARDS_PER_JOB);
        let parsed = rows(&job(MAX_BOARDS_PER_JOB + 1), Defaults::default());
        let [Parsed::Rejected(line)] = parsed.as_slice() else { panic!("rejected, and not {parsed:?}") };
        assert_eq!(line.code, "too_large");
    }

    #[test]
    fn what_counts_twice_when_sent_twice_is_known() {
        let check = |job: &str, adds: bool, is_undecided: bool, boards: &[&str]| {
            let row = one(job, Defaults::default());
            assert_eq!((row.adds, row.is_undecided), (adds, is_undecided), "{job}");
            assert_eq!(names(&row.boards), boards, "{job}");
        };
        for (job, adds, is_undecided) in [
            ("\"score\":1,\"op\":\"set\"", false, false),
            ("\"score\":1,\"op\":\"incr\"", true, false),
            ("\"score\":1,\"op\":\"incr\",\"version\":1", false, false),
            ("\"score\":1,\"op\":\"incr\",\"version\":null", true, false),
            ("\"score\":1,\"version\":1", false, false),
            ("\"score\":1", false, true),
        ] {
            check(&format!("{{\"board\":\"b\",\"member\":\"m\",{job}}}"), adds, is_undecided, &["b"]);
        }
        check("{\"scores\":{\"b\":1,\"c\":2},\"member\":\"m\"}", false, true, &["b", "c"]);
    }

    #[test]
    fn lines_that_are_no_job_are_rejected_and_the_next_is_read() {
        let long = format!("{{\"member\":\"{}\"}}", "x".repeat(MAX_JOB_BYTES));
        for (bad, code) in [
            ("null", "malformed"),
            ("[{\"member\":\"m\"}]", "malformed"),
            ("{\"member\":\"m\"", "malformed"),
            ("{\"member\":\"m\"} {}", "malformed"),
            ("{\"member\":7}", "bad_member"),
            ("{\"score\":7}", "malformed"),
            ("{}", "malformed"),
            (long.as_str(), "too_large"),
        ] {
            let text = format!("\n{{\"member\":\"a\"}}\n\n{bad}\n \t\n{{\"member\":\"z\"}}");
            let told: Vec<_> = rows(&text, Defaults::default())
                .into_iter()
                .map(|parsed| match parsed {
                    Parsed::Row(row) => (row.line, String::new()),
                    Parsed::Rejected(line) => (line.line, line.code),
                    Parsed::Board(_) => panic!("nothing is defined"),
                })
                .collect();
            assert_eq!(told, [(2, String::new()), (4, code.to_owned()), (6, String::new())]);
        }
    }

    /// Otherwise the rows of a past season would go into `all`.
    #[test]
    fn rows_of_an_export_do_not_come_without_their_board() {
        let row = r#"{"board":"b","member":"m","op":"set","score":1,"position":1}"#;
        for first in
            [r#"{"board":"b","window":"s0","definition":{"windows":["season"]}}"#, r#"{"board":"b","#]
        {
            let text = format!("{first}\n{row}\n");
            let mut rows = NdjsonRows::new(text.as_bytes(), Defaults::default());
            assert!(matches!(rows.next(), Some(Ok(Parsed::Rejected(_)))));
            assert!(matches!(rows.next(), Some(Err(ImportError::BoardLine(_)))));
        }
        // Other jobs, and rows whose first line was left out, are told apart by themselves.
        assert!(matches!(rows(row, Defaults::default()).as_slice(), [Parsed::Row(_)]));
    }

    #[test]
    fn a_job_that_only_fits_without_the_defaults_is_too_large() {
        let job = format!("{{\"member\":\"m\",\"x\":\"{}\"}}", "x".repeat(MAX_JOB_BYTES - 21));
        assert_eq!(one(&job, Defaults::default()).job.len(), MAX_JOB_BYTES);
        let defaults = Defaults { board: None, op: Some(Op::Set) };
        let parsed = rows(&job, defaults);
        let [Parsed::Rejected(line)] = parsed.as_slice() else { panic!("too large, and not {parsed:?}") };
        assert_eq!((line.line, line.code.as_str()), (1, "too_large"));
    }
}

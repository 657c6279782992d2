//! A row of JSON that is a job, passed on as it is written, but for what the command line says.
//!
//! An import reads only what it must know of a job. The service judges whether the job is valid.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use smallvec::smallvec;

use crate::cli::board_line::BoardLine;
use crate::cli::import::read::column_names::{Asked, Field};
use crate::cli::import::read::entry::ABSENT_HIDES;
use crate::cli::import::read::job_text::JobText;
use crate::cli::import::read::limits::MAX_JOB_BYTES;
use crate::cli::import::read::row::{Boards, LastBoard, Parsed, RejectedLine, Row, version_before};
use crate::cli::import::read::rules::Rules;
use crate::job::{MAX_BOARDS_PER_JOB, Op, Reject, RejectCode};
use crate::types::{BoardName, Timestamp, decimal, quoted};
use crate::wire;
use crate::wire::json_words;

/// The fields of a job that decide its lane and whether it may be sent twice.
#[derive(Deserialize)]
#[expect(
    clippy::zero_sized_map_values,
    reason = "the line is a JSON map, of which only the boards' names are read"
)]
pub struct Peek<'a> {
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

impl Peek<'_> {
    /// Whether the line is an entry of an export, of which not every field is a job's.
    pub fn is_exported(&self) -> bool {
        self.is_listed() || self.is_hidden()
    }

    /// Standings of others have a position or a rank, too.
    pub fn is_listed(&self) -> bool {
        self.position.is_some() && self.updated_at.is_some()
    }

    pub fn is_hidden(&self) -> bool {
        self.hidden.is_some_and(|hidden| hidden.get() == "true")
    }

    /// Whether the line says what the board of an export is.
    pub fn is_board(&self) -> bool {
        self.definition.is_some() && self.member.is_none()
    }
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

/// What is known of a line that is to be a job.
pub struct JobLine<'a> {
    pub line: u64,
    pub text: &'a str,
    pub rules: &'a Rules,
    /// A line before it says that the file is an export.
    pub is_described: bool,
}

impl JobLine<'_> {
    /// What the line is, and the row that is to follow it.
    ///
    /// # Errors
    /// When it is no job, or what the command line says cannot hold for it.
    pub fn parse(&self, last_board: &mut LastBoard) -> Result<(Parsed, Option<Row>), RejectedLine> {
        let (text, rules) = (self.text, self.rules);
        let peek = self.peek()?;
        if peek.is_board() {
            let line = BoardLine::parse(text).map_err(|why| self.malformed(&why))?;
            return Ok((Parsed::Board(line.with_name(rules.board.as_ref())), None));
        }
        if peek.scores.as_ref().is_some_and(|scores| scores.len() > MAX_BOARDS_PER_JOB) {
            let why = || self.malformed(&format!("it names more than {MAX_BOARDS_PER_JOB} boards"));
            return Err(self.refusal().unwrap_or_else(why));
        }
        let op = self.op(&peek)?;
        if rules.if_absent && peek.is_hidden() {
            return Err(self.malformed(ABSENT_HIDES));
        }
        let words = |why: serde_json::Error| self.malformed(&json_words(text.as_bytes(), &why));
        let twice = self.twice(&peek, op).map_err(words)?;
        let exported = peek.is_exported().then(|| {
            let job: Exported<'_> = serde_json::from_str(text)?;
            let first = twice.as_ref().and_then(|twice| twice.first_version.as_deref());
            serde_json::to_string(&Exported { version: first.or(job.version), ..job })
        });
        let exported = exported.transpose().map_err(words)?;
        let own = peek.op.as_deref();
        // A profile is on no board.
        let given = rules.board.as_ref().filter(|_| own != Some(Op::Profile.name()));
        if let (Some(given), Some(_)) = (given, &peek.scores) {
            return Err(
                self.malformed(&format!("it has scores, which name boards, and --board names {given}"))
            );
        }
        let Some(member) = &peek.member else {
            return Err(self.malformed("member is missing"));
        };
        let is_scored =
            op.is_none_or(|op| Op::ALL.iter().all(|known| known.name() != op || known.takes_score()));
        let dropped = self.dropped(&peek, given.is_some(), op, is_scored);
        let text = exported.as_deref().unwrap_or(text);
        let rewritten = (!dropped.is_empty()).then(|| without(text, &dropped)).transpose().map_err(words)?;
        let fields = rewritten.as_deref().unwrap_or(text).trim_start_matches('{');

        // What the command line says is written in front of the job's own fields, which stay byte for byte as
        // they were: a parser could lose digits of numbers. Names of operations need no escapes.
        let board = given.map(|board| format!("\"board\":{},", json!(board.as_str()))).unwrap_or_default();
        let is_added = own.is_none() || dropped.contains(&"op");
        let written_op = op.filter(|_| is_added).map(|op| format!("\"op\":\"{op}\",")).unwrap_or_default();
        let version = rules.version.filter(|_| is_scored);
        let version = version.map(|version| format!("\"version\":{version},")).unwrap_or_default();
        let job = format!("{{{board}{written_op}{version}{fields}");
        if job.len() > MAX_JOB_BYTES {
            return Err(too_long(self.line));
        }
        let has_version = peek.version.is_some() || !version.is_empty();
        let mut boards: Boards =
            peek.scores.iter().flatten().map(|(name, _)| Arc::from(name.as_str())).collect();
        let named = given.map(BoardName::as_str).or(peek.board.as_deref());
        boards.extend(named.map(|name| last_board.share(name)));
        let row = Row::new(self.line, job, member, op, has_version, boards);
        let row = Row { at: peek.at.as_deref().and_then(|at| Timestamp::parse(at).ok()), ..row };
        let repeat = twice.map(|twice| row.repeated(twice.second));
        let takes_time = peek.at.is_none() && is_scored;
        Ok((Parsed::Row(if takes_time { row.without_time() } else { row }), repeat))
    }

    /// Whether the line is passed on as it is where other rows are read field by field: it hides, shows or
    /// removes a member, or is a profile, and no option is about what it has.
    pub fn has_no_fields(&self) -> bool {
        let Rules { columns, slug, member_from_key, .. } = self.rules;
        let Ok(peek) = self.peek() else { return false };
        let is_unscored = |name: &str| Op::ALL.iter().any(|op| op.name() == name && !op.takes_score());
        let is_free = |field: &Field| columns.of(field) == Asked::No;
        peek.op.as_deref().is_some_and(is_unscored)
            && is_free(&Field::Member)
            && is_free(&Field::Board)
            && is_free(&Field::Op)
            && (peek.version.is_none() || is_free(&Field::Version))
            && !(*slug || *member_from_key)
    }

    /// Who is hidden by the line: a member on a board, or, without one, on all.
    pub fn hides(&self) -> Option<(String, Option<String>)> {
        let peek = self.peek().ok().filter(|peek| peek.op.as_deref() == Some(Op::Hide.name()))?;
        let given = self.rules.board.as_ref().map(BoardName::as_str).or(peek.board.as_deref());
        let is_of_boards = peek.scores.is_some();
        Some((peek.member?.into_owned(), given.map(str::to_owned))).filter(|_| !is_of_boards)
    }

    /// Whom the line's entry says to be hidden on its board, and the row that hides them there.
    pub fn hidden(&self, last_board: &mut LastBoard) -> Option<(String, String, Row)> {
        let peek = self.peek().ok()?;
        let is_hidden = peek.is_hidden();
        let is_shown = self
            .op(&peek)
            .ok()?
            .is_none_or(|name| Op::ALL.iter().any(|op| op.name() == name && op.takes_score()));
        let board = self.rules.board.as_ref().map(BoardName::as_str).or(peek.board.as_deref());
        let (board, member) = (board.filter(|_| is_hidden && is_shown)?, peek.member.as_deref()?);
        BoardName::new(board).ok()?;
        let job = JobText { board, member, op: Some(Op::Hide.name()), ..JobText::default() };
        let boards = smallvec![last_board.share(board)];
        let row = Row::new(self.line, job.json(), member, job.op, false, boards);
        Some((member.to_owned(), board.to_owned(), Row { is_repeat: true, ..row }))
    }

    /// # Errors
    /// When the line is no JSON object.
    pub fn peek(&self) -> Result<Peek<'_>, RejectedLine> {
        if self.text.starts_with('[') {
            return Err(self.malformed(&format!(
                "the row is an array, {}; --column member=0 --column score=1 reads its places, from 0",
                quoted(self.text)
            )));
        }
        if !self.text.starts_with('{') {
            let advice = if self.text.starts_with('"') {
                "; of a sorted set, redis-cli --csv writes in place of --json what is read"
            } else {
                ""
            };
            return Err(
                self.malformed(&format!("the row begins with {}, not with {{{advice}", quoted(self.text)))
            );
        }
        serde_json::from_str(self.text).map_err(|why| {
            self.refusal().unwrap_or_else(|| self.malformed(&json_words(self.text.as_bytes(), &why)))
        })
    }

    /// The operation of the row: what `--op` says holds for every row, or the row is refused.
    fn op<'a>(&self, peek: &'a Peek<'_>) -> Result<Option<&'a str>, RejectedLine> {
        let own = peek.op.as_deref();
        let Some(given) = self.rules.op else { return Ok(own) };
        let is_scored = |name: &str| Op::ALL.iter().any(|op| op.name() == name && op.takes_score());
        match own {
            None => Ok(Some(given.name())),
            Some(own) if own == given.name() => Ok(Some(given.name())),
            Some(own) if is_scored(own) && peek.scores.is_some() && !given.takes_score() => {
                let given = given.name();
                Err(self.malformed(&format!("it has scores of several boards, and --op {given} is about one")))
            }
            Some(own) if is_scored(own) => Ok(Some(given.name())),
            // Who is hidden, and profiles, are part of an export beside its scores.
            Some(_) if self.is_described && !self.rules.if_absent => Ok(own),
            Some(own) => Err(self.malformed(&format!(
                "its op is {}, and {} is to hold for every row; import the rows of other operations apart, without it",
                quoted(own),
                self.rules.op_flag()
            ))),
        }
    }

    /// The fields of the job that are to be left away, because others take their place.
    fn dropped(
        &self,
        peek: &Peek<'_>,
        has_board: bool,
        op: Option<&str>,
        is_scored: bool,
    ) -> Vec<&'static str> {
        let mut dropped = Vec::new();
        if has_board && peek.board.is_some() {
            dropped.push("board");
        }
        if peek.op.as_deref().is_some_and(|own| op != Some(own)) {
            dropped.push("op");
            if !is_scored {
                dropped.extend(["score", "meta", "at"]);
            }
        }
        if self.rules.version.is_some() && is_scored && self.text.contains("\"version\"") {
            dropped.push("version");
        }
        // A time that is null would be there twice.
        if peek.at.is_none() && is_scored && self.text.contains("\"at\"") {
            dropped.push("at");
        }
        dropped
    }

    fn twice(&self, peek: &Peek<'_>, op: Option<&str>) -> serde_json::Result<Option<Twice>> {
        let (Some(updated_at), Some(at)) = (&peek.updated_at, &peek.at) else { return Ok(None) };
        let is_set = op == Some(Op::Set.name()) && peek.op.is_some() && self.rules.version.is_none();
        // No version is before 0, and what is no version is the service's to refuse.
        let version =
            peek.version.map(|version| decimal::<u64>(version.get().trim_matches('"')).unwrap_or(0));
        if !is_set || !peek.is_exported() || updated_at == at || version == Some(0) {
            return Ok(None);
        }
        let first_version = version.map(|version| to_raw_value(&version_before(version))).transpose()?;
        let board = self.rules.board.as_ref().map(|board| to_raw_value(board.as_str())).transpose()?;
        let (job, at) = (serde_json::from_str::<Exported<'_>>(self.text)?, to_raw_value(updated_at)?);
        let set = to_raw_value(Op::Set.name())?;
        let job = Exported {
            board: board.as_deref().or(job.board),
            op: Some(&set),
            at: Some(&at),
            meta: None,
            ..job
        };
        Ok(Some(Twice { first_version, second: serde_json::to_string(&job)? }))
    }

    /// What the service would say of a job that is JSON, and of which a field is of another kind than it
    /// should be.
    fn refusal(&self) -> Option<RejectedLine> {
        let refused = match wire::decode(self.text.as_bytes()) {
            Ok(jobs) => jobs.into_iter().find_map(Result::err),
            Err(reject) => Some(reject),
        };
        refused.map(|Reject { code, detail }| RejectedLine::new(self.line, code, detail))
    }

    fn malformed(&self, why: &str) -> RejectedLine {
        RejectedLine::new(self.line, RejectCode::Malformed, format!("not a job object: {why}"))
    }
}

/// An entry that was updated after its score was reached, which takes two jobs.
struct Twice {
    /// Of the job of the line, if the entry has a version.
    first_version: Option<Box<RawValue>>,
    /// The job that gives the entry the time of its last update, and its version.
    second: String,
}

/// A job without some of its fields, and otherwise byte for byte as it was.
fn without(job: &str, dropped: &[&str]) -> serde_json::Result<String> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(job)?;
    for name in dropped {
        fields.remove(*name);
    }
    serde_json::to_string(&fields)
}

pub fn too_long(line: u64) -> RejectedLine {
    let why = format!("a row must be at most {MAX_JOB_BYTES} bytes long, as a job");
    RejectedLine::new(line, RejectCode::TooLarge, why)
}

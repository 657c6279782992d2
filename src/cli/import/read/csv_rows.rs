//! Rows of a CSV file: a header that says which column is what, then one job per record.

use std::io::BufRead;

use serde_json::value::RawValue;
use smallvec::{SmallVec, smallvec};

use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::read::csv_columns::{ColumnNames, Columns};
use crate::cli::import::read::csv_records::{Records, board_line};
use crate::cli::import::read::job_text::JobText;
use crate::cli::import::read::limits::MAX_COLUMNS;
use crate::cli::import::read::row::{Defaults, LastBoard, Parsed, RejectedLine, Row, version_before};
use crate::cli::import::read::scale::scaled;
use crate::cli::spreadsheet::unguarded;
use crate::job::{Op, RejectCode};
use crate::types::{BoardName, MAX_KEYS, Malformed, MemberId, Score, Timestamp, decimal, quoted};
use crate::wire::json_words;
use crate::wire::lenient::parse_integer;

/// Rows of one record behind its first one: the entry once more, and that its member is hidden.
type Followers = SmallVec<[Row; 2]>;

/// Reads records as jobs.
pub struct CsvRows<R> {
    records: Records<R>,
    header: Vec<String>,
    columns: Columns,
    defaults: Defaults,
    last_board: LastBoard,
    /// What scores are multiplied by.
    scale: u32,
    /// The board of an export, until it was returned as the first row.
    board: Option<BoardLine>,
    /// What comes before the next record, the first one last.
    followers: Followers,
    /// Whether names have an apostrophe where a spreadsheet would compute them.
    is_spreadsheet_safe: bool,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header, and what an export has before it.
    ///
    /// # Errors
    /// When it cannot be read, or lacks a column that is needed.
    pub fn open(mut reader: R, names: &ColumnNames, mut defaults: Defaults) -> Result<Self, ImportError> {
        let board = board_line(&mut reader)?;
        if board.is_some() {
            // The rows of an export are scores, and no increments.
            defaults.op.get_or_insert(Op::Set);
        }
        let mut records = Records::new(reader, u64::from(board.is_some()));
        if records.read()?.is_none() {
            return Err(ImportError::Empty);
        }
        if records.record.len() > MAX_COLUMNS {
            return Err(ImportError::ManyColumns(records.record.len()));
        }
        let name = |cell: &[u8]| String::from_utf8_lossy(cell).trim().to_owned();
        let header: Vec<_> = records.record.iter().map(name).collect();
        let columns = Columns::find(&header, names, &defaults)?;
        let last_board = LastBoard::default();
        let is_spreadsheet_safe = board.as_ref().is_some_and(|board| board.spreadsheet_safe);
        let (scale, followers) = (1, Followers::new());
        Ok(Self {
            records,
            header,
            columns,
            defaults,
            last_board,
            scale,
            board,
            followers,
            is_spreadsheet_safe,
        })
    }

    /// # Arguments
    /// `is_safe`: whether names have an apostrophe where a spreadsheet would compute them, also if no first
    /// line says so.
    pub fn spreadsheet_safe(self, is_safe: bool) -> Self {
        Self { is_spreadsheet_safe: self.is_spreadsheet_safe || is_safe, ..self }
    }

    /// Multiplies every key of every score, which may be a decimal number then.
    pub fn scaled_by(self, scale: u32) -> Self {
        Self { scale, ..self }
    }

    /// Says which columns are not used, if any.
    pub fn ignored_note(&self) -> Option<String> {
        self.columns.ignored_note(&self.header)
    }

    /// A row of several lines may be several rows, because of a quotation mark that should not be there.
    fn with_last_line(&self, rejected: RejectedLine) -> RejectedLine {
        let last = self.records.last_line;
        if last == rejected.line {
            return rejected;
        }
        let detail = format!("{}; a quoted cell makes one row of the lines up to {last}", rejected.detail);
        RejectedLine { detail, ..rejected }
    }

    /// The row, and those that are to follow it, the first one last.
    fn parse(&mut self, line: u64) -> Result<(Row, Followers), RejectedLine> {
        let refuse = |code, why: Malformed, text: &str| RejectedLine::new(line, code, why.got(text));
        let malformed = |why: String| RejectedLine::new(line, RejectCode::Malformed, why);
        let record = &self.records.record;
        let (found, expected) = (record.len(), self.header.len());
        if found != expected {
            return Err(malformed(format!("the header has {expected} columns, and this row has {found}")));
        }
        let Columns { board, member, score, at, version, meta, updated_at, hidden } = self.columns;
        let cell = |column: usize| {
            let bytes = record.get(column).unwrap_or_default();
            let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            std::str::from_utf8(bytes).map_err(|_| malformed("the row is not UTF-8".to_owned()))
        };
        // An empty cell is an absent field.
        let optional = |column: Option<usize>| match column {
            Some(column) => cell(column).map(|text| Some(text.trim()).filter(|text| !text.is_empty())),
            None => Ok(None),
        };

        let member = cell(member)?;
        let member = if self.is_spreadsheet_safe { unguarded(member) } else { member };
        let member = MemberId::new(member).map_err(|why| refuse(RejectCode::BadMember, why, member))?;
        let board = match (&self.defaults.board, optional(board)?) {
            (Some(given), _) => given.as_str(),
            (None, Some(name)) if self.last_board.is(name) => name,
            (None, Some(name)) => {
                BoardName::new(name).map_err(|why| refuse(RejectCode::Malformed, why, name))?;
                name
            }
            (None, None) => {
                return Err(malformed("the row names no board, and --board is not given".to_owned()));
            }
        };
        let is_hidden = optional(hidden)? == Some("true");
        let score_text = optional(score)?.unwrap_or_default();
        let mut followers = Followers::new();
        let hide =
            JobText { board, member: member.as_str(), op: Some(Op::Hide.name()), ..JobText::default() };
        if is_hidden {
            let boards = smallvec![self.last_board.share(board)];
            let row = Row::new(line, hide.json(), member.as_str(), hide.op, false, boards);
            // Who is hidden need not have an entry.
            if score_text.is_empty() {
                return Ok((row, followers));
            }
            followers.push(row.repeated(hide.json()));
        }
        let score = if self.defaults.op.is_none_or(Op::takes_score) {
            let text = score_text;
            Some(
                match self.scale {
                    1 => parse_score(text),
                    scale => parse_scaled(text, scale),
                }
                .map_err(|why| RejectedLine::new(line, RejectCode::BadScore, why))?,
            )
        } else {
            None
        };
        let time = |column: Option<usize>| {
            let parse = |text| parse_time(text).map_err(|why| refuse(RejectCode::Malformed, why, text));
            optional(column)?.map(parse).transpose()
        };
        let (at, updated_at) = (time(at)?, time(updated_at)?);
        let no_version =
            |text| malformed(format!("a version must be an unsigned 64-bit integer; got {}", quoted(text)));
        let version = optional(version)?.map(|text| decimal::<u64>(text).ok_or_else(|| no_version(text)));
        let version = version.transpose()?;

        let meta = optional(meta)?.map(|text| {
            serde_json::from_str::<&RawValue>(text).map_err(|why| {
                let why = json_words(text.as_bytes(), &why);
                malformed(format!("meta must be a JSON object; got {}: {why}", quoted(text)))
            })
        });
        let meta = meta.transpose()?;

        let op = self.defaults.op.map(Op::name);
        let meta = meta.map(RawValue::get);
        // An export of an entry that was updated after its score was reached.
        let updated_later = updated_at.filter(|updated_at| at.is_some_and(|at| at != *updated_at));
        let repeated_at = updated_later.filter(|_| self.defaults.op == Some(Op::Set) && version != Some(0));
        let first_version = if repeated_at.is_some() { version.map(version_before) } else { version };
        let (member, score) = (member.as_str(), score.as_ref());
        let job = JobText { board, member, score, op, version: first_version, at, meta };
        let boards = smallvec![self.last_board.share(board)];
        let row = Row::new(line, job.json(), member, op, version.is_some(), boards);
        if let Some(updated_at) = repeated_at {
            followers.push(row.repeated(JobText { at: Some(updated_at), version, meta: None, ..job }.json()));
        }
        Ok((row, followers))
    }
}

impl<R: BufRead> Iterator for CsvRows<R> {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(board) = self.board.take() {
            return Some(Ok(Parsed::Board(board.with_name(self.defaults.board.as_ref()))));
        }
        if let Some(follower) = self.followers.pop() {
            return Some(Ok(Parsed::Row(follower)));
        }
        match self.records.read() {
            Ok(Some(line)) => match self.parse(line) {
                Ok((row, followers)) => {
                    self.followers = followers;
                    Some(Ok(Parsed::Row(row)))
                }
                Err(rejected) => Some(Ok(Parsed::Rejected(self.with_last_line(rejected)))),
            },
            Ok(None) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// `1200`, or `1200,90000` for several keys.
fn parse_score(text: &str) -> Result<Score, String> {
    let keys = text.split(',').map(|key| parse_integer(key.trim()));
    let keys: SmallVec<[i64; MAX_KEYS]> = keys.collect::<Result<_, _>>()?;
    Score::new(&keys).map_err(|why| why.got(text))
}

/// The same with decimal numbers, each multiplied.
fn parse_scaled(text: &str, scale: u32) -> Result<Score, String> {
    let keys = text.split(',').map(|key| scaled(key.trim(), scale));
    Score::new(&keys.collect::<Result<Vec<i64>, _>>()?).map_err(|why| why.to_string())
}

/// RFC 3339, or a date, which is its midnight in UTC.
fn parse_time(text: &str) -> Result<Timestamp, Malformed> {
    let is_date = text.len() == "2026-07-24".len();
    if is_date { Timestamp::parse(&format!("{text}T00:00:00Z")) } else { Timestamp::parse(text) }
}

#[cfg(test)]
#[path = "csv_rows_tests.rs"]
mod tests;

//! Rows of a CSV file: a header that says which column is what, or `--no-header`, then one job per record.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::BufRead;

use csv::ByteRecord;
use smallvec::smallvec;

use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::read::csv_cells::{Written, is_empty};
use crate::cli::import::read::csv_columns::{Columns, Found, Header};
use crate::cli::import::read::csv_head::{
    SAMPLE_ROWS, check_first, check_separator, has_row_names, read_ahead, separator_line, skip_lines,
};
use crate::cli::import::read::csv_names::names_note;
use crate::cli::import::read::csv_records::{Records, board_line};
use crate::cli::import::read::encoding::readings;
use crate::cli::import::read::entry::{Builder, Built, Cells, KeyCell, Shared, row_op};
use crate::cli::import::read::names::{is_no_value, trimmed_name};
use crate::cli::import::read::numbers;
use crate::cli::import::read::row::{Followers, Parsed, RejectedLine};
use crate::cli::import::read::rules::Rules;
use crate::cli::import::read::sums::{self, Doubt, Sums, is_of_sums};
use crate::cli::spreadsheet::unguarded;
use crate::job::{Op, RejectCode};
use crate::types::{quoted, shown};

/// Reads records as jobs.
pub struct CsvRows<R> {
    records: Records<R>,
    /// Records that were read ahead, each with its first and its last line.
    ahead: VecDeque<(u64, u64, ByteRecord)>,
    /// The one that is read, and its last line.
    record: ByteRecord,
    last_line: u64,
    header: Vec<String>,
    delimiter: u8,
    columns: Columns,
    builder: Builder,
    /// Rows before this line are passed over.
    from_line: u64,
    /// The board of an export, until it was returned as the first row.
    board: Option<BoardLine>,
    /// What comes before the next record, the first one last.
    followers: Followers,
    /// Whether names have an apostrophe where a spreadsheet would compute them.
    is_spreadsheet_safe: bool,
    /// Of the rows so far.
    sums: Sums,
    note: String,
}

impl<R: BufRead> CsvRows<R> {
    /// Reads the header, and what a file may have before it.
    ///
    /// # Errors
    /// When it cannot be read, or lacks a column that is needed.
    pub fn open(mut reader: R, rules: &Rules, shared: Shared, from_line: u64) -> Result<Self, ImportError> {
        let mut rules = rules.clone();
        let mut lines_before = skip_lines(&mut reader, rules.skip_lines)?;
        // Whoever writes a line for spreadsheets may write it before or behind that of an export.
        let mut separator = separator_line(&mut reader, lines_before + 1)?;
        let line = lines_before + u64::from(separator.is_some());
        let board = if rules.skip_lines == 0 { board_line(&mut reader, line + 1)? } else { None };
        if board.is_some() {
            // The rows of an export are scores, and no increments.
            rules.op.get_or_insert(Op::Set);
        }
        lines_before = line + u64::from(board.is_some());
        if separator.is_none() {
            separator = separator_line(&mut reader, lines_before + 1)?;
            lines_before += u64::from(separator.is_some());
        }
        let delimiter = match (rules.delimiter, separator) {
            (Some(given), Some(said)) if given != said => {
                return Err(ImportError::SeparatorLine(char::from(said).to_string()));
            }
            (given, said) => given.or(said).unwrap_or(b','),
        };
        if !rules.no_quotes {
            check_separator(&mut reader, delimiter, lines_before + 1)?;
        }
        let mut records = Records::new(reader, delimiter, !rules.no_quotes, lines_before);
        let Some(first_line) = records.read()? else { return Err(ImportError::Empty) };
        check_first(&records.record, delimiter)?;
        let ends_in_cr = records.record.iter().next_back().is_some_and(|cell| cell.ends_with(b"\r"));
        let mut ahead = Vec::new();
        let header: Vec<String> = if rules.no_header {
            ahead.push((first_line, records.last_line, records.record.clone()));
            (1..=records.record.len()).map(|number| number.to_string()).collect()
        } else {
            let name = |cell: &[u8]| {
                let name = std::str::from_utf8(cell).map(|name| name.trim().to_owned());
                name.map_err(|_| {
                    ImportError::HeaderEncoding(quoted(&String::from_utf8_lossy(cell)), readings(cell))
                })
            };
            records.record.iter().map(name).collect::<Result<_, _>>()?
        };
        let failure = read_ahead(&mut records, &mut ahead);
        let of_header = Header {
            names: &header,
            sample: &ahead,
            rules: &rules,
            delimiter: char::from(delimiter),
            is_exported: board.is_some(),
        };
        let Found { columns, names, mut note } = of_header.find()?;
        if !rules.no_header && has_row_names(&ahead, header.len()) {
            let score = columns.scores.first().map_or(0, |score| score + 2);
            return Err(ImportError::RowNames { line: first_line, member: columns.member + 2, score });
        }
        if columns.is_exported && !rules.has_plain_numbers() {
            return Err(ImportError::ScaledExport);
        }
        if columns.is_exported && board.is_none() {
            if delimiter != b',' || separator.is_some() || ends_in_cr {
                return Err(ImportError::SavedExport(
                    "its first line is missing, and separators or ends of lines are others",
                ));
            }
            rules.op.get_or_insert(Op::Set);
        }
        let is_spreadsheet_safe =
            rules.spreadsheet_safe || board.as_ref().is_some_and(|board| board.spreadsheet_safe);
        records.failure = failure;
        if !is_spreadsheet_safe && !columns.is_exported {
            note += &names_note(&ahead, columns.member);
        }
        let mut builder = Builder::new(rules, names, shared);
        builder.look_at_members(ahead.iter().filter_map(|(_, _, record)| {
            std::str::from_utf8(record.get(columns.member).unwrap_or_default()).ok()
        }));
        if !builder.rules.durations.is_empty() {
            let cell = |record: &ByteRecord, column: usize| {
                String::from_utf8_lossy(record.get(column).unwrap_or_default()).trim().to_owned()
            };
            let sample = |column: &usize| ahead.iter().map(|(_, _, record)| cell(record, *column)).collect();
            let samples: Vec<Vec<String>> = columns.scores.iter().map(sample).collect();
            note += &builder.look_at_durations(&builder.names.scores.clone(), &samples);
        }
        Ok(Self {
            records,
            ahead: ahead.into(),
            record: ByteRecord::new(),
            last_line: 0,
            header,
            delimiter,
            columns,
            builder,
            from_line,
            board,
            followers: Followers::new(),
            is_spreadsheet_safe,
            sums: Sums::default(),
            note,
        })
    }

    /// Says which columns are read, and why.
    pub fn note(&self) -> &str {
        &self.note
    }

    fn next_record(&mut self) -> Result<Option<u64>, ImportError> {
        if let Some((line, last_line, record)) = self.ahead.pop_front() {
            (self.record, self.last_line) = (record, last_line);
            return Ok(Some(line));
        }
        let line = self.records.read()?;
        std::mem::swap(&mut self.record, &mut self.records.record);
        self.last_line = self.records.last_line;
        Ok(line)
    }

    /// A row of several lines may be several rows, because of a quotation mark that should not be there.
    fn with_last_line(&self, rejected: RejectedLine) -> RejectedLine {
        if self.last_line == rejected.place.line {
            return rejected;
        }
        let detail =
            format!("{}; a quoted cell makes one row of the lines up to {}", rejected.detail, self.last_line);
        RejectedLine { detail, ..rejected }
    }

    fn parse(&mut self, line: u64) -> Result<Built, RejectedLine> {
        let record = &self.record;
        let malformed = |why: String| RejectedLine::new(line, RejectCode::Malformed, why);
        if record.len() > 1 && record.iter().all(is_empty) {
            // Spreadsheets write rows of separators alone.
            return Ok(Built::Blank(String::new()));
        }
        let written = Written {
            record,
            header: &self.header,
            columns: &self.columns,
            rules: &self.builder.rules,
            delimiter: self.delimiter,
            last_line: Some(self.last_line).filter(|last_line| *last_line > line),
        };
        written.check().map_err(|(code, why)| RejectedLine::new(line, code, why))?;
        let cell = |column: usize| {
            let bytes = record.get(column).unwrap_or_default();
            std::str::from_utf8(bytes.strip_suffix(b"\r").unwrap_or(bytes)).unwrap_or_default()
        };
        let optional = |column: Option<usize>| {
            column.map(|column| cell(column).trim()).filter(|text| !text.is_empty()).map(Cow::Borrowed)
        };
        let Columns { board, member, at, version, meta, updated_at, hidden, is_exported, .. } = self.columns;
        // An export has each name as it is.
        let member = if is_exported { cell(member) } else { trimmed_name(cell(member)) };
        let name = |name| if self.is_spreadsheet_safe { unguarded(name) } else { Cow::Borrowed(name) };
        let member = name(member);
        let key =
            |column: &usize| KeyCell { text: cell(*column).trim().into(), written: numbers::Written::Text };
        let parts = |parts: &'_ [(String, usize)]| -> Vec<(String, String)> {
            let part = |(name, column): &(String, usize)| {
                let text = cell(*column).trim();
                let json = serde_json::to_string(text).expect("every string can be JSON");
                // As databases write it, and --blank says.
                let is_absent = is_no_value(text) && self.builder.rules.is_blank(text);
                (!text.is_empty() && !is_absent).then(|| (name.clone(), json))
            };
            parts.iter().filter_map(part).collect()
        };
        let cells = Cells {
            member,
            board: board.map(|column| name(cell(column).trim())).filter(|board| !board.is_empty()),
            keys: if let [one] = self.columns.scores.as_slice() {
                smallvec![key(one)]
            } else {
                self.columns.scores.iter().map(key).collect()
            },
            at: optional(at),
            version: optional(version),
            meta: optional(meta),
            meta_parts: parts(&self.columns.meta_parts),
            profile_parts: parts(&self.columns.profile_parts),
            op: row_op(optional(self.columns.op).as_deref().unwrap_or_default(), self.builder.rules.op)
                .map_err(malformed)?,
            updated_at: optional(updated_at),
            is_hidden: is_true(optional(hidden).as_deref()).map_err(malformed)?,
            is_exported,
        };
        self.builder.build(line, &cells)
    }

    /// A sum among the rows would be a member, and lead.
    fn unless_sum(&mut self, line: u64, built: Built) -> Result<Built, RejectedLine> {
        if !matches!(built, Built::Row(..)) || self.columns.is_exported {
            return Ok(built);
        }
        let score = self.builder.first_key;
        let cell = self.record.get(self.columns.member).unwrap_or_default();
        let name = trimmed_name(std::str::from_utf8(cell).unwrap_or_default());
        let Some(doubt) = self.sums.doubt(name, score) else {
            self.sums.pass(score, true);
            return Ok(built);
        };
        let name = name.to_owned();
        let what = match doubt {
            Doubt::Is(what) => Some(what),
            Doubt::IfLast(what) => self.is_last().then_some(what),
            Doubt::IfFirst if self.is_last() => Some(sums::LAST_NAMED),
            Doubt::IfFirst => {
                let is_whole = self.read_ahead();
                let rest = self.ahead.iter().filter_map(|(_, _, record)| self.scored(record));
                Sums::begins(&name, score, rest, is_whole).then_some(sums::FIRST)
            }
        };
        self.sums.pass(score, what.is_none());
        let refused = |what| RejectedLine::new(line, RejectCode::BadMember, sums::refusal(&name, what));
        what.map_or(Ok(built), |what| Err(refused(what)))
    }

    /// Whether no row follows that has a member and a score. Remarks may.
    fn is_last(&mut self) -> bool {
        let is_member = |(name, _): (&str, Option<i64>)| !is_of_sums(name);
        let has_member =
            |rows: &Self| rows.ahead.iter().filter_map(|(_, _, record)| rows.scored(record)).any(is_member);
        !has_member(self) && self.read_ahead() && !has_member(self)
    }

    /// Reads as many rows ahead as decide about a row; whether these are all.
    fn read_ahead(&mut self) -> bool {
        while self.ahead.len() < SAMPLE_ROWS {
            match self.records.read() {
                Ok(Some(line)) => {
                    self.ahead.push_back((line, self.records.last_line, self.records.record.clone()));
                }
                Ok(None) => return true,
                Err(error) => {
                    self.records.failure = Some(error);
                    return false;
                }
            }
        }
        false
    }

    /// The member of a record that has one, and a score: that too, if it is a whole number.
    fn scored<'a>(&self, record: &'a ByteRecord) -> Option<(&'a str, Option<i64>)> {
        let cell =
            |column: usize| std::str::from_utf8(record.get(column).unwrap_or_default()).unwrap_or_default();
        let member = trimmed_name(cell(self.columns.member));
        let score = self.builder.number(cell(*self.columns.scores.first()?), numbers::Written::Text)?;
        (!member.is_empty()).then_some((member, score.integer().ok()))
    }

    /// Whether the row is a header once more, as where files were joined: `true` if it is the same one.
    fn is_header(&self, blank: Option<&str>) -> Option<bool> {
        let cells: Vec<&str> =
            self.record.iter().map(|cell| std::str::from_utf8(cell).unwrap_or_default().trim()).collect();
        let is_known = |cell: &&&str| self.header.iter().any(|name| name.eq_ignore_ascii_case(cell));
        let filled = cells.iter().filter(|cell| !cell.is_empty()).count();
        let known = cells.iter().filter(|cell| !cell.is_empty()).filter(is_known).count();
        let is_name = |column: usize| {
            cells
                .get(column)
                .zip(self.header.get(column))
                .is_some_and(|(cell, name)| name.eq_ignore_ascii_case(cell))
        };
        let is_named = is_name(self.columns.member) && blank.is_none();
        let has_number = cells.iter().any(|cell| cell.parse::<f64>().is_ok());
        let is_it = filled > 1 && known * 2 >= filled && (known > 1 || known == 1 && is_named) && !has_number;
        (is_it && !self.builder.rules.no_header).then(|| (0..self.header.len()).all(is_name))
    }

    /// A row that is left out or refused, unless it says that what follows has other columns.
    ///
    /// # Errors
    /// When it does.
    fn unless_header(&self, line: u64, parsed: Parsed) -> Result<Parsed, ImportError> {
        let blank = if let Parsed::Blank(text) = &parsed { Some(text.as_str()) } else { None };
        match self.is_header(blank) {
            None => Ok(parsed),
            Some(true) => Ok(Parsed::Rejected(RejectedLine::new(
                line,
                RejectCode::Malformed,
                "the row is the header once more: files were joined; import them as several, or take the line away",
            ))),
            Some(false) => {
                let cells = self.record.iter().map(String::from_utf8_lossy).collect::<Vec<_>>();
                Err(ImportError::OtherHeader { line, found: shown(&cells.join(", ")) })
            }
        }
    }
}

/// Whether who is in a row is hidden. Spreadsheets write it in capitals, or in their language.
fn is_true(text: Option<&str>) -> Result<bool, String> {
    let Some(text) = text else { return Ok(false) };
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") || is("false") || is("0") {
        return Ok(is("true"));
    }
    Err(format!(
        "column \"hidden\": must be true, false or empty, as in an export; got {}; --column hidden= leaves it out",
        quoted(text)
    ))
}

impl<R: BufRead> Iterator for CsvRows<R> {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(board) = self.board.take() {
            return Some(Ok(Parsed::Board(board.with_name(self.builder.rules.board.as_ref()))));
        }
        if let Some(follower) = self.followers.pop() {
            return Some(Ok(Parsed::Row(follower)));
        }
        loop {
            return match self.next_record() {
                Ok(Some(line)) if line < self.from_line => {
                    // Which of several rows of one time comes first is counted from the first row on.
                    if self.columns.at.is_some() {
                        let _ = self.parse(line);
                    }
                    continue;
                }
                Ok(Some(line)) => match self.parse(line).and_then(|built| self.unless_sum(line, built)) {
                    Ok(Built::Row(row, followers)) => {
                        self.followers = followers;
                        Some(Ok(Parsed::Row(row)))
                    }
                    Ok(Built::Blank(blank)) => Some(self.unless_header(line, Parsed::Blank(blank))),
                    Err(rejected) => {
                        let rejected = self.with_last_line(rejected);
                        Some(self.unless_header(line, Parsed::Rejected(rejected)))
                    }
                },
                Ok(None) => None,
                Err(error) => Some(Err(error)),
            };
        }
    }
}

#[cfg(test)]
#[path = "csv_rows_tests.rs"]
mod tests;

//! Rows of a CSV file: a header that says which column is what, or `--no-header`, then one job per record.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::BufRead;

use csv::ByteRecord;
use smallvec::smallvec;

use crate::cli::board_line::BoardLine;
use crate::cli::import::ImportError;
use crate::cli::import::read::csv_columns::{Columns, Found, Header};
use crate::cli::import::read::csv_footer::{Sum, is_of_sums};
use crate::cli::import::read::csv_head::{
    SAMPLE_ROWS, check_first, check_separator, has_lone_return, has_row_names, read_ahead, separator_line,
    skip_lines,
};
use crate::cli::import::read::csv_names::names_note;
use crate::cli::import::read::csv_records::{Records, board_line};
use crate::cli::import::read::encoding::readings;
use crate::cli::import::read::entry::{Builder, Built, Cells, KeyCell, Shared, row_op, trimmed_name};
use crate::cli::import::read::numbers::Written;
use crate::cli::import::read::row::{Followers, Parsed, RejectedLine};
use crate::cli::import::read::rules::Rules;
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
    sum: Sum,
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
            sum: Sum::default(),
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
        let (found, expected) = (record.len(), self.header.len());
        let malformed = |why: String| RejectedLine::new(line, RejectCode::Malformed, why);
        let is_empty = |cell: &[u8]| cell.iter().all(u8::is_ascii_whitespace);
        if found > 1 && record.iter().all(is_empty) {
            // Spreadsheets write rows of separators alone.
            return Ok(Built::Blank(String::new()));
        }
        // Some programs write a separator at the end of each row.
        let has_more = record.iter().skip(expected).any(|cell| !is_empty(cell));
        if found < expected || has_more {
            let of = if self.builder.rules.no_header { "first row" } else { "header" };
            return Err(malformed(format!("the {of} has {expected} columns, and this row has {found}")));
        }
        if std::str::from_utf8(record.as_slice()).is_err() {
            return Err(malformed(self.not_utf8()));
        }
        if has_lone_return(record) {
            return Err(malformed(ImportError::CarriageReturns.to_string()));
        }
        if self.last_line > line && record.iter().any(|cell| self.holds_row(cell)) {
            return Err(malformed(format!(
                "a quoted cell holds what seem to be rows, up to line {}: its quotation mark may be a character, and \
                 --no-quotes reads all as such",
                self.last_line
            )));
        }
        if let Some(rest) = self.rest_of_score() {
            return Err(RejectedLine::new(
                line,
                RejectCode::BadScore,
                format!(
                    "the cell {} behind the score is of a column without a name, and may belong to the score: quote the \
                 score, with --thousands or --decimal, or give the column a name",
                    quoted(rest)
                ),
            ));
        }
        if let Some(column) = self.late_quotes() {
            return Err(malformed(format!(
                "column {}: quotation marks enclose a cell only where nothing stands before them, and here is a \
                 space; take it away, or --no-quotes reads the marks as characters",
                quoted(self.header.get(column).map(String::as_str).unwrap_or_default())
            )));
        }
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
        let key = |column: &usize| KeyCell { text: cell(*column).trim().into(), written: Written::Text };
        let parts = |parts: &'_ [(String, usize)]| -> Vec<(String, String)> {
            let part = |(name, column): &(String, usize)| {
                let text = cell(*column).trim();
                let json = serde_json::to_string(text).expect("every string can be JSON");
                (!text.is_empty()).then(|| (name.clone(), json))
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

    /// A sum below the rows would be a member, and lead.
    fn unless_footer(&mut self, line: u64, built: Built) -> Result<Built, RejectedLine> {
        if !matches!(built, Built::Row(..)) || self.columns.is_exported {
            return Ok(built);
        }
        let has_sum = self.sum.add(self.builder.first_key);
        let cell = self.record.get(self.columns.member).unwrap_or_default();
        let name = std::str::from_utf8(cell).unwrap_or_default().trim();
        let what = match (is_of_sums(name), has_sum) {
            (true, _) => "in the last row seems to be a sum or the like below the rows",
            (false, true) => "in the last row has the sum of all rows above it",
            (false, false) => return Ok(built),
        };
        let why = format!(
            "{} {what}: take the line away, and what is below it, or move it further up if it is a member",
            quoted(name)
        );
        if self.is_last() { Err(RejectedLine::new(line, RejectCode::BadMember, why)) } else { Ok(built) }
    }

    /// Whether no row follows that has a member and a score. Remarks may.
    fn is_last(&mut self) -> bool {
        if self.ahead.iter().any(|(_, _, record)| self.is_scored(record)) {
            return false;
        }
        while self.ahead.len() < SAMPLE_ROWS {
            match self.records.read() {
                Ok(Some(line)) => {
                    let record = self.records.record.clone();
                    let is_more = self.is_scored(&record);
                    self.ahead.push_back((line, self.records.last_line, record));
                    if is_more {
                        return false;
                    }
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

    /// Whether a record has a member, who is no sum, and a score.
    fn is_scored(&self, record: &ByteRecord) -> bool {
        let cell =
            |column: usize| std::str::from_utf8(record.get(column).unwrap_or_default()).unwrap_or_default();
        let member = trimmed_name(cell(self.columns.member));
        let score = self.columns.scores.first().map(|column| cell(*column));
        let is_member = !member.is_empty() && !is_of_sums(member);
        is_member && score.is_some_and(|score| self.builder.is_number(score))
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

    /// Whether one of the lines in a cell, but the first, has as many cells as a row.
    fn holds_row(&self, cell: &[u8]) -> bool {
        let separators = self.header.len().saturating_sub(1);
        let is_row =
            |line: &[u8]| separators > 0 && memchr::memchr_iter(self.delimiter, line).count() == separators;
        memchr::memchr(b'\n', cell).is_some() && cell.split(|byte| *byte == b'\n').skip(1).any(is_row)
    }

    /// A column of texts that begins with spaces and a quotation mark.
    fn late_quotes(&self) -> Option<usize> {
        let Columns { board, member, meta_parts, profile_parts, is_exported, .. } = &self.columns;
        let parts = meta_parts.iter().chain(profile_parts).map(|(_, column)| *column);
        let is_late = |column: &usize| {
            let cell = self.record.get(*column).unwrap_or_default();
            cell.starts_with(b" ") && cell.trim_ascii_start().starts_with(b"\"")
        };
        let is_read_so = *is_exported || self.builder.rules.no_quotes;
        let mut columns = [*member].into_iter().chain(*board).chain(parts).filter(|_| !is_read_so);
        columns.find(is_late)
    }

    /// What stands behind a score where no column has a name: the rest of a number with a comma, perhaps.
    fn rest_of_score(&self) -> Option<&str> {
        let behind = |key: &usize| {
            let is_nameless = self.header.get(key + 1).is_some_and(String::is_empty);
            let cell = self.record.get(key + 1).filter(|_| is_nameless)?.trim_ascii();
            std::str::from_utf8(cell).ok().filter(|cell| cell.starts_with(|c: char| c.is_ascii_digit()))
        };
        self.columns.scores.iter().find_map(behind)
    }

    /// Names the first cell that is not UTF-8.
    fn not_utf8(&self) -> String {
        let bad = |(_, cell): &(usize, &[u8])| std::str::from_utf8(cell).is_err();
        let (column, cell) = (0..).zip(self.record.iter()).find(bad).unwrap_or_default();
        let name = self.header.get(column).map(String::as_str).unwrap_or_default();
        format!(
            "column {}: {} is not UTF-8; {}",
            quoted(name),
            quoted(&String::from_utf8_lossy(cell)),
            readings(cell)
        )
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
                Ok(Some(line)) => match self.parse(line).and_then(|built| self.unless_footer(line, built)) {
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

//! What is wrong with the cells of a record as they are written, whatever they say.

use csv::ByteRecord;

use crate::cli::import::ImportError;
use crate::cli::import::read::csv_columns::Columns;
use crate::cli::import::read::csv_head::has_lone_return;
use crate::cli::import::read::encoding::readings;
use crate::cli::import::read::names::is_no_value;
use crate::cli::import::read::rules::Rules;
use crate::cli::import::shell_word::shell_word;
use crate::job::RejectCode;
use crate::types::quoted;

/// A record, and what is known of the file.
pub struct Written<'a> {
    pub record: &'a ByteRecord,
    pub header: &'a [String],
    pub columns: &'a Columns,
    pub rules: &'a Rules,
    pub delimiter: u8,
    /// The record's last line, if it is not its first.
    pub last_line: Option<u64>,
}

impl Written<'_> {
    /// # Errors
    /// Why the record is not read.
    pub fn check(&self) -> Result<(), (RejectCode, String)> {
        let malformed = |why: String| Err((RejectCode::Malformed, why));
        self.check_width()?;
        if std::str::from_utf8(self.record.as_slice()).is_err() {
            return malformed(self.not_utf8());
        }
        if has_lone_return(self.record) {
            return malformed(ImportError::CarriageReturns.to_string());
        }
        if let Some(last_line) = self.last_line
            && self.record.iter().any(|cell| self.holds_row(cell))
        {
            return malformed(format!(
                "a quoted cell holds what seem to be rows, up to line {last_line}: its quotation mark may be a character, \
                 and --no-quotes reads all as such"
            ));
        }
        if let Some(rest) = self.rest_of_score() {
            return Err((
                RejectCode::BadScore,
                format!(
                    "the cell {} behind the score is of a column without a name, and may belong to the score: quote the \
                     score, with --thousands or --decimal, or give the column a name",
                    quoted(rest)
                ),
            ));
        }
        if let Some(column) = self.late_quotes() {
            return malformed(format!(
                "column {}: quotation marks enclose a cell only where nothing stands before them, and here is a \
                 space; take it away, or --no-quotes reads the marks as characters",
                quoted(self.name(column))
            ));
        }
        self.escaped().map_or(Ok(()), malformed)
    }

    fn check_width(&self) -> Result<(), (RejectCode, String)> {
        let (found, expected) = (self.record.len(), self.header.len());
        // Some programs write a separator at the end of each row.
        let has_more = self.record.iter().skip(expected).any(|cell| !is_empty(cell));
        if found >= expected && !has_more {
            return Ok(());
        }
        let of = if self.rules.no_header { "first row" } else { "header" };
        Err((RejectCode::Malformed, format!("the {of} has {expected} columns, and this row has {found}")))
    }

    fn name(&self, column: usize) -> &str {
        self.header.get(column).map(String::as_str).unwrap_or_default()
    }

    /// Columns whose texts become part of what is sent, but for the member's.
    fn further_texts(&self) -> impl Iterator<Item = usize> {
        let Columns { board, meta_parts, profile_parts, .. } = self.columns;
        board.iter().copied().chain(meta_parts.iter().chain(profile_parts).map(|(_, column)| *column))
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
        let is_late = |column: &usize| {
            let cell = self.record.get(*column).unwrap_or_default();
            cell.starts_with(b" ") && cell.trim_ascii_start().starts_with(b"\"")
        };
        let is_read_so = self.columns.is_exported || self.rules.no_quotes;
        let mut columns = [self.columns.member].into_iter().chain(self.further_texts());
        columns.find(|column| !is_read_so && is_late(column))
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

    /// That a text between tabs is written as databases dump it: a backslash is part of an escape, and `\N`
    /// stands where there is no value.
    fn escaped(&self) -> Option<String> {
        if self.delimiter != b'\t' || self.columns.is_exported {
            return None;
        }
        let text = |column: usize| {
            std::str::from_utf8(self.record.get(column).unwrap_or_default()).unwrap_or_default().trim()
        };
        let has_escape = |text: &str| {
            let bytes = text.as_bytes();
            let is_one = |at: usize| matches!(bytes.get(at + 1), Some(b'\\' | b't' | b'n' | b'r' | b'N'));
            memchr::memchr_iter(b'\\', bytes).any(is_one)
        };
        let is_absent = |column: usize| is_no_value(text(column)) && text(column).starts_with('\\');
        let parts =
            || self.columns.meta_parts.iter().chain(&self.columns.profile_parts).map(|(_, column)| *column);
        if let Some(column) = parts().find(|column| is_absent(*column) && !self.rules.is_blank(text(*column)))
        {
            return Some(format!(
                "column {}: {} is what databases write where there is no value: --blank {} leaves it out",
                quoted(self.name(column)),
                quoted(text(column)),
                shell_word(text(column))
            ));
        }
        let is_part = |column: usize| parts().any(|part| part == column);
        // A member that is none is refused as in other files.
        let is_told = |column: usize| is_absent(column) && (column == self.columns.member || is_part(column));
        let mut columns = [self.columns.member].into_iter().chain(self.further_texts());
        let column = columns.find(|column| has_escape(text(*column)) && !is_told(*column))?;
        Some(format!(
            "column {}: {} has a backslash as PostgreSQL and MySQL write it for another character: have the database \
             write CSV, with a header; where it is no escape, tr '\\t' '|' < FILE | ranktree import - --delimiter \"|\" reads \
             it as it is",
            quoted(self.name(column)),
            quoted(text(column))
        ))
    }

    /// Names the first cell that is not UTF-8.
    fn not_utf8(&self) -> String {
        let bad = |(_, cell): &(usize, &[u8])| std::str::from_utf8(cell).is_err();
        let (column, cell) = (0..).zip(self.record.iter()).find(bad).unwrap_or_default();
        format!(
            "column {}: {} is not UTF-8; {}",
            quoted(self.name(column)),
            quoted(&String::from_utf8_lossy(cell)),
            readings(cell)
        )
    }
}

pub fn is_empty(cell: &[u8]) -> bool {
    cell.iter().all(u8::is_ascii_whitespace)
}

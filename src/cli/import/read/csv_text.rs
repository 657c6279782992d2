//! Watches the text of a CSV file on its way to the reader. A quotation mark that is never closed makes one
//! cell of all that follows: the rows in it would be lost without a word. A file without ends of lines would
//! be one row, and fill the memory.
//!
//! Knows: where cells begin and end, by the rules of the reader behind it. Must not know: columns and rows.

use std::io::{self, Read};

use thiserror::Error;

use crate::cli::import::read::limits::{MAX_CELLS, MAX_JOB_BYTES, MAX_ROW_BYTES};
use crate::types::count;

/// A quoted cell that cannot be meant as it is written. `opened` is the line of its quotation mark, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadQuotes {
    #[error("line {opened}: the quotation mark that opens a cell here is not closed by the end of the file")]
    Unclosed { opened: u64 },
    #[error(
        "line {opened}: the cell that a quotation mark opens here is longer than any job may be, \
         {MAX_JOB_BYTES} bytes: the quotation mark is probably not closed"
    )]
    TooLong { opened: u64 },
    /// Over several lines, the second mark was most likely meant to open a cell.
    #[error(
        "line {opened}: the cell that a quotation mark opens here is closed only on line {closed}, and more \
         characters follow it there"
    )]
    ClosedLate { opened: u64, closed: u64 },
    #[error(
        "line {line}: more characters follow the quotation mark that closes a cell here. Marks within such a cell \
         are doubled, as in \"say \"\"hi\"\"\""
    )]
    Glued { line: u64 },
    #[error(
        "line {line}: a backslash stands before a quotation mark within a cell, as R and some databases write them: \
         sed 's/\\\\\"/\"\"/g' FILE | ranktree import - doubles such marks"
    )]
    Escaped { line: u64 },
}

/// Why a file is read no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadText {
    #[error(transparent)]
    Quotes(BadQuotes),
    #[error("line {0}: the row that begins here does not end")]
    LongRow(u64),
    #[error("line {0}: the row that begins here has no end of cells")]
    ManyCells(u64),
}

/// Where the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    CellStart,
    /// Quotation marks within a cell that does not begin with one are characters.
    PlainCell,
    QuotedCell,
    /// After a quotation mark in a quoted cell: it closes the cell, unless a second one follows.
    AfterQuote,
    /// After that, and spaces.
    AfterCell,
}

/// Passes a file through, up to the first cell that cannot be meant; fails there.
pub struct CheckedText<R> {
    inner: R,
    delimiter: u8,
    /// Whether quotation marks are no characters.
    has_quotes: bool,
    place: Place,
    /// The line of the next byte.
    line: u64,
    /// The line of the last cell's quotation mark, and its bytes so far.
    opened: u64,
    cell_bytes: usize,
    /// The last byte was a backslash, and one was before the last mark.
    is_backslash: bool,
    is_escaped: bool,
    /// The line that the row of the next byte begins on, its bytes so far, and the delimiters between its
    /// cells.
    /// Of rows that are passed at once, only the last one is counted: what is before it is a buffer at most.
    row: u64,
    row_bytes: usize,
    commas: usize,
    found: Option<BadText>,
}

impl<R> CheckedText<R> {
    /// # Arguments
    /// - `has_quotes`: whether quotation marks are no characters.
    /// - `lines_before`: lines that were read before the reader's first.
    pub fn new(inner: R, delimiter: u8, has_quotes: bool, lines_before: u64) -> Self {
        let (place, line) = (Place::CellStart, lines_before + 1);
        let (row_bytes, commas) = (0, 0);
        Self {
            inner,
            delimiter,
            has_quotes,
            place,
            line,
            opened: line,
            cell_bytes: 0,
            is_backslash: false,
            is_escaped: false,
            row: line,
            row_bytes,
            commas,
            found: None,
        }
    }

    /// Why reading failed, if it did because of a cell or a row.
    pub fn found(&self) -> Option<BadText> {
        self.found
    }

    /// Passes what comes before the next quotation mark, where that is outside of all quoted cells. Returns
    /// the rest. Most files have no such mark, and looking for one is many times faster than passing each
    /// byte.
    fn pass_plain<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        if !matches!(self.place, Place::CellStart | Place::PlainCell) {
            return bytes;
        }
        let mark = if self.has_quotes { memchr::memchr(b'"', bytes) } else { None };
        let (plain, rest) = bytes.split_at(mark.unwrap_or(bytes.len()));
        if let Some(last) = plain.last() {
            self.place =
                if *last == self.delimiter || *last == b'\n' { Place::CellStart } else { Place::PlainCell };
            self.line += count(memchr::memchr_iter(b'\n', plain).count());
            self.row_bytes += plain.len();
            let mut of_row = plain;
            if let Some(end) = memchr::memrchr(b'\n', plain) {
                of_row = plain.get(end + 1..).unwrap_or_default();
                (self.row, self.row_bytes, self.commas) = (self.line, of_row.len(), 0);
            }
            self.commas += memchr::memchr_iter(self.delimiter, of_row).count();
        }
        rest
    }

    fn pass(&mut self, byte: u8) -> Option<BadQuotes> {
        let opened = self.opened;
        let is_quoted = self.place == Place::QuotedCell;
        self.place = match (self.place, byte) {
            (Place::QuotedCell, b'"') => {
                self.is_escaped = self.is_backslash;
                Place::AfterQuote
            }
            (Place::QuotedCell, _) | (Place::AfterQuote, b'"') => {
                self.cell_bytes += 1;
                if self.cell_bytes > MAX_JOB_BYTES {
                    return Some(BadQuotes::TooLong { opened });
                }
                Place::QuotedCell
            }
            (_, b'\n') => Place::CellStart,
            (_, byte) if byte == self.delimiter => Place::CellStart,
            (Place::CellStart, b'"') => {
                (self.opened, self.cell_bytes) = (self.line, 0);
                Place::QuotedCell
            }
            (Place::AfterQuote | Place::AfterCell, byte) if byte.is_ascii_whitespace() => Place::AfterCell,
            (Place::AfterQuote, _) if self.is_escaped => return Some(BadQuotes::Escaped { line: self.line }),
            (Place::AfterQuote | Place::AfterCell, _) if opened < self.line => {
                return Some(BadQuotes::ClosedLate { opened, closed: self.line });
            }
            (Place::AfterQuote | Place::AfterCell, _) => return Some(BadQuotes::Glued { line: self.line }),
            _ => Place::PlainCell,
        };
        self.is_backslash = byte == b'\\';
        self.line += u64::from(byte == b'\n');
        self.row_bytes += 1;
        self.commas += usize::from(byte == self.delimiter && !is_quoted);
        if byte == b'\n' && self.place == Place::CellStart {
            (self.row, self.row_bytes, self.commas) = (self.line, 0, 0);
        }
        None
    }

    fn fail(&self) -> io::Result<usize> {
        self.found.map_or(Ok(0), |found| Err(io::Error::new(io::ErrorKind::InvalidData, found)))
    }
}

impl<R: Read> Read for CheckedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.found.is_some() || buffer.is_empty() {
            return self.fail();
        }
        let read = self.inner.read(buffer)?;
        if read == 0 && self.place == Place::QuotedCell {
            self.found = Some(BadText::Quotes(BadQuotes::Unclosed { opened: self.opened }));
        }
        let mut rest = buffer.get(..read).unwrap_or_default();
        while !rest.is_empty() {
            rest = self.pass_plain(rest);
            let Some((byte, after)) = rest.split_first() else { break };
            self.found = self.pass(*byte).map(BadText::Quotes);
            if self.found.is_some() {
                // What comes before is whole rows and the beginning of this one. The next call fails.
                let before = read - rest.len();
                return if before == 0 { self.fail() } else { Ok(before) };
            }
            rest = after;
        }
        if self.row_bytes > MAX_ROW_BYTES {
            // What was read is passed on, which is a buffer at most. The next call fails.
            self.found = Some(BadText::LongRow(self.row));
        } else if self.commas >= MAX_CELLS {
            self.found = Some(BadText::ManyCells(self.row));
        }
        if read == 0 { self.fail() } else { Ok(read) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What passes, and what is found, whatever the sizes of the pieces.
    fn check(text: &str, expect: Option<BadQuotes>) {
        for piece in [1, 3, 4_096] {
            let mut checked = CheckedText::new(text.as_bytes(), b',', true, 0);
            let mut buffer = vec![0; piece];
            let ended = loop {
                match checked.read(&mut buffer) {
                    Ok(0) => break Ok(()),
                    Ok(_) => {}
                    Err(error) => break Err(error),
                }
            };
            let expect = expect.map(BadText::Quotes);
            assert_eq!((ended.is_err(), checked.found()), (expect.is_some(), expect), "{text:?} by {piece}");
        }
    }

    proptest! {
        /// What is passed at once is passed as byte by byte.
        #[test]
        fn plain_bytes_pass_in_one_go(
            bytes in prop::collection::vec(prop::sample::select(b"\"\"\",,\n\r ab".to_vec()), 0..40),
            piece in 1_usize..50,
        ) {
            let mut one_by_one = CheckedText::new(b"".as_slice(), b',', true, 0);
            let found = bytes.iter().find_map(|byte| one_by_one.pass(*byte));
            let mut at_once = CheckedText::new(bytes.as_slice(), b',', true, 0);
            let mut buffer = vec![0; piece];
            while at_once.read(&mut buffer).is_ok_and(|read| read > 0) {}
            if found.is_some() {
                prop_assert_eq!(at_once.found(), found.map(BadText::Quotes));
            } else {
                let state = |checked: &CheckedText<&[u8]>| {
                    (checked.place, checked.line, checked.row, checked.row_bytes, checked.commas)
                };
                prop_assert_eq!(state(&at_once), state(&one_by_one));
            }
        }
    }

    #[test]
    fn quotation_marks_that_are_closed_pass() {
        for good in [
            "",
            "a,b\n1,\"2\"\n",
            "a,b\n1,\"2\"",
            "\"a \"\"b\"\"\",\"\"\n\"\",\"x\"\r\n",
            "\"two\nlines\",1\n\"two\r\nlines\"\r\n",
            // A mark inside a plain cell is a character.
            "a\"b,5\" of it\n",
            "\"two\nlines\" ,1\n",
            "\"one\" \t,1\n",
        ] {
            check(good, None);
        }
    }

    #[test]
    fn characters_behind_a_closed_cell_are_found_with_their_line() {
        for (bad, line) in [("\"a\"b,1\n", 1), ("a,b\nx,\"Big\" Joe\n", 2), ("\"q\"r\"s\",5\n", 1)] {
            check(bad, Some(BadQuotes::Glued { line }));
        }
        check("a,b\n\"Joe \\\"Ace\\\" Roe\",5\n", Some(BadQuotes::Escaped { line: 2 }));
        let plain = "a,b\n\"Big\" Joe,1\n";
        let mut checked = CheckedText::new(plain.as_bytes(), b',', false, 0);
        let mut read = String::new();
        assert!(checked.read_to_string(&mut read).is_ok() && read == plain, "marks are characters");
    }

    #[test]
    fn a_quotation_mark_that_is_not_closed_is_found_with_its_line() {
        for (bad, opened) in [("\"", 1), ("a,b\nc,\"2", 2), ("a\nb\n\"c\nd\n\"\"e\n", 3), ("a,\"\"\"\n", 1)] {
            check(bad, Some(BadQuotes::Unclosed { opened }));
        }
        // The next cell with quotation marks seems to close it.
        let late = "a,b\n1,\"x\n2,y\n3,\"z\"\n";
        check(late, Some(BadQuotes::ClosedLate { opened: 2, closed: 4 }));
        let long = format!("a\n\"{}\"\n", "x".repeat(MAX_JOB_BYTES + 1));
        check(&long, Some(BadQuotes::TooLong { opened: 2 }));
        check(&format!("a\n\"{}\"\n", "x".repeat(MAX_JOB_BYTES)), None);
    }

    #[test]
    fn a_row_that_does_not_end_is_found_with_its_line() {
        let cell = format!("\"two\nlines{}\",", "x".repeat(1_000));
        let cells = cell.repeat(MAX_ROW_BYTES / cell.len() + 1);
        let plain = "x".repeat(MAX_ROW_BYTES + 10_000);
        for (endless, line) in [(format!("a,b\n1,2\n{plain}\n"), 3), (format!("a\n\"b\nc\"\n{cells}"), 4)] {
            // What comes behind it is not read.
            let mut checked =
                CheckedText::new(endless.as_bytes().chain(std::io::repeat(b'x')), b',', true, 0);
            let mut buffer = vec![0; 4_096];
            while checked.read(&mut buffer).is_ok() {}
            assert_eq!(checked.found(), Some(BadText::LongRow(line)));
        }
        let long = format!("{}\n", "x".repeat(MAX_ROW_BYTES - 5_000));
        check(&long.repeat(2), None);
    }

    #[test]
    fn a_row_of_too_many_cells_is_found_with_its_line() {
        let (empty, quoted) = (",".repeat(MAX_CELLS), "\"\",".repeat(MAX_CELLS));
        for (endless, line) in
            [(empty.clone(), 1), (format!("a,b\n1,2\n{empty}"), 3), (format!("a,b\n\"1\n\",2\n{quoted}"), 4)]
        {
            // What comes behind it is not read.
            let mut checked =
                CheckedText::new(endless.as_bytes().chain(std::io::repeat(b',')), b',', true, 0);
            let mut buffer = vec![0; 4_096];
            while checked.read(&mut buffer).is_ok() {}
            assert_eq!(checked.found(), Some(BadText::ManyCells(line)));
        }
        // Many short rows, and many commas in a cell.
        check(&"a,b,c\n".repeat(MAX_CELLS), None);
        check(&format!("\"{}\",b\n", ",".repeat(2 * MAX_CELLS)), None);
        check(&format!("{}\n", ",".repeat(MAX_CELLS - 1)), None);
    }
}

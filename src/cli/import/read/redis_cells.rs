//! What `redis-cli` writes of a sorted set: members and scores in turn, in quotation marks, with the escapes
//! of Redis and not those of a CSV. With `--csv` they are one line; with `-3` scores have no quotation marks;
//! and for a terminal each is a line with its number.

use std::cmp::Ordering;
use std::io::{self, BufRead};

use crate::cli::import::ImportError;
use crate::cli::import::read::input::SNIFFED_BYTES;
use crate::cli::import::read::limits::MAX_JOB_BYTES;
use crate::cli::import::read::redis_entry::RedisEntries;
use crate::cli::import::read::row::Parsed;
use crate::types::quoted;

/// The longest score without quotation marks.
const NUMBER_BYTES: usize = 64;

/// Reads pairs of cells as jobs.
pub struct RedisCells<R> {
    reader: R,
    entries: RedisEntries,
    read: u64,
    is_ended: bool,
    /// The last score and its member, and which way they go.
    last: Option<(f64, Vec<u8>)>,
    order: Option<Ordering>,
}

impl<R: BufRead> RedisCells<R> {
    pub fn new(reader: R, entries: RedisEntries) -> Self {
        Self { reader, entries, read: 0, is_ended: false, last: None, order: None }
    }

    fn pair(&mut self) -> Result<Option<Parsed>, ImportError> {
        let failed = |source| ImportError::Read { line: 1, source };
        let Some(member) = cell(&mut self.reader).map_err(failed)? else { return Ok(None) };
        self.read += 1;
        let score = cell(&mut self.reader).map_err(failed)?;
        let Some(score) = score.filter(|_| member.is_quoted) else {
            return Err(ImportError::OddCells(self.read));
        };
        let score = String::from_utf8_lossy(&score.text);
        self.follow(&score, &member.text)?;
        let row = self.entries.row(self.read, &member.text, &score);
        let parsed = row.map_or_else(Parsed::Rejected, Parsed::Row);
        Ok(Some(parsed))
    }
}

impl<R> RedisCells<R> {
    /// Redis writes a sorted set by its scores, and equal ones by members, upwards or downwards. Cells in
    /// another order are not pairs of these: members alone, perhaps, which are numbers.
    fn follow(&mut self, score: &str, member: &[u8]) -> Result<(), ImportError> {
        let Ok(score) = score.parse::<f64>() else { return Ok(()) };
        if let Some((last_score, last_member)) = &self.last {
            let order = last_score
                .partial_cmp(&score)
                .unwrap_or(Ordering::Equal)
                .then_with(|| last_member.as_slice().cmp(member));
            if order == Ordering::Equal || *self.order.get_or_insert(order) != order {
                return Err(ImportError::RedisForm(
                    "in no order of scores: these may be members without their scores (WITHSCORES), or not of a sorted \
                     set",
                ));
            }
        }
        self.last = Some((score, member.to_vec()));
        Ok(())
    }
}

impl<R: BufRead> Iterator for RedisCells<R> {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_ended {
            return None;
        }
        let pair = self.pair().transpose();
        self.is_ended = !matches!(pair, Some(Ok(_)));
        pair
    }
}

/// What a file of such a beginning is read as.
pub fn note(head: &[u8]) -> Option<String> {
    let cells = cells(head, head.len() < SNIFFED_BYTES)?;
    let [member, score, ..] = cells.as_slice() else { return None };
    let text = |cell: &Cell| quoted(&String::from_utf8_lossy(&cell.text));
    Some(format!("reads members and scores of Redis in turn: {} has {}", text(member), text(score)))
}

/// Whether a text begins with nothing but members and scores.
///
/// # Arguments
/// `is_whole`: whether the text is the whole file.
pub fn is_pairs(head: &[u8], is_whole: bool) -> bool {
    let Some(cells) = cells(head, is_whole) else { return false };
    cells.len() > 1 && (!is_whole || cells.len().is_multiple_of(2)) && are_pairs(&cells)
}

/// Whether a text is what `redis-cli` writes for `ZSCAN`: a cursor before the members and scores.
pub fn is_scan(head: &[u8], is_whole: bool) -> bool {
    let cells = cells(head, is_whole).unwrap_or_default();
    let Some((cursor, pairs)) = cells.split_first() else { return false };
    let is_cursor = cursor.is_quoted && cursor.text.iter().all(u8::is_ascii_digit);
    is_cursor && pairs.len() > 1 && (!is_whole || pairs.len().is_multiple_of(2)) && are_pairs(pairs)
}

fn are_pairs(cells: &[Cell]) -> bool {
    cells.chunks(2).all(|pair| match pair {
        [member, score] => {
            let is_number = std::str::from_utf8(&score.text).is_ok_and(|text| text.parse::<f64>().is_ok());
            member.is_quoted && is_number
        }
        _ => true,
    })
}

/// All whole cells of a text. `None`: it is something else.
fn cells(head: &[u8], is_whole: bool) -> Option<Vec<Cell>> {
    let mut rest = head;
    let mut cells = Vec::new();
    loop {
        match cell(&mut rest) {
            Ok(Some(found)) => cells.push(found),
            Ok(None) => break,
            // The last cell of what is only a beginning is not whole.
            Err(error) if !is_whole && error.kind() == io::ErrorKind::UnexpectedEof => return Some(cells),
            Err(_) => return None,
        }
    }
    if !is_whole {
        cells.pop();
    }
    Some(cells)
}

#[derive(Debug, PartialEq, Eq)]
struct Cell {
    text: Vec<u8>,
    /// Members are, and scores need not be.
    is_quoted: bool,
}

/// The next cell, with the comma or the end of the line behind it. `None`: there is none.
fn cell(reader: &mut impl BufRead) -> io::Result<Option<Cell>> {
    let mut text = Vec::new();
    let is_quoted = loop {
        let Some(byte) = next_mark(reader)? else { return Ok(None) };
        if byte == b'"' {
            quoted_text(reader, &mut text)?;
            break true;
        }
        text.push(byte);
        while let Some(byte) = peek(reader)?.filter(|byte| !b",\r\n)".contains(byte)) {
            if text.len() >= NUMBER_BYTES {
                return Err(wrong("a cell in quotation marks is expected, as redis-cli --csv writes them"));
            }
            text.push(byte);
            next(reader)?;
        }
        if peek(reader)? != Some(b')') || !text.iter().all(u8::is_ascii_digit) {
            break false;
        }
        // It was the number of a line.
        next(reader)?;
        text.clear();
    };
    match next(reader)? {
        None | Some(b',') => {}
        Some(b'\r' | b'\n') => {
            while peek(reader)?.is_some_and(|byte| byte.is_ascii_whitespace()) {
                next(reader)?;
            }
            // Only lines that have numbers follow one another.
            if peek(reader)?.is_some_and(|byte| !byte.is_ascii_digit()) {
                return Err(wrong("there is more than one line; redis-cli --csv writes one"));
            }
        }
        Some(_) => return Err(wrong("a comma is expected behind a cell")),
    }
    Ok(Some(Cell { text, is_quoted }))
}

fn quoted_text(reader: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<()> {
    loop {
        match next(reader)?.ok_or_else(cut)? {
            b'"' => return Ok(()),
            b'\\' => text.push(escaped(reader)?),
            byte => text.push(byte),
        }
        if text.len() > MAX_JOB_BYTES {
            return Err(wrong("a cell is longer than any job may be"));
        }
    }
}

/// The first byte of a cell, behind spaces and what says of which kind it is.
fn next_mark(reader: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        match next(reader)? {
            Some(byte) if byte.is_ascii_whitespace() => {}
            // As in `(double) 5`.
            Some(b'(') => while next(reader)?.is_some_and(|byte| byte != b')' && byte != b'\n') {},
            other => return Ok(other),
        }
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends within a cell")
}

fn wrong(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn escaped(reader: &mut impl BufRead) -> io::Result<u8> {
    let wrong = || wrong("an escape is none of those that redis-cli writes");
    let mut needed = || next(reader)?.ok_or_else(cut);
    Ok(match needed()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        byte @ (b'\\' | b'"') => byte,
        b'x' => {
            let digits = [needed()?, needed()?];
            let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
            u8::from_str_radix(digits, 16).map_err(|_| wrong())?
        }
        _ => return Err(wrong()),
    })
}

fn peek(reader: &mut impl BufRead) -> io::Result<Option<u8>> {
    Ok(reader.fill_buf()?.first().copied())
}

fn next(reader: &mut impl BufRead) -> io::Result<Option<u8>> {
    let byte = peek(reader)?;
    if byte.is_some() {
        reader.consume(1);
    }
    Ok(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_with_the_escapes_of_redis() {
        let mut text = &b"\"a \\\"b\\\"\",\"1\",\"\\xe6\\x97\\xa5,\\n\",\"-2.5\"\r\n"[..];
        let mut cells = Vec::new();
        while let Some(found) = cell(&mut text).expect("well-formed") {
            cells.push(String::from_utf8(found.text).expect("UTF-8"));
        }
        assert_eq!(cells, ["a \"b\"", "1", "日,\n", "-2.5"]);
    }

    #[test]
    fn lists_with_numbers_and_scores_without_quotation_marks_are_the_same_cells() {
        for text in [
            "\"ann\",5,\"b, c\",inf\n",
            "1) \"ann\"\n2) \"5\"\n3) \"b, c\"\n4) \"inf\"\n",
            "1) 1) \"ann\"\n   2) (double) 5\n2) 1) \"b, c\"\n   2) (double) inf\n",
        ] {
            let cells = cells(text.as_bytes(), true).expect(text);
            let texts: Vec<_> =
                cells.iter().map(|cell| std::str::from_utf8(&cell.text).expect("UTF-8")).collect();
            assert_eq!(texts, ["ann", "5", "b, c", "inf"], "{text}");
            assert!(is_pairs(text.as_bytes(), true), "{text}");
        }
        for text in ["1) \"0\"\n2) 1) \"ann\"\n   2) \"5\"\n", "\"17\",\"ann\",\"5\",\"bob\",\"6\"\n"] {
            assert!(is_scan(text.as_bytes(), true) && !is_pairs(text.as_bytes(), true), "{text}");
        }
    }

    #[test]
    fn one_line_of_members_and_scores_is_told_from_a_header() {
        for (head, is_whole, expect) in [
            ("\"ann\",\"5\"\n", true, true),
            ("\"ann\",\"5\",\"b", false, true),
            ("\"ann\",\"5\",\"b", true, false),
            ("\"member\",\"score\"\n", true, false),
            ("\"ann\",\"5\"\n\"bob\",\"6\"\n", true, false),
            ("\"ann\"\n", true, false),
            ("ann,5\n", true, false),
            ("7,5\n", true, false),
            ("\"player\",\"2024\",\"2025\",\"2026\"\n\"ann\",\"1\",\"2\",\"3\"\n", false, false),
            ("\"ann\",5\n101,7\n", true, false),
            ("\"ann\",5,\"bob\",7.", false, true),
            ("", true, false),
        ] {
            assert_eq!(is_pairs(head.as_bytes(), is_whole), expect, "{head:?}");
        }
    }
}

//! What `redis-cli --csv` writes of a sorted set: one line of members and scores in turn, in quotation marks,
//! with the escapes of Redis and not those of a CSV.

use std::io::{self, BufRead};

use crate::cli::import::ImportError;
use crate::cli::import::read::limits::MAX_JOB_BYTES;
use crate::cli::import::read::redis_entry::RedisEntries;
use crate::cli::import::read::row::Parsed;

/// Reads pairs of cells as jobs.
pub struct RedisCells<R> {
    reader: R,
    entries: RedisEntries,
    read: u64,
    is_ended: bool,
}

impl<R: BufRead> RedisCells<R> {
    pub fn new(reader: R, entries: RedisEntries) -> Self {
        Self { reader, entries, read: 0, is_ended: false }
    }

    fn pair(&mut self) -> Result<Option<Parsed>, ImportError> {
        let failed = |source| ImportError::Read { line: 1, source };
        let Some(member) = cell(&mut self.reader).map_err(failed)? else { return Ok(None) };
        self.read += 1;
        let score = cell(&mut self.reader).map_err(failed)?;
        let Some(score) = score else { return Err(ImportError::OddCells(self.read)) };
        let score = String::from_utf8_lossy(&score);
        let row = self.entries.row(self.read, &member, &score);
        let parsed = row.map_or_else(Parsed::Rejected, Parsed::Row);
        Ok(Some(parsed))
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

/// Whether a text begins with a line of nothing but members and scores.
///
/// # Arguments
/// `is_whole`: whether the text is the whole file.
pub fn is_pairs(head: &[u8], is_whole: bool) -> bool {
    let mut rest = head;
    let mut cells = Vec::new();
    loop {
        match cell(&mut rest) {
            Ok(Some(found)) => cells.push(found),
            Ok(None) => break,
            // The last cell of what is only a beginning is not whole.
            Err(_) if !is_whole => break,
            Err(_) => return false,
        }
    }
    let is_number = |cell: &Vec<u8>| std::str::from_utf8(cell).is_ok_and(|text| text.parse::<f64>().is_ok());
    let is_even = !is_whole || cells.len().is_multiple_of(2);
    head.starts_with(b"\"") && cells.len() > 1 && is_even && cells.iter().skip(1).step_by(2).all(is_number)
}

/// The next cell, with the comma behind it. `None`: there is none.
fn cell(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let wrong = |why: &'static str| io::Error::new(io::ErrorKind::InvalidData, why);
    let Some(mut byte) = next(reader)? else { return Ok(None) };
    while byte.is_ascii_whitespace() {
        match next(reader)? {
            Some(other) => byte = other,
            None => return Ok(None),
        }
    }
    if byte != b'"' {
        return Err(wrong("a cell in quotation marks is expected, as redis-cli --csv writes them"));
    }
    let mut text = Vec::new();
    loop {
        let byte = next(reader)?.ok_or_else(|| wrong("the file ends within a cell"))?;
        match byte {
            b'"' => break,
            b'\\' => text.push(escaped(reader)?),
            byte => text.push(byte),
        }
        if text.len() > MAX_JOB_BYTES {
            return Err(wrong("a cell is longer than any job may be"));
        }
    }
    match next(reader)? {
        None | Some(b',') => Ok(Some(text)),
        // Nothing may come behind the line.
        Some(b'\r' | b'\n') => loop {
            match next(reader)? {
                None => return Ok(Some(text)),
                Some(byte) if byte.is_ascii_whitespace() => {}
                Some(_) => return Err(wrong("there is more than one line; redis-cli --csv writes one")),
            }
        },
        Some(_) => Err(wrong("a comma is expected behind a cell")),
    }
}

fn escaped(reader: &mut impl BufRead) -> io::Result<u8> {
    let wrong =
        || io::Error::new(io::ErrorKind::InvalidData, "an escape is none of those that redis-cli writes");
    let mut needed = || next(reader)?.ok_or_else(wrong);
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

fn next(reader: &mut impl BufRead) -> io::Result<Option<u8>> {
    let byte = reader.fill_buf()?.first().copied();
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
            cells.push(String::from_utf8(found).expect("UTF-8"));
        }
        assert_eq!(cells, ["a \"b\"", "1", "日,\n", "-2.5"]);
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
            ("", true, false),
        ] {
            assert_eq!(is_pairs(head.as_bytes(), is_whole), expect, "{head:?}");
        }
    }
}

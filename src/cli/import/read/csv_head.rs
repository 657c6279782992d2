//! What stands at the top of a CSV file, before its rows are read: lines before the header, what is between
//! cells, and the first rows, which decide about columns.

use std::io::{BufRead, Read};

use csv::ByteRecord;

use crate::cli::import::ImportError;
use crate::cli::import::read::csv_records::Records;
use crate::cli::import::read::csv_separators::{is_aligned, quoted_separator, separator_words};
use crate::cli::import::read::limits::MAX_COLUMNS;
use crate::types::{quoted, shown};

/// The first rows, which decide about columns that nobody asked for: as many as this, and no more bytes.
pub const SAMPLE_ROWS: usize = 100;
const SAMPLE_BYTES: usize = 1024 * 1024;
/// What programs for spreadsheets write before the header, to say what is between the cells.
const SEPARATOR_LINE: &[u8] = b"sep=";

/// Whether each row has its number before what the header names.
pub fn has_row_names(ahead: &[(u64, u64, ByteRecord)], columns: usize) -> bool {
    let has_number = |(number, (_, _, row)): (u64, &(u64, u64, ByteRecord))| {
        row.len() == columns + 1 && row.get(0) == Some(number.to_string().as_bytes())
    };
    !ahead.is_empty() && (1..).zip(ahead).all(has_number)
}

/// Looks whether the cells of the first line, if they are quoted, have another separator between them.
pub fn check_separator(reader: &mut impl BufRead, delimiter: u8, line: u64) -> Result<(), ImportError> {
    let next = reader.fill_buf().map_err(|source| ImportError::Read { line, source })?;
    let first = next.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    let first = String::from_utf8_lossy(first);
    let Some((separator, option)) = quoted_separator(&first, char::from(delimiter)) else { return Ok(()) };
    let found = format!("the first line is {}", shown(&first));
    Err(ImportError::Separator { found, given: separator_words(char::from(delimiter)), separator, option })
}

/// Looks at the first record.
pub fn check_first(record: &ByteRecord, delimiter: u8) -> Result<(), ImportError> {
    if has_lone_return(record) {
        return Err(ImportError::CarriageReturns);
    }
    if record.len() > MAX_COLUMNS {
        return Err(ImportError::ManyColumns(record.len()));
    }
    if delimiter == b' ' {
        let line = record.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
        if is_aligned(&line) {
            return Err(ImportError::Aligned(quoted(&line)));
        }
    }
    Ok(())
}

/// Whether a carriage return stands elsewhere than at the end of a line.
pub fn has_lone_return(record: &ByteRecord) -> bool {
    let bytes = record.as_slice();
    let is_lone = |at: usize| bytes.get(at + 1).is_some_and(|next| *next != b'\n');
    memchr::memchr_iter(b'\r', bytes).any(is_lone)
}

/// The records that decide about columns. A failure comes once they are passed on.
pub fn read_ahead<R: Read>(
    records: &mut Records<R>,
    ahead: &mut Vec<(u64, u64, ByteRecord)>,
) -> Option<ImportError> {
    let mut bytes = 0;
    while ahead.len() < SAMPLE_ROWS && bytes < SAMPLE_BYTES {
        match records.read() {
            Ok(Some(line)) => {
                bytes += records.record.as_slice().len();
                ahead.push((line, records.last_line, records.record.clone()));
            }
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
    None
}

/// Passes over so many lines; how many there were.
pub fn skip_lines(reader: &mut impl BufRead, lines: u64) -> Result<u64, ImportError> {
    for line in 1..=lines {
        let skipped = reader.skip_until(b'\n').map_err(|source| ImportError::Read { line, source })?;
        if skipped == 0 {
            return Err(ImportError::SkippedAll { lines, found: line - 1 });
        }
    }
    Ok(lines)
}

/// Reads the line `sep=;`, if it is the next one.
pub fn separator_line(reader: &mut impl BufRead, line: u64) -> Result<Option<u8>, ImportError> {
    let failed = |source| ImportError::Read { line, source };
    let next = reader.fill_buf().map_err(failed)?;
    let is_one = next.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(SEPARATOR_LINE))
        && matches!(next.get(5), Some(b'\r' | b'\n') | None);
    let separator = next.get(4).copied().filter(|_| is_one);
    if separator.is_some() {
        reader.skip_until(b'\n').map_err(failed)?;
    }
    Ok(separator)
}

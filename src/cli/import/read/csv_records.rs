//! The records of a CSV file and the lines that they begin at, and what an export has before them.

use std::io::{self, BufRead, Chain, Read};

use csv::{ByteRecord, ReaderBuilder, Terminator};

use crate::cli::board_line::{BoardLine, IN_CSV};
use crate::cli::import::ImportError;
use crate::cli::import::read::csv_text::{BadText, CheckedText};
use crate::cli::import::read::limits::MAX_JOB_BYTES;

/// Read at a time.
const BUFFER_BYTES: usize = 64 * 1024;

/// Records and the lines that they begin at, without blank lines.
///
/// The reader's own position of a record comes before any blank lines, and before the second half of a CR LF.
/// So records end at LF only, which leaves a CR in the last cell. An LF is added at the end of the input. A
/// record's first line is counted back from its end.
pub struct Records<R> {
    reader: csv::Reader<Chain<CheckedText<R>, &'static [u8]>>,
    pub record: ByteRecord,
    /// The record's last line.
    pub last_line: u64,
    /// Lines that were read before the reader's first.
    lines_before: u64,
    /// Why the next record cannot be read, if that is known already.
    pub failure: Option<ImportError>,
}

impl<R: Read> Records<R> {
    pub fn new(reader: R, delimiter: u8, has_quotes: bool, lines_before: u64) -> Self {
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).terminator(Terminator::Any(b'\n'));
        builder.buffer_capacity(BUFFER_BYTES).delimiter(delimiter).quoting(has_quotes);
        let checked = CheckedText::new(reader, delimiter, has_quotes, lines_before);
        let reader = builder.from_reader(checked.chain(b"\n".as_slice()));
        Self { reader, record: ByteRecord::new(), last_line: lines_before, lines_before, failure: None }
    }

    /// Reads the next record; its first line, counted from 1, or `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, or its quotation marks cannot be meant as they are.
    pub fn read(&mut self) -> Result<Option<u64>, ImportError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        while self.reader.read_byte_record(&mut self.record).map_err(|error| self.failed(error.into()))? {
            let is_blank = self.record.len() == 1 && self.record.get(0) == Some(b"\r");
            if !is_blank {
                let inside = memchr::memchr_iter(b'\n', self.record.as_slice()).count();
                self.last_line = self.lines_read();
                return Ok(Some(self.last_line - u64::try_from(inside).unwrap_or(0)));
            }
        }
        Ok(None)
    }

    fn failed(&self, source: io::Error) -> ImportError {
        let (checked, _) = self.reader.get_ref().get_ref();
        let line = self.lines_read() + 1;
        match checked.found() {
            None => ImportError::Read { line, source },
            Some(BadText::Quotes(quotes)) => ImportError::Quotes(quotes),
            Some(BadText::LongRow(line)) => ImportError::LongRow(line),
            Some(BadText::ManyCells(line)) => ImportError::ManyCells(line),
        }
    }

    fn lines_read(&self) -> u64 {
        self.lines_before + self.reader.position().line() - 1
    }
}

/// Reads the line if it is the one that says what the board is.
///
/// # Errors
/// When it is not as an export has written it.
pub fn board_line(reader: &mut impl BufRead, line: u64) -> Result<Option<BoardLine>, ImportError> {
    let failed = |source| ImportError::Read { line, source };
    // The first characters were read ahead, so the buffer holds more than what is compared.
    let next = reader.fill_buf().map_err(failed)?;
    if next.strip_prefix(b"\"").is_some_and(|next| next.starts_with(IN_CSV.as_bytes())) {
        return Err(ImportError::SavedExport("its first line is in quotation marks"));
    }
    if !next.starts_with(IN_CSV.as_bytes()) {
        return Ok(None);
    }
    let mut line = String::new();
    let limit = u64::try_from(MAX_JOB_BYTES).unwrap_or(u64::MAX);
    reader.take(limit).read_line(&mut line).map_err(failed)?;
    let json = line.strip_prefix(IN_CSV).unwrap_or_default().trim();
    BoardLine::parse(json).map(Some).map_err(ImportError::BoardLine)
}

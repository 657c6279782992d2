//! All rows of an import: of its files one after the other, as one way of reading says.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use encoding_rs::Encoding;

use crate::cli::import::read::csv_rows::CsvRows;
use crate::cli::import::read::entry::Shared;
use crate::cli::import::read::input::{Input, InputFile};
use crate::cli::import::read::json_rows::JsonRows;
use crate::cli::import::read::limits::SNIFFED_BYTES;
use crate::cli::import::read::redis_cells::{self, RedisCells, is_scan};
use crate::cli::import::read::redis_entry::RedisEntries;
use crate::cli::import::read::redis_log::RedisLog;
use crate::cli::import::read::row::{Parsed, Place, Rows};
use crate::cli::import::read::rules::Rules;
use crate::cli::import::{Format, ImportError};
use crate::job::Op;
use crate::types::Timestamp;

/// How files are read.
pub struct Reading {
    pub rules: Rules,
    pub format: Option<Format>,
    pub encoding: Option<&'static Encoding>,
    /// From where on rows are read; of those before it, their times alone.
    pub from: Place,
    /// Of a sorted set of Redis.
    pub key: Option<String>,
    /// Of rows from Redis.
    pub at: Timestamp,
}

impl Reading {
    /// What members of a sorted set become.
    ///
    /// # Errors
    /// When the command line does not say on which board, or has an operation that a member twice would count
    /// twice.
    pub fn redis_entries(&self) -> Result<RedisEntries, ImportError> {
        let Rules { board, op, numbers, .. } = &self.rules;
        if let Some(option) = self.rules.not_of_redis() {
            return Err(ImportError::RedisOption(option));
        }
        let board = board.clone().ok_or(ImportError::RedisNeeds)?;
        let op = op.unwrap_or(Op::Set);
        if !matches!(op, Op::Set | Op::Best | Op::CREATE) {
            return Err(ImportError::RedisOp(op.name()));
        }
        Ok(RedisEntries::new(board, op, numbers.clone(), self.at))
    }

    fn rows(
        &self,
        input: Input,
        shared: Shared,
        from_line: u64,
        tell: &dyn Fn(&str),
    ) -> Result<Box<dyn Rows>, ImportError> {
        let rules = &self.rules;
        if self.key.is_some() && input.format != Format::Aof {
            return Err(ImportError::KeyOfNoRedis);
        }
        Ok(match input.format {
            Format::Csv => {
                if !rules.rows_at.is_empty() || rules.member_from_key {
                    return Err(ImportError::JsonOptions);
                }
                let rows = CsvRows::open(input.reader, rules, shared, from_line)?;
                tell(rows.note());
                Box::new(rows)
            }
            Format::Ndjson if rules.spreadsheet_safe => return Err(ImportError::SafeNdjson),
            Format::Ndjson
                if rules.delimiter.is_some()
                    || rules.no_quotes
                    || rules.no_header
                    || rules.skip_lines > 0 =>
            {
                return Err(ImportError::CsvOptions);
            }
            Format::Ndjson => {
                let rows = JsonRows::open(input.reader, &input.head, rules, shared, from_line)?;
                rows.note().into_iter().for_each(tell);
                Box::new(rows)
            }
            Format::Aof => {
                let key = self.key.as_deref().ok_or(ImportError::RedisKey)?;
                Box::new(RedisLog::open(input.reader, key, self.redis_entries()?)?)
            }
            Format::RedisCsv => {
                if let Some(note) = redis_cells::note(&input.head) {
                    tell(&note);
                }
                Box::new(RedisCells::new(input.reader, self.redis_entries()?))
            }
        })
    }
}

/// Rows of all files, each with the place where it is.
pub struct FileRows<'a> {
    reading: &'a Reading,
    files: &'a mut [InputFile],
    /// Says what is found out about a file.
    tell: &'a dyn Fn(&str),
    bytes_read: Arc<AtomicU64>,
    shared: Shared,
    /// The one that is read, and its number.
    rows: Option<Box<dyn Rows>>,
    file: usize,
    /// A row is behind the place from which rows are read.
    has_rows: bool,
    /// Of the last row of the file.
    last_line: u64,
}

impl<'a> FileRows<'a> {
    /// # Arguments
    /// `bytes_read`: counts what is read of the files, before unpacking.
    pub fn new(
        reading: &'a Reading,
        files: &'a mut [InputFile],
        bytes_read: Arc<AtomicU64>,
        tell: &'a dyn Fn(&str),
    ) -> Self {
        Self {
            reading,
            files,
            tell,
            bytes_read,
            shared: Shared::default(),
            rows: None,
            file: 0,
            has_rows: false,
            last_line: 0,
        }
    }

    fn open(&mut self) -> Result<Option<Box<dyn Rows>>, ImportError> {
        let Some(file) = self.files.get_mut(self.file) else { return Ok(None) };
        let from = self.reading.from;
        let from_line = match self.file.cmp(&from.file) {
            Ordering::Less => u64::MAX,
            Ordering::Equal => from.line,
            Ordering::Greater => 0,
        };
        let name = file.name.clone();
        let tell = |note: &str| (self.tell)(&format!("{name}: {note}"));
        let mut input = file.open(self.reading.format, self.reading.encoding, &self.bytes_read)?;
        // One line of quoted cells is either, and options say which.
        if self.reading.format.is_none()
            && input.format == Format::RedisCsv
            && self.reading.rules.not_of_redis().is_some_and(|option| option != "--duration")
        {
            input.format = Format::Csv;
        }
        let is_whole = input.head.len() < SNIFFED_BYTES;
        let may_be_scan = self.reading.format.is_none() && self.reading.rules.not_of_redis().is_none();
        if may_be_scan && input.format == Format::Csv && is_scan(&input.head, is_whole) {
            return Err(ImportError::RedisForm("for ZSCAN, with a cursor before its members"));
        }
        let is_part =
            [".incr.aof", ".base.aof"].iter().any(|part| name.contains(part)) || self.files.len() > 1;
        if input.format == Format::Aof && is_part {
            return Err(ImportError::PartOfLog);
        }
        self.reading.rows(input, self.shared.clone(), from_line, &tell).map(Some)
    }

    /// Says that no row of the file is read, if none is as far behind.
    fn tell_passed(&self) {
        let Place { file, line, .. } = self.reading.from;
        if self.file == file && line > 1 && !self.has_rows {
            let name = self.files.get(file).map(|file| file.name.as_str()).unwrap_or_default();
            (self.tell)(&format!(
                "{name}: no row is on line {line} or behind it (--from-line), so none of it is read"
            ));
        }
    }

    fn in_file(&self, error: ImportError) -> ImportError {
        let name = self.files.get(self.file).map(|file| file.name.clone()).unwrap_or_default();
        match error {
            error @ (ImportError::Open { .. } | ImportError::EmptyInput) => error,
            error => ImportError::InFile { file: name, error: Box::new(error) },
        }
    }
}

impl Iterator for FileRows<'_> {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rows = match &mut self.rows {
                Some(rows) => rows,
                None => match self.open() {
                    Ok(Some(rows)) => self.rows.insert(rows),
                    Ok(None) => return None,
                    Err(error) => {
                        let error = self.in_file(error);
                        self.file = self.files.len();
                        return Some(Err(error));
                    }
                },
            };
            match rows.next() {
                None => {
                    self.tell_passed();
                    if let Some(file) = self.files.get_mut(self.file) {
                        file.ended(&self.bytes_read, self.last_line);
                    }
                    (self.rows, self.file, self.last_line) = (None, self.file + 1, 0);
                }
                Some(Err(error)) => return Some(Err(self.in_file(error))),
                Some(Ok(mut parsed)) => {
                    let place = match &mut parsed {
                        Parsed::Row(row) => &mut row.place,
                        Parsed::Rejected(line) => &mut line.place,
                        Parsed::Board(_) | Parsed::Blank(_) => return Some(Ok(parsed)),
                    };
                    place.file = self.file;
                    self.last_line = place.line;
                    // Files of text pass over such lines themselves, which is faster.
                    if *place >= self.reading.from {
                        self.has_rows = true;
                        return Some(Ok(parsed));
                    }
                }
            }
        }
    }
}

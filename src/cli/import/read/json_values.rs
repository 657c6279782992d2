//! The values of a JSON file that are rows: one a line, as NDJSON has them; or those of a document, which is
//! an array of them, or holds one, or an object with a name for each.
//!
//! Knows: where values begin and end. Must not know: what is in a row. Whatever the file holds, no more than
//! one row of it is in memory.

use std::io::{self, BufRead, Read};

use crate::cli::import::ImportError;
use crate::cli::import::read::json_outline::Outline;
use crate::cli::import::read::limits::MAX_JOB_BYTES;

/// A value that is to be a row. Its text is in the buffer that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// That it begins on.
    pub line: u64,
    /// Its name in the object of rows.
    pub key: Option<String>,
    /// It is longer than any job may be, and its text is not whole: what of it may have rows.
    pub too_long: Option<String>,
}

/// How the rows lie in the file.
pub enum Values<R> {
    Lines(Lines<R>),
    Document(Document<R>),
}

impl<R: BufRead> Values<R> {
    /// The next row. `None`: there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or a document is no JSON or has no rows where they should be.
    pub fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Found>, ImportError> {
        buffer.clear();
        match self {
            Self::Lines(lines) => lines.next(buffer),
            Self::Document(document) => document.next(buffer),
        }
    }

    pub fn is_document(&self) -> bool {
        matches!(self, Self::Document(_))
    }

    /// Where the rows are of the first of several groups, once it is known that there are groups.
    pub fn first_group(&self) -> Option<String> {
        let Self::Document(document) = self else { return None };
        let (before, behind) = document.path.split_at_checked(document.groups_at?)?;
        let names = before.iter().map(String::as_str).chain(["0"]).chain(behind.iter().map(String::as_str));
        Some(names.collect::<Vec<_>>().join("."))
    }
}

/// Whether a file that begins so is a document, and not a value a line.
pub fn is_document(head: &[u8]) -> bool {
    let Some(start) = head.iter().position(|byte| !byte.is_ascii_whitespace()) else { return false };
    let text = head.get(start..).unwrap_or_default();
    if text.starts_with(b"[") {
        return !has_rows_of_cells(text);
    }
    if let Some(end) = end_of_value(text) {
        return text.get(..end).is_some_and(|value| value.contains(&b'\n'));
    }
    let mut lines = text.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::trim_ascii_start);
    lines.find(|line| !line.is_empty()).is_some_and(|second| !second.starts_with(b"{"))
}

/// Whether a text begins with two lines that are arrays of texts and numbers: each is a row. One such line
/// alone may be anything.
fn has_rows_of_cells(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let is_row = |line: &[u8]| {
        let is_whole = end_of_value(line) == Some(line.len());
        let first = line.get(1..).unwrap_or_default().trim_ascii_start().first();
        is_whole && line.starts_with(b"[") && !matches!(first, Some(b'{' | b'[' | b']') | None)
    };
    lines.next().is_some_and(is_row) && lines.next().is_some_and(is_row)
}

/// Where the object or array that a text begins with ends.
pub fn end_of_value(text: &[u8]) -> Option<usize> {
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for (index, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(index + 1);
                }
            }
            _ => {}
        }
    }
    None
}

pub struct Lines<R> {
    reader: R,
    line: u64,
}

impl<R: BufRead> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, line: 0 }
    }

    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Found>, ImportError> {
        loop {
            buffer.clear();
            let limit = u64::try_from(MAX_JOB_BYTES).unwrap_or(u64::MAX);
            let failed = |line| move |source| ImportError::Read { line, source };
            let read = (&mut self.reader).take(limit + 1).read_until(b'\n', buffer);
            let read = read.map_err(failed(self.line + 1))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            let is_too_long = read > MAX_JOB_BYTES && buffer.last() != Some(&b'\n');
            // A line without an end must not fill the memory.
            let outline =
                is_too_long.then(|| self.rest_of_line(buffer)).transpose().map_err(failed(self.line))?;
            if !buffer.iter().all(u8::is_ascii_whitespace) {
                let too_long = outline.map(|outline| outline.told(&[]));
                return Ok(Some(Found { line: self.line, key: None, too_long }));
            }
        }
    }

    /// Passes over the rest of a line that begins so.
    fn rest_of_line(&mut self, begin: &[u8]) -> io::Result<Outline> {
        let mut outline = Outline::begun(begin);
        loop {
            let next = self.reader.fill_buf()?;
            let end = memchr::memchr(b'\n', next);
            let passed = end.map_or(next.len(), |end| end + 1);
            for byte in next.iter().take(passed) {
                outline.pass(*byte);
            }
            self.reader.consume(passed);
            if end.is_some() || passed == 0 {
                return Ok(outline);
            }
        }
    }
}

/// What of a document has begun and not ended where it is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// An object on the way to the rows, whose field on the way has been passed: so many names of the path
    /// lead to the object, and so many are the field's.
    Object {
        depth: usize,
        names: usize,
    },
    /// An array on the way, whose item on the way has been passed.
    Item,
    /// An array on the way, each of whose items has rows; so many names of the path lead to it.
    Groups {
        depth: usize,
        has_items: bool,
    },
    /// The array of rows, or the object of them.
    Array {
        has_rows: bool,
    },
    Keyed {
        has_rows: bool,
    },
}

/// Values of a document.
pub struct Document<R> {
    reader: R,
    line: u64,
    path: Vec<String>,
    by_key: bool,
    /// The outermost first.
    levels: Vec<Level>,
    /// How many names of the path lead to an array of groups.
    groups_at: Option<usize>,
}

impl<R: BufRead> Document<R> {
    /// # Arguments
    /// - `path`: names of fields, from the outermost in: where the rows are. Of an array on the way each item
    ///   is such an object, unless the name is a number, which is that of an item, from 0.
    /// - `by_key`: the rows are an object, with a name for each.
    pub fn new(reader: R, path: Vec<String>, by_key: bool) -> Self {
        Self { reader, line: 1, path, by_key, levels: Vec::new(), groups_at: None }
    }

    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Found>, ImportError> {
        loop {
            let Some(level) = self.levels.pop() else {
                // Between the values of the file.
                let Some(first) = self.peek()? else { return Ok(None) };
                if self.path.is_empty() && !(first == b'[' || self.by_key) {
                    return self.value(buffer, None).map(Some);
                }
                self.enter(0)?;
                continue;
            };
            let (end, has_items) = match level {
                Level::Object { .. } => (b'}', true),
                Level::Keyed { has_rows } => (b'}', has_rows),
                Level::Item => (b']', true),
                Level::Groups { has_items: has, .. } | Level::Array { has_rows: has } => (b']', has),
            };
            if self.after_item(end, has_items)? {
                continue;
            }
            match level {
                Level::Object { depth, names } => {
                    self.levels.push(level);
                    let key = self.key()?;
                    if self.path.get(depth..depth + names).is_some_and(|path| path.join(".") == key) {
                        return Err(self.malformed(&format!(
                            "an object has {key:?} twice, and either may have the rows"
                        )));
                    }
                    self.skip_value()?;
                }
                Level::Item => {
                    self.levels.push(level);
                    self.skip_value()?;
                }
                Level::Groups { depth, .. } => {
                    self.levels.push(Level::Groups { depth, has_items: true });
                    self.enter(depth)?;
                }
                Level::Array { .. } => {
                    self.levels.push(Level::Array { has_rows: true });
                    return self.value(buffer, None).map(Some);
                }
                Level::Keyed { .. } => {
                    self.levels.push(Level::Keyed { has_rows: true });
                    let key = self.key()?;
                    return self.value(buffer, Some(key)).map(Some);
                }
            }
        }
    }

    /// Passes the comma behind an item, or the end of the array or object. `true`: it has ended.
    fn after_item(&mut self, end: u8, has_items: bool) -> Result<bool, ImportError> {
        if self.needed()? == end {
            self.take()?;
            return Ok(true);
        }
        if has_items {
            self.expect(b',')?;
            self.needed()?;
        }
        Ok(false)
    }

    /// Goes to the rows, or to the first of several groups that have rows.
    ///
    /// # Arguments
    /// `depth`: how many names of the path are behind it.
    fn enter(&mut self, depth: usize) -> Result<(), ImportError> {
        let mut depth = depth;
        while depth < self.path.len() {
            let wanted = self.path.get(depth).cloned().unwrap_or_default();
            match (self.needed()?, wanted.parse::<usize>()) {
                (b'n', _) if self.groups_at.is_some() => return self.skip_value(),
                (b'{', _) => {
                    self.take()?;
                    let mut has_fields = false;
                    let of_field = loop {
                        if self.after_item(b'}', has_fields)? {
                            return Err(self.no_rows(depth));
                        }
                        has_fields = true;
                        let key = self.key()?;
                        if let Some(names) = self.names_of(&key, depth) {
                            // What ends the path too early may be followed by a name with more dots.
                            let is_end = depth + names == self.path.len();
                            if is_end || matches!(self.needed()?, b'{' | b'[') {
                                break names;
                            }
                        }
                        self.skip_value()?;
                    };
                    self.levels.push(Level::Object { depth, names: of_field });
                    depth += of_field;
                }
                (b'[', Ok(index)) => {
                    self.take()?;
                    for item in 0..=index {
                        if self.after_item(b']', item > 0)? {
                            return Err(self.no_rows(depth));
                        }
                        if item < index {
                            self.skip_value()?;
                        }
                    }
                    self.levels.push(Level::Item);
                    depth += 1;
                }
                (b'[', Err(_)) => {
                    self.take()?;
                    self.groups_at.get_or_insert(depth);
                    self.levels.push(Level::Groups { depth, has_items: false });
                    return Ok(());
                }
                _ => return Err(self.no_rows(depth)),
            }
        }
        let first = self.needed()?;
        // A group may have none.
        if first == b'n' && self.groups_at.is_some() {
            return self.skip_value();
        }
        self.levels.push(match (first, self.by_key) {
            (b'[', false) => Level::Array { has_rows: false },
            (b'{', true) => Level::Keyed { has_rows: false },
            (b'{', false) => {
                let mut outline = Outline::default();
                self.pass_value(|byte| outline.pass(byte))?;
                return Err(ImportError::RowsAreObject(self.path.join("."), outline.told(&self.path)));
            }
            (b'[', true) => return Err(ImportError::RowsAreArray(self.path.join("."))),
            _ => return Err(self.no_rows(self.path.len())),
        });
        self.take()
    }

    /// How many names of the path from one on are a field's name: one, or several if it has dots in it.
    fn names_of(&self, key: &str, depth: usize) -> Option<usize> {
        let dots = key.matches('.').count();
        let names = self.path.get(depth..=depth + dots)?;
        (names.join(".") == key).then_some(dots + 1)
    }

    fn no_rows(&self, depth: usize) -> ImportError {
        let path = self.path.join(".");
        let name = self.path.get(depth).cloned().unwrap_or_default();
        ImportError::NoRowsAt { path, name, line: self.line }
    }

    fn key(&mut self) -> Result<String, ImportError> {
        self.needed()?;
        let mut text = Vec::new();
        self.copy_value(&mut text)?;
        let key =
            serde_json::from_slice(&text).map_err(|_| self.malformed("the name of a field is expected"))?;
        self.expect(b':')?;
        Ok(key)
    }

    fn value(&mut self, buffer: &mut Vec<u8>, key: Option<String>) -> Result<Found, ImportError> {
        self.needed()?;
        let line = self.line;
        let outline = self.copy_value(buffer)?;
        let within = || self.path.iter().chain(&key).cloned().collect::<Vec<_>>();
        let too_long = outline.map(|outline| outline.told(&within()));
        Ok(Found { line, key, too_long })
    }

    fn skip_value(&mut self) -> Result<(), ImportError> {
        self.needed()?;
        self.pass_value(|_| {})
    }

    /// Copies the value that comes. If it was too long, and was cut, also what it has.
    fn copy_value(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Outline>, ImportError> {
        let mut too_long: Option<Outline> = None;
        self.pass_value(|byte| {
            if buffer.len() < MAX_JOB_BYTES {
                // A value of several lines becomes one line.
                buffer.push(if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
            } else {
                too_long.get_or_insert_with(|| Outline::begun(buffer)).pass(byte);
            }
        })?;
        Ok(too_long)
    }

    fn pass_value(&mut self, mut each: impl FnMut(u8)) -> Result<(), ImportError> {
        let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
        let mut is_first = true;
        loop {
            let Some(byte) = self.peek_raw()? else {
                return if depth == 0 && !in_text && !is_first { Ok(()) } else { Err(self.cut_short()) };
            };
            let is_end_of_scalar = matches!(byte, b',' | b'}' | b']' | b':') || byte.is_ascii_whitespace();
            if depth == 0 && !in_text && is_end_of_scalar {
                return if is_first { Err(self.malformed("a value is expected")) } else { Ok(()) };
            }
            each(byte);
            self.take()?;
            is_first = false;
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_text => is_escaped = true,
                b'"' if in_text => {
                    in_text = false;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                b'"' => in_text = true,
                b'{' | b'[' if !in_text => depth += 1,
                b'}' | b']' if !in_text => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), ImportError> {
        if self.needed()? == byte {
            self.take()
        } else {
            Err(self.malformed(&format!("{:?} is expected", char::from(byte).to_string())))
        }
    }

    /// The next byte that is no space.
    fn needed(&mut self) -> Result<u8, ImportError> {
        self.peek()?.ok_or_else(|| self.cut_short())
    }

    fn peek(&mut self) -> Result<Option<u8>, ImportError> {
        loop {
            match self.peek_raw()? {
                Some(byte) if byte.is_ascii_whitespace() => self.take()?,
                other => return Ok(other),
            }
        }
    }

    fn peek_raw(&mut self) -> Result<Option<u8>, ImportError> {
        let line = self.line;
        let next = self.reader.fill_buf().map_err(|source| ImportError::Read { line, source })?;
        Ok(next.first().copied())
    }

    fn take(&mut self) -> Result<(), ImportError> {
        self.line += u64::from(self.peek_raw()? == Some(b'\n'));
        self.reader.consume(1);
        Ok(())
    }

    fn cut_short(&self) -> ImportError {
        self.malformed("the file ends within a value")
    }

    fn malformed(&self, why: &str) -> ImportError {
        ImportError::Json { line: self.line, why: why.to_owned() }
    }
}

#[cfg(test)]
#[path = "json_values_tests.rs"]
mod tests;

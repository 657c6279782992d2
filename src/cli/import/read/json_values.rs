//! The values of a JSON file that are rows: one a line, as NDJSON has them; or those of a document, which is
//! an array of them, or holds one, or an object with a name for each.
//!
//! Knows: where values begin and end. Must not know: what is in a row. Whatever the file holds, no more than
//! one row of it is in memory.

use std::io::{BufRead, Read};

use crate::cli::import::ImportError;
use crate::cli::import::read::limits::MAX_JOB_BYTES;

/// A value that is to be a row. Its text is in the buffer that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// That it begins on.
    pub line: u64,
    /// Its name in the object of rows.
    pub key: Option<String>,
    /// It is longer than any job may be, and its text is not whole.
    pub is_too_long: bool,
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
}

/// Whether a file that begins so is a document, and not a value a line.
pub fn is_document(head: &[u8]) -> bool {
    let Some(start) = head.iter().position(|byte| !byte.is_ascii_whitespace()) else { return false };
    let text = head.get(start..).unwrap_or_default();
    if text.starts_with(b"[") {
        return true;
    }
    if let Some(end) = end_of_value(text) {
        return text.get(..end).is_some_and(|value| value.contains(&b'\n'));
    }
    let mut lines = text.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::trim_ascii_start);
    lines.find(|line| !line.is_empty()).is_some_and(|second| !second.starts_with(b"{"))
}

/// Where the object or array that a text begins with ends.
fn end_of_value(text: &[u8]) -> Option<usize> {
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
            if is_too_long {
                // A line without an end must not fill the memory.
                self.reader.skip_until(b'\n').map_err(failed(self.line))?;
            }
            if !buffer.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Found { line: self.line, key: None, is_too_long }));
            }
        }
    }
}

/// Where a document is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Between the values of the file.
    Top,
    /// Within the array of rows, or the object of them.
    Array,
    Object,
}

/// Values of a document.
pub struct Document<R> {
    reader: R,
    line: u64,
    path: Vec<String>,
    by_key: bool,
    at: At,
    /// A row was read of the array or object.
    has_rows: bool,
}

impl<R: BufRead> Document<R> {
    /// # Arguments
    /// - `path`: names of fields, from the outermost in: where the rows are.
    /// - `by_key`: the rows are an object, with a name for each.
    pub fn new(reader: R, path: Vec<String>, by_key: bool) -> Self {
        Self { reader, line: 1, path, by_key, at: At::Top, has_rows: false }
    }

    fn next(&mut self, buffer: &mut Vec<u8>) -> Result<Option<Found>, ImportError> {
        loop {
            match self.at {
                At::Top => {
                    let Some(first) = self.peek()? else { return Ok(None) };
                    if self.path.is_empty() && !(first == b'[' || self.by_key) {
                        return self.value(buffer, None).map(Some);
                    }
                    self.enter()?;
                }
                At::Array | At::Object => {
                    let end = if self.at == At::Array { b']' } else { b'}' };
                    let next = self.after_row(end)?;
                    if next == end {
                        self.take()?;
                        self.leave()?;
                        continue;
                    }
                    self.has_rows = true;
                    let key = if self.at == At::Object { Some(self.key()?) } else { None };
                    return self.value(buffer, key).map(Some);
                }
            }
        }
    }

    /// Passes the comma between two rows; what comes then.
    fn after_row(&mut self, end: u8) -> Result<u8, ImportError> {
        let next = self.needed()?;
        if next == end || !self.has_rows {
            return Ok(next);
        }
        self.expect(b',')?;
        self.needed()
    }

    /// Goes to the rows.
    fn enter(&mut self) -> Result<(), ImportError> {
        for depth in 0..self.path.len() {
            let wanted = self.path.get(depth).cloned().unwrap_or_default();
            if self.needed()? != b'{' {
                return Err(self.no_rows(depth));
            }
            self.take()?;
            let mut is_first = true;
            loop {
                if self.needed()? == b'}' {
                    return Err(self.no_rows(depth));
                }
                if !is_first {
                    self.expect(b',')?;
                }
                is_first = false;
                if self.key()? == wanted {
                    break;
                }
                self.skip_value()?;
            }
        }
        self.at = match (self.needed()?, self.by_key) {
            (b'[', false) => At::Array,
            (b'{', true) => At::Object,
            (b'{', false) => return Err(ImportError::RowsAreObject(self.path.join("."))),
            (b'[', true) => return Err(ImportError::RowsAreArray(self.path.join("."))),
            _ => return Err(self.no_rows(self.path.len())),
        };
        self.has_rows = false;
        self.take()?;
        Ok(())
    }

    /// Passes what comes behind the rows, in the objects that hold them.
    fn leave(&mut self) -> Result<(), ImportError> {
        for _ in 0..self.path.len() {
            loop {
                if self.needed()? == b'}' {
                    self.take()?;
                    break;
                }
                self.expect(b',')?;
                self.key()?;
                self.skip_value()?;
            }
        }
        self.at = At::Top;
        Ok(())
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
        let is_too_long = self.copy_value(buffer)?;
        Ok(Found { line, key, is_too_long })
    }

    fn skip_value(&mut self) -> Result<(), ImportError> {
        self.needed()?;
        self.pass_value(|_| {})
    }

    /// Copies the value that comes; whether it was too long, and was cut.
    fn copy_value(&mut self, buffer: &mut Vec<u8>) -> Result<bool, ImportError> {
        let mut is_too_long = false;
        self.pass_value(|byte| {
            if buffer.len() < MAX_JOB_BYTES {
                // A value of several lines becomes one line.
                buffer.push(if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
            } else {
                is_too_long = true;
            }
        })?;
        Ok(is_too_long)
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
mod tests {
    use super::*;

    fn values(text: &str, path: &[&str], by_key: bool) -> Result<Vec<(u64, String, String)>, ImportError> {
        let path = path.iter().map(ToString::to_string).collect();
        let mut document = Document::new(text.as_bytes(), path, by_key);
        let (mut all, mut buffer) = (Vec::new(), Vec::new());
        loop {
            buffer.clear();
            let Some(Found { line, key, .. }) = document.next(&mut buffer)? else { return Ok(all) };
            all.push((line, key.unwrap_or_default(), String::from_utf8_lossy(&buffer).into_owned()));
        }
    }

    #[test]
    fn rows_are_found_wherever_a_document_has_them() {
        let row = |line, key: &str, text: &str| (line, key.to_owned(), text.to_owned());
        for (text, path, by_key, expect) in [
            (
                "[1, {\"a\":[2]} ,\n\"x]\"]",
                &[][..],
                false,
                vec![row(1, "", "1"), row(1, "", "{\"a\":[2]}"), row(2, "", "\"x]\"")],
            ),
            ("[]", &[], false, vec![]),
            (
                "{\n \"a\": 1\n}\n{\"a\":2}",
                &[],
                false,
                vec![row(1, "", "{  \"a\": 1 }"), row(4, "", "{\"a\":2}")],
            ),
            (
                "{\"x\":[9],\"d\":{\"n\":0,\"rows\":[\n{},{}],\"m\":[1]},\"z\":null}",
                &["d", "rows"],
                false,
                vec![row(2, "", "{}"), row(2, "", "{}")],
            ),
            (
                "{\"ann\":5,\"b\\u006fb\":{\"s\":6}}",
                &[],
                true,
                vec![row(1, "ann", "5"), row(1, "bob", "{\"s\":6}")],
            ),
            ("{\"t\":{\"ann\":5}}", &["t"], true, vec![row(1, "ann", "5")]),
            ("{\"r\":[1]}\n{\"r\":[2]}", &["r"], false, vec![row(1, "", "1"), row(2, "", "2")]),
        ] {
            assert_eq!(values(text, path, by_key).expect(text), expect, "{text}");
        }
    }

    #[test]
    fn a_document_that_is_not_as_it_is_said_to_be_is_refused() {
        for (text, path, by_key, expect) in [
            ("[1", &[][..], false, "line 1: the JSON is not well-formed: the file ends within a value"),
            ("[1 2]", &[], false, "\",\" is expected"),
            ("{\"a\":1}", &["b"], false, "--rows-at b: "),
            ("[1]", &["b"], false, "--rows-at b: "),
            ("{\"a\":{\"x\":1}}", &["a"], false, "--member-from-key"),
            ("[1]", &[], true, "--member-from-key"),
            ("{\"a\":5}", &["a"], false, "--rows-at a: "),
        ] {
            let told = values(text, path, by_key).expect_err(text).to_string();
            assert!(told.contains(expect), "{text}: {told}");
        }
    }

    #[test]
    fn documents_are_told_from_lines_by_their_beginning() {
        for (head, expect) in [
            ("{\"a\":1}\n{\"a\":2}\n", false),
            ("\n\n{\"a\":\"}\\\"\"}\n", false),
            ("{\"a\":1}", false),
            ("{\n\"a\":1}", true),
            ("{\n\"a\":{\n", true),
            ("{\"board\":\"b\",\n{\"member\":1}\n", false),
            ("[", true),
            ("", false),
        ] {
            assert_eq!(is_document(head.as_bytes()), expect, "{head:?}");
        }
    }
}

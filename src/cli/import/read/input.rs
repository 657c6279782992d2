//! Opens what is to be read: files or standard input, packed or not, in whatever encoding.

use std::fs;
use std::io::{self, BufRead, BufReader, Cursor, IsTerminal, Read, Seek as _, SeekFrom};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use encoding_rs::{Encoding, UTF_8};
use flate2::bufread::MultiGzDecoder;
use serde::de::IgnoredAny;

use crate::cli::as_owner::open_file;
use crate::cli::import::read::encoding::{Marked, Transcoded, encoding_of};
use crate::cli::import::read::foreign::{MAGIC_BYTES, foreign, no_table, spreadsheet};
use crate::cli::import::read::json_values::end_of_value;
use crate::cli::import::read::limits::SNIFFED_BYTES;
use crate::cli::import::read::redis_cells::is_pairs;
use crate::cli::import::{Format, ImportError};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// What other packed files begin with, what they are, and what unpacks them to standard output.
const PACKED: [(&[u8], &str, &str); 6] = [
    (b"PK\x03\x04", "a zip file", "unzip -p"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "zstd -dc"),
    (b"\xfd7zXZ\0", "packed with xz", "xz -dc"),
    (b"BZh", "packed with bzip2", "bzip2 -dc"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z file", "7z e -so"),
    (b"\x04\x22\x4d\x18", "packed with lz4", "lz4 -dc"),
];
/// An append-only file whose beginning is a dump.
const REDIS_DUMP: &[u8] = b"REDIS";
/// Of a text, at least so many bytes come to each control character.
const TEXT_PER_CONTROL: usize = 8;
/// A cell of several lines may have some carriage returns; a file of more has lines that end so.
const RETURNS_PER_LINE: usize = 4;
/// Large enough that an import does not wait for reading.
const BUFFER_BYTES: usize = 256 * 1024;

/// One file, or a pipe.
pub struct InputFile {
    /// For messages.
    pub name: String,
    source: Source,
    /// `None` for a pipe.
    bytes: Option<u64>,
    /// What was read of all files before it.
    bytes_before: u64,
    /// How far it was read, once it was.
    end: Option<End>,
}

/// Where a file ended when it was read.
#[derive(Debug, Clone, Copy)]
struct End {
    /// Before unpacking.
    bytes: u64,
    /// Of the last row.
    line: u64,
}

/// What came into a file behind its end as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    pub bytes: u64,
    /// Of the last row that was read.
    pub line: u64,
    /// Nothing says that the row was whole.
    pub may_be_cut: bool,
}

enum Source {
    Path(PathBuf),
    /// Until it was opened.
    Pipe(Option<Box<dyn Read>>),
}

/// An opened input, positioned at its first character.
pub struct Input {
    pub reader: Box<dyn BufRead>,
    pub format: Format,
    /// How it begins.
    pub head: Vec<u8>,
}

impl InputFile {
    /// # Errors
    /// When there is no such file, or standard input is a terminal.
    pub fn find(path: &Path) -> Result<Self, ImportError> {
        let is_pipe = is_stdin(path);
        let name = if is_pipe { "standard input".to_owned() } else { path.display().to_string() };
        let failed = |source| ImportError::Open { path: path.to_owned(), source };
        let (pipe, bytes): (Box<dyn Read>, _) = if is_pipe {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                return Err(ImportError::Terminal);
            }
            (Box::new(stdin), None)
        } else {
            if fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
                eprintln!("{name} is a pipe; waiting for whoever writes to it");
            }
            let file = open_file(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(failed(io::ErrorKind::IsADirectory.into()));
            }
            (Box::new(file), metadata.is_file().then_some(metadata.len()))
        };
        if bytes.is_some() {
            let source = Source::Path(path.to_owned());
            return Ok(Self { name, source, bytes, bytes_before: 0, end: None });
        }
        Ok(Self::pipe(name, pipe))
    }

    fn pipe(name: String, pipe: Box<dyn Read>) -> Self {
        Self { name, source: Source::Pipe(Some(pipe)), bytes: None, bytes_before: 0, end: None }
    }

    /// As it is read from the disk, before unpacking.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// # Arguments
    /// - `encoding`: of `--encoding`.
    /// - `bytes_read`: counts what is read of the file, before unpacking.
    ///
    /// # Errors
    /// When it cannot be opened, its first bytes cannot be read, or it is nothing that an import reads.
    pub fn open(
        &mut self,
        format: Option<Format>,
        encoding: Option<&'static Encoding>,
        bytes_read: &Arc<AtomicU64>,
    ) -> Result<Input, ImportError> {
        (self.bytes_before, self.end) = (bytes_read.load(Ordering::Relaxed), None);
        let name = &self.name;
        let failed = |source| ImportError::Open { path: name.into(), source };
        let source: Box<dyn Read> = match &mut self.source {
            Source::Path(path) => Box::new(open_file(path).map_err(failed)?),
            Source::Pipe(pipe) => pipe.take().unwrap_or_else(|| Box::new(io::empty())),
        };
        let counted = Counted { inner: source, bytes_read: Arc::clone(bytes_read) };
        let is_pipe = !matches!(self.source, Source::Path(_));
        read(counted, format, encoding, if is_pipe { None } else { Some(&self.name) }).map_err(|error| {
            match error {
                NotRead::Failed(source) => failed(source),
                NotRead::Not(error) => error,
            }
        })
    }
}

impl InputFile {
    /// It was read to its end.
    ///
    /// # Arguments
    /// - `bytes_read`: as when it was opened.
    /// - `line`: of its last row.
    pub fn ended(&mut self, bytes_read: &AtomicU64, line: u64) {
        let bytes = bytes_read.load(Ordering::Relaxed).saturating_sub(self.bytes_before);
        self.end = Some(End { bytes, line });
    }

    /// What has come into the file since it was read, and is not among its rows.
    pub fn grown(&self) -> Option<Grown> {
        let (Source::Path(path), Some(End { bytes, line })) = (&self.source, self.end) else { return None };
        let mut file = open_file(path).ok()?;
        let now = file.metadata().ok()?.len();
        let grown = now.checked_sub(bytes).filter(|grown| *grown > 0)?;
        let mut last = [0];
        let read = file.seek(SeekFrom::Start(bytes.checked_sub(1)?)).and_then(|_| file.read_exact(&mut last));
        Some(Grown { bytes: grown, line, may_be_cut: read.is_err() || last != *b"\n" })
    }
}

/// Why an input cannot be read.
enum NotRead {
    Failed(io::Error),
    /// It is not what an import reads.
    Not(ImportError),
}

impl From<io::Error> for NotRead {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

fn read(
    source: impl Read + 'static,
    format: Option<Format>,
    given: Option<&'static Encoding>,
    name: Option<&str>,
) -> Result<Input, NotRead> {
    let (head, packed) = peek(BufReader::with_capacity(BUFFER_BYTES, source), MAGIC_BYTES)?;
    if let Some((what, how)) = spreadsheet(&head) {
        return Err(NotRead::Not(ImportError::Foreign { what, how }));
    }
    let is_gzip = head.starts_with(&GZIP_MAGIC);
    if let Some((_, what, command)) = PACKED.iter().find(|(magic, _, _)| head.starts_with(magic)) {
        let name = name.map_or_else(|| "FILE".to_owned(), |name| format!("'{name}'"));
        let how = format!("{command} {name} | ranktree import -");
        return Err(NotRead::Not(ImportError::Packed { what, how }));
    }
    let packed = Cursor::new(head).chain(packed);
    let plain: Box<dyn BufRead> = if is_gzip {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(packed)))
    } else {
        Box::new(packed)
    };
    let (mut mark, plain) = peek(plain, MAGIC_BYTES)?;
    if let Some((what, how)) = foreign(&mark) {
        return Err(NotRead::Not(ImportError::Foreign { what, how }));
    }
    let Marked { encoding, mark_bytes } = encoding_of(&mark, given).map_err(|marked| {
        let given = given.map_or("", Encoding::name);
        NotRead::Not(ImportError::OtherMark { marked, given })
    })?;
    mark.drain(..mark_bytes);
    let bytes = Cursor::new(mark).chain(plain);
    let text: Box<dyn BufRead> = if encoding == UTF_8 {
        Box::new(bytes)
    } else {
        Box::new(BufReader::with_capacity(BUFFER_BYTES, Transcoded::new(bytes, encoding)))
    };
    let (head, text) = peek(text, SNIFFED_BYTES)?;
    if head.is_empty() {
        return Err(NotRead::Not(if name.is_some() { ImportError::Empty } else { ImportError::EmptyInput }));
    }
    if head.starts_with(REDIS_DUMP) {
        return Err(NotRead::Not(ImportError::RedisDump));
    }
    if format.is_none() && is_list_of_parts(&head) {
        return Err(NotRead::Not(ImportError::PartOfLog));
    }
    if let Some((what, how)) = no_table(&head).filter(|_| format.is_none()) {
        return Err(NotRead::Not(ImportError::Foreign { what, how }));
    }
    let format = format.unwrap_or_else(|| recognised(&head));
    if format != Format::Aof && has_lines_of_returns(&head) {
        return Err(NotRead::Not(ImportError::CarriageReturns));
    }
    let is_control = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let controls = head.iter().filter(is_control).count();
    // One that somebody has typed is no more than a character, which no name may have.
    if format != Format::Aof && (head.contains(&0) || controls * TEXT_PER_CONTROL > head.len()) {
        return Err(NotRead::Not(ImportError::Binary));
    }
    let reader: Box<dyn BufRead> = Box::new(Cursor::new(head.clone()).chain(text));
    Ok(Input { reader, format, head })
}

/// Whether most lines end with a carriage return alone.
fn has_lines_of_returns(head: &[u8]) -> bool {
    let is_lone = |at: &usize| head.get(at + 1) != Some(&b'\n');
    let lone = memchr::memchr_iter(b'\r', head).filter(is_lone).count();
    lone > RETURNS_PER_LINE * memchr::memchr_iter(b'\n', head).count()
}

/// The format of a text that begins so.
fn recognised(head: &[u8]) -> Format {
    let mut text = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    match (text.next(), text.next()) {
        (Some(b'{'), _) | (Some(b'['), Some(b'{' | b'[' | b']' | b'"')) => Format::Ndjson,
        (Some(b'['), Some(b'0'..=b'9' | b'-' | b't' | b'f' | b'n')) if is_array(head) => Format::Ndjson,
        (Some(b'*' | b'#'), _) if is_command(head) => Format::Aof,
        _ if is_pairs(head, head.len() < SNIFFED_BYTES) => Format::RedisCsv,
        _ => Format::Csv,
    }
}

/// Whether a text begins with an array of JSON.
fn is_array(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    let array = end_of_value(text).and_then(|end| text.get(..end));
    array.is_some_and(|array| serde_json::from_slice::<Vec<IgnoredAny>>(array).is_ok())
}

/// Whether a text is the list of the parts of an append-only file: `file NAME seq 1 type b`.
fn is_list_of_parts(head: &[u8]) -> bool {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words: Vec<&[u8]> = first.split(u8::is_ascii_whitespace).collect();
    matches!(words.as_slice(), [b"file", _, b"seq", _, b"type", _, ..])
}

/// Whether a text begins as commands of Redis do: `*3`, and then `$4`, behind remarks about the time.
fn is_command(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut lines = lines.skip_while(|line| line.starts_with(b"#TS:"));
    let is_of = |line: Option<&[u8]>, mark: u8| {
        line.and_then(|line| line.strip_prefix(&[mark]))
            .is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
    };
    is_of(lines.next(), b'*') && is_of(lines.next(), b'$')
}

/// Whether the argument means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Takes the first `count` bytes off a reader; fewer only if there are no more.
fn peek<R: Read>(mut reader: R, count: usize) -> io::Result<(Vec<u8>, R)> {
    let mut head = Vec::with_capacity(count);
    reader.by_ref().take(u64::try_from(count).unwrap_or(u64::MAX)).read_to_end(&mut head)?;
    Ok((head, reader))
}

/// Counts what goes through, for the progress bar.
struct Counted<R> {
    inner: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;

//! Opens what is to be read: a file or standard input, packed or not, with or without a byte order mark.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::cli::import::progress::Progress;
use crate::cli::import::{Format, ImportError};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
/// How far to look for the first character.
const SNIFFED_BYTES: usize = 512;
/// Large enough that an import does not wait for reading.
const BUFFER_BYTES: usize = 256 * 1024;

/// An opened input, positioned at its first character.
pub struct Input {
    pub reader: Box<dyn BufRead>,
    pub format: Format,
    /// There are no bytes to read.
    pub is_empty: bool,
    /// It begins with bytes that do not occur in text.
    pub is_binary: bool,
    /// It begins as a JSON array of objects does.
    pub is_array: bool,
    /// Bytes read from the file so far, before unpacking.
    bytes_read: Arc<AtomicU64>,
    /// The file's size; `None` for a pipe.
    bytes_total: Option<u64>,
}

impl Input {
    /// # Errors
    /// When the file cannot be opened or its first bytes cannot be read, or when standard input is a
    /// terminal.
    pub fn open(path: &Path, format: Option<Format>) -> Result<Self, ImportError> {
        let failed = |source| ImportError::Open { path: path.to_owned(), source };
        if is_stdin(path) {
            let stdin = io::stdin();
            if stdin.is_terminal() {
                return Err(ImportError::Terminal);
            }
            return Self::read(stdin, None, format).map_err(failed);
        }
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let bytes_total = metadata.is_file().then_some(metadata.len());
        Self::read(file, bytes_total, format).map_err(failed)
    }

    pub fn read(
        source: impl Read + 'static,
        bytes_total: Option<u64>,
        format: Option<Format>,
    ) -> io::Result<Self> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: source, bytes_read: Arc::clone(&bytes_read) };
        let (head, packed) = peek(BufReader::with_capacity(BUFFER_BYTES, counted), GZIP_MAGIC.len())?;
        let is_gzip = head == GZIP_MAGIC;
        let packed = Cursor::new(head).chain(packed);
        let plain: Box<dyn BufRead> = if is_gzip {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(packed)))
        } else {
            Box::new(packed)
        };
        let (mut head, plain) = peek(plain, SNIFFED_BYTES)?;
        if head.starts_with(&BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let is_empty = head.is_empty();
        let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
        let is_binary = head.iter().any(is_control);
        let is_object = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        let mut text = head.iter().filter(|byte| !byte.is_ascii_whitespace());
        let is_array = text.next() == Some(&b'[') && matches!(text.next(), Some(b'{' | b']'));
        let recognised = if is_object { Format::Ndjson } else { Format::Csv };
        Ok(Self {
            reader: Box::new(Cursor::new(head).chain(plain)),
            format: format.unwrap_or(recognised),
            is_empty,
            is_binary,
            is_array,
            bytes_read,
            bytes_total,
        })
    }

    pub fn progress(&self) -> Progress {
        Progress::new(Arc::clone(&self.bytes_read), self.bytes_total)
    }
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
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("writing to a Vec does not fail");
        encoder.finish().expect("writing to a Vec does not fail")
    }

    fn check(bytes: &[u8], format: Format, content: &str) {
        let mut input = Input::read(Cursor::new(bytes.to_vec()), None, None).expect("readable");
        let mut text = String::new();
        input.reader.read_to_string(&mut text).expect("readable");
        assert_eq!((input.format, text.as_str()), (format, content));
        let length = u64::try_from(bytes.len()).expect("small");
        assert_eq!(input.bytes_read.load(Ordering::Relaxed), length, "every byte of the file is counted");
    }

    #[test]
    fn format_packing_and_byte_order_mark_are_recognised() {
        check(b"", Format::Csv, "");
        check(b"m", Format::Csv, "m");
        check(b"member,score\n", Format::Csv, "member,score\n");
        check(b"\xef\xbb\xbfmember,score\n", Format::Csv, "member,score\n");
        check(b"{\"member\":1}", Format::Ndjson, "{\"member\":1}");
        check(b"\xef\xbb\xbf\n\n\n \t{}", Format::Ndjson, "\n\n\n \t{}");
        check(&gzip(b"member,score\n"), Format::Csv, "member,score\n");
        check(&gzip(b"\xef\xbb\xbf{}"), Format::Ndjson, "{}");
        check(&gzip(b""), Format::Csv, "");
        let long = "member,score\n".repeat(100_000);
        check(&[gzip(long.as_bytes()), gzip(b"end")].concat(), Format::Csv, &format!("{long}end"));
    }

    #[test]
    fn what_is_no_text_is_seen_at_its_beginning() {
        for (bytes, is_binary) in [
            (&b"member,score\r\na\t,1\n"[..], false),
            ("ä,日本\n".as_bytes(), false),
            (b"\x7fELF\x02\x01", true),
            (b"PK\x03\x04", true),
            // A spreadsheet's \"Unicode text\".
            (b"\xff\xfem\0e\0", true),
        ] {
            let input = Input::read(Cursor::new(bytes.to_vec()), None, None).expect("readable");
            assert_eq!(input.is_binary, is_binary, "{bytes:?}");
        }
    }

    #[test]
    fn an_array_of_objects_is_seen_at_its_beginning() {
        for (text, is_array) in [
            ("[{}]", true),
            (" [\n {\"member\"", true),
            ("[]", true),
            ("[member],score\n", false),
            ("{}", false),
        ] {
            let input = Input::read(Cursor::new(text.as_bytes().to_vec()), None, None).expect("readable");
            assert_eq!(input.is_array, is_array, "{text}");
        }
    }

    #[test]
    fn a_gzip_file_that_was_cut_short_is_an_error_and_not_an_end() {
        let mut packed = gzip("member,score\n".repeat(100_000).as_bytes());
        packed.truncate(packed.len() / 2);
        let mut input = Input::read(Cursor::new(packed), None, None).expect("the head is there");
        let end = io::copy(&mut input.reader, &mut io::sink());
        assert_eq!(end.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn what_cannot_be_opened_is_named() {
        let missing = Path::new("no such file.csv");
        let error = Input::open(missing, None).err().expect("it does not exist");
        assert_eq!(error.to_string(), "cannot open no such file.csv");
        let folder = tempfile::tempdir().expect("a temporary directory");
        assert!(Input::open(folder.path(), None).is_err(), "a directory is no file");
    }
}

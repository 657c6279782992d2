//! A file's bytes as UTF-8: what `--encoding` says that they are in, or what their byte order mark says.
//!
//! Text that cannot be of that encoding is an error with its line. So is a file of UTF-8 that another
//! encoding would garble without a word.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use thiserror::Error;

const BUFFER_BYTES: usize = 64 * 1024;
/// The most bytes that a decoder writes for the last of its input.
const LAST_BYTES: usize = 64;

/// Reads `--encoding`: a label of the WHATWG's list, such as `windows-1252`, `latin1`, `utf-16le`.
///
/// # Errors
/// When there is no such encoding.
pub fn encoding(label: &str) -> Result<&'static Encoding, String> {
    let found = Encoding::for_label_no_replacement(label.as_bytes());
    found.ok_or_else(|| {
        "no such encoding is known; examples are windows-1252 (which has Latin-1), iso-8859-2, utf-16le, shift_jis, \
         gb18030 and utf-8"
            .to_owned()
    })
}

/// What a file is in, and how many bytes of its beginning say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    pub encoding: &'static Encoding,
    pub mark_bytes: usize,
}

/// By its byte order mark, if there is one.
///
/// # Errors
/// The encoding of the mark, if that is not the one that was given.
pub fn encoding_of(head: &[u8], given: Option<&'static Encoding>) -> Result<Marked, &'static str> {
    match (Encoding::for_bom(head), given) {
        (None, given) => Ok(Marked { encoding: given.unwrap_or(UTF_8), mark_bytes: 0 }),
        // `utf-16` of the list is UTF-16LE, and a mark may say otherwise.
        (Some((encoding, mark_bytes)), Some(given)) => {
            let is_same =
                encoding == given || [encoding, given].iter().all(|one| [UTF_16LE, UTF_16BE].contains(one));
            if is_same { Ok(Marked { encoding, mark_bytes }) } else { Err(encoding.name()) }
        }
        (Some((encoding, mark_bytes)), None) => Ok(Marked { encoding, mark_bytes }),
    }
}

/// Why a file is read no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BadEncoding {
    #[error("line {line}: what is here is not {encoding}; --encoding says what the file is in")]
    Malformed { line: u64, encoding: &'static str },
    #[error("the file is UTF-8, and --encoding {encoding} would garble it; leave --encoding away")]
    IsUtf8 { encoding: &'static str },
}

/// Text of another encoding, as UTF-8.
pub struct Transcoded<R> {
    inner: R,
    encoding: &'static Encoding,
    decoder: Decoder,
    input: Vec<u8>,
    /// What of the input is left to decode.
    rest: std::ops::Range<usize>,
    is_last: bool,
    is_done: bool,
    output: Vec<u8>,
    ready: std::ops::Range<usize>,
    line: u64,
    /// Whether all bytes so far are UTF-8, of which some are not ASCII.
    utf8: Option<Decoder>,
    has_more_than_ascii: bool,
}

impl<R: Read> Transcoded<R> {
    pub fn new(inner: R, encoding: &'static Encoding) -> Self {
        // Encodings of two bytes a character are not taken for UTF-8.
        let is_of_bytes = ![UTF_16LE, UTF_16BE].contains(&encoding);
        Self {
            inner,
            encoding,
            decoder: encoding.new_decoder_without_bom_handling(),
            input: vec![0; BUFFER_BYTES],
            rest: 0..0,
            is_last: false,
            is_done: false,
            output: vec![0; 3 * BUFFER_BYTES + LAST_BYTES],
            ready: 0..0,
            line: 1,
            utf8: is_of_bytes.then(|| UTF_8.new_decoder_without_bom_handling()),
            has_more_than_ascii: false,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.rest.is_empty() && !self.is_last {
            let read = self.inner.read(&mut self.input)?;
            self.is_last = read == 0;
            self.rest = 0..read;
            self.look_for_utf8()?;
        }
        let source = self.input.get(self.rest.clone()).unwrap_or_default();
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(source, &mut self.output, self.is_last);
        self.rest.start += read;
        self.ready = 0..written;
        let text = self.output.get(..written).unwrap_or_default();
        self.line += u64::try_from(memchr::memchr_iter(b'\n', text).count()).unwrap_or(0);
        match result {
            DecoderResult::Malformed(..) => {
                self.is_done = true;
                let bad = BadEncoding::Malformed { line: self.line, encoding: self.encoding.name() };
                Err(io::Error::new(io::ErrorKind::InvalidData, bad))
            }
            DecoderResult::InputEmpty => {
                self.is_done = self.is_last;
                Ok(())
            }
            DecoderResult::OutputFull => Ok(()),
        }
    }

    fn look_for_utf8(&mut self) -> io::Result<()> {
        let Some(decoder) = &mut self.utf8 else { return Ok(()) };
        let source = self.input.get(self.rest.clone()).unwrap_or_default();
        self.has_more_than_ascii |= !source.is_ascii();
        let mut rest = source;
        loop {
            let mut scratch = [0; 1024];
            let (result, read, _) =
                decoder.decode_to_utf8_without_replacement(rest, &mut scratch, self.is_last);
            rest = rest.get(read..).unwrap_or_default();
            match result {
                DecoderResult::Malformed(..) => {
                    self.utf8 = None;
                    return Ok(());
                }
                DecoderResult::OutputFull => {}
                DecoderResult::InputEmpty => break,
            }
        }
        if self.is_last && self.has_more_than_ascii {
            let bad = BadEncoding::IsUtf8 { encoding: self.encoding.name() };
            return Err(io::Error::new(io::ErrorKind::InvalidData, bad));
        }
        Ok(())
    }
}

impl<R: Read> Read for Transcoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.ready.is_empty() {
            if self.is_done {
                return Ok(0);
            }
            self.fill()?;
        }
        let ready = self.output.get(self.ready.clone()).unwrap_or_default();
        let count = ready.len().min(buffer.len());
        if let (Some(from), Some(to)) = (ready.get(..count), buffer.get_mut(..count)) {
            to.copy_from_slice(from);
        }
        self.ready.start += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], label: &str) -> Result<String, String> {
        let encoding = encoding(label).expect("an encoding");
        let mut text = String::new();
        let read = Transcoded::new(bytes, encoding).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    #[test]
    fn text_of_other_encodings_becomes_utf_8() {
        for (bytes, label, expect) in [
            (&b"Jos\xe9,5\n"[..], "windows-1252", "José,5\n"),
            (b"Jos\xe9,5\n", "latin1", "José,5\n"),
            (b"\x93a\x94", "windows-1252", "“a”"),
            (b"\xb1", "iso-8859-2", "ą"),
            (b"\x93\xfa\x96{", "shift_jis", "日本"),
            (b"a\0,\0\xe9\0", "utf-16le", "a,é"),
            (b"\0a", "utf-16be", "a"),
            (b"", "utf-16le", ""),
        ] {
            assert_eq!(read(bytes, label).as_deref(), Ok(expect), "{label}");
        }
        let long = "é,1\n".repeat(200_000);
        let bytes: Vec<u8> = long.chars().map(|c| u8::try_from(u32::from(c)).expect("Latin-1")).collect();
        assert_eq!(read(&bytes, "windows-1252"), Ok(long));
    }

    #[test]
    fn text_that_is_not_of_the_encoding_is_refused_with_its_line() {
        assert_eq!(
            read(b"a\nb\n\x80\xff", "shift_jis"),
            Err("line 3: what is here is not Shift_JIS; --encoding says what the file is in".to_owned())
        );
        assert!(read(b"a\0b", "utf-16le").is_err(), "half a character");
        let garbled = "José,5\n".repeat(100_000);
        let told = read(garbled.as_bytes(), "windows-1252").expect_err("it is UTF-8");
        assert!(told.starts_with("the file is UTF-8, and --encoding windows-1252 would garble it"), "{told}");
        assert_eq!(read(b"ascii", "windows-1252"), Ok("ascii".to_owned()));
    }

    #[test]
    fn byte_order_marks_say_what_a_file_is_in() {
        let name = |head: &[u8], given: Option<&str>| {
            let given = given.map(|label| encoding(label).expect("an encoding"));
            encoding_of(head, given).map(|marked| (marked.encoding.name(), marked.mark_bytes))
        };
        assert_eq!(name(b"\xef\xbb\xbfa", None), Ok(("UTF-8", 3)));
        assert_eq!(name(b"\xff\xfea\0", None), Ok(("UTF-16LE", 2)));
        assert_eq!(name(b"\xfe\xff\0a", Some("utf-16")), Ok(("UTF-16BE", 2)));
        assert_eq!(name(b"a", Some("latin1")), Ok(("windows-1252", 0)));
        assert_eq!(name(b"a", None), Ok(("UTF-8", 0)));
        assert_eq!(name(b"\xef\xbb\xbfa", Some("latin1")), Err("UTF-8"));
    }
}

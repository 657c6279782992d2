//! A file's bytes as UTF-8: what `--encoding` says that they are in, or what their byte order mark says.
//!
//! Text that cannot be of that encoding is an error with its line. So is UTF-8, all of a file or some lines
//! of it, that another encoding would garble without a word.

use std::io::{self, Read};

use encoding_rs::{
    Decoder, DecoderResult, Encoding, GB18030, MACINTOSH, SHIFT_JIS, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1250,
    WINDOWS_1251, WINDOWS_1252,
};
use thiserror::Error;

use crate::types::quoted;

const BUFFER_BYTES: usize = 64 * 1024;
/// The most bytes that a decoder writes for the last of its input.
const LAST_BYTES: usize = 64;
/// What is shown of a text on each side of its first bytes that are no UTF-8.
const READING_BYTES: usize = 24;

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

/// What a text was before its UTF-8 was read as windows-1252, if it seems to be such a one: `JosÃ©`.
pub fn ungarbled(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let (bytes, _, has_others) = WINDOWS_1252.encode(text);
    let meant = String::from_utf8(bytes.into_owned()).ok().filter(|_| !has_others)?;
    (!meant.is_ascii()).then_some(meant)
}

/// What is around the first bytes of a text that are no UTF-8, as encodings in use would read it, for whoever
/// knows how it should read.
pub fn readings(bytes: &[u8]) -> String {
    let bad = std::str::from_utf8(bytes).err().map_or(0, |error| error.valid_up_to());
    let is_end = |byte: &u8| b",;\t\"\r\n".contains(byte);
    let (before, behind) = bytes.split_at_checked(bad).unwrap_or_default();
    let begin = before.iter().rposition(is_end).map_or(0, |at| at + 1).max(bad.saturating_sub(READING_BYTES));
    let end = bad + behind.iter().position(is_end).unwrap_or(behind.len()).min(READING_BYTES);
    let part = bytes.get(begin..end).unwrap_or_default();
    // Letters of most languages in Latin script stand between others of ASCII.
    let has_pairs = part.windows(2).any(|pair| pair.iter().all(|byte| !byte.is_ascii()));
    let encodings = if has_pairs {
        [WINDOWS_1251, SHIFT_JIS, GB18030, WINDOWS_1252]
    } else {
        [WINDOWS_1252, MACINTOSH, WINDOWS_1250, WINDOWS_1251]
    };
    let mut known: Vec<String> = Vec::new();
    let mut told = Vec::new();
    for encoding in encodings {
        let (text, has_errors) = encoding.decode_without_bom_handling(part);
        let is_text =
            !has_errors && !text.contains(|c: char| c.is_control() || ('\u{e000}'..='\u{f8ff}').contains(&c));
        if is_text && !known.iter().any(|other| *other == text) {
            known.push(text.to_string());
            told.push(format!("{} as {}", quoted(&text), encoding.name()));
        }
    }
    let how = if told.is_empty() { String::new() } else { format!(", by how it reads: {}", told.join(", ")) };
    format!("--encoding says what the file is in{how}")
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
    #[error(
        "line {utf8} is UTF-8, which --encoding {encoding} would garble, and line {other} is not: the file mixes \
         encodings. Make all of its lines one of them first. If all are {encoding} after all, \
         iconv -f {encoding} -t UTF-8 makes a file that is read without --encoding"
    )]
    IsMixed { encoding: &'static str, utf8: u64, other: u64 },
}

/// The first line of each kind, of those that are not ASCII alone. Long lines are judged in pieces.
#[derive(Default)]
struct LineKinds {
    /// What came before the buffer of the line that it begins with.
    begun: Vec<u8>,
    lines: u64,
    utf8: Option<u64>,
    other: Option<u64>,
}

impl LineKinds {
    fn note(&mut self, bytes: &[u8], is_last: bool) {
        let mut rest = bytes;
        while let Some((line, behind)) =
            memchr::memchr(b'\n', rest).and_then(|at| rest.split_at_checked(at + 1))
        {
            if self.begun.is_empty() {
                self.judge(line);
            } else {
                self.begun.extend_from_slice(line);
                self.judge_begun();
            }
            self.lines += 1;
            rest = behind;
        }
        self.begun.extend_from_slice(rest);
        if is_last || self.begun.len() > BUFFER_BYTES {
            self.judge_begun();
        }
    }

    fn judge_begun(&mut self) {
        let line = std::mem::take(&mut self.begun);
        self.judge(&line);
    }

    fn judge(&mut self, line: &[u8]) {
        if line.is_ascii() {
            return;
        }
        let kind = if std::str::from_utf8(line).is_ok() { &mut self.utf8 } else { &mut self.other };
        kind.get_or_insert(self.lines + 1);
    }
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
    /// `None` where bytes of zero are part of most characters, so that nothing is taken for UTF-8.
    kinds: Option<LineKinds>,
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
            kinds: is_of_bytes.then(LineKinds::default),
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
        let Some(kinds) = &mut self.kinds else { return Ok(()) };
        kinds.note(self.input.get(self.rest.clone()).unwrap_or_default(), self.is_last);
        let encoding = self.encoding.name();
        let bad = match (kinds.utf8, kinds.other) {
            // Two characters of an encoding with several bytes for one are UTF-8 now and then.
            (Some(utf8), Some(other)) if self.encoding.is_single_byte() => {
                BadEncoding::IsMixed { encoding, utf8, other }
            }
            (Some(_), None) if self.is_last => BadEncoding::IsUtf8 { encoding },
            _ => return Ok(()),
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, bad))
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
        assert!(read("a\nJosé".as_bytes(), "gbk").is_err(), "the last line has no end");
    }

    #[test]
    fn a_file_of_two_encodings_is_refused_with_a_line_of_each() {
        let told = read(b"ann,1\nJos\xe9,5\nZo\xc3\xab,6\n", "windows-1252").expect_err("it is mixed");
        assert!(
            told.starts_with(
                "line 3 is UTF-8, which --encoding windows-1252 would garble, and line 2 is not"
            ),
            "{told}"
        );
        let long = [b"Zo\xc3\xab,6\n".repeat(40_000), b"Jos\xe9".to_vec()].concat();
        let told = read(&long, "iso-8859-2").expect_err("it is mixed");
        assert!(
            told.starts_with("line 1 is UTF-8, which --encoding ISO-8859-2 would garble, and line 40001"),
            "{told}"
        );
        // Two characters of GBK that are UTF-8 as well, beside some that are not.
        assert_eq!(read(b"\xc1\xaa\xcd\xa8\n\xc4\xe3", "gbk").as_deref(), Ok("联通\n你"));
    }

    #[test]
    fn a_name_is_shown_as_encodings_would_read_it() {
        for (bytes, expect) in [
            (
                &b"x,Alexander Skarsg\x8crd,5"[..],
                "by how it reads: \"Alexander SkarsgŒrd\" as windows-1252, \"Alexander Skarsgård\" as macintosh",
            ),
            (b"Jos\xe9", "\"José\" as windows-1252, \"JosÈ\" as macintosh"),
            (b"\xc0\xed\xed\xe0", "\"Анна\" as windows-1251"),
            (b"\x93\xfa\x96{", "\"日本\" as Shift_JIS"),
        ] {
            let told = readings(bytes);
            assert!(
                told.starts_with("--encoding says what the file is in") && told.contains(expect),
                "{told}"
            );
        }
    }

    #[test]
    fn text_that_was_read_in_a_wrong_encoding_before_is_known() {
        for (text, expect) in [
            ("JosÃ©", Some("José")),
            ("â€œannâ€\u{9d}", Some("“ann”")),
            ("José", None),
            ("Ãnn", None),
            ("日本", None),
            ("ann", None),
        ] {
            assert_eq!(ungarbled(text).as_deref(), expect, "{text}");
        }
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

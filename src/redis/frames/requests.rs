//! Requests out of a growing buffer: arrays of bulk strings, and inline commands.
//!
//! Knows: the protocol's frames, and how many bytes a request may have. Must not know: what commands there
//! are. A request is ranges of the buffer, so that no argument is copied. One that has come in part is gone
//! on with where it was left: a client that sends it byte by byte costs no more than one that sends it at
//! once.
//!
//! [Decision 30](../../../docs/decisions/030-requests-of-redis-are-read-in-place.md) says why this is not a
//! crate.

use std::ops::Range;

use smallvec::SmallVec;

/// The longest inline command, in bytes, as Redis has it.
const INLINE_BYTES_MAX: usize = 64 << 10;
/// The most arguments of a request, as Redis has it.
const ARGUMENTS_MAX: i64 = 1 << 20;
/// The longest line that says a length: a sign, 19 digits, the end.
const LENGTH_LINE_MAX: usize = 32;
/// What is read at once, at least.
const READ_BYTES: usize = 16 << 10;
/// A buffer that has grown beyond this for one request becomes small again.
const KEPT_BYTES: usize = 32 << 10;

type Ranges = SmallVec<[Range<usize>; 8]>;

/// Where a request's arguments lie in the buffer, the command's name first. It holds until the buffer takes
/// more bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request(Ranges);

/// The arguments of a request.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'b> {
    bytes: &'b [u8],
    ranges: &'b [Range<usize>],
}

impl<'b> Arguments<'b> {
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn get(&self, index: usize) -> Option<&'b [u8]> {
        self.bytes.get(self.ranges.get(index)?.clone())
    }

    /// A copy that does not need the buffer.
    pub fn to_owned(self) -> OwnedArguments {
        let mut owned = OwnedArguments::default();
        for argument in self.iter() {
            let begin = owned.bytes.len();
            owned.bytes.extend_from_slice(argument);
            owned.ranges.push(begin..owned.bytes.len());
        }
        owned
    }

    pub fn iter(&self) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        let (bytes, ranges) = (self.bytes, self.ranges);
        ranges.iter().map(move |range| bytes.get(range.clone()).unwrap_or_default())
    }
}

/// The arguments of a request, kept for later.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnedArguments {
    bytes: Vec<u8>,
    ranges: Ranges,
}

impl OwnedArguments {
    pub fn arguments(&self) -> Arguments<'_> {
        Arguments { bytes: &self.bytes, ranges: &self.ranges }
    }

    /// What it takes in memory, in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.ranges.len() * size_of::<Range<usize>>()
    }
}

/// Why what a client sends is no request; the connection ends with these words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    #[error("Protocol error: invalid multibulk length")]
    ArrayLength,
    #[error("Protocol error: invalid bulk length")]
    BulkLength,
    #[error("Protocol error: expected '$', got '{0}'")]
    NoBulk(char),
    #[error("Protocol error: too big inline request")]
    LongInline,
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
    #[error("Protocol error: a request may have {0} bytes; send it in parts")]
    TooLarge(usize),
}

/// What a client has sent and is not answered yet.
#[derive(Debug, Default)]
pub struct RequestReader {
    buffer: Vec<u8>,
    /// Where the request begins that has come in part.
    start: usize,
    /// Of that request, relative to `start`: what has come of it so far.
    partial: Partial,
}

#[derive(Debug, Default)]
struct Partial {
    /// How many arguments it has; 0 before that is known.
    length: usize,
    arguments: Ranges,
    /// Where to go on.
    at: usize,
}

impl RequestReader {
    /// Room for more bytes, to be read into. The requests that were returned are over then.
    pub fn room(&mut self) -> &mut Vec<u8> {
        // Of a long pipeline, what is left is moved seldom.
        if self.start > 0 && self.start >= self.pending() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.capacity() > KEPT_BYTES && self.buffer.len() < self.buffer.capacity() / 4 {
            self.buffer.shrink_to(self.buffer.len() + READ_BYTES);
        }
        self.buffer.reserve(READ_BYTES);
        &mut self.buffer
    }

    /// Bytes of the request that has come in part.
    pub fn pending(&self) -> usize {
        self.buffer.len().saturating_sub(self.start)
    }

    /// What the request takes in memory that has come in part, in bytes: 0 if there is none.
    pub fn memory(&self) -> usize {
        match self.pending() {
            0 => 0,
            pending => pending + self.partial.arguments.len() * size_of::<Range<usize>>(),
        }
    }

    pub fn arguments<'b>(&'b self, request: &'b Request) -> Arguments<'b> {
        Arguments { bytes: &self.buffer, ranges: &request.0 }
    }

    /// The next request; `None` until more of it has come.
    ///
    /// # Arguments
    /// `bytes_max`: the most bytes of one request.
    ///
    /// # Errors
    /// When it is none, or too large.
    pub fn next(&mut self, bytes_max: usize) -> Result<Option<Request>, ProtocolError> {
        loop {
            let unread = self.buffer.get(self.start..).unwrap_or_default();
            let Some(first) = unread.first() else { return Ok(None) };
            let found = if *first == b'*' { self.array(bytes_max)? } else { self.inline(bytes_max)? };
            match found {
                // An empty one is passed over.
                Some(Request(ranges)) if ranges.is_empty() => {}
                found => return Ok(found),
            }
        }
    }

    fn array(&mut self, bytes_max: usize) -> Result<Option<Request>, ProtocolError> {
        let unread = self.buffer.get(self.start..).unwrap_or_default();
        let Partial { length, arguments, at } = &mut self.partial;
        if *length == 0 {
            let Some((count, end)) = number(unread, 1, ProtocolError::ArrayLength)? else {
                return Ok(None);
            };
            if count > ARGUMENTS_MAX {
                return Err(ProtocolError::ArrayLength);
            }
            // None, or fewer: nothing is asked for.
            *length = usize::try_from(count).unwrap_or(0);
            *at = end;
        }
        while arguments.len() < *length {
            match unread.get(*at) {
                None => return Ok(None),
                Some(b'$') => {}
                Some(other) => return Err(ProtocolError::NoBulk(char::from(*other))),
            }
            let Some((bytes, begin)) = number(unread, *at + 1, ProtocolError::BulkLength)? else {
                return Ok(None);
            };
            let bytes = usize::try_from(bytes).map_err(|_| ProtocolError::BulkLength)?;
            let end = begin.checked_add(bytes).ok_or(ProtocolError::BulkLength)?;
            // It is not waited for what would be refused.
            if end > bytes_max {
                return Err(ProtocolError::TooLarge(bytes_max));
            }
            // What closes it is not looked at, as in Redis.
            if unread.len() < end.saturating_add(2) {
                return Ok(None);
            }
            arguments.push(begin..end);
            *at = end + 2;
        }
        let Partial { mut arguments, at, .. } = std::mem::take(&mut self.partial);
        let start = self.start;
        arguments.iter_mut().for_each(|range| *range = range.start + start..range.end + start);
        self.start += at;
        Ok(Some(Request(arguments)))
    }

    fn inline(&mut self, bytes_max: usize) -> Result<Option<Request>, ProtocolError> {
        let (start, looked_at) = (self.start, self.partial.at);
        let unread = self.buffer.get_mut(start..).unwrap_or_default();
        let new = unread.get(looked_at..).unwrap_or_default();
        let end = memchr::memchr(b'\n', new).map(|at| at + looked_at);
        match end.unwrap_or(unread.len()) {
            length if length > INLINE_BYTES_MAX => return Err(ProtocolError::LongInline),
            length if length > bytes_max => return Err(ProtocolError::TooLarge(bytes_max)),
            _ => {}
        }
        let Some(end) = end else {
            self.partial.at = unread.len();
            return Ok(None);
        };
        let line = unread.get_mut(..end).unwrap_or_default();
        let arguments = words(line).ok_or(ProtocolError::Quotes)?;
        self.partial = Partial::default();
        self.start += end + 1;
        Ok(Some(Request(arguments.into_iter().map(|range| range.start + start..range.end + start).collect())))
    }
}

/// The number on a line that begins there, and where the next one begins. `None`: the line has not ended.
///
/// # Arguments
/// `wrong`: what it is otherwise, which is known before the end of a line that is longer than any number.
fn number(bytes: &[u8], from: usize, wrong: ProtocolError) -> Result<Option<(i64, usize)>, ProtocolError> {
    let rest = bytes.get(from..).unwrap_or_default();
    let head = rest.get(..LENGTH_LINE_MAX.min(rest.len())).unwrap_or_default();
    let Some(end) = memchr::memchr(b'\r', head) else {
        return if head.len() == LENGTH_LINE_MAX { Err(wrong) } else { Ok(None) };
    };
    // The end of the line is two bytes.
    if rest.len() < end + 2 {
        return Ok(None);
    }
    let digits = rest.get(..end).unwrap_or_default();
    let number: i64 =
        str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(|| wrong.clone())?;
    // As it is printed, and no other way.
    if itoa::Buffer::new().format(number).as_bytes() != digits {
        return Err(wrong);
    }
    Ok(Some((number, from + end + 2)))
}

/// The words of an inline command, unquoted in place. `None`: a quotation mark is not closed, or something
/// follows it.
fn words(line: &mut [u8]) -> Option<Ranges> {
    let (mut ranges, mut at) = (Ranges::new(), 0);
    loop {
        while line.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        if at >= line.len() {
            return Some(ranges);
        }
        // What is written is never longer than what was read.
        let (begin, mut end, mut quote) = (at, at, None);
        loop {
            let Some(byte) = line.get(at).copied() else {
                if quote.is_some() {
                    return None;
                }
                break;
            };
            at += 1;
            let written = match (quote, byte) {
                (Some(b'"'), b'\\') => {
                    let (escaped, taken) = unescaped(line.get(at..).unwrap_or_default())?;
                    at += taken;
                    escaped
                }
                (Some(b'\''), b'\\') if line.get(at) == Some(&b'\'') => {
                    at += 1;
                    b'\''
                }
                (Some(mark), byte) if mark == byte => {
                    // The word ends with its quotation mark.
                    if line.get(at).is_some_and(|next| !next.is_ascii_whitespace()) {
                        return None;
                    }
                    break;
                }
                (None, b'"' | b'\'') => {
                    quote = Some(byte);
                    continue;
                }
                (None, byte) if byte.is_ascii_whitespace() => break,
                (_, byte) => byte,
            };
            if let Some(slot) = line.get_mut(end) {
                *slot = written;
            }
            end += 1;
        }
        ranges.push(begin..end);
    }
}

/// What follows a backslash within quotation marks, and how many bytes that are.
fn unescaped(rest: &[u8]) -> Option<(u8, usize)> {
    let hexadecimal = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(match rest {
        [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            (hexadecimal(high)? << 4 | hexadecimal(low)?, 3)
        }
        [b'n', ..] => (b'\n', 1),
        [b'r', ..] => (b'\r', 1),
        [b't', ..] => (b'\t', 1),
        [b'b', ..] => (8, 1),
        [b'a', ..] => (7, 1),
        [other, ..] => (*other, 1),
        [] => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES_MAX: usize = 1 << 20;

    /// All requests of some bytes that come in these pieces, and how it ended.
    fn read(pieces: &[&[u8]], bytes_max: usize) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
        let (mut reader, mut found) = (RequestReader::default(), Vec::new());
        for piece in pieces {
            reader.room().extend_from_slice(piece);
            loop {
                match reader.next(bytes_max) {
                    Ok(Some(request)) => {
                        found.push(reader.arguments(&request).iter().map(<[u8]>::to_vec).collect());
                    }
                    Ok(None) => break,
                    Err(error) => return (found, Some(error)),
                }
            }
        }
        (found, None)
    }

    fn texts(requests: &[Vec<Vec<u8>>]) -> Vec<Vec<String>> {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        requests.iter().map(|request| request.iter().map(text).collect()).collect()
    }

    #[test]
    fn requests_are_arrays_of_bulk_strings_or_lines_of_words() {
        for (sent, expect) in [
            (&b"*2\r\n$4\r\nZADD\r\n$0\r\n\r\n"[..], vec![vec!["ZADD", ""]]),
            (b"PING\r\n*1\r\n$4\r\nPING\r\nping\n", vec![vec!["PING"], vec!["PING"], vec!["ping"]]),
            (b"*0\r\n\r\n  \r\n*-1\r\nPING\r\n", vec![vec!["PING"]]),
            (b"  SET  a \"b c\\n\\x41\\\"\" 'd\\'e\\n'\r\n", vec![vec!["SET", "a", "b c\nA\"", "d'e\\n"]]),
            (b"*1\r\n$3\r\na\r\n\r\n", vec![vec!["a\r\n"]]),
            (b"*1\r\n$3\r\nab", vec![]),
        ] {
            let (found, error) = read(&[sent], BYTES_MAX);
            assert_eq!(
                (texts(&found), error),
                (expect.iter().map(|words| words.iter().map(ToString::to_string).collect()).collect(), None)
            );
        }
    }

    #[test]
    fn what_is_no_request_is_refused_in_the_words_of_redis() {
        let (long, endless) = ("x".repeat(INLINE_BYTES_MAX + 1), format!("*{}", "1".repeat(40)));
        for (sent, expect) in [
            ("*x\r\n", "Protocol error: invalid multibulk length"),
            ("*2000000\r\n", "Protocol error: invalid multibulk length"),
            ("*9223372036854775808\r\n", "Protocol error: invalid multibulk length"),
            ("*1\r\n:1\r\n", "Protocol error: expected '$', got ':'"),
            ("*1\r\n*1\r\n$1\r\na\r\n", "Protocol error: expected '$', got '*'"),
            ("*1\r\n$-1\r\n", "Protocol error: invalid bulk length"),
            ("*1\r\n$x\r\n", "Protocol error: invalid bulk length"),
            ("*+1\r\n$4\r\nPING\r\n", "Protocol error: invalid multibulk length"),
            ("*1\r\n$+4\r\nPING\r\n", "Protocol error: invalid bulk length"),
            ("*1\r\n$04\r\nPING\r\n", "Protocol error: invalid bulk length"),
            ("a 'b\r\n", "Protocol error: unbalanced quotes in request"),
            ("a \"b\"c\r\n", "Protocol error: unbalanced quotes in request"),
            (endless.as_str(), "Protocol error: invalid multibulk length"),
            (&format!("{endless}\r\n"), "Protocol error: invalid multibulk length"),
            (&format!("*1\r\n${}", "1".repeat(40)), "Protocol error: invalid bulk length"),
            (long.as_str(), "Protocol error: too big inline request"),
        ] {
            let (found, error) = read(&[b"PING\r\n", sent.as_bytes()], BYTES_MAX);
            assert_eq!((found.len(), error.expect(expect).to_string().as_str()), (1, expect));
        }
        // As soon as its length is known, and also if all of it has come.
        let whole = [&b"*1\r\n$200\r\n"[..], &[b'x'; 200], b"\r\n"].concat();
        let many = "*100\r\n".to_owned() + &"$0\r\n\r\n".repeat(100);
        for sent in [&b"*1\r\n$200\r\n"[..], &whole, many.as_bytes()] {
            assert_eq!(read(&[sent], 100), (vec![], Some(ProtocolError::TooLarge(100))));
        }
        // A length is no promise of memory.
        assert_eq!(read(&[b"*1000000\r\n$100\r\n"], 1_000), (vec![], None));
    }

    #[test]
    fn a_buffer_becomes_small_again_though_some_of_the_next_request_is_in_it() {
        let mut reader = RequestReader::default();
        let long = format!("*1\r\n${}\r\n{}\r\n*", 4 << 20, "x".repeat(4 << 20));
        reader.room().extend_from_slice(long.as_bytes());
        assert!(reader.memory() >= 4 << 20);
        assert!(reader.next(8 << 20).expect("a request").is_some());
        assert_eq!(reader.next(8 << 20), Ok(None));
        assert_eq!(reader.memory(), 1);
        assert!(reader.room().capacity() <= KEPT_BYTES, "{}", reader.room().capacity());
        reader.room().extend_from_slice(b"1\r\n$4\r\nPING\r\n");
        assert!(reader.next(8 << 20).expect("a request").is_some(), "nothing of it is lost");
    }

    proptest! {
        #[test]
        fn requests_are_the_same_in_whatever_pieces_they_come(
            requests in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..6), 1..6),
            cuts in proptest::collection::vec(1..9_usize, 1..9),
        ) {
            let mut sent = Vec::new();
            for request in &requests {
                let mut command = redis::Cmd::new();
                for argument in request {
                    command.arg(argument.as_slice());
                }
                sent.extend(command.get_packed_command());
            }
            let (mut pieces, mut rest, mut cuts) = (Vec::new(), &sent[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (piece, later) = rest.split_at((*cuts.next().expect("a cycle")).min(rest.len()));
                pieces.push(piece);
                rest = later;
            }
            prop_assert_eq!(read(&pieces, BYTES_MAX), (requests, None));
        }

        #[test]
        fn no_bytes_break_the_reader(
            sent in proptest::collection::vec(any::<u8>(), 0..200),
            cut in 0..200_usize,
        ) {
            let (head, tail) = sent.split_at(cut.min(sent.len()));
            prop_assert_eq!(read(&[head, tail], 64), read(&[&sent], 64));
        }
    }
}

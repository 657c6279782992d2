//! The fast path of decoding: jobs in their commonest form are read where they stand, straight into their
//! fields. Such a plain job has one board, one score, and at most a version, an operation and a time, and its
//! texts have no escapes. Measured: this takes a quarter of the time of `strict`, and no memory for a job
//! whose member has a short id.
//!
//! Knows: plain jobs. Must not know: why any other job is refused; a message with any other job goes to
//! `strict` whole.

use smallvec::{SmallVec, smallvec};

use crate::job::{Job, JobId, MAX_JOBS_PER_MESSAGE, Op, Reject, RejectCode, Targets};
use crate::types::{BoardName, MAX_KEYS, MemberId, Score, Timestamp};

/// Decodes one plain job, or an array of 1 to [`MAX_JOBS_PER_MESSAGE`] plain jobs, and gives `each` to the
/// caller in order. `None`: the strict decoder must look at the message, which may be right or wrong. What
/// was given then does not count.
pub fn decode(names: &mut BoardNames, bytes: &[u8], mut each: impl FnMut(Job)) -> Option<()> {
    let mut text = Reader::new(bytes)?;
    text.skip_space();
    if text.rest.first() == Some(&b'{') {
        each(text.job(names)?);
    } else {
        text.expect(b'[')?;
        for more in (0..MAX_JOBS_PER_MESSAGE).rev() {
            text.skip_space();
            each(text.job(names)?);
            text.skip_space();
            match text.next()? {
                b']' => break,
                b',' if more > 0 => {}
                _ => return None,
            }
        }
    }
    text.skip_space();
    text.is_at_end().then_some(())
}

/// Decodes the one plain job of bytes that name neither its board nor its member: those are in the path of a
/// request. `None` as for [`decode`], and both are given back.
pub fn decode_for(bytes: &[u8], board: BoardName, member: MemberId) -> Result<Job, (BoardName, MemberId)> {
    let read = || {
        let mut text = Reader::new(bytes)?;
        text.skip_space();
        let fields = text.fields()?;
        text.skip_space();
        (fields.board.is_none() && fields.member.is_none() && text.is_at_end()).then_some(fields)
    };
    match read() {
        Some(fields) => Ok(fields.into_job(board, member)),
        None => Err((board, member)),
    }
}

/// The fields of a plain job.
struct PlainFields<'a> {
    board: Option<&'a str>,
    member: Option<&'a str>,
    score: Score,
    op: Option<Op>,
    version: Option<u64>,
    at: Option<Timestamp>,
    id: Option<JobId>,
}

impl PlainFields<'_> {
    fn into_job(self, board: BoardName, member: MemberId) -> Job {
        Job {
            member,
            targets: Targets::Boards(smallvec![(board, Some(self.score))]),
            op: self.op,
            version: self.version,
            at: self.at,
            meta: None,
            id: self.id,
        }
    }
}

/// A message that is being read.
pub(super) struct Reader<'a> {
    /// All of it. That it is UTF-8 is checked once: for each of the short texts in it the check took ten
    /// times as many instructions a byte.
    message: &'a str,
    /// What is left of it.
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// `None`: the bytes are no text.
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { message: str::from_utf8(bytes).ok()?, rest: bytes })
    }

    #[inline]
    pub(super) fn begins_with(&self, byte: u8) -> bool {
        self.rest.first() == Some(&byte)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn job(&mut self, names: &mut BoardNames) -> Option<Job> {
        let fields = self.fields()?;
        let (board, member) = (names.get(fields.board?).ok()?, MemberId::new(fields.member?).ok()?);
        Some(fields.into_job(board, member))
    }

    fn fields(&mut self) -> Option<PlainFields<'a>> {
        let (mut board, mut member, mut score) = (None, None, None);
        let (mut op, mut version, mut at, mut id) = (None, None, None, None);
        self.expect(b'{')?;
        loop {
            self.skip_space();
            let name = self.text()?;
            self.skip_space();
            self.expect(b':')?;
            self.skip_space();
            let is_twice = match name {
                b"board" => board.replace(self.utf8()?).is_some(),
                b"member" => member.replace(self.utf8()?).is_some(),
                b"score" => score.replace(self.score()?).is_some(),
                b"op" if self.is_null() => op.replace(None).is_some(),
                b"op" => op.replace(Some(self.text()?)).is_some(),
                b"version" if self.is_null() => version.replace(None).is_some(),
                b"version" => version.replace(Some(self.unsigned()?)).is_some(),
                b"at" if self.is_null() => at.replace(None).is_some(),
                b"at" => at.replace(Some(Timestamp::parse(self.utf8()?).ok()?)).is_some(),
                b"id" if self.is_null() => id.replace(None).is_some(),
                b"id" => id.replace(Some(JobId::new(self.utf8()?)?)).is_some(),
                _ => return None,
            };
            if is_twice {
                return None;
            }
            self.skip_space();
            match self.next()? {
                b'}' => break,
                b',' => {}
                _ => return None,
            }
        }
        let op = match op.flatten() {
            None => None,
            Some(name) => {
                Some(str::from_utf8(name).ok().and_then(Op::of_name).filter(|op| op.takes_score())?)
            }
        };
        let (score, version, at, id) = (score?, version.flatten(), at.flatten(), id.flatten());
        Some(PlainFields { board, member, score, op, version, at, id })
    }

    /// An integer, or an array of them.
    #[inline]
    pub(super) fn score(&mut self) -> Option<Score> {
        if self.rest.first() != Some(&b'[') {
            return Score::new(&[self.signed()?]).ok();
        }
        self.next()?;
        let mut keys = SmallVec::<[i64; MAX_KEYS]>::new();
        loop {
            self.skip_space();
            keys.push(self.signed()?);
            self.skip_space();
            match self.next()? {
                b']' => return Score::new(&keys).ok(),
                b',' if keys.len() < MAX_KEYS => {}
                _ => return None,
            }
        }
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// A text without escapes: whatever it holds stands for itself.
    #[inline]
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let ends = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < b' ';
        let (text, rest) = self.rest.split_at_checked(self.rest.iter().position(ends)?)?;
        self.rest = rest;
        self.expect(b'"')?;
        Some(text)
    }

    #[inline]
    pub(super) fn utf8(&mut self) -> Option<&'a str> {
        let length = self.text()?.len();
        // The quotation mark behind the text was read with it.
        let end = self.message.len() - self.rest.len() - 1;
        self.message.get(end - length..end)
    }

    /// An integer without a sign, as JSON writes it: 0 alone begins with a 0. What follows decides whether it
    /// is one: nothing that belongs to a number may.
    #[inline]
    fn unsigned(&mut self) -> Option<u64> {
        let begins_with_0 = self.rest.first() == Some(&b'0');
        let (mut number, mut digits) = (0_u64, 0_usize);
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            (self.rest, digits) = (rest, digits + 1);
        }
        (digits == 1 || digits > 1 && !begins_with_0).then_some(number)
    }

    #[inline]
    pub(super) fn signed(&mut self) -> Option<i64> {
        if self.rest.first() != Some(&b'-') {
            return i64::try_from(self.unsigned()?).ok();
        }
        self.next()?;
        // To serde_json, -0 is no integer.
        let number = self.unsigned().filter(|number| *number > 0)?;
        0_i64.checked_sub_unsigned(number)
    }

    /// Whether null comes, which is passed then.
    #[inline]
    fn is_null(&mut self) -> bool {
        let rest = self.rest.strip_prefix(b"null");
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

/// The last board name that was decoded. Jobs that come together mostly name the same board: its name is made
/// once.
#[derive(Default)]
pub struct BoardNames(Option<BoardName>);

impl BoardNames {
    /// # Errors
    /// When the text is no board's name.
    pub fn get(&mut self, text: &str) -> Result<BoardName, Reject> {
        match &self.0 {
            Some(known) if known.as_str() == text => Ok(known.clone()),
            _ => {
                let name =
                    BoardName::new(text).map_err(|why| Reject::new(RejectCode::Malformed, why.got(text)))?;
                Ok(self.0.insert(name).clone())
            }
        }
    }
}

#[cfg(test)]
#[path = "fast_path_tests.rs"]
mod tests;

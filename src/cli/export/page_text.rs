//! Pages as this version of the service writes them, read where they stand: an export of a large board reads
//! nothing else, and a parser for any JSON takes several times as long.
//!
//! Knows: the fields of a page, in the order in which the service writes them. Must not know: what else a
//! page may be. `None` leaves that to serde (`page_json`).

use std::borrow::Cow;

use crate::cli::export::row::{Page, Row};

/// Entries of a page that memory is reserved for.
const ENTRIES: usize = 1_000;

pub fn read(answer: &str) -> Option<Page<'_>> {
    let mut text = Text { rest: answer };
    text.expect("{\"board\":")?;
    text.plain_text()?;
    text.expect(",\"window\":")?;
    let window = text.plain_text()?.into();
    text.expect(",\"total\":")?;
    let total = text.digits()?.parse().ok()?;
    text.expect(",\"entries\":[")?;
    let mut entries = Vec::with_capacity(ENTRIES);
    if text.expect("]").is_none() {
        loop {
            entries.push(text.row()?);
            match text.next()? {
                b',' => {}
                b']' => break,
                _ => return None,
            }
        }
    }
    text.expect(",\"next_cursor\":")?;
    let next_cursor =
        if text.expect("null").is_some() { None } else { Some(Cow::Borrowed(text.plain_text()?)) };
    text.expect(",\"as_of\":")?;
    let as_of = text.plain_text()?.into();
    let stale = text.expect(",\"stale\":true").is_some();
    text.expect("}")?;
    text.rest.is_empty().then_some(Page { window, total, entries, next_cursor, as_of, stale })
}

/// Where the page behind an answer begins, found from its end. `None`: there is no such page, or the answer
/// is not as this version of the service writes it.
pub fn next_cursor(answer: &str) -> Option<&str> {
    // An entry's metadata may have such a name, too. The page's own comes behind all entries.
    let (_, end) = answer.rsplit_once("],\"next_cursor\":")?;
    end.strip_prefix('"')?.split_once("\",\"as_of\":").map(|(cursor, _)| cursor)
}

/// What is left of an answer.
struct Text<'a> {
    rest: &'a str,
}

impl<'a> Text<'a> {
    fn row(&mut self) -> Option<Row<'a>> {
        self.expect("{\"member\":")?;
        let member = self.plain_text()?.into();
        self.expect(",\"score\":")?;
        let score = self.score()?.into();
        if self.expect(",\"error\":").is_some() {
            self.score()?;
        }
        self.expect(",\"rank\":")?;
        let rank = self.digits()?.into();
        self.expect(",\"position\":")?;
        let position = self.digits()?.into();
        self.expect(",\"updated_at\":")?;
        let updated_at = self.plain_text()?.into();
        // Metadata may be any object: only that there are none is read here.
        self.expect(",\"meta\":{}")?;
        let mut reached_at = None;
        if self.expect(",\"reached_at\":").is_some() {
            reached_at = Some(Cow::Borrowed(self.plain_text()?));
        }
        let mut version = None;
        if self.expect(",\"version\":").is_some() {
            let is_text = self.expect("\"").is_some();
            version = Some(Cow::Borrowed(self.digits()?));
            if is_text {
                self.expect("\"")?;
            }
        }
        self.expect("}")?;
        let meta = Cow::Borrowed("{}");
        Some(Row { member, score, rank, position, updated_at, reached_at, version, meta, profile: None })
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    fn next(&mut self) -> Option<u8> {
        let first = *self.rest.as_bytes().first()?;
        // No part of a longer character may be taken.
        self.rest = self.rest.get(1..)?;
        Some(first)
    }

    /// What comes before the first byte that is not of a kind.
    fn take_while(&mut self, is_of_it: impl Fn(u8) -> bool) -> &'a str {
        let bytes = self.rest.as_bytes();
        let length = bytes.iter().position(|byte| !is_of_it(*byte)).unwrap_or(bytes.len());
        let Some((taken, rest)) = self.rest.split_at_checked(length) else { return "" };
        self.rest = rest;
        taken
    }

    /// A text without escapes.
    fn plain_text(&mut self) -> Option<&'a str> {
        self.expect("\"")?;
        let text = self.take_while(|byte| byte != b'"' && byte != b'\\' && byte >= b' ');
        self.expect("\"")?;
        Some(text)
    }

    fn digits(&mut self) -> Option<&'a str> {
        Some(self.take_while(|byte| byte.is_ascii_digit())).filter(|digits| !digits.is_empty())
    }

    /// A number, one in quotation marks, or an array of them, as JSON.
    fn score(&mut self) -> Option<&'a str> {
        let is_of_key = |byte: u8| byte.is_ascii_digit() || b"-\".einf".contains(&byte);
        if !self.rest.starts_with('[') {
            return Some(self.take_while(is_of_key)).filter(|key| !key.is_empty());
        }
        let whole = self.rest;
        self.take_while(|byte| is_of_key(byte) || matches!(byte, b'[' | b','));
        self.expect("]")?;
        whole.get(..whole.len() - self.rest.len())
    }
}

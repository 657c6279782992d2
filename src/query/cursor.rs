//! A page's cursor: the last entry's full sort key, as opaque text.
//!
//! No place in any tree is in it, so that a page goes on right after its last entry, however scores moved
//! meanwhile.

use std::fmt::Write as _;

use crate::query::question::SortKey;
use crate::tree::{MAX_WORDS, Words};
use crate::types::{MAX_MEMBER_BYTES, fnv1a_32};

/// An end of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Best first.
    Top,
    /// Worst first.
    Bottom,
}

/// The entry that a page ended with, and the direction it went in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor {
    pub from: End,
    pub words: Words,
    pub member: Box<[u8]>,
}

/// Bytes before the words: a version and direction byte, and the board's hash.
const HEAD_BYTES: usize = 5;

impl PageCursor {
    /// The entry that the page ended with.
    #[must_use]
    pub fn key(&self) -> SortKey<'_> {
        SortKey { words: self.words, member: &self.member }
    }

    /// URL-safe text: hexadecimal, because it is short enough and has nothing to escape.
    #[must_use]
    pub fn encode(&self, board: &str) -> String {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + 8 * MAX_WORDS + self.member.len());
        bytes.push(match self.from {
            End::Top => 1,
            End::Bottom => 2,
        });
        bytes.extend(fnv1a_32(board.as_bytes()).to_be_bytes());
        for word in self.words.as_slice() {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(&self.member);
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Reads what [`PageCursor::encode`] wrote for the same board, whose entries have `columns` words; `None`
    /// for anything else.
    #[must_use]
    pub fn decode(text: &str, board: &str, columns: usize) -> Option<Self> {
        if text.len() > 2 * (HEAD_BYTES + 8 * MAX_WORDS + MAX_MEMBER_BYTES) || !text.len().is_multiple_of(2) {
            return None;
        }
        let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16)?.try_into().ok()).collect::<Option<_>>()?;
        let bytes: Vec<u8> = digits
            .chunks_exact(2)
            .filter_map(|pair| match pair {
                [high, low] => Some(high << 4 | low),
                _ => None,
            })
            .collect();
        let (direction, rest) = bytes.split_first()?;
        let from = match direction {
            1 => End::Top,
            2 => End::Bottom,
            _ => return None,
        };
        let (hash, rest) = rest.split_first_chunk::<4>()?;
        let (words, member) = rest.split_at_checked(8 * columns)?;
        if u32::from_be_bytes(*hash) != fnv1a_32(board.as_bytes()) || member.is_empty() || columns > MAX_WORDS
        {
            return None;
        }
        let mut sort_words = Words::new();
        for word in words.chunks_exact(8) {
            sort_words.push(u64::from_be_bytes(word.try_into().ok()?));
        }
        Some(Self { from, words: sort_words, member: member.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_for_its_own_board_only() {
        for from in [End::Top, End::Bottom] {
            let words = Words::from_slice(&[0, u64::MAX, 7]);
            let cursor = PageCursor { from, words, member: "日本/x".as_bytes().into() };
            let text = cursor.encode("arena");
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{text}");
            assert_eq!(PageCursor::decode(&text, "arena", 3), Some(cursor));
            assert_eq!(PageCursor::decode(&text, "other", 3), None);
            assert_eq!(PageCursor::decode(&text, "arena", 9), None);
        }
    }

    #[test]
    fn anything_else_is_no_cursor() {
        let long = "0".repeat(1_000);
        for text in ["", "0", "zz", "01", "日本", "+1", "0100000000", &long] {
            assert_eq!(PageCursor::decode(text, "arena", 2), None, "{text}");
        }
    }
}

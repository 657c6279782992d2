//! A page's cursor: the instance that it is of, and the last entry's full sort key, as opaque text.
//!
//! No place in any tree is in it, so that a page goes on right after its last entry, however scores moved
//! meanwhile.

use std::fmt::Write as _;

use crate::query::question::SortKey;
use crate::tree::{MAX_WORDS, Words};
use crate::types::{MAX_INSTANCE_BYTES, MAX_MEMBER_BYTES, fnv1a_32};
use crate::window::Instance;

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
/// For another instance than `all`, the length of its name and the name follow.
const INSTANCE_BYTES: usize = 1 + MAX_INSTANCE_BYTES;

impl PageCursor {
    /// The entry that the page ended with.
    pub fn key(&self) -> SortKey<'_> {
        SortKey { words: self.words, member: &self.member }
    }

    /// URL-safe text: hexadecimal, because it is short enough and has nothing to escape.
    pub fn encode(&self, board: &str, instance: Instance) -> String {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + INSTANCE_BYTES + 8 * MAX_WORDS + self.member.len());
        let is_all = instance == Instance::ALL;
        bytes.push(match (self.from, is_all) {
            (End::Top, true) => 1,
            (End::Bottom, true) => 2,
            (End::Top, false) => 3,
            (End::Bottom, false) => 4,
        });
        bytes.extend(fnv1a_32(board.as_bytes()).to_be_bytes());
        if !is_all {
            let name = instance.to_string();
            bytes.extend(u8::try_from(name.len()));
            bytes.extend(name.as_bytes());
        }
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

    /// Reads what [`PageCursor::encode`] wrote for the same board, whose entries have `columns` words, and
    /// the instance that it is of; `None` for anything else.
    pub fn decode(text: &str, board: &str, columns: usize) -> Option<(Self, Instance)> {
        let most = HEAD_BYTES + INSTANCE_BYTES + 8 * MAX_WORDS + MAX_MEMBER_BYTES;
        if text.len() > 2 * most || !text.len().is_multiple_of(2) {
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
        let (from, has_instance) = match direction {
            1 => (End::Top, false),
            2 => (End::Bottom, false),
            3 => (End::Top, true),
            4 => (End::Bottom, true),
            _ => return None,
        };
        let (hash, rest) = rest.split_first_chunk::<4>()?;
        let (instance, rest) = if has_instance { read_instance(rest)? } else { (Instance::ALL, rest) };
        let (words, member) = rest.split_at_checked(8 * columns)?;
        if u32::from_be_bytes(*hash) != fnv1a_32(board.as_bytes()) || member.is_empty() || columns > MAX_WORDS
        {
            return None;
        }
        let mut sort_words = Words::new();
        for word in words.chunks_exact(8) {
            sort_words.push(u64::from_be_bytes(word.try_into().ok()?));
        }
        Some((Self { from, words: sort_words, member: member.into() }, instance))
    }
}

fn read_instance(bytes: &[u8]) -> Option<(Instance, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    let instance = Instance::of_name(std::str::from_utf8(name).ok()?)?;
    Some((instance, rest)).filter(|_| instance != Instance::ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_for_its_own_board_only() {
        for (from, instance) in [
            (End::Top, "all"),
            (End::Bottom, "all"),
            (End::Top, "2026-11-20T09"),
            (End::Bottom, "2026-11-20T10"),
            (End::Top, "s7"),
        ] {
            let words = Words::from_slice(&[0, u64::MAX, 7]);
            let cursor = PageCursor { from, words, member: "日本/x".as_bytes().into() };
            let instance = Instance::of_name(instance).expect("an instance");
            let text = cursor.encode("arena", instance);
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{text}");
            assert_eq!(PageCursor::decode(&text, "arena", 3), Some((cursor, instance)));
            assert_eq!(PageCursor::decode(&text, "other", 3), None);
            assert_eq!(PageCursor::decode(&text, "arena", 9), None);
        }
    }

    #[test]
    fn anything_else_is_no_cursor() {
        let long = "0".repeat(1_000);
        let hash = format!("{:08x}", fnv1a_32(b"arena"));
        let of = |instance: &str| {
            let mut name = String::new();
            instance.bytes().for_each(|byte| write!(name, "{byte:02x}").expect("memory takes it"));
            format!("03{hash}{:02x}{name}{}", instance.len(), "00".repeat(17))
        };
        assert!(PageCursor::decode(&of("s7"), "arena", 2).is_some());
        for text in ["", "0", "zz", "01", "日本", "+1", "0100000000", &long, &of("all"), &of("s07"), &of("x")]
        {
            assert_eq!(PageCursor::decode(text, "arena", 2), None, "{text}");
        }
    }
}

//! Where a page of combined boards ended, as opaque text.
//!
//! As of a board's page, it is the last entry's full sort key, so that the next page goes on right after it.
//! It also has the time by which the first page has chosen the boards' instances.

use std::fmt::Write as _;

use crate::query::question::CombinedKey;
use crate::types::{MAX_MEMBER_BYTES, Timestamp};

/// Bytes before the member: a hash, a time and a word.
const HEAD_BYTES: usize = 4 + 8 + 8;

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombineCursor {
    pub time: Timestamp,
    pub key: CombinedKey,
}

impl CombineCursor {
    /// URL-safe text.
    ///
    /// # Arguments
    /// `hash`: of what is asked.
    pub fn encode(&self, hash: u32) -> String {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.key.member.len());
        bytes.extend(hash.to_be_bytes());
        bytes.extend(self.time.as_micros().to_be_bytes());
        bytes.extend(self.key.word.to_be_bytes());
        bytes.extend(&self.key.member);
        let mut text = String::with_capacity(2 * bytes.len());
        for byte in bytes {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Reads what [`CombineCursor::encode`] wrote for the same question; `None` for anything else.
    pub fn decode(text: &str, hash: u32) -> Option<Self> {
        if text.len() > 2 * (HEAD_BYTES + MAX_MEMBER_BYTES) || !text.len().is_multiple_of(2) {
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
        let (of, rest) = bytes.split_first_chunk::<4>()?;
        let (micros, rest) = rest.split_first_chunk::<8>()?;
        let (word, member) = rest.split_first_chunk::<8>()?;
        if u32::from_be_bytes(*of) != hash || member.is_empty() {
            return None;
        }
        let time = Timestamp::from_micros(i64::from_be_bytes(*micros)).ok()?;
        Some(Self { time, key: CombinedKey { word: u64::from_be_bytes(*word), member: member.into() } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_for_the_same_question_only() {
        let key = CombinedKey { word: u64::MAX - 7, member: "日本/x".as_bytes().into() };
        let cursor = CombineCursor { time: Timestamp::from_micros(1_700_000).expect("in range"), key };
        let text = cursor.encode(77);
        assert_eq!(CombineCursor::decode(&text, 77), Some(cursor));
        let long = "0".repeat(2 * (HEAD_BYTES + MAX_MEMBER_BYTES + 1));
        for (text, hash) in [(&text[..], 78), ("", 77), ("zz", 77), ("0", 77), (&text[..40], 77), (&long, 0)]
        {
            assert_eq!(CombineCursor::decode(text, hash), None, "{text}");
        }
    }
}

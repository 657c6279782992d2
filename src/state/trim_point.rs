//! A place in a board's order, on one side of which a trim removes entries.
//!
//! Knows: how an entry compares with it. Must not know: who chose it, or what is done with the entries.

use std::cmp::Ordering;

use crate::tree::{Words, compare_ids};

/// On which side of its place a trim removes entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimSide {
    /// Those that come before it.
    Better,
    /// Those that come after it.
    Worse,
}

/// A place in a board's order, and a side of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimPoint {
    pub side: TrimSide,
    /// The words at the place: a score, the first keys of one, or all words of an entry.
    pub words: Words,
    /// If the words are all of an entry's: its member. Entries with the same words are compared by id.
    pub member: Option<Box<[u8]>>,
}

impl TrimPoint {
    /// Whether an entry is on the side of the place from which entries are removed. One that is at the place
    /// is not.
    pub fn removes(&self, words: &Words, member: &[u8]) -> bool {
        let trim_point = self.words.as_slice();
        let words = words.as_slice();
        let order = words.get(..trim_point.len()).unwrap_or(words).cmp(trim_point);
        let order = order.then_with(|| {
            self.member.as_deref().map_or(Ordering::Equal, |own| compare_ids(trim_point, member, own))
        });
        match self.side {
            TrimSide::Better => order == Ordering::Less,
            TrimSide::Worse => order == Ordering::Greater,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_after_a_trim_point_compare_by_words_then_id() {
        let place = |words: &[u64], member: Option<&[u8]>| TrimPoint {
            side: TrimSide::Worse,
            words: Words::from_slice(words),
            member: member.map(Into::into),
        };
        let entry = Words::from_slice(&[5, 7, 9]);
        for (trim_point, expect) in [
            (place(&[4], None), true),
            (place(&[5], None), false),
            (place(&[6], None), false),
            (place(&[5, 6], None), true),
            (place(&[5, 7], None), false),
            (place(&[0], None), true),
            (place(&[u64::MAX], None), false),
            (place(&[5, 7, 8], Some(b"z")), true),
            (place(&[5, 7, 9], Some(b"a")), true),
            (place(&[5, 7, 9], Some(b"m")), false),
            (place(&[5, 7, 9], Some(b"z")), false),
            (place(&[5, 7, 10], Some(b"a")), false),
        ] {
            assert_eq!(trim_point.removes(&entry, b"m"), expect, "{trim_point:?}");
            // The other side has what is on neither this one nor at the place.
            let is_at = entry.as_slice().starts_with(trim_point.words.as_slice())
                && trim_point.member.as_deref().is_none_or(|own| own == b"m");
            let other = TrimPoint { side: TrimSide::Better, ..trim_point };
            assert_eq!(other.removes(&entry, b"m"), !expect && !is_at, "{other:?}");
        }
    }
}

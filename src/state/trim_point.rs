//! A place in a board's order, after which a trim removes entries.
//!
//! Knows: how an entry compares with it. Must not know: who chose it, or what is done with the entries.

use std::cmp::Ordering;

use crate::tree::Words;

/// A place in a board's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimPoint {
    /// The words at the place: a score, the first keys of one, or all words of an entry.
    pub words: Words,
    /// If the words are all of an entry's: its member. Entries with the same words are compared by id.
    pub member: Option<Box<[u8]>>,
}

impl TrimPoint {
    /// Whether an entry comes after the place. One that is at the place does not.
    #[must_use]
    pub fn is_before(&self, words: &Words, member: &[u8]) -> bool {
        let trim_point = self.words.as_slice();
        let words = words.as_slice();
        match words.get(..trim_point.len()).unwrap_or(words).cmp(trim_point) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => self.member.as_deref().is_some_and(|own| own < member),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_after_a_trim_point_compare_by_words_then_id() {
        let place = |words: &[u64], member: Option<&[u8]>| TrimPoint {
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
            assert_eq!(trim_point.is_before(&entry, b"m"), expect, "{trim_point:?}");
        }
    }
}

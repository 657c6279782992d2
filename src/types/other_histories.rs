//! Sequences that are of no message of a shard as it is, because it was set back.
//!
//! A shard whose content is set back goes on far beyond its last sequence. Those in between were given out by
//! another history of it, or may have been: what a client was told of them is lost.

use crate::types::Sequence;

/// So many are told apart. Each restore makes one.
pub const OTHER_HISTORIES_MAX: usize = 64;

/// What one of them may have given out: the sequences between these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherHistory {
    /// The last one that both histories have.
    pub after: Sequence,
    /// The first one of the history that the shard went on with.
    pub before: Sequence,
}

/// All of them, from the lowest sequences to the highest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtherHistories(Vec<OtherHistory>);

impl OtherHistories {
    /// # Arguments
    /// `found`: in order.
    pub fn new(found: Vec<OtherHistory>) -> Self {
        Self(found)
    }

    /// Whether a sequence was given out by another history, if it was given out at all.
    pub fn have(&self, sequence: Sequence) -> bool {
        self.0.iter().any(|other| other.after < sequence && sequence < other.before)
    }

    /// The first sequence behind all of them; 0 if there are none.
    pub fn last_end(&self) -> Sequence {
        self.0.last().map_or(Sequence(0), |last| last.before)
    }

    /// Adds one behind the others. Those that are one too many become one with their next: what is between
    /// them is refused too, and never taken for something else.
    ///
    /// Returns those that are not there any more, by their [`OtherHistory::before`], and what took their
    /// place.
    pub fn add(&mut self, other: OtherHistory) -> Vec<OtherHistory> {
        self.0.push(other);
        let mut merged = Vec::new();
        while self.0.len() > OTHER_HISTORIES_MAX {
            let first = self.0.remove(0);
            merged.push(first);
            if let Some(next) = self.0.first_mut() {
                next.after = first.after;
            }
        }
        merged
    }

    pub fn iter(&self) -> impl Iterator<Item = OtherHistory> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(after: u64, before: u64) -> OtherHistory {
        OtherHistory { after: Sequence(after), before: Sequence(before) }
    }

    #[test]
    fn only_what_is_between_is_of_another_history() {
        let mut others = OtherHistories::default();
        assert!(!others.have(Sequence(0)) && !others.have(Sequence(u64::MAX)));
        assert_eq!(others.last_end(), Sequence(0));
        assert!(others.add(other(3, 10)).is_empty() && others.add(other(12, 20)).is_empty());
        assert_eq!(others.last_end(), Sequence(20));
        let lost: Vec<u64> = (0..25).filter(|sequence| others.have(Sequence(*sequence))).collect();
        assert_eq!(lost, (4..10).chain(13..20).collect::<Vec<_>>());
    }

    #[test]
    fn one_too_many_is_refused_with_what_came_between() {
        let mut others = OtherHistories::default();
        let most = u64::try_from(OTHER_HISTORIES_MAX).expect("a small number");
        for at in 0..most {
            assert!(others.add(other(10 * at, 10 * at + 5)).is_empty());
        }
        assert!(!others.have(Sequence(7)));
        assert_eq!(others.add(other(10 * most, 10 * most + 5)), [other(0, 5)]);
        assert_eq!(others.iter().count(), OTHER_HISTORIES_MAX);
        assert_eq!(others.iter().next(), Some(other(0, 15)));
        assert!(others.have(Sequence(7)) && others.have(Sequence(3)) && !others.have(Sequence(17)));
    }
}

//! Versions that hold for a member on every board: those of removals from every board, and of bans of all
//! boards.
//!
//! Knows: which of them are forgotten to make room for later ones, which follows from the log alone. Must not
//! know: the versions of entries and profiles, with which a plan compares as well.
//!
//! An entry remembers the version of the last job on its board. A removal from every board has a version also
//! for boards where the member never was, those to come included: so it is remembered once, for the member.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::types::{MemberId, Sequence};

/// How many of the latest such versions a shard remembers: some 150 bytes each. Replicas of a shard must
/// agree on it.
pub const MEMBER_VERSIONS_MAX: usize = if cfg!(test) { 8 } else { 262_144 };

/// A version of a member, and the message that brought it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberVersion {
    pub version: u64,
    pub sequence: Sequence,
}

/// A version is remembered, or forgotten: `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberVersionChange {
    pub member: MemberId,
    pub after: Option<MemberVersion>,
}

/// Which was brought when. The first one is the next to be forgotten.
pub type MemberVersionAge = (Sequence, MemberId);

/// The remembered versions of a shard's members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberVersions {
    by_member: BTreeMap<MemberId, MemberVersion>,
    by_age: BTreeSet<MemberVersionAge>,
}

impl MemberVersions {
    pub fn len(&self) -> usize {
        self.by_member.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_member.is_empty()
    }

    pub fn get(&self, member: &MemberId) -> Option<MemberVersion> {
        self.by_member.get(member).copied()
    }

    /// The oldest, after a place in that order or from the first on.
    pub fn oldest_after(&self, place: Option<&MemberVersionAge>) -> impl Iterator<Item = &MemberVersionAge> {
        let from = place.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_age.range((from, Bound::Unbounded))
    }

    pub fn apply(&mut self, change: &MemberVersionChange) {
        let MemberVersionChange { member, after } = change;
        let before = match after {
            Some(after) => {
                self.by_age.insert((after.sequence, member.clone()));
                self.by_member.insert(member.clone(), *after)
            }
            None => self.by_member.remove(member),
        };
        if let Some(before) = before
            && after.is_none_or(|after| after.sequence != before.sequence)
        {
            self.by_age.remove(&(before.sequence, member.clone()));
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&MemberId, MemberVersion)> {
        self.by_member.iter().map(|(member, version)| (member, *version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_version_of_a_member_counts_and_is_as_old_as_its_message() {
        let mut versions = MemberVersions::default();
        let member = |id: &str| MemberId::new(id).expect("a good id");
        let mut set = |id: &str, brought: Option<(u64, u64)>| {
            let after =
                brought.map(|(version, sequence)| MemberVersion { version, sequence: Sequence(sequence) });
            versions.apply(&MemberVersionChange { member: member(id), after });
            let oldest: Vec<_> = versions.oldest_after(None).map(|(_, member)| member.to_string()).collect();
            (oldest, versions.get(&member(id)).map(|known| known.version))
        };
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(set("a", Some((5, 1))), (names(&["a"]), Some(5)));
        assert_eq!(set("b", Some((1, 2))), (names(&["a", "b"]), Some(1)));
        assert_eq!(set("a", Some((6, 2))), (names(&["a", "b"]), Some(6)));
        assert_eq!(set("a", Some((7, 2))), (names(&["a", "b"]), Some(7)), "twice in one message");
        assert_eq!(set("a", Some((8, 3))), (names(&["b", "a"]), Some(8)));
        assert_eq!(set("b", None), (names(&["a"]), None));
        assert_eq!(set("b", None), (names(&["a"]), None));
    }
}

//! Who is hidden on a shard, on one board or on all of them, whatever entries there are.
//!
//! Knows: that a ban of a board and one of all boards are two, each ended by itself, and the order in which
//! they are listed. Must not know: the entries, which a plan hides and shows along with the ban.
//!
//! A ban is of a board's name, and not of one of its lives: it outlasts a clear, and a drop of the board. So
//! does the version of the job that began it, which refuses a late job that would end it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::types::{BoardName, MemberId, Timestamp};

/// The most bans of a shard: some 150 bytes each. Replicas of a shard must agree on it.
pub const BANS_MAX: usize = if cfg!(test) { 64 } else { 1_000_000 };

/// Where a ban holds: on a board, or on all boards: `None`.
pub type BanScope = Option<BoardName>;

/// What is kept of a ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BanRecord {
    pub since: Timestamp,
    /// The greatest of the jobs that have begun it.
    pub version: Option<u64>,
}

/// The bans of a member, by where they hold.
pub type MemberBans = BTreeMap<BanScope, BanRecord>;

/// A ban begins or has another version, or ends: `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BanChange {
    pub scope: BanScope,
    pub member: MemberId,
    pub after: Option<BanRecord>,
}

/// A ban, where it holds, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    pub scope: BanScope,
    pub member: MemberId,
    pub since: Timestamp,
}

/// Which bans are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BansAsked<'a> {
    All,
    /// Those that hold on this board: its own, and those of all boards.
    On(&'a BoardName),
    /// Its own alone.
    Only(&'a BoardName),
    /// Those of boards whose names begin with one of these.
    WithPrefixes(&'a [&'a str]),
}

/// The name of all boards in the order of lists: it is before every board's.
const ALL_BOARDS: &str = "";

/// The bans of a shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bans {
    by_member: BTreeMap<MemberId, MemberBans>,
    /// The same in the order of lists: by the name of the board, those of all boards first; then by member.
    in_order: BTreeMap<Box<str>, BTreeSet<MemberId>>,
    len: usize,
}

impl Bans {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn of_member(&self, member: &MemberId) -> Option<&MemberBans> {
        self.by_member.get(member)
    }

    pub fn apply(&mut self, change: &BanChange) {
        let BanChange { scope, member, after } = change;
        let name = name_of(scope);
        if let Some(record) = after {
            self.by_member.entry(member.clone()).or_default().insert(scope.clone(), *record);
            self.len += usize::from(self.in_order.entry(name.into()).or_default().insert(member.clone()));
            return;
        }
        if let Some(bans) = self.by_member.get_mut(member) {
            bans.remove(scope);
            if bans.is_empty() {
                self.by_member.remove(member);
            }
        }
        if let Some(of_board) = self.in_order.get_mut(name) {
            self.len -= usize::from(of_board.remove(member));
            if of_board.is_empty() {
                self.in_order.remove(name);
            }
        }
    }

    /// The first bans in order, after a place or from the first on, at most `limit`; and whether there are
    /// more. Costs nothing for bans that are not asked for.
    pub fn list(
        &self,
        asked: BansAsked<'_>,
        after: Option<(&str, &MemberId)>,
        limit: usize,
    ) -> (Vec<Ban>, bool) {
        let mut found: Vec<Ban> = Vec::new();
        let mut from = after.map_or(Bound::Included(ALL_BOARDS), |(name, _)| Bound::Included(name));
        let mut after = after;
        while let Some((name, members)) = self.next_name(asked, from) {
            let begin = match after.take() {
                Some((of, member)) if of == name => Bound::Excluded(member),
                _ => Bound::Unbounded,
            };
            for member in members.range((begin, Bound::Unbounded)) {
                if found.len() == limit {
                    return (found, true);
                }
                let scope = BoardName::new(name).ok();
                let record = self.by_member.get(member).and_then(|bans| bans.get(&scope));
                let since = record.map_or_else(Timestamp::default, |record| record.since);
                found.push(Ban { scope, member: member.clone(), since });
            }
            from = Bound::Excluded(name);
        }
        (found, false)
    }

    /// The next name in order that has bans which are asked for.
    fn next_name(&self, asked: BansAsked<'_>, from: Bound<&str>) -> Option<(&str, &BTreeSet<MemberId>)> {
        let first = |from: Bound<&str>| {
            self.in_order.range::<str, _>((from, Bound::Unbounded)).next().map(|(name, of)| (&**name, of))
        };
        let is_past = |name: &str| match from {
            Bound::Included(from) => name < from,
            Bound::Excluded(from) => name <= from,
            Bound::Unbounded => false,
        };
        let exactly = |name: &str| {
            let known = self.in_order.get_key_value(name).filter(|_| !is_past(name));
            known.map(|(name, of)| (&**name, of))
        };
        match asked {
            BansAsked::All => first(from),
            BansAsked::On(board) => exactly(ALL_BOARDS).or_else(|| exactly(board.as_str())),
            BansAsked::Only(board) => exactly(board.as_str()),
            BansAsked::WithPrefixes(prefixes) => {
                let of_prefix = |prefix: &&str| {
                    let from = if is_past(prefix) { from } else { Bound::Included(*prefix) };
                    first(from).filter(|(name, _)| name.starts_with(*prefix) && *name != ALL_BOARDS)
                };
                prefixes.iter().filter_map(of_prefix).min_by_key(|(name, _)| *name)
            }
        }
    }
}

/// The name in the order of lists.
pub fn name_of(scope: &BanScope) -> &str {
    scope.as_ref().map_or(ALL_BOARDS, BoardName::as_str)
}

/// Whether a member with these bans is hidden on a board.
pub fn hides(bans: &MemberBans, board: &BoardName) -> bool {
    // Most members with bans have one, and most of those are of all boards.
    bans.contains_key(&None) || bans.contains_key(&Some(board.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(name: &str) -> BoardName {
        BoardName::new(name).expect("a good name")
    }

    fn change(scope: Option<&str>, member: &str, since: Option<i64>) -> BanChange {
        let since = since.map(|micros| Timestamp::from_micros(micros).expect("in range"));
        let after = since.map(|since| BanRecord { since, version: None });
        BanChange { scope: scope.map(board), member: MemberId::new(member).expect("a good id"), after }
    }

    #[test]
    fn a_ban_of_a_board_and_one_of_all_boards_end_each_by_itself() {
        let mut bans = Bans::default();
        let member = MemberId::new("p").expect("a good id");
        let hidden = |bans: &Bans| {
            ["a", "b"].map(|name| bans.of_member(&member).is_some_and(|bans| hides(bans, &board(name))))
        };
        assert_eq!(hidden(&bans), [false, false]);
        bans.apply(&change(Some("a"), "p", Some(1)));
        assert_eq!(hidden(&bans), [true, false]);
        bans.apply(&change(None, "p", Some(2)));
        assert_eq!((hidden(&bans), bans.len()), ([true, true], 2));
        bans.apply(&change(Some("a"), "p", None));
        assert_eq!(hidden(&bans), [true, true]);
        bans.apply(&change(None, "p", None));
        assert_eq!((hidden(&bans), bans), ([false, false], Bans::default()));
    }

    #[test]
    fn bans_are_listed_for_all_boards_first_and_then_by_board_and_member() {
        let mut bans = Bans::default();
        for (scope, member) in
            [(Some("b"), "p"), (Some("a"), "q"), (None, "z"), (Some("a"), "p"), (Some("ab"), "r")]
        {
            bans.apply(&change(scope, member, Some(1)));
        }
        let text = |ban: &Ban| format!("{}/{}", name_of(&ban.scope), ban.member);
        let (a, prefixes) = (board("a"), ["ab", "b", "a", "z"]);
        for (asked, expected) in [
            (BansAsked::All, &["/z", "a/p", "a/q", "ab/r", "b/p"][..]),
            (BansAsked::On(&a), &["/z", "a/p", "a/q"]),
            (BansAsked::Only(&a), &["a/p", "a/q"]),
            (BansAsked::WithPrefixes(&prefixes), &["a/p", "a/q", "ab/r", "b/p"]),
            (BansAsked::WithPrefixes(&prefixes[..1]), &["ab/r"]),
            (BansAsked::WithPrefixes(&[]), &[]),
        ] {
            for limit in 1..7 {
                let (mut listed, mut after) = (Vec::new(), None::<Ban>);
                loop {
                    let place = after.as_ref().map(|ban| (name_of(&ban.scope), &ban.member));
                    let (page, more) = bans.list(asked, place, limit);
                    assert!(page.len() == limit || !more);
                    listed.extend(page.iter().map(text));
                    after = page.last().cloned();
                    if !more {
                        break;
                    }
                }
                assert_eq!(listed, expected, "{asked:?}, {limit} at a time");
            }
        }
    }
}

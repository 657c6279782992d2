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

/// The most bans of all boards on a shard: some 250 bytes each, as those of single boards. They have room of
/// their own, so that whoever may hide on some boards only cannot take it. Replicas of a shard must agree on
/// this and on the next four.
pub const BANS_EVERYWHERE_MAX: usize = if cfg!(test) { 40 } else { 1_000_000 };
/// The room that single boards share.
pub const BANS_SHARED_MAX: usize = if cfg!(test) { 48 } else { 1_000_000 };
/// The most bans of a board.
pub const BANS_OF_BOARD_MAX: usize = if cfg!(test) { 32 } else { 100_000 };
/// Bans that a board may have although the shared room is full: other boards cannot take it all.
pub const BANS_OF_BOARD_SURE: usize = if cfg!(test) { 4 } else { 100 };
/// The most bans of single boards: [`BANS_OF_BOARD_SURE`] on as many boards as there can be, beside the
/// shared room. Beyond that are only bans of boards that are gone.
pub const BANS_OF_BOARDS_MAX: usize = BANS_SHARED_MAX + 100_000 * BANS_OF_BOARD_SURE;

/// Where a ban holds: on a board, or on all boards: `None`.
pub type BanScope = Option<BoardName>;

/// What is kept of a ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BanRecord {
    pub since: Timestamp,
    /// The greatest of the jobs that have begun it.
    pub version: Option<u64>,
}

/// The bans of a member, by where they hold, in the order of that. Most members have one, for which a map
/// would take ten times the memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemberBans(Vec<(BanScope, BanRecord)>);

impl MemberBans {
    fn place(&self, scope: &BanScope) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(scope))
    }

    pub fn get(&self, scope: &BanScope) -> Option<BanRecord> {
        self.0.get(self.place(scope).ok()?).map(|(_, record)| *record)
    }

    pub fn iter(&self) -> impl Iterator<Item = &(BanScope, BanRecord)> {
        self.0.iter()
    }

    pub fn set(&mut self, scope: &BanScope, record: Option<BanRecord>) {
        match (self.place(scope), record) {
            (Ok(place), Some(record)) => {
                if let Some((_, known)) = self.0.get_mut(place) {
                    *known = record;
                }
            }
            (Ok(place), None) => drop(self.0.remove(place)),
            (Err(place), Some(record)) => {
                if self.0.is_empty() {
                    self.0.reserve_exact(1);
                }
                self.0.insert(place, (scope.clone(), record));
            }
            (Err(_), None) => {}
        }
    }

    /// Whether a member with these bans is hidden on a board.
    pub fn hide(&self, board: &BoardName) -> bool {
        // Most members with bans have one, and most of those are of all boards.
        self.get(&None).is_some() || self.get(&Some(board.clone())).is_some()
    }
}

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
    in_order: BTreeMap<Box<str>, InOrder>,
    len: usize,
}

/// Who is hidden on a board, or on all boards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct InOrder {
    /// Bans of a board share its name.
    scope: BanScope,
    members: BTreeSet<MemberId>,
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

    /// How many there are of a board, or of all boards.
    pub fn count_of(&self, scope: &BanScope) -> usize {
        self.in_order.get(name_of(scope)).map_or(0, |of_board| of_board.members.len())
    }

    pub fn apply(&mut self, change: &BanChange) {
        let BanChange { scope, member, after } = change;
        let name = name_of(scope);
        if after.is_some() {
            let new = || InOrder { scope: scope.clone(), members: BTreeSet::new() };
            let of_board = self.in_order.entry(name.into()).or_insert_with(new);
            self.len += usize::from(of_board.members.insert(member.clone()));
            self.by_member.entry(member.clone()).or_default().set(&of_board.scope, *after);
            return;
        }
        if let Some(bans) = self.by_member.get_mut(member) {
            bans.set(scope, None);
            if bans.0.is_empty() {
                self.by_member.remove(member);
            }
        }
        if let Some(of_board) = self.in_order.get_mut(name) {
            self.len -= usize::from(of_board.members.remove(member));
            if of_board.members.is_empty() {
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
        while let Some((name, InOrder { scope, members })) = self.next_name(asked, from) {
            let begin = match after.take() {
                Some((of, member)) if of == name => Bound::Excluded(member),
                _ => Bound::Unbounded,
            };
            for member in members.range((begin, Bound::Unbounded)) {
                if found.len() == limit {
                    return (found, true);
                }
                let record = self.by_member.get(member).and_then(|bans| bans.get(scope));
                let since = record.map_or_else(Timestamp::default, |record| record.since);
                found.push(Ban { scope: scope.clone(), member: member.clone(), since });
            }
            from = Bound::Excluded(name);
        }
        (found, false)
    }

    /// The next name in order that has bans which are asked for.
    fn next_name(&self, asked: BansAsked<'_>, from: Bound<&str>) -> Option<(&str, &InOrder)> {
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

/// Why a shard takes no other ban there; `None`: it does.
///
/// # Arguments
/// `there`: how many there are of the board, or of all boards. `of_boards`: how many of single boards.
pub fn no_room(scope: &BanScope, there: usize, of_boards: usize) -> Option<String> {
    let Some(board) = scope else {
        let full = there >= BANS_EVERYWHERE_MAX;
        return full.then(|| format!("{BANS_EVERYWHERE_MAX} bans of all boards; end some of those"));
    };
    if there >= BANS_OF_BOARD_MAX {
        return Some(format!("{BANS_OF_BOARD_MAX} bans of board {board}; end some of those"));
    }
    let shares = of_boards < BANS_SHARED_MAX;
    let is_sure = there < BANS_OF_BOARD_SURE && of_boards < BANS_OF_BOARDS_MAX;
    (!shares && !is_sure).then(|| {
        format!(
            "{of_boards} bans of single boards, {there} of them of board {board}; end some of any of them"
        )
    })
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
            ["a", "b"].map(|name| bans.of_member(&member).is_some_and(|bans| bans.hide(&board(name))))
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
    fn no_boards_take_the_room_of_another_or_that_of_bans_of_all_boards() {
        let mut bans = Bans::default();
        // Takes what a place gives: how many bans that are.
        let mut fill = |scope: Option<&str>| {
            let scope_name = scope.map(board);
            let room = |bans: &Bans| {
                let of_boards = bans.len() - bans.count_of(&None);
                no_room(&scope_name, bans.count_of(&scope_name), of_boards).is_none()
            };
            let mut taken = 0;
            while room(&bans) {
                bans.apply(&change(scope, &format!("m{taken}"), Some(1)));
                taken += 1;
            }
            taken
        };
        assert_eq!(fill(Some("greedy0")), BANS_OF_BOARD_MAX);
        assert_eq!(fill(Some("greedy1")), BANS_SHARED_MAX - BANS_OF_BOARD_MAX);
        for number in 2..50 {
            assert_eq!(fill(Some(&format!("greedy{number}"))), BANS_OF_BOARD_SURE);
        }
        assert_eq!(fill(Some("modest")), BANS_OF_BOARD_SURE);
        assert_eq!(fill(None), BANS_EVERYWHERE_MAX);
        assert_eq!((fill(Some("modest")), fill(None)), (0, 0));
        bans.apply(&change(None, "m0", None));
        bans.apply(&change(Some("modest"), "m0", None));
        let of_boards = bans.len() - bans.count_of(&None);
        assert!(no_room(&None, bans.count_of(&None), of_boards).is_none());
        assert!(no_room(&Some(board("modest")), bans.count_of(&Some(board("modest"))), of_boards).is_none());
        assert!(no_room(&Some(board("new")), 0, BANS_OF_BOARDS_MAX).is_some(), "memory has a bound");
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

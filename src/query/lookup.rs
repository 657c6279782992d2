//! Ranks a group of members among themselves: friends' boards.

use std::collections::HashSet;

use crate::query::answer::Listed;
use crate::query::board_view::BoardView;
use crate::query::entries::VisitEntries;
use crate::query::member;
use crate::query::merge::MergedEntry;
use crate::types::MemberId;

/// The members that were found, and those that were not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// Best first, each with its competition rank within the group.
    pub entries: Vec<(Listed, u64)>,
    /// Not listed: indexes into the request.
    pub not_found: Vec<usize>,
}

impl VisitEntries for Lookup {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        for (listed, _) in &mut self.entries {
            visit(listed);
        }
    }
}

/// Each member once, however often it is named.
#[must_use]
pub fn lookup(board: &BoardView<'_>, members: &[MemberId]) -> Lookup {
    let mut named = HashSet::with_capacity(members.len());
    let mut run: Vec<MergedEntry<'_>> = Vec::with_capacity(members.len());
    let mut not_found = Vec::new();
    for (index, id) in members.iter().enumerate().filter(|(_, id)| named.insert(*id)) {
        match member::find(board, id) {
            Some(found) => run.push(found),
            None => not_found.push(index),
        }
    }
    run.sort_unstable_by_key(|found| found.key);
    let mut entries = Vec::with_capacity(run.len());
    let mut previous: Option<&MergedEntry<'_>> = None;
    let (mut better, mut group_rank) = (0, 0);
    for (found, place) in run.iter().zip(1_u64..) {
        let score = board.score_words(&found.key.words);
        if previous.is_none_or(|previous| board.score_words(&previous.key.words) != score) {
            better = board.better(score);
            group_rank = place;
        }
        previous = Some(found);
        let position = member::ahead(board, found) + 1;
        let listed =
            board.parts().get(found.part).and_then(|part| Listed::new(part, found, better, position));
        entries.extend(listed.map(|listed| (listed, group_rank)));
    }
    Lookup { entries, not_found }
}

//! One member on several boards, all at the same moment.

use crate::query::answer::{Entry, Listed};
use crate::query::board_view::BoardView;
use crate::query::member::member;
use crate::query::metadata::HoldsEntries;
use crate::query::node::Node;
use crate::types::{AsOf, BoardName, MemberId};
use crate::writer::Registry;

/// A member's entries.
#[derive(Debug, Clone)]
pub struct OnBoards {
    pub as_of: AsOf,
    pub entries: Vec<(BoardName, Entry)>,
    /// Boards that were asked for and do not exist, or do not list the member.
    pub not_found: Vec<BoardName>,
}

impl HoldsEntries for OnBoards {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        for (_, entry) in &mut self.entries {
            visit(&mut entry.listed);
        }
    }
}

/// The member's entries on the boards asked for, in that order; on the first `limit` boards by name that list it and
/// that `is_wanted` says yes to, if none are.
#[must_use]
pub fn on_boards(
    node: &Node,
    registry: &Registry,
    id: &MemberId,
    boards: Option<&[BoardName]>,
    is_wanted: &dyn Fn(&BoardName) -> bool,
    limit: usize,
) -> OnBoards {
    let view = node.view();
    let entry = |name: &BoardName| {
        let known = registry.get(name.as_str())?;
        member(&BoardView::new(&view, name.as_str(), &known), id)
    };
    let mut entries = Vec::new();
    let mut not_found = Vec::new();
    if let Some(boards) = boards {
        for name in boards {
            match entry(name) {
                Some(entry) => entries.push((name.clone(), entry)),
                None => not_found.push(name.clone()),
            }
        }
    } else if let Some(home) = view.shards.get(node.home_of(id).index())
        && let Some(handle) = home.members.get(id.as_bytes())
    {
        let listing = home
            .boards()
            .filter(|(name, _)| is_wanted(name))
            .filter(|(_, board)| home.tree(board.all).is_some_and(|window| window.tree.contains(handle)));
        entries = listing.filter_map(|(name, _)| Some((name.clone(), entry(name)?))).take(limit).collect();
    }
    let as_of = AsOf(view.shards.iter().map(|shard| (shard.id, shard.applied.sequence)).collect());
    OnBoards { as_of, entries, not_found }
}

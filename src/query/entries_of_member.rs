//! The entries of one member on several boards, at one `as_of`.

use crate::query::answer::{Listed, MemberEntry};
use crate::query::board_view::BoardView;
use crate::query::entries::ConsistentAnswer;
use crate::query::member::member;
use crate::query::node::Node;
use crate::state::TreeId;
use crate::types::{AsOf, BoardName, MemberId};
use crate::writer::Registry;

/// A member's entries.
#[derive(Debug, Clone)]
pub struct EntriesOfMember {
    pub as_of: AsOf,
    pub entries: Vec<(BoardName, MemberEntry)>,
    /// Boards that were asked for and do not exist, or do not list the member.
    pub not_found: Vec<BoardName>,
    /// Where the other boards of the member begin, if all were asked for and these are not all.
    pub next: Option<TreeId>,
}

/// Which boards of a member are asked for.
#[derive(Debug, Clone, Copy)]
pub enum BoardSelection<'a> {
    /// These, in this order.
    Named(&'a [BoardName]),
    /// Those that list it, from behind a place on: `limit` of them, for which no more than [`LOOKED_AT_MAX`]
    /// are looked at.
    All { after: Option<TreeId>, limit: usize },
}

/// Boards of a member that are looked at for one page. A token may be confined to few of many.
const LOOKED_AT_MAX: usize = if cfg!(test) { 5 } else { 2_000 };

impl ConsistentAnswer for EntriesOfMember {
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf)) {
        for (_, entry) in &mut self.entries {
            visit(&mut entry.listed, &self.as_of);
        }
    }
}

/// The member's entries on the boards asked for. Of all boards, those that `is_wanted` says yes to: a page
/// has them in the order in which boards came, and by name within the page. Only boards that know the member
/// are looked at.
#[must_use]
pub fn entries_of_member(
    node: &Node,
    registry: &Registry,
    id: &MemberId,
    selection: BoardSelection<'_>,
    is_wanted: &dyn Fn(&BoardName) -> bool,
) -> EntriesOfMember {
    let view = node.view();
    let entry = |name: &BoardName| {
        let known = registry.get(name.as_str())?;
        member(&BoardView::new(&view, name.as_str(), &known), id)
    };
    let (mut entries, mut not_found, mut next) = (Vec::new(), Vec::new(), None);
    match selection {
        BoardSelection::Named(boards) => {
            for name in boards {
                match entry(name) {
                    Some(entry) => entries.push((name.clone(), entry)),
                    None => not_found.push(name.clone()),
                }
            }
        }
        BoardSelection::All { after, limit } => {
            let home = view.shards.get(node.home_of(id).index());
            let handle = home.and_then(|home| home.members.get(id.as_bytes()));
            if let Some((home, handle)) = home.zip(handle) {
                let mut last = after;
                for (looked_at, tree) in home.members.trees_after(handle, after).enumerate() {
                    if entries.len() == limit || looked_at == LOOKED_AT_MAX {
                        next = last;
                        break;
                    }
                    last = Some(tree);
                    // Trees of dropped boards count as well: until they have released the member, there may
                    // be any number.
                    let Some(window) = home.tree(tree) else { continue };
                    if is_wanted(&window.board)
                        && window.tree.contains(handle)
                        && let Some(entry) = entry(&window.board)
                    {
                        entries.push((window.board.clone(), entry));
                    }
                }
                entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
        }
    }
    let as_of = AsOf(view.shards.iter().map(|shard| (shard.id, shard.applied.sequence)).collect());
    EntriesOfMember { as_of, entries, not_found, next }
}

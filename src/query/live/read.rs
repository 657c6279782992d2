//! One computation of a watched board: its top, its total, and members.

use std::collections::HashMap;

use crate::query::answer::{Listed, Page};
use crate::query::board_view::BoardView;
use crate::query::cursor::End;
use crate::query::entries::VisitEntries;
use crate::query::lookup::{Lookup, lookup};
use crate::query::read::BoardRead;
use crate::query::remote_shards::ReadError;
use crate::query::top::{Start, top};
use crate::state::Incarnation;
use crate::types::{AsOf, MemberId};

/// Members that are looked up under one hold of the shards' locks. Further ones are looked up by themselves.
pub(super) const MEMBERS_AT_ONCE: usize = 256;

/// The best entries, and members wherever they are.
pub(super) struct ReadLive {
    pub(super) top: usize,
    /// At most [`MEMBERS_AT_ONCE`].
    pub(super) members: Vec<MemberId>,
}

pub(super) struct LiveAnswer {
    /// What the top and the total are exact at. Over remote shards, members are of the same sequences or
    /// later ones.
    pub(super) as_of: AsOf,
    pub(super) incarnation: Incarnation,
    pub(super) total: u64,
    pub(super) page: Page,
    pub(super) found: Lookup,
}

impl VisitEntries for LiveAnswer {
    fn each_entry(&mut self, visit: &mut dyn FnMut(&mut Listed)) {
        self.page.each_entry(visit);
        self.found.each_entry(visit);
    }
}

/// The members that were found, by id.
pub(super) fn by_member(found: Lookup) -> HashMap<Box<str>, Listed> {
    found.entries.into_iter().map(|(listed, _)| (listed.member.clone(), listed)).collect()
}

impl BoardRead for ReadLive {
    type Answer = LiveAnswer;

    fn shows_total(_: &Self::Answer) -> bool {
        // It was counted together with the top.
        false
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        let page = top(board, &Start::End(End::Top), self.top).await?;
        let (as_of, total) = (board.as_of(), board.total().await?);
        let found = if self.members.is_empty() {
            Lookup { entries: Vec::new(), not_found: Vec::new() }
        } else {
            lookup(board, &self.members).await?
        };
        let mut answer = LiveAnswer { as_of, incarnation: board.incarnation, total, page, found };
        // Watchers are not told of versions, and so not of entries of which nothing else has changed.
        answer.each_entry(&mut |listed| listed.version = None);
        Ok(answer)
    }
}

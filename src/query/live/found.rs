//! What one computation found, for all views of a feed.

use std::collections::HashMap;
use std::sync::Arc;

use crate::query::answer::Listed;
use crate::query::instance::{InstanceAsked, WindowChoice};
use crate::query::live::asked::NotLive;
use crate::query::live::read::{MEMBERS_AT_ONCE, ReadLive, by_member};
use crate::query::live::source::LiveSource;
use crate::query::live::state::LiveState;
use crate::query::live::view::View;
use crate::query::lookup::LookupMembers;
use crate::query::read::OfBoard;
use crate::query::remote_shards::ReadError;
use crate::state::Incarnation;
use crate::types::{AsOf, BoardName, MemberId, Timestamp};
use crate::window::Instance;

/// What a computation found, for all views.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) incarnation: Incarnation,
    pub(super) instance: Instance,
    total: u64,
    entries: Vec<Arc<Listed>>,
    members: HashMap<Box<str>, Arc<Listed>>,
    pub(super) is_stale: bool,
    pub(super) as_of: AsOf,
}

impl Found {
    /// Reads a board as its views show it.
    ///
    /// # Errors
    /// When some shard does not reply, or what was asked for kept changing.
    pub(super) async fn read(
        source: &LiveSource,
        (board, choice): (&BoardName, WindowChoice),
        time: Timestamp,
        top: usize,
        members: &[MemberId],
    ) -> Result<Result<Self, NotLive>, ReadError> {
        let (first, rest) = members.split_at(members.len().min(MEMBERS_AT_ONCE));
        let asked = OfBoard {
            board: board.clone(),
            instance: InstanceAsked { choice, now: time },
            read: ReadLive { top, members: first.to_vec() },
        };
        let (answer, mut is_stale) = source.read(asked).await?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return Ok(Err(why.into())),
        };
        let instance = answer.instance;
        let body = answer.body;
        let mut members = by_member(body.found);
        for chunk in rest.chunks(MEMBERS_AT_ONCE) {
            let asked = OfBoard {
                board: board.clone(),
                instance: InstanceAsked { choice: WindowChoice::Named(instance), now: time },
                read: LookupMembers { members: chunk.into() },
            };
            let (answer, is_stale_too) = source.read(asked).await?;
            is_stale |= is_stale_too;
            match answer {
                Ok(answer) => members.extend(by_member(answer.body)),
                Err(why) => return Ok(Err(why.into())),
            }
            // Writers, and other watched boards, have their turn.
            tokio::task::yield_now().await;
        }
        Ok(Ok(Self {
            incarnation: body.incarnation,
            instance,
            total: body.total,
            entries: body.page.entries.into_iter().map(Arc::new).collect(),
            members: members.into_iter().map(|(id, listed)| (id, Arc::new(listed))).collect(),
            is_stale,
            as_of: body.as_of,
        }))
    }

    /// The same, with the entries of the computation before as far as they are equal, so that states share
    /// them.
    pub(super) fn sharing(mut self, before: &Self) -> Self {
        for (now, before) in self.entries.iter_mut().zip(&before.entries) {
            share(now, before);
        }
        for (member, now) in &mut self.members {
            if let Some(before) = before.members.get(member) {
                share(now, before);
            }
        }
        self
    }

    pub(super) fn state_of(&self, view: &View) -> LiveState {
        let state = LiveState {
            id: 0,
            incarnation: self.incarnation,
            instance: self.instance,
            total: self.total,
            entries: self.entries.iter().take(view.top).cloned().collect(),
            members: view.members.iter().map(|member| self.members.get(member.as_str()).cloned()).collect(),
            is_stale: self.is_stale,
            as_of: self.as_of.clone(),
        };
        state.identified()
    }
}

fn share(now: &mut Arc<Listed>, before: &Arc<Listed>) {
    if now == before {
        *now = Arc::clone(before);
    }
}

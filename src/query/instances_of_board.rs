//! The instances of a board that can be read, with their totals, at one `as_of`.

use std::sync::Arc;

use crate::board::Definition;
use crate::query::instance::{InstanceAsked, WindowChoice};
use crate::query::node::Node;
use crate::query::question::BoardLife;
use crate::query::read::{NoBoard, ShardsRead};
use crate::query::read_shards::ReadShards;
use crate::query::remote_shards::ReadError;
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, Timestamp};
use crate::window::{Instance, Span, Window};
use crate::writer::Registry;

/// Instances that one answer looks at, of all windows together, on every shard.
const INSTANCES_MAX: usize = 1_000;

/// A board, and instances of it.
#[derive(Debug, Clone)]
pub struct InstancesOfBoard {
    pub as_of: AsOf,
    pub definition: Arc<Definition>,
    /// Entries of the instance that a read of the board would be about; `None` if no season has begun.
    pub total: Option<(Instance, u64)>,
    /// In the order of the definition.
    pub windows: Vec<InstancesOfWindow>,
}

/// Instances of a window, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstancesOfWindow {
    pub window: Window,
    pub instances: Vec<ListedInstance>,
    /// The last one, if there are older ones.
    pub next: Option<Instance>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedInstance {
    pub instance: Instance,
    pub span: Span,
    pub is_open: bool,
    /// Entries that are shown.
    pub total: u64,
}

/// Lists a board's instances: of each window, or of the one that is asked for, from the current one back to
/// the oldest one that has entries and is not dropped yet.
pub struct ListInstances {
    pub board: BoardName,
    pub asked: InstanceAsked,
    /// Only instances of its window that are older.
    pub before: Option<Instance>,
    /// Instances of a window, at most. With several windows each has its share of the answer.
    pub limit: usize,
}

impl ListInstances {
    /// The windows that are listed, each from an instance back. `None`: no season has begun.
    fn windows(&self, definition: &Definition, now: Timestamp) -> Vec<(Window, Option<Instance>)> {
        let newest = |window| (window, definition.calendar().instance_at(window, now));
        match (self.before, self.asked.choice) {
            // There is one of all time.
            (Some(before), _) if before.window == Window::All => vec![(before.window, None)],
            (Some(before), _) => {
                let (window, newest) = newest(before.window);
                let older =
                    |newest: Instance| if newest.number < before.number { newest } else { before.later(-1) };
                vec![(window, newest.map(older))]
            }
            (None, WindowChoice::Default | WindowChoice::Every) => {
                definition.windows.iter().copied().map(newest).collect()
            }
            (None, WindowChoice::Current(window)) => vec![newest(window)],
            (None, WindowChoice::Named(instance)) => vec![(instance.window, Some(instance))],
        }
    }

    /// Up to `most` instances that are not dropped, and whether there are older ones.
    fn kept(
        &self,
        definition: &Definition,
        newest: Instance,
        now: Timestamp,
        most: usize,
    ) -> (Vec<ListedInstance>, bool) {
        let calendar = definition.calendar();
        let is_one = newest.window == Window::All || matches!(self.asked.choice, WindowChoice::Named(_));
        let numbers = (0..).map(|back: i64| newest.later(-back)).take(if is_one { 1 } else { usize::MAX });
        // None is there behind one that was dropped, or that is before 1970 or the first season.
        let kept = numbers.map_while(|instance| {
            let is_dropped = definition.drops_at(instance).is_some_and(|drops| drops <= now);
            let span = calendar.span(instance).filter(|_| !is_dropped)?;
            let is_open = definition.is_open(instance, now);
            Some(ListedInstance { instance, span, is_open, total: 0 })
        });
        let mut kept: Vec<ListedInstance> = kept.take(most + 1).collect();
        let has_more = kept.len() > most;
        kept.truncate(most);
        (kept, has_more)
    }

    /// The page among the instances that were looked at, and whether another one follows.
    ///
    /// # Arguments
    /// - `has_more`: whether there are older instances than those.
    /// - `limit`: instances of a page, at most.
    fn page(
        &self,
        mut looked_at: Vec<ListedInstance>,
        has_more: bool,
        limit: usize,
    ) -> (Vec<ListedInstance>, bool) {
        if !has_more {
            let with_entries =
                looked_at.iter().rposition(|listed| listed.total > 0).map_or(0, |last| last + 1);
            // The newest is listed in any case, unless it is on a later page.
            looked_at.truncate(with_entries.max(usize::from(self.before.is_none())));
        }
        let is_followed = has_more || looked_at.len() > limit;
        looked_at.truncate(limit);
        (looked_at, is_followed)
    }
}

impl ShardsRead for ListInstances {
    type Answer = Result<InstancesOfBoard, NoBoard>;

    fn is_about(&self, board: &BoardName) -> bool {
        *board == self.board
    }

    /// A board that has only `all` has one instance.
    fn lookups_on(&self, node: &Node) -> usize {
        let has_only_all = node.shards.first().is_some_and(|shard| {
            let shard = shard.state.read(Purpose::Read);
            shard.board(self.board.as_str()).is_some_and(|board| board.definition.has_only_all())
        });
        if has_only_all { 1 } else { INSTANCES_MAX }
    }

    async fn read<'r>(
        &'r self,
        shards: ReadShards<'r>,
        registry: &'r Registry,
    ) -> Result<Self::Answer, ReadError> {
        let Some(known) = registry.get(self.board.as_str()) else { return Ok(Err(NoBoard::Unknown)) };
        let definition = known.definition;
        let asked = self.asked.not_before(shards.time());
        let read = match asked.of(&definition) {
            Ok(instance) => Some(instance),
            // The board is there all the same.
            Err(_) if asked.choice == WindowChoice::Default => None,
            Err(why) => return Ok(Err(why.into())),
        };
        let windows = self.windows(&definition, asked.now);
        // Those behind the page too: whether they have entries decides where the list ends.
        let most = INSTANCES_MAX / windows.len().max(1);
        let mut listed: Vec<(Window, Vec<ListedInstance>, bool)> = Vec::with_capacity(windows.len());
        for (window, newest) in windows {
            let kept = newest.map(|newest| self.kept(&definition, newest, asked.now, most));
            let (kept, has_more) = kept.unwrap_or_default();
            listed.push((window, kept, has_more));
        }
        let life = |instance: Instance| BoardLife {
            board: instance.name_on_shards(&self.board),
            incarnation: known.incarnation,
        };
        let of_windows = listed.iter().flat_map(|(_, kept, _)| kept.iter().map(|listed| listed.instance));
        let boards = read.into_iter().chain(of_windows).map(|instance| (life(instance), Vec::new()));
        let boards: Vec<_> = boards.collect();
        let mut totals = vec![0; boards.len()];
        for (_, counts) in shards.counts(boards, None).await? {
            totals.iter_mut().zip(&counts).for_each(|(total, counts)| *total += counts.total);
        }
        let mut totals = totals.into_iter().map(|total| definition.within_capacity(total));
        let total = read.and_then(|instance| Some((instance, totals.next()?)));
        let windows = listed.into_iter().map(|(window, mut kept, has_more)| {
            kept.iter_mut().zip(totals.by_ref()).for_each(|(listed, total)| listed.total = total);
            let (page, is_followed) = self.page(kept, has_more, self.limit.min(most));
            let next = page.last().filter(|_| is_followed).map(|last| last.instance);
            InstancesOfWindow { window, instances: page, next }
        });
        let windows = windows.collect();
        Ok(Ok(InstancesOfBoard { as_of: shards.as_of(), definition, total, windows }))
    }
}

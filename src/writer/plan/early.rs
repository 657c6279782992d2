//! Instances that have not begun by the shard's time. Jobs of a leap have entered them, and it is not known
//! yet whether that is true; see [`ShardTime`](crate::state::ShardTime). Or their season had begun, and a
//! definition that came late says that it begins later, or never.
//!
//! Knows: that those of a leap stay once it is believed, and are dropped once it is not; that the others are
//! dropped at once. Must not know: which messages are a leap.
//!
//! The set follows from the shard, so it is not stored: it is what has not begun there.

use std::collections::BTreeSet;

use crate::state::EarlyInstances;
use crate::types::{BoardName, Timestamp};
use crate::window::MovementPart;
use crate::writer::plan::Batch;
use crate::writer::plan::windows::DROPS_PER_MESSAGE;

/// Instances that are looked at before the lock is yielded.
const LOOKED_AT_PER_YIELD: usize = 16;

impl Batch<'_> {
    /// After a board or an instance was defined: notes whether it has begun.
    pub(super) fn note_early(&mut self, name: &BoardName) {
        if name.is_instance() {
            if self.leap.is_some() {
                self.early.extend(self.begin_if_early(name));
            }
            return;
        }
        // The board may have seasons that begin at other times now, or that were cancelled. That is decided a
        // second before one begins, and may come later than that to a shard: jobs are in the season then.
        let has_seasons = self.board(name).is_some_and(|board| board.definition.seasons.is_some());
        if !has_seasons && self.early.is_empty() {
            return;
        }
        let of_board = |(_, instance): &(Timestamp, BoardName)| instance.split().0 == name.as_str();
        let (of_board, of_others): (EarlyInstances, EarlyInstances) =
            std::mem::take(&mut self.early).into_iter().partition(of_board);
        self.early = of_others;
        let was_early: BTreeSet<BoardName> = of_board.into_iter().map(|(_, instance)| instance).collect();
        for (index, instance) in self.instances_of(name).into_iter().enumerate() {
            if index.is_multiple_of(LOOKED_AT_PER_YIELD) {
                self.shard.yield_if_due();
            }
            let Some(early) = self.begin_if_early(&instance) else { continue };
            let is_season = MovementPart::of_name_on_shards(&instance).is_none();
            if is_season && early.0 > self.known_time().latest_begin() && !was_early.contains(&instance) {
                self.taken_back.push(instance);
            }
            self.early.insert(early);
        }
        // At this message: at the next one the season may have begun once more.
        self.drop_early_instances();
    }

    fn begin_if_early(&self, name: &BoardName) -> Option<(Timestamp, BoardName)> {
        // An instance has the definition that its board has now.
        let begin = self.board(&name.board())?.definition.begins_name_at(name)?;
        (begin > self.time).then(|| (begin, name.clone()))
    }

    /// Drops instances that only a leap has brought which is not believed, or that begin later than they did,
    /// a bounded number at a time: the latest first, on every replica the same, however it cuts the log.
    pub(super) fn drop_early_instances(&mut self) {
        let mut looked_at = 0_usize;
        // What has begun is as any other from now on.
        while self.early.first().is_some_and(|(begin, _)| *begin <= self.time) {
            self.early.pop_first();
            looked_at += 1;
            if looked_at.is_multiple_of(LOOKED_AT_PER_YIELD) {
                self.shard.yield_if_due();
            }
        }
        let latest = self.known_time().latest_begin();
        let mut dropped = 0;
        while dropped < DROPS_PER_MESSAGE && self.early.last().is_some_and(|(begin, _)| *begin > latest) {
            let Some((_, name)) = self.early.pop_last() else { break };
            looked_at += 1;
            if looked_at.is_multiple_of(LOOKED_AT_PER_YIELD) {
                self.shard.yield_if_due();
            }
            // Its board may have ended meanwhile, and it with that.
            let Some(incarnation) = self.board(&name).map(|instance| instance.incarnation) else { continue };
            self.drop_board(name, incarnation, None);
            self.instances_dropped += 1;
            dropped += 1;
        }
    }
}

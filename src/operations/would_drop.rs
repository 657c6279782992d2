//! What readers would lose by a change of a board's definition: instances that fewer are kept of, and entries
//! that expire or are beyond the capacity; all of them, if the board would be over.
//!
//! Knows: which settings take something away. Must not know: how a client consents to it.

use crate::board::Definition;
use crate::operations::failure::{Failure, WouldDrop};
use crate::operations::shared::Operations;
use crate::query::{
    End, InstanceAsked, ListInstances, ListedInstance, NoBoard, OfBoard, ReadOptions, ShardsRead, Start, Top,
    WindowChoice, read,
};
use crate::types::{BoardName, Timestamp};
use crate::window::Instance;

/// Instances of a page.
const INSTANCES_AT_ONCE: usize = 1_000;
/// Entries of a page.
const ENTRIES_AT_ONCE: usize = 1_000;
/// Entries that are looked at for those that would expire: a second's work.
const LOOKED_AT_MAX: u64 = 1_000_000;

impl Operations {
    /// Refuses a change of a board's definition that would drop instances or entries.
    ///
    /// # Errors
    /// When it would, with their number; when some shard does not reply, so that it is not known.
    pub(super) async fn check_keeps_all(
        &self,
        board: &BoardName,
        (known, changed): (&Definition, &Definition),
    ) -> Result<(), Failure> {
        let drops_instances = changed.keep < known.keep || changed.grace_micros < known.grace_micros;
        let is_lower = |known: Option<u64>, changed: Option<u64>| {
            changed.is_some_and(|changed| known.is_none_or(|known| changed < known))
        };
        let hides_entries = is_lower(known.capacity, changed.capacity);
        let micros = |ttl: Option<i64>| ttl.and_then(|ttl| u64::try_from(ttl).ok());
        let expires_entries = is_lower(micros(known.entry_ttl_micros), micros(changed.entry_ttl_micros));
        let now = self.now();
        let ends = changed.expires_at != known.expires_at && changed.expires_at.is_some_and(|at| at <= now);
        if !drops_instances && !hides_entries && !expires_entries && !ends {
            return Ok(());
        }
        let (mut dropped, mut looked_at) = (WouldDrop { is_board: ends, ..WouldDrop::default() }, 0);
        for listed in self.instances_of(board, known, now).await? {
            if ends {
                dropped.instances += 1;
                dropped.entries += listed.total;
                continue;
            }
            if changed.drops_at(listed.instance).is_some_and(|at| at <= now) {
                dropped.instances += 1;
                continue;
            }
            // What has closed is final.
            let (expired, is_all) = if expires_entries && !changed.keeps_entries(listed.instance) {
                self.expired_in(board, changed, (listed.instance, now), listed.total, &mut looked_at).await?
            } else {
                (0, true)
            };
            dropped.is_at_least |= !is_all;
            // The next ones take the places of those that expire.
            let stay = changed.within_capacity(listed.total - expired);
            dropped.entries += listed.total - stay;
        }
        if dropped == WouldDrop::default() { Ok(()) } else { Err(Failure::WouldDrop(dropped)) }
    }

    async fn ask_whole<R: ShardsRead>(&self, asked: &R) -> Result<R::Answer, Failure> {
        Ok(read(&self.node, &self.registry, asked, &ReadOptions::default()).await?.answer)
    }

    /// The instances of a board that have entries, of all its windows.
    async fn instances_of(
        &self,
        board: &BoardName,
        known: &Definition,
        now: Timestamp,
    ) -> Result<Vec<ListedInstance>, Failure> {
        let mut found = Vec::new();
        for window in &known.windows {
            let choice = WindowChoice::Current(*window);
            let mut before = None;
            loop {
                let asked = InstanceAsked { choice, now };
                let page = ListInstances { board: board.clone(), asked, before, limit: INSTANCES_AT_ONCE };
                let page = match self.ask_whole(&page).await? {
                    Ok(page) => page,
                    // No season has begun, or another client has dropped the board.
                    Err(
                        NoBoard::Window(_)
                        | NoBoard::Unknown
                        | NoBoard::UnknownColumn(_)
                        | NoBoard::Movement(_),
                    ) => break,
                };
                let of_window = page.windows.into_iter().find(|listed| listed.window == *window);
                let Some(of_window) = of_window else { break };
                found.extend(of_window.instances.into_iter().filter(|listed| listed.total > 0));
                before = of_window.next;
                if before.is_none() {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// How many of so many entries that an instance shows are so old that they would expire, and whether all
    /// were looked at.
    async fn expired_in(
        &self,
        board: &BoardName,
        changed: &Definition,
        (instance, now): (Instance, Timestamp),
        total: u64,
        looked_at: &mut u64,
    ) -> Result<(u64, bool), Failure> {
        let (mut expired, mut seen, mut start) = (0, 0, Start::End(End::Top));
        while seen < total {
            if *looked_at >= LOOKED_AT_MAX {
                return Ok((expired, false));
            }
            let asked = InstanceAsked { choice: WindowChoice::Named(instance), now };
            let top = Top { start, limit: ENTRIES_AT_ONCE };
            let page =
                match self.ask_whole(&OfBoard { board: board.clone(), instance: asked, read: top }).await? {
                    Ok(answer) => answer.body,
                    Err(_) => break,
                };
            for entry in &page.entries {
                // Another one may have come since they were counted.
                let is_counted = seen < total;
                let expires = changed.expires_at(instance, entry.updated_at).is_some_and(|at| at <= now);
                expired += u64::from(is_counted && expires);
                seen += 1;
                *looked_at += 1;
            }
            match page.next {
                Some(next) => start = Start::After(next),
                None => break,
            }
        }
        Ok((expired, true))
    }
}

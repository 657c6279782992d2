//! Plans a trim: removes entries from an end of a board.
//!
//! Knows: which of the named members' entries are still on the removed side of the trim point. The node that
//! published the message has looked the members up, so the effect follows from the messages alone, on every
//! replica and replay.

use crate::state::{Applied, Incarnation, TrimPoint};
use crate::types::{BoardName, MemberId};
use crate::window::Instance;
use crate::writer::decide::{Request, decide};
use crate::writer::plan::Batch;

/// Members that are planned before the lock is yielded.
const MEMBERS_PER_YIELD: usize = 16;

impl Batch<'_> {
    /// Removes the named members' entries that are on one side of a trim point, and returns how many. Removes
    /// none if the board has another incarnation.
    pub(super) fn trim(
        &mut self,
        name: &BoardName,
        incarnation: Incarnation,
        point: &TrimPoint,
        members: &[MemberId],
        applied: Applied,
    ) -> u64 {
        let Some(board) = self.board(name).filter(|board| board.incarnation == incarnation) else { return 0 };
        let tree = board.tree;
        let definition = std::sync::Arc::clone(board.definition);
        // A closed instance is final.
        let instance = name.split().1.and_then(Instance::of_name);
        if instance.is_some_and(|instance| !self.is_open(&definition, instance)) {
            return 0;
        }
        let mut removed = 0;
        for (index, member) in members.iter().enumerate() {
            // A message names up to four steps' worth of members.
            if index % MEMBERS_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            let Some(handle) = self.find_member(member) else { continue };
            let before = self.entry(tree, handle);
            let words = before.and_then(|entry| entry.words());
            if !words.is_some_and(|words| point.removes(&words, member.as_bytes())) {
                continue;
            }
            let request = Request::removal(member, applied.timestamp);
            let Ok(decision) = decide(&definition, before.as_ref(), &request) else { continue };
            if let Some(entry) = before.filter(|_| definition.is_top_k()) {
                if let Some(other) = self.pass_error_on(&definition, tree, (member, &entry)) {
                    self.record_other((name, incarnation), tree, other, applied.sequence);
                }
                self.note_counted(tree, (member, handle), (Some(&entry), None));
            }
            let (found, left) = (before.as_ref(), decision.after.as_ref());
            self.hash_entry((name, incarnation), member, (found, left));
            self.change(tree, handle, before.as_ref(), decision.after);
            self.note_movement((name, incarnation, &definition), (member, handle), (found, left));
            self.plan_metadata((member, None), tree, handle, before.as_ref(), &decision, applied.sequence);
            removed += 1;
        }
        removed
    }
}

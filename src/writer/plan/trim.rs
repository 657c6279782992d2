//! What a trim takes from a board.
//!
//! Knows: which of the members that it names still lie behind its place. Who they are was found out before,
//! by whoever published it: a message that says it is decided by nothing but the messages before it, on every
//! replica and replay.

use crate::job::Op;
use crate::state::{Applied, Cut, Incarnation};
use crate::types::{BoardName, MemberId};
use crate::writer::decide::{Request, decide};
use crate::writer::plan::Batch;

/// So many members are planned before others may be let in.
const MEMBERS_BETWEEN_LOOKS: usize = 16;

impl Batch<'_> {
    /// Removes those of the members whose entries lie behind a place; how many there were. Of another life of
    /// the board none do.
    pub(super) fn trim(
        &mut self,
        name: &BoardName,
        incarnation: Incarnation,
        behind: &Cut,
        members: &[MemberId],
        applied: Applied,
    ) -> u64 {
        let Some(board) = self.board(name).filter(|board| board.incarnation == incarnation) else { return 0 };
        let tree = board.tree;
        let definition = std::sync::Arc::clone(board.definition);
        let mut removed = 0;
        for (index, member) in members.iter().enumerate() {
            // A message names as many members as four steps of jobs have.
            if index % MEMBERS_BETWEEN_LOOKS == 0 {
                self.shard.let_others_in();
            }
            let Some(handle) = self.find_member(member) else { continue };
            let before = self.entry(tree, handle);
            let words = before.and_then(|entry| entry.words());
            if !words.is_some_and(|words| behind.is_ahead_of(&words, member.as_bytes())) {
                continue;
            }
            let request = Request {
                op: Op::Remove,
                score: None,
                version: None,
                at: applied.timestamp,
                member,
                metadata: None,
            };
            let Ok(decision) = decide(&definition, before.as_ref(), &request) else { continue };
            self.change(tree, handle, before, decision.after);
            self.plan_metadata((member, None), tree, handle, before.as_ref(), &decision, applied.sequence);
            removed += 1;
        }
        removed
    }
}

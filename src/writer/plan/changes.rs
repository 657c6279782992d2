//! Members and entries as the batch sees them: the shard's, overlaid with the batch's own changes.

use crate::job::{Job, Metadata};
use crate::state::{Change, Entry, EntryParts, TreeId};
use crate::storage::codec::MetadataRecord;
use crate::tree::Handle;
use crate::types::{MemberId, Sequence};
use crate::writer::decide::Decision;
use crate::writer::plan::Batch;
use crate::writer::plan::packed::PackedAt;

/// An entry before and after the batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetChange {
    pub(super) tree: TreeId,
    pub(super) handle: Handle,
    pub(super) before: PackedAt,
    pub(super) after: PackedAt,
    /// The last step that changed it, and the index in that step's changes.
    step: usize,
    at: usize,
}

impl Batch<'_> {
    pub(super) fn change(
        &mut self,
        tree: TreeId,
        handle: Handle,
        before: Option<&Entry>,
        after: Option<Entry>,
    ) {
        let (step, at) = (self.step_number, self.step.changes.len());
        let change = Change { tree, handle, after };
        let index = *self.net_change_index.entry((tree, handle)).or_insert(self.net_changes.len());
        if let Some(changed) = &mut self.changed_by_member {
            changed.insert((handle, tree));
        }
        if let Some(net_change) = self.net_changes.get_mut(index) {
            net_change.after = self.packed.push(after.as_ref());
            if net_change.step == step {
                // Several jobs of a step for one entry become one change.
                if let Some(earlier) = self.step.changes.get_mut(net_change.at) {
                    *earlier = change;
                }
                return;
            }
            (net_change.step, net_change.at) = (step, at);
        } else {
            let (before, after) = (self.packed.push(before), self.packed.push(after.as_ref()));
            self.net_changes.push(NetChange { tree, handle, before, after, step, at });
        }
        self.step.changes.push(change);
    }

    /// What a job decides, if it does more than bring the metadata that the entry has. A client that waits is
    /// told so; nobody else looks them up.
    pub(super) fn unless_same_metadata(
        &mut self,
        job: &Job,
        (tree, handle): (Option<TreeId>, Option<Handle>),
        decision: Decision,
    ) -> Decision {
        let (Some(given), Some(tree), Some(handle)) = (&job.meta, tree, handle) else { return decision };
        if !decision.changes_only_metadata || self.outcome_boards.is_none() {
            return decision;
        }
        let held = if let Some((_, record)) = self.metadata.get(&(tree, handle)) {
            record.clone()
        } else {
            let (planner, member) = (self.planner, job.member.as_bytes());
            let read = self.shard.unlocked(|| (planner.read_metadata)(tree, member));
            read.unwrap_or_else(|reason| {
                self.unreadable = Some(reason);
                None
            })
        };
        let is_same = held.is_some_and(|held| *held.json == *given.0);
        Decision { changed: decision.changed && !is_same, ..decision }
    }

    pub(super) fn plan_metadata(
        &mut self,
        (member, given): (&MemberId, Option<&Metadata>),
        tree: TreeId,
        handle: Handle,
        before: Option<&Entry>,
        decision: &Decision,
        sequence: Sequence,
    ) {
        let had = before.is_some_and(|entry| entry.has_metadata);
        let has = decision.after.as_ref().is_some_and(|entry| entry.has_metadata);
        let record = match (given, decision.takes_metadata && has) {
            (Some(metadata), true) => {
                Some(MetadataRecord { sequence: sequence.0, json: metadata.0.to_string() })
            }
            _ if had && !has => None,
            _ => return,
        };
        self.metadata.insert((tree, handle), (member.as_bytes().to_vec(), record));
    }

    pub(super) fn entry(&self, tree: TreeId, handle: Handle) -> Option<Entry> {
        // The batch's own changes hide the shard's entries.
        match self.net_change_index.get(&(tree, handle)).and_then(|index| self.net_changes.get(*index)) {
            Some(net_change) => self.packed.get(net_change.after).map(EntryParts::to_entry),
            None => self.shard.entry(tree, handle),
        }
    }

    pub(super) fn find_member(&self, member: &MemberId) -> Option<Handle> {
        let members = &self.shard.members;
        members.get(member.as_bytes()).or_else(|| self.new_members.get(member.as_bytes()).copied())
    }

    pub(super) fn add_member(&mut self, member: &MemberId) -> Handle {
        let handle = self.shard.members.nth_next_handle(self.added);
        self.added += 1;
        self.step.added.push(member.as_bytes().into());
        self.new_members.insert(member.as_bytes().into(), handle);
        handle
    }
}

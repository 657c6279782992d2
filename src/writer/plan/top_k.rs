//! Plans jobs on boards of the kind `top_k`, which keep the members with the greatest counts in memory that
//! does not grow: `SpaceSaving` (Metwally, Agrawal, El Abbadi, 2005), once for each instance on each shard.
//!
//! Knows: which entry a new member replaces, and what its error is. Must not know: what reads make of it.
//!
//! A member that has an entry is counted there. A new one takes a free place, or replaces the worst entry:
//! then it has that one's score beside its own, as its *error*. Of the members that have no entry, none was
//! counted more often than the worst entry that there is. So a member that comes into a place which a removal
//! has freed begins with the worst entry's score, too, if any member has ever been replaced. That any was is
//! told by the errors: as long as there are entries, one of them has an error above 0 since then, because the
//! last one that has it passes it on when it is removed. So nothing is kept beside the entries.
//!
//! The worst entry is the last in the order of the tree, and never the one of some handle: handles differ
//! between replicas.

use std::collections::{BTreeMap, BTreeSet};

use crate::board::{Definition, Order, encode};
use crate::job::{Job, Op, Reject, RejectCode, Targets};
use crate::state::{Entry, EntryState, Incarnation, TreeId, WindowTree};
use crate::tree::{Handle, Words};
use crate::types::{BoardName, MemberId, Score, Sequence};
use crate::writer::decide::{Decision, Request, decide};
use crate::writer::plan::Batch;

/// Entries that are passed before the lock is yielded.
const ENTRIES_PER_YIELD: usize = 64;

/// A listed entry, in the order of the tree.
type Placed = (Words, Box<[u8]>, Handle);

/// The entries of a tree as the batch sees them.
#[derive(Default)]
pub(super) struct CountedTree {
    /// Listed entries.
    total: u64,
    /// Of these, how many have an error above 0.
    with_error: u64,
    /// The shard's entries from the worst one on that the batch has changed. What it has changed once stays
    /// changed, so this only grows. It is no cursor: the lock is yielded between jobs.
    passed: u64,
    /// Entries that the batch has changed, as they are now.
    changed: BTreeSet<Placed>,
}

/// By tree.
pub(super) type CountedTrees = BTreeMap<TreeId, CountedTree>;

/// Another entry that a job changes: it replaces a member, or passes an error on.
pub(super) struct OtherChange {
    member: MemberId,
    handle: Handle,
    before: Entry,
    after: Option<Entry>,
}

/// Refuses what a board of the kind `top_k` does not take.
pub(super) fn check(definition: &Definition, job: &Job, op: Op, score: Option<&Score>) -> Result<(), Reject> {
    if !definition.is_top_k() {
        return Ok(());
    }
    let refused = |detail: String| Err(Reject::new(RejectCode::BadScore, detail));
    if !matches!(op, Op::Incr | Op::Remove | Op::Hide | Op::Show) {
        let detail =
            format!("a board of the kind top_k takes incr, remove, hide and show; got {}", op.name());
        return refused(detail);
    }
    // A removal from every board has the version for the others.
    if job.version.is_some() && !matches!(job.targets, Targets::EveryBoard) {
        let detail = "a board of the kind top_k takes no version: it would have to be remembered of members \
                      that are gone";
        return refused(detail.to_owned());
    }
    match score.and_then(|score| score.keys().iter().find(|value| **value < 0)) {
        Some(value) => refused(format!("a board of the kind top_k adds 0 or more; got {value}")),
        None => Ok(()),
    }
}

/// A listed entry with another error, which is its last word.
fn with_error_of(entry: &Entry, error: i64) -> Option<Entry> {
    let held = entry.listed()?;
    let (_, others) = held.as_slice().split_last()?;
    let mut words = Words::from_slice(others);
    words.push(encode(error, Order::Ascending));
    Some(Entry { state: EntryState::Listed(words), ..*entry })
}

impl Batch<'_> {
    /// Decides a job on an entry as the job finds it, and what it does to another entry beside.
    ///
    /// # Arguments
    /// `tree`: `None`: the board or the instance has none yet.
    pub(super) fn decide_entry(
        &mut self,
        definition: &Definition,
        tree: Option<TreeId>,
        found: Option<&Entry>,
        request: &Request<'_>,
    ) -> Result<(Decision, Option<OtherChange>), Reject> {
        if !definition.is_top_k() {
            return Ok((decide(definition, found, request)?, None));
        }
        let request = &Request { version: None, ..*request };
        if matches!(request.op, Op::Remove | Op::Hide) {
            let other = tree.and_then(|tree| self.pass_error_on(definition, tree, (request.member, found?)));
            return Ok((decide(definition, found, request)?, other));
        }
        if request.op == Op::Show {
            return self.decide_shown(definition, tree, found, request);
        }
        if found.is_some() {
            return Ok((decide(definition, found, request)?, None));
        }
        let (total, with_error) = tree.map_or((0, 0), |tree| {
            let counted = self.counted_tree(tree);
            (counted.total, counted.with_error)
        });
        let is_full = Some(total) >= definition.capacity;
        let floor = tree.filter(|_| is_full || with_error > 0);
        let Some((tree, worst)) = floor.and_then(|tree| Some((tree, self.worst_entry(tree, None)?))) else {
            return Ok((decide(definition, None, request)?, None));
        };
        // As if the member had been there with the score that it may have had at most.
        let floor = definition.score_of(worst.0.as_slice());
        let error = floor.keys().first().copied().unwrap_or_default();
        let words = definition.entry_words_with(&floor, error, request.at, request.member.as_bytes());
        let state = EntryState::of(words, request.is_hidden);
        let begin = Entry { state, updated_at: request.at, version: None, has_metadata: false };
        let decision = Decision { changed: true, ..decide(definition, Some(&begin), request)? };
        // A hidden entry takes nobody's place.
        let replaced =
            (is_full && !request.is_hidden).then(|| self.other_change(tree, worst, |_| None)).flatten();
        Ok((decision, replaced))
    }

    /// Decides what becomes of a hidden entry that comes back. Where the board is full, it takes the place of
    /// the worst one, or is let go of as that would be. No member that is not listed may have more than the
    /// worst listed one: where that can be, the entry gets as much as it may have had at most.
    fn decide_shown(
        &mut self,
        definition: &Definition,
        tree: Option<TreeId>,
        found: Option<&Entry>,
        request: &Request<'_>,
    ) -> Result<(Decision, Option<OtherChange>), Reject> {
        let decision = decide(definition, found, request)?;
        let (Some(tree), true, Some(words)) =
            (tree, decision.changed, decision.after.and_then(|after| after.listed()))
        else {
            return Ok((decision, None));
        };
        let counted = self.counted_tree(tree);
        let (is_full, with_error) = (Some(counted.total) >= definition.capacity, counted.with_error);
        let Some(worst) = self.worst_entry(tree, None).filter(|_| is_full || with_error > 0) else {
            return Ok((decision, None));
        };
        let key = |words: &Words| definition.score_of(words.as_slice()).keys().first().copied().unwrap_or(0);
        let error = |words: &Words| definition.error_of(words.as_slice()).unwrap_or_default();
        let with = |decision: Decision, (score, error): (&Words, i64)| {
            let (score, reached) =
                (definition.score_of(score.as_slice()), definition.reached_at(words.as_slice()));
            let (reached, member) = (reached.unwrap_or(request.at), request.member.as_bytes());
            let state = EntryState::Listed(definition.entry_words_with(&score, error, reached, member));
            Decision { after: decision.after.map(|after| Entry { state, ..after }), ..decision }
        };
        let is_better = (words, request.member.as_bytes()) < (worst.0, &*worst.1);
        match (is_full, is_better) {
            // Some entry has an error from now on, as for every member that was let go of.
            (true, true) => {
                let others = with_error - u64::from(error(&worst.0) > 0);
                let passed = key(&worst.0).max(error(&words));
                let decision = if others == 0 { with(decision, (&words, passed)) } else { decision };
                Ok((decision, self.other_change(tree, worst, |_| None)))
            }
            (true, false) => {
                let passed = Some(key(&words)).filter(|score| with_error == 0 && *score > 0);
                let other = passed
                    .and_then(|error| self.other_change(tree, worst, |entry| with_error_of(entry, error)));
                Ok((Decision::of(None, true), other))
            }
            (false, true) => Ok((decision, None)),
            (false, false) => {
                let raised = key(&worst.0).saturating_sub(key(&words));
                Ok((with(decision, (&worst.0, error(&words).saturating_add(raised))), None))
            }
        }
    }

    /// What removing an entry does to another one: the worst one that stays takes over its error, if no other
    /// entry has any.
    pub(super) fn pass_error_on(
        &mut self,
        definition: &Definition,
        tree: TreeId,
        (member, leaving): (&MemberId, &Entry),
    ) -> Option<OtherChange> {
        let error = definition.error_of(leaving.listed()?.as_slice()).filter(|error| *error > 0)?;
        if self.counted_tree(tree).with_error > 1 {
            return None;
        }
        let worst = self.worst_entry(tree, Some(member))?;
        self.other_change(tree, worst, |entry| with_error_of(entry, error))
    }

    /// The last listed entry as the batch sees it. Yields the lock.
    ///
    /// # Arguments
    /// `leaving`: a member that does not count.
    fn worst_entry(&mut self, tree: TreeId, leaving: Option<&MemberId>) -> Option<Placed> {
        self.counted_tree(tree);
        let is_leaving = |id: &[u8]| leaving.is_some_and(|member| member.as_bytes() == id);
        let (mut unchanged, mut skipped) = (None, 0);
        'tree: while let Some(window) = self.shard.tree(tree) {
            let counted = self.counted.get_mut(&tree)?;
            for _ in 0..ENTRIES_PER_YIELD {
                let index = window.total().checked_sub(1 + counted.passed + skipped);
                let Some((handle, words)) = index.and_then(|index| window.tree.select(index)) else {
                    break 'tree;
                };
                let id = self.shard.members.id(handle);
                if self.net_change_index.contains_key(&(tree, handle)) {
                    // Behind a skipped entry they are passed again the next time.
                    if skipped == 0 { counted.passed += 1 } else { skipped += 1 }
                } else if is_leaving(id) {
                    skipped += 1;
                } else {
                    unchanged = Some((words, id.into(), handle));
                    break 'tree;
                }
            }
            self.shard.yield_if_due();
        }
        let mut changed = self.counted.get(&tree)?.changed.iter().rev();
        unchanged.max(changed.find(|(_, id, _)| !is_leaving(id)).cloned())
    }

    fn other_change(
        &self,
        tree: TreeId,
        (_, id, handle): Placed,
        after: impl FnOnce(&Entry) -> Option<Entry>,
    ) -> Option<OtherChange> {
        let member = std::str::from_utf8(&id).ok().and_then(|id| MemberId::new(id).ok())?;
        let before = self.entry(tree, handle)?;
        Some(OtherChange { member, handle, before, after: after(&before) })
    }

    /// Records what a job does to another entry than its member's.
    pub(super) fn record_other(
        &mut self,
        board: (&BoardName, Incarnation),
        tree: TreeId,
        other: OtherChange,
        sequence: Sequence,
    ) {
        let OtherChange { member, handle, before, after } = other;
        self.hash_entry(board, &member, (Some(&before), after.as_ref()));
        self.change(tree, handle, Some(&before), after);
        let decision = Decision::of(after, true);
        self.plan_metadata((&member, None), tree, handle, Some(&before), &decision, sequence);
        self.note_counted(tree, (&member, handle), (Some(&before), after.as_ref()));
    }

    /// Notes an entry of a `top_k` board that the batch has changed.
    pub(super) fn note_counted(
        &mut self,
        tree: TreeId,
        (member, handle): (&MemberId, Handle),
        (before, after): (Option<&Entry>, Option<&Entry>),
    ) {
        let none = encode(0, Order::Ascending);
        let has_error = |words: &Words| words.as_slice().last().is_some_and(|error| *error > none);
        let [before, after] = [before, after].map(|entry| entry.and_then(Entry::listed));
        let counted = self.counted_tree(tree);
        if let Some(words) = before {
            counted.total -= 1;
            counted.with_error -= u64::from(has_error(&words));
            counted.changed.remove(&(words, member.as_bytes().into(), handle));
        }
        if let Some(words) = after {
            counted.total += 1;
            counted.with_error += u64::from(has_error(&words));
            counted.changed.insert((words, member.as_bytes().into(), handle));
        }
    }

    /// Before the batch changes the tree for the first time, this finds it as the shard has it.
    fn counted_tree(&mut self, tree: TreeId) -> &mut CountedTree {
        let window = self.shard.tree(tree);
        self.counted.entry(tree).or_insert_with(|| CountedTree {
            total: window.map_or(0, WindowTree::total),
            with_error: window.map_or(0, WindowTree::with_error),
            ..CountedTree::default()
        })
    }
}

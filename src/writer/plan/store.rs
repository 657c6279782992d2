//! Plans a result that is stored: all entries of a board are replaced by what the shard's part of other
//! boards makes at the message's place in the log.
//!
//! Knows: that all entries of a member are on one shard, so that the shard needs nothing of the others, and
//! every replica comes to the same. Must not know: how scores are combined (`board::combine`).
//!
//! What is replaced and what replaces it may be a hundred thousand entries. So it is applied in many steps,
//! as entries that expire are: readers of other boards have their turn between two of them, and those of this
//! board wait for the last one. It is refused as a whole where it would be more.

use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::board::{
    COMBINED_ENTRIES_MAX, CombinedColumn, CombinedScores, Definition, ENTRIES_MAX, Key, KeyType,
    combine_scores, decode, why_no_result,
};
use crate::job::{Op, Reject, RejectCode};
use crate::state::{
    Applied, Entry, EntryParts, IdBytes, StoreOrder, StoreRange, StoreSource, TreeId, WindowTree,
};
use crate::storage::codec::RejectRecord;
use crate::tree::{Handle, Words, compare_ids};
use crate::types::{BoardName, MemberId, Score, count};
use crate::writer::decide::{Request, decide, reject};
use crate::writer::plan::Batch;
use crate::writer::plan::jobs::BoardSource;

/// Entries that one step changes: few enough to be applied in a fifth of a millisecond.
const CHANGES_PER_STEP: usize = if cfg!(test) { 3 } else { 64 };
/// Entries that are looked at before the lock is yielded.
const ENTRIES_PER_YIELD: usize = if cfg!(test) { 5 } else { 256 };
/// The same for those that are changed, or looked up.
const MEMBERS_PER_YIELD: usize = 16;
/// Handles whose hidden entries are looked at before the lock is yielded.
const HANDLES_PER_YIELD: u32 = if cfg!(test) { 4 } else { 4_096 };

/// What the batch has changed of a tree.
type Changed = HashMap<Handle, Option<Entry>, FixedState>;

/// A board whose entries are combined, as it is when the message is planned.
struct SourceTree {
    tree: TreeId,
    key: Key,
    total: u64,
}

impl Batch<'_> {
    /// Replaces all entries of a board by a result, and returns how many it has. If it is refused, a
    /// rejection is recorded.
    pub(super) fn store(&mut self, order: &StoreOrder, applied: Applied) -> Result<u64, Reject> {
        let stored = self.try_store(order, applied);
        if let Err(reject) = &stored {
            self.hash_reject(0, reject.code);
            self.rejects.push(RejectRecord {
                sequence: applied.sequence,
                index: 0,
                code: reject.code,
                detail: reject.detail.clone(),
                job: format!("a result to be stored on {}", order.board).into_bytes(),
                time: self.time,
                board: self.board(&order.board).map(|_| order.board.clone()),
            });
        }
        stored
    }

    fn try_store(&mut self, order: &StoreOrder, applied: Applied) -> Result<u64, Reject> {
        let name = &order.board;
        if self.may_be_read_only {
            self.check_service_writable()?;
            self.check_board_writable(name)?;
        }
        let source = self.source_of(name)?;
        let Some(definition) = source.definition().cloned() else {
            return Err(Reject::new(RejectCode::UnknownBoard, format!("there is no board {name}")));
        };
        if let Some(why) = why_no_result(&definition) {
            return Err(Reject::new(RejectCode::BadScore, format!("the board {name} {why}")));
        }
        let sums = self.combined(order)?;
        let before = match source.tree() {
            Some(tree) => self.handles_with_words(tree),
            None => Vec::new(),
        };
        if count(before.len()) > ENTRIES_MAX {
            return Err(too_many(count(before.len()), name));
        }
        let changes = self.changes_of_result(&definition, sums, before)?;
        let (tree, incarnation) = match source {
            BoardSource::OnShard(tree, incarnation, _) => (tree, incarnation),
            BoardSource::OnNode { .. } | BoardSource::New if changes.is_empty() => return Ok(0),
            BoardSource::OnNode { definition, incarnation } => {
                (self.define(name, incarnation, None, definition), incarnation)
            }
            BoardSource::New => unreachable!("it has no definition"),
        };
        self.note_job_on(&definition, name);
        let mut entries = 0;
        for (index, (member, (handle, score))) in changes.iter().enumerate() {
            if index % MEMBERS_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            if index > 0 && index % CHANGES_PER_STEP == 0 {
                self.close_step_ahead();
            }
            let before = self.entry(tree, *handle);
            let request = match score {
                Some(score) => Request {
                    op: Op::Set,
                    score: Some(score),
                    is_hidden: self.is_hidden(member, name),
                    metadata: Some(false),
                    ..Request::removal(member, applied.timestamp)
                },
                None => Request::removal(member, applied.timestamp),
            };
            let decision = decide(&definition, before.as_ref(), &request)?;
            entries += u64::from(decision.after.as_ref().is_some_and(|entry| entry.listed().is_some()));
            self.hash_entry((name, incarnation), member, (before.as_ref(), decision.after.as_ref()));
            self.change(tree, *handle, before.as_ref(), decision.after);
            self.note_expiring(&definition, name, (tree, *handle), member, decision.after.as_ref());
            self.plan_metadata((member, None), tree, *handle, before.as_ref(), &decision, applied.sequence);
        }
        Ok(entries)
    }

    /// What becomes of each member that the board has or the result: its score, or none. By id, because
    /// that order is the same on all replicas. All scores are judged before any entry is changed.
    fn changes_of_result(
        &mut self,
        definition: &Definition,
        sums: CombinedScores,
        before: Vec<Handle>,
    ) -> Result<BTreeMap<MemberId, (Handle, Option<Score>)>, Reject> {
        let key_type = definition.keys.first().map_or(KeyType::Float, |key| key.key_type);
        let mut scores: HashMap<Handle, Option<Score>, FixedState> = HashMap::default();
        scores.extend(before.into_iter().map(|handle| (handle, None)));
        for (handle, sum) in sums {
            let number = sum.number(key_type).ok_or_else(|| {
                let detail = "a score of the result is none of the board: not one of 64 bits, or a fraction";
                Reject::new(RejectCode::Overflow, detail)
            })?;
            let score = Score::of_numbers(&[number]);
            let score = score.map_err(|why| Reject::new(RejectCode::BadScore, why.to_string()))?;
            let typed = definition.typed(&score).and_then(|typed| definition.admit(&typed).map(|()| typed));
            let typed = typed.map_err(|why| reject(definition, why, &score))?;
            scores.insert(handle, Some(typed.into_owned()));
        }
        let new = self.new_ids();
        let mut changes = BTreeMap::new();
        for (index, (handle, score)) in scores.into_iter().enumerate() {
            if index % ENTRIES_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            let id = new.get(&handle).map_or_else(|| self.shard.members.id(handle), |id| &id[..]);
            let member = str::from_utf8(id).ok().and_then(|id| MemberId::new(id).ok());
            if let Some(member) = member {
                changes.insert(member, (handle, score));
            }
        }
        Ok(changes)
    }

    /// Combines the sources.
    fn combined(&mut self, order: &StoreOrder) -> Result<CombinedScores, Reject> {
        let sources: Vec<Option<SourceTree>> =
            order.sources.iter().map(|source| self.source_tree(source)).collect();
        let totals: Vec<u64> =
            sources.iter().map(|source| source.as_ref().map_or(0, |source| source.total)).collect();
        // How many entries a range has shows only when they are counted.
        let has_range = order.sources.iter().any(|source| source.range.is_some());
        let base = if has_range { Ok(None) } else { order.combination.base(&totals) };
        let base = base.map_err(|entries| too_many(entries, &order.board))?;
        let is_float = |source: &SourceTree| source.key.key_type == KeyType::Float;
        let numbers = match order.numbers {
            KeyType::Integer if !sources.iter().flatten().any(is_float) => KeyType::Integer,
            _ => KeyType::Float,
        };
        let of_base = match base.and_then(|base| sources.get(base)) {
            Some(Some(source)) => Some(self.listed(source.tree, None)?),
            _ => None,
        };
        let mut columns = Vec::with_capacity(sources.len());
        for (nth, (StoreSource { weight, range, .. }, source)) in
            order.sources.iter().zip(&sources).enumerate()
        {
            let weight = *weight;
            let Some(source) = source else {
                columns.push(CombinedColumn { entries: Vec::new(), is_float: false, weight });
                continue;
            };
            let entries = match &of_base {
                Some(of_base) if base == Some(nth) => of_base.clone(),
                Some(of_base) => self.looked_up(source.tree, of_base),
                None if base.is_some() => Vec::new(),
                None => self.listed(source.tree, range.as_ref())?,
            };
            let score = |words: &Words| {
                decode(words.as_slice().first().copied().unwrap_or_default(), source.key.order)
            };
            let entries = entries.iter().map(|(handle, words)| (*handle, score(words))).collect();
            columns.push(CombinedColumn { entries, is_float: is_float(source), weight });
        }
        let how = (order.combination, order.aggregate);
        Ok(self.shard.unlocked(|| combine_scores(columns, how, numbers)))
    }

    /// `None`: the shard has no such board, or one that is none for this.
    fn source_tree(&self, source: &StoreSource) -> Option<SourceTree> {
        let board = self.board(&source.board)?;
        let [key] = &board.definition.keys[..] else { return None };
        let is_of_life = source.range.as_ref().is_none_or(|range| range.incarnation == board.incarnation);
        if board.definition.is_top_k() || !is_of_life {
            return None;
        }
        let (tree, key) = (board.tree, key.clone());
        // It was cleared or dropped, and that has not come here yet.
        if self.next_incarnation(&source.board.board()).is_some() {
            return None;
        }
        let total = self.shard.tree(tree).map_or(0, WindowTree::total);
        // At most so many have come in this batch.
        let new = self.net_changes.iter().filter(|change| change.tree == tree).count();
        Some(SourceTree { tree, key, total: total + count(new) })
    }

    fn changed_in(&self, tree: TreeId) -> Changed {
        let changed = self.net_changes.iter().filter(|change| change.tree == tree);
        let entry = |at| self.packed.get(at).map(EntryParts::to_entry);
        changed.map(|change| (change.handle, entry(change.after))).collect()
    }

    /// The listed entries of a board or an instance, or those of a range of them.
    fn listed(&mut self, tree: TreeId, range: Option<&StoreRange>) -> Result<Vec<(Handle, Words)>, Reject> {
        let (changed, new) = (self.changed_in(tree), self.new_ids());
        let mut found = Vec::new();
        for (handle, entry) in &changed {
            let id = new.get(handle).map_or_else(|| self.shard.members.id(*handle), |id| &id[..]);
            let is_within = |words: &Words| {
                range.is_none_or(|range| !range.first.removes(words, id) && !range.last.removes(words, id))
            };
            let words = entry.as_ref().and_then(Entry::listed).filter(is_within);
            found.extend(words.map(|words| (*handle, words)));
        }
        let mut at = range.map_or(0, |range| self.count_before(tree, range));
        loop {
            let Some(window) = self.shard.tree(tree) else { return Ok(found) };
            let slice: Vec<(Handle, Words)> = window.tree.cursor_at(at).take(ENTRIES_PER_YIELD).collect();
            at += count(slice.len());
            let is_last = slice.len() < ENTRIES_PER_YIELD;
            for (handle, words) in slice {
                if let Some(range) = range
                    && range.last.removes(&words, self.shard.members.id(handle))
                {
                    return Ok(found);
                }
                if !changed.contains_key(&handle) {
                    found.push((handle, words));
                }
            }
            if count(found.len()) > ENTRIES_MAX {
                return Err(Reject::new(RejectCode::TooLarge, most_words(count(found.len()))));
            }
            if is_last {
                return Ok(found);
            }
            self.shard.yield_if_due();
        }
    }

    /// How many entries of a tree are before a range.
    fn count_before(&self, tree: TreeId, range: &StoreRange) -> u64 {
        let Some(window) = self.shard.tree(tree) else { return 0 };
        let (words, members) = (range.first.words.as_slice(), &self.shard.members);
        let own = range.first.member.as_deref().unwrap_or_default();
        window.tree.count_before(words, &mut |handle| compare_ids(words, members.id(handle), own))
    }

    /// The ids of members that this batch has brought.
    fn new_ids(&self) -> HashMap<Handle, IdBytes, FixedState> {
        self.new_members.iter().map(|(id, handle)| (*handle, id.clone())).collect()
    }

    /// What a board has of the members of another one's entries.
    fn looked_up(&mut self, tree: TreeId, of: &[(Handle, Words)]) -> Vec<(Handle, Words)> {
        let mut found = Vec::with_capacity(of.len());
        for (index, (handle, _)) in of.iter().enumerate() {
            if index % MEMBERS_PER_YIELD == 0 {
                self.shard.yield_if_due();
            }
            let words = self.entry(tree, *handle).and_then(|entry| entry.listed());
            found.extend(words.map(|words| (*handle, words)));
        }
        found
    }

    /// Members with a score on a board, hidden or not.
    fn handles_with_words(&mut self, tree: TreeId) -> Vec<Handle> {
        let changed = self.changed_in(tree);
        let now =
            changed.iter().filter(|(_, entry)| entry.as_ref().is_some_and(|entry| entry.words().is_some()));
        let mut found: Vec<Handle> = now.map(|(handle, _)| *handle).collect();
        let mut at = 0;
        while let Some(window) = self.shard.tree(tree)
            && count(found.len()) <= ENTRIES_MAX
        {
            let slice: Vec<Handle> =
                window.tree.cursor_at(at).take(ENTRIES_PER_YIELD).map(|(handle, _)| handle).collect();
            if slice.is_empty() {
                break;
            }
            at += count(slice.len());
            found.extend(slice.into_iter().filter(|handle| !changed.contains_key(handle)));
            self.shard.yield_if_due();
        }
        let mut from = 0;
        while let Some(window) = self.shard.tree(tree).filter(|window| window.hidden_count() > 0)
            && from < self.shard.members.handle_space()
        {
            let end = from.saturating_add(HANDLES_PER_YIELD);
            let hidden = window.hidden_in(from..end).into_iter().map(|(handle, _)| handle);
            found.extend(hidden.filter(|handle| !changed.contains_key(handle)));
            from = end;
            self.shard.yield_if_due();
        }
        found
    }
}

fn too_many(entries: u64, board: &BoardName) -> Reject {
    Reject::new(RejectCode::TooLarge, format!("for {board}: {}", most_words(entries)))
}

fn most_words(entries: u64) -> String {
    format!(
        "{entries} entries of a shard are to be looked at, or replaced, and up to {COMBINED_ENTRIES_MAX} are; name \
         boards that have fewer"
    )
}

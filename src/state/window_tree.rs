//! The entries of one (board, window, shard): the counted tree, and the parts of entries that it cannot hold.
//!
//! Knows: how an [`Entry`] is split into tree words and extras, and which parts the next checkpoint must
//! write. Must not know: disks, or jobs.

use std::ops::Range;
use std::sync::Arc;

use crate::board::Definition;
use crate::state::entry::{Entry, EntryState, Extra, TreeId, Unlisted};
use crate::state::extras::{Extras, UnlistedPlace};
use crate::state::members::Members;
use crate::state::retired::Retired;
use crate::tree::{Edit, Handle, PageSet, PreImagePieces, Standing, Tree, Words};
use crate::types::{BoardName, Sequence, Timestamp, count};

/// Handles per member page and page of extras on disk.
pub const ENTRIES_PER_PAGE: u32 = if cfg!(test) { 4 } else { 256 };

/// How many changes ahead memory is prefetched.
const LOOK_AHEAD: usize = 16;

/// A new value for one member's entry. Absolute, so that replaying it changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub tree: TreeId,
    pub handle: Handle,
    pub after: Option<Entry>,
}

pub struct WindowTree {
    /// The board that it belongs to.
    pub board: BoardName,
    pub definition: Arc<Definition>,
    pub tree: Tree,
    /// The sequence of the last step that changed an entry; see
    /// [`Shard::changed`](crate::state::Shard::changed).
    pub(super) changed: Sequence,
    /// Boxed: most boards are small and have none of it, and every byte here is paid for each board.
    sparse_parts: Option<Box<SparseParts>>,
}

/// Parts that most boards do not have most of the time.
#[derive(Default)]
struct SparseParts {
    extras: Option<Box<Extras>>,
    /// What the next checkpoint writes; `None` if nothing changed since the last one began.
    dirty: Option<Box<DirtyEntries>>,
}

/// The dirty pages of one tree, beside the tree's own.
#[derive(Debug, Default)]
pub struct DirtyEntries {
    /// Member pages.
    pub pages: PageSet,
    /// Pages of extras.
    pub extras: PageSet,
}

impl DirtyEntries {
    /// Memory held, itself included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.pages.bytes() + self.extras.bytes()
    }
}

/// A place in a walk over all entries.
#[derive(Default)]
pub(super) struct EntriesPlace {
    listed: u64,
    unlisted: UnlistedPlace,
}

/// Update times by handle, as the tie-breaks hold them; empty for boards whose tie-break is not a time.
pub struct TieBreakTimes(Vec<Timestamp>);

impl TieBreakTimes {
    fn of(&self, handle: Handle) -> Option<Timestamp> {
        self.0.get(usize::try_from(handle.0).ok()?).copied()
    }
}

impl WindowTree {
    pub fn new(board: BoardName, definition: Arc<Definition>) -> Self {
        let tree = Tree::new(definition.columns());
        Self::from_tree(board, definition, tree)
    }

    /// A loaded tree, whose extras follow with [`WindowTree::load_extra`].
    pub fn from_tree(board: BoardName, definition: Arc<Definition>, tree: Tree) -> Self {
        let mut window = Self { board, definition, tree, changed: Sequence(0), sparse_parts: None };
        if window.definition.is_top_k() {
            let with_error = window.tree.cursor_at(0).filter(|(_, words)| window.has_error(words));
            window.count_errors(0, count(with_error.count()));
        }
        window
    }

    /// How many listed entries have an error above 0. O(1).
    pub fn with_error(&self) -> u64 {
        self.extras().map_or(0, |extras| extras.with_error)
    }

    fn has_error(&self, words: &Words) -> bool {
        self.definition.error_of(words.as_slice()).is_some_and(|error| error > 0)
    }

    fn count_errors(&mut self, before: u64, after: u64) {
        if before != after {
            let extras = self.extras_mut();
            extras.with_error = extras.with_error + after - before;
        }
    }

    fn extras(&self) -> Option<&Extras> {
        self.sparse_parts.as_ref()?.extras.as_deref()
    }

    fn extras_mut(&mut self) -> &mut Extras {
        self.sparse_parts.get_or_insert_default().extras.get_or_insert_default()
    }

    fn dirty_mut(&mut self) -> &mut DirtyEntries {
        self.sparse_parts.get_or_insert_default().dirty.get_or_insert_default()
    }

    /// Frees parts that are empty.
    fn fit(&mut self) {
        let Some(parts) = &mut self.sparse_parts else { return };
        if parts.extras.as_ref().is_some_and(|extras| extras.is_empty()) {
            parts.extras = None;
        }
        if parts.extras.is_none() && parts.dirty.is_none() {
            self.sparse_parts = None;
        }
    }

    /// Loads an entry's extra from a checkpoint, after the tree's own pages.
    pub fn load_extra(&mut self, handle: Handle, extra: &Extra) {
        let state = match (self.tree.get(handle), &extra.unlisted) {
            // It was hidden or removed after the tree's pages were captured. The replay of that change
            // repeats it.
            (Some(words), _) => EntryState::Listed(words),
            (None, Some(Unlisted::Hidden(words))) => EntryState::Hidden(**words),
            // The extra is of a listed entry, but its words are gone: the entry was removed later. Treat it
            // as removed, as the replay of that change expects.
            (None, Some(Unlisted::Removed) | None) => EntryState::Removed,
        };
        let (updated_at, version, has_metadata) = (extra.updated_at, extra.version, extra.has_metadata);
        let entry = Entry { state, updated_at, version, has_metadata };
        self.set_extra(handle, Some(&entry));
        self.note_loaded(handle);
    }

    /// If an extra was not kept, later changes of its entry would not rewrite its record, which would outlive
    /// the member. So its page is dirty.
    fn note_loaded(&mut self, handle: Handle) {
        if self.extras().is_none_or(|extras| !extras.contains(handle)) {
            self.dirty_mut().extras.insert(handle.0 / ENTRIES_PER_PAGE);
        }
    }

    /// As [`WindowTree::load_extra`], for many at once.
    ///
    /// # Arguments
    /// `tie_break_times`: from [`WindowTree::tie_break_times`]. It avoids looking each entry up in the tree,
    /// which would dominate.
    pub fn load_extras(&mut self, extras: &[(Handle, Extra)], tie_break_times: Option<&TieBreakTimes>) {
        for (at, (handle, extra)) in extras.iter().enumerate() {
            if let Some((ahead, _)) = extras.get(at + LOOK_AHEAD) {
                self.prefetch_extra(*ahead);
            }
            match tie_break_times {
                Some(tie_break_times) if self.tree.contains(*handle) => {
                    let extras = self.extras_mut();
                    extras.load_listed(*handle, extra, tie_break_times.of(*handle));
                    self.note_loaded(*handle);
                }
                _ => self.load_extra(*handle, extra),
            }
        }
        self.fit();
    }

    /// The times in the tie-breaks of all listed entries, for loading many extras. `None` if the tree lists
    /// so few of the shard's members that looking each up is faster.
    pub fn tie_break_times(&self, handle_space: u32) -> Option<TieBreakTimes> {
        if self.tree.len() * 4 < u64::from(handle_space) {
            return None;
        }
        let space = usize::try_from(handle_space).ok()?;
        let mut times = TieBreakTimes(Vec::new());
        for (handle, words) in self.tree.cursor_at(0) {
            let Some(time) = self.definition.reached_at(words.as_slice()) else { break };
            if times.0.is_empty() {
                times.0.resize(space, Timestamp::default());
            }
            if let Some(slot) = usize::try_from(handle.0).ok().and_then(|at| times.0.get_mut(at)) {
                *slot = time;
            }
        }
        Some(times)
    }

    /// The parts of an entry that the tree does not hold, for a checkpoint. Most entries have none.
    pub fn extra(&self, handle: Handle) -> Option<Extra> {
        let extras = self.extras()?;
        let tie_break_time =
            self.tree.get(handle).and_then(|words| self.definition.reached_at(words.as_slice()));
        extras.extra(handle, tie_break_time)
    }

    /// Whether any entry's metadata is on disk.
    pub fn has_metadata(&self) -> bool {
        self.extras().is_some_and(Extras::has_metadata)
    }

    /// Entries, listed or not, whose metadata is on disk.
    pub fn with_metadata(&self) -> impl Iterator<Item = Handle> {
        self.extras().into_iter().flat_map(Extras::with_metadata)
    }

    /// Entries that are not listed.
    pub fn unlisted(&self) -> impl Iterator<Item = Handle> {
        self.extras().into_iter().flat_map(Extras::unlisted_handles)
    }

    pub fn hidden_count(&self) -> usize {
        self.extras().map_or(0, Extras::hidden_count)
    }

    /// Hidden entries with handles in a range, with their words. Costs as much as the range is long, or as
    /// there are hidden entries if these are fewer.
    pub fn hidden_in(&self, handles: Range<u32>) -> Vec<(Handle, Words)> {
        self.extras().map_or_else(Vec::new, |extras| extras.hidden_in(handles))
    }

    pub fn has_entry(&self, handle: Handle) -> bool {
        self.tree.contains(handle) || self.extras().is_some_and(|extras| extras.is_unlisted(handle))
    }

    /// Every member with an entry here, the listed ones first.
    pub fn handles(&self) -> impl Iterator<Item = Handle> {
        let listed = self.tree.cursor_at(0).map(|(handle, _)| handle);
        listed.chain(self.unlisted())
    }

    /// The members of a slice of the entries, at most `limit`; fewer at the end. Each is returned once, if
    /// nothing changes meanwhile.
    pub(super) fn handles_from(&self, place: &mut EntriesPlace, limit: usize) -> Vec<Handle> {
        let mut slice: Vec<Handle> =
            self.tree.cursor_at(place.listed).take(limit).map(|(handle, _)| handle).collect();
        place.listed += count(slice.len());
        if let Some(extras) = self.extras() {
            extras.unlisted_from(&mut place.unlisted, limit, &mut slice);
        }
        slice
    }

    /// Turns the tree of a dropped board into one whose members are to be released.
    pub fn retire(self) -> Retired {
        let extras = self.sparse_parts.and_then(|parts| parts.extras);
        Retired::new(self.tree, extras.map(|extras| *extras).unwrap_or_default())
    }

    /// A member's entry.
    pub fn entry(&self, handle: Handle) -> Option<Entry> {
        match (self.tree.get(handle), self.extras()) {
            (Some(words), extras) => Some(self.listed(handle, words, extras)),
            (None, Some(extras)) => extras.unlisted(handle),
            (None, None) => None,
        }
    }

    /// A member's entry and its rank counts; `None` if it is not listed.
    pub fn ranking(&self, handle: Handle) -> Option<ShardRanking> {
        let standing = self.tree.standing(handle, self.definition.keys.len())?;
        Some(self.ranking_at(&standing, self.beside(handle), self.tree.len()))
    }

    /// What of an entry is beside its words, as far as rankings tell it: a time that is stored, and whether
    /// it has metadata.
    fn beside(&self, handle: Handle) -> (Option<Timestamp>, bool) {
        self.extras().map_or((None, false), |extras| extras.beside(handle))
    }

    fn ranking_at(
        &self,
        standing: &Standing,
        (stored, has_metadata): (Option<Timestamp>, bool),
        total: u64,
    ) -> ShardRanking {
        let updated_at = stored.or_else(|| self.definition.reached_at(standing.words.as_slice()));
        ShardRanking {
            words: standing.words,
            updated_at: updated_at.unwrap_or_default(),
            has_metadata,
            better: standing.better,
            tied: standing.through - standing.better,
            ahead: standing.index,
            total,
        }
    }

    fn listed(&self, handle: Handle, words: Words, extras: Option<&Extras>) -> Entry {
        let tie_break_time = self.definition.reached_at(words.as_slice());
        match extras {
            Some(extras) => extras.listed(handle, words, tie_break_time),
            None => Entry {
                state: EntryState::Listed(words),
                updated_at: tie_break_time.unwrap_or_default(),
                version: None,
                has_metadata: false,
            },
        }
    }

    /// Prefetches what planning a change of this handle's entry reads beside the tree.
    pub fn prefetch_extra(&self, handle: Handle) {
        if let Some(extras) = self.extras() {
            extras.prefetch(handle);
        }
    }

    /// Prefetches what applying these changes will touch; see [`Tree::warm`].
    pub fn warm(&self, changes: &[Change], members: &Members, pieces: &mut PreImagePieces) {
        let edit = |change: &Change| Edit {
            handle: change.handle,
            new: change.after.as_ref().and_then(Entry::listed),
        };
        // Members that are about to be added have no id yet that the tree could compare.
        let known = |change: &&Change| change.handle.0 < members.handle_space();
        let edits: Vec<Edit> = changes.iter().filter(known).map(edit).collect();
        self.tree.warm(&edits, members, pieces);
        let leaving = changes.iter().filter(known).filter(|change| change.after.is_none());
        let leaving: Vec<Handle> = leaving.map(|change| change.handle).collect();
        members.warm_removals(&leaving);
    }

    /// Applies one change. Returns the rankings of its entry just before and just after.
    pub fn apply_ranked(
        &mut self,
        change: &Change,
        members: &mut Members,
    ) -> (Option<ShardRanking>, Option<ShardRanking>) {
        let (handle, score_words) = (change.handle, self.definition.keys.len());
        let (beside, total) = (self.beside(handle), self.tree.len());
        let (edit, leaves) = self.change_beside_tree(change, members);
        let (before, after) = self.tree.apply_standing(&edit, score_words, &*members);
        if leaves {
            members.remove_tree(handle, change.tree);
        }
        let before = before.map(|before| self.ranking_at(&before, beside, total));
        let beside = change.after.map_or((None, false), |after| (Some(after.updated_at), after.has_metadata));
        let total = self.tree.len();
        (before, after.map(|after| self.ranking_at(&after, beside, total)))
    }

    /// Applies changes that name this tree, each handle at most once.
    pub fn apply(&mut self, changes: &[Change], members: &mut Members) {
        let mut edits = Vec::with_capacity(changes.len());
        let mut leaving = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            if let Some(ahead) = changes.get(at + LOOK_AHEAD) {
                self.tree.prefetch_locator(ahead.handle);
                self.prefetch_extra(ahead.handle);
            }
            let (edit, leaves) = self.change_beside_tree(change, members);
            if leaves {
                leaving.push((change.handle, change.tree));
            }
            edits.push(edit);
        }
        self.tree.apply(&edits, &*members);
        // After the tree's edits: these compare ids, also those of members that leave.
        for (handle, tree) in leaving {
            members.remove_tree(handle, tree);
        }
    }

    /// Makes a change beside the tree. Returns what is to be edited there, and whether the member leaves it.
    fn change_beside_tree(&mut self, change: &Change, members: &mut Members) -> (Edit, bool) {
        let handle = change.handle;
        let known = self.has_entry(handle);
        let listed = change.after.as_ref().and_then(Entry::listed);
        if !known && change.after.is_some() {
            members.add_tree(handle, change.tree);
        }
        if self.definition.is_top_k() {
            let [before, after] = [self.tree.get(handle), listed]
                .map(|words| u64::from(words.is_some_and(|words| self.has_error(&words))));
            self.count_errors(before, after);
        }
        let changed = self.set_extra(handle, change.after.as_ref());
        let dirty = self.dirty_mut();
        dirty.pages.insert(handle.0 / ENTRIES_PER_PAGE);
        if changed {
            dirty.extras.insert(handle.0 / ENTRIES_PER_PAGE);
        }
        (Edit { handle, new: listed }, known && change.after.is_none())
    }

    /// Stores the parts of an entry that the tree cannot hold. Returns whether anything is or was stored.
    fn set_extra(&mut self, handle: Handle, entry: Option<&Entry>) -> bool {
        // The tie-break of a listed entry may hold its update time; for most entries it does.
        let listed = entry.and_then(Entry::listed);
        let tie_break_time = listed.and_then(|words| self.definition.reached_at(words.as_slice()));
        let needs_no_extra = |entry: &Entry| {
            tie_break_time == Some(entry.updated_at) && entry.version.is_none() && !entry.has_metadata
        };
        if self.extras().is_none() && entry.is_none_or(needs_no_extra) {
            return false;
        }
        let changed = self.extras_mut().set(handle, entry, tie_break_time);
        if self.extras().is_some_and(Extras::is_empty) {
            self.fit();
        }
        changed
    }

    /// Begins a checkpoint. The tree captures its own pages from now on; the other dirty pages are returned.
    /// `None`: nothing at all is dirty. O(1) in the number of entries and changes.
    pub fn begin_checkpoint(&mut self) -> Option<Box<DirtyEntries>> {
        self.tree.begin_capture();
        let dirty = self.sparse_parts.as_mut().and_then(|parts| parts.dirty.take());
        self.fit();
        if dirty.is_none() && self.tree.pending_pages() > 0 { Some(Box::default()) } else { dirty }
    }

    /// Marks the pages of a failed checkpoint dirty again, except the tree's own.
    pub fn put_back(&mut self, dirty: Box<DirtyEntries>) {
        let place = &mut self.sparse_parts.get_or_insert_default().dirty;
        match place {
            None => *place = Some(dirty),
            Some(due) => {
                due.pages.merge(dirty.pages);
                due.extras.merge(dirty.extras);
            }
        }
    }

    /// Marks everything dirty: for a rebuild.
    pub fn mark_all_dirty(&mut self, handle_space: u32) {
        self.tree.mark_all_dirty();
        let has_extras = self.extras().is_some();
        let due = self.dirty_mut();
        due.pages.extend(0..handle_space.div_ceil(ENTRIES_PER_PAGE));
        if has_extras {
            due.extras.extend(0..handle_space.div_ceil(ENTRIES_PER_PAGE));
        }
    }

    /// Members counted and listed.
    pub fn total(&self) -> u64 {
        self.tree.len()
    }

    /// Heap memory, in bytes, without the struct itself. O(1).
    pub fn bytes(&self) -> usize {
        let sparse_bytes = self.sparse_parts.as_deref().map_or(0, |parts| {
            let extras = parts.extras.as_deref().map_or(0, Extras::bytes);
            size_of::<SparseParts>() + extras + parts.dirty.as_deref().map_or(0, DirtyEntries::bytes)
        });
        self.tree.bytes() + sparse_bytes
    }
}

/// An entry and its rank counts within its own shard, at one applied sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardRanking {
    pub words: Words,
    pub updated_at: Timestamp,
    pub has_metadata: bool,
    /// Entries of this shard with a strictly better score.
    pub better: u64,
    /// Entries of this shard with the same score, this one included.
    pub tied: u64,
    /// Entries of this shard that come before it: better, or equal and ahead by the tie rule.
    pub ahead: u64,
    /// All entries of this shard.
    pub total: u64,
}

#[cfg(test)]
#[path = "window_tree_tests.rs"]
mod tests;

//! The parts of a board's entries that the tree cannot hold: versions, times, metadata flags, and entries
//! that are not listed.
//!
//! Each part has its own map by handle, so that a member with a version pays for the version alone. Must not
//! know the tree: the caller says whether an entry's words hold its time.

use std::ops::Range;

use crate::state::entry::{Entry, EntryState, Extra, Unlisted};
use crate::state::handle_map::{HandleMap, HandleSet, MapPlace};
use crate::tree::{Handle, Words};
use crate::types::Timestamp;

#[derive(Default)]
pub(super) struct Extras {
    versions: HandleMap<u64>,
    /// Update times that the entries' words do not hold.
    times: HandleMap<Timestamp>,
    /// Members with metadata on disk.
    metadata: HandleSet,
    hidden: HandleMap<Words>,
    removed: HandleSet,
    /// On boards of the kind `top_k`: how many listed entries have an error above 0.
    pub(super) with_error: u64,
}

/// A position in a walk over the unlisted entries.
#[derive(Default)]
pub(super) struct UnlistedPlace {
    hidden: MapPlace,
    removed: MapPlace,
}

impl Extras {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0 && self.with_error == 0
    }

    /// Number of values stored.
    pub(super) fn len(&self) -> usize {
        self.versions.len() + self.times.len() + self.metadata.len() + self.hidden.len() + self.removed.len()
    }

    pub(super) fn contains(&self, handle: Handle) -> bool {
        self.versions.contains(handle)
            || self.times.contains(handle)
            || self.metadata.contains(handle)
            || self.is_unlisted(handle)
    }

    pub(super) fn is_unlisted(&self, handle: Handle) -> bool {
        self.hidden.contains(handle) || self.removed.contains(handle)
    }

    /// A listed entry with these words. `tie_break_time` is the time that the words hold; a stored time takes
    /// precedence.
    pub(super) fn listed(&self, handle: Handle, words: Words, tie_break_time: Option<Timestamp>) -> Entry {
        Entry {
            state: EntryState::Listed(words),
            updated_at: self.times.get(handle).or(tie_break_time).unwrap_or_default(),
            version: self.versions.get(handle),
            has_metadata: self.metadata.contains(handle),
        }
    }

    /// An entry's time, if one is stored, and whether it has metadata.
    pub(super) fn beside(&self, handle: Handle) -> (Option<Timestamp>, bool) {
        (self.times.get(handle), self.metadata.contains(handle))
    }

    /// An entry that is not listed.
    pub(super) fn unlisted(&self, handle: Handle) -> Option<Entry> {
        let state = match self.hidden.get(handle) {
            Some(words) => EntryState::Hidden(words),
            None if self.removed.contains(handle) => EntryState::Removed,
            None => return None,
        };
        Some(Entry {
            state,
            updated_at: self.times.get(handle).unwrap_or_default(),
            version: self.versions.get(handle),
            has_metadata: self.metadata.contains(handle),
        })
    }

    /// The parts of an entry beside its words, for a checkpoint.
    pub(super) fn extra(&self, handle: Handle, tie_break_time: Option<Timestamp>) -> Option<Extra> {
        self.contains(handle).then(|| Extra {
            updated_at: self.times.get(handle).or(tie_break_time).unwrap_or_default(),
            version: self.versions.get(handle),
            has_metadata: self.metadata.contains(handle),
            unlisted: match self.hidden.get(handle) {
                Some(words) => Some(Unlisted::Hidden(Box::new(words))),
                None => self.removed.contains(handle).then_some(Unlisted::Removed),
            },
        })
    }

    /// Sets or removes a handle's entry; `tie_break_time` is the time that its words hold. Returns whether
    /// anything is or was stored here: then the next checkpoint must write the handle's extra, whose time may
    /// differ even if nothing else does.
    pub(super) fn set(
        &mut self,
        handle: Handle,
        entry: Option<&Entry>,
        tie_break_time: Option<Timestamp>,
    ) -> bool {
        let time = entry.map(|entry| entry.updated_at).filter(|time| tie_break_time != Some(*time));
        let (hidden, removed) = match entry.map(|entry| entry.state) {
            Some(EntryState::Hidden(words)) => (Some(words), None),
            Some(EntryState::Removed) => (None, Some(())),
            Some(EntryState::Listed(_)) | None => (None, None),
        };
        let metadata = entry.filter(|entry| entry.has_metadata).map(|_| ());
        // Not short-circuited: every map must be updated.
        [
            put(&mut self.versions, handle, entry.and_then(|entry| entry.version)),
            put(&mut self.times, handle, time),
            put(&mut self.metadata, handle, metadata),
            put(&mut self.hidden, handle, hidden),
            put(&mut self.removed, handle, removed),
        ]
        .contains(&true)
    }

    /// Loads a listed entry's extra from a checkpoint; `tie_break_time` is the time that its words hold.
    pub(super) fn load_listed(&mut self, handle: Handle, extra: &Extra, tie_break_time: Option<Timestamp>) {
        put(&mut self.versions, handle, extra.version);
        put(&mut self.times, handle, Some(extra.updated_at).filter(|time| tie_break_time != Some(*time)));
        put(&mut self.metadata, handle, extra.has_metadata.then_some(()));
    }

    pub(super) fn has_metadata(&self) -> bool {
        !self.metadata.is_empty()
    }

    pub(super) fn with_metadata(&self) -> impl Iterator<Item = Handle> {
        self.metadata.handles()
    }

    pub(super) fn hidden_count(&self) -> usize {
        self.hidden.len()
    }

    /// Hidden entries with handles in a range, with their words. Looks at each handle of the range, or at all
    /// hidden entries if these are fewer.
    pub(super) fn hidden_in(&self, handles: Range<u32>) -> Vec<(Handle, Words)> {
        if self.hidden.len() <= handles.len() {
            return self.hidden.iter().filter(|(handle, _)| handles.contains(&handle.0)).collect();
        }
        let words = |handle: u32| Some((Handle(handle), self.hidden.get(Handle(handle))?));
        handles.filter_map(words).collect()
    }

    /// Entries that are not listed, in an order that is stable while nothing changes.
    pub(super) fn unlisted_handles(&self) -> impl Iterator<Item = Handle> {
        self.hidden.handles().chain(self.removed.handles())
    }

    /// The same, a slice at a time: appends entries from `place` on to `found`, until `found` holds `most`.
    pub(super) fn unlisted_from(&self, place: &mut UnlistedPlace, most: usize, found: &mut Vec<Handle>) {
        self.hidden.handles_from(&mut place.hidden, most, found);
        self.removed.handles_from(&mut place.removed, most, found);
    }

    /// Prefetches what planning a change of this handle's entry reads.
    pub(super) fn prefetch(&self, handle: Handle) {
        self.versions.prefetch(handle);
        self.times.prefetch(handle);
    }

    /// Memory held, itself included.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.versions.bytes()
            + self.times.bytes()
            + self.metadata.bytes()
            + self.hidden.bytes()
            + self.removed.bytes()
    }
}

/// Sets or removes a value. Returns whether there is or was one.
fn put<V: Copy + Default>(map: &mut HandleMap<V>, handle: Handle, value: Option<V>) -> bool {
    match value {
        Some(value) => {
            map.insert(handle, value);
            true
        }
        None => !map.is_empty() && map.remove(handle).is_some(),
    }
}

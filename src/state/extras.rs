//! What a tree cannot hold of its board's entries: versions, times, metadata, and entries that are not
//! listed.
//!
//! Knows each by handle, in a map of its own, so that a member with a version pays for the version alone.
//! Must not know the tree: whether its words tell an entry's time is for the caller to say.

use std::ops::Range;

use crate::state::entry::{Entry, Extra, Standing, Unlisted};
use crate::state::handle_map::{HandleMap, HandleSet, MapPlace};
use crate::tree::{Handle, Words};
use crate::types::Timestamp;

#[derive(Default)]
pub(super) struct Extras {
    versions: HandleMap<u64>,
    /// Times of updates, where the entry's words do not tell them.
    times: HandleMap<Timestamp>,
    /// Who has metadata on disk.
    metadata: HandleSet,
    hidden: HandleMap<Words>,
    removed: HandleSet,
}

/// How far somebody came who looks at entries that are not listed.
#[derive(Default)]
pub(super) struct UnlistedPlace {
    hidden: MapPlace,
    removed: MapPlace,
}

impl Extras {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How much is kept.
    pub(super) fn len(&self) -> usize {
        self.versions.len() + self.times.len() + self.metadata.len() + self.hidden.len() + self.removed.len()
    }

    #[must_use]
    pub(super) fn knows(&self, handle: Handle) -> bool {
        self.versions.contains(handle)
            || self.times.contains(handle)
            || self.metadata.contains(handle)
            || self.is_unlisted(handle)
    }

    pub(super) fn is_unlisted(&self, handle: Handle) -> bool {
        self.hidden.contains(handle) || self.removed.contains(handle)
    }

    /// Everything known here of a listed entry with these words, whose time is `told` by them unless there is
    /// another.
    pub(super) fn listed(&self, handle: Handle, words: Words, told: Option<Timestamp>) -> Entry {
        Entry {
            standing: Standing::Listed(words),
            updated_at: self.times.get(handle).or(told).unwrap_or_default(),
            version: self.versions.get(handle),
            has_metadata: self.metadata.contains(handle),
        }
    }

    /// An entry that is not listed.
    pub(super) fn unlisted(&self, handle: Handle) -> Option<Entry> {
        let standing = match self.hidden.get(handle) {
            Some(words) => Standing::Hidden(words),
            None if self.removed.contains(handle) => Standing::Removed,
            None => return None,
        };
        Some(Entry {
            standing,
            updated_at: self.times.get(handle).unwrap_or_default(),
            version: self.versions.get(handle),
            has_metadata: self.metadata.contains(handle),
        })
    }

    /// What a checkpoint keeps of an entry beside its words.
    pub(super) fn extra(&self, handle: Handle, told: Option<Timestamp>) -> Option<Extra> {
        self.knows(handle).then(|| Extra {
            updated_at: self.times.get(handle).or(told).unwrap_or_default(),
            version: self.versions.get(handle),
            has_metadata: self.metadata.contains(handle),
            unlisted: match self.hidden.get(handle) {
                Some(words) => Some(Unlisted::Hidden(Box::new(words))),
                None => self.removed.contains(handle).then_some(Unlisted::Removed),
            },
        })
    }

    /// Makes a handle's entry this one, or forgets it; `told` is the time that its words tell. Says whether
    /// anything is or was kept here: then a checkpoint owes the disk the handle's extra, whose time may
    /// differ even if nothing else does.
    pub(super) fn set(&mut self, handle: Handle, entry: Option<&Entry>, told: Option<Timestamp>) -> bool {
        let time = entry.map(|entry| entry.updated_at).filter(|time| told != Some(*time));
        let (hidden, removed) = match entry.map(|entry| entry.standing) {
            Some(Standing::Hidden(words)) => (Some(words), None),
            Some(Standing::Removed) => (None, Some(())),
            Some(Standing::Listed(_)) | None => (None, None),
        };
        let metadata = entry.filter(|entry| entry.has_metadata).map(|_| ());
        // All of them, whatever the first ones say.
        [
            put(&mut self.versions, handle, entry.and_then(|entry| entry.version)),
            put(&mut self.times, handle, time),
            put(&mut self.metadata, handle, metadata),
            put(&mut self.hidden, handle, hidden),
            put(&mut self.removed, handle, removed),
        ]
        .contains(&true)
    }

    /// Takes over what a checkpoint kept of a listed entry whose words tell this time.
    pub(super) fn load_listed(&mut self, handle: Handle, extra: &Extra, told: Option<Timestamp>) {
        put(&mut self.versions, handle, extra.version);
        put(&mut self.times, handle, Some(extra.updated_at).filter(|time| told != Some(*time)));
        put(&mut self.metadata, handle, extra.has_metadata.then_some(()));
    }

    pub(super) fn with_metadata(&self) -> impl Iterator<Item = Handle> {
        self.metadata.handles()
    }

    pub(super) fn hidden_count(&self) -> usize {
        self.hidden.len()
    }

    /// Hidden entries whose handles lie in a range, with their words. Looks at as many handles as the range
    /// has, or at all hidden entries if they are fewer.
    pub(super) fn hidden_in(&self, handles: Range<u32>) -> Vec<(Handle, Words)> {
        if self.hidden.len() <= handles.len() {
            return self.hidden.iter().filter(|(handle, _)| handles.contains(&handle.0)).collect();
        }
        let words = |handle: u32| Some((Handle(handle), self.hidden.get(Handle(handle))?));
        handles.filter_map(words).collect()
    }

    /// Entries that are not listed, in an order that holds while nothing changes.
    pub(super) fn unlisted_handles(&self) -> impl Iterator<Item = Handle> {
        self.hidden.handles().chain(self.removed.handles())
    }

    /// The same a slice at a time: adds those from a place on to `found`, until that holds `most`.
    pub(super) fn unlisted_from(&self, place: &mut UnlistedPlace, most: usize, found: &mut Vec<Handle>) {
        self.hidden.handles_from(&mut place.hidden, most, found);
        self.removed.handles_from(&mut place.removed, most, found);
    }

    /// Asks for what planning a change of this handle's entry reads.
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

/// Says whether anything is or was kept.
fn put<V: Copy + Default>(map: &mut HandleMap<V>, handle: Handle, value: Option<V>) -> bool {
    match value {
        Some(value) => {
            map.insert(handle, value);
            true
        }
        None => !map.is_empty() && map.remove(handle).is_some(),
    }
}

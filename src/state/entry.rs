//! An entry: one member in one tree, with the parts of it that the tree cannot hold.
//!
//! Knows: the pieces of an entry. Must not know: how they change (`writer::plan`), or what their words mean
//! (`board`).

use crate::tree::Words;
use crate::types::Timestamp;

/// The number of a tree within its shard. Never given to another tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TreeId(pub u32);

/// The state of an entry in a board's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    /// Counted and listed, at these words.
    Listed(Words),
    /// Keeps its words, but is neither counted nor listed.
    Hidden(Words),
    /// Removed by a job with a version. The entry remains to remember the version.
    Removed,
}

/// The whole entry of one member in one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub state: EntryState,
    /// The time of the last job that the entry accepted.
    pub updated_at: Timestamp,
    /// The greatest version seen.
    pub version: Option<u64>,
    /// Whether it has metadata, which are on disk.
    pub has_metadata: bool,
}

impl Entry {
    /// The words, listed or hidden.
    pub fn words(&self) -> Option<Words> {
        match self.state {
            EntryState::Listed(words) | EntryState::Hidden(words) => Some(words),
            EntryState::Removed => None,
        }
    }

    pub fn listed(&self) -> Option<Words> {
        match self.state {
            EntryState::Listed(words) => Some(words),
            EntryState::Hidden(_) | EntryState::Removed => None,
        }
    }
}

impl EntryState {
    /// The state of an entry with these words.
    pub fn of(words: Words, is_hidden: bool) -> Self {
        if is_hidden { Self::Hidden(words) } else { Self::Listed(words) }
    }

    pub fn is_hidden(&self) -> bool {
        matches!(self, Self::Hidden(_))
    }

    pub fn parts(&self) -> EntryStateParts<'_> {
        match self {
            Self::Listed(words) => EntryStateParts::Listed(words.as_slice()),
            Self::Hidden(words) => EntryStateParts::Hidden(words.as_slice()),
            Self::Removed => EntryStateParts::Removed,
        }
    }
}

impl Entry {
    pub fn parts(&self) -> EntryParts<'_> {
        let Self { ref state, updated_at, version, has_metadata } = *self;
        EntryParts { state: state.parts(), updated_at, version, has_metadata }
    }
}

/// An [`EntryState`] whose words are somewhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryStateParts<'a> {
    Listed(&'a [u64]),
    Hidden(&'a [u64]),
    Removed,
}

/// An [`Entry`] whose words are somewhere else: an entry has room for more words than most have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryParts<'a> {
    pub state: EntryStateParts<'a>,
    pub updated_at: Timestamp,
    pub version: Option<u64>,
    pub has_metadata: bool,
}

impl EntryParts<'_> {
    pub fn to_entry(self) -> Entry {
        let Self { state, updated_at, version, has_metadata } = self;
        let state = match state {
            EntryStateParts::Listed(words) => EntryState::Listed(Words::from_slice(words)),
            EntryStateParts::Hidden(words) => EntryState::Hidden(Words::from_slice(words)),
            EntryStateParts::Removed => EntryState::Removed,
        };
        Entry { state, updated_at, version, has_metadata }
    }
}

/// The parts of an entry that the tree cannot hold. Most entries have none: they are listed, have no version
/// and no metadata, and were updated at the time that their tie-break holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extra {
    pub updated_at: Timestamp,
    pub version: Option<u64>,
    pub has_metadata: bool,
    pub unlisted: Option<Unlisted>,
}

/// An entry that is not in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlisted {
    // Boxed, because hidden entries are few and words are long.
    Hidden(Box<Words>),
    Removed,
}

//! Entries of a batch, packed one behind the other: an [`Entry`] has room for nine words, and most have two.
//! A batch of a thousand jobs keeps two thousand entries until its end, a quarter of a megabyte unpacked.

use crate::state::{Entry, EntryParts, EntryStateParts};
use crate::tree::MAX_WORDS;
use crate::types::Timestamp;

/// Words before those of the entry: what it is, when it was updated, its version.
const HEAD: usize = 3;
/// The bits of the first word.
const REMOVED: u64 = 0;
const LISTED: u64 = 1;
const HIDDEN: u64 = 2;
const STATE: u64 = 3;
const HAS_VERSION: u64 = 4;
const HAS_METADATA: u64 = 8;
/// Above them is the number of words.
const COUNT_SHIFT: u32 = 8;
/// How many words an entry takes that is packed.
const USUAL: usize = HEAD + 2;

/// Where an entry is; or there is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackedAt(u32);

const NONE: PackedAt = PackedAt(u32::MAX);

pub(super) struct PackedEntries {
    words: Vec<u64>,
}

impl PackedEntries {
    /// With memory for so many entries as most are.
    pub(super) fn with_capacity(entries: usize) -> Self {
        Self { words: Vec::with_capacity(entries * USUAL) }
    }

    pub(super) fn push(&mut self, entry: Option<&Entry>) -> PackedAt {
        let Some(entry) = entry else { return NONE };
        let at = u32::try_from(self.words.len()).expect("a batch is far smaller than 32 GiB");
        let EntryParts { state, updated_at, version, has_metadata } = entry.parts();
        let (kind, words) = match state {
            EntryStateParts::Removed => (REMOVED, &[][..]),
            EntryStateParts::Listed(words) => (LISTED, words),
            EntryStateParts::Hidden(words) => (HIDDEN, words),
        };
        let count = u64::try_from(words.len()).expect("an entry has nine words at most");
        let has_version = if version.is_some() { HAS_VERSION } else { 0 };
        let has_metadata = if has_metadata { HAS_METADATA } else { 0 };
        let what = kind | has_version | has_metadata | count << COUNT_SHIFT;
        self.words.reserve(HEAD + MAX_WORDS);
        let updated_at = updated_at.as_micros().cast_unsigned();
        self.words.extend_from_slice(&[what, updated_at, version.unwrap_or_default()]);
        for word in words {
            self.words.push(*word);
        }
        PackedAt(at)
    }

    pub(super) fn get(&self, PackedAt(at): PackedAt) -> Option<EntryParts<'_>> {
        if at == NONE.0 {
            return None;
        }
        let packed = self.words.get(usize::try_from(at).ok()?..)?;
        let (&[what, updated_at, version], rest) = packed.split_first_chunk::<HEAD>()?;
        let words = rest.get(..usize::try_from(what >> COUNT_SHIFT).ok()?)?;
        let state = match what & STATE {
            LISTED => EntryStateParts::Listed(words),
            HIDDEN => EntryStateParts::Hidden(words),
            _ => EntryStateParts::Removed,
        };
        Some(EntryParts {
            state,
            updated_at: Timestamp::from_micros(updated_at.cast_signed()).expect("it was a time when packed"),
            version: (what & HAS_VERSION != 0).then_some(version),
            has_metadata: what & HAS_METADATA != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::EntryState;
    use crate::tree::Words;

    #[test]
    fn what_is_packed_comes_out_again() {
        let all: Vec<u64> = (0..9).map(|word| u64::MAX - word).collect();
        let states = (1..=all.len()).flat_map(|count| {
            let words = Words::from_slice(&all[..count]);
            [EntryState::Listed(words), EntryState::Hidden(words)]
        });
        let mut entries = vec![None];
        for state in states.chain([EntryState::Removed]) {
            for (updated_at, version) in
                [(Timestamp::MAX, None), (Timestamp::default(), Some(0)), (Timestamp::MAX, Some(u64::MAX))]
            {
                let entry = |has_metadata| Some(Entry { state, updated_at, version, has_metadata });
                entries.extend([entry(false), entry(true), None]);
            }
        }
        let mut packed = PackedEntries::with_capacity(1);
        let places: Vec<PackedAt> = entries.iter().map(|entry| packed.push(entry.as_ref())).collect();
        let unpacked = places.into_iter().map(|at| packed.get(at).map(EntryParts::to_entry));
        assert_eq!(unpacked.collect::<Vec<_>>(), entries);
    }
}

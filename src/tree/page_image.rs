//! A leaf's content as handed to a checkpoint, and its pre-image.

use super::columns::Columns;
use super::narrow::Narrow;

/// One leaf as it was at [`Tree::begin_capture`](super::Tree::begin_capture).
#[derive(Clone, Copy, Debug)]
pub struct CapturedPage<'a> {
    /// The leaf's id: stable while the leaf exists, reused afterwards.
    pub page: u32,
    /// `None`: there is no such page (any more); a stored one is to be deleted.
    pub entries: Option<Columns<'a>>,
}

/// A pre-image: a copy of a leaf's content, in the leaf's format or with columns packed.
pub(super) enum PreImage {
    Whole {
        words: Box<[u64]>,
        handles: Box<[u32]>,
    },
    Narrow {
        bytes: Box<[u8]>,
        slots: u8,
        columns: u8,
        /// Bytes of a handle.
        handle: u8,
        len: u8,
    },
}

impl Default for PreImage {
    fn default() -> Self {
        Self::Whole { words: Box::default(), handles: Box::default() }
    }
}

impl PreImage {
    pub(super) fn of(entries: &Columns<'_>) -> Self {
        if entries.is_empty() {
            return Self::default();
        }
        if let Some(Narrow { bytes, slots, columns, handle }) = entries.block() {
            let (slots, columns, handle) = (slots as u8, columns as u8, handle as u8);
            return Self::Narrow { bytes: bytes.into(), slots, columns, handle, len: entries.len() as u8 };
        }
        let words = (0..entries.width()).flat_map(|column| entries.column(column)).collect();
        Self::Whole { words, handles: entries.handles().collect() }
    }

    pub(super) fn entries(&self) -> Columns<'_> {
        match self {
            Self::Whole { words, handles } => Columns::new(words, handles, handles.len().max(1)),
            Self::Narrow { bytes, slots, columns, handle, len } => {
                let [slots, columns, handle] = [slots, columns, handle].map(|number| usize::from(*number));
                Columns::narrow(Narrow { bytes, slots, columns, handle }, usize::from(*len))
            }
        }
    }

    /// Heap memory, in bytes, without the struct itself.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Whole { words, handles } => size_of_val(&**words) + size_of_val(&**handles),
            Self::Narrow { bytes, .. } => bytes.len(),
        }
    }
}

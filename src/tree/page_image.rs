//! A leaf's content as handed to a checkpoint, and its pre-image.

use super::columns::Columns;

/// One leaf as it was at [`Tree::begin_capture`](super::Tree::begin_capture).
#[derive(Clone, Copy, Debug)]
pub struct CapturedPage<'a> {
    /// The leaf's id: stable while the leaf exists, reused afterwards.
    pub page: u32,
    /// `None`: there is no such page (any more); a stored one is to be deleted.
    pub entries: Option<Columns<'a>>,
}

/// A pre-image: a copy of a leaf's content, with columns packed.
#[derive(Default)]
pub(super) struct PreImage {
    words: Box<[u64]>,
    handles: Box<[u32]>,
}

impl PreImage {
    pub(super) fn of(entries: &Columns<'_>) -> Self {
        if entries.is_empty() {
            return Self::default();
        }
        let words = (0..entries.width()).flat_map(|column| entries.column(column)).copied().collect();
        Self { words, handles: entries.handles().into() }
    }

    pub(super) fn entries(&self) -> Columns<'_> {
        Columns::new(&self.words, &self.handles, self.handles.len().max(1))
    }

    /// Heap memory, in bytes, without the struct itself.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.handles)
    }
}

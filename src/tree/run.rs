//! Entries on their way between leaves, or into one: as whole words.

use std::ops::Range;

use super::columns::Columns;

pub(super) struct Run {
    /// `room` words per column.
    words: Vec<u64>,
    handles: Vec<u32>,
    columns: usize,
    room: usize,
}

impl Run {
    /// A run of no entries, with room for as many.
    pub(super) fn new(columns: usize, room: usize) -> Self {
        Self { words: vec![0; columns * room], handles: Vec::with_capacity(room), columns, room }
    }

    pub(super) fn clear(&mut self) {
        self.handles.clear();
    }

    pub(super) fn push(&mut self, words: &[u64], handle: u32) {
        assert!(words.len() == self.columns, "an entry has one word per column");
        for (column, &word) in self.words.chunks_exact_mut(self.room).zip(words) {
            column[self.handles.len()] = word;
        }
        self.handles.push(handle);
    }

    /// Appends a part of a leaf.
    pub(super) fn extend(&mut self, entries: &Columns<'_>, part: Range<usize>) {
        let len = self.handles.len();
        for (number, column) in self.words.chunks_exact_mut(self.room).enumerate() {
            entries.read_column(number, part.start, &mut column[len..][..part.len()]);
        }
        self.handles.resize(len + part.len(), 0);
        entries.read_handles(part.start, &mut self.handles[len..]);
    }

    /// Room for the words and handles of `len` entries, which the caller writes.
    pub(super) fn slots(&mut self, len: usize) -> (&mut [u64], &mut [u32], usize) {
        self.handles.clear();
        self.handles.resize(len, 0);
        (&mut self.words, &mut self.handles, self.room)
    }

    pub(super) fn entries(&self) -> Columns<'_> {
        Columns::new(&self.words, &self.handles, self.room)
    }
}

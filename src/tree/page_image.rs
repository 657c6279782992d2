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

impl CapturedPage<'_> {
    /// A copy of its content, which is read when the tree is no longer borrowed: much less work than reading
    /// the words one by one.
    pub fn copy(&self) -> PageCopy {
        self.entries.map(|entries| PageCopy::of(&entries)).unwrap_or_default()
    }
}

/// A copy of a leaf's content.
pub struct PageCopy(Form);

/// The leaf's format, or columns of whole words, packed.
enum Form {
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

impl Default for PageCopy {
    fn default() -> Self {
        Self(Form::Whole { words: Box::default(), handles: Box::default() })
    }
}

impl PageCopy {
    pub(super) fn of(entries: &Columns<'_>) -> Self {
        if entries.is_empty() {
            return Self::default();
        }
        if let Some(Narrow { bytes, slots, columns, handle }) = entries.block() {
            let (slots, columns, handle) = (slots as u8, columns as u8, handle as u8);
            return Self(Form::Narrow {
                bytes: bytes.into(),
                slots,
                columns,
                handle,
                len: entries.len() as u8,
            });
        }
        let words = (0..entries.width()).flat_map(|column| entries.column(column)).collect();
        Self(Form::Whole { words, handles: entries.handles().collect() })
    }

    /// The pieces of heap memory that a copy takes, in bytes.
    pub(super) fn pieces_of(entries: &Columns<'_>) -> [usize; 2] {
        match entries.block() {
            Some(block) => [block.bytes.len(), 0],
            None => [entries.width() * size_of::<u64>(), size_of::<u32>()].map(|bytes| bytes * entries.len()),
        }
    }

    pub fn entries(&self) -> Columns<'_> {
        match &self.0 {
            Form::Whole { words, handles } => Columns::new(words, handles, handles.len().max(1)),
            Form::Narrow { bytes, slots, columns, handle, len } => {
                let [slots, columns, handle] = [slots, columns, handle].map(|number| usize::from(*number));
                Columns::narrow(Narrow { bytes, slots, columns, handle }, usize::from(*len))
            }
        }
    }

    /// Heap memory, in bytes, without the struct itself.
    pub(super) fn bytes(&self) -> usize {
        match &self.0 {
            Form::Whole { words, handles } => size_of_val(&**words) + size_of_val(&**handles),
            Form::Narrow { bytes, .. } => bytes.len(),
        }
    }
}

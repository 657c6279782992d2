//! A tree that fits into one leaf: entries in order in one array, no larger than they need.
//!
//! Most boards of a service that has many are of this form: matches, clans, levels. Knows entries and the
//! state of their capture. Must not know inner nodes or a locator: looking through a leaf is as quick as
//! asking one.

use std::cmp::Ordering;
use std::{fmt, mem};

use super::columns::{Columns, close, open};
use super::page_image::{CapturedPage, PageCopy};
use super::prefetch;

use super::words::{Edit, Handle, MemberOrder};

/// The state of the page in the running capture.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptureState {
    /// It was not dirty when the capture began.
    Clean,
    /// To be handed out, and unchanged since.
    Pending,
    /// To be handed out as the pre-image that was copied before a change.
    Copied,
    /// Handed out. Not known to be stored until the next capture begins.
    HandedOut,
}

/// At most `LEAF` entries, in arrays of their own.
pub(super) struct SmallTree<const LEAF: usize> {
    /// A run of `handles.len()` words per column.
    pub(super) words: Box<[u64]>,
    /// As many as there is room for; the first `len` are entries.
    pub(super) handles: Box<[u32]>,
    /// The page as of the beginning of the running capture. Boxed, because it exists only briefly.
    pub(super) pre_image: Option<Box<PageCopy>>,
    /// The page's number, which a loaded one brings along.
    pub(super) page: u32,
    pub(super) len: u8,
    pub(super) columns: u8,
    /// Changed since the last capture began.
    pub(super) dirty: bool,
    pub(super) capture_state: CaptureState,
}

impl<const LEAF: usize> SmallTree<LEAF> {
    pub(super) fn new(columns: usize) -> Self {
        const { assert!(LEAF <= u8::MAX as usize, "the number of entries fits a byte") };
        Self {
            words: Box::default(),
            handles: Box::default(),
            pre_image: None,
            page: 0,
            len: 0,
            columns: columns as u8,
            dirty: false,
            capture_state: CaptureState::Clean,
        }
    }

    /// A small tree with the entries of a leaf.
    pub(super) fn of_page(page: u32, entries: &Columns<'_>) -> Self {
        let mut tree = Self::new(entries.width());
        tree.page = page;
        tree.len = entries.len() as u8;
        tree.move_to(Self::room_for(entries.len()), entries);
        tree
    }

    #[inline]
    pub(super) fn entries(&self) -> Columns<'_> {
        Columns::new(&self.words, &self.handles[..usize::from(self.len)], self.handles.len().max(1))
    }

    /// Where a handle's entry is.
    #[inline]
    pub(super) fn find(&self, handle: Handle) -> Option<usize> {
        self.entries().find(handle)
    }

    /// How many entries there are after these edits.
    pub(super) fn len_after(&self, edits: &[Edit]) -> usize {
        let leaving = edits.iter().filter(|edit| self.find(edit.handle).is_some()).count();
        let arriving = edits.iter().filter(|edit| edit.new.is_some()).count();
        usize::from(self.len) + arriving - leaving
    }

    /// As [`Tree::apply`](super::Tree::apply). The caller has seen that the entries fit.
    pub(super) fn apply(&mut self, edits: &[Edit], order: &impl MemberOrder) {
        for edit in edits {
            if let Some(at) = self.find(edit.handle) {
                self.remove_at(at);
            }
        }
        for edit in edits {
            if let Some(new) = &edit.new {
                self.insert(new.as_slice(), edit.handle, order);
            }
        }
        self.fit();
    }

    /// Adds an entry to a tree that is not full.
    pub(super) fn insert(&mut self, words: &[u64], handle: Handle, order: &impl MemberOrder) {
        let columns = usize::from(self.columns);
        assert!(words.len() == columns, "an entry has one word per column");
        self.touch();
        let len = usize::from(self.len);
        if len == self.handles.len() {
            self.resize(Self::room_for(len + 1));
        }
        let room = self.handles.len();
        let at = self.entries().entries_before(words, |other| order.compare(words, other, handle));
        open(&mut self.words, room, len, at);
        for (column, &word) in self.words.chunks_exact_mut(room).zip(words) {
            column[at] = word;
        }
        open(&mut self.handles, room, len, at);
        self.handles[at] = handle.0;
        self.len += 1;
    }

    fn remove_at(&mut self, at: usize) {
        self.touch();
        let (room, len) = (self.handles.len(), usize::from(self.len));
        close(&mut self.words, room, len, at);
        close(&mut self.handles, room, len, at);
        self.len -= 1;
    }

    /// Room for so many entries and a few more, so that not every arrival moves them all.
    fn room_for(len: usize) -> usize {
        (len + len / 8).next_multiple_of(4).min(LEAF)
    }

    /// Gives memory back once half of it would do.
    fn fit(&mut self) {
        let room = Self::room_for(usize::from(self.len));
        if room * 2 <= self.handles.len() {
            self.resize(room);
        }
    }

    fn resize(&mut self, room: usize) {
        let (words, handles) = (mem::take(&mut self.words), mem::take(&mut self.handles));
        let entries = Columns::new(&words, &handles[..usize::from(self.len)], handles.len().max(1));
        self.move_to(room, &entries);
    }

    /// Takes memory for `room` entries, and puts these into it.
    fn move_to(&mut self, room: usize, entries: &Columns<'_>) {
        self.words = vec![0; room * usize::from(self.columns)].into();
        self.handles = vec![0; room].into();
        for (slot, handle) in self.handles.iter_mut().zip(entries.handles()) {
            *slot = handle;
        }
        if entries.is_empty() {
            return;
        }
        for (at, column) in self.words.chunks_exact_mut(room).enumerate() {
            for (slot, word) in column.iter_mut().zip(entries.column(at)) {
                *slot = word;
            }
        }
    }

    /// Asks for all that a look-up or an edit reads.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch::lines_of(&self.handles);
        prefetch::lines_of(&self.words);
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
            + size_of_val(&*self.handles)
            + self.pre_image.as_ref().map_or(0, |pre_image| size_of::<PageCopy>() + pre_image.bytes())
    }

    /// To be called before entries change.
    pub(super) fn touch(&mut self) {
        if self.capture_state == CaptureState::Pending {
            self.pre_image = Some(Box::new(PageCopy::of(&self.entries())));
            self.capture_state = CaptureState::Copied;
        }
        self.dirty = true;
    }

    pub(super) fn begin_capture(&mut self) {
        if self.is_capture_pending() {
            self.abandon_capture();
        }
        self.capture_state =
            if mem::take(&mut self.dirty) { CaptureState::Pending } else { CaptureState::Clean };
    }

    pub(super) fn abandon_capture(&mut self) {
        self.dirty |= self.capture_state != CaptureState::Clean;
        self.capture_state = CaptureState::Clean;
        self.pre_image = None;
    }

    /// The page is still to be handed out.
    pub(super) fn is_capture_pending(&self) -> bool {
        matches!(self.capture_state, CaptureState::Pending | CaptureState::Copied)
    }

    pub(super) fn hand_out(&mut self, sink: &mut dyn FnMut(CapturedPage<'_>)) {
        let pre_image = self.pre_image.take();
        let entries = match (self.capture_state, &pre_image) {
            (CaptureState::Pending, _) => self.entries(),
            (CaptureState::Copied, Some(pre_image)) => pre_image.entries(),
            _ => return,
        };
        sink(CapturedPage { page: self.page, entries: (!entries.is_empty()).then_some(entries) });
        self.capture_state = CaptureState::HandedOut;
    }

    /// A handle that two entries have.
    pub(super) fn repeated_handle(&self) -> Option<Handle> {
        let mut handles = self.entries().handles().collect::<Vec<_>>();
        handles.sort_unstable();
        handles.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| Handle(pair[0]))
    }

    pub(super) fn check(&self, order: &impl MemberOrder) -> Result<(), Violation> {
        let entries = self.entries();
        for at in 1..entries.len() {
            let (before, after) = (entries.handle(at - 1), entries.handle(at));
            let compared = entries
                .compare_words(at - 1, &entries, at)
                .then_with(|| order.compare(entries.words(at).as_slice(), before, after));
            if compared != Ordering::Less {
                return Err(Violation::new(format!("entry {at} {after:?} is out of order")));
            }
        }
        if let Some(handle) = self.repeated_handle() {
            return Err(Violation::new(format!("{handle:?} has two entries")));
        }
        if (self.capture_state == CaptureState::Copied) != self.pre_image.is_some() {
            return Err(Violation::new(
                "the tree's capture state does not match whether entries are set aside".to_owned(),
            ));
        }
        Ok(())
    }
}

/// Which invariant is violated, and where. The tree cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl Violation {
    pub(super) fn new(what: String) -> Self {
        Self(what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

//! Copy on write for checkpoints: which leaves a checkpoint must write, and their content as of its
//! beginning.
//!
//! Knows dirty, pending and set-aside leaves. Must not know where pages go.
//!
//! A leaf has two marks, dirty and pending. `begin_capture` makes all dirty leaves pending by swapping the
//! meaning of the two bits, so it costs nothing however many there are. Every change of a leaf calls `touch`
//! first, which copies a pending leaf once. So the checkpoint stays exact while the tree goes on changing.

use std::hint::black_box;
use std::mem::{self, MaybeUninit};

use super::columns::Columns;
use super::large::LargeTree;
use super::page_image::{CapturedPage, PageCopy};
use super::page_set::PageSet;
use super::pre_images::PreImages;
use super::small::CaptureState;

pub(super) struct Capture {
    /// The bit that means dirty, 1 or 2; the other one means pending.
    dirty_mark: u8,
    /// Leaves that carry the dirty mark.
    dirty: PageSet,
    /// Leaves that were dirty at `begin_capture`. Each either carries the pending mark, is set aside, or has
    /// been handed out.
    pending: PageSet,
    /// Those of `pending` below this one have been handed out.
    next: u32,
    /// How many of `pending` have not.
    awaiting: usize,
    pre_images: PreImages,
}

impl Capture {
    pub(super) fn new() -> Self {
        Self {
            dirty_mark: 1,
            dirty: PageSet::default(),
            pending: PageSet::default(),
            next: 0,
            awaiting: 0,
            pre_images: PreImages::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.dirty.bytes() + self.pending.bytes() + self.pre_images.bytes()
    }

    fn pending_mark(&self) -> u8 {
        3 - self.dirty_mark
    }

    /// Takes over the state of a small tree's only page. Returns the marks of its leaf.
    pub(super) fn of_small(
        &mut self,
        page: u32,
        dirty: bool,
        capture_state: CaptureState,
        pre_image: Option<Box<PageCopy>>,
    ) -> u8 {
        if dirty {
            self.dirty.insert(page);
        }
        if capture_state != CaptureState::Clean {
            self.pending.insert(page);
        }
        if capture_state == CaptureState::HandedOut {
            self.next = page + 1;
        } else {
            self.awaiting = self.pending.len();
        }
        if let Some(pre_image) = pre_image {
            self.pre_images.insert(page, pre_image);
        }
        let pending = if capture_state == CaptureState::Pending { self.pending_mark() } else { 0 };
        if dirty { self.dirty_mark } else { pending }
    }

    /// The reverse, for a leaf with these marks; `None` if any other page is dirty or pending.
    pub(super) fn take_small(
        &mut self,
        page: u32,
        marks: u8,
    ) -> Option<(bool, CaptureState, Option<Box<PageCopy>>)> {
        let only = |pages: &PageSet| match pages.len() {
            0 => true,
            length => length == 1 && pages.first_from(page) == Some(page),
        };
        if !only(&self.dirty) || !only(&self.pending) {
            return None;
        }
        let capture_state =
            match (self.pending.is_empty(), self.awaiting == 0, marks & self.pending_mark() != 0) {
                (true, _, _) => CaptureState::Clean,
                (false, true, _) => CaptureState::HandedOut,
                (false, false, true) => CaptureState::Pending,
                (false, false, false) => CaptureState::Copied,
            };
        let pre_image = self.pre_images.remove(page);
        Some((!self.dirty.is_empty(), capture_state, pre_image))
    }
}

/// The pieces of memory that setting leaves aside will take, about, in bytes.
#[derive(Default, Debug)]
pub struct PreImagePieces(Vec<usize>);

impl PreImagePieces {
    /// Takes all of them and frees them, so that this thread's allocator has them at hand: mimalloc writes
    /// its list of free pieces into them. To take memory from the system takes long, as Linux clears a huge
    /// page of 2 MiB at once: 5 ms where a virtual machine's host has to find it first. For who holds no
    /// lock.
    pub fn take_and_free(self) {
        let pieces: Vec<Box<[MaybeUninit<u8>]>> = self.0.into_iter().map(Box::new_uninit_slice).collect();
        drop(black_box(pieces));
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().sum()
    }
}

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    /// Notes what setting a leaf aside takes, if the next change of it does that. A list that grows now and
    /// then is left out, and a leaf that is changed twice is noted twice.
    pub(super) fn note_pre_image(&self, leaf: u32, pieces: &mut PreImagePieces) {
        if self.capture.awaiting > 0 && self.leaves.meta(leaf).marks & self.capture.pending_mark() != 0 {
            let copy = self.page_entries(leaf).map_or([0; 2], |entries| PageCopy::pieces_of(&entries));
            pieces.0.extend(copy.into_iter().chain(PreImages::PIECES_OF_EACH));
        }
    }

    /// Must be called before a leaf's entries change, and when it is allocated or freed.
    #[inline]
    pub(super) fn touch(&mut self, leaf: u32) {
        // Nearly always the leaf is dirty already and not pending.
        if self.leaves.meta(leaf).marks != self.capture.dirty_mark {
            self.touch_first(leaf);
        }
    }

    #[cfg(test)]
    pub(super) fn pre_image_bytes(&self) -> usize {
        self.capture.pre_images.bytes()
    }

    #[cold]
    fn touch_first(&mut self, leaf: u32) {
        let marks = self.leaves.meta(leaf).marks;
        if marks & self.capture.pending_mark() != 0 {
            let pre_image = self.page_entries(leaf).map(|entries| PageCopy::of(&entries));
            self.capture.pre_images.insert(leaf, Box::new(pre_image.unwrap_or_default()));
        }
        if marks & self.capture.dirty_mark == 0 {
            self.capture.dirty.insert(leaf);
        }
        self.leaves.meta_mut(leaf).marks = self.capture.dirty_mark;
    }

    pub(super) fn begin_capture(&mut self) {
        if self.capture.awaiting > 0 {
            self.abandon_capture(usize::MAX);
        }
        self.capture.pending.clear();
        mem::swap(&mut self.capture.dirty, &mut self.capture.pending);
        self.capture.next = 0;
        self.capture.awaiting = self.capture.pending.len();
        self.capture.dirty_mark = self.capture.pending_mark();
    }

    pub(super) fn capture_next(&mut self, max_pages: usize, sink: &mut dyn FnMut(CapturedPage<'_>)) -> bool {
        for _ in 0..max_pages.min(self.capture.awaiting) {
            let Some(page) = self.capture.pending.first_from(self.capture.next) else { break };
            self.capture.next = page + 1;
            self.capture.awaiting -= 1;
            self.hand_out(page, sink);
        }
        self.capture.awaiting > 0
    }

    fn hand_out(&mut self, page: u32, sink: &mut dyn FnMut(CapturedPage<'_>)) {
        let pending_mark = self.capture.pending_mark();
        if self.leaves.meta(page).marks & pending_mark != 0 {
            self.leaves.meta_mut(page).marks &= !pending_mark;
            sink(CapturedPage { page, entries: self.page_entries(page) });
        } else {
            let pre_image = self.capture.pre_images.remove(page).expect("touch sets a pending leaf aside");
            let entries = pre_image.entries();
            sink(CapturedPage { page, entries: (!entries.is_empty()).then_some(entries) });
        }
    }

    pub(super) fn abandon_capture(&mut self, max_pages: usize) -> bool {
        for _ in 0..max_pages {
            let Some(leaf) = self.capture.pending.pop_last() else { break };
            self.capture.awaiting -= usize::from(leaf >= self.capture.next);
            if self.leaves.meta(leaf).marks & self.capture.dirty_mark == 0 {
                self.capture.dirty.insert(leaf);
            }
            self.leaves.meta_mut(leaf).marks = self.capture.dirty_mark;
            self.capture.pre_images.remove(leaf);
        }
        !self.capture.pending.is_empty()
    }

    pub(super) fn mark_all_dirty(&mut self) {
        for leaf in 0..self.leaves.allocated {
            self.touch(leaf);
        }
    }

    pub(super) fn dirty_pages(&self) -> usize {
        self.capture.dirty.len()
    }

    pub(super) fn pending_pages(&self) -> usize {
        self.capture.awaiting
    }

    fn page_entries(&self, page: u32) -> Option<Columns<'_>> {
        // A free leaf may have no memory.
        (self.leaves.len(page) > 0).then(|| self.leaves.columns(page))
    }

    /// Whether marks and sets are consistent.
    pub(super) fn capture_is_sane(&self) -> bool {
        let capture = &self.capture;
        let marked = |mark: u8| {
            (0..self.leaves.allocated).filter(|&leaf| self.leaves.meta(leaf).marks & mark != 0).count()
        };
        let awaiting_capture: Vec<u32> =
            capture.pending.iter().filter(|leaf| *leaf >= capture.next).collect();
        let dirty_marked =
            capture.dirty.iter().all(|leaf| self.leaves.meta(leaf).marks & capture.dirty_mark != 0);
        let marks_fit = awaiting_capture.iter().all(|leaf| {
            (self.leaves.meta(*leaf).marks & capture.pending_mark() != 0)
                != capture.pre_images.contains(*leaf)
        });
        dirty_marked
            && marks_fit
            && capture.awaiting == awaiting_capture.len()
            && marked(capture.dirty_mark) == capture.dirty.len()
            && marked(capture.pending_mark()) + capture.pre_images.len() == awaiting_capture.len()
    }
}

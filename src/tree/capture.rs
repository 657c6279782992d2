//! Which leaves a checkpoint has to write, and their content as it was when the checkpoint began.
//!
//! Knows dirty, pending and set-aside leaves. Must not know where pages go.
//!
//! A leaf has two marks, dirty and pending. `begin_capture` makes all dirty leaves pending by swapping the meaning of
//! the two bits, so it costs nothing however many there are. Whoever changes a leaf calls `touch` first: a pending
//! leaf is then copied aside, once, and the checkpoint stays exact while the tree goes on changing.

use std::mem;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::columns::Columns;
use super::state::Tree;

/// One leaf as it was at [`Tree::begin_capture`].
#[derive(Clone, Copy, Debug)]
pub struct CapturedPage<'a> {
    /// The leaf's id: stable while the leaf exists, reused afterwards.
    pub page: u32,
    /// `None`: there is no such page (any more); a stored one is to be deleted.
    pub entries: Option<Columns<'a>>,
}

/// A leaf's content, set aside. Columns without unused slots between them.
struct PreImage {
    words: Box<[u64]>,
    handles: Box<[u32]>,
}

pub(super) struct Capture {
    /// The bit that means dirty, 1 or 2; the other one means pending.
    dirty_mark: u8,
    /// Leaves that carry the dirty mark.
    dirty: Vec<u32>,
    /// Leaves that were dirty at `begin_capture`. Each either carries the pending mark, is set aside, or has been
    /// handed out.
    pending: Vec<u32>,
    /// How many of `pending` have been handed out.
    handed_out: usize,
    aside: HashMap<u32, PreImage, FixedState>,
}

impl Capture {
    pub(super) fn new() -> Self {
        Self {
            dirty_mark: 1,
            dirty: Vec::new(),
            pending: Vec::new(),
            handed_out: 0,
            aside: HashMap::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let aside: usize =
            self.aside.values().map(|kept| kept.words.len() * 8 + kept.handles.len() * 4).sum();
        (self.dirty.capacity() + self.pending.capacity()) * size_of::<u32>()
            + self.aside.allocation_size()
            + aside
    }

    fn pending_mark(&self) -> u8 {
        3 - self.dirty_mark
    }
}

impl<const LEAF: usize, const INNER: usize> Tree<LEAF, INNER> {
    /// To be called before a leaf's entries change, and when it is allocated or freed.
    #[inline]
    pub(super) fn touch(&mut self, leaf: u32) {
        // Nearly always the leaf is dirty already and not awaited by a checkpoint.
        if self.leaves.meta(leaf).marks != self.capture.dirty_mark {
            self.touch_first(leaf);
        }
    }

    #[cold]
    fn touch_first(&mut self, leaf: u32) {
        let marks = self.leaves.meta(leaf).marks;
        if marks & self.capture.pending_mark() != 0 {
            let kept = match self.page_entries(leaf) {
                Some(entries) => PreImage {
                    words: (0..self.columns).flat_map(|column| entries.column(column)).copied().collect(),
                    handles: entries.handles().into(),
                },
                None => PreImage { words: Box::default(), handles: Box::default() },
            };
            self.capture.aside.insert(leaf, kept);
        }
        if marks & self.capture.dirty_mark == 0 {
            self.capture.dirty.push(leaf);
        }
        self.leaves.meta_mut(leaf).marks = self.capture.dirty_mark;
    }

    /// The leaves changed, allocated or freed since the last call become the pending ones, to be handed out by
    /// [`Tree::capture_next`] exactly as they are now.
    ///
    /// If the last capture was handed out to its end, it counts as stored. If not, it is abandoned first. Takes
    /// nanoseconds in the first case.
    pub fn begin_capture(&mut self) {
        if self.capture.handed_out < self.capture.pending.len() {
            self.abandon_capture();
        }
        self.capture.pending.clear();
        self.capture.handed_out = 0;
        mem::swap(&mut self.capture.dirty, &mut self.capture.pending);
        self.capture.dirty_mark = self.capture.pending_mark();
    }

    /// The pending pages, in the order in which they will be handed out.
    #[must_use]
    pub fn pending_order(&self) -> Vec<u32> {
        self.capture.pending.clone()
    }

    /// Hands pending pages out in this order: what [`Tree::pending_order`] gave, rearranged by the caller, who can
    /// sort without keeping the tree from its writer.
    ///
    /// # Panics
    /// When pages were handed out already, or when there are more or fewer of them.
    pub fn set_pending_order(&mut self, order: Vec<u32>) {
        assert_eq!(self.capture.handed_out, 0, "the order is set before the first page is handed out");
        assert_eq!(self.capture.pending.len(), order.len(), "the order holds every pending page");
        self.capture.pending = order;
    }

    /// Hands out up to `max_pages` pending pages, and says whether there are more.
    ///
    /// Between two calls the tree may change. A leaf that changes while pending is copied aside first, 20 bytes an
    /// entry on a board with one key, and is let go of when handed out.
    pub fn capture_next(&mut self, max_pages: usize, sink: &mut dyn FnMut(CapturedPage<'_>)) -> bool {
        for _ in 0..max_pages {
            let Some(&page) = self.capture.pending.get(self.capture.handed_out) else { break };
            self.capture.handed_out += 1;
            self.hand_out(page, sink);
        }
        self.capture.handed_out < self.capture.pending.len()
    }

    fn hand_out(&mut self, page: u32, sink: &mut dyn FnMut(CapturedPage<'_>)) {
        let pending_mark = self.capture.pending_mark();
        if self.leaves.meta(page).marks & pending_mark != 0 {
            self.leaves.meta_mut(page).marks &= !pending_mark;
            sink(CapturedPage { page, entries: self.page_entries(page) });
        } else {
            let kept = self.capture.aside.remove(&page).expect("touch sets a pending leaf aside");
            let entries = Columns::new(&kept.words, &kept.handles, kept.handles.len().max(1));
            sink(CapturedPage { page, entries: (!entries.is_empty()).then_some(entries) });
        }
    }

    /// The checkpoint failed: all that was pending at the last [`Tree::begin_capture`], handed out or not, is dirty
    /// again. Also after the last page was handed out, until the next capture begins.
    pub fn abandon_capture(&mut self) {
        let pending = mem::take(&mut self.capture.pending);
        for &leaf in &pending {
            if self.leaves.meta(leaf).marks & self.capture.dirty_mark == 0 {
                self.capture.dirty.push(leaf);
            }
            self.leaves.meta_mut(leaf).marks = self.capture.dirty_mark;
        }
        self.capture.aside = HashMap::default();
        self.capture.handed_out = 0;
    }

    /// Every page there is or ever was becomes dirty: the next capture hands out the whole tree.
    pub fn mark_all_dirty(&mut self) {
        for leaf in 0..self.leaves.allocated {
            self.touch(leaf);
        }
    }

    /// Pages that the next capture would hand out.
    #[must_use]
    pub fn dirty_pages(&self) -> usize {
        self.capture.dirty.len()
    }

    /// Pages of the current capture not handed out yet.
    #[must_use]
    pub fn pending_pages(&self) -> usize {
        self.capture.pending.len() - self.capture.handed_out
    }

    fn page_entries(&self, page: u32) -> Option<Columns<'_>> {
        // A free leaf may have no memory.
        (self.leaves.len(page) > 0).then(|| self.leaves.columns(page))
    }

    /// Whether marks and sets agree.
    pub(super) fn capture_is_sane(&self) -> bool {
        let capture = &self.capture;
        let marked = |mark: u8| {
            (0..self.leaves.allocated).filter(|&leaf| self.leaves.meta(leaf).marks & mark != 0).count()
        };
        let awaited = &capture.pending[capture.handed_out..];
        let dirty_marked =
            capture.dirty.iter().all(|&leaf| self.leaves.meta(leaf).marks & capture.dirty_mark != 0);
        let kept = awaited.iter().all(|leaf| {
            (self.leaves.meta(*leaf).marks & capture.pending_mark() != 0) != capture.aside.contains_key(leaf)
        });
        dirty_marked
            && kept
            && marked(capture.dirty_mark) == capture.dirty.len()
            && marked(capture.pending_mark()) + capture.aside.len() == awaited.len()
    }
}

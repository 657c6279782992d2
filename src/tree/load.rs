//! Builds whole trees, from sorted entries or from the pages of a checkpoint.
//!
//! Knows how leaves become a tree. Must not know how pages are encoded, or where they came from.

use std::cmp::Ordering;

use thiserror::Error;

use super::counted_tree::Tree;
use super::large::LargeTree;
use super::leaf::NONE;
use super::locator::Locator;
use super::run::Run;
use super::small::SmallTree;
use super::words::{Handle, MemberOrder, Words};

/// Why pages are not a tree. The data they came from is corrupt: rebuild from members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PageError {
    #[error("page {page} is beyond the highest page number")]
    PageNumber { page: u32 },
    #[error("page {page} occurs twice")]
    RepeatedPage { page: u32 },
    #[error("page {page} has {len} entries, which a leaf cannot have")]
    Length { page: u32, len: usize },
    #[error("page {page} is not in order at entry {at}")]
    Order { page: u32, at: usize },
    #[error("pages {left} and {right} overlap")]
    Overlap { left: u32, right: u32 },
    #[error("handle {} is in page {page} and has a second entry", handle.0)]
    RepeatedHandle { page: u32, handle: Handle },
    #[error("page {page} holds the greatest handle, which is never given to a member")]
    InvalidHandle { page: u32 },
}

/// The room for one page's entries, to be filled completely.
#[derive(Debug)]
pub struct PageSlots<'a> {
    words: &'a mut [u64],
    handles: &'a mut [u32],
    stride: usize,
}

impl PageSlots<'_> {
    /// # Panics
    /// When there is no such column.
    pub fn column_mut(&mut self, column: usize) -> &mut [u64] {
        &mut self.words[column * self.stride..][..self.handles.len()]
    }

    pub fn handles_mut(&mut self) -> &mut [u32] {
        self.handles
    }
}

/// Makes a tree of a checkpoint's pages, decoded straight into leaves. Pages keep their ids.
pub struct PageLoader<const LEAF: usize = 64, const INNER: usize = 64> {
    tree: LargeTree<LEAF, INNER>,
    pages: Vec<u32>,
    /// The page that is being added.
    run: Run,
}

impl<const LEAF: usize, const INNER: usize> PageLoader<LEAF, INNER> {
    /// One past the highest page number: eight billion entries in leaves of 64. Beyond it lies only
    /// corruption.
    pub const PAGES_MAX: u32 = 1 << 27;

    /// # Panics
    /// When `columns` is 0 or above [`MAX_WORDS`](super::MAX_WORDS).
    pub fn new(columns: usize) -> Self {
        Self { tree: LargeTree::without_root(columns), pages: Vec::new(), run: Run::new(columns, LEAF) }
    }

    /// Adds a page of `len` entries, which `fill` writes. Pages may come in any order.
    ///
    /// # Errors
    /// When the page's number or length cannot be, or as `fill` fails; the loader is then of no more use.
    pub fn add_page<E: From<PageError>>(
        &mut self,
        page: u32,
        len: usize,
        fill: impl FnOnce(PageSlots<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if page >= Self::PAGES_MAX {
            return Err(PageError::PageNumber { page }.into());
        }
        if len == 0 || len > LEAF {
            return Err(PageError::Length { page, len }.into());
        }
        let leaves = &mut self.tree.leaves;
        leaves.ensure(page);
        if leaves.len(page) != 0 {
            return Err(PageError::RepeatedPage { page }.into());
        }
        let (words, handles, stride) = self.run.slots(len);
        fill(PageSlots { words, handles, stride })?;
        leaves.fill(page, &self.run.entries());
        self.pages.push(page);
        Ok(())
    }

    /// Orders the pages, checks every entry, and builds what is above the leaves. No page is dirty
    /// afterwards.
    ///
    /// O(n), and O(p log p) for p pages.
    ///
    /// # Errors
    /// When the pages are not one tree's: see [`PageError`].
    pub fn finish(self, order: &impl MemberOrder) -> Result<Tree<LEAF, INNER>, PageError> {
        let Self { mut tree, mut pages, .. } = self;
        if pages.is_empty() {
            return Ok(Tree::new(tree.columns));
        }
        for &page in &pages {
            tree.check_page(page, order)?;
        }
        if let [page] = *pages {
            let small = SmallTree::of_page(page, &tree.leaves.columns(page));
            return match small.repeated_handle() {
                Some(handle) => Err(PageError::RepeatedHandle { page, handle }),
                None => Ok(small.into()),
            };
        }
        // First words nearly always decide, and lie side by side for the sort.
        let mut keyed: Vec<(u64, u32)> =
            pages.iter().map(|&page| (tree.leaves.columns(page).word(0, 0), page)).collect();
        keyed.sort_unstable_by(|&(a_word, a), &(b_word, b)| {
            a_word.cmp(&b_word).then_with(|| tree.compare_entries((a, 0), (b, 0), order))
        });
        pages.clear();
        pages.extend(keyed.iter().map(|&(_, page)| page));
        for pair in pages.windows(2) {
            let (left, right) = (pair[0], pair[1]);
            let last = tree.leaves.len(left) - 1;
            if tree.compare_entries((left, last), (right, 0), order) != Ordering::Less {
                return Err(PageError::Overlap { left, right });
            }
        }
        let allocated = pages.iter().max().map_or(0, |&page| page + 1);
        tree.leaves.set_allocated(allocated);
        // From the back, so that the lowest ids are used first and page numbers stay small.
        tree.leaves.free = (0..allocated).rev().filter(|&page| tree.leaves.len(page) == 0).collect();
        tree.index_leaves(&pages)?;
        tree.build_inners(&pages);
        Ok(tree.into())
    }
}

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    /// How many entries a leaf gets in bulk: room to grow before the first split, at little waste.
    const LEAF_BULK: usize = Self::LEAF_MERGED;
    const INNER_BULK: usize = Self::INNER_MERGED;

    pub(super) fn from_sorted(columns: usize, entries: impl IntoIterator<Item = (Words, Handle)>) -> Self {
        let mut tree = Self::without_root(columns);
        let mut leaves: Vec<u32> = Vec::new();
        let mut entries = entries.into_iter().peekable();
        let mut run = Run::new(columns, LEAF);
        while entries.peek().is_some() {
            let leaf = tree.leaves.allocate();
            tree.touch(leaf);
            leaves.push(leaf);
            run.clear();
            for (words, handle) in entries.by_ref().take(Self::LEAF_BULK) {
                run.push(words.as_slice(), handle.0);
            }
            tree.leaves.fill(leaf, &run.entries());
        }
        let Some(&last) = leaves.last() else { return Self::empty(columns) };
        tree.balance_last_leaf(&leaves, last);
        tree.index_leaves(&leaves).expect("a handle has one entry in a tree");
        tree.build_inners(&leaves);
        tree
    }

    /// Balances the last leaf, which may have few entries, with the one before.
    fn balance_last_leaf(&mut self, leaves: &[u32], last: u32) {
        let Some(&before) = leaves.len().checked_sub(2).and_then(|at| leaves.get(at)) else { return };
        let (before_len, last_len) = (self.leaves.len(before), self.leaves.len(last));
        let target = (before_len + last_len).div_ceil(2);
        self.leaves.redistribute(before, last, target);
    }

    /// Counts entries and makes the locator.
    fn index_leaves(&mut self, leaves: &[u32]) -> Result<(), PageError> {
        let greatest = leaves.iter().copied().max().unwrap_or(0);
        let handles = leaves.iter().flat_map(|&leaf| self.leaves.columns(leaf).handles());
        let mut locator = Locator::sized_for(handles, greatest);
        for &page in leaves {
            let entries = self.leaves.columns(page);
            self.len += entries.len() as u64;
            for handle in entries.handles() {
                if locator.set(Handle(handle), page) != NONE {
                    return Err(PageError::RepeatedHandle { page, handle: Handle(handle) });
                }
            }
        }
        self.locator = locator;
        Ok(())
    }

    /// Builds the levels above leaves that are in order.
    fn build_inners(&mut self, leaves: &[u32]) {
        let first_entry = |tree: &Self, level: u8, node: u32| {
            let entries = if level == 1 { tree.leaves.columns(node) } else { tree.inners.separators(node) };
            (entries.words(0), entries.handle(0))
        };
        let mut nodes = leaves.to_vec();
        let mut level = 1;
        self.leaves.moved = Vec::new();
        while nodes.len() > 1 {
            let parents = nodes.len().div_ceil(Self::INNER_BULK);
            let mut above = Vec::with_capacity(parents);
            for index in 0..parents {
                // Evenly: every parent then has at least two children.
                let range = nodes.len() * index / parents..nodes.len() * (index + 1) / parents;
                let parent = self.inners.allocate(level);
                for (slot, &node) in nodes[range].iter().enumerate() {
                    let (words, handle) = first_entry(self, level, node);
                    let count = if level == 1 { self.leaves.len(node) as u32 } else { self.inners.sum(node) };
                    self.insert_child(parent, slot, node, count, &words, handle);
                    self.set_parent(level, node, parent);
                    if level == 1 {
                        self.leaves.meta_mut(node).slot = slot as u8;
                    }
                }
                above.push(parent);
            }
            nodes = above;
            level += 1;
        }
        self.root = nodes[0];
        self.height = level - 1;
        self.set_parent(level, self.root, NONE);
    }

    /// Whether a page's entries ascend strictly and are possible.
    fn check_page(&self, page: u32, order: &impl MemberOrder) -> Result<(), PageError> {
        let entries = self.leaves.columns(page);
        if entries.handles().any(|handle| handle == u32::MAX) {
            return Err(PageError::InvalidHandle { page });
        }
        for (at, (before, word)) in (1..).zip(entries.column(0).zip(entries.column(0).skip(1))) {
            if before < word {
                continue;
            }
            if self.compare_entries((page, at - 1), (page, at), order) != Ordering::Less {
                return Err(PageError::Order { page, at });
            }
        }
        Ok(())
    }

    /// Orders two entries, each given by leaf and place.
    pub(super) fn compare_entries(
        &self,
        (a, a_at): (u32, usize),
        (b, b_at): (u32, usize),
        order: &impl MemberOrder,
    ) -> Ordering {
        let (a, b) = (self.leaves.columns(a), self.leaves.columns(b));
        a.compare_words(a_at, &b, b_at)
            .then_with(|| order.compare(a.words(a_at).as_slice(), a.handle(a_at), b.handle(b_at)))
    }
}

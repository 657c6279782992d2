//! [`Tree`], the public type: a small tree while its entries fit into one leaf, a large one beyond.
//!
//! Knows when one form is converted to the other. Must not know how either works.

use std::cmp::Ordering;

use super::capture::PreImagePieces;
use super::cursor::Cursor;
use super::large::LargeTree;
use super::page_image::CapturedPage;
use super::search_group::Sought;
use super::small::SmallTree;
use super::small::Violation;
use super::words::{Edit, Handle, MAX_WORDS, MemberOrder, Words};

/// A counted tree over entries `(words, handle)`, ascending by words, then by [`MemberOrder`].
///
/// `LEAF` and `INNER` are the most entries of a leaf and children of an inner node; the defaults are the
/// measured best. A handle is in the tree at most once. Every operation on one entry costs O(log n), whatever
/// the ties. An empty tree is 48 bytes, and one of a few entries takes little more than they do.
pub struct Tree<const LEAF: usize = 64, const INNER: usize = 64> {
    pub(super) form: Form<LEAF, INNER>,
}

pub(super) enum Form<const LEAF: usize, const INNER: usize> {
    Small(SmallTree<LEAF>),
    Large(Box<LargeTree<LEAF, INNER>>),
}

impl<const LEAF: usize, const INNER: usize> From<SmallTree<LEAF>> for Tree<LEAF, INNER> {
    fn from(small: SmallTree<LEAF>) -> Self {
        Self { form: Form::Small(small) }
    }
}

impl<const LEAF: usize, const INNER: usize> From<LargeTree<LEAF, INNER>> for Tree<LEAF, INNER> {
    /// A large tree whose entries would fit into a small one becomes that.
    fn from(mut large: LargeTree<LEAF, INNER>) -> Self {
        match large.take_small(LEAF) {
            Some(small) => small.into(),
            None => Self { form: Form::Large(Box::new(large)) },
        }
    }
}

impl<const LEAF: usize, const INNER: usize> Tree<LEAF, INNER> {
    /// A large tree becomes small at half of what a small one can hold, so that one at the boundary does not
    /// change form again and again.
    const SHRINK_AT: usize = LEAF / 2;

    /// An empty tree whose entries have `columns` words.
    ///
    /// # Panics
    /// When `columns` is 0 or above [`MAX_WORDS`].
    pub fn new(columns: usize) -> Self {
        assert!((1..=MAX_WORDS).contains(&columns), "an entry has 1 to {MAX_WORDS} words");
        SmallTree::new(columns).into()
    }

    /// A tree of entries which come in order. O(n), about 50 ns an entry, most of it the system's handing out
    /// of memory. Every page of it is dirty.
    ///
    /// # Panics
    /// When an entry does not have `columns` words, or a handle comes twice. Order is only checked in debug
    /// builds, and only by words; [`Tree::check`] does so thoroughly.
    pub fn from_sorted(columns: usize, entries: impl IntoIterator<Item = (Words, Handle)>) -> Self {
        LargeTree::from_sorted(columns, entries).into()
    }

    /// Words per entry.
    pub fn columns(&self) -> usize {
        match &self.form {
            Form::Small(small) => usize::from(small.columns),
            Form::Large(large) => large.columns,
        }
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> u64 {
        match &self.form {
            Form::Small(small) => u64::from(small.len),
            Form::Large(large) => large.len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn contains(&self, handle: Handle) -> bool {
        match &self.form {
            Form::Small(small) => small.find(handle).is_some(),
            Form::Large(large) => large.contains(handle),
        }
    }

    /// The words of a handle's entry. Two or three cache misses; none after [`Tree::prefetch_entry`].
    #[inline]
    pub fn get(&self, handle: Handle) -> Option<Words> {
        match &self.form {
            Form::Small(small) => small.find(handle).map(|at| small.entries().words(at)),
            Form::Large(large) => large.get(handle),
        }
    }

    /// Heap memory, in bytes, without the struct itself, allocated but unused parts included.
    pub fn bytes(&self) -> usize {
        match &self.form {
            Form::Small(small) => small.bytes(),
            Form::Large(large) => size_of::<LargeTree<LEAF, INNER>>() + large.bytes(),
        }
    }

    /// Heap memory of the parts of a large tree, in bytes and by name, for who asks where it goes.
    pub fn bytes_by_part(&self) -> Vec<(&'static str, usize)> {
        match &self.form {
            Form::Small(small) => vec![("small tree", small.bytes())],
            Form::Large(large) => large.bytes_by_part().to_vec(),
        }
    }

    /// Leaves in use. `len / (leaves * LEAF)` is the average fill.
    pub fn leaf_count(&self) -> usize {
        match &self.form {
            Form::Small(_) => 1,
            Form::Large(large) => large.leaf_count(),
        }
    }

    /// Levels of inner nodes above the leaves.
    pub fn levels(&self) -> u8 {
        match &self.form {
            Form::Small(_) => 0,
            Form::Large(large) => large.height,
        }
    }

    /// First of two hints for a coming [`Tree::get`] or edit: asks for what says where the entry is.
    ///
    /// Give it for a group of 8 to 32 handles, then [`Tree::prefetch_entry`] for the group, then look them
    /// up.
    #[inline]
    pub fn prefetch_locator(&self, handle: Handle) {
        match &self.form {
            Form::Small(small) => small.prefetch(),
            Form::Large(large) => large.prefetch_locator(handle),
        }
    }

    /// Second of the two hints: asks for the entry itself. Waits if the first hint was not given.
    #[inline]
    pub fn prefetch_entry(&self, handle: Handle) {
        if let Form::Large(large) = &self.form {
            large.prefetch_entry(handle);
        }
    }
}

/// Changes.
impl<const LEAF: usize, const INNER: usize> Tree<LEAF, INNER> {
    /// Takes the present entry of every edit's handle out, then puts the new ones in. A handle may be in at
    /// most one edit; it need not be in the tree.
    ///
    /// All old entries go before any new one comes, so a handle freed and given to another member in the same
    /// batch is compared only as what it is now: `order` answers for the state after the batch.
    ///
    /// O(log n) an edit; a score update in a tree of ten million entries costs well below a microsecond in
    /// batches of a thousand.
    ///
    /// # Panics
    /// When new words are not `columns` many.
    pub fn apply(&mut self, edits: &[Edit], order: &impl MemberOrder) {
        match &mut self.form {
            Form::Small(small) if small.len_after(edits) <= LEAF => small.apply(edits, order),
            _ => {
                self.large().apply(edits, order);
                self.shrink_if_sparse();
            }
        }
    }

    /// Brings what [`Tree::apply`] will work on into the cache, changing nothing: for a caller that applies
    /// under a write lock, and can take the cache misses under a read lock before. About half of what
    /// applying costs from cold memory; a few hundred edits fit into a second-level cache.
    ///
    /// # Arguments
    /// `pieces`: receives what leaves that are set aside for a capture will take.
    pub fn warm(&self, edits: &[Edit], order: &impl MemberOrder, pieces: &mut PreImagePieces) {
        match &self.form {
            Form::Small(small) => small.prefetch(),
            Form::Large(large) => large.warm(edits, order, pieces),
        }
    }

    /// The large form, which a small tree takes first.
    fn large(&mut self) -> &mut LargeTree<LEAF, INNER> {
        if let Form::Small(small) = &mut self.form {
            let small = std::mem::replace(small, SmallTree::new(usize::from(small.columns)));
            self.form = Form::Large(Box::new(LargeTree::of_small(small)));
        }
        match &mut self.form {
            Form::Large(large) => large,
            Form::Small(_) => unreachable!("the tree was made large just now"),
        }
    }

    /// A large tree that has lost nearly all of its entries becomes small.
    #[inline]
    pub(super) fn shrink_if_sparse(&mut self) {
        if let Form::Large(large) = &mut self.form
            && large.height == 0
            && let Some(small) = large.take_small(Self::SHRINK_AT)
        {
            self.form = Form::Small(small);
        }
    }
}

/// Rank and select: from keys to counts and from counts to entries. Changes nothing.
impl<const LEAF: usize, const INNER: usize> Tree<LEAF, INNER> {
    /// Entries whose leading words are before `prefix`, which has 1 to `columns` words. One descent.
    ///
    /// # Panics
    /// When `prefix` has more words than an entry.
    pub fn count_below(&self, prefix: &[u64]) -> u64 {
        match &self.form {
            Form::Small(small) => small.entries().equal_range(prefix).0 as u64,
            Form::Large(large) => large.count_below(prefix),
        }
    }

    /// Entries whose leading words are before `prefix` or equal to it. One descent.
    ///
    /// # Panics
    /// When `prefix` has more words than an entry.
    pub fn count_through(&self, prefix: &[u64]) -> u64 {
        match &self.form {
            Form::Small(small) => small.entries().equal_range(prefix).1 as u64,
            Form::Large(large) => large.count_through(prefix),
        }
    }

    /// [`Tree::count_below`] and [`Tree::count_through`] at once: one descent, and another from where the two
    /// part.
    ///
    /// # Panics
    /// When `prefix` has more words than an entry.
    #[inline]
    pub fn count_range(&self, prefix: &[u64]) -> (u64, u64) {
        match &self.form {
            Form::Small(small) => {
                let (below, through) = small.entries().equal_range(prefix);
                (below as u64, through as u64)
            }
            Form::Large(large) => large.count_range(prefix),
        }
    }

    /// As [`Tree::count_range`] for each prefix, in their order. In a large tree a fraction of what as many
    /// single counts take: they wait for memory together.
    ///
    /// # Panics
    /// When a prefix has more words than an entry.
    pub fn count_ranges(&self, prefixes: &[&[u64]], mut found: impl FnMut((u64, u64))) {
        match &self.form {
            Form::Small(_) => prefixes.iter().for_each(|prefix| found(self.count_range(prefix))),
            Form::Large(large) => large.count_ranges(prefixes, found),
        }
    }

    /// For each place, in their order, [`Tree::count_below`] its score and [`Tree::count_before`] it.
    ///
    /// # Arguments
    /// `compare`: how a handle's id compares with that of the nth place.
    ///
    /// # Panics
    /// When a place has more words than an entry, or fewer than its score.
    pub fn count_entries(
        &self,
        places: &[Sought<'_>],
        compare: &mut dyn FnMut(usize, Handle) -> Ordering,
        mut found: impl FnMut((u64, u64)),
    ) {
        match &self.form {
            Form::Small(small) => {
                let entries = small.entries();
                for (nth, place) in places.iter().enumerate() {
                    let better = entries.equal_range(place.score()).0;
                    let before = entries.entries_before(place.words, |handle| compare(nth, handle));
                    found((better as u64, before as u64));
                }
            }
            Form::Large(large) => large.count_entries(places, compare, found),
        }
    }

    /// Entries strictly before `(words, member)`, for a member that need not be in this tree: `compare` says
    /// how a handle's id compares with the sought one. One descent, and a call of `compare` per halving of
    /// equal words.
    ///
    /// # Panics
    /// When `words` has more words than an entry.
    pub fn count_before(&self, words: &[u64], compare: &mut dyn FnMut(Handle) -> Ordering) -> u64 {
        match &self.form {
            Form::Small(small) => small.entries().entries_before(words, compare) as u64,
            Form::Large(large) => large.count_before(words, compare),
        }
    }

    /// Entries before the handle's own: its 0-based index. No key is compared; up from the leaf, a sum per
    /// level.
    #[inline]
    pub fn index_of(&self, handle: Handle) -> Option<u64> {
        match &self.form {
            Form::Small(small) => small.find(handle).map(|at| at as u64),
            Form::Large(large) => large.index_of(handle),
        }
    }

    /// The entry that `index` others are before.
    pub fn select(&self, index: u64) -> Option<(Handle, Words)> {
        match &self.form {
            Form::Small(small) if index < self.len() => {
                let entries = small.entries();
                Some((entries.handle(index as usize), entries.words(index as usize)))
            }
            Form::Small(_) => None,
            Form::Large(large) => large.select(index),
        }
    }

    /// Visits entries, in order and with their indexes, such that at most `depth` entries lie from the start
    /// to the first of them, from each to the next one, and from the last one to the end. There are at most
    /// about twice as many as have to be. Costs as much as there are of them, and O(log n). A tree that is
    /// small has none.
    pub fn outline(&self, depth: u64, visit: &mut dyn FnMut(u64, Handle, Words)) {
        if let Form::Large(large) = &self.form {
            large.outline(depth, visit);
        }
    }

    /// A cursor before the entry at `index`, or behind the last one if there is none. One descent.
    pub fn cursor_at(&self, index: u64) -> Cursor<'_, LEAF, INNER> {
        match &self.form {
            Form::Small(small) => Cursor::over(small.entries(), index.min(self.len()) as usize),
            Form::Large(large) => large.cursor_at(index),
        }
    }
}

/// The interface for checkpoints.
impl<const LEAF: usize, const INNER: usize> Tree<LEAF, INNER> {
    /// The leaves changed, allocated or freed since the last call become the pending ones, to be handed out
    /// by [`Tree::capture_next`] exactly as they are now.
    ///
    /// If the last capture was handed out to its end, it counts as stored. If not, it is abandoned first.
    /// Takes nanoseconds in the first case.
    pub fn begin_capture(&mut self) {
        match &mut self.form {
            Form::Small(small) => small.begin_capture(),
            Form::Large(large) => {
                large.begin_capture();
                // Pages awaiting deletion may have kept the tree large.
                self.shrink_if_sparse();
            }
        }
    }

    /// Hands out up to `max_pages` pending pages, the lowest first, and says whether there are more.
    ///
    /// Between two calls the tree may change. A leaf that changes while pending is copied aside first, 20
    /// bytes an entry on a board with one key, and the copy is freed when it is handed out.
    pub fn capture_next(&mut self, max_pages: usize, sink: &mut dyn FnMut(CapturedPage<'_>)) -> bool {
        match &mut self.form {
            Form::Small(small) => {
                if max_pages > 0 {
                    small.hand_out(sink);
                }
                small.is_capture_pending()
            }
            Form::Large(large) => large.capture_next(max_pages, sink),
        }
    }

    /// The checkpoint failed: all that was pending at the last [`Tree::begin_capture`], handed out or not, is
    /// dirty again, up to `max_pages` of it at each call. Says whether there are more. Also after the last
    /// page was handed out, until the next capture begins. Between two calls the tree may change.
    pub fn abandon_capture(&mut self, max_pages: usize) -> bool {
        match &mut self.form {
            Form::Small(small) => {
                small.abandon_capture();
                false
            }
            Form::Large(large) => large.abandon_capture(max_pages),
        }
    }

    /// Every page there is or ever was becomes dirty: the next capture hands out the whole tree.
    pub fn mark_all_dirty(&mut self) {
        match &mut self.form {
            Form::Small(small) => small.touch(),
            Form::Large(large) => large.mark_all_dirty(),
        }
    }

    /// Pages that the next capture would hand out.
    pub fn dirty_pages(&self) -> usize {
        match &self.form {
            Form::Small(small) => usize::from(small.dirty),
            Form::Large(large) => large.dirty_pages(),
        }
    }

    /// Pages of the current capture not handed out yet.
    pub fn pending_pages(&self) -> usize {
        match &self.form {
            Form::Small(small) => usize::from(small.is_capture_pending()),
            Form::Large(large) => large.pending_pages(),
        }
    }

    /// Checks everything that must hold: order, counts, separators, parents, the locator both ways, free
    /// lists and marks. O(n).
    ///
    /// Leaves may hold few entries, as loaded ones may; inner nodes have at least two children.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check(&self, order: &impl MemberOrder) -> Result<(), Violation> {
        match &self.form {
            Form::Small(small) => small.check(order),
            Form::Large(large) => large.check(order),
        }
    }

    /// Whether no leaf but the root has fewer entries than edits would leave it.
    #[cfg(test)]
    pub(super) fn is_filled(&self) -> bool {
        match &self.form {
            Form::Small(_) => true,
            Form::Large(large) => large.is_filled(),
        }
    }
}

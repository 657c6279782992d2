//! Checks all invariants of a tree, in one walk. For tests and for `verify`.

use std::cmp::Ordering;

use super::columns::Columns;
use super::large::LargeTree;
use super::leaf::NONE;
use super::small::Violation;
use super::words::MemberOrder;

macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err(Violation::new(format!($($what)+)));
        }
    };
}

/// What the walk has seen so far.
struct Walk<'a, O> {
    order: &'a O,
    /// The last entry seen, by leaf and place.
    last: Option<(u32, usize)>,
    leaves: usize,
    inners: usize,
}

impl<const LEAF: usize, const INNER: usize> LargeTree<LEAF, INNER> {
    pub(super) fn check(&self, order: &impl MemberOrder) -> Result<(), Violation> {
        let mut walk = Walk { order, last: None, leaves: 0, inners: 0 };
        let counted = self.check_node(&mut walk, self.height, self.root, NONE)?;
        ensure!(counted == self.len, "its leaves hold {counted} entries, but its count is {}", self.len);
        ensure!(
            self.locator.len() == self.len,
            "the locator has {} handles, but there are {} entries",
            self.locator.len(),
            self.len
        );
        ensure!(
            walk.leaves == self.leaf_count(),
            "{} leaves can be reached, but {} are in use",
            walk.leaves,
            self.leaf_count()
        );
        ensure!(
            walk.inners == self.inners.in_use(),
            "{} inner nodes can be reached, but {} are in use",
            walk.inners,
            self.inners.in_use()
        );
        for &leaf in &self.leaves.free {
            ensure!(self.leaves.len(leaf) == 0, "free leaf {leaf} has entries");
        }
        if let Some(leaf) = self.leaves.misplaced() {
            return Err(Violation::new(format!("leaf {leaf} is not where its entries are")));
        }
        ensure!(self.leaves.moved.is_empty(), "leaves {:?} have moved unnoticed", self.leaves.moved);
        ensure!(self.capture_is_sane(), "the dirty marks and the sets of dirty leaves differ");
        Ok(())
    }

    fn check_node(
        &self,
        walk: &mut Walk<'_, impl MemberOrder>,
        level: u8,
        node: u32,
        parent: u32,
    ) -> Result<u64, Violation> {
        if level == 0 {
            return self.check_leaf(walk, node, parent);
        }
        walk.inners += 1;
        let meta = self.inners.meta(node);
        let len = self.inners.len(node);
        ensure!(meta.level == level, "node {node} is at level {level}, but records level {}", meta.level);
        ensure!(
            meta.parent == parent,
            "node {node} is below node {parent}, but records the parent {}",
            meta.parent
        );
        ensure!((2..=INNER).contains(&len), "node {node} has {len} children");
        let mut total = 0;
        for slot in 0..len {
            let child = self.inners.child(node, slot);
            let count = self.check_node(walk, level - 1, child, node)?;
            let said = u64::from(self.inners.counts(node)[slot]);
            ensure!(
                count == said,
                "node {node} slot {slot}: its child has {count} entries, but its count is {said}"
            );
            ensure!(
                level > 1 || self.inners.address(node, slot) == self.leaves.address(child),
                "node {node} slot {slot}: the entries of leaf {child} are not at its address"
            );
            let first = self.first_of(level - 1, child);
            let separators = self.inners.separators(node);
            ensure!(
                separators.words(slot) == first.words(0) && separators.handle(slot) == first.handle(0),
                "node {node} slot {slot}: the separator is {:?} {:?}, but the first entry of its child is {:?} {:?}",
                separators.words(slot),
                separators.handle(slot),
                first.words(0),
                first.handle(0)
            );
            total += count;
        }
        Ok(total)
    }

    fn first_of(&self, level: u8, node: u32) -> Columns<'_> {
        if level == 0 { self.leaves.columns(node) } else { self.inners.separators(node) }
    }

    fn check_leaf(
        &self,
        walk: &mut Walk<'_, impl MemberOrder>,
        leaf: u32,
        parent: u32,
    ) -> Result<u64, Violation> {
        walk.leaves += 1;
        let meta = self.leaves.meta(leaf);
        let entries = self.leaves.columns(leaf);
        let len = entries.len();
        ensure!(
            meta.parent == parent,
            "leaf {leaf} is below node {parent}, but records the parent {}",
            meta.parent
        );
        ensure!(len <= LEAF && (len > 0 || parent == NONE), "leaf {leaf} has {len} entries");
        for at in 0..len {
            let handle = entries.handle(at);
            let located = self.locator.get(handle);
            ensure!(located == leaf, "{handle:?} is in leaf {leaf}, but the locator names leaf {located}");
            if let Some(last) = walk.last {
                let order = self.compare_entries(last, (leaf, at), walk.order);
                ensure!(order == Ordering::Less, "leaf {leaf} entry {at} {handle:?} is out of order");
            }
            walk.last = Some((leaf, at));
        }
        Ok(len as u64)
    }

    /// Whether leaves have the entries that edits leave in them. The last leaf of a run may be short, behind
    /// one that is not; a short first one is possible below each inner node.
    #[cfg(test)]
    pub(super) fn is_filled(&self) -> bool {
        let least = Self::LEAF_MERGED.div_ceil(2).min(Self::LEAF_MIN);
        let (mut short, mut leaf) = (0, self.cursor_at(0).leaf());
        while leaf != NONE {
            short += usize::from(self.leaves.len(leaf) < least);
            leaf = self.next_leaf(leaf);
        }
        self.height == 0 || short <= self.leaf_count() / 2 + self.inners.in_use()
    }
}

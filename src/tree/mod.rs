//! The counted B+ tree: entries `(words, handle)` in best-first order, and how many lie before any of them.
//!
//! Pure: no I/O, no clock, no locks, nothing awaited. It knows words (ascending is best first) and handles;
//! it must not know scores, members or disks. The owner of a tree serialises changes to it, and admits
//! readers in between.
//!
//! Read in this order: what an entry is, where nodes live, how nodes look, the two forms of a tree, what is
//! done with the large one, and last the tree as everybody else sees it ([`Tree`], in `tree::counted_tree`).

#![allow(
    clippy::indexing_slicing,
    reason = "nodes are arrays, and every index comes from a length or a search over the same array"
)]
#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "node sizes are below 2^8 and ids below 2^32; widening and narrowing among them is what this code does"
)]

mod words;

mod arena;
mod columns;
mod inner;
mod leaf;
mod leaf_address;
mod leaf_blocks;
mod locator;
mod narrow;
mod page_image;
mod page_set;
mod prefetch;
mod run;
mod whole;

mod large;
mod small;

mod apply;
mod capture;
mod check;
mod cursor;
mod edit;
mod load;
mod outline;
mod pre_images;
mod rebalance;
mod search;
mod search_group;
mod standing;

mod counted_tree;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub(crate) use arena::Blocks;
pub use capture::PreImagePieces;
pub use columns::Columns;
pub use counted_tree::Tree;
pub use cursor::Cursor;
pub use load::{PageError, PageLoader, PageSlots};
pub use page_image::{CapturedPage, PageCopy};
pub use page_set::PageSet;
pub use prefetch::line_of as prefetch;
pub use search_group::Sought;
pub use small::Violation;
pub use standing::{Ahead, Standing};
pub use words::{Edit, Handle, IDS_DESCEND, MAX_WORDS, MemberOrder, Words, compare_ids};

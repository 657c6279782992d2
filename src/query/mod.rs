//! Reads: one shard's counts and entries, summed and merged over all shards of the node.
//!
//! Knows: that rank and position add up, and that all shards share one total order. Must not know: HTTP or
//! JSON. A read is a plain function over a [`BoardView`]; nothing here awaits, and the disk is read
//! (metadata) only after the shards' locks were released.

mod node;

mod board_view;

mod answer;
mod merge;
mod page;
mod split;

mod around;
mod behind;
mod count;
mod lookup;
mod member;
mod on_boards;
mod position;
mod range;
mod rank;
mod score_at;
mod top;

mod cursor;
mod entries;
mod metadata;
mod outcome;
mod read;
mod reject_cursor;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use answer::{Entry, Listed, ListedMetadata, Page, Standing};
pub use around::{Around, around};
pub use behind::{Behind, cut_behind_position, cut_behind_score};
pub use board_view::{BoardView, ShardStanding, SortKey};
pub use count::{Bucket, Histogram, count, edges_over, held, histogram};
pub use cursor::{End, PageCursor};
pub use entries::{HoldsEntries, OfOneMoment};
pub use lookup::{Lookup, lookup};
pub use member::member;
pub use metadata::{fill_metadata, missing_metadata, recall_metadata, with_metadata};
pub use node::{Node, ShardHandle, View};
pub use on_boards::{OnBoards, Which, on_boards};
pub use outcome::{EntryChange, Previous, complete};
pub use position::from_position;
pub use range::range;
pub use rank::{Probe, probe};
pub use read::{Answer, read};
pub use reject_cursor::RejectFilters;
pub use score_at::{Mark, score_at};
pub use top::{Start, top};

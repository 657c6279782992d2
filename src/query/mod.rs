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
mod count;
mod entries_of_member;
mod lookup;
mod member;
mod position;
mod range;
mod rank;
mod score_at;
mod top;
mod trim_scan;

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

pub use answer::{Listed, ListedMetadata, MemberEntry, Page, Standing};
pub use around::{Around, around};
pub use board_view::{BoardView, ShardStanding, SortKey};
pub use count::{Bucket, Histogram, count, count_all, edges_over, histogram};
pub use cursor::{End, PageCursor};
pub use entries::{ConsistentAnswer, VisitEntries};
pub use entries_of_member::{BoardSelection, EntriesOfMember, entries_of_member};
pub use lookup::{Lookup, lookup};
pub use member::member;
pub use metadata::{fill_metadata, fill_unchanged_metadata, missing_metadata, with_metadata};
pub use node::{Node, ShardHandle, View};
pub use outcome::{EntryChange, Previous, add_other_shards};
pub use position::from_position;
pub use range::range;
pub use rank::{ScoreRank, rank_of_score};
pub use read::{Answer, read};
pub use reject_cursor::RejectFilters;
pub use score_at::{ScoreTarget, score_at};
pub use top::{Start, top};
pub use trim_scan::{TrimScan, trim_point_of_position, trim_point_of_score};

//! Reads: one shard's counts and entries, summed and merged over all shards of the node.
//!
//! Knows: that rank and position add up, and that all shards share one total order. Must not know: HTTP or
//! JSON. A read is a function over a [`BoardView`], written once for shards in memory and for remote shards,
//! which are asked questions ([`question`]). Over shards in memory nothing waits, and the disk is read
//! (metadata) only after their locks were released.

mod few;
mod instance;
mod instances_of_board;
mod local_shards;
mod node;

pub mod live;
pub mod question;
pub mod summary;

mod shard_board;
mod shard_run;

mod answering_shard;
mod board_view;
mod read_shards;
mod remote_shards;

mod answer;
mod find_place;
mod hidden_in_memory;
mod merge;
mod page;

mod around;
mod board_end;
mod columns;
mod combine;
mod count;
mod entries_of_member;
mod hidden;
mod lookup;
mod member;
mod movement;
mod position;
mod range;
mod rank;
mod rank_within_capacity;
mod score_at;
mod top;
mod trim_scan;

mod cursor;
mod entries;
mod metadata;
mod outcome;
mod read;
mod reject_cursor;
mod rejects_of_shard;
mod rejects_page;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use answer::{
    ColumnEntry, Listed, ListedColumn, ListedMetadata, ListedMovement, ListedProfile, MemberEntry, Page,
    Standing,
};
pub use answering_shard::{AnsweringShard, INLINE_DISK_READS, NotAnswered, ShardHandle};
pub use around::{Around, AroundMember, around};
pub use board_end::{BoardEnd, BoardEnds};
pub use board_view::{BoardView, ShardStanding, run_in_memory};
pub use columns::{ColumnsAsked, WithColumns};
pub use combine::{
    Combine, CombineRefused, CombinedAnswer, CombinedBoard, CombinedEntry, FROM_THE_LEAST, NoCombination,
};
pub use count::{
    Bounds, BoundsRefused, Bucket, CountAll, CountBetween, EdgesRefused, Histogram, HistogramEdges,
    HistogramOver, TotalsOf, count, count_all, edges_over, histogram,
};
pub use cursor::{End, PageCursor};
pub use entries::{ConsistentAnswer, VisitEntries};
pub use entries_of_member::{BoardSelection, EntriesOfMember, MemberOnBoards, entries_of_member};
pub use few::Few;
pub use hidden::{HiddenCursor, HiddenMembers, HiddenPage};
pub use hidden_in_memory::{HiddenEntry, hidden_entries};
pub use instance::{EVERY, InstanceAsked, NoMovement, UnknownWindow, WindowChoice};
pub use instances_of_board::{InstancesOfBoard, InstancesOfWindow, ListInstances, ListedInstance};
pub use local_shards::LocalShards;
pub use lookup::{Lookup, LookupMembers, lookup};
pub use member::{MemberOf, member};
pub use metadata::{ask_for_profiles, fill_few, fill_unchanged_metadata, missing_metadata, with_metadata};
pub use movement::{MovementAsked, WithMovement};
pub use node::{Node, View};
pub use outcome::{AddOtherShards, EntryChange, FoundOutcome, Previous, add_other_shards, of_only_shard};
pub use position::{FromPosition, from_position};
pub use question::Ranking;
pub use range::{Range, range};
pub use rank::{RanksOf, ScoreRank, ranks_of_scores};
pub use read::{
    Answer, BoardRead, NoBoard, OfBoard, ReadReply, ShardsRead, TotalOnly, read, read_in_memory, read_remote,
};
pub use read_shards::ReadShards;
pub use reject_cursor::{RejectFilters, is_reject_of};
pub use rejects_page::page_of_remote_rejects;
pub use remote_shards::{
    AskTerms, NoReply, ReadError, ReadOptions, RemoteShards, ShardClient, ShardUnavailable,
};
pub use score_at::{ScoreTarget, ScoresAt, scores_at};
pub use top::{Start, Top, top};
pub use trim_scan::{FindTrimPoint, TrimFrom, TrimScan, trim_point_of_position, trim_point_of_score};

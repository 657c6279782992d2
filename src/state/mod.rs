//! A shard's state in memory. Pure: knows nothing of how it came about, or where it is stored.

mod bans;
mod boards;
mod definitions;
mod dropped;
mod entry;
mod expiry;
mod extras;
mod handle_map;
mod handle_stack;
mod ids;
mod in_groups;
mod index;
mod job_ids;
mod joining;
mod last_jobs;
mod log_hash;
mod member_versions;
mod members;
mod membership_slots;
mod memberships;
mod retired;
mod shard;
mod shard_time;
mod step;
mod store_order;
mod tree_sets;
mod trim_point;
mod unfinished;
mod window_tree;

#[cfg(test)]
mod changed_tests;

pub use bans::{
    BANS_EVERYWHERE_MAX, BANS_OF_BOARD_MAX, BANS_OF_BOARD_SURE, BANS_SHARED_MAX, Ban, BanChange, BanRecord,
    BanScope, Bans, BansAsked, MemberBans, name_of, no_room,
};
pub use boards::Board;
pub use definitions::Definitions;
pub use dropped::{Dropped, DroppedName, Incarnation, REMEMBERED_MAX, RecordNumber};
pub use entry::{Entry, EntryParts, EntryState, EntryStateParts, Extra, TreeId, Unlisted};
pub use expiry::{Expiring, Expiry};
pub use job_ids::{FirstApplied, JOB_IDS_MAX, JobIdAge, JobIdChange, JobIds};
pub use joining::Joined;
pub use last_jobs::{LastJobChange, LastJobs};
pub use log_hash::{
    HASH_VERSION, HashPoint, LogHash, LogHashes, POINT_MESSAGES, SEGMENT_MESSAGES, is_in_same_segment,
};
pub use member_versions::{
    MEMBER_VERSIONS_MAX, MemberVersion, MemberVersionAge, MemberVersionChange, MemberVersions,
};
pub use members::{Dictionary, DictionaryIndex, Era, HANDLES_MAX, MEMBERS_PER_PAGE, MemberHash, Members};
pub use retired::Retired;
pub use shard::EarlyInstances;
pub use shard::Shard;
pub use shard_time::{LEAP, ShardTime};
pub use step::{Applied, BoardEvent, IdBytes, Step, StepPart, StepPlace};
pub use store_order::{STORE_SOURCES_MAX, StoreOrder, StoreRange, StoreSource};
pub use trim_point::{TrimPoint, TrimSide};
pub use window_tree::{Change, DirtyEntries, ENTRIES_PER_PAGE, ShardRanking, TieBreakTimes, WindowTree};

//! A shard on disk: one RocksDB directory, written in one write batch per drained batch and checkpointed
//! beside it.
//!
//! The only module that names `rocksdb`, and, in [`codec`] alone, bincode.

pub mod codec;
mod keys;

mod disk;
mod error;
mod files;
mod layout;
mod options;
mod real_paths;
mod shard_directory;
mod slot;
mod store;

mod commit;
mod erasures;
mod rejects;

mod fit;
mod identity;
mod shard_copy;

mod checkpoint;
mod copies;
mod staged;

mod recovery;
mod replay;
mod walk;

mod unbound;
mod verify;
mod verify_parked;

pub use checkpoint::{Checkpoint, CheckpointPhase, STAGED_FILE_BYTES};
pub use commit::Commit;
pub use disk::DiskSpace;
pub use erasures::{EraseRejects, Erasures};
pub use error::StorageError;
pub use files::{
    DataLayout, DataMarker, DirectoryLock, holds_a_database, is_of_a_database, make_private_directory,
    mark_layout, mark_prefix, mark_shard, raise_floors, replace_file,
};
pub use fit::{Fit, check_fit, check_fit_on_disk, next_identity, service_of_shards};
pub use identity::{Lineage, ServiceId, ShardIdentity};
pub use layout::{
    FilledFrom, RESTORING, SNAPSHOT, check_directory, check_marked, check_no_snapshot, data_around,
    filled_from, has_lost, known_data, known_layout, known_shards, missing_shard, remove_in_place_of_lost,
    service_in, shards_in,
};
pub use options::{CancelLoading, StorageResources};
pub use real_paths::{OPEN_FILES, with_real_paths};
pub use recovery::{Recovered, TreesFrom, mark_rebuilt, recover};
pub use rejects::{RejectsBefore, RejectsLimits, UnreadableRejects, page_of_rejects};
pub use replay::{ExpectedCounts, replay};
pub use shard_copy::{ShardCopy, begin_lineage, copy_shard};
pub use shard_directory::shard_directory;
pub use slot::StoreSlot;
pub use staged::CheckpointFigures;
pub use store::Progress;
pub use store::{
    HashCommit, InspectedDirectory, ParkedLine, ProfileAt, ReadPlace, Reopened, Store, StoreSnapshot,
};
pub use unbound::{is_unbound, unbind};
pub use verify::{VerifyCounts, check_rebuildable, rebuild, verify};
pub use verify_parked::{MemberLines, verify_parked};

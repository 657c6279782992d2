//! Snapshots: copies of all shards of a running node, and how they are put into the data directory of a
//! stopped one.
//!
//! - `taken`: the copies that a running node holds while clients fetch them
//! - `manifest`: the file that makes a directory a snapshot: what is in it, with sizes and checksums
//! - `source`: reads a snapshot, by rights of its own
//! - `restore`: checks a snapshot, and puts it into a data directory
//! - `swap`: the last step of that, which a crash may interrupt anywhere
//! - `one_shard`: a copy of another node's shard is put in place in a running node
//!
//! Knows: `storage`, which copies and opens single shards. Must not know: how files travel (`http`, `cli`).

mod manifest;
mod one_shard;
mod restore;
mod source;
mod swap;
mod taken;

pub use manifest::{MANIFEST, Manifest, ManifestError, ManifestFile, ManifestShard, append_checksum};
pub use one_shard::{ExpectedCopy, StagedCopies};
pub use restore::{Replace, RestoreError, Restored, restore};
pub use source::{Chosen, SnapshotSource, SourceError, refuse_overlap};
pub use taken::{AT_ONCE, IDLE, SnapshotError, Snapshots, TakenSnapshot};

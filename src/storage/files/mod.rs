//! Checks a shard's files before RocksDB opens them: refuses damage that would make RocksDB lose data, create
//! an empty database or loop forever.
//!
//! Knows: how RocksDB lays out `CURRENT`, its manifest and its logs, and the markers, which are files of our
//! own. Must not know: column families, or what our records say.

mod batch;
mod data_marker;
mod database_files;
mod frames;
mod lock;
mod logs;
mod manifest;
mod marker;
mod private_directory;
mod replaced;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub use data_marker::RecordedShard;
pub use data_marker::{
    DataLayout, DataMarker, has_marker, mark_layout, mark_prefix, mark_shard, raise_floors, read_data_marker,
};
pub use database_files::{holds_a_database, is_of_a_database};
pub use lock::{DirectoryLock, HeldDirectory};
pub use logs::{Logs, TornEnd, check_logs};
pub use manifest::{FlushedSequence, check_manifest};
pub use marker::{Floor, MARKER, Marker, Stage};
pub use private_directory::make_private_directory;
pub use replaced::replace_file;

//! A shard's files, looked at without RocksDB and before it: what RocksDB would lose, empty or spin over is refused here.
//!
//! Knows: how RocksDB lays out `CURRENT`, its manifest and its logs, and the marker, which is a file of our own. Must not
//! know: column families, or what our records say.

mod batch;
mod frames;
mod lock;
mod logs;
mod manifest;
mod marker;
mod remains;

#[cfg(test)]
mod tests;

pub use lock::DirectoryLock;
pub use logs::{Logs, TornEnd, check_logs};
pub use manifest::check_manifest;
pub use marker::{Floor, Marker, Stage};
pub use remains::holds_a_database;

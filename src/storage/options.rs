//! How RocksDB is set up: memory, logs, compaction, and how scans read.
//!
//! Knows: RocksDB's options. Must not know: whose directory it is, or what is in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::{BlockBasedOptions, Cache, DBCompressionType, DBRecoveryMode, Env, Options, ReadOptions};

use crate::storage::keys;

/// Cancels the loading of shards. Every scan of a store checks it.
#[derive(Debug, Clone, Default)]
pub struct CancelLoading(Arc<AtomicBool>);

impl CancelLoading {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Resources that the stores of one process share.
#[derive(Clone)]
pub struct StorageResources {
    pub stop: CancelLoading,
    block_cache: Cache,
    write_buffer_bytes: usize,
}

impl StorageResources {
    /// # Arguments
    /// `cache_bytes`: for blocks read from disk, over all shards. `shards`: how many stores will share.
    pub fn new(cache_bytes: usize, shards: u16) -> Self {
        // 256 MiB of memtables over all shards, 4 MiB at least: below that, flushes become too small to be
        // worth one.
        let each = (256 << 20) / usize::from(shards.max(1));
        Self {
            stop: CancelLoading::default(),
            block_cache: Cache::new_lru_cache(cache_bytes),
            write_buffer_bytes: each.clamp(4 << 20, 64 << 20),
        }
    }
}

/// How much of a file a flush or a compaction mostly writes with one system call. A kernel that is not
/// preemptible may go on until the call is done, whoever wants its core: with RocksDB's mebibyte at a time,
/// readers waited for 2 to 3 ms on a virtual machine whose host had to find the memory for the kernel's copy.
/// The crate has no such option for the files of a checkpoint.
const BYTES_PER_CALL: u64 = 64 << 10;

/// With so many bytes RocksDB begins another manifest. One that names a hundred thousand files has fewer.
const MANIFEST_BYTES: usize = 64 << 20;

pub(super) fn database_options() -> Options {
    let mut options = Options::default();
    // With this mode RocksDB drops everything after the first break of a log. That is safe, because `files`
    // has checked before that the break is a torn end: a power failure left it, and the writes after it were
    // never answered.
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    // Opening refuses a log that was synced and is shorter now, or missing.
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_max_background_jobs(2);
    if let Ok(mut environment) = Env::new() {
        // Flushes and compactions of all stores share these threads. They have a low priority, so that
        // readers get a core first.
        environment.lower_thread_pool_cpu_priority();
        environment.lower_high_priority_thread_pool_cpu_priority();
        options.set_env(&environment);
    }
    options.set_writable_file_max_buffer_size(BYTES_PER_CALL);
    options.set_bytes_per_sync(1 << 20);
    options.set_wal_bytes_per_sync(1 << 20);
    options.set_max_manifest_file_size(MANIFEST_BYTES);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(4 << 20);
    options
}

/// For an empty directory.
pub(super) fn creation_options() -> Options {
    let mut options = database_options();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options
}

pub(super) fn log_options(resources: &StorageResources) -> Options {
    let mut options = Options::default();
    options.set_write_buffer_size(resources.write_buffer_bytes);
    options.set_max_write_buffer_number(3);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_block_based_table_factory(&table_options(resources));
    options
}

pub(super) fn checkpoint_options(resources: &StorageResources) -> Options {
    let mut options = Options::default();
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_block_based_table_factory(&table_options(resources));
    options.set_target_file_size_base(128 << 20);
    options.set_max_bytes_for_level_base(1 << 30);
    options
}

/// For checkpoint files that are written to be ingested.
pub(super) fn staging_options() -> Options {
    let mut options = Options::default();
    options.set_compression_type(DBCompressionType::Lz4);
    let mut table = BlockBasedOptions::default();
    table.set_format_version(6);
    // Pages are a kilobyte or more and are read in long scans.
    table.set_block_size(32 << 10);
    options.set_block_based_table_factory(&table);
    options
}

fn table_options(resources: &StorageResources) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&resources.block_cache);
    table.set_format_version(6);
    table.set_block_size(16 << 10);
    table.set_bloom_filter(10.0, false);
    table
}

pub(super) fn prefix_options(prefix: &[u8]) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(prefix.to_vec());
    options.set_iterate_upper_bound(keys::after(prefix));
    options.set_readahead_size(2 << 20);
    // A scan of a checkpoint must not evict the blocks that readers need from the cache.
    options.fill_cache(false);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_and_compactions_write_little_with_one_system_call() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        drop(rocksdb::DB::open(&creation_options(), folder.path()).expect("an empty folder can be opened"));
        let log = std::fs::read_to_string(folder.path().join("LOG")).expect("RocksDB writes it");
        assert!(log.contains("Options.writable_file_max_buffer_size: 65536\n"), "{log}");
    }
}

//! The engine's baseline: scores in RocksDB by member, and no order at all.

use std::path::Path;

use rocksdb::{ColumnFamilyDescriptor, DB, Options, WaitForCompactOptions, WriteBatch, WriteOptions};

use super::workload::{Workload, id};

pub struct RawScores {
    db: DB,
}

impl RawScores {
    /// With the options that the engine's log has.
    pub fn open(folder: &Path) -> Self {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_max_background_jobs(2);
        options.set_bytes_per_sync(1 << 20);
        options.set_wal_bytes_per_sync(1 << 20);
        let mut family = Options::default();
        family.set_write_buffer_size(64 << 20);
        family.set_max_write_buffer_number(3);
        family.set_compression_type(rocksdb::DBCompressionType::Lz4);
        let families = [ColumnFamilyDescriptor::new("log", family)];
        Self { db: DB::open_cf_descriptors(&options, folder, families).expect("the store opens") }
    }

    /// Every member once.
    pub fn load(&self, members: u64, workload: &mut Workload) {
        for first in (0..members).step_by(10_000) {
            let members = first..(first + 10_000).min(members);
            let batch: Vec<(String, i64)> = members.map(|member| (id(member), workload.score())).collect();
            self.write(&batch);
        }
        self.wait_for_compactions();
    }

    /// Until RocksDB has no work in the background.
    pub fn wait_for_compactions(&self) {
        self.db.wait_for_compact(&WaitForCompactOptions::default()).expect("the disk takes it");
    }

    /// A batch of scores for whom the workload names.
    pub fn make_up(batch: u64, workload: &mut Workload) -> Vec<(String, i64)> {
        (0..batch).map(|_| (id(workload.member()), workload.score())).collect()
    }

    /// One write batch, without a sync.
    pub fn write(&self, scores: &[(String, i64)]) {
        let family = self.db.cf_handle("log").expect("opened with it");
        let mut batch = WriteBatch::default();
        for (member, score) in scores {
            batch.put_cf(family, member, score.to_be_bytes());
        }
        let mut options = WriteOptions::default();
        options.set_sync(false);
        self.db.write_opt(batch, &options).expect("the disk takes it");
    }
}

//! Names of all metrics, with their units: the only place that spells them.
//!
//! Base units, `_total` on counters, labels `shard`, `reason` and `route`, never a member.

/// Histogram, seconds, by route: from a request's arrival to its answer.
pub const HTTP_REQUEST_SECONDS: &str = "ranktree_http_request_seconds";
/// Histogram, seconds, by route: what a read takes, shards held and metadata fetched.
pub const READ_SECONDS: &str = "ranktree_read_seconds";
/// Histogram, shards, by route: how many shards a read asked.
pub const READ_SHARDS: &str = "ranktree_read_shards";

/// Tells the recorder what the metrics of reads and requests mean. Call it once, after the recorder is installed.
pub fn describe_http() {
    metrics::describe_histogram!(
        HTTP_REQUEST_SECONDS,
        metrics::Unit::Seconds,
        "Time from a request's arrival to its answer, by route"
    );
    metrics::describe_histogram!(
        READ_SECONDS,
        metrics::Unit::Seconds,
        "Time a read takes, shards held and metadata fetched, by route"
    );
    metrics::describe_histogram!(READ_SHARDS, metrics::Unit::Count, "Shards that a read asked, by route");
}

/// Counter, jobs, by shard.
pub const JOBS_APPLIED_TOTAL: &str = "ranktree_jobs_applied_total";
/// Counter, jobs, by shard and reason.
pub const JOBS_REJECTED_TOTAL: &str = "ranktree_jobs_rejected_total";
/// Histogram, jobs, by shard.
pub const BATCH_JOBS: &str = "ranktree_batch_jobs";
/// Histogram, seconds, by shard.
pub const PLAN_SECONDS: &str = "ranktree_plan_seconds";
/// Histogram, seconds, by shard.
pub const COMMIT_SECONDS: &str = "ranktree_commit_seconds";
/// Histogram, seconds, by shard.
pub const APPLY_SECONDS: &str = "ranktree_apply_seconds";
/// Histogram, seconds, by shard: from a message's timestamp to readers seeing it, message by message.
pub const PUBLISH_TO_VISIBLE_SECONDS: &str = "ranktree_publish_to_visible_seconds";
/// Gauge, by shard.
pub const APPLIED_SEQUENCE: &str = "ranktree_applied_sequence";
/// Gauge, messages, by shard.
pub const STREAM_LAG_MESSAGES: &str = "ranktree_stream_lag_messages";
/// Gauge, members, by shard.
pub const MEMBERS: &str = "ranktree_members";
/// Gauge, bytes, by shard.
pub const TREE_BYTES: &str = "ranktree_tree_bytes";
/// Gauge, by shard: 0 halted, 1 catching up, 2 live.
pub const SHARD_STATE: &str = "ranktree_shard_state";
/// Gauge, always 1, by version.
pub const BUILD_INFO: &str = "ranktree_build_info";
/// Gauges of RocksDB, by shard.
pub const ROCKSDB_MEMTABLE_BYTES: &str = "ranktree_rocksdb_memtable_bytes";
pub const ROCKSDB_SST_BYTES: &str = "ranktree_rocksdb_sst_bytes";
pub const ROCKSDB_PENDING_COMPACTION_BYTES: &str = "ranktree_rocksdb_pending_compaction_bytes";
pub const ROCKSDB_RUNNING_COMPACTIONS: &str = "ranktree_rocksdb_running_compactions";

/// From 25 µs to 10 s, in steps of 1, 2.5 and 5 by ten.
pub const SECONDS_BUCKETS: [f64; 17] =
    [25e-6, 50e-6, 1e-4, 25e-5, 5e-4, 1e-3, 25e-4, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// Jobs in a batch, shards in a read.
pub const COUNT_BUCKETS: [f64; 13] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0];

/// Tells the recorder what the writers' metrics mean. Call it once, after the recorder is installed.
pub fn describe_writers() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_counter!(JOBS_APPLIED_TOTAL, Unit::Count, "Jobs applied");
    describe_counter!(JOBS_REJECTED_TOTAL, Unit::Count, "Jobs rejected, by reason");
    describe_histogram!(BATCH_JOBS, Unit::Count, "Jobs in a drained batch");
    describe_histogram!(PLAN_SECONDS, Unit::Seconds, "Time to plan a batch");
    describe_histogram!(COMMIT_SECONDS, Unit::Seconds, "Time to commit a batch, its sync included");
    describe_histogram!(APPLY_SECONDS, Unit::Seconds, "Time to apply a batch to the trees and publish it");
    describe_histogram!(
        PUBLISH_TO_VISIBLE_SECONDS,
        Unit::Seconds,
        "Time from a message entering the queue to readers seeing it"
    );
    describe_gauge!(APPLIED_SEQUENCE, Unit::Count, "Highest sequence that readers see");
    describe_gauge!(STREAM_LAG_MESSAGES, Unit::Count, "Messages in the queue that are not applied yet");
    describe_gauge!(MEMBERS, Unit::Count, "Members that hold a score on any board");
    describe_gauge!(TREE_BYTES, Unit::Bytes, "Memory held by trees and the member index");
    describe_gauge!(SHARD_STATE, Unit::Count, "0 halted, 1 catching up, 2 live");
    describe_gauge!(BUILD_INFO, Unit::Count, "Always 1; the label says which version runs");
    describe_gauge!(ROCKSDB_MEMTABLE_BYTES, Unit::Bytes, "Memory held by RocksDB's memtables");
    describe_gauge!(ROCKSDB_SST_BYTES, Unit::Bytes, "Disk held by RocksDB's live files");
    describe_gauge!(ROCKSDB_PENDING_COMPACTION_BYTES, Unit::Bytes, "What RocksDB has still to compact");
    describe_gauge!(ROCKSDB_RUNNING_COMPACTIONS, Unit::Count, "Compactions under way");
}

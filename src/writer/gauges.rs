//! The metrics of a writer.
//!
//! Knows: which figure belongs to which verb. Must not know: who reads them.

use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::job::RejectCode;
use crate::metrics::{self as names, figure};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::{CheckpointFigures, Store};
use crate::types::{Sequence, ShardId, Timestamp, count};
use crate::writer::checkpointer::Checkpointer;
use crate::writer::health::{Health, ShardState};
use crate::writer::source::{Message, Payload};

/// How often the gauges of the shard's state are updated.
const STATE_INTERVAL: Duration = Duration::from_millis(500);
/// Of the messages that a shard applies while it catches up, the age of one in so many is noted.
const NOTED_BEHIND_EVERY: usize = 16;

/// How a property of RocksDB is read.
#[derive(Debug, Clone, Copy)]
enum Property {
    /// Per column family; the sum is reported.
    Families(&'static str),
    /// Of the whole database, or of what the column families share.
    Database(&'static str),
}

const ROCKSDB: [(Property, &str); 9] = [
    (Property::Families("rocksdb.cur-size-all-mem-tables"), names::ROCKSDB_MEMTABLE_BYTES),
    (Property::Families("rocksdb.live-sst-files-size"), names::ROCKSDB_SST_BYTES),
    (
        Property::Families("rocksdb.estimate-pending-compaction-bytes"),
        names::ROCKSDB_PENDING_COMPACTION_BYTES,
    ),
    (Property::Families("rocksdb.num-files-at-level0"), names::ROCKSDB_LEVEL0_FILES),
    (Property::Families("rocksdb.estimate-table-readers-mem"), names::ROCKSDB_TABLE_READERS_BYTES),
    (Property::Database("rocksdb.num-running-compactions"), names::ROCKSDB_RUNNING_COMPACTIONS),
    (Property::Database("rocksdb.num-running-flushes"), names::ROCKSDB_RUNNING_FLUSHES),
    (Property::Database("rocksdb.background-errors"), names::ROCKSDB_BACKGROUND_ERRORS),
    (Property::Database("rocksdb.is-write-stopped"), names::ROCKSDB_WRITES_STOPPED),
];
/// All shards share one block cache, so these have no shard label.
const BLOCK_CACHE: [(Property, &str); 2] = [
    (Property::Database("rocksdb.block-cache-usage"), names::ROCKSDB_BLOCK_CACHE_BYTES),
    (Property::Database("rocksdb.block-cache-capacity"), names::ROCKSDB_BLOCK_CACHE_CAPACITY_BYTES),
];

/// What was committed, for the metrics.
pub struct Committed {
    pub sequence: Sequence,
    pub jobs: u64,
    /// Entries that expired.
    pub expired: u64,
    /// Instances that were dropped because their time was over.
    pub instances_dropped: u64,
    pub rejects: Vec<RejectCode>,
}

/// The metrics of a shard's checkpoints.
struct CheckpointGauges {
    seconds: Histogram,
    bytes: Gauge,
    pages: Gauge,
    sequence: Gauge,
    timestamp: Gauge,
    pending_changes: Gauge,
    failures: Counter,
}

impl CheckpointGauges {
    fn new(shard: &str) -> Self {
        let of = |name: &'static str| gauge!(name, "shard" => shard.to_owned());
        let gauges = Self {
            seconds: histogram!(names::CHECKPOINT_SECONDS, "shard" => shard.to_owned()),
            bytes: of(names::CHECKPOINT_BYTES),
            pages: of(names::CHECKPOINT_PAGES),
            sequence: of(names::CHECKPOINT_SEQUENCE),
            timestamp: of(names::CHECKPOINT_TIMESTAMP_SECONDS),
            pending_changes: of(names::CHECKPOINT_PENDING_CHANGES),
            failures: counter!(names::CHECKPOINT_FAILURES_TOTAL, "shard" => shard.to_owned()),
        };
        gauges.note_time();
        gauges
    }

    fn note_time(&self) {
        let seconds = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0);
        self.timestamp.set(figure(seconds));
    }
}

/// A shard's metrics, looked up once.
pub struct Gauges {
    applied_total: Counter,
    rejected_total: Vec<(RejectCode, Counter)>,
    batch_jobs: Histogram,
    fetch: Histogram,
    plan: Histogram,
    commit: Histogram,
    apply: Histogram,
    publish_to_visible: Histogram,
    applied_sequence: Gauge,
    lag: Gauge,
    members: Gauge,
    tree_bytes: Gauge,
    state: Gauge,
    boards: Gauge,
    read_only: Gauge,
    boards_read_only: Gauge,
    windows: WindowGauges,
    parked: Gauge,
    commit_failures: Counter,
    damaged: Gauge,
    time_ahead: Gauge,
    checkpoints: CheckpointGauges,
    rocksdb: Vec<(Property, Gauge)>,
    state_updated_at: Option<Instant>,
}

/// What comes and goes with time.
struct WindowGauges {
    instances: Gauge,
    expiring: Gauge,
    expired_total: Counter,
    dropped_total: Counter,
}

impl WindowGauges {
    fn new(shard: &str) -> Self {
        let shard = shard.to_owned();
        Self {
            instances: gauge!(names::INSTANCES, "shard" => shard.clone()),
            expiring: gauge!(names::ENTRIES_EXPIRING, "shard" => shard.clone()),
            expired_total: counter!(names::ENTRIES_EXPIRED_TOTAL, "shard" => shard.clone()),
            dropped_total: counter!(names::INSTANCES_DROPPED_TOTAL, "shard" => shard),
        }
    }
}

impl Gauges {
    pub fn new(shard: ShardId) -> Self {
        let shard = shard.to_string();
        let rejected = |code: RejectCode| {
            let labels = [("shard", shard.clone()), ("reason", code.name().to_owned())];
            (code, counter!(names::JOBS_REJECTED_TOTAL, &labels))
        };
        let rocksdb = ROCKSDB
            .map(|(property, name)| (property, gauge!(name, "shard" => shard.clone())))
            .into_iter()
            .chain(BLOCK_CACHE.map(|(property, name)| (property, gauge!(name))));
        Self {
            applied_total: counter!(names::JOBS_APPLIED_TOTAL, "shard" => shard.clone()),
            rejected_total: RejectCode::ALL.into_iter().map(rejected).collect(),
            batch_jobs: histogram!(names::BATCH_JOBS, "shard" => shard.clone()),
            fetch: histogram!(names::FETCH_SECONDS, "shard" => shard.clone()),
            plan: histogram!(names::PLAN_SECONDS, "shard" => shard.clone()),
            commit: histogram!(names::COMMIT_SECONDS, "shard" => shard.clone()),
            apply: histogram!(names::APPLY_SECONDS, "shard" => shard.clone()),
            publish_to_visible: histogram!(names::PUBLISH_TO_VISIBLE_SECONDS, "shard" => shard.clone()),
            applied_sequence: gauge!(names::APPLIED_SEQUENCE, "shard" => shard.clone()),
            lag: gauge!(names::STREAM_LAG_MESSAGES, "shard" => shard.clone()),
            members: gauge!(names::MEMBERS, "shard" => shard.clone()),
            tree_bytes: gauge!(names::TREE_BYTES, "shard" => shard.clone()),
            state: gauge!(names::SHARD_STATE, "shard" => shard.clone()),
            boards: gauge!(names::BOARDS, "shard" => shard.clone()),
            read_only: gauge!(names::READ_ONLY, "shard" => shard.clone()),
            boards_read_only: gauge!(names::BOARDS_READ_ONLY, "shard" => shard.clone()),
            windows: WindowGauges::new(&shard),
            parked: gauge!(names::JOBS_PARKED, "shard" => shard.clone()),
            commit_failures: counter!(names::COMMIT_FAILURES_TOTAL, "shard" => shard.clone()),
            damaged: gauge!(names::STORAGE_DAMAGED, "shard" => shard.clone()),
            time_ahead: gauge!(names::TIME_AHEAD_SECONDS, "shard" => shard.clone()),
            checkpoints: CheckpointGauges::new(&shard),
            rocksdb: rocksdb.collect(),
            state_updated_at: None,
        }
    }

    /// Records a fetched batch and how long the fetch took. Returns when each message entered the queue.
    pub fn note_batch(&self, messages: &[Message], waited: Duration) -> Vec<Timestamp> {
        self.fetch.record(waited);
        let jobs: usize = messages.iter().map(jobs_in).sum();
        self.batch_jobs.record(figure(count(jobs)));
        messages.iter().map(|message| message.timestamp).collect()
    }

    pub fn record_batch(
        &self,
        committed: &Committed,
        arrived: &[Timestamp],
        is_live: bool,
        started: Instant,
        planned: Instant,
        committed_at: Instant,
    ) {
        self.plan.record(planned.duration_since(started));
        self.commit.record(committed_at.duration_since(planned));
        self.apply.record(committed_at.elapsed());
        self.applied_total.increment(committed.jobs - count(committed.rejects.len()));
        self.windows.expired_total.increment(committed.expired);
        self.windows.dropped_total.increment(committed.instances_dropped);
        for code in &committed.rejects {
            if let Some((_, counter)) = self.rejected_total.iter().find(|(counted, _)| counted == code) {
                counter.increment(1);
            }
        }
        let now = jiff::Timestamp::now().as_microsecond();
        // To note one takes some 60 ns. What a shard that catches up applies came long ago.
        for timestamp in arrived.iter().step_by(if is_live { 1 } else { NOTED_BEHIND_EVERY }) {
            self.publish_to_visible.record(age(*timestamp, now));
        }
    }

    pub fn note_failed_commit(&self) {
        self.commit_failures.increment(1);
    }

    pub fn note_checkpoint(&self, figures: &CheckpointFigures) {
        self.checkpoints.seconds.record(figures.took);
        self.checkpoints.bytes.set(figure(figures.bytes));
        self.checkpoints.pages.set(figure(figures.pages));
        self.checkpoints.note_time();
    }

    /// Notes how far the shard's effective time is ahead of this node's clock.
    pub fn note_time(&self, id: ShardId, time: Timestamp, health: &Health) {
        let ahead = time.as_micros() - jiff::Timestamp::now().as_microsecond();
        let ahead = Duration::from_micros(u64::try_from(ahead).unwrap_or(0));
        self.time_ahead.set(figure(ahead.as_secs()));
        if health.note_time_ahead(ahead.as_secs()) {
            tracing::warn!(
                shard = %id, %time, ahead_seconds = ahead.as_secs(),
                "the shard's time is far ahead of this node's clock: a clock was wrong when an earlier message was \
                 stamped, or this node's is now. Until the clocks reach that time, writes are stamped a \
                 microsecond apart after it, and times of jobs are not checked for being in the future"
            );
        }
    }

    /// Updates the gauges of the shard's state, unless that was done recently. Without a store, RocksDB's
    /// gauges keep their last values.
    pub fn note_state(
        &mut self,
        shard: &StateLock,
        health: &Health,
        store: Option<&Store>,
        checkpointer: &Checkpointer,
    ) {
        if self.state_updated_at.is_some_and(|noted| noted.elapsed() < STATE_INTERVAL) {
            return;
        }
        self.state_updated_at = Some(Instant::now());
        let (applied, members, boards, instances, expiring, bytes) = {
            let shard = shard.read(Purpose::Gauges);
            let is_read_only = shard.read_only().is_some();
            self.read_only.set(if is_read_only { 1.0 } else { 0.0 });
            let boards_read_only = shard.read_only_count() - usize::from(is_read_only);
            self.boards_read_only.set(figure(count(boards_read_only)));
            let bytes = shard.tree_bytes() + shard.members.bytes() + checkpointer.bytes();
            let (instances, expiring) = (shard.instance_count(), shard.expiry().len());
            let applied = shard.applied.sequence.0;
            (applied, shard.members.len(), shard.board_count(), instances, expiring, bytes)
        };
        self.windows.instances.set(figure(count(instances)));
        self.windows.expiring.set(figure(count(expiring)));
        self.applied_sequence.set(figure(applied));
        self.lag.set(figure(health.get(|health| health.last_sequence).saturating_sub(applied)));
        self.members.set(figure(count(members)));
        self.tree_bytes.set(figure(count(bytes)));
        self.state.set(match health.state() {
            ShardState::Halted(_) => 0.0,
            ShardState::CatchingUp(_) => 1.0,
            ShardState::Live => 2.0,
        });
        self.boards.set(figure(count(boards)));
        self.parked.set(figure(health.get(|health| health.jobs_parked)));
        self.damaged.set(if health.get(|health| health.damage.is_some()) { 1.0 } else { 0.0 });
        self.checkpoints.sequence.set(figure(health.get(|health| health.checkpoint_sequence)));
        self.checkpoints.pending_changes.set(figure(checkpointer.changes()));
        self.checkpoints.failures.absolute(checkpointer.failures());
        let Some(store) = store else { return };
        for (property, gauge) in &self.rocksdb {
            gauge.set(figure(match property {
                Property::Families(name) => store.property(name),
                Property::Database(name) => store.database_property(name),
            }));
        }
    }
}

/// How long before `now`, in microseconds since 1970, a message entered the queue; 0 if the clocks disagree.
fn age(timestamp: Timestamp, now: i64) -> Duration {
    Duration::from_micros(u64::try_from(now - timestamp.as_micros()).unwrap_or(0))
}

/// Jobs in a message, for the metrics.
fn jobs_in(message: &Message) -> usize {
    match &message.payload {
        Payload::Jobs(jobs) => jobs.len(),
        Payload::Define { .. }
        | Payload::Drop { .. }
        | Payload::Trim { .. }
        | Payload::Store(_)
        | Payload::Erase { .. }
        | Payload::Unpark { .. }
        | Payload::Tick => 0,
    }
}

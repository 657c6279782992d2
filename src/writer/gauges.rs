//! What a writer tells the metrics.
//!
//! Knows: which figure belongs to which verb. Must not know: who reads them.

use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use parking_lot::RwLock;

use crate::job::RejectCode;
use crate::metrics as names;
use crate::state::Shard;
use crate::storage::Store;
use crate::types::{ShardId, Timestamp, count};
use crate::writer::health::{Health, ShardState};
use crate::writer::source::Message;
use crate::writer::turn::{Committed, jobs_in};

/// State figures are looked at this often; between, they may be that old.
const STATE_EVERY: Duration = Duration::from_millis(500);

/// A shard's metrics, looked up once.
pub struct Gauges {
    applied_total: Counter,
    rejected_total: Vec<(RejectCode, Counter)>,
    batch_jobs: Histogram,
    plan: Histogram,
    commit: Histogram,
    apply: Histogram,
    publish_to_visible: Histogram,
    applied_sequence: Gauge,
    lag: Gauge,
    members: Gauge,
    tree_bytes: Gauge,
    state: Gauge,
    rocksdb: Vec<(&'static str, Gauge)>,
    state_noted: Option<Instant>,
}

impl Gauges {
    #[must_use]
    pub fn new(shard: ShardId) -> Self {
        let shard = shard.to_string();
        let rejected = |code: RejectCode| {
            let labels = [("shard", shard.clone()), ("reason", code.name().to_owned())];
            (code, counter!(names::JOBS_REJECTED_TOTAL, &labels))
        };
        let rocksdb = [
            ("rocksdb.cur-size-all-mem-tables", names::ROCKSDB_MEMTABLE_BYTES),
            ("rocksdb.live-sst-files-size", names::ROCKSDB_SST_BYTES),
            ("rocksdb.estimate-pending-compaction-bytes", names::ROCKSDB_PENDING_COMPACTION_BYTES),
            ("rocksdb.num-running-compactions", names::ROCKSDB_RUNNING_COMPACTIONS),
        ];
        Self {
            applied_total: counter!(names::JOBS_APPLIED_TOTAL, "shard" => shard.clone()),
            rejected_total: RejectCode::ALL.into_iter().map(rejected).collect(),
            batch_jobs: histogram!(names::BATCH_JOBS, "shard" => shard.clone()),
            plan: histogram!(names::PLAN_SECONDS, "shard" => shard.clone()),
            commit: histogram!(names::COMMIT_SECONDS, "shard" => shard.clone()),
            apply: histogram!(names::APPLY_SECONDS, "shard" => shard.clone()),
            publish_to_visible: histogram!(names::PUBLISH_TO_VISIBLE_SECONDS, "shard" => shard.clone()),
            applied_sequence: gauge!(names::APPLIED_SEQUENCE, "shard" => shard.clone()),
            lag: gauge!(names::STREAM_LAG_MESSAGES, "shard" => shard.clone()),
            members: gauge!(names::MEMBERS, "shard" => shard.clone()),
            tree_bytes: gauge!(names::TREE_BYTES, "shard" => shard.clone()),
            state: gauge!(names::SHARD_STATE, "shard" => shard.clone()),
            rocksdb: rocksdb
                .into_iter()
                .map(|(property, name)| (property, gauge!(name, "shard" => shard.clone())))
                .collect(),
            state_noted: None,
        }
    }

    /// Takes note of a batch; when its messages entered the queue.
    pub fn note_batch(&self, messages: &[Message]) -> Vec<Timestamp> {
        let jobs: usize = messages.iter().map(jobs_in).sum();
        self.batch_jobs.record(figure(count(jobs)));
        messages.iter().map(|message| message.timestamp).collect()
    }

    pub fn note_turn(
        &self,
        committed: &Committed,
        arrived: &[Timestamp],
        started: Instant,
        planned: Instant,
        committed_at: Instant,
    ) {
        self.plan.record(planned.duration_since(started));
        self.commit.record(committed_at.duration_since(planned));
        self.apply.record(committed_at.elapsed());
        self.applied_total.increment(committed.jobs - count(committed.rejects.len()));
        for code in &committed.rejects {
            if let Some((_, counter)) = self.rejected_total.iter().find(|(counted, _)| counted == code) {
                counter.increment(1);
            }
        }
        let now = jiff::Timestamp::now().as_microsecond();
        for timestamp in arrived {
            self.publish_to_visible.record(age(*timestamp, now));
        }
    }

    pub fn note_state(&mut self, shard: &RwLock<Shard>, health: &Health, store: Option<&Store>) {
        if self.state_noted.is_some_and(|noted| noted.elapsed() < STATE_EVERY) {
            return;
        }
        self.state_noted = Some(Instant::now());
        let (applied, members, bytes) = {
            let shard = shard.read();
            (shard.applied.sequence.0, shard.members.len(), shard.tree_bytes() + shard.members.bytes())
        };
        self.applied_sequence.set(figure(applied));
        self.lag.set(figure(health.last_sequence().saturating_sub(applied)));
        self.members.set(figure(count(members)));
        self.tree_bytes.set(figure(count(bytes)));
        self.state.set(match health.state() {
            ShardState::Halted(_) => 0.0,
            ShardState::CatchingUp(_) => 1.0,
            ShardState::Live => 2.0,
        });
        for (property, gauge) in &self.rocksdb {
            gauge.set(figure(store.map_or(0, |store| store.property(property))));
        }
    }
}

/// How long before `now`, in microseconds since 1970, a message entered the queue; 0 if the clocks disagree.
fn age(timestamp: Timestamp, now: i64) -> Duration {
    Duration::from_micros(u64::try_from(now - timestamp.as_micros()).unwrap_or(0))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "metrics are floating-point; 2^53 is enough to look at"
)]
fn figure(count: u64) -> f64 {
    count as f64
}

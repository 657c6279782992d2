//! The longest wait for a shard's lock, by purpose: from the metrics that the service itself keeps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use ranktree::metrics::STATE_LOCK_WAIT_SECONDS;

/// The greatest value of a histogram since the last look, in nanoseconds.
#[derive(Default)]
struct Longest(AtomicU64);

impl HistogramFn for Longest {
    fn record(&self, seconds: f64) {
        self.0.fetch_max((seconds * 1e9) as u64, Ordering::Relaxed);
    }
}

/// What the metric of waits tells, by purpose; all others go nowhere.
#[derive(Clone, Default)]
pub struct WaitTimes(Arc<Mutex<BTreeMap<String, Arc<Longest>>>>);

impl WaitTimes {
    /// Has the process's metrics come here. To be called before any shard is opened.
    pub fn install() -> Self {
        let times = Self::default();
        metrics::set_global_recorder(times.clone()).expect("the bench has no other recorder");
        times
    }

    /// The longest waits since the last call, the longest first, but those that were too short to count.
    pub fn take(&self) -> Vec<(String, Duration)> {
        let all = self.0.lock().expect("nobody panics with it");
        let taken = all.iter().map(|(purpose, longest)| {
            (purpose.clone(), Duration::from_nanos(longest.0.swap(0, Ordering::Relaxed)))
        });
        let mut taken: Vec<_> = taken.filter(|(_, longest)| !longest.is_zero()).collect();
        taken.sort_by_key(|(_, longest)| std::cmp::Reverse(*longest));
        taken
    }
}

impl Recorder for WaitTimes {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if key.name() != STATE_LOCK_WAIT_SECONDS {
            return Histogram::noop();
        }
        let purpose = key.labels().find(|label| label.key() == "purpose").expect("by purpose");
        let mut all = self.0.lock().expect("nobody panics with it");
        let longest = all.entry(purpose.value().to_owned()).or_default();
        Histogram::from_arc(Arc::clone(longest))
    }
}

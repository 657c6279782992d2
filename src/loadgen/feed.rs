//! Hands out operations to whoever is free to send one, in order and, in an open loop, not before they are
//! due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::loadgen::schedule::Schedule;
use crate::loadgen::workload::{Operation, Workload};

/// How soon the pacing thread notices that the run was stopped.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// More than there are senders: at the end each of them wakes up and finds nothing.
const WAKE_ALL: usize = 1 << 20;

/// An operation, and when it should have begun.
pub struct Due {
    pub operation: Operation,
    pub intended: Instant,
}

pub struct Feed {
    workload: Mutex<(Workload, u64)>,
    /// `None`: as fast as possible.
    schedule: Option<Schedule>,
    /// Operations that are due and nobody has taken. The thread that adds them sleeps more exactly than
    /// tokio, whose timers tick in milliseconds.
    released: Semaphore,
    started: Instant,
    deadline: Option<Instant>,
    stopped: AtomicBool,
    /// Whether the workload came to its end.
    exhausted: AtomicBool,
}

impl Feed {
    /// Starts the clock. `duration`: how long, `None` for as long as the workload lasts.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(
        workload: Workload,
        schedule: Option<Schedule>,
        duration: Option<Duration>,
    ) -> std::io::Result<Arc<Self>> {
        let started = Instant::now();
        let feed = Arc::new(Self {
            workload: Mutex::new((workload, 0)),
            schedule,
            released: Semaphore::new(0),
            started,
            deadline: duration.map(|duration| started + duration),
            stopped: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
        });
        if let Some(schedule) = schedule {
            let pacing = Arc::clone(&feed);
            thread::Builder::new().name("pace".to_owned()).spawn(move || pacing.pace(schedule))?;
        }
        Ok(feed)
    }

    pub fn started(&self) -> Instant {
        self.started
    }

    /// The next operation, once it is due; `None` at the end. May be cancelled.
    pub async fn next(&self) -> Option<Due> {
        if self.schedule.is_some() {
            self.released.acquire().await.ok()?.forget();
        }
        if self.is_over() {
            self.stop();
            return None;
        }
        let mut workload = self.workload.lock();
        let (operations, number) = &mut *workload;
        let Some(operation) = operations.next() else {
            drop(workload);
            self.exhausted.store(true, Ordering::Release);
            self.stop();
            return None;
        };
        let intended = match self.schedule {
            Some(schedule) => self.started + schedule.due(*number),
            None => Instant::now(),
        };
        *number += 1;
        Some(Due { operation, intended })
    }

    /// Hands out nothing any more.
    pub fn stop(&self) {
        if !self.stopped.swap(true, Ordering::AcqRel) {
            self.released.add_permits(WAKE_ALL);
        }
    }

    /// Whether nothing is handed out any more.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Operations that were due before `ended` and never taken.
    pub fn never_dispatched(&self, ended: Instant) -> u64 {
        let ended = self.deadline.map_or(ended, |deadline| deadline.min(ended));
        // One that is due at the very end could not begin any more.
        let ended = ended.checked_sub(Duration::from_nanos(1)).unwrap_or(ended);
        match self.schedule {
            Some(schedule) if !self.exhausted.load(Ordering::Acquire) => schedule
                .count(ended.saturating_duration_since(self.started))
                .saturating_sub(self.dispatched()),
            _ => 0,
        }
    }

    pub fn dispatched(&self) -> u64 {
        self.workload.lock().1
    }

    fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn pace(&self, schedule: Schedule) {
        let mut released = 0;
        while !self.is_over() {
            let elapsed = self.started.elapsed();
            let due = schedule.count(elapsed);
            let more = usize::try_from(due.saturating_sub(released)).unwrap_or(0);
            // The semaphore takes an eighth of what an address can count, and panics beyond it: far more than
            // a run can fall behind, as 10^9 operations a second would take decades.
            self.released.add_permits(more);
            released = due;
            let pause = schedule.due(due).saturating_sub(self.started.elapsed());
            let left =
                self.deadline.map_or(CHECK_INTERVAL, |end| end.saturating_duration_since(Instant::now()));
            thread::sleep(pause.min(CHECK_INTERVAL).min(left));
        }
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loadgen::workload::Spec;

    fn workload(jobs: Option<u64>) -> Workload {
        Workload::new(Spec::of_sets(jobs))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn operations_come_when_they_are_due_and_all_senders_hear_the_end() {
        let schedule = Schedule::per_second(1_000.0);
        let feed = Feed::start(workload(Some(300)), schedule, None).expect("a thread");
        let senders = (0..4).map(|_| {
            let feed = Arc::clone(&feed);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                while let Some(due) = feed.next().await {
                    assert!(Instant::now() >= due.intended, "not before it is due");
                    taken.push(due.intended - feed.started());
                }
                taken
            })
        });
        let mut all = Vec::new();
        for sender in senders.collect::<Vec<_>>() {
            all.extend(sender.await.expect("it ends"));
        }
        all.sort();
        let expected: Vec<_> = (0..300).map(Duration::from_millis).collect();
        assert_eq!(all, expected, "each once, at its own time");
    }

    #[tokio::test]
    async fn what_was_due_and_not_taken_is_known() {
        // A busy machine may take longer to ask for the first than there is time for any.
        for millis in [100, 1_000, 10_000, 60_000] {
            let schedule = Schedule::per_second(10_000.0);
            let time = Duration::from_millis(millis);
            let feed = Feed::start(workload(None), schedule, Some(time)).expect("a thread");
            if feed.next().await.is_none() {
                continue;
            }
            tokio::time::sleep(time).await;
            assert!(feed.next().await.is_none(), "time is over, whatever is due");
            assert_eq!(feed.dispatched(), 1);
            assert_eq!(feed.never_dispatched(Instant::now()), 10 * millis - 1, "the first was taken");
            return;
        }
        panic!("nothing was ever due");
    }

    #[tokio::test]
    async fn without_a_schedule_nobody_waits() {
        let feed = Feed::start(workload(Some(2)), None, None).expect("no thread");
        assert!(feed.next().await.is_some());
        assert!(feed.next().await.is_some());
        assert!(feed.next().await.is_none());
        assert_eq!((feed.dispatched(), feed.never_dispatched(Instant::now())), (2, 0));
    }
}

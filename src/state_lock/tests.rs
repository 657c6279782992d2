use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

use super::*;
use crate::metrics::{STATE_LOCK_HELD_SECONDS, STATE_LOCK_WAIT_SECONDS};
use crate::state::Shard;
use crate::types::{Sequence, ShardId};

#[test]
fn each_purpose_has_a_place_and_a_name_of_its_own() {
    for (place, purpose) in Purpose::ALL.into_iter().enumerate() {
        assert_eq!(purpose.index(), place, "{purpose:?}");
        let of_that_name = Purpose::ALL.iter().filter(|other| other.name() == purpose.name());
        assert_eq!(of_that_name.count(), 1, "{purpose:?}");
    }
}

#[test]
fn it_is_read_until_nobody_has_read_it_for_a_while() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    let steps = || {
        [(); 5].map(|()| {
            lock.count_step();
            lock.is_read()
        })
    };
    let few = [true, true, true, false, false];
    assert_eq!(steps(), few, "nobody has read it yet, and somebody may come");
    Purpose::ALL.into_iter().filter(|purpose| *purpose != Purpose::Read).for_each(|purpose| {
        drop(lock.read(purpose));
    });
    assert!(!lock.is_read(), "only answers count");
    drop(lock.read(Purpose::Read));
    assert!(lock.is_read(), "at once, whenever the next step is");
    assert_eq!(steps(), few);
}

#[test]
fn yielding_guard_unlocks_for_waiters_and_for_unlocked_work() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    thread::scope(|scope| {
        let mut reading = YieldingReadGuard::new(&lock, Purpose::Plan);
        assert!(lock.is_held());
        scope.spawn(|| lock.write(Purpose::CheckpointCopy).applied.sequence = Sequence(7));
        let started = Instant::now();
        while reading.applied.sequence != Sequence(7) {
            assert!(started.elapsed() < Duration::from_secs(60), "it waits for ever");
            reading.yield_if_due();
        }
        reading.unlocked(|| assert!(!lock.is_held()));
        assert!(lock.is_held());
    });
}

#[test]
fn who_reads_is_told_while_somebody_waits_to_change_the_state() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    thread::scope(|scope| {
        let reading = lock.read_unhurried(Purpose::CheckpointCopy);
        assert!(!lock.is_wanted());
        let changed = scope.spawn(|| lock.write(Purpose::Apply).applied.sequence = Sequence(7));
        let started = Instant::now();
        while !lock.is_wanted() {
            assert!(started.elapsed() < Duration::from_secs(60), "nobody says that it waits");
            thread::yield_now();
        }
        assert_eq!(reading.applied.sequence, Sequence(0));
        drop(reading);
        changed.join().expect("it gets the lock");
    });
    assert!(!lock.is_wanted());
    assert_eq!(lock.read_unhurried(Purpose::CheckpointCopy).applied.sequence, Sequence(7));
}

#[test]
fn an_unhurried_reader_comes_even_if_the_state_is_changed_without_a_pause() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    let is_done = AtomicBool::new(false);
    let mut changing = lock.write(Purpose::Apply);
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..3).for_each(|_| drop(lock.read_unhurried(Purpose::CheckpointCopy)));
            is_done.store(true, Ordering::Relaxed);
        });
        let started = Instant::now();
        while !is_done.load(Ordering::Relaxed) {
            assert!(started.elapsed() < Duration::from_secs(60), "it waits for ever");
            changing.unlock_fair();
            changing = lock.write(Purpose::Apply);
        }
    });
}

#[test]
fn readers_come_while_somebody_waits_unhurriedly_to_change_the_state() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    let looks = AtomicU32::new(0);
    let look = || {
        looks.fetch_add(1, Ordering::Relaxed);
        lock.state.try_write()
    };
    thread::scope(|scope| {
        let reading = lock.read(Purpose::Read);
        let waiting = scope.spawn(|| {
            let queue = || panic!("it waits as any other");
            lock.lock_unhurried(Purpose::CheckpointCopy, Duration::MAX, look, queue).applied.sequence =
                Sequence(7);
        });
        let started = Instant::now();
        while looks.load(Ordering::Relaxed) < 2 {
            assert!(started.elapsed() < Duration::from_secs(60), "it does not look again");
            thread::yield_now();
        }
        assert!(lock.state.try_read().is_some(), "who comes now need not wait");
        assert!(!lock.is_wanted());
        drop(reading);
        waiting.join().expect("it gets the lock");
    });
    assert_eq!(lock.read(Purpose::Read).applied.sequence, Sequence(7));
}

#[test]
fn who_looks_unhurriedly_queues_when_its_time_is_over() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    let started = Instant::now();
    let look = || {
        assert!(started.elapsed() < Duration::from_secs(60), "it looks for ever");
        None
    };
    for max in [Duration::ZERO, Duration::from_millis(1)] {
        assert_eq!(lock.lock_unhurried(Purpose::CheckpointCopy, max, look, || "queued"), "queued");
        assert!(started.elapsed() >= max);
    }
}

#[test]
fn an_unhurried_change_comes_even_if_the_state_is_always_read() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    thread::scope(|scope| {
        let mut reading = YieldingReadGuard::new(&lock, Purpose::Plan);
        scope.spawn(|| lock.write_unhurried(Purpose::CheckpointCopy).applied.sequence = Sequence(7));
        let started = Instant::now();
        while reading.applied.sequence != Sequence(7) {
            assert!(started.elapsed() < Duration::from_secs(60), "it waits for ever");
            reading.yield_if_due();
        }
    });
}

#[test]
fn holds_are_counted_by_purpose_and_of_reads_for_answers_one_in_seventeen() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let lock = metrics::with_local_recorder(&recorder, || StateLock::new(Shard::new(ShardId(0))));
    // A thread of its own, which has read nothing yet.
    thread::scope(|scope| {
        scope.spawn(|| (0..170).for_each(|_| drop(lock.read(Purpose::Read))));
    });
    (0..3).for_each(|_| drop(lock.read(Purpose::Gauges)));
    lock.write(Purpose::Apply).unlock_fair();
    drop(lock.write(Purpose::Apply));
    let count = |metric, purpose: Purpose| counted(&recorder, metric, purpose);
    let held = [Purpose::Read, Purpose::Gauges, Purpose::Apply, Purpose::Plan];
    assert_eq!(held.map(|purpose| count(STATE_LOCK_HELD_SECONDS, purpose)), [10, 3, 2, 0]);
    assert_eq!(Purpose::ALL.map(|purpose| count(STATE_LOCK_WAIT_SECONDS, purpose)), [0; 12]);
    // Sooner or later a reader comes while the lock is held, however busy the machine is.
    let started = Instant::now();
    while count(STATE_LOCK_WAIT_SECONDS, Purpose::Read) == 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "no wait is counted");
        let changing = lock.write(Purpose::Apply);
        thread::scope(|scope| {
            scope.spawn(|| drop(lock.read(Purpose::Read)));
            thread::sleep(Duration::from_millis(10));
            drop(changing);
        });
    }
}

fn counted(recorder: &PrometheusRecorder, metric: &str, purpose: Purpose) -> u64 {
    let series = format!("{metric}_count{{purpose=\"{}\"}} ", purpose.name());
    let text = recorder.handle().render();
    let count = text.lines().find_map(|line| line.strip_prefix(&series));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[test]
fn a_reader_that_sleeps_gets_the_lock_by_any_release() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    for round in 0..60 {
        let mut changing = lock.write(Purpose::Apply);
        let started = Instant::now();
        thread::scope(|scope| {
            let reader = scope.spawn(|| lock.read(Purpose::Read).applied.sequence);
            // Some come while it looks, some while it sleeps.
            thread::sleep(Duration::from_micros(50 * round));
            changing.applied.sequence = Sequence(round);
            if round % 2 == 0 {
                changing.unlock_fair();
            } else {
                drop(changing);
            }
            assert_eq!(reader.join().expect("it does not panic"), Sequence(round));
        });
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "it was not woken, and queued when it was late"
        );
    }
}

#[test]
fn all_readers_that_sleep_are_woken() {
    let lock = StateLock::new(Shard::new(ShardId(0)));
    let mut changing = lock.write(Purpose::Apply);
    let started = Instant::now();
    thread::scope(|scope| {
        let readers = [(); 8].map(|()| scope.spawn(|| lock.read(Purpose::Read).applied.sequence));
        thread::sleep(Duration::from_millis(5));
        changing.applied.sequence = Sequence(7);
        changing.unlock_fair();
        assert!(readers.into_iter().all(|reader| reader.join().is_ok_and(|seen| seen == Sequence(7))));
    });
    assert!(started.elapsed() < Duration::from_secs(300), "some were not woken");
}

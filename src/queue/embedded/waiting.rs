//! What waits for a shard's writer, in the order of its arrival.
//!
//! Knows: how many must be there before the writer is woken. Must not know: what they are.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// A queue with many publishers and one writer.
pub struct Waiting<T> {
    inner: Mutex<Inner<T>>,
    /// Told when as many are there as the writer waits for.
    enough: Condvar,
    most: usize,
}

struct Inner<T> {
    items: VecDeque<T>,
    /// How many the writer has taken and not handed out. They still wait.
    kept: usize,
    is_closed: bool,
    /// With so many the writer is woken. Nobody wakes a writer that does not wait.
    wakes_at: usize,
}

/// Why something was not taken.
#[derive(Debug, PartialEq, Eq)]
pub enum NotTaken {
    Full,
    Closed,
}

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    pub items: usize,
    pub is_closed: bool,
}

impl<T> Waiting<T> {
    /// # Arguments
    /// `most`: how many may wait.
    pub fn new(most: usize) -> Self {
        let inner = Inner { items: VecDeque::new(), kept: 0, is_closed: false, wakes_at: usize::MAX };
        Self { inner: Mutex::new(inner), enough: Condvar::new(), most }
    }

    /// # Errors
    /// When as many wait as may, or nothing is taken any more.
    pub fn push(&self, item: T) -> Result<(), NotTaken> {
        let mut inner = self.inner.lock();
        if inner.is_closed {
            return Err(NotTaken::Closed);
        }
        if inner.items.len() + inner.kept >= self.most {
            return Err(NotTaken::Full);
        }
        inner.items.push_back(item);
        if inner.items.len() >= inner.wakes_at {
            // One wakes it; those behind need not.
            inner.wakes_at = usize::MAX;
            drop(inner);
            self.enough.notify_one();
        }
        Ok(())
    }

    /// Takes nothing any more. What waits is still handed out.
    pub fn close(&self) {
        self.inner.lock().is_closed = true;
        self.enough.notify_one();
    }

    /// Takes nothing any more, and drops what waits.
    pub fn close_and_drop(&self) {
        let dropped = {
            let mut inner = self.inner.lock();
            inner.is_closed = true;
            std::mem::take(&mut inner.items)
        };
        drop(dropped);
    }

    /// Waits until so many are there, until that time at most.
    pub fn wait_for(&self, wanted: usize, until: Instant) -> Arrived {
        let mut inner = self.inner.lock();
        while inner.items.len() < wanted.min(self.most) && !inner.is_closed {
            inner.wakes_at = wanted.min(self.most);
            if self.enough.wait_until(&mut inner, until).timed_out() {
                break;
            }
        }
        inner.wakes_at = usize::MAX;
        Arrived { items: inner.items.len(), is_closed: inner.is_closed }
    }

    /// So many of those that were taken are not handed out yet, and count among those that may wait.
    pub fn keep(&self, kept: usize) {
        self.inner.lock().kept = kept;
    }

    /// Appends all that wait to `taken`.
    pub fn take(&self, taken: &mut VecDeque<T>) {
        let mut inner = self.inner.lock();
        if taken.is_empty() {
            // Both keep their memory.
            std::mem::swap(&mut inner.items, taken);
        } else {
            taken.append(&mut inner.items);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    fn taken<T>(waiting: &Waiting<T>) -> Vec<T> {
        let mut taken = VecDeque::new();
        waiting.take(&mut taken);
        taken.into()
    }

    fn until_somebody_waits<T>(waiting: &Waiting<T>) {
        let started = Instant::now();
        while waiting.inner.lock().wakes_at == usize::MAX {
            assert!(started.elapsed() < Duration::from_secs(60), "nobody waits");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_writer_is_woken_by_as_many_as_it_waits_for() {
        let waiting = Arc::new(Waiting::new(100));
        let writer = {
            let waiting = Arc::clone(&waiting);
            std::thread::spawn(move || waiting.wait_for(3, far()))
        };
        let started = Instant::now();
        until_somebody_waits(&waiting);
        for item in 1..=3 {
            waiting.push(item).expect("there is room");
        }
        assert_eq!(writer.join().expect("no panic"), Arrived { items: 3, is_closed: false });
        assert!(started.elapsed() < Duration::from_secs(300), "it was not woken");
        assert_eq!(taken(&waiting), [1, 2, 3]);
    }

    #[test]
    fn a_wait_ends_at_its_time_and_at_the_close() {
        let waiting = Arc::new(Waiting::new(100));
        waiting.push(1).expect("there is room");
        let arrived = waiting.wait_for(2, Instant::now() + Duration::from_millis(1));
        assert_eq!(arrived, Arrived { items: 1, is_closed: false });
        let writer = {
            let waiting = Arc::clone(&waiting);
            std::thread::spawn(move || waiting.wait_for(2, far()))
        };
        let started = Instant::now();
        until_somebody_waits(&waiting);
        waiting.close();
        assert_eq!(writer.join().expect("no panic"), Arrived { items: 1, is_closed: true });
        assert!(started.elapsed() < Duration::from_secs(300), "it was not woken");
        assert_eq!(waiting.push(2), Err(NotTaken::Closed));
        assert_eq!(taken(&waiting), [1], "what was taken before is handed out");
    }

    #[test]
    fn what_was_taken_and_not_handed_out_still_waits() {
        let waiting = Waiting::new(3);
        let mut taken = VecDeque::new();
        for item in 1..=3 {
            waiting.push(item).expect("there is room");
        }
        waiting.take(&mut taken);
        waiting.keep(2);
        assert_eq!(waiting.push(4), Ok(()));
        assert_eq!(waiting.push(5), Err(NotTaken::Full));
        waiting.take(&mut taken);
        waiting.keep(3);
        assert_eq!(waiting.push(5), Err(NotTaken::Full));
        waiting.keep(0);
        assert_eq!(waiting.push(5), Ok(()));
    }

    #[test]
    fn more_than_may_wait_are_refused_and_a_writer_never_waits_for_them() {
        let waiting = Waiting::new(2);
        assert_eq!(waiting.push(1), Ok(()));
        assert_eq!(waiting.push(2), Ok(()));
        assert_eq!(waiting.push(3), Err(NotTaken::Full));
        assert_eq!(waiting.wait_for(50, far()).items, 2);
        let mut taken = VecDeque::from([0]);
        waiting.take(&mut taken);
        assert_eq!(taken, [0, 1, 2]);
        waiting.push(4).expect("there is room again");
        waiting.close_and_drop();
        waiting.take(&mut taken);
        assert_eq!(taken, [0, 1, 2]);
    }
}

//! Admits one checkpoint of the process at a time, first come, first served.
//!
//! Knows: the queue of shards whose checkpoints are due. Must not know: what a checkpoint is.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// A fair mutex for the process's checkpoints: they are background work, and get one core.
#[derive(Clone, Default)]
pub struct CheckpointGate {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    queue_changed: Condvar,
}

#[derive(Default)]
struct Queue {
    next: u64,
    /// Ascending; the first one is admitted.
    waiting: VecDeque<u64>,
}

impl CheckpointGate {
    /// Enqueues at the end.
    pub fn enqueue(&self) -> CheckpointTicket {
        let shared = Arc::clone(&self.shared);
        let number = {
            let mut queue = shared.queue.lock();
            let number = queue.next;
            queue.next += 1;
            queue.waiting.push_back(number);
            number
        };
        CheckpointTicket { shared, number }
    }
}

/// A place in the queue, which is admitted once it is the first. Dropping it leaves the queue, and admits the
/// next one.
pub struct CheckpointTicket {
    shared: Arc<Shared>,
    number: u64,
}

impl CheckpointTicket {
    pub fn is_admitted(&self) -> bool {
        self.is_first(&self.shared.queue.lock())
    }

    /// Blocks until all earlier tickets were dropped.
    pub fn wait_until_admitted(&self) {
        let mut queue = self.shared.queue.lock();
        self.shared.queue_changed.wait_while(&mut queue, |queue| !self.is_first(queue));
    }

    fn is_first(&self, queue: &Queue) -> bool {
        queue.waiting.front() == Some(&self.number)
    }
}

impl Drop for CheckpointTicket {
    fn drop(&mut self) {
        self.shared.queue.lock().waiting.retain(|number| *number != self.number);
        self.shared.queue_changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_admitted_in_order_and_dropped_ones_are_skipped() {
        let gate = CheckpointGate::default();
        let [first, second, third] = [gate.enqueue(), gate.enqueue(), gate.enqueue()];
        let admitted = |tickets: &[&CheckpointTicket]| {
            tickets.iter().map(|ticket| ticket.is_admitted()).collect::<Vec<_>>()
        };
        assert_eq!(admitted(&[&first, &second, &third]), [true, false, false]);
        drop(second);
        assert_eq!(admitted(&[&first, &third]), [true, false]);
        let waits = std::thread::spawn(move || {
            third.wait_until_admitted();
            third
        });
        drop(first);
        let third = waits.join().expect("it was admitted");
        assert!(third.is_admitted());
        let last = gate.enqueue();
        drop(third);
        assert!(last.is_admitted());
    }
}

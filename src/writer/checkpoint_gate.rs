//! Whose turn it is to write a checkpoint: one shard of the process at a time, in the order in which they
//! came to be due.
//!
//! Knows: places in a queue. Must not know: what is done with a turn.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Lets one checkpoint of the process be written at a time: they are for the background, and one core of it.
#[derive(Clone, Default)]
pub struct CheckpointGate {
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    queue: Mutex<Queue>,
    moved: Condvar,
}

#[derive(Default)]
struct Queue {
    next: u64,
    /// Ascending; the first one has the turn.
    waiting: VecDeque<u64>,
}

impl CheckpointGate {
    /// Takes the last place in the line.
    #[must_use]
    pub fn line_up(&self) -> PlaceInLine {
        let line = Arc::clone(&self.line);
        let number = {
            let mut queue = line.queue.lock();
            let number = queue.next;
            queue.next += 1;
            queue.waiting.push_back(number);
            number
        };
        PlaceInLine { line, number }
    }
}

/// A place in the line, and the turn once it is the first. Whoever drops it leaves the line, and lets the
/// next one have the turn.
pub struct PlaceInLine {
    line: Arc<Line>,
    number: u64,
}

impl PlaceInLine {
    #[must_use]
    pub fn has_turn(&self) -> bool {
        self.is_first(&self.line.queue.lock())
    }

    /// Waits until those before have had their turns.
    pub fn wait_for_turn(&self) {
        let mut queue = self.line.queue.lock();
        self.line.moved.wait_while(&mut queue, |queue| !self.is_first(queue));
    }

    fn is_first(&self, queue: &Queue) -> bool {
        queue.waiting.front() == Some(&self.number)
    }
}

impl Drop for PlaceInLine {
    fn drop(&mut self) {
        self.line.queue.lock().waiting.retain(|number| *number != self.number);
        self.line.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_of_the_line_and_pass_over_whoever_left_it() {
        let gate = CheckpointGate::default();
        let [first, second, third] = [gate.line_up(), gate.line_up(), gate.line_up()];
        let turns = |places: &[&PlaceInLine]| places.iter().map(|place| place.has_turn()).collect::<Vec<_>>();
        assert_eq!(turns(&[&first, &second, &third]), [true, false, false]);
        drop(second);
        assert_eq!(turns(&[&first, &third]), [true, false]);
        let waits = std::thread::spawn(move || {
            third.wait_for_turn();
            third
        });
        drop(first);
        let third = waits.join().expect("it got its turn");
        assert!(third.has_turn());
        let last = gate.line_up();
        drop(third);
        assert!(last.has_turn());
    }
}

//! The sequence up to which a shard is shown to readers, those who wait until it is a certain one, and which
//! ones it will never have.
//!
//! Knows: who waits for which sequence, in order, so that the writer wakes only those whose sequence it has
//! reached. A channel that tells everybody of every change would have it wake thousands of requests with each
//! step, all of which wait on. Must not know: what is read then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::types::{OtherHistories, Sequence};

/// The shard ends: its sequence rises no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the shard ends")]
pub struct Ending;

/// The writer's end. Whoever waits is told when the last one is dropped: in tests one writer follows another.
#[derive(Clone)]
pub struct AppliedSequence(Arc<WriterEnd>);

struct WriterEnd(Arc<Shared>);

/// A reader's end.
#[derive(Clone)]
pub struct AppliedSequenceReader(Arc<Shared>);

struct Shared {
    shown: AtomicU64,
    /// The lowest sequence that somebody waits for; the highest number if nobody does.
    awaited: AtomicU64,
    waiting: Mutex<Waiting>,
    others: RwLock<OtherHistories>,
}

#[derive(Default)]
struct Waiting {
    /// By the sequence that they wait for, and a number that tells them apart.
    by_sequence: BTreeMap<(Sequence, u64), oneshot::Sender<()>>,
    next_number: u64,
    is_ending: bool,
}

impl Waiting {
    fn lowest(&self) -> u64 {
        self.by_sequence.first_key_value().map_or(u64::MAX, |((sequence, _), _)| sequence.0)
    }
}

/// Both ends, for a shard that is shown up to a sequence.
pub fn applied_sequence(shown: Sequence) -> (AppliedSequence, AppliedSequenceReader) {
    let shared = Shared {
        shown: AtomicU64::new(shown.0),
        awaited: AtomicU64::new(u64::MAX),
        waiting: Mutex::default(),
        others: RwLock::default(),
    };
    let shared = Arc::new(shared);
    (AppliedSequence(Arc::new(WriterEnd(Arc::clone(&shared)))), AppliedSequenceReader(shared))
}

impl AppliedSequence {
    /// Notes which sequences are of other histories of the shard, before anything of this one is shown.
    pub fn note_others(&self, others: OtherHistories) {
        let WriterEnd(shared) = &*self.0;
        *shared.others.write() = others;
    }

    /// Shows the shard up to a sequence, and wakes those who have waited for it or for an earlier one.
    pub fn show(&self, sequence: Sequence) {
        // Sequentially consistent, as what a reader does in the other order: either it finds the new
        // sequence, or it is found here.
        let WriterEnd(shared) = &*self.0;
        shared.shown.store(sequence.0, Ordering::SeqCst);
        if shared.awaited.load(Ordering::SeqCst) > sequence.0 {
            return;
        }
        let reached = {
            let mut waiting = shared.waiting.lock();
            let later = waiting.by_sequence.split_off(&(Sequence(sequence.0.saturating_add(1)), 0));
            let reached = std::mem::replace(&mut waiting.by_sequence, later);
            shared.awaited.store(waiting.lowest(), Ordering::SeqCst);
            reached
        };
        for told in reached.into_values() {
            // It may have stopped waiting.
            let _ = told.send(());
        }
    }
}

impl Drop for WriterEnd {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock();
        waiting.is_ending = true;
        let ended = std::mem::take(&mut waiting.by_sequence);
        drop(waiting);
        drop(ended);
    }
}

impl AppliedSequenceReader {
    /// The sequence up to which the shard is shown.
    pub fn get(&self) -> Sequence {
        Sequence(self.0.shown.load(Ordering::SeqCst))
    }

    /// Whether a sequence was given out by another history of the shard, which was set back since. The shard
    /// is beyond it, and does not have what it stands for.
    pub fn is_of_another_history(&self, sequence: Sequence) -> bool {
        self.0.others.read().have(sequence)
    }

    /// The first sequence of the shard's history; 0 if it was never set back.
    pub fn history_began(&self) -> Sequence {
        self.0.others.read().last_end()
    }

    /// Waits until the shard is shown up to a later sequence than this. May be cancelled.
    ///
    /// # Errors
    /// When the shard ends before.
    pub async fn pass(&self, seen: Sequence) -> Result<(), Ending> {
        self.reach(Sequence(seen.0.saturating_add(1))).await
    }

    /// Waits until the shard is shown up to this sequence. It was reached then, also where the shard has gone
    /// back since, because its store was opened again. May be cancelled.
    ///
    /// # Errors
    /// When the shard ends before.
    pub async fn reach(&self, sequence: Sequence) -> Result<(), Ending> {
        if self.get() >= sequence {
            return Ok(());
        }
        let (told, is_told) = oneshot::channel();
        let place = {
            let mut waiting = self.0.waiting.lock();
            if waiting.is_ending {
                return if self.get() >= sequence { Ok(()) } else { Err(Ending) };
            }
            let place = (sequence, waiting.next_number);
            waiting.next_number += 1;
            waiting.by_sequence.insert(place, told);
            self.0.awaited.store(waiting.lowest(), Ordering::SeqCst);
            place
        };
        // From here on the writer finds it. Before, it may have shown the sequence.
        let _leaves = Leaves { shared: &self.0, place };
        if self.get() >= sequence {
            return Ok(());
        }
        is_told.await.map_err(|_| Ending)
    }
}

/// Takes a place away of whom nobody needs to tell any more.
struct Leaves<'a> {
    shared: &'a Shared,
    place: (Sequence, u64),
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        let mut waiting = self.shared.waiting.lock();
        if waiting.by_sequence.remove(&self.place).is_some() {
            self.shared.awaited.store(waiting.lowest(), Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::spin_loop;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll, Wake, Waker};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn places(reader: &AppliedSequenceReader) -> usize {
        reader.0.waiting.lock().by_sequence.len()
    }

    #[test]
    fn only_those_whose_sequence_is_reached_are_woken() {
        let (shown, reader) = applied_sequence(Sequence(5));
        let woken = [(); 3].map(|()| Arc::<Woken>::default());
        let count = || woken.each_ref().map(|woken| woken.0.load(Ordering::SeqCst));
        let mut waits = Box::pin(reader.reach(Sequence(5)));
        assert_eq!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())));
        let mut waiting: Vec<_> =
            [7, 7, 9].iter().map(|sequence| Box::pin(reader.reach(Sequence(*sequence)))).collect();
        let mut poll = |nth: usize| {
            let waker = Waker::from(Arc::clone(&woken[nth]));
            waiting[nth].as_mut().poll(&mut Context::from_waker(&waker))
        };
        for nth in 0..3 {
            assert_eq!(poll(nth), Poll::Pending);
        }
        shown.show(Sequence(6));
        assert_eq!((count(), reader.get()), ([0, 0, 0], Sequence(6)));
        shown.show(Sequence(8));
        assert_eq!(count(), [1, 1, 0]);
        assert_eq!([poll(0), poll(1), poll(2)], [Poll::Ready(Ok(())), Poll::Ready(Ok(())), Poll::Pending]);
        shown.show(Sequence(9));
        assert_eq!((count(), poll(2)), ([1, 1, 1], Poll::Ready(Ok(()))));
        drop(waiting);
        assert_eq!(places(&reader), 0);
    }

    #[test]
    fn who_stops_waiting_leaves_nothing_and_who_waits_is_told_of_the_end() {
        let (shown, reader) = applied_sequence(Sequence(0));
        let mut context = Context::from_waker(Waker::noop());
        let mut left = Box::pin(reader.reach(Sequence(3)));
        assert_eq!(left.as_mut().poll(&mut context), Poll::Pending);
        let mut waits = pin!(reader.reach(Sequence(4)));
        assert_eq!(waits.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(reader.0.awaited.load(Ordering::SeqCst), 3);
        drop(left);
        assert_eq!((places(&reader), reader.0.awaited.load(Ordering::SeqCst)), (1, 4));
        drop(shown);
        assert_eq!(waits.as_mut().poll(&mut context), Poll::Ready(Err(Ending)));
        assert_eq!(pin!(reader.reach(Sequence(4))).poll(&mut context), Poll::Ready(Err(Ending)));
        assert_eq!(pin!(reader.reach(Sequence(0))).poll(&mut context), Poll::Ready(Ok(())));
    }

    /// In step: the writer shows a sequence only once the reader has gone on from the one before. So each is
    /// the last one for a while, and nothing later wakes who was missed.
    #[test]
    fn nobody_is_missed_who_begins_to_wait_while_the_sequence_is_shown() {
        const LAST: u64 = 50_000;
        let (shown, reader) = applied_sequence(Sequence(0));
        let reached = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                runtime.block_on(async {
                    for sequence in 1..=LAST {
                        assert_eq!(reader.reach(Sequence(sequence)).await, Ok(()));
                        assert_eq!(reader.get(), Sequence(sequence));
                        reached.store(sequence, Ordering::SeqCst);
                    }
                });
            });
            let started = Instant::now();
            for sequence in 1..=LAST {
                while reached.load(Ordering::SeqCst) + 1 < sequence {
                    if started.elapsed() > Duration::from_secs(600) {
                        // Lets the other thread end, so that the test does.
                        (sequence..=LAST).for_each(|sequence| shown.show(Sequence(sequence)));
                        panic!("nobody has told of {}", sequence - 1);
                    }
                    spin_loop();
                }
                shown.show(Sequence(sequence));
            }
        });
        assert_eq!(places(&reader), 0);
    }
}

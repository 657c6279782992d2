//! Waits for a future on a thread that has no event loop.
//!
//! A runtime's own `block_on` with a timeout sets a timer on that runtime's thread, and wakes the thread to
//! tell it of the timer: twice for each batch of a writer whose fetcher works there.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

/// Unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits until the future is ready, until that time at most. `None`: it was not; it is dropped.
///
/// # Arguments
/// `future`: wakes by itself. It has no runtime whose timers or sockets it could wait for.
pub fn wait_until<T>(until: Instant, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        let rest = until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())?;
        // It may return early. Whoever wakes it between the poll and here makes it return at once.
        thread::park_timeout(rest);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::{mpsc, oneshot};

    use super::*;

    fn far() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    #[test]
    fn what_comes_meanwhile_from_another_thread_ends_the_wait() {
        let (sender, mut receiver) = mpsc::channel(1);
        let (asked, is_asked) = oneshot::channel();
        let other = thread::spawn(move || {
            is_asked.blocking_recv().expect("it is asked");
            for number in 0..1_000 {
                sender.blocking_send(number).expect("somebody receives");
            }
        });
        asked.send(()).expect("the thread waits for it");
        for number in 0..1_000 {
            assert_eq!(wait_until(far(), receiver.recv()), Some(Some(number)));
        }
        assert_eq!(wait_until(far(), receiver.recv()), Some(None), "the sender is gone");
        other.join().expect("it does not panic");
    }

    #[test]
    fn a_wait_ends_in_time_and_loses_nothing() {
        let (sender, mut receiver) = mpsc::channel(1);
        let soon = Instant::now() + Duration::from_millis(2);
        assert_eq!(wait_until(soon, receiver.recv()), None);
        assert!(Instant::now() >= soon);
        sender.try_send(7).expect("there is room");
        assert_eq!(wait_until(soon, receiver.recv()), Some(Some(7)), "it is looked at before the clock");
    }
}

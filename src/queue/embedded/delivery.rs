//! Outcomes on their way from a writer to the thread that waits for them.
//!
//! A writer answers all requests of a batch at once. Each answer that wakes a task of another thread writes
//! to that thread's event loop, which is a system call. So the outcomes for a thread go through one channel,
//! and its one task wakes the others from there: of a batch only the first write to the event loop is left.

use std::cell::RefCell;

use tokio::runtime::{Handle, Id};
use tokio::sync::{mpsc, oneshot};

use crate::writer::Outcome;

/// A way to the thread that waits.
#[derive(Clone)]
pub struct Delivery(mpsc::UnboundedSender<Delivered>);

struct Delivered {
    to: oneshot::Sender<Outcome>,
    outcome: Outcome,
}

impl Delivery {
    /// A way to the tasks of this thread; `None` if it is in no runtime.
    pub fn here() -> Option<Self> {
        thread_local! {
            static HERE: RefCell<Option<(Id, Delivery)>> = const { RefCell::new(None) };
        }
        let runtime = Handle::try_current().ok()?;
        HERE.with_borrow_mut(|here| {
            if let Some((of, delivery)) = here
                && *of == runtime.id()
                && !delivery.0.is_closed()
            {
                return Some(delivery.clone());
            }
            let (sender, mut delivered) = mpsc::unbounded_channel();
            // It ends with the runtime, or once the thread has ended and nobody waits any more.
            runtime.spawn(async move {
                while let Some(Delivered { to, outcome }) = delivered.recv().await {
                    // The client may have left meanwhile.
                    let _ = to.send(outcome);
                }
            });
            let delivery = Self(sender);
            *here = Some((runtime.id(), delivery.clone()));
            Some(delivery)
        })
    }

    /// # Errors
    /// The outcome, if nobody waits for it any more.
    pub fn send(&self, to: oneshot::Sender<Outcome>, outcome: Outcome) -> Result<(), Outcome> {
        if to.is_closed() {
            return Err(outcome);
        }
        // Where the runtime has ended, whoever waits is not in it.
        self.0.send(Delivered { to, outcome }).or_else(|unsent| {
            let Delivered { to, outcome } = unsent.0;
            to.send(outcome)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::types::Sequence;
    use crate::writer::MessageOutcome;

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().expect("a runtime")
    }

    fn outcome(sequence: u64) -> MessageOutcome {
        MessageOutcome::of_jobs(Sequence(sequence), Vec::new())
    }

    fn sequence(outcome: Result<Outcome, oneshot::error::RecvError>) -> Option<u64> {
        outcome.ok()?.ok().map(|outcome| outcome.sequence.0)
    }

    #[test]
    fn outcomes_reach_those_who_wait_in_whichever_runtime_of_the_thread() {
        assert!(Delivery::here().is_none(), "there is no runtime");
        let (first, second) = (runtime(), runtime());
        for number in 1..=4 {
            for runtime in [&first, &second] {
                let (to, answered) = oneshot::channel();
                let found = runtime.block_on(async {
                    let delivery = Delivery::here().expect("there is a runtime");
                    let writer = std::thread::spawn(move || delivery.send(to, Ok(outcome(number))).is_ok());
                    let found = answered.await;
                    assert!(writer.join().expect("it does not panic"));
                    found
                });
                assert_eq!(sequence(found), Some(number));
            }
        }
    }

    #[test]
    fn an_outcome_that_nobody_waits_for_comes_back_and_one_past_its_runtime_arrives() {
        let runtime = runtime();
        let delivery = runtime.block_on(async { Delivery::here() }).expect("there is a runtime");
        let (to, answered) = oneshot::channel();
        drop(answered);
        assert!(delivery.send(to, Ok(outcome(1))).is_err());
        drop(runtime);
        let (to, mut answered) = oneshot::channel();
        assert!(delivery.send(to, Ok(outcome(2))).is_ok());
        assert_eq!(answered.try_recv().ok().and_then(Result::ok).map(|outcome| outcome.sequence.0), Some(2));
    }
}

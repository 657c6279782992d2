//! Pending replies: writes that wait for the outcome of a message that this process published.
//!
//! The message carries an id. When this process's fetcher meets the message, it finds the pending reply by
//! that id. A message that comes again, because its batch could not be committed, finds the reply again. Ids
//! of other processes, and of this node before its last restart, have no pending replies.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::types::decimal;
use crate::writer::{Outcome, OutcomeDetail, OutcomeSender};

/// One shard's pending replies.
pub struct PendingReplies {
    /// Begins every id of this process.
    process: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
}

/// A client that waits.
struct Waiting {
    answer: oneshot::Sender<Outcome>,
    /// What it wants to be told.
    detail: OutcomeDetail,
}

impl PendingReplies {
    pub fn new(process: String) -> Self {
        Self { process, next: AtomicU64::new(0), waiting: Mutex::new(HashMap::new()) }
    }

    /// Expects the reply to a message. Must be called before the message is published: the fetcher may meet
    /// the message before the server has acknowledged it.
    pub fn expect_reply(
        self: &Arc<Self>,
        detail: OutcomeDetail,
    ) -> (PendingReply, oneshot::Receiver<Outcome>) {
        let (answer, answered) = oneshot::channel();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().insert(number, Waiting { answer, detail });
        (PendingReply { replies: Arc::clone(self), number }, answered)
    }

    /// The pending reply to the message of this id. It stays pending until it is sent or given up.
    pub fn find(self: &Arc<Self>, id: &str) -> Option<OutcomeSender> {
        let number = id.strip_prefix(&self.process)?.strip_prefix('-')?;
        let number = decimal(number)?;
        let detail = self.waiting.lock().get(&number)?.detail;
        let replies = Arc::clone(self);
        let sender = OutcomeSender::by_callback(move |outcome| {
            let waiting = replies.waiting.lock().remove(&number);
            match waiting {
                Some(Waiting { answer, .. }) => answer.send(outcome),
                None => Err(outcome),
            }
        });
        Some(sender.telling(detail))
    }
}

/// A reply that an HTTP write waits for. Dropping it gives the reply up, also if the client has disconnected.
pub struct PendingReply {
    replies: Arc<PendingReplies>,
    number: u64,
}

impl PendingReply {
    /// The id that the message carries in its header.
    pub fn id(&self) -> String {
        format!("{}-{}", self.replies.process, self.number)
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        self.replies.waiting.lock().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Sequence;
    use crate::writer::MessageOutcome;

    fn outcome(sequence: u64) -> MessageOutcome {
        MessageOutcome::of_jobs(Sequence(sequence), Vec::new())
    }

    #[test]
    fn a_message_that_comes_again_finds_its_pending_reply_until_it_is_sent() {
        let replies = Arc::new(PendingReplies::new("process".to_owned()));
        let (pending, mut answered) = replies.expect_reply(OutcomeDetail::Changed);
        assert_eq!(pending.id(), "process-0");
        assert!(replies.find("process-1").is_none());
        assert!(replies.find("another-0").is_none());
        drop(replies.find("process-0").expect("it is pending"));
        assert!(answered.try_recv().is_err(), "nothing was sent");
        let (first, again) = (replies.find("process-0"), replies.find("process-0"));
        assert_eq!(first.as_ref().map(OutcomeSender::detail), Some(OutcomeDetail::Changed));
        assert_eq!(first.expect("it is still pending").send(Ok(outcome(3))), Ok(()));
        assert_eq!(answered.try_recv(), Ok(Ok(outcome(3))));
        let again = again.expect("it was pending").send(Ok(outcome(4)));
        assert_eq!(again, Err(Ok(outcome(4))), "it was sent once");
        assert!(replies.find("process-0").is_none());
    }

    #[test]
    fn a_reply_that_was_given_up_is_not_sent() {
        let replies = Arc::new(PendingReplies::new("process".to_owned()));
        let (pending, _answered) = replies.expect_reply(OutcomeDetail::Rankings);
        let found = replies.find("process-0").expect("it is pending");
        drop(pending);
        assert_eq!(found.send(Ok(outcome(1))), Err(Ok(outcome(1))));
        assert!(replies.waiting.lock().is_empty());
    }
}

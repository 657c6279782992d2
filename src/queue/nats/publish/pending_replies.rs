//! Who waits to hear what came of a message that this process published.
//!
//! The message carries an id; when the same process's source meets it, who waits is told through it. A message that comes
//! again, because the batch that held it could not be committed, meets them again. Ids of other processes, and of this
//! one's earlier lives, wait for nobody.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::types::decimal;
use crate::writer::{AnswerTo, Outcome};

/// One shard's waiters.
pub struct Waiters {
    /// Begins every id of this process.
    process: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
}

impl Waiters {
    pub fn new(process: String) -> Self {
        Self { process, next: AtomicU64::new(0), waiting: Mutex::new(HashMap::new()) }
    }

    pub fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The id of a message as its header has it.
    pub fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.process)
    }

    pub fn wait(&self, number: u64, answer: oneshot::Sender<Outcome>) {
        self.waiting.lock().insert(number, answer);
    }

    pub fn forget(&self, number: u64) {
        self.waiting.lock().remove(&number);
    }

    /// Who waits for the message of this id. They wait on until they are told or forgotten.
    pub fn find(self: &Arc<Self>, id: &str) -> Option<AnswerTo> {
        let number = id.strip_prefix(&self.process)?.strip_prefix('-')?;
        let number = decimal(number)?;
        if !self.waiting.lock().contains_key(&number) {
            return None;
        }
        let waiters = Arc::clone(self);
        Some(AnswerTo::named(move |outcome| match waiters.waiting.lock().remove(&number) {
            Some(answer) => answer.send(outcome),
            None => Err(outcome),
        }))
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
    fn a_message_that_comes_again_meets_who_waits_for_it_until_they_are_told() {
        let waiters = Arc::new(Waiters::new("process".to_owned()));
        let (answer, mut answered) = oneshot::channel();
        waiters.wait(7, answer);
        assert!(waiters.find("process-8").is_none());
        assert!(waiters.find("another-7").is_none());
        drop(waiters.find("process-7").expect("somebody waits"));
        assert!(answered.try_recv().is_err(), "nothing was told");
        let (first, again) = (waiters.find("process-7"), waiters.find("process-7"));
        assert_eq!(first.expect("they wait on").send(Ok(outcome(3))), Ok(()));
        assert_eq!(answered.try_recv(), Ok(Ok(outcome(3))));
        let again = again.expect("they waited").send(Ok(outcome(4)));
        assert_eq!(again, Err(Ok(outcome(4))), "they were told once");
        assert!(waiters.find("process-7").is_none());
    }

    #[test]
    fn who_is_forgotten_is_not_told() {
        let waiters = Arc::new(Waiters::new("process".to_owned()));
        let (answer, _answered) = oneshot::channel();
        waiters.wait(0, answer);
        let found = waiters.find("process-0").expect("somebody waits");
        waiters.forget(0);
        assert_eq!(found.send(Ok(outcome(1))), Err(Ok(outcome(1))));
        assert!(waiters.waiting.lock().is_empty());
    }
}

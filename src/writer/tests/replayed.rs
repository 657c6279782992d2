//! A queue that brings its messages again after a failed commit, as a stream does, and who waits for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::state::Applied;
use crate::storage::{StorageError, Store};
use crate::types::{Sequence, count};
use crate::writer::tests::build::job;
use crate::writer::tests::harness::{open, time};
use crate::writer::tests::source::{Running, copy_of, jobs};
use crate::writer::{BatchLimits, Fetched, JobSource, Message, Outcome, OutcomeSender, Payload};

/// Each message is a batch of its own, and is brought as often as it is asked for.
pub struct Stream {
    pub messages: Vec<Payload>,
    next: u64,
    waiting: Arc<Mutex<HashMap<u64, oneshot::Sender<Outcome>>>>,
    /// Is told the number of the message that is fetched next.
    pub before_fetch: Box<dyn FnMut(u64) + Send>,
}

impl Stream {
    /// Somebody waits for each message.
    pub fn new(messages: Vec<Payload>) -> (Self, Vec<oneshot::Receiver<Outcome>>) {
        let waiting: Arc<Mutex<HashMap<_, _>>> = Arc::default();
        let answers = (1..=count(messages.len())).map(|number| {
            let (answer, answered) = oneshot::channel();
            waiting.lock().insert(number, answer);
            answered
        });
        let answers = answers.collect();
        (Self { messages, next: 1, waiting, before_fetch: Box::new(|_| {}) }, answers)
    }

    /// Has something done before a message is fetched for the first time.
    pub fn before_message(&mut self, message: u64, act: impl Fn() + Send + 'static) {
        let mut is_done = false;
        self.before_fetch = Box::new(move |number| {
            if number == message && !is_done {
                is_done = true;
                act();
            }
        });
    }
}

pub fn message(number: u64, payload: Payload, answer: Option<OutcomeSender>) -> Message {
    let (sequence, timestamp) = (Sequence(number), time(number));
    Message { sequence, timestamp, hash: number, payload, bytes: 100, answer, traced: None }
}

impl JobSource for Stream {
    fn resume(&mut self, applied: Applied, _: &str) -> Result<(), String> {
        self.next = applied.sequence.0 + 1;
        Ok(())
    }

    fn fetch(&mut self, _: BatchLimits, _: Duration) -> Fetched {
        let number = self.next;
        (self.before_fetch)(number);
        let at = usize::try_from(number - 1).expect("small");
        let Some(payload) = self.messages.get(at) else { return Fetched::Ended };
        self.next += 1;
        let waiting = Arc::clone(&self.waiting);
        let answer = OutcomeSender::by_callback(move |outcome| match waiting.lock().remove(&number) {
            Some(to) => to.send(outcome),
            None => Err(outcome),
        });
        Fetched::Batch(vec![message(number, copy_of(payload), Some(answer))])
    }

    fn limits(&self) -> BatchLimits {
        BatchLimits { jobs: 1, bytes: 1 << 20 }
    }

    fn needs_sync(&self) -> bool {
        false
    }
}

/// Applies three messages, of which the second meets no store the first time; what was told of each.
fn run(running: &Running, reopen: impl Fn() -> Result<Store, StorageError> + Send + 'static) -> Vec<Outcome> {
    let set = |score| jobs(vec![job("m", &[("b", &[score])])]);
    let (mut source, answers) = Stream::new(vec![set(1), set(2), set(3)]);
    let store = Arc::clone(&running.store);
    source.before_message(2, move || drop(store.take()));
    running.writer_reopening(source, reopen).run();
    running.load();
    assert_eq!(running.board("b"), [("m".to_owned(), 3)], "all were applied in the end");
    answers.into_iter().map(|mut answered| answered.try_recv().expect("all are told")).collect()
}

#[test]
fn client_is_answered_when_message_is_redelivered_after_failed_commit() {
    let running = Running::new(true);
    let path = running.folder.path().to_owned();
    let told = run(&running, move || open(&path));
    let sequences: Vec<_> = told.into_iter().map(|told| told.map(|outcome| outcome.sequence)).collect();
    assert_eq!(sequences, [1, 2, 3].map(|number| Ok(Sequence(number))));
}

#[test]
fn clients_get_an_error_when_reopening_fails() {
    let running = Running::new(true);
    let (path, attempts) = (running.folder.path().to_owned(), AtomicUsize::new(0));
    let told = run(&running, move || {
        if attempts.fetch_add(1, Ordering::SeqCst) == 0 {
            return Err(StorageError::Io { path: path.clone(), error: std::io::Error::other("still full") });
        }
        open(&path)
    });
    let failed = told[1].as_ref().expect_err("nobody waits for a disk to be emptied");
    assert!(failed.to_string().contains("still full"), "{failed}");
    assert!(told[0].is_ok() && told[2].is_ok(), "{told:?}");
}

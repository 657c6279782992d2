//! Who waits to hear what came of a message that this process published.
//!
//! The message carries an id; when the same process's source meets it, the answer goes along with it. Ids of other
//! processes, and of this one's earlier lives, wait for nobody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::types::decimal;
use crate::writer::{CommitFailed, MessageOutcome};

pub type Answer = oneshot::Sender<Result<MessageOutcome, CommitFailed>>;

/// One shard's waiters.
pub struct Waiters {
    /// Begins every id of this process.
    process: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Answer>>,
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

    pub fn wait(&self, number: u64, answer: Answer) {
        self.waiting.lock().insert(number, answer);
    }

    pub fn forget(&self, number: u64) {
        self.waiting.lock().remove(&number);
    }

    /// Who waits for the message of this id.
    pub fn take(&self, id: &str) -> Option<Answer> {
        let number = id.strip_prefix(&self.process)?.strip_prefix('-')?;
        self.waiting.lock().remove(&decimal(number)?)
    }
}

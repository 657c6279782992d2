//! What is wrong with the stream of rejects while the node runs.

use parking_lot::Mutex;

use crate::writer::QueueFault;

/// What is wrong with the stream of rejects, if anything.
#[derive(Default)]
pub struct RejectsFault(Mutex<Option<String>>);

impl RejectsFault {
    pub fn set(&self, fault: Option<String>) {
        *self.0.lock() = fault;
    }

    /// As the fault of a queue: the shards' rejects wait.
    pub fn get(&self) -> Option<QueueFault> {
        let what = self.0.lock().clone()?;
        Some(QueueFault { what, refuses_writes: false })
    }
}

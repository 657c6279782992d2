//! What one request in progress takes of what all requests share: a permit, and the memory of its answer.
//!
//! Both are kept until the answer is written, so that clients that do not read their answers cannot have more
//! and more of them made. Must not know: what the request asks for, or how its answer is written. The
//! connection that writes the answer holds the [`InProgress`] until then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::operations::admission::{Admission, RequestPermit};
use crate::operations::failure::Failure;

/// One request's share.
pub struct InProgress {
    admission: Arc<Admission>,
    /// Shared with work on other threads, which goes on when the client has left.
    permit: Mutex<Option<Arc<RequestPermit>>>,
    /// The bytes of the answer, or the most that it may come to, as `admission` counts them.
    answer_bytes: AtomicUsize,
}

impl InProgress {
    pub fn new(admission: &Arc<Admission>) -> Self {
        Self { admission: Arc::clone(admission), permit: Mutex::default(), answer_bytes: AtomicUsize::new(0) }
    }

    /// Takes a permit.
    ///
    /// # Errors
    /// When there are too many requests.
    pub fn admit(&self) -> Result<(), Failure> {
        let permit = self.admission.admit().ok_or(Failure::Overloaded)?;
        *self.permit.lock() = Some(Arc::new(permit));
        Ok(())
    }

    /// Gives the permit back while the request only waits.
    pub fn release_permit(&self) {
        *self.permit.lock() = None;
    }

    /// The permit, for work that must hold it.
    pub fn permit(&self) -> Option<Arc<RequestPermit>> {
        self.permit.lock().clone()
    }

    /// Counts an answer of so many bytes, in place of what was counted for it before.
    ///
    /// # Arguments
    /// `bytes`: the size of the answer, or the most that it may come to.
    ///
    /// # Errors
    /// When the answers of all requests are too large together. The bytes are counted all the same.
    pub fn count_answer(&self, bytes: usize) -> Result<(), Failure> {
        let before = self.answer_bytes.swap(bytes, Ordering::Relaxed);
        self.admission.recount_answer(before, bytes)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let before = std::mem::take(self.answer_bytes.get_mut());
        // Fewer bytes are never too many.
        let _ = self.admission.recount_answer(before, 0);
    }
}

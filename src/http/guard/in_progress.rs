//! What a request in work takes: a place among the others, and the memory of its answer. Both are kept until the answer is
//! written, so that clients who do not read theirs cannot have more and more of them made.
//!
//! Knows: how much of both there is. Must not know: what a request asks for, or how an answer is written; whoever writes
//! it holds an [`InWork`] until that is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::http::api::{Admitted, Api};
use crate::http::render::problem::Problem;

/// One request's share.
pub struct InWork {
    api: Arc<Api>,
    /// Shared with what the request does on other threads, which goes on when its client has left.
    place: Mutex<Option<Arc<Admitted>>>,
    /// Bytes of its answer, or the most that it may come to, as counted among those of all.
    answer_bytes: AtomicUsize,
}

impl InWork {
    pub fn new(api: &Arc<Api>) -> Self {
        Self { api: Arc::clone(api), place: Mutex::default(), answer_bytes: AtomicUsize::new(0) }
    }

    /// Counts the request among those in work.
    ///
    /// # Errors
    /// When there are too many.
    pub fn begin(&self) -> Result<(), Problem> {
        let admitted = self.api.admit().ok_or_else(Problem::overloaded)?;
        *self.place.lock() = Some(Arc::new(admitted));
        Ok(())
    }

    /// Gives the place to others while the request waits for something.
    pub fn rest(&self) {
        *self.place.lock() = None;
    }

    pub fn place(&self) -> Option<Arc<Admitted>> {
        self.place.lock().clone()
    }

    /// Counts an answer of so many bytes in place of what was counted for it before: the most that it may come to, or what
    /// it has come to.
    ///
    /// # Errors
    /// When the answers of all requests together are too large. It is counted all the same.
    pub fn count_answer(&self, bytes: usize) -> Result<(), Problem> {
        let before = self.answer_bytes.swap(bytes, Ordering::Relaxed);
        let all = &self.api.answer_bytes;
        if bytes <= before {
            all.fetch_sub(before - bytes, Ordering::Relaxed);
            return Ok(());
        }
        let others = all.fetch_add(bytes - before, Ordering::Relaxed);
        let is_too_much = others + (bytes - before) > self.api.limits.answer_bytes_in_flight;
        if is_too_much { Err(Problem::too_many_answers()) } else { Ok(()) }
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.api.answer_bytes.fetch_sub(*self.answer_bytes.get_mut(), Ordering::Relaxed);
    }
}

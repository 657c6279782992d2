//! Admission: how many requests may be in progress, and how many bytes their heads, bodies and answers may
//! take together.
//!
//! Knows: the counts of the whole node, and what one request takes of them. Its permit and its answer's
//! memory are kept until the answer is written, so that clients that do not read their answers cannot have
//! more and more of them made. Must not know: what a request asks for, or how its answer is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::metrics::HTTP_REQUESTS_SHED_TOTAL;
use crate::operations::failure::Failure;

/// What most bodies stay below, in bytes.
pub const FIRST_BYTES: usize = 16 << 10;
/// The share of the memory for bodies, and of that for answers, that is kept for the first bytes of each. By
/// default it is enough for all requests at a time, so a client that sends many large bodies slowly, or reads
/// long answers slowly, keeps nobody's small ones out.
const FIRST_BYTES_SHARE: usize = 8;

/// What nearly all heads stay below, in bytes. A connection may take so many in any case.
pub const FIRST_HEAD_BYTES: usize = 8 << 10;

/// What all requests may take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Requests in progress at a time, without probes and metrics. Further requests are shed.
    pub requests_in_flight: usize,
    /// Bytes that the heads of all requests may have together, without the first 8 KiB of each. A connection
    /// whose head would exceed it is closed.
    pub head_bytes_in_flight: usize,
    /// Bytes that the bodies of all requests in progress may have together. A request that would exceed it is
    /// shed.
    pub body_bytes_in_flight: usize,
    /// Bytes that the answers of all requests in progress may have together, until they are written. A
    /// request whose answer would exceed it is shed; a write is shed before it is published.
    pub answer_bytes_in_flight: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        // A quarter of the connections, each of which has one request at a time: a longer queue only makes
        // all wait. 128 bodies of the largest size at a time keep any disk busy.
        Self {
            requests_in_flight: 1_024,
            // 273 of the longest at a time. Buffers are up to twice as long as what is in them.
            head_bytes_in_flight: 32 << 20,
            body_bytes_in_flight: 128 << 20,
            // A page of 1,000 entries with metadata takes 1.3 MB, a request of 4,000 boards 7 MB at most.
            answer_bytes_in_flight: 128 << 20,
        }
    }
}

/// Counts what all requests in progress take.
pub struct Admission {
    limits: RequestLimits,
    requests: AtomicUsize,
    /// Bytes of heads that come after the first [`FIRST_HEAD_BYTES`] of each.
    head_bytes: AtomicUsize,
    body_bytes: AtomicUsize,
    /// Those of them that come after the first [`FIRST_BYTES`] of their body.
    later_bytes: AtomicUsize,
    /// Bytes of answers that are being made or are not written yet.
    answer_bytes: AtomicUsize,
    /// Those of them that come after the first [`FIRST_BYTES`] of their answer.
    later_answer_bytes: AtomicUsize,
}

impl Admission {
    pub fn new(limits: RequestLimits) -> Arc<Self> {
        // The counter exists from the start, so that its rate can be asked for.
        metrics::counter!(HTTP_REQUESTS_SHED_TOTAL).increment(0);
        let (requests, head_bytes, body_bytes, later_bytes) = Default::default();
        let (answer_bytes, later_answer_bytes) = Default::default();
        Arc::new(Self {
            limits,
            requests,
            head_bytes,
            body_bytes,
            later_bytes,
            answer_bytes,
            later_answer_bytes,
        })
    }

    /// A permit for one more request; `None` if there are too many.
    pub fn admit(self: &Arc<Self>) -> Option<RequestPermit> {
        let others = self.requests.fetch_add(1, Ordering::Relaxed);
        // A permit that is one too many is dropped here, and so given back.
        let permit = RequestPermit(Arc::clone(self));
        (others < self.limits.requests_in_flight).then_some(permit)
    }

    /// Requests that hold a permit.
    #[cfg(test)]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// The most bytes that a single answer may have, if there is no other.
    pub fn answer_bytes_max(&self) -> usize {
        without_first_share(self.limits.answer_bytes_in_flight)
    }

    /// Counts an answer of `bytes` in place of the `before` bytes that were counted for it until now.
    ///
    /// # Errors
    /// When the answers of all requests are too large together. The bytes are counted all the same.
    pub fn recount_answer(&self, before: usize, bytes: usize) -> Result<(), Failure> {
        let (later_before, later) = (later_of(before), later_of(bytes));
        if bytes <= before {
            self.answer_bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            self.later_answer_bytes.fetch_sub(later_before - later, Ordering::Relaxed);
            return Ok(());
        }
        let (more, more_later) = (bytes - before, later - later_before);
        let all = self.answer_bytes.fetch_add(more, Ordering::Relaxed) + more;
        let all_later = self.later_answer_bytes.fetch_add(more_later, Ordering::Relaxed) + more_later;
        let budget = self.limits.answer_bytes_in_flight;
        let fits = all <= budget && (more_later == 0 || all_later <= without_first_share(budget));
        if fits { Ok(()) } else { Err(Failure::TooManyAnswers) }
    }
}

/// How many of so many bytes come after the first ones.
fn later_of(bytes: usize) -> usize {
    bytes.saturating_sub(FIRST_BYTES)
}

/// What is left of a budget for all but the first bytes of each.
fn without_first_share(budget: usize) -> usize {
    budget - budget / FIRST_BYTES_SHARE
}

/// Counts a request that is shed.
pub fn count_shed() {
    metrics::counter!(HTTP_REQUESTS_SHED_TOTAL).increment(1);
}

/// The right of one request to be in progress. Dropping it gives it back.
pub struct RequestPermit(Arc<Admission>);

impl Drop for RequestPermit {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

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

/// The memory that the heads of one connection's requests take. A buffer that has grown for a long head does
/// not shrink, so it is counted until the connection ends; a connection ends with the answer to a request
/// with a long head.
pub struct HeadBytes {
    admission: Arc<Admission>,
    /// What is counted: the longest head so far, without its first bytes.
    reserved: usize,
}

impl HeadBytes {
    pub fn none(admission: &Arc<Admission>) -> Self {
        Self { admission: Arc::clone(admission), reserved: 0 }
    }

    /// Whether a head of so many bytes is counted for apart.
    pub fn is_long(head: usize) -> bool {
        head > FIRST_HEAD_BYTES
    }

    /// Counts a head of which so many bytes have come. False: all heads together are too long. What was
    /// reserved is given back in either case.
    pub fn grow_to(&mut self, head: usize) -> bool {
        let more = head.saturating_sub(FIRST_HEAD_BYTES).saturating_sub(self.reserved);
        if more == 0 {
            return true;
        }
        self.reserved += more;
        let all = self.admission.head_bytes.fetch_add(more, Ordering::Relaxed) + more;
        all <= self.admission.limits.head_bytes_in_flight
    }
}

impl Drop for HeadBytes {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.admission.head_bytes.fetch_sub(self.reserved, Ordering::Relaxed);
        }
    }
}

/// The memory that one request's body takes. It is counted while the body is read, and given back with the
/// request.
pub struct BodyBytes {
    admission: Arc<Admission>,
    reserved: usize,
}

impl BodyBytes {
    pub fn none(admission: &Arc<Admission>) -> Self {
        Self { admission: Arc::clone(admission), reserved: 0 }
    }

    /// Takes more bytes. False: all bodies together are too large. What was reserved is given back in either
    /// case.
    pub fn take(&mut self, bytes: usize) -> bool {
        let later_before = self.later();
        self.reserved += bytes;
        let later = self.later() - later_before;
        let budget = self.admission.limits.body_bytes_in_flight;
        let all = self.admission.body_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let all_later = self.admission.later_bytes.fetch_add(later, Ordering::Relaxed) + later;
        all <= budget && (later == 0 || all_later <= without_first_share(budget))
    }

    /// How much of it comes after the first bytes.
    fn later(&self) -> usize {
        later_of(self.reserved)
    }
}

impl Drop for BodyBytes {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.admission.body_bytes.fetch_sub(self.reserved, Ordering::Relaxed);
            self.admission.later_bytes.fetch_sub(self.later(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_heads_share_their_memory_and_short_ones_are_always_let_in() {
        const LONG: usize = 128 << 10;
        let limits = RequestLimits { head_bytes_in_flight: 1 << 20, ..RequestLimits::default() };
        let admission = Admission::new(limits);
        let mut heads: Vec<HeadBytes> = Vec::new();
        // A head comes in pieces.
        let fits = |head: &mut HeadBytes| (1..=16).all(|piece| head.grow_to(piece * LONG / 16));
        while heads.last_mut().is_none_or(fits) {
            heads.push(HeadBytes::none(&admission));
        }
        // Each takes its length without the first 8 KiB, once.
        assert_eq!(heads.len() - 1, (1 << 20) / (LONG - FIRST_HEAD_BYTES));
        assert!((1..=FIRST_HEAD_BYTES).all(|length| HeadBytes::none(&admission).grow_to(length)));
        assert!(!HeadBytes::none(&admission).grow_to(LONG), "a long one is not");
        let kept = heads.first_mut().expect("there are some");
        assert!(kept.grow_to(LONG) && kept.grow_to(1), "it is counted already");
        drop(heads);
        assert_eq!(admission.head_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn large_bodies_leave_room_for_small_ones() {
        const LARGE: usize = 1 << 20;
        let admission = Admission::new(RequestLimits::default());
        let mut large: Vec<BodyBytes> = Vec::new();
        let fits = |body: &mut BodyBytes| (0..LARGE / FIRST_BYTES).all(|_| body.take(FIRST_BYTES));
        while large.last_mut().is_none_or(fits) {
            large.push(BodyBytes::none(&admission));
        }
        assert!(large.len() > 100, "most of the room is for them: {}", large.len());
        let small: Vec<bool> = (large.len()..RequestLimits::default().requests_in_flight)
            .map(|_| BodyBytes::none(&admission))
            .map(|mut body| body.take(FIRST_BYTES))
            .collect();
        assert!(small.iter().all(|taken| *taken));
        assert!(!BodyBytes::none(&admission).take(FIRST_BYTES + 1), "a large one is still shed");
        drop(large);
        assert!(fits(&mut BodyBytes::none(&admission)));
        let left = [&admission.body_bytes, &admission.later_bytes].map(|left| left.load(Ordering::Relaxed));
        assert_eq!(left, [0, 0]);
    }

    #[test]
    fn long_answers_leave_room_for_short_ones() {
        let admission = Admission::new(RequestLimits::default());
        let long = InProgress::new(&admission);
        assert!(long.count_answer(admission.answer_bytes_max()).is_ok());
        let other = InProgress::new(&admission);
        assert!(other.count_answer(1 << 20).is_err());
        assert!(other.count_answer(0).is_ok(), "fewer are never too many");
        let short: Vec<InProgress> =
            (1..RequestLimits::default().requests_in_flight).map(|_| InProgress::new(&admission)).collect();
        assert!(short.iter().all(|answer| answer.count_answer(FIRST_BYTES).is_ok()));
        assert!(other.count_answer(FIRST_BYTES + 1).is_err(), "a longer one is refused");
        drop((long, other, short));
        let left = [&admission.answer_bytes, &admission.later_answer_bytes];
        assert_eq!(left.map(|left| left.load(Ordering::Relaxed)), [0, 0]);
        let alone = InProgress::new(&admission);
        assert!(alone.count_answer(admission.answer_bytes_max() + FIRST_BYTES + 1).is_err());
    }
}

//! What a connection is doing and since when, so that a slow client's connection can be ended.
//!
//! Reads and writes only note what happens. They have no timers: a busy connection would reset a timer
//! several times per request. The connection's task calls [`Activity::overdue`] now and then, which says when
//! to call it again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::guard::in_progress::InProgress;
use crate::http::server::pipelining::Pipeline;
use crate::http::server::timeouts::ClientTimeouts;

/// A client that reads an answer more slowly than this counts as not reading it, in bytes a second.
const READ_RATE_MIN: u64 = 16 << 10;

/// How long a request may be worked on whose client sends nothing more. Most of these clients have left and
/// keep others' places, and some wait for their answer. A read waits for a write for 5 s by default.
const HALF_CLOSED_MAX: Duration = Duration::from_secs(10);

/// Why a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    SlowHeader,
    Idle,
    SlowReader,
    /// The client has ended its sending half, and probably left.
    Left,
}

impl Overdue {
    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SlowHeader => "slow_header",
            Self::Idle => "idle",
            Self::SlowReader => "slow_reader",
            Self::Left => "left",
        }
    }
}

const HEADER: u8 = 0;
const BUSY: u8 = 1;
const IDLE: u8 = 2;

/// What a connection is doing. Times are microseconds after its beginning.
pub struct Activity {
    began: Instant,
    doing: AtomicU8,
    since: AtomicU64,
    /// Locked by one task only, the connection's.
    pipeline: Mutex<Pipeline>,
    /// A write had to wait, and not everything has been written since.
    is_stalled: AtomicBool,
    stalled_since: AtomicU64,
    /// The client sends nothing more.
    is_half_closed: AtomicBool,
    half_closed_since: AtomicU64,
    /// The answer goes on for long. What is written to a client that left tells that it did.
    is_streaming: AtomicBool,
    /// Bytes written since a write had to wait.
    written: AtomicU64,
    /// The shares of requests whose answers may not be written yet. Locked by one task only, the
    /// connection's.
    unwritten: Mutex<Vec<Arc<InProgress>>>,
}

impl Activity {
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            doing: AtomicU8::new(HEADER),
            since: AtomicU64::new(0),
            pipeline: Mutex::default(),
            is_stalled: AtomicBool::new(false),
            stalled_since: AtomicU64::new(0),
            is_half_closed: AtomicBool::new(false),
            half_closed_since: AtomicU64::new(0),
            is_streaming: AtomicBool::new(false),
            written: AtomicU64::new(0),
            unwritten: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn is_doing(&self, doing: u8, since: u64) {
        self.since.store(since, Ordering::Relaxed);
        self.doing.store(doing, Ordering::Relaxed);
    }

    /// Notes that a request's head has arrived and its handler begins. Returns whether it is in doubt where
    /// the body ends.
    ///
    /// # Arguments
    /// `body`: how many bytes the body has; `None` if it comes in chunks.
    pub fn request_begins(&self, body: Option<u64>) -> bool {
        self.is_doing(BUSY, 0);
        self.pipeline.lock().request_begins(body)
    }

    /// How many bytes of the current request's head have arrived.
    pub fn head_bytes(&self) -> usize {
        self.pipeline.lock().head_bytes()
    }

    /// Whether it is beyond doubt where the current request's body ends.
    pub fn knows_body_end(&self) -> bool {
        self.pipeline.lock().knows_body_end()
    }

    /// Notes that the handler has its answer, which is written from now on.
    ///
    /// # Arguments
    /// `in_progress`: the request's share, which is dropped once the answer is written, or with the
    /// connection.
    pub fn request_ends(&self, in_progress: Option<Arc<InProgress>>) {
        self.unwritten.lock().extend(in_progress);
        self.is_streaming.store(false, Ordering::Relaxed);
        let next = if self.pipeline.lock().request_ends() { HEADER } else { IDLE };
        self.is_doing(next, self.now());
    }

    /// Notes that the answer to the request goes on for long.
    pub fn streams(&self) {
        self.is_streaming.store(true, Ordering::Relaxed);
    }

    /// Notes that the client sends nothing more.
    pub fn sending_ends(&self) {
        self.half_closed_since.store(self.now(), Ordering::Relaxed);
        self.is_half_closed.store(true, Ordering::Relaxed);
    }

    /// Whether the client sends nothing more, as far as it was noted.
    pub fn is_half_closed(&self) -> bool {
        self.is_half_closed.load(Ordering::Relaxed)
    }

    /// Whether a handler works on a request.
    pub fn is_busy(&self) -> bool {
        self.doing.load(Ordering::Relaxed) == BUSY
    }

    /// Notes that bytes have come. Returns how many bytes of the current request's head have arrived.
    pub fn has_read(&self, bytes: &[u8]) -> usize {
        let mut pipeline = self.pipeline.lock();
        pipeline.read(bytes);
        let head_bytes = pipeline.head_bytes();
        drop(pipeline);
        if self.doing.load(Ordering::Relaxed) == IDLE {
            self.is_doing(HEADER, self.now());
        }
        head_bytes
    }

    pub fn has_written(&self, bytes: usize) {
        if self.is_stalled.load(Ordering::Relaxed) {
            self.written.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Notes that a write has to wait for the client.
    pub fn write_waits(&self) {
        if !self.is_stalled.load(Ordering::Relaxed) {
            self.written.store(0, Ordering::Relaxed);
            self.stalled_since.store(self.now(), Ordering::Relaxed);
            self.is_stalled.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that hyper has flushed.
    pub fn all_is_written(&self) {
        // hyper flushes once it has written all that it holds, and takes an answer in the poll in which the
        // handler ends. If a client pipelines requests, one share may be dropped before its answer is
        // written.
        self.unwritten.lock().clear();
        if self.is_stalled.load(Ordering::Relaxed) {
            self.is_stalled.store(false, Ordering::Relaxed);
            if !self.is_busy() {
                self.since.store(self.now(), Ordering::Relaxed);
            }
        }
    }

    /// When to ask again whether the connection is overdue.
    ///
    /// # Errors
    /// When the connection is overdue, and why.
    pub fn overdue(&self, timeouts: &ClientTimeouts) -> Result<Instant, Overdue> {
        let since = Duration::from_micros(self.since.load(Ordering::Relaxed));
        let (began, allowed, why) = if self.is_stalled.load(Ordering::Relaxed) {
            let began = Duration::from_micros(self.stalled_since.load(Ordering::Relaxed));
            let more = Duration::from_secs(self.written.load(Ordering::Relaxed) / READ_RATE_MIN);
            (began, timeouts.write + more, Overdue::SlowReader)
        } else {
            match self.doing.load(Ordering::Relaxed) {
                HEADER => (since, timeouts.header, Overdue::SlowHeader),
                IDLE => (since, timeouts.idle, Overdue::Idle),
                _ if self.is_half_closed() && !self.is_streaming.load(Ordering::Relaxed) => {
                    let began = Duration::from_micros(self.half_closed_since.load(Ordering::Relaxed));
                    (began, HALF_CLOSED_MAX, Overdue::Left)
                }
                // Bodies and handlers have time limits of their own.
                _ => (self.began.elapsed(), Duration::MAX, Overdue::Idle),
            }
        };
        let now = Instant::now();
        let deadline = self.began.checked_add(began.saturating_add(allowed));
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Err(why);
        }
        // What begins after this moment is overdue no sooner than its whole time limit after this moment.
        let soonest = now + timeouts.header.min(timeouts.idle).min(timeouts.write);
        Ok(deadline.map_or(soonest, |deadline| deadline.min(soonest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: ClientTimeouts = ClientTimeouts {
        header: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        write: Duration::from_secs(30),
    };

    /// Asks as a connection's task does. Returns when the connection is ended, and why.
    async fn ended(activity: &Activity) -> (u64, Overdue) {
        loop {
            match activity.overdue(&TIMEOUTS) {
                Ok(again) => tokio::time::sleep_until(again).await,
                Err(why) => return (activity.began.elapsed().as_secs(), why),
            }
        }
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_timed_from_the_connections_beginning_or_its_first_byte() {
        let activity = Activity::new();
        activity.has_read(b"a");
        assert_eq!(ended(&activity).await, (10, Overdue::SlowHeader));

        let activity = Activity::new();
        activity.request_begins(Some(0));
        pass(100).await;
        activity.request_ends(None);
        pass(50).await;
        activity.has_read(b"a");
        for _ in 0..9 {
            pass(1).await;
            // A byte at a time does not extend the limit.
            activity.has_read(b"a");
            assert!(activity.overdue(&TIMEOUTS).is_ok());
        }
        assert_eq!(ended(&activity).await, (160, Overdue::SlowHeader));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_ended_and_a_busy_one_is_not() {
        let activity = Activity::new();
        activity.request_begins(Some(0));
        pass(1_000).await;
        assert!(activity.overdue(&TIMEOUTS).is_ok());
        activity.request_ends(None);
        assert_eq!(ended(&activity).await, (1_075, Overdue::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_nothing_more_is_waited_for_while_its_request_is_worked_on() {
        let activity = Activity::new();
        activity.request_begins(Some(0));
        pass(100).await;
        activity.sending_ends();
        assert_eq!(ended(&activity).await, (110, Overdue::Left));

        // Writing the answer has a limit of its own, and so has an answer that goes on.
        let activity = Activity::new();
        activity.request_begins(Some(0));
        activity.sending_ends();
        activity.request_ends(None);
        assert_eq!(ended(&activity).await, (75, Overdue::Idle));
        let activity = Activity::new();
        activity.request_begins(Some(0));
        activity.streams();
        activity.sending_ends();
        pass(1_000).await;
        assert!(activity.overdue(&TIMEOUTS).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_ended_and_one_that_reads_slowly_is_not() {
        let activity = Activity::new();
        activity.request_begins(Some(0));
        activity.request_ends(None);
        activity.write_waits();
        assert_eq!(ended(&activity).await, (30, Overdue::SlowReader));

        let activity = Activity::new();
        activity.request_begins(Some(0));
        activity.request_ends(None);
        activity.write_waits();
        for _ in 0..100 {
            pass(1).await;
            activity.has_written(20 << 10);
            activity.write_waits();
            assert!(activity.overdue(&TIMEOUTS).is_ok());
        }
        activity.all_is_written();
        assert_eq!(ended(&activity).await, (175, Overdue::Idle), "idle from the last byte on");

        let activity = Activity::new();
        activity.request_begins(Some(0));
        activity.request_ends(None);
        activity.write_waits();
        let mut seconds = 0;
        while activity.overdue(&TIMEOUTS).is_ok() {
            pass(1).await;
            activity.has_written(1 << 10);
            seconds += 1;
        }
        assert!((30..40).contains(&seconds), "{seconds}: a trickle does not keep it");
    }
}

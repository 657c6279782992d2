//! What a connection is doing and since when, so that a slow client's connection can be ended.
//!
//! Reads and writes only note what happens. They have no timers: a busy connection would reset a timer
//! several times per request. The connection's task calls [`Activity::overdue`] now and then, which says when
//! to call it again.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connections::ClientTimeouts;
use crate::http::server::pipelining::Pipeline;
use crate::operations::InProgress;

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

/// What a connection is doing. Locked by one task only, the connection's.
pub struct Activity(Mutex<State>);

struct State {
    doing: Doing,
    pipeline: Pipeline,
    /// A write had to wait, and not everything has been written since.
    stalled: Option<Stalled>,
    /// Since when the client sends nothing more.
    half_closed: Option<Instant>,
    /// The answer goes on for long. What is written to a client that left tells that it did.
    is_streaming: bool,
    /// The shares of requests whose answers may not be written yet.
    unwritten: Vec<Arc<InProgress>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It waits for a head since then.
    Header(Instant),
    /// A handler works on a request.
    Busy,
    /// There is no request since then.
    Idle(Instant),
}

struct Stalled {
    since: Instant,
    /// Bytes written since.
    written: u64,
}

impl Activity {
    pub fn new() -> Self {
        Self(Mutex::new(State {
            doing: Doing::Header(Instant::now()),
            pipeline: Pipeline::default(),
            stalled: None,
            half_closed: None,
            is_streaming: false,
            unwritten: Vec::new(),
        }))
    }

    /// Notes that a request's head has arrived and its handler begins. Returns whether it is in doubt where
    /// the body ends.
    ///
    /// # Arguments
    /// `body`: how many bytes the body has; `None` if it comes in chunks.
    pub fn request_begins(&self, body: Option<u64>) -> bool {
        let mut state = self.0.lock();
        state.doing = Doing::Busy;
        state.pipeline.request_begins(body)
    }

    /// How many bytes of the current request's head have arrived.
    pub fn head_bytes(&self) -> usize {
        self.0.lock().pipeline.head_bytes()
    }

    /// Whether it is beyond doubt where the current request's body ends.
    pub fn knows_body_end(&self) -> bool {
        self.0.lock().pipeline.knows_body_end()
    }

    /// Notes that the handler has its answer, which is written from now on.
    ///
    /// # Arguments
    /// `in_progress`: the request's share, which is dropped once the answer is written, or with the
    /// connection.
    pub fn request_ends(&self, in_progress: Option<Arc<InProgress>>) {
        let (mut state, now) = (self.0.lock(), Instant::now());
        state.unwritten.extend(in_progress);
        state.is_streaming = false;
        let has_next = state.pipeline.request_ends();
        state.doing = if has_next { Doing::Header(now) } else { Doing::Idle(now) };
    }

    /// Notes that the answer to the request goes on for long.
    pub fn streams(&self) {
        self.0.lock().is_streaming = true;
    }

    /// Notes that the client sends nothing more.
    pub fn sending_ends(&self) {
        self.0.lock().half_closed = Some(Instant::now());
    }

    /// Whether the client sends nothing more, as far as it was noted.
    pub fn is_half_closed(&self) -> bool {
        self.0.lock().half_closed.is_some()
    }

    /// Whether a handler works on a request.
    pub fn is_busy(&self) -> bool {
        self.0.lock().doing == Doing::Busy
    }

    /// Notes that bytes have come. Returns how many bytes of the current request's head have arrived.
    pub fn has_read(&self, bytes: &[u8]) -> usize {
        let mut state = self.0.lock();
        state.pipeline.read(bytes);
        if let Doing::Idle(_) = state.doing {
            state.doing = Doing::Header(Instant::now());
        }
        state.pipeline.head_bytes()
    }

    pub fn has_written(&self, bytes: usize) {
        if let Some(stalled) = &mut self.0.lock().stalled {
            stalled.written = stalled.written.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    /// Notes that a write has to wait for the client.
    pub fn write_waits(&self) {
        self.0.lock().stalled.get_or_insert_with(|| Stalled { since: Instant::now(), written: 0 });
    }

    /// Notes that hyper has flushed.
    pub fn all_is_written(&self) {
        let mut state = self.0.lock();
        // hyper flushes once it has written all that it holds, and takes an answer in the poll in which the
        // handler ends. If a client pipelines requests, one share may be dropped before its answer is
        // written.
        state.unwritten.clear();
        if state.stalled.take().is_some()
            && let Doing::Header(since) | Doing::Idle(since) = &mut state.doing
        {
            *since = Instant::now();
        }
    }

    /// When to ask again whether the connection is overdue.
    ///
    /// # Errors
    /// When the connection is overdue, and why.
    pub fn overdue(&self, timeouts: &ClientTimeouts) -> Result<Instant, Overdue> {
        let (state, now) = (self.0.lock(), Instant::now());
        // What begins after this moment is overdue no sooner than its whole time limit after this moment.
        let soonest = now + timeouts.header.min(timeouts.idle).min(timeouts.write);
        let (began, allowed, why) = match (&state.stalled, state.doing) {
            (Some(stalled), _) => {
                let more = Duration::from_secs(stalled.written / READ_RATE_MIN);
                (stalled.since, timeouts.write.saturating_add(more), Overdue::SlowReader)
            }
            (None, Doing::Header(since)) => (since, timeouts.header, Overdue::SlowHeader),
            (None, Doing::Idle(since)) => (since, timeouts.idle, Overdue::Idle),
            (None, Doing::Busy) => match state.half_closed.filter(|_| !state.is_streaming) {
                Some(since) => (since, HALF_CLOSED_MAX, Overdue::Left),
                // Bodies and handlers have time limits of their own.
                None => return Ok(soonest),
            },
        };
        match began.checked_add(allowed) {
            Some(deadline) if now >= deadline => Err(why),
            Some(deadline) => Ok(deadline.min(soonest)),
            None => Ok(soonest),
        }
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

    /// Asks as a connection's task does. Returns how many seconds after `began` the connection is ended, and
    /// why.
    async fn ended(activity: &Activity, began: Instant) -> (u64, Overdue) {
        loop {
            match activity.overdue(&TIMEOUTS) {
                Ok(again) => tokio::time::sleep_until(again).await,
                Err(why) => return (began.elapsed().as_secs(), why),
            }
        }
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_timed_from_the_connections_beginning_or_its_first_byte() {
        let (activity, began) = (Activity::new(), Instant::now());
        activity.has_read(b"a");
        assert_eq!(ended(&activity, began).await, (10, Overdue::SlowHeader));

        let (activity, began) = (Activity::new(), Instant::now());
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
        assert_eq!(ended(&activity, began).await, (160, Overdue::SlowHeader));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_ended_and_a_busy_one_is_not() {
        let (activity, began) = (Activity::new(), Instant::now());
        activity.request_begins(Some(0));
        pass(1_000).await;
        assert!(activity.overdue(&TIMEOUTS).is_ok());
        activity.request_ends(None);
        assert_eq!(ended(&activity, began).await, (1_075, Overdue::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_nothing_more_is_waited_for_while_its_request_is_worked_on() {
        let (activity, began) = (Activity::new(), Instant::now());
        activity.request_begins(Some(0));
        pass(100).await;
        activity.sending_ends();
        assert_eq!(ended(&activity, began).await, (110, Overdue::Left));

        // Writing the answer has a limit of its own, and so has an answer that goes on.
        let (activity, began) = (Activity::new(), Instant::now());
        activity.request_begins(Some(0));
        activity.sending_ends();
        activity.request_ends(None);
        assert_eq!(ended(&activity, began).await, (75, Overdue::Idle));
        let activity = Activity::new();
        activity.request_begins(Some(0));
        activity.streams();
        activity.sending_ends();
        pass(1_000).await;
        assert!(activity.overdue(&TIMEOUTS).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_ended_and_one_that_reads_slowly_is_not() {
        let (activity, began) = (Activity::new(), Instant::now());
        activity.request_begins(Some(0));
        activity.request_ends(None);
        activity.write_waits();
        assert_eq!(ended(&activity, began).await, (30, Overdue::SlowReader));

        let (activity, began) = (Activity::new(), Instant::now());
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
        assert_eq!(ended(&activity, began).await, (175, Overdue::Idle), "idle from the last byte on");

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

//! What a connection is doing and since when, so that one that keeps us waiting can be told and ended.
//!
//! Reading and writing only note what happens, without a timer of their own: a busy connection would reset one several
//! times per request. Whoever watches the connection asks [`Pulse::overdue`] now and then, and is told when to ask again.

use std::any::Any;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::http::server::pipelining::Ahead;

/// Who reads an answer more slowly than this is not reading it, in bytes a second.
const READ_RATE_MIN: u64 = 16 << 10;

/// How long a client may keep us waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For TLS to be set up, and for a request's head, from the connection's beginning or the head's first byte.
    pub header: Duration,
    /// Between an answer and the next request's first byte.
    pub idle: Duration,
    /// For an answer to be read; longer ones get the time that they take at [`READ_RATE_MIN`] besides.
    pub write: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        // Clients and proxies close idle connections after 60 seconds, often; whoever closes first should not be us, or
        // a request may be on its way at that moment.
        Self {
            header: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
        }
    }
}

/// Why a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    SlowHeader,
    Idle,
    SlowReader,
}

impl Overdue {
    /// As metrics name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SlowHeader => "slow_header",
            Self::Idle => "idle",
            Self::SlowReader => "slow_reader",
        }
    }
}

const HEADER: u8 = 0;
const BUSY: u8 = 1;
const IDLE: u8 = 2;

/// One connection's state. Times are microseconds after its beginning.
pub struct Pulse {
    began: Instant,
    doing: AtomicU8,
    since: AtomicU64,
    /// Locked by one task only, the connection's.
    ahead: Mutex<Ahead>,
    /// A write did not go on at once, and not all was written since.
    is_stalled: AtomicBool,
    stalled_since: AtomicU64,
    /// Bytes written since then.
    written: AtomicU64,
    /// What answers hold that may not be written yet. Locked by one task only, the connection's.
    held: Mutex<Vec<Held>>,
}

/// Something that is let go by dropping it.
pub type Held = Arc<dyn Any + Send + Sync>;

impl Pulse {
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            doing: AtomicU8::new(HEADER),
            since: AtomicU64::new(0),
            ahead: Mutex::default(),
            is_stalled: AtomicBool::new(false),
            stalled_since: AtomicU64::new(0),
            written: AtomicU64::new(0),
            held: Mutex::default(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn is_doing(&self, doing: u8, since: u64) {
        self.since.store(since, Ordering::Relaxed);
        self.doing.store(doing, Ordering::Relaxed);
    }

    /// A request's head is here, and its handler at work; its body has so many bytes, or comes in chunks. Whether the head
    /// says both.
    pub fn request_begins(&self, body: Option<u64>) -> bool {
        self.is_doing(BUSY, 0);
        self.ahead.lock().request_begins(body)
    }

    /// The handler has its answer, which is now written. What it holds is let go once that is done, or with the connection.
    pub fn request_ends(&self, held: Option<Held>) {
        self.held.lock().extend(held);
        let next = if self.ahead.lock().request_ends() { HEADER } else { IDLE };
        self.is_doing(next, self.now());
    }

    /// Whether a handler is at work.
    pub fn is_busy(&self) -> bool {
        self.doing.load(Ordering::Relaxed) == BUSY
    }

    fn has_read(&self, bytes: &[u8]) {
        self.ahead.lock().read(bytes);
        if self.doing.load(Ordering::Relaxed) == IDLE {
            self.is_doing(HEADER, self.now());
        }
    }

    fn has_written(&self, bytes: usize) {
        if self.is_stalled.load(Ordering::Relaxed) {
            self.written.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    fn write_waits(&self) {
        if !self.is_stalled.load(Ordering::Relaxed) {
            self.written.store(0, Ordering::Relaxed);
            self.stalled_since.store(self.now(), Ordering::Relaxed);
            self.is_stalled.store(true, Ordering::Relaxed);
        }
    }

    fn all_is_written(&self) {
        // hyper flushes once it has written all that it holds, and takes an answer in the step in which the handler ends. Of a
        // client that sends many requests ahead, one answer may be let go before it is written.
        self.held.lock().clear();
        if self.is_stalled.swap(false, Ordering::Relaxed) && !self.is_busy() {
            self.since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Why the connection is to be ended now, or when to ask again.
    ///
    /// # Errors
    /// When the client had its time.
    pub fn overdue(&self, patience: &Patience) -> Result<Instant, Overdue> {
        let since = Duration::from_micros(self.since.load(Ordering::Relaxed));
        let (began, allowed, why) = if self.is_stalled.load(Ordering::Relaxed) {
            let began = Duration::from_micros(self.stalled_since.load(Ordering::Relaxed));
            let more = Duration::from_secs(self.written.load(Ordering::Relaxed) / READ_RATE_MIN);
            (began, patience.write + more, Overdue::SlowReader)
        } else {
            match self.doing.load(Ordering::Relaxed) {
                HEADER => (since, patience.header, Overdue::SlowHeader),
                IDLE => (since, patience.idle, Overdue::Idle),
                // Bodies and handlers have time limits of their own.
                _ => (self.began.elapsed(), Duration::MAX, Overdue::Idle),
            }
        };
        let now = Instant::now();
        let deadline = self.began.checked_add(began.saturating_add(allowed));
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Err(why);
        }
        // What begins after this moment is over no earlier than its whole time after this moment.
        let soonest = now + patience.header.min(patience.idle).min(patience.write);
        Ok(deadline.map_or(soonest, |deadline| deadline.min(soonest)))
    }
}

/// A connection whose reads and writes are noted.
pub struct Noted<S> {
    inner: S,
    pulse: Arc<Pulse>,
}

impl<S> Noted<S> {
    pub fn new(inner: S, pulse: Arc<Pulse>) -> Self {
        Self { inner, pulse }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Some(bytes) = buffer.filled().get(before..).filter(|bytes| !bytes.is_empty()) {
            self.pulse.has_read(bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> Noted<S> {
    fn note(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.pulse.write_waits(),
            Poll::Ready(Ok(bytes)) => self.pulse.has_written(*bytes),
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// hyper flushes once it has written all that it holds.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        match flushed {
            Poll::Ready(Ok(())) => self.pulse.all_is_written(),
            Poll::Pending => self.pulse.write_waits(),
            Poll::Ready(Err(_)) => {}
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        if shut.is_pending() {
            self.pulse.write_waits();
        }
        shut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        header: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        write: Duration::from_secs(30),
    };

    /// Watches as a connection's task does; when it is ended, and why.
    async fn ended(pulse: &Pulse) -> (u64, Overdue) {
        loop {
            match pulse.overdue(&PATIENCE) {
                Ok(again) => tokio::time::sleep_until(again).await,
                Err(why) => return (pulse.began.elapsed().as_secs(), why),
            }
        }
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_its_time_from_the_beginning_or_its_first_byte() {
        let pulse = Pulse::new();
        pulse.has_read(b"a");
        assert_eq!(ended(&pulse).await, (10, Overdue::SlowHeader));

        let pulse = Pulse::new();
        pulse.request_begins(Some(0));
        pass(100).await;
        pulse.request_ends(None);
        pass(50).await;
        pulse.has_read(b"a");
        for _ in 0..9 {
            pass(1).await;
            // A byte at a time does not make it longer.
            pulse.has_read(b"a");
            assert!(pulse.overdue(&PATIENCE).is_ok());
        }
        assert_eq!(ended(&pulse).await, (160, Overdue::SlowHeader));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_ended_and_a_busy_one_is_not() {
        let pulse = Pulse::new();
        pulse.request_begins(Some(0));
        pass(1_000).await;
        assert!(pulse.overdue(&PATIENCE).is_ok());
        pulse.request_ends(None);
        assert_eq!(ended(&pulse).await, (1_075, Overdue::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_is_ended_and_who_reads_slowly_enough_is_not() {
        let pulse = Pulse::new();
        pulse.request_begins(Some(0));
        pulse.request_ends(None);
        pulse.write_waits();
        assert_eq!(ended(&pulse).await, (30, Overdue::SlowReader));

        let pulse = Pulse::new();
        pulse.request_begins(Some(0));
        pulse.request_ends(None);
        pulse.write_waits();
        for _ in 0..100 {
            pass(1).await;
            pulse.has_written(20 << 10);
            pulse.write_waits();
            assert!(pulse.overdue(&PATIENCE).is_ok());
        }
        pulse.all_is_written();
        assert_eq!(ended(&pulse).await, (175, Overdue::Idle), "idle from the last byte on");

        let pulse = Pulse::new();
        pulse.request_begins(Some(0));
        pulse.request_ends(None);
        pulse.write_waits();
        let mut seconds = 0;
        while pulse.overdue(&PATIENCE).is_ok() {
            pass(1).await;
            pulse.has_written(1 << 10);
            seconds += 1;
        }
        assert!((30..40).contains(&seconds), "{seconds}: a trickle does not keep it");
    }
}

//! A connection's stream, whose reads and writes are noted in the connection's activity.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connections::turn;
use crate::http::server::activity::Activity;
use crate::http::server::ended::count_ended;
use crate::operations::{FIRST_HEAD_BYTES, HeadBytes};

thread_local! {
    /// What a thread reads into. hyper's buffer grows with what it is given at once, and keeps what it has
    /// grown to. So it is given little at a time: then only a long head makes it grow.
    static PIECE: RefCell<Box<[u8]>> = RefCell::new(vec![0; FIRST_HEAD_BYTES].into());
}

/// A stream whose reads and writes are noted in its connection's activity.
pub struct ObservedStream<S> {
    inner: S,
    activity: Arc<Activity>,
    /// What the heads of the connection's requests take of what all heads share.
    heads: HeadBytes,
    /// The answer that is about to be written has let the thread's other requests go first.
    has_yielded: bool,
}

impl<S> ObservedStream<S> {
    pub fn new(inner: S, activity: Arc<Activity>, heads: HeadBytes) -> Self {
        Self { inner, activity, heads, has_yielded: false }
    }

    /// Whether an answer is written later in this turn, when the thread's other requests have theirs. A
    /// client that waits for several is woken up by the first that is written: by all of them, if it has time
    /// to fall asleep again while the next one is worked out. Redis writes in this way too.
    fn yields(&mut self, context: &mut Context<'_>) -> bool {
        if self.has_yielded || !turn::has_others() {
            return false;
        }
        self.has_yielded = true;
        context.waker().wake_by_ref();
        true
    }

    fn note(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.activity.write_waits(),
            Poll::Ready(Ok(bytes)) => self.activity.has_written(*bytes),
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let head_bytes = PIECE.with_borrow_mut(|piece| -> Poll<io::Result<usize>> {
            let most = buffer.remaining().min(piece.len());
            let mut read = ReadBuf::new(piece.get_mut(..most).unwrap_or_default());
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut read))?;
            let bytes = read.filled();
            buffer.put_slice(bytes);
            Poll::Ready(Ok(if bytes.is_empty() { 0 } else { self.activity.has_read(bytes) }))
        });
        if !self.heads.grow_to(ready!(head_bytes)?) {
            count_ended("long_heads");
            return Poll::Ready(Err(io::Error::other("the heads of all requests take too much memory")));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.yields(context) {
            return Poll::Pending;
        }
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.yields(context) {
            return Poll::Pending;
        }
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
            Poll::Ready(Ok(())) => {
                self.has_yielded = false;
                self.activity.all_is_written();
            }
            Poll::Pending => self.activity.write_waits(),
            Poll::Ready(Err(_)) => {}
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        if shut.is_pending() {
            self.activity.write_waits();
        }
        shut
    }
}

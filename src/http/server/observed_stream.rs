//! A connection's stream. Its reads and writes are noted in the connection's activity. The connection reads
//! from it by itself while hyper holds nothing, and hyper reads what is hyper's.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::guard::admission::HeadBytes;
use crate::http::server::activity::Activity;
use crate::http::server::answer_buffer::Buffers;
use crate::http::server::direct::{Came, Direct};
use crate::http::server::ended::count_ended;

/// A stream whose reads and writes are noted in its connection's activity.
pub struct ObservedStream<S> {
    inner: S,
    activity: Arc<Activity>,
    /// Answers requests by itself; `None` where hyper is to read them all.
    direct: Option<Direct>,
    /// What was read for hyper: bytes, none at the stream's end, or an error.
    for_hyper: Option<io::Result<Vec<u8>>>,
    /// What the heads of the connection's requests take of what all heads share.
    heads: HeadBytes,
}

/// What remains to be done after a connection has answered what it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remaining {
    /// It has answered all that came.
    Nothing,
    /// Nothing came, or an answer is still being made or written.
    Waits,
    /// hyper has to go on.
    OfHyper,
}

impl<S> ObservedStream<S> {
    pub fn new(inner: S, activity: Arc<Activity>, direct: Option<Direct>, heads: HeadBytes) -> Self {
        Self { inner, activity, direct, for_hyper: None, heads }
    }

    /// Whether the connection reads what comes next, and hyper does not.
    fn is_read_directly(&self) -> bool {
        self.direct.is_some() && self.activity.is_free() && self.for_hyper.is_none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ObservedStream<S> {
    fn answer_direct(&mut self, context: &mut Context<'_>) -> Remaining {
        let mut remaining = Remaining::Waits;
        loop {
            let is_read_directly = self.is_read_directly();
            let Self { inner, activity, direct: Some(direct), for_hyper, .. } = self else {
                return remaining;
            };
            if direct.is_at_work() {
                match direct.poll(context, inner) {
                    Poll::Pending => return Remaining::Waits,
                    Poll::Ready(Ok(())) => remaining = Remaining::Nothing,
                    Poll::Ready(Err(error)) => {
                        *for_hyper = Some(Err(error));
                        return Remaining::OfHyper;
                    }
                }
            }
            if !is_read_directly || activity.is_draining() {
                return Remaining::OfHyper;
            }
            match direct.poll_request(context, inner) {
                Poll::Pending => return remaining,
                Poll::Ready(Ok(Came::Request)) => remaining = Remaining::Nothing,
                Poll::Ready(Ok(Came::Other(bytes))) => {
                    if !bytes.is_empty() {
                        activity.has_read(&bytes);
                    }
                    *for_hyper = Some(Ok(bytes));
                    return Remaining::OfHyper;
                }
                Poll::Ready(Err(error)) => {
                    *for_hyper = Some(Err(error));
                    return Remaining::OfHyper;
                }
            }
        }
    }

    /// hyper reads whenever it is polled and has no request. What it is to have was put aside for it.
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_read_directly() {
            return Poll::Pending;
        }
        if let Some(read) = self.for_hyper.take() {
            let mut bytes = read?;
            let left = bytes.split_off(bytes.len().min(buffer.remaining()));
            buffer.put_slice(&bytes);
            if !left.is_empty() {
                self.for_hyper = Some(Ok(left));
            }
            return Poll::Ready(Ok(()));
        }
        // hyper's buffer grows with what it is given at once, and keeps what it has grown to. So it is given
        // little at a time: then only a long head makes it grow.
        let head_bytes = Buffers::of_thread(|Buffers { read, .. }| -> Poll<io::Result<usize>> {
            let most = buffer.remaining().min(read.len());
            let mut read = ReadBuf::new(read.get_mut(..most).unwrap_or_default());
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

impl<S: AsyncWrite + Unpin> ObservedStream<S> {
    fn note(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.activity.write_waits(),
            Poll::Ready(Ok(bytes)) => self.activity.has_written(*bytes),
            Poll::Ready(Err(_)) => {}
        }
    }
}

/// The stream as the connection and its hyper share it. Both are polled by the connection's task alone.
pub struct SharedStream<S>(Arc<Mutex<ObservedStream<S>>>);

impl<S> Clone for SharedStream<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> SharedStream<S> {
    pub fn new(stream: ObservedStream<S>) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Answers requests that need no hyper, until nothing comes or hyper has to go on.
    pub fn answer_direct(&self, context: &mut Context<'_>) -> Remaining {
        self.0.lock().answer_direct(context)
    }

    /// Whether the connection reads what comes next, and hyper does not.
    pub fn is_read_directly(&self) -> bool {
        self.0.lock().is_read_directly()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for SharedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.lock().poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SharedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut stream = self.0.lock();
        let written = Pin::new(&mut stream.inner).poll_write(context, bytes);
        stream.note(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut stream = self.0.lock();
        let written = Pin::new(&mut stream.inner).poll_write_vectored(context, slices);
        stream.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().inner.is_write_vectored()
    }

    /// hyper flushes once it has written all that it holds.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.0.lock();
        let flushed = Pin::new(&mut stream.inner).poll_flush(context);
        match flushed {
            Poll::Ready(Ok(())) => stream.activity.all_is_written(),
            Poll::Pending => stream.activity.write_waits(),
            Poll::Ready(Err(_)) => {}
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.0.lock();
        // What comes behind the last answer must not be read as a request.
        stream.direct = None;
        let shut = Pin::new(&mut stream.inner).poll_shutdown(context);
        if shut.is_pending() {
            stream.activity.write_waits();
        }
        shut
    }
}

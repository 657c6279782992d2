//! A stream whose reads and writes are noted in its connection's activity, and from which hyper reads only
//! what the connection does not answer by itself.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::server::activity::Activity;
use crate::http::server::direct::Direct;

/// A stream whose reads and writes are noted in its connection's activity.
pub struct ObservedStream<S> {
    inner: S,
    activity: Arc<Activity>,
    /// Answers requests by itself; `None` where hyper is to read them all.
    direct: Option<Direct>,
}

impl<S> ObservedStream<S> {
    pub fn new(inner: S, activity: Arc<Activity>, direct: Option<Direct>) -> Self {
        Self { inner, activity, direct }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for ObservedStream<S> {
    /// hyper reads whenever it is polled and has no request. So what the connection answers by itself goes on
    /// here.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, activity, direct } = self.get_mut();
        loop {
            if let Some(direct) = direct.as_mut().filter(|direct| direct.is_at_work()) {
                ready!(direct.poll(context, inner))?;
                if activity.is_draining() {
                    return Poll::Pending;
                }
            }
            let before = buffer.filled().len();
            let read = Pin::new(&mut *inner).poll_read(context, buffer);
            let bytes = buffer.filled().get(before..).unwrap_or_default();
            if bytes.is_empty() {
                return read;
            }
            if !direct.as_mut().is_some_and(|direct| activity.is_free() && direct.takes(bytes)) {
                activity.has_read(bytes);
                return read;
            }
            buffer.set_filled(before);
        }
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

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedStream<S> {
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
            Poll::Ready(Ok(())) => self.activity.all_is_written(),
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

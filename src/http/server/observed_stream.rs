//! A stream whose reads and writes are noted in its connection's activity.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::server::activity::Activity;

/// A stream whose reads and writes are noted in its connection's activity.
pub struct ObservedStream<S> {
    inner: S,
    activity: Arc<Activity>,
}

impl<S> ObservedStream<S> {
    pub fn new(inner: S, activity: Arc<Activity>) -> Self {
        Self { inner, activity }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Some(bytes) = buffer.filled().get(before..).filter(|bytes| !bytes.is_empty()) {
            self.activity.has_read(bytes);
        }
        read
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

//! A connection's socket, and a second handle to it that waits until the client leaves.
//!
//! While a request is in progress, hyper does not look for the connection's end: a client may end its sending
//! half and wait for the answer. A client that left looks the same until something is written to it, and then
//! its system resets the connection. Both are taken from the operating system, which tells them whatever is
//! still to be read.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// The interest that Linux's EPOLLRDHUP comes with. The socket is not registered for urgent data, which would
/// come too.
#[cfg(target_os = "linux")]
const END: Interest = Interest::PRIORITY.add(Interest::ERROR);
/// Other systems only report a connection that was reset.
#[cfg(not(target_os = "linux"))]
const END: Interest = Interest::ERROR;

/// The socket, to read and write.
pub struct Socket {
    read: OwnedReadHalf,
    write: Arc<OwnedWriteHalf>,
}

/// Waits until the client leaves.
pub struct Disconnect(Arc<OwnedWriteHalf>);

/// What a client has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEnd {
    /// It sends nothing more: it has ended its sending half, or closed the connection.
    Sending,
    /// It has gone: it takes no answer.
    Both,
}

/// The socket, and what waits until its client leaves.
pub fn split(stream: TcpStream) -> (Socket, Disconnect) {
    let (read, write) = stream.into_split();
    let write = Arc::new(write);
    (Socket { read, write: Arc::clone(&write) }, Disconnect(write))
}

impl Disconnect {
    /// Completes once the client sends nothing more.
    pub async fn sending_ends(&self) -> ClientEnd {
        match self.0.ready(END).await {
            Ok(ready) if !ready.is_error() => ClientEnd::Sending,
            // An error means that there will be no readiness any more.
            _ => ClientEnd::Both,
        }
    }

    /// Completes once the connection is reset.
    pub async fn is_reset(&self) {
        let _ = self.0.ready(Interest::ERROR).await;
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}

impl Socket {
    /// Writes as soon as there is room.
    fn poll_write_with(
        &self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let stream: &TcpStream = (*self.write).as_ref();
        loop {
            ready!(stream.poll_write_ready(context))?;
            match write(stream) {
                // There was no room after all. The next `poll_write_ready` knows it.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = (*self.write).as_ref();
        Poll::Ready(match rustix::net::shutdown(stream, Shutdown::Write) {
            // The client has closed the connection already.
            Err(rustix::io::Errno::NOTCONN) => Ok(()),
            shut => shut.map_err(io::Error::from),
        })
    }
}

//! A connection's socket, and a second handle to it that waits until the client leaves.
//!
//! While a request is in progress, hyper looks for the connection's end by reading, and stops once it has
//! read something. With a single byte beyond the request, a client that left would keep its permits until the
//! request is answered. So the end is taken from the operating system, which tells it whatever is still to be
//! read.

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
const END: Interest = Interest::PRIORITY;
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

/// The socket, and what waits until its client leaves.
pub fn split(stream: TcpStream) -> (Socket, Disconnect) {
    let (read, write) = stream.into_split();
    let write = Arc::new(write);
    (Socket { read, write: Arc::clone(&write) }, Disconnect(write))
}

impl Disconnect {
    /// Completes once the client sends nothing more: it closed the connection or its sending half, or is
    /// gone.
    pub async fn wait(&self) {
        // An error means the same: there will be no readiness any more.
        let _ = self.0.ready(END).await;
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

//! A connection's socket, shared with whoever waits for its other side to leave.
//!
//! While a request is in work hyper looks for the connection's end by reading, and stops once it has read something: a
//! single byte beyond the request, and a client that is long gone keeps its places until the request is answered. So the
//! end is taken from the system, which tells it whatever is still to be read.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::Shutdown;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// What Linux's EPOLLRDHUP is waited for by: a socket is not registered for urgent data, which would come with it.
#[cfg(target_os = "linux")]
const END: Interest = Interest::PRIORITY;
/// Elsewhere only a connection that was reset is told of without reading.
#[cfg(not(target_os = "linux"))]
const END: Interest = Interest::ERROR;

/// Our end of a connection, to read and write.
pub struct Socket {
    read: OwnedReadHalf,
    write: Arc<OwnedWriteHalf>,
}

/// The other end of a connection.
pub struct OtherSide(Arc<OwnedWriteHalf>);

/// A connection's two ends.
pub fn ends_of(stream: TcpStream) -> (Socket, OtherSide) {
    let (read, write) = stream.into_split();
    let write = Arc::new(write);
    (Socket { read, write: Arc::clone(&write) }, OtherSide(write))
}

impl OtherSide {
    /// Completes once the other side sends nothing more, because it closed the connection, or its sending half, or is no
    /// longer there.
    pub async fn leaves(&self) {
        // An error says the same: readiness is no longer to be had.
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
                // There was none after all, which is now known.
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
            // The other side was faster.
            Err(rustix::io::Errno::NOTCONN) => Ok(()),
            shut => shut.map_err(io::Error::from),
        })
    }
}

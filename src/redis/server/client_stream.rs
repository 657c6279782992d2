//! A connection to a client, over TCP, TLS or a socket.

use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite, Interest, Ready};
use tokio::net::{TcpStream, UnixStream};

use crate::connections::TlsConnection;
use crate::redis::boards::Peer;

/// A connection to a client.
pub trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send + Peer {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + Peer> ClientStream for S {}

impl Peer for TcpStream {
    fn is_gone(&self) -> bool {
        let ready = self.ready(Interest::READABLE).now_or_never();
        ready.is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed))
    }
}

impl Peer for UnixStream {
    fn is_gone(&self) -> bool {
        let ready = self.ready(Interest::READABLE).now_or_never();
        ready.is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed))
    }
}

impl Peer for TlsConnection {
    fn is_gone(&self) -> bool {
        self.get_ref().0.is_gone()
    }
}

//! Where Redis' protocol is listened for, and who gets a connection.

use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;

use crate::access::ActiveTokens;
use crate::connections::{ClientTimeouts, ConnectionPermit, SharedConnections, Tls, accept, limit_unread};
use crate::operations::Operations;
use crate::redis::boards::PopTurns;
use crate::redis::server::client_stream::ClientStream;
use crate::redis::server::clients::Clients;
use crate::redis::server::connection::{close, speak};
use crate::redis::server::figures::Figures;
use crate::redis::server::service::Service;
use crate::redis::server::session::Session;

/// How long requests in progress may take to end once the service shuts down.
const DRAIN_REQUESTS: Duration = Duration::from_secs(10);
/// What comes before the path of a socket.
const SOCKET_SCHEME: &str = "unix:";

/// Where it is listened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    Tcp(SocketAddr),
    /// The path of a socket.
    Socket(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix(SOCKET_SCHEME).or_else(|| text.starts_with('/').then_some(text))
            && !path.is_empty()
        {
            return Ok(Self::Socket(path.into()));
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            "an IP address and a port are expected, for example 127.0.0.1:6380, or the path of a socket, for \
             example unix:/run/ranktree.sock"
        })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Socket(path) => write!(f, "{SOCKET_SCHEME}{}", path.display()),
        }
    }
}

/// Listens.
pub enum Listener {
    Tcp(TcpListener),
    /// The socket's file is removed when it is dropped.
    Socket(UnixListener, SocketFile),
}

/// The file of a socket.
pub struct SocketFile {
    path: PathBuf,
    file: Option<FileNumber>,
}

/// The device and the number of a file.
type FileNumber = (u64, u64);

/// Which file a socket is, if there is one at a path.
fn file_of(path: &Path) -> Option<FileNumber> {
    let found = std::fs::symlink_metadata(path).ok()?;
    found.file_type().is_socket().then(|| (found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another one may have been put in its place.
        if self.file.is_some() && file_of(&self.path) == self.file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Listener {
    /// # Errors
    /// When it cannot be listened there, with the reason and what to do.
    pub async fn bind(address: &ListenAddress) -> Result<Self, String> {
        let refused = |error: &io::Error, advice: &str| {
            format!("cannot listen on {address} for Redis' protocol: {error}{advice}")
        };
        match address {
            ListenAddress::Tcp(tcp) => TcpListener::bind(tcp).await.map(Self::Tcp).map_err(|error| {
                refused(
                    &error,
                    "; another program may listen there: give another address with --redis-listen",
                )
            }),
            ListenAddress::Socket(path) => {
                let bound = match UnixListener::bind(path) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse => {
                        if file_of(path).is_none() {
                            return Err(refused(
                                &error,
                                "; what is there is no socket, and is left as it is: give another path",
                            ));
                        }
                        // A service that was killed has left its file: nobody answers there.
                        match UnixStream::connect(path).await.map_err(|error| error.kind()) {
                            Err(ErrorKind::ConnectionRefused) => {}
                            _ => return Err(refused(&error, "; another program listens there")),
                        }
                        std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
                    }
                    bound => bound,
                };
                let listener = bound.map_err(|error| {
                    refused(&error, "; give a path that there is no file at, in a directory that is there")
                })?;
                Ok(Self::Socket(listener, SocketFile { path: path.clone(), file: file_of(path) }))
            }
        }
    }

    /// Where it listens, with the port that was chosen for port 0.
    pub fn address(&self) -> ListenAddress {
        match self {
            Self::Tcp(listener) => ListenAddress::Tcp(
                listener.local_addr().unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)),
            ),
            Self::Socket(_, SocketFile { path, .. }) => ListenAddress::Socket(path.clone()),
        }
    }

    async fn next(&self) -> io::Result<(Accepted, IpAddr, String)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((Accepted::Tcp(stream.into_std()?), address.ip(), address.to_string()))
            }
            Self::Socket(listener, SocketFile { path, .. }) => {
                let (stream, _) = listener.accept().await?;
                // Who can open the socket is on this machine.
                let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
                Ok((Accepted::Socket(stream.into_std()?), client, format!("{}:0", path.display())))
            }
        }
    }
}

/// A connection that has no thread yet.
enum Accepted {
    Tcp(std::net::TcpStream),
    Socket(std::os::unix::net::UnixStream),
}

/// How connections are served.
#[derive(Default)]
pub struct Serving {
    /// The certificate; `None` for connections without TLS. Sockets have none.
    pub tls: Option<Arc<Tls>>,
    pub timeouts: ClientTimeouts,
    /// The tokens that clients need; `None` if everybody may do everything.
    pub access: Option<Arc<ActiveTokens>>,
    /// For those who ask.
    pub connections_max: usize,
}

/// Serves commands until `shutdown` completes, then lets requests in progress end.
pub async fn serve(
    listener: Listener,
    operations: Arc<Operations>,
    shared: Arc<SharedConnections>,
    serving: Serving,
    shutdown: impl Future<Output = ()>,
) {
    let Serving { tls, timeouts, access, connections_max } = serving;
    let port = match (&listener, listener.address()) {
        (Listener::Tcp(tcp), ListenAddress::Tcp(address)) => {
            limit_unread(tcp);
            address.port()
        }
        _ => 0,
    };
    let service = Arc::new(Service {
        operations,
        access,
        clients: Clients::default(),
        figures: Figures::new(),
        pops: PopTurns::default(),
        started: Instant::now(),
        port,
        connections_max,
    });
    let (stop, stopping) = watch::channel(false);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, client, address) = tokio::select! {
            () = shutdown.as_mut() => break,
            accepted = accept(|| listener.next()) => accepted,
        };
        // A stream that is dropped is closed.
        let Some(permit) = shared.limiter.permit(client) else {
            Figures::note_end("refused");
            continue;
        };
        let (service, tls, stopping) = (Arc::clone(&service), tls.clone(), stopping.clone());
        shared.threads.spawn(async move {
            let _counted = service.figures.count_connection();
            let open = service.clients.open(address);
            let session = Session::new(Arc::clone(&open.client));
            let connection = Connection { service: &service, session, timeouts, stopping, permit };
            match stream {
                Accepted::Tcp(stream) => {
                    // Registered here, with this thread's event loop.
                    let Ok(stream) = TcpStream::from_std(stream) else { return };
                    // A request is one small packet, and so is its answer.
                    let _ = stream.set_nodelay(true);
                    // A client may be silent for days. That it is gone is to be noticed.
                    let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
                    connection.serve_tcp(stream, tls.as_deref()).await;
                }
                Accepted::Socket(stream) => {
                    let Ok(stream) = UnixStream::from_std(stream) else { return };
                    connection.serve(stream).await;
                }
            }
        });
    }
    drop((listener, stopping));
    let _ = stop.send(true);
    if tokio::time::timeout(DRAIN_REQUESTS, stop.closed()).await.is_err() {
        tracing::warn!("some commands of Redis' protocol did not finish in time");
    }
}

/// A connection that was let in.
struct Connection<'c> {
    service: &'c Service,
    session: Session,
    timeouts: ClientTimeouts,
    stopping: watch::Receiver<bool>,
    permit: ConnectionPermit,
}

impl Connection<'_> {
    async fn serve_tcp(self, stream: TcpStream, tls: Option<&Tls>) {
        let Some(tls) = tls else { return self.serve(stream).await };
        let shaken = tokio::time::timeout(self.timeouts.header, tls.plain_acceptor().accept(stream)).await;
        match shaken {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(_)) | Err(_) => Figures::note_end("handshake"),
        }
    }

    async fn serve(mut self, mut stream: impl ClientStream) {
        if self.permit.is_overflow {
            Figures::note_end("over_limit");
            let told = stream.write_all(b"-ERR max number of clients reached\r\n");
            let _ = tokio::time::timeout(self.timeouts.header, told).await;
            close(&mut stream, &self.timeouts).await;
            return;
        }
        speak(&mut stream, self.service, &mut self.session, &self.timeouts, self.stopping).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_takes_the_place_of_one_that_nobody_listens_on_and_of_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("r.sock");
        let address = ListenAddress::Socket(path.clone());
        let refused = async || match Listener::bind(&address).await {
            Ok(_) => panic!("it listens"),
            Err(why) => why,
        };
        // A file, a folder, a link to a file.
        std::fs::write(&path, "dear").expect("it can be written");
        assert!(refused().await.contains("is no socket, and is left as it is"));
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "dear");
        std::fs::rename(&path, folder.path().join("file")).expect("it can be moved");
        std::os::unix::fs::symlink(folder.path().join("file"), &path).expect("a link");
        assert!(refused().await.contains("is no socket"));
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "dear");
        std::fs::remove_file(&path).expect("it is a link");
        // A socket that somebody listens on, whose queue may be full.
        let other = std::os::unix::net::UnixListener::bind(&path).expect("it is free");
        assert!(refused().await.contains("another program listens there"));
        rustix::net::listen(&other, 1).expect("it listens");
        let mut waiting = Vec::new();
        while let Ok(client) = UnixStream::connect(&path).await {
            waiting.push(client);
        }
        assert!(refused().await.contains("another program listens there"));
        assert!(path.exists());
        drop((other, waiting));
        let listener = Listener::bind(&address).await.expect("nobody listens there");
        // What is put in its place is not its own.
        std::fs::remove_file(&path).expect("it is there");
        std::fs::write(&path, "dear").expect("it can be written");
        drop(listener);
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "dear");
        std::fs::remove_file(&path).expect("it is there");
        drop(Listener::bind(&address).await.expect("the path is free"));
        assert!(!path.exists());
    }

    #[test]
    fn an_address_is_one_of_tcp_or_the_path_of_a_socket() {
        for (text, expect) in [
            ("127.0.0.1:6380", Some("127.0.0.1:6380")),
            ("[::1]:0", Some("[::1]:0")),
            ("unix:/run/r.sock", Some("unix:/run/r.sock")),
            ("/run/r.sock", Some("unix:/run/r.sock")),
            ("unix:r.sock", Some("unix:r.sock")),
            ("unix:", None),
            ("6380", None),
            ("localhost:6380", None),
        ] {
            let parsed = text.parse::<ListenAddress>().map(|address| address.to_string());
            assert_eq!(parsed.ok().as_deref(), expect, "{text}");
        }
    }
}

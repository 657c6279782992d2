//! The listener: accepts connections, and shuts them down with the service.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::http::api::Api;
use crate::http::guard::origin::AllowedOrigins;
use crate::http::routing::routes::{open_paths, router};
use crate::http::server::connection::{self, Stage};
use crate::http::server::connection_limit::{ConnectionLimiter, ConnectionLimits};
use crate::http::server::context::ServerContext;
use crate::http::server::ended::{count_ended, register_ended};
use crate::http::server::threads::Threads;
use crate::http::server::timeouts::ClientTimeouts;
use crate::http::server::tls::Tls;
use crate::http::server::unread;
use crate::metrics::HTTP_CONNECTIONS;

/// How long requests in progress may take to end once the service shuts down.
const DRAIN_REQUESTS: Duration = Duration::from_secs(10);
/// How long to wait before the next connection when the system has no resources for this one.
const OUT_OF_RESOURCES: Duration = Duration::from_millis(200);

/// How connections are served.
#[derive(Default)]
pub struct Serving {
    /// The certificate; `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    pub timeouts: ClientTimeouts,
    pub connections: ConnectionLimits,
    /// Whether only programs of this machine may ask, and pages of this service in a browser on it. Otherwise
    /// pages of other sites are refused what changes something, and nothing else.
    pub loopback_guard: bool,
    /// Other sites whose pages may do what the service's own may.
    pub origins: AllowedOrigins,
    /// The number of threads; for 0, one fewer than there are cores.
    pub threads: usize,
}

/// Serves the API until `shutdown` completes, then lets requests in progress end.
///
/// Returns the threads on which it did. What their requests have begun for others, such as messages that
/// requests over NATS share, goes on there for as long as they are held.
///
/// # Errors
/// When the system has no resources for the threads.
pub async fn serve(
    listener: TcpListener,
    api: Arc<Api>,
    serving: Serving,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<Threads> {
    let Serving { tls, timeouts, connections, loopback_guard, origins, threads } = serving;
    let threads = Threads::start(threads)?;
    unread::limit(&listener);
    let (router, open_paths) = (router(Arc::clone(&api)), open_paths());
    let context = Arc::new(ServerContext { router, open_paths, tls, timeouts, api, loopback_guard, origins });
    let limiter = ConnectionLimiter::new(connections);
    let open = metrics::gauge!(HTTP_CONNECTIONS);
    register_ended();
    let (stage, staged) = watch::channel(Stage::Serving);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, address) = tokio::select! {
            () = shutdown.as_mut() => break,
            accepted = accept(&listener) => accepted,
        };
        // A stream that is dropped is closed.
        let Some(permit) = limiter.permit(address.ip()) else {
            count_ended("refused");
            continue;
        };
        if permit.is_overflow {
            count_ended("over_limit");
        }
        open.increment(1.0);
        let counted = OpenConnectionGauge(open.clone());
        let (context, staged) = (Arc::clone(&context), staged.clone());
        let Ok(stream) = stream.into_std() else { continue };
        threads.spawn(async move {
            let _counted = counted;
            // Registered here, with this thread's event loop.
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            connection::serve((stream, address.ip()), permit, context, staged).await;
        });
    }
    drop((listener, staged));
    tracing::info!("shutting down");
    let _ = stage.send(Stage::Draining);
    if tokio::time::timeout(DRAIN_REQUESTS, stage.closed()).await.is_err() {
        tracing::warn!(
            "some requests did not finish in time; their connections are closed without an answer"
        );
        let _ = stage.send(Stage::Over);
        stage.closed().await;
    }
    Ok(threads)
}

/// Takes a connection out of the count when it is dropped.
struct OpenConnectionGauge(metrics::Gauge);

impl Drop for OpenConnectionGauge {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// The next connection. An error is about one connection, or passes, so that it never ends the listener.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                let is_of_one_connection = matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
                );
                if !is_of_one_connection {
                    tracing::error!(%error, "no connection can be accepted now; if the cause is too many open files, raise the limit (ulimit -n)");
                    tokio::time::sleep(OUT_OF_RESOURCES).await;
                }
            }
        }
    }
}

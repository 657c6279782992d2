//! Serving: the listener, its connections, and how they end.

use std::future::Future;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::http::api::Api;
use crate::http::routing::list::router;
use crate::http::server::activity::Patience;
use crate::http::server::connection::{self, Shared, Stage, count_ended, register_ended};
use crate::http::server::connection_limit::{ConnectionLimits, Places};
use crate::http::server::threads::Threads;
use crate::http::server::tls::Tls;
use crate::metrics::HTTP_CONNECTIONS;

/// How long requests in work may take to end after the service was told to.
const DRAIN_REQUESTS: Duration = Duration::from_secs(10);
/// How long to wait before the next connection when the system has no means for this one.
const OUT_OF_MEANS: Duration = Duration::from_millis(200);

/// How connections are served.
#[derive(Default)]
pub struct Serving {
    /// With what certificate; `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    pub patience: Patience,
    pub connections: ConnectionLimits,
    /// Whether only programs of this machine may ask, and no page of another site in a browser on it.
    pub local_only: bool,
    /// How many threads; for 0, one fewer than there are cores.
    pub threads: usize,
}

/// Serves the API until `shutdown` completes, then lets requests in work end.
///
/// # Errors
/// When the system has no means for the threads.
pub async fn serve(
    listener: TcpListener,
    api: Arc<Api>,
    serving: Serving,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let Serving { tls, patience, connections, local_only, threads } = serving;
    let threads = Threads::start(threads)?;
    let shared = Arc::new(Shared { router: router(Arc::clone(&api)), tls, patience, api, local_only });
    let places = Places::new(connections);
    let open = metrics::gauge!(HTTP_CONNECTIONS);
    register_ended();
    let (stage, staged) = watch::channel(Stage::Serving);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, address) = tokio::select! {
            () = shutdown.as_mut() => break,
            accepted = accept(&listener) => accepted,
        };
        // Dropped, it is closed.
        let Some(place) = places.take(address.ip()) else {
            count_ended("refused");
            continue;
        };
        if place.is_spare {
            count_ended("over_limit");
        }
        open.increment(1.0);
        let leaving = Leaving(open.clone());
        let (shared, staged) = (Arc::clone(&shared), staged.clone());
        let Ok(stream) = stream.into_std() else { continue };
        threads.spawn(async move {
            let _leaving = leaving;
            // From here on this thread's event loop tells of it.
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            connection::serve((stream, address.ip()), place, shared, staged).await;
        });
    }
    drop((listener, staged));
    tracing::info!("shutting down");
    let _ = stage.send(Stage::Draining);
    if tokio::time::timeout(DRAIN_REQUESTS, stage.closed()).await.is_err() {
        tracing::warn!("some requests did not end in time; they get no answer");
        let _ = stage.send(Stage::Over);
        stage.closed().await;
    }
    Ok(())
}

/// Counts a connection out, however it ends.
struct Leaving(metrics::Gauge);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// The next connection. There is always one more: an error is that connection's, or passes.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                let is_its_own = matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
                );
                if !is_its_own {
                    tracing::error!(%error, "no connection can be accepted now; are there files enough (ulimit -n)?");
                    tokio::time::sleep(OUT_OF_MEANS).await;
                }
            }
        }
    }
}

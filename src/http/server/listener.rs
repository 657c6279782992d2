//! The listener: accepts connections, and shuts them down with the service.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::connections::{ClientTimeouts, SharedConnections, Tls, accept, limit_unread};
use crate::http::api::Api;
use crate::http::guard::origin::AllowedOrigins;
use crate::http::routing::routes::{open_paths, router};
use crate::http::server::connection::{self, Stage};
use crate::http::server::context::ServerContext;
use crate::http::server::ended::{count_ended, register_ended};
use crate::metrics::HTTP_CONNECTIONS;

/// How long requests in progress may take to end once the service shuts down.
const DRAIN_REQUESTS: Duration = Duration::from_secs(10);

/// How connections are served.
#[derive(Default)]
pub struct Serving {
    /// The certificate; `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    pub timeouts: ClientTimeouts,
    /// Whether only programs of this machine may ask, and pages of this service in a browser on it. Otherwise
    /// pages of other sites are refused what changes something, and nothing else.
    pub loopback_guard: bool,
    /// Other sites whose pages may do what the service's own may.
    pub origins: AllowedOrigins,
}

/// Serves the API until `shutdown` completes, then lets requests in progress end.
///
/// # Arguments
/// `shared`: the threads that it is served on. What requests have begun for others, such as messages that
/// requests over NATS share, goes on there for as long as they are held.
pub async fn serve(
    listener: TcpListener,
    api: Arc<Api>,
    shared: Arc<SharedConnections>,
    serving: Serving,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let Serving { tls, timeouts, loopback_guard, origins } = serving;
    limit_unread(&listener);
    let (router, open_paths) = (router(Arc::clone(&api)), open_paths());
    let context = Arc::new(ServerContext { router, open_paths, tls, timeouts, api, loopback_guard, origins });
    let open = metrics::gauge!(HTTP_CONNECTIONS);
    register_ended();
    let (stage, staged) = watch::channel(Stage::Serving);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (stream, address) = tokio::select! {
            () = shutdown.as_mut() => break,
            accepted = accept(|| listener.accept()) => accepted,
        };
        // A stream that is dropped is closed.
        let Some(permit) = shared.limiter.permit(address.ip()) else {
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
        shared.threads.spawn(async move {
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
}

/// Takes a connection out of the count when it is dropped.
struct OpenConnectionGauge(metrics::Gauge);

impl Drop for OpenConnectionGauge {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

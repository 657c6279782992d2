//! Serving: the listener, its connections, and how they end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::http::api::Api;
use crate::http::router::router;

/// How long requests in work may take to end after the service was told to.
const DRAIN_REQUESTS: Duration = Duration::from_secs(10);

/// Serves the API until `shutdown` completes, then lets requests in work end.
///
/// # Errors
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    api: Arc<Api>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let app = router(api);
    // A request is one small packet and so is its answer: waiting to fill one up only adds latency.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let (stopping, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, app).with_graceful_shutdown(async move {
        shutdown.await;
        tracing::info!("shutting down");
        let _ = stopping.send(());
    });
    let overdue = async move {
        if stopped.await.is_ok() {
            tokio::time::sleep(DRAIN_REQUESTS).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        served = server => served,
        () = overdue => {
            tracing::warn!("some requests did not end in time; they get no answer");
            Ok(())
        }
    }
}

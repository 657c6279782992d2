//! The next connection of a listener.

use std::io::{self, ErrorKind};
use std::time::Duration;

/// How long to wait before the next connection when the system has no resources for this one.
const OUT_OF_RESOURCES: Duration = Duration::from_millis(200);

/// The next connection. An error is about one connection, or passes, so that it never ends the listener.
///
/// # Arguments
/// `next`: accepts one.
pub async fn accept<C, F: Future<Output = io::Result<C>>>(next: impl Fn() -> F) -> C {
    loop {
        match next().await {
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

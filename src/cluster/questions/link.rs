//! The connection that questions and replies go by. It is apart from those that publish and consume, so that
//! a backlog on one of them does not delay an answer.

use std::time::Duration;

use async_nats::Client;
use tokio::sync::watch;

use crate::queue::nats::Connection;

/// A connection to NATS.
#[derive(Clone)]
pub struct Link {
    pub(super) client: Client,
    /// Counts how often it was connected.
    pub(super) connected: watch::Receiver<u64>,
}

impl Link {
    pub fn new(client: Client, connected: watch::Receiver<u64>) -> Self {
        Self { client, connected }
    }

    /// Waits for the first connection, but not for long.
    pub async fn wait_until_connected(&self, timeout: Duration) {
        let mut connected = self.connected.clone();
        // Without one, questions are refused with the reason.
        let _ = tokio::time::timeout(timeout, connected.wait_for(|count| *count > 0)).await;
    }

    pub(crate) fn of(connection: &Connection) -> Self {
        Self::new(connection.client.clone(), connection.connected.clone())
    }
}

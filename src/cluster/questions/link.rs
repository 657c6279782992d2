//! The connection that questions and replies go by. It is apart from those that publish and consume, so that
//! a backlog on one of them does not delay an answer.

use std::time::Duration;

use async_nats::Client;
use tokio::sync::watch;

use crate::queue::nats::{Connection, Names};
use crate::types::{NodeName, ShardId};

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

/// The subjects of questions under one prefix.
#[derive(Debug, Clone)]
pub struct AskSubjects {
    names: Names,
}

/// The queue group of a shard's owners: a question goes to one of them.
pub const GROUP: &str = "owners";

impl AskSubjects {
    pub fn new(prefix: &str) -> Self {
        Self { names: Names::new(prefix) }
    }

    /// Where some owner of the shard answers that is level.
    pub fn any(&self, shard: ShardId) -> String {
        self.names.ask_subject(shard)
    }

    /// Whether a reply may be sent to this subject.
    pub fn may_be_inbox(&self, subject: &str) -> bool {
        self.names.may_be_inbox(subject)
    }

    /// Where one owner answers.
    pub fn of_node(&self, shard: ShardId, node: &NodeName) -> String {
        self.names.ask_node_subject(shard, node)
    }
}

//! Writes over NATS: the write service of the shards that this node owns, and the client by which it has
//! other nodes write to theirs.
//!
//! Must not know: how requests travel (`cluster`), or what comes of them (`http`).

use std::future::Future;
use std::sync::Arc;

use crate::cluster::questions::Owners;
use crate::cluster::{ServedShard, WriteClient, WriteHandler, WriteService};
use crate::http::{Api, NatsWrites};
use crate::query::Node;
use crate::queue::ThisNode;
use crate::queue::nats::{Connection, Names};

/// What carries requests to the write service, on both ends.
pub struct NatsWriting {
    pub connection: Connection,
    pub subjects: Names,
}

impl NatsWriting {
    /// # Arguments
    /// `owners`: of all shards.
    pub fn client(&self, owners: Arc<Owners>) -> WriteClient {
        WriteClient::new(&self.connection, &self.subjects, owners)
    }

    /// Begins to take requests for the shards that this node owns.
    pub fn start(self, this: ThisNode, node: &Node, api: &Arc<Api>) -> WriteService {
        let served =
            node.shards.iter().map(|shard| ServedShard { id: shard.id, health: Arc::clone(&shard.health) });
        let handler: Arc<dyn WriteHandler> = Arc::new(NatsWrites::new(Arc::clone(api)));
        WriteService::start(&self.connection, &self.subjects, this, served.collect(), &handler)
    }
}

/// Completes when `shutdown` does. From then on no more requests are taken over NATS.
pub async fn stop_first(write_service: Option<Arc<WriteService>>, shutdown: impl Future<Output = ()>) {
    shutdown.await;
    if let Some(write_service) = write_service {
        write_service.begin_stop();
    }
}

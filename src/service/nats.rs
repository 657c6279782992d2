//! A node's streams: connected and set up when it starts, and what runs beside the writers from then on.
//!
//! Must not know: how shards are opened, or that there is HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::ServeConfig;
use crate::query::{Node, ShardHandle};
use crate::queue::jetstream::{
    Boards, BoardsOfShard, Freeing, JetStream, Kept, Settings, ShardStart, Shared, StreamPublisher,
    StreamSource,
};
use crate::queue::publisher::Publisher;
use crate::service::ServiceError;
use crate::service::opening::OpenedShard;
use crate::state_lock::Purpose;
use crate::types::ShardId;
use crate::writer::{Registry, WantedBoards};

/// How long a start waits for NATS before it serves what it has.
const SET_UP_WITHIN: Duration = Duration::from_secs(5);

/// The streams of a node that is starting.
pub struct NatsStreams {
    nats: Arc<JetStream>,
    ends: BTreeMap<ShardId, (StreamPublisher, StreamSource)>,
    shared: Vec<Arc<Shared>>,
    /// Boards that parked jobs wait for.
    pub wanted: Arc<WantedBoards>,
    /// Whether the streams are set up already. If not, setting them up goes on while the service runs.
    pub are_set_up: bool,
}

impl NatsStreams {
    /// Connects, and sets the streams up. Where NATS cannot be reached, that goes on while the service runs
    /// and answers reads from what it has.
    ///
    /// # Errors
    /// When NATS is reached and the streams cannot be used as they are.
    pub async fn open(
        settings: Settings,
        config: &ServeConfig,
        opened: &[OpenedShard],
        registry: &Registry,
    ) -> Result<Self, ServiceError> {
        let nats = Arc::new(JetStream::open(settings, config.shards).await?);
        let (mut ends, mut shared, mut starts) = (BTreeMap::new(), Vec::new(), Vec::new());
        for shard in opened {
            let applied = shard.state.read(Purpose::Gauges).applied.sequence;
            let start = ShardStart { shard: shard.id, applied, health: Arc::clone(&shard.health) };
            let (publisher, source, shares) = nats.shard(&start)?;
            ends.insert(shard.id, (publisher, source));
            shared.push(shares);
            starts.push((shard.id, applied));
        }
        let incarnation = registry.last_incarnation().0;
        let setting_up = Arc::clone(&nats);
        let mut setting_up = tokio::spawn(async move { setting_up.prepare(&starts, incarnation).await });
        let are_set_up = match tokio::time::timeout(SET_UP_WITHIN, &mut setting_up).await {
            Ok(Ok(outcome)) => outcome.map(|()| true)?,
            Ok(Err(error)) => return Err(std::io::Error::other(error).into()),
            Err(_) => {
                tracing::warn!(
                    "NATS is not there yet; what is here can be read meanwhile, and is marked stale"
                );
                false
            }
        };
        Ok(Self { nats, ends, shared, wanted: Arc::default(), are_set_up })
    }

    /// A shard's publisher and job source.
    pub fn take(&mut self, shard: ShardId) -> (StreamPublisher, StreamSource) {
        self.ends.remove(&shard).expect("every shard has its streams, once")
    }

    /// Starts the tasks that run beside the writers.
    pub fn run(self, node: &Node, registry: &Arc<Registry>) -> Arc<Boards> {
        let of_shard = |(shard, shared): (&ShardHandle, &Arc<Shared>)| {
            let Publisher::Stream(publisher) = &shard.publisher else { return None };
            Some(BoardsOfShard {
                id: shard.id,
                state: Arc::clone(&shard.state),
                health: Arc::clone(&shard.health),
                applied: shard.applied.clone(),
                publisher: StreamPublisher::clone(publisher),
                shared: Arc::clone(shared),
            })
        };
        let shards: Vec<BoardsOfShard> = node.shards.iter().zip(&self.shared).filter_map(of_shard).collect();
        for BoardsOfShard { id, health, applied, publisher, .. } in &shards {
            let (health, applied, publisher) = (Arc::clone(health), applied.clone(), publisher.clone());
            tokio::spawn(Freeing { shard: *id, health, applied, publisher }.run());
        }
        let boards = self.nats.boards(Arc::clone(registry), self.wanted, shards);
        let [follows, tends, deletes] = [(); 3].map(|()| Arc::clone(&boards));
        tokio::spawn(async move { follows.follow().await });
        tokio::spawn(async move { tends.tend().await });
        tokio::spawn(async move { deletes.delete_tombstones().await });
        let kept = || {
            let kept = node.shards.iter().zip(&self.shared);
            kept.map(|(shard, shared)| Kept {
                shared: Arc::clone(shared),
                store: Arc::clone(&shard.store),
                applied: shard.applied.clone(),
            })
        };
        for kept in kept() {
            let nats = Arc::clone(&self.nats);
            tokio::spawn(async move { nats.publish_rejects(&kept).await });
        }
        for kept in kept() {
            let nats = Arc::clone(&self.nats);
            tokio::spawn(async move { nats.keep(&kept).await });
        }
        boards
    }
}

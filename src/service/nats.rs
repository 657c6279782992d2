//! A node's streams: connects and sets them up at the start, and starts the tasks that run beside the
//! writers.
//!
//! Must not know: how shards are opened, or that there is HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::config::ServeConfig;
use crate::query::{Node, ShardHandle};
use crate::queue::ThisNode;
use crate::queue::nats::{
    BoardsStream, Claim, JetStream, NatsShard, Peers, Settings, ShardStart, ShardStream, StreamPublisher,
    StreamSource, unpark_ready_jobs,
};
use crate::service::ServiceError;
use crate::service::opening::OpenedShard;
use crate::state_lock::Purpose;
use crate::types::ShardId;
use crate::writer::{Registry, WantedBoards};

/// How long a start waits for NATS before it serves what it has.
const SETUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The streams of a node that is starting.
pub struct NatsStreams {
    nats: Arc<JetStream>,
    queue_ends: BTreeMap<ShardId, (StreamPublisher, StreamSource)>,
    /// For the tasks beside the writers, by shard.
    task_ends: Vec<(StreamPublisher, Arc<ShardStream>)>,
    /// Boards that parked jobs wait for.
    pub wanted: Arc<WantedBoards>,
    /// The right to this node's name, if that is known already.
    claim: Option<Claim>,
    /// Whether the streams are set up already. If not, that continues while the service runs.
    pub are_set_up: bool,
}

impl NatsStreams {
    /// Connects, and sets the streams up. If NATS cannot be reached, that continues while the service runs
    /// and answers reads from the data on disk.
    ///
    /// # Errors
    /// When NATS can be reached, but the streams cannot be used as they are, or another node has this node's
    /// name.
    pub async fn open(
        settings: Settings,
        config: &ServeConfig,
        this: ThisNode,
        opened: &[OpenedShard],
        registry: &Registry,
    ) -> Result<Self, ServiceError> {
        let nats = Arc::new(JetStream::open(settings, config.shards, this).await?);
        let (mut queue_ends, mut task_ends, mut starts) = (BTreeMap::new(), Vec::new(), Vec::new());
        for shard in opened {
            let applied = shard.state.read(Purpose::Gauges).applied.sequence;
            let start = ShardStart { shard: shard.id, applied, health: Arc::clone(&shard.health) };
            let (publisher, source, stream) = nats.shard(&start)?;
            task_ends.push((publisher.clone(), stream));
            queue_ends.insert(shard.id, (publisher, source));
            starts.push((shard.id, applied));
        }
        let incarnation = registry.last_incarnation().0;
        let setting_up = Arc::clone(&nats);
        let mut setting_up = tokio::spawn(async move { setting_up.prepare(&starts, incarnation).await });
        let are_set_up = match tokio::time::timeout(SETUP_TIMEOUT, &mut setting_up).await {
            Ok(Ok(outcome)) => outcome.map(|()| true)?,
            Ok(Err(error)) => return Err(std::io::Error::other(error).into()),
            Err(_) => {
                tracing::warn!(
                    "NATS cannot be reached yet; serving reads of the data on disk meanwhile, marked stale"
                );
                false
            }
        };
        let claim = if are_set_up { nats.claim_name().await? } else { None };
        Ok(Self { nats, queue_ends, task_ends, wanted: Arc::default(), claim, are_set_up })
    }

    /// A shard's publisher and job source.
    pub fn take(&mut self, shard: ShardId) -> (StreamPublisher, StreamSource) {
        self.queue_ends.remove(&shard).expect("every shard has its streams, once")
    }

    /// What is known of other nodes.
    pub fn peers(&self) -> Arc<Peers> {
        Arc::clone(&self.nats.peers)
    }

    /// Starts the tasks that run beside the writers.
    pub fn run(self, node: &Node, registry: &Arc<Registry>) -> Arc<BoardsStream> {
        let of_shard = |(shard, (publisher, stream)): (&ShardHandle, _)| NatsShard {
            id: shard.id,
            state: Arc::clone(&shard.state),
            applied: shard.applied.clone(),
            health: Arc::clone(&shard.health),
            store: Arc::clone(&shard.store),
            publisher,
            stream,
        };
        let shards: Vec<NatsShard> = node.shards.iter().zip(self.task_ends).map(of_shard).collect();
        for shard in &shards {
            tokio::spawn(unpark_ready_jobs(shard.clone()));
            let (nats, rejecting) = (Arc::clone(&self.nats), shard.clone());
            tokio::spawn(async move { nats.publish_rejects(&rejecting).await });
            let (nats, retaining) = (Arc::clone(&self.nats), shard.clone());
            tokio::spawn(async move { nats.run_retention(&retaining).await });
        }
        let [renews, nodes, floors, keeps] = [(); 4].map(|()| Arc::clone(&self.nats));
        let (renewing, claim) = (shards.clone(), self.claim);
        tokio::spawn(async move { renews.renew_entries(&renewing, claim).await });
        tokio::spawn(async move { nodes.follow_nodes().await });
        tokio::spawn(async move { floors.follow_floors().await });
        tokio::spawn(async move { keeps.keep_rejects_stream().await });
        let boards = BoardsStream::new(&self.nats, Arc::clone(registry), self.wanted, shards);
        let [follows, delivers, deletes] = [(); 3].map(|()| Arc::clone(&boards));
        tokio::spawn(async move { follows.follow().await });
        tokio::spawn(async move { delivers.run_delivery().await });
        tokio::spawn(async move { deletes.delete_tombstones().await });
        boards
    }
}

//! A node's streams: connects and sets them up at the start, and starts the tasks that run beside the
//! writers.
//!
//! Must not know: how shards are opened, or that there is HTTP.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::copies;
use crate::config::ServeConfig;
use crate::query::{Node, ShardHandle};
use crate::queue::ThisNode;
use crate::queue::nats::{
    BoardsStream, Claim, JetStream, KnownNode, NatsShard, Peers, Settings, ShardStart, ShardStream,
    StreamPublisher, StreamSource, unpark_ready_jobs,
};
use crate::service::ServiceError;
use crate::service::opening::OpenedShard;
use crate::snapshot::StagedCopies;
use crate::state_lock::Purpose;
use crate::storage::shard_directory;
use crate::types::{Sequence, ShardId};
use crate::writer::{Registry, WantedBoards};

/// How long a start waits for NATS before it serves what it has.
const SETUP_TIMEOUT: Duration = Duration::from_secs(5);
/// Nodes renew their entries every two seconds.
const OWNERS_HEARD_WITHIN: Duration = Duration::from_secs(7);
const OWNERS_INTERVAL: Duration = Duration::from_millis(20);
/// Why a shard that has lost its data needs a copy.
const LOST: &str = "the shard's directory was missing or empty, although it held data, or other shards of the data directory do";

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
            stream.copies.set_lost(shard.is_lost.then(|| LOST.to_owned()));
            task_ends.push((publisher.clone(), stream));
            queue_ends.insert(shard.id, (publisher, source));
            // A shard that has lost its data had a stream: a new one would only hide that it is gone.
            starts.push((shard.id, if shard.is_lost { applied.max(Sequence(1)) } else { applied }));
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
        let [nodes, floors] = [(); 2].map(|()| Arc::clone(&nats));
        tokio::spawn(async move { nodes.follow_nodes().await });
        tokio::spawn(async move { floors.follow_floors().await });
        if are_set_up {
            refuse_if_lost_for_good(&nats.peers, opened, config).await?;
        }
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
    ///
    /// # Arguments
    /// `staged`: where copies of other nodes' shards are put together.
    ///
    /// # Errors
    /// When no connection to NATS can be opened at all.
    pub async fn run(
        self,
        node: &Node,
        registry: &Arc<Registry>,
        data_dir: &Path,
        staged: StagedCopies,
    ) -> Result<Arc<BoardsStream>, ServiceError> {
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
        let renews = Arc::clone(&self.nats);
        let (renewing, claim) = (shards.clone(), self.claim);
        tokio::spawn(async move { renews.renew_entries(&renewing, claim).await });
        copies::start(&self.nats, &shards, data_dir, staged).await?;
        let boards = BoardsStream::new(&self.nats, Arc::clone(registry), self.wanted, shards);
        let [follows, delivers, deletes] = [(); 3].map(|()| Arc::clone(&boards));
        tokio::spawn(async move { follows.follow().await });
        tokio::spawn(async move { delivers.run_delivery().await });
        tokio::spawn(async move { deletes.delete_tombstones().await });
        Ok(boards)
    }
}

/// Refuses to start with a shard that has lost its data, unless another node that owns the shard is heard of:
/// ranks without the shard's members would be wrong, for as long as nobody gives a copy of it.
async fn refuse_if_lost_for_good(
    peers: &Peers,
    opened: &[OpenedShard],
    config: &ServeConfig,
) -> Result<(), ServiceError> {
    let lost: Vec<ShardId> = opened.iter().filter(|shard| shard.is_lost).map(|shard| shard.id).collect();
    if lost.is_empty() {
        return Ok(());
    }
    tracing::warn!(shards = ?lost, "shards have lost their data; looking for other nodes that own them");
    let began = tokio::time::Instant::now();
    loop {
        let others = peers.all();
        // Heard of since: an entry that is there may be of a node that has just been killed.
        let runs = |node: &KnownNode| node.silent < began.elapsed();
        let owns = |node: &KnownNode, shard| node.shards.iter().any(|owned| owned.shard == shard);
        let unowned = lost.iter().find(|shard| !others.iter().any(|node| runs(node) && owns(node, **shard)));
        match unowned {
            None => return Ok(()),
            Some(shard) if began.elapsed() >= OWNERS_HEARD_WITHIN => {
                return Err(ServiceError::MissingShard(shard_directory(&config.data_dir, *shard)));
            }
            Some(_) => tokio::time::sleep(OWNERS_INTERVAL).await,
        }
    }
}

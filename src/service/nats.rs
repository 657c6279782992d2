//! A node's streams: connects and sets them up at the start, and starts the tasks that run beside the
//! writers.
//!
//! Must not know: how shards are opened, or that there is HTTP.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::cluster::questions::{
    AskSubjects, AskingShards, Link, OwnerSource, Owners, QuestionService, ServiceLimits, ShardEnd,
    StreamEnds, Trimming,
};
use crate::cluster::{TrimmingShard, copies};
use crate::query::{AnsweringShard, Node, ShardHandle};
use crate::queue::ThisNode;
use crate::queue::nats;
use crate::queue::nats::{
    BoardsStream, Claim, JetStream, KnownNode, NatsShard, OtherShard, Peers, ServiceFacts, Settings,
    ShardStart, ShardStream, StartedShard, StreamPublisher, StreamSource, unpark_ready_jobs,
};
use crate::queue::publisher::Publisher;
use crate::service::ServiceError;
use crate::service::opening::OpenedShard;
use crate::snapshot::StagedCopies;
use crate::state_lock::Purpose;
use crate::storage::{
    DataLayout, ServiceId, ShardIdentity, StorageError, is_unbound, known_data, mark_layout, mark_prefix,
    shard_directory,
};
use crate::types::{Sequence, ShardId};
use crate::writer::{Filling, Registry, WantedBoards};

/// How long a start waits for NATS before it serves what it has.
const SETUP_TIMEOUT: Duration = Duration::from_secs(5);
/// The same, if it was waited for already.
const AWAY_TIMEOUT: Duration = Duration::from_secs(1);
/// Nodes renew their entries every two seconds.
const OWNERS_HEARD_WITHIN: Duration = Duration::from_secs(7);
const OWNERS_INTERVAL: Duration = Duration::from_millis(20);
/// Why a shard that has lost its data needs a copy.
const LOST: &str = "the shard's directory was missing or empty, although it held data, or other shards of the data directory do";

/// The questions of nodes to each other.
pub struct Questions {
    link: Link,
    subjects: AskSubjects,
    pub service: Arc<QuestionService>,
    /// Whom to ask of which shard.
    pub owners: Arc<Owners>,
}

impl Questions {
    /// Asks all shards: those of this node in memory, the others through their owners.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn ask_all(&self, shard_count: u16) -> Result<Arc<AskingShards>, ServiceError> {
        let (link, subjects) = (self.link.clone(), self.subjects.clone());
        let (owners, own) = (Arc::clone(&self.owners), self.service.shards());
        let asking = AskingShards::open(link, subjects, owners, shard_count, own).await;
        Ok(Arc::new(asking.map_err(std::io::Error::other)?))
    }
}

/// Where the streams of this node's shards end.
struct Ends {
    nats: Arc<JetStream>,
    streams: BTreeMap<ShardId, Arc<ShardStream>>,
}

impl StreamEnds for Ends {
    fn end(&self, shard: ShardId) -> BoxFuture<'_, Result<ShardEnd, String>> {
        Box::pin(async move {
            let stream = self.streams.get(&shard).ok_or("this node does not own the shard")?;
            let end = self.nats.stream_end(shard).await?;
            // A rebase counts the stream's sequences from where the shard was.
            let offset = stream.sequence_offset().ok_or("the stream was not read yet")?;
            Ok(ShardEnd(Sequence(end + offset)))
        })
    }
}

/// A node's NATS before its shards are opened.
pub struct Connecting {
    nats: Arc<JetStream>,
    /// Whether it follows what other nodes say already.
    follows: bool,
    /// Whether all shards that have lost their data have owners that were heard of.
    has_owners: bool,
    /// Whether NATS was waited for already, in vain.
    is_away: bool,
}

impl Connecting {
    /// Begins to connect.
    pub async fn open(
        settings: Settings,
        layout: &DataLayout,
        auto_create: bool,
        this: ThisNode,
    ) -> Result<Self, ServiceError> {
        let facts = ServiceFacts { shards: layout.shards, auto_create };
        let nats = Arc::new(JetStream::open(settings, facts, this).await?);
        Ok(Self { nats, follows: false, has_owners: false, is_away: false })
    }

    /// Asks which service the streams are of, before a byte is written to data that may be another one's. If
    /// NATS cannot be reached, it is asked again when the streams are set up.
    ///
    /// # Errors
    /// When it is one of another number of shards.
    pub async fn ask_service(&mut self, data_dir: &Path) -> Result<(), ServiceError> {
        let asked = tokio::time::timeout(SETUP_TIMEOUT, self.nats.ask_service()).await;
        self.is_away = asked.is_err();
        let wanted = self.nats.shards();
        let Some(found) = asked.ok().flatten().filter(|found| *found != wanted) else { return Ok(()) };
        Err(ServiceError::DataDirectory(StorageError::DoesNotFit {
            path: data_dir.to_owned(),
            what: format!(
                "it is of {wanted} shards, and the streams under the prefix {} are of {found}",
                self.nats.prefix()
            )
            .into(),
            step: nats::STEP_TO_OWN_SERVICE.into(),
        }))
    }

    /// The service of the streams, if they were asked and say it.
    pub fn service(&self) -> Option<ServiceId> {
        self.nats.service()
    }

    pub fn this(&self) -> ThisNode {
        self.nats.peers.this.clone()
    }

    /// Looks for other nodes that own shards which have lost their data, before any file is changed. What the
    /// nodes say cannot always be read: NATS may be away, or new. Then it is looked once more after the
    /// streams are set up.
    ///
    /// # Errors
    /// When all was read, and a shard has no owner that is heard of.
    pub async fn look_for_owners(&mut self, lost: &[ShardId], data_dir: &Path) -> Result<(), ServiceError> {
        if lost.is_empty() {
            return Ok(());
        }
        for shard in lost {
            let path = shard_directory(data_dir, *shard);
            tracing::warn!(%shard, path = %path.display(), "the shard's directory is missing or empty, although it held data, or other shards of the data directory do; the shard stays empty until it has a copy of another node's data");
        }
        self.follow();
        let found = wait_for_owners(&self.nats.peers, lost, data_dir).await;
        self.has_owners = found.is_ok();
        if self.nats.peers.knows_owners() { found } else { Ok(()) }
    }

    /// Keeps up with what other nodes say of themselves.
    fn follow(&mut self) {
        if !std::mem::replace(&mut self.follows, true) {
            let [nodes, floors] = [(); 2].map(|()| Arc::clone(&self.nats));
            tokio::spawn(async move { nodes.follow_nodes().await });
            tokio::spawn(async move { floors.follow_floors().await });
        }
    }
}

/// The streams of a node that is starting.
pub struct NatsStreams {
    nats: Arc<JetStream>,
    queue_ends: BTreeMap<ShardId, (StreamPublisher, StreamSource)>,
    /// For the tasks beside the writers, by shard.
    task_ends: Vec<(StreamPublisher, Arc<ShardStream>)>,
    /// The shards that this node does not own.
    others: Vec<OtherShard>,
    /// Boards that parked jobs wait for.
    pub wanted: Arc<WantedBoards>,
    /// The right to this node's name, if that is known already.
    claim: Option<Claim>,
    /// Whether the streams are set up already. If not, that continues while the service runs.
    pub are_set_up: bool,
}

impl NatsStreams {
    /// Sets the streams up. If NATS cannot be reached, that continues while the service runs and answers
    /// reads from the data on disk.
    ///
    /// # Errors
    /// When NATS can be reached, but the streams cannot be used as they are, or another node has this node's
    /// name.
    pub async fn open(
        mut connecting: Connecting,
        layout: &DataLayout,
        data_dir: &Path,
        opened: &[OpenedShard],
        registry: &Registry,
    ) -> Result<Self, ServiceError> {
        let nats = Arc::clone(&connecting.nats);
        let all = (0..layout.shards).map(ShardId);
        let others = all.filter(|id| !layout.own.contains(*id)).map(|id| nats.other_shard(id)).collect();
        let (mut queue_ends, mut task_ends, mut starts) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut own_service =
            known_data(data_dir).map_err(ServiceError::DataDirectory)?.and_then(|known| known.service);
        for shard in opened {
            let applied = shard.state.read(Purpose::Gauges).applied.sequence;
            let store = shard.store.get().map_err(|error| ServiceError::Shard { shard: shard.id, error })?;
            let (health, service) = (Arc::clone(&shard.health), store.identity().service);
            own_service = own_service.or(service);
            let meta = store.meta().map_err(|error| ServiceError::Shard { shard: shard.id, error })?;
            let binds = meta.is_some_and(|meta| is_unbound(&meta.stream));
            let start = ShardStart { shard: shard.id, health, service, binds };
            nats.take_up_divergence(shard.id, &store, &shard.health)
                .map_err(|error| ServiceError::Shard { shard: shard.id, error })?;
            let (publisher, source, stream) = nats.shard(&start)?;
            stream.copies.set_lost(shard.is_lost.then(|| LOST.to_owned()));
            shard.health.set_filling(match applied {
                _ if shard.is_lost => Filling::Lost,
                Sequence(0) => Filling::Empty,
                _ => Filling::Filled,
            });
            task_ends.push((publisher.clone(), stream));
            queue_ends.insert(shard.id, (publisher, source));
            // A shard that has lost its data had a stream: a new one would only hide that it is gone.
            let applied = if shard.is_lost { applied.max(Sequence(1)) } else { applied };
            starts.push(StartedShard { shard: shard.id, applied, binds });
        }
        let incarnation = registry.last_incarnation().0;
        let setting_up = Arc::clone(&nats);
        let mut setting_up =
            tokio::spawn(async move { setting_up.prepare(&starts, incarnation, own_service).await });
        let patience = if connecting.is_away { AWAY_TIMEOUT } else { SETUP_TIMEOUT };
        let are_set_up = match tokio::time::timeout(patience, &mut setting_up).await {
            Ok(Ok(outcome)) => outcome.map(|()| true)?,
            Ok(Err(error)) => return Err(std::io::Error::other(error).into()),
            Err(_) => {
                // The reason was logged when it was found.
                tracing::warn!(
                    "NATS cannot be used yet, see GET /v1/status; serving reads of the data on disk meanwhile, marked stale"
                );
                false
            }
        };
        if let Some(service) = nats.service() {
            take_service(service, opened, layout, data_dir)?;
            for (shard, (_, stream)) in opened.iter().zip(&task_ends) {
                stream.set_service(shard.store.get().ok().and_then(|store| store.identity().service));
            }
        }
        if are_set_up {
            mark_prefix(data_dir, &nats.prefix()).map_err(ServiceError::DataDirectory)?;
        }
        let claim = if are_set_up { nats.claim_name().await? } else { None };
        connecting.follow();
        let lost: Vec<ShardId> = opened.iter().filter(|shard| shard.is_lost).map(|shard| shard.id).collect();
        if are_set_up && !connecting.has_owners {
            wait_for_owners(&nats.peers, &lost, data_dir).await?;
        }
        Ok(Self { nats, queue_ends, task_ends, others, wanted: Arc::default(), claim, are_set_up })
    }

    /// A shard's publisher and job source.
    pub fn take(&mut self, shard: ShardId) -> (StreamPublisher, StreamSource) {
        self.queue_ends.remove(&shard).expect("every shard has its streams, once")
    }

    /// What carries requests to the write service.
    pub async fn open_writes(&self) -> Result<(nats::Connection, nats::Names), ServiceError> {
        let connection = self.nats.open_connection("writes").await?;
        Ok((connection, self.nats.names.clone()))
    }

    /// The publishers of the shards that this node does not own.
    pub fn other_publishers(&self) -> impl Iterator<Item = (ShardId, StreamPublisher)> + '_ {
        self.others.iter().map(|other| (other.id, other.publisher.clone()))
    }

    /// Answers the questions of other nodes to these shards, all that this node owns.
    pub async fn answer_questions(&self, shards: &[ShardHandle]) -> Result<Questions, ServiceError> {
        let link = Link::of(&self.nats.open_connection("questions").await?);
        if self.are_set_up {
            link.wait_until_connected(SETUP_TIMEOUT).await;
        }
        let streams = shards.iter().zip(&self.task_ends);
        let ends = Ends {
            nats: Arc::clone(&self.nats),
            streams: streams.map(|(shard, (_, stream))| (shard.id, Arc::clone(stream))).collect(),
        };
        let subjects = AskSubjects::new(&self.nats.prefix());
        let trimming = shards.iter().zip(&self.task_ends).map(|(shard, (publisher, _))| {
            TrimmingShard::new(shard, Publisher::Stream(Box::new(publisher.clone())))
        });
        let service = QuestionService::start(
            link.clone(),
            subjects.clone(),
            self.nats.peers.this.name.clone(),
            shards.iter().map(AnsweringShard::of).collect(),
            Arc::new(ends),
            Trimming::new(trimming.collect()),
            ServiceLimits::default(),
        );
        let owners: Arc<dyn OwnerSource> = self.peers();
        Ok(Questions { link, subjects, service: Arc::new(service), owners: Owners::start(owners) })
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
            let (nats, erasing) = (Arc::clone(&self.nats), shard.clone());
            tokio::spawn(async move { nats.erase_rejects(&erasing).await });
            let (nats, comparing) = (Arc::clone(&self.nats), shard.clone());
            tokio::spawn(async move { nats.compare_replicas(&comparing).await });
            let (nats, retaining) = (Arc::clone(&self.nats), shard.clone());
            tokio::spawn(async move { nats.run_retention(&retaining).await });
        }
        let [renews, keeps] = [(); 2].map(|()| Arc::clone(&self.nats));
        let (renewing, claim) = (shards.clone(), self.claim);
        tokio::spawn(async move { renews.renew_entries(&renewing, claim).await });
        tokio::spawn(async move { keeps.keep_rejects_stream().await });
        copies::start(&self.nats, &shards, data_dir, staged).await?;
        let boards = BoardsStream::new(&self.nats, Arc::clone(registry), self.wanted, shards, self.others);
        let [follows, delivers, deletes] = [(); 3].map(|()| Arc::clone(&boards));
        tokio::spawn(async move { follows.follow().await });
        tokio::spawn(async move { delivers.run_delivery().await });
        tokio::spawn(async move { deletes.delete_tombstones().await });
        Ok(boards)
    }
}

/// Notes that the data are of the service of the streams: data whose service was not known so far, and data
/// that hold nothing yet. Whatever else differs, its shards halt.
fn take_service(
    service: ServiceId,
    opened: &[OpenedShard],
    layout: &DataLayout,
    data_dir: &Path,
) -> Result<(), ServiceError> {
    let is_empty = |shard: &OpenedShard| shard.state.read(Purpose::Start).applied.sequence.0 == 0;
    let all_empty = opened.iter().all(is_empty);
    let mut has_changed = false;
    for shard in opened {
        let failed = |error| ServiceError::Shard { shard: shard.id, error };
        let store = shard.store.get().map_err(failed)?;
        let identity = store.identity();
        if identity.service != Some(service) && (identity.service.is_none() || all_empty) {
            store.put_identity(ShardIdentity { service: Some(service), ..identity }).map_err(failed)?;
            has_changed = true;
        }
    }
    if has_changed { mark_layout(data_dir, layout).map_err(ServiceError::DataDirectory) } else { Ok(()) }
}

/// Refuses to start with a shard that has lost its data, unless another node that owns the shard is heard of:
/// ranks without the shard's members would be wrong, for as long as nobody gives a copy of it.
async fn wait_for_owners(peers: &Peers, lost: &[ShardId], data_dir: &Path) -> Result<(), ServiceError> {
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
                return Err(ServiceError::NoOwner(shard_directory(data_dir, *shard)));
            }
            Some(_) => tokio::time::sleep(OWNERS_INTERVAL).await,
        }
    }
}

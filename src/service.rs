//! The composition root: opens the shards, starts their writers, serves HTTP, and ends it all in order.
//!
//! It alone sees everything. It takes its listener and its shutdown as arguments, so that a test runs the real thing on
//! port 0.

mod boards;
mod opening;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::config::{HttpConfig, ServeConfig};
use crate::credentials::{Credentials, CredentialsError};
use crate::http::{Api, ConnectionLimits, Limits, Patience, Serving, serve};
use crate::query::{Node, ShardHandle};
use crate::queue::nats::{
    BoardsStream, JetStream, NatsShard, SetupError, ShardStart, ShardStream, StreamPublisher, StreamSource,
    free_parked,
};
use crate::queue::publisher::Publisher;
use crate::queue::{Publishers, local};
use crate::service::opening::{OpenedShard, load_shards};
use crate::state_lock::Purpose;
use crate::storage::StorageError;
use crate::types::{Sequence, ShardId, Timestamp};
use crate::writer::{
    CheckpointGate, CheckpointPolicy, Checkpointer, Gauges, JobSource, Parking, Registry, RejectLog,
    RejectsKept, ShardState, WantedBoards, Writer,
};

/// Why the service did not start, or did not end well.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error("shard {shard} cannot be opened: {error}")]
    Shard { shard: ShardId, error: StorageError },
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("NATS cannot be used: {0}")]
    Nats(#[from] SetupError),
    #[error("the data directory cannot be used: {0}")]
    DataDirectory(StorageError),
    #[error(
        "{} is missing or empty, and it held data, or the shards beside it do: bring it back, or move the whole data \
         directory away to start anew",
        .0.display()
    )]
    MissingShard(PathBuf),
    /// Told to end while it loaded.
    #[error("loading did not end when it was told to: {0}")]
    StillLoading(String),
    #[error("the service cannot be run: {0}")]
    Io(#[from] std::io::Error),
}

/// How long a start waits for NATS before it serves what it has.
const SET_UP_WITHIN: Duration = Duration::from_secs(5);
/// How long a start waits for its shards to have caught up before it says that it listens.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(10);
const CATCH_UP_LOOK: Duration = Duration::from_millis(10);

/// Renders all metrics as Prometheus text.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Runs the service until `shutdown` completes, then drains it: requests in work are answered, writers commit what they
/// were given, and each shard is checkpointed. `ready` is called once it takes requests.
///
/// # Errors
/// When a shard cannot be opened. Nothing is served then. A shutdown while shards are loaded is no error.
pub async fn run(
    config: &ServeConfig,
    listener: TcpListener,
    render_metrics: RenderMetrics,
    ready: impl FnOnce(),
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServiceError> {
    let mut credentials = Credentials::load(&config.http)?;
    let mut shutdown = Box::pin(shutdown);
    let Some(opened) = load_shards(config, &mut shutdown).await? else { return Ok(()) };
    let registry = Arc::new(Registry::new(config.auto_create));
    for shard in &opened {
        registry.learn(&shard.state.read(Purpose::Start));
    }
    for shard in &opened {
        for (name, incarnation) in shard.state.read(Purpose::Start).dropped().iter() {
            registry.forget(name, incarnation);
        }
    }
    let (gate, reject_log) = (CheckpointGate::default(), Arc::new(RejectLog::default()));
    let mut writers = Vec::with_capacity(opened.len());
    let mut shards = Vec::with_capacity(opened.len());
    let mut publishers = Vec::with_capacity(opened.len());
    let mut streams = match &config.nats {
        Some(settings) => Some(Streams::open(settings.clone(), config, &opened, &registry).await?),
        None => None,
    };
    for shard in opened {
        let (handle, writer) = if let Some(streams) = &mut streams {
            let (publisher, source) = streams.take(shard.id);
            publishers.push(Publisher::Stream(Box::new(publisher)));
            let parking = Parking::new(config.auto_create, Arc::clone(&streams.wanted));
            let (handle, writer) =
                shard.into_parts(config, &registry, &gate, &reject_log, source, Some(parking));
            (handle, spawn(writer)?)
        } else {
            let (publisher, source) = local::channel(tokio::runtime::Handle::current());
            publishers.push(Publisher::Local(publisher));
            let (handle, writer) = shard.into_parts(config, &registry, &gate, &reject_log, source, None);
            (handle, spawn(writer)?)
        };
        writers.push(writer);
        shards.push(handle);
    }
    let (node, publishers) = (Arc::new(Node { shards }), Arc::new(Publishers::new(publishers)));
    // There is no use in waiting for NATS twice.
    let catch_up_within = if streams.as_ref().is_none_or(|streams| streams.are_set_up) {
        CATCH_UP_WITHIN
    } else {
        Duration::ZERO
    };
    let boards = if let Some(streams) = streams {
        Some(streams.run(&node, &registry))
    } else {
        boards::complete_changes(&node, &publishers, &registry).await;
        tokio::spawn(boards::keep_forgetting_drops(Arc::downgrade(&node), Arc::clone(&registry)));
        None
    };
    let (limits, access) = (limits(&config.http), credentials.access.clone());
    let api = Arc::new(Api::new(
        Arc::clone(&node),
        Arc::clone(&publishers),
        registry,
        render_metrics,
        limits,
        access,
        boards,
    ));
    all_started(&node).await;
    credentials.keep_up();
    // Served from here on: a shard that has much to catch up on answers probes and stale reads meanwhile, and ends when
    // it is told to.
    let serving = serve(listener, api, serving(&config.http, &credentials), shutdown);
    tokio::pin!(serving);
    let served = tokio::select! {
        served = &mut serving => served,
        () = all_live(&node, catch_up_within) => {
            ready();
            serving.await
        }
    };
    publishers.close().await;
    let joined =
        tokio::task::spawn_blocking(move || writers.into_iter().try_for_each(JoinHandle::join)).await;
    match joined {
        Ok(Ok(())) => Ok(served?),
        Ok(Err(_)) => Err(std::io::Error::other("a writer did not end well; its log says why").into()),
        Err(error) => Err(std::io::Error::other(error).into()),
    }
}

fn limits(config: &HttpConfig) -> Limits {
    Limits {
        requests_in_flight: config.max_requests,
        body: config.body,
        body_stall: config.body / 3,
        ..Limits::default()
    }
}

fn serving(config: &HttpConfig, credentials: &Credentials) -> Serving {
    if config.sends_tokens_in_the_clear() {
        tracing::warn!(
            "requests carry their tokens unencrypted; pass --tls-cert and --tls-key, unless a proxy in front does TLS and nobody listens in between"
        );
    }
    Serving {
        tls: credentials.tls.clone(),
        local_only: config.local_only,
        patience: Patience { header: config.header, idle: config.idle, write: config.write },
        connections: ConnectionLimits {
            total: config.max_connections,
            per_client: config.max_connections_per_client,
        },
        threads: config.threads,
    }
}

/// Waits until every writer has taken up its work, or has said that it cannot.
async fn all_started(node: &Node) {
    for shard in &node.shards {
        let mut started = shard.started.clone();
        // A writer that ended before it started has said why in its log; it is not ready, and readiness tells.
        let _ = started.wait_for(|started| *started).await;
    }
}

/// Waits, for so long, until every shard has caught up or halted.
async fn all_live(node: &Node, catch_up_within: Duration) {
    let deadline = tokio::time::Instant::now() + catch_up_within;
    for shard in &node.shards {
        while matches!(shard.health.state(), ShardState::CatchingUp(_)) {
            if tokio::time::Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep(CATCH_UP_LOOK).await;
        }
    }
}

/// The streams of a node on its way up.
struct Streams {
    nats: Arc<JetStream>,
    ends: BTreeMap<ShardId, (StreamPublisher, StreamSource)>,
    /// Kept for the tasks beside the writers, by shard.
    kept: Vec<(StreamPublisher, Arc<ShardStream>)>,
    wanted: Arc<WantedBoards>,
    /// If not, that goes on meanwhile.
    are_set_up: bool,
}

impl Streams {
    /// Connects, and sets the streams up. Where NATS cannot be reached, that goes on while the service runs: what is
    /// here can be read.
    async fn open(
        settings: crate::queue::nats::Settings,
        config: &ServeConfig,
        opened: &[OpenedShard],
        registry: &Registry,
    ) -> Result<Self, ServiceError> {
        let nats = Arc::new(JetStream::open(settings, config.shards).await?);
        let (mut ends, mut kept, mut starts) = (BTreeMap::new(), Vec::new(), Vec::new());
        for shard in opened {
            let applied = shard.state.read(Purpose::Gauges).applied.sequence;
            let start = ShardStart { shard: shard.id, applied, health: Arc::clone(&shard.health) };
            let (publisher, source, stream) = nats.shard(&start)?;
            kept.push((publisher.clone(), stream));
            ends.insert(shard.id, (publisher, source));
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
        Ok(Self { nats, ends, kept, wanted: Arc::default(), are_set_up })
    }

    fn take(&mut self, shard: ShardId) -> (StreamPublisher, StreamSource) {
        self.ends.remove(&shard).expect("every shard has its streams, once")
    }

    /// Starts the tasks that run beside the writers.
    fn run(self, node: &Node, registry: &Arc<Registry>) -> Arc<BoardsStream> {
        let of_shard = |(shard, (publisher, stream)): (&ShardHandle, _)| NatsShard {
            id: shard.id,
            state: Arc::clone(&shard.state),
            applied: shard.applied.clone(),
            health: Arc::clone(&shard.health),
            store: Arc::clone(&shard.store),
            publisher,
            stream,
        };
        let shards: Vec<NatsShard> = node.shards.iter().zip(self.kept).map(of_shard).collect();
        for shard in &shards {
            tokio::spawn(free_parked(shard.clone()));
            let (nats, rejecting) = (Arc::clone(&self.nats), shard.clone());
            tokio::spawn(async move { nats.publish_rejects(&rejecting).await });
            let (nats, retaining) = (Arc::clone(&self.nats), shard.clone());
            tokio::spawn(async move { nats.run_retention(&retaining).await });
        }
        let boards = BoardsStream::new(&self.nats, Arc::clone(registry), self.wanted, shards);
        let [follows, delivers, deletes] = [(); 3].map(|()| Arc::clone(&boards));
        tokio::spawn(async move { follows.follow().await });
        tokio::spawn(async move { delivers.run_delivery().await });
        tokio::spawn(async move { deletes.delete_tombstones().await });
        boards
    }
}

impl OpenedShard {
    fn into_parts<S: JobSource>(
        self,
        config: &ServeConfig,
        registry: &Arc<Registry>,
        gate: &CheckpointGate,
        reject_log: &Arc<RejectLog>,
        source: S,
        parking: Option<Parking>,
    ) -> (ShardHandle, Writer<S>) {
        let (applied, applied_receiver) = watch::channel(Sequence::default());
        let (starting, started) = watch::channel(false);
        let policy = CheckpointPolicy {
            interval: config.checkpoint_interval,
            changes_min: config.checkpoint_changes,
            ..CheckpointPolicy::default()
        };
        let handle = ShardHandle {
            id: self.id,
            state: Arc::clone(&self.state),
            applied: applied_receiver,
            health: Arc::clone(&self.health),
            store: Arc::clone(&self.store),
            started,
        };
        let writer = Writer {
            id: self.id,
            shards: config.shards,
            source,
            shard: self.state,
            store: self.store,
            registry: Arc::clone(registry),
            health: self.health,
            applied,
            started: starting,
            checkpointer: Checkpointer::new(policy, gate.clone(), self.replayed),
            reopen: self.reopen,
            gauges: Gauges::new(self.id),
            rejects_kept: RejectsKept::default(),
            reject_log: Arc::clone(reject_log),
            parking,
            time: Timestamp::default(),
        };
        (handle, writer)
    }
}

fn spawn<S: JobSource + 'static>(writer: Writer<S>) -> std::io::Result<JoinHandle<()>> {
    let id = writer.id;
    std::thread::Builder::new().name(format!("writer-{id}")).spawn(move || {
        let run = std::panic::AssertUnwindSafe(|| writer.run());
        if std::panic::catch_unwind(run).is_err() {
            // The state in memory may be half changed. The one on disk is whole: a restart reads it.
            tracing::error!(shard = %id, "the writer panicked, which is a bug; the process ends rather than show a wrong rank");
            std::process::exit(70);
        }
    })
}

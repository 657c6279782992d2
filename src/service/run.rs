//! Runs the service from its start to its end: opens the shards, starts what works on them, serves HTTP, and
//! ends it all in order.
//!
//! It takes its listener and its shutdown as arguments, so that a test runs the real thing on port 0.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::net::TcpListener;

use crate::cluster::WriteClient;
use crate::cluster::questions::{AskingShards, QuestionService};
use crate::config::{HttpConfig, ServeConfig};
use crate::connections::{ClientTimeouts, ConnectionLimits, SharedConnections};
use crate::credential_files::CredentialFiles;
use crate::http::{AllowedOrigins, Api, Limits, RenderMetrics, Serving, WatcherLimits, serve};
use crate::operations::{Cluster, Operations, RequestLimits, board_repair};
use crate::query::live::{WatchedBoards, keep_live};
use crate::query::summary::keep_summaries;
use crate::query::{LocalShards, Node, ShardClient, ShardHandle};
use crate::queue::nats::Peers;
use crate::queue::publisher::Publisher;
use crate::queue::{Publishers, embedded};
use crate::redis;
use crate::service::board_ends::end_boards;
use crate::service::directory::{Looked, look_at};
use crate::service::floors::Floors;
use crate::service::nats::{Connecting, NatsStreams};
use crate::service::nats_writing::{self, stop_first};
use crate::service::opening::{OpenedShard, close_refused, load_shards};
use crate::service::read_files::read_files;
use crate::service::ticks::publish_ticks;
use crate::service::writers::Common;
use crate::service::{ServiceError, layout, this_node, touched_memory, writers};
use crate::snapshot::{Snapshots, StagedCopies};
use crate::state_lock::Purpose;
use crate::storage::{DataLayout, known_layout, make_private_directory};
use crate::traces;
use crate::writer::{Filling, Parking, Registry, ShardState};

/// How long a start waits for its shards to have caught up before it says that it listens.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(10);
const CATCH_UP_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// How often abandoned snapshots are looked for.
const EXPIRE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a start waits until it has read which boards there are. It takes milliseconds.
const BOARDS_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for the collector: the runtime ends soon, whether or not it was woken.
async fn end_traces(traces: traces::Ending) {
    let _ = tokio::task::spawn_blocking(move || traces.end()).await;
}

/// Runs the service until `shutdown` completes, and drains it then: requests in progress are answered,
/// writers commit what they were given, and each shard is checkpointed. `ready` is called once the service
/// takes requests.
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
    let mut credentials = CredentialFiles::load(&config.http)?;
    let redis_listener = bind_redis(config).await?;
    touched_memory::touch(config.touch_mib)?;
    let mut shutdown = Box::pin(shutdown);
    let Some(layout) = layout::decide(config, &mut shutdown).await? else { return Ok(()) };
    let staged = staged_copies(config)?;
    let connecting = tokio::select! {
        connecting = connect(config, &layout, &listener) => connecting?,
        () = &mut shutdown => return Ok(()),
    };
    let service = connecting.as_ref().and_then(Connecting::service);
    let Some(opened) = load_shards(config, &layout, service, &mut shutdown).await? else { return Ok(()) };
    let registry = boards_of(&opened, config);
    let common = Common::new(config, layout.shards, &registry);
    let this = match &connecting {
        Some(connecting) => connecting.this(),
        None => this_node::describe(config, listener.local_addr()?)?,
    };
    let traces =
        config.traces.as_ref().map(|settings| traces::start(settings, this.name.as_str())).transpose()?;
    let (mut streams, opened) = open_streams(config, &layout, connecting, opened, &registry).await?;
    let peers = streams.as_ref().map(NatsStreams::peers);
    let writing = match &streams {
        Some(streams) => Some(streams.open_writes().await?),
        None => None,
    };
    let Started { shards, publishers, threads } = start_writers(opened, &mut streams, config, &common)?;
    let questions = match &streams {
        Some(streams) => Some(streams.answer_questions(&shards).await?),
        None => None,
    };
    let answering = questions.as_ref().map(|questions| Arc::clone(&questions.service));
    let other_owners = match &questions {
        Some(questions) if !has_all(&layout, &shards) => Some(questions.ask_all(layout.shards).await?),
        _ => None,
    };
    let node = Arc::new(node_of(&layout, shards, other_owners.clone(), answering.as_deref(), peers.as_ref()));
    // Setting the streams up has waited for NATS already; a second wait would bring nothing.
    let are_set_up = streams.as_ref().is_none_or(|streams| streams.are_set_up);
    let (catch_up_timeout, boards_timeout) =
        if are_set_up { (CATCH_UP_TIMEOUT, BOARDS_TIMEOUT) } else { (Duration::ZERO, Duration::ZERO) };
    let boards = if let (Some(streams), Some(staged)) = (streams, staged) {
        Some(streams.run(&node, &registry, &config.data_dir, staged).await?)
    } else {
        board_repair::complete_changes(&node, &publishers, &registry).await;
        tokio::spawn(board_repair::forget_completed_drops(Arc::downgrade(&node), Arc::clone(&registry)));
        None
    };
    if let Some(boards) = &boards {
        // A node that lacks shards would say that there is no such board.
        boards.wait_until_read(boards_timeout).await;
    }
    let snapshots = Arc::new(Snapshots::new(&config.data_dir));
    expire_snapshots(&snapshots);
    let cluster = match (boards, peers, &writing, &questions) {
        (Some(boards), Some(peers), Some(writing), Some(questions)) => {
            let owners = Arc::clone(&questions.owners);
            let writer = WriteClient::new(&writing.0, &writing.1, owners);
            Some(Cluster { boards, peers, writer, other_owners })
        }
        _ => None,
    };
    let all_requests = RequestLimits { requests_in_flight: config.http.max_requests, ..Default::default() };
    let (shards, queues) = (Arc::clone(&node), Arc::clone(&publishers));
    let operations = Arc::new(Operations::new(shards, queues, registry, all_requests, this.clone(), cluster));
    all_started(&node).await;
    run_beside(&operations, &publishers);
    let floors = Floors::start(&node, config.data_dir.clone(), config.nats.is_some());
    let write_service = writing.map(|writing| Arc::new(nats_writing::start(&writing, this, &operations)));
    let shutdown = stop_first(write_service.clone(), shutdown);
    credentials.watch();
    // Requests are served from here on. A shard that is still catching up answers probes and stale reads
    // meanwhile, and a shutdown ends it.
    let shutdown = end_answers(shutdown, answering, Arc::clone(&operations.live));
    let (limits, access) = (limits(&config.http), credentials.access.clone());
    let shared = SharedConnections::start(config.http.threads, connection_limits(&config.http))?;
    let shutdown = shutdown.shared();
    let redis_serving =
        serve_redis(redis_listener, &operations, (&shared, &config.http, &credentials), shutdown.clone());
    let api = Api::new(operations, render_metrics, limits, access, Some(Arc::clone(&snapshots)));
    let serving_http = serving(&config.http, &credentials);
    let http_serving = serve(listener, Arc::new(api), Arc::clone(&shared), serving_http, shutdown);
    let serving = futures_util::future::join(http_serving, redis_serving);
    tokio::pin!(serving);
    tokio::select! {
        _ = &mut serving => {}
        () = all_live(&node, catch_up_timeout) => {
            ready();
            serving.await;
        }
    }
    if let Some(write_service) = write_service {
        // Its requests may share messages that a thread of HTTP connections sends: those threads end later.
        write_service.stop().await;
    }
    snapshots.clear();
    publishers.close();
    join_writers(threads).await?;
    floors.note(&node);
    if let Some(traces) = traces {
        end_traces(traces).await;
    }
    Ok(())
}

async fn bind_redis(config: &ServeConfig) -> Result<Option<redis::Listener>, ServiceError> {
    let Some(address) = &config.redis_listen else { return Ok(None) };
    redis::Listener::bind(address).await.map(Some).map_err(ServiceError::Listen)
}

/// What runs once the writers do.
struct Started {
    shards: Vec<ShardHandle>,
    /// Of all shards, those of other nodes among them.
    publishers: Arc<Publishers>,
    threads: Vec<JoinHandle<()>>,
}

fn start_writers(
    opened: Vec<OpenedShard>,
    streams: &mut Option<NatsStreams>,
    config: &ServeConfig,
    common: &Common<'_>,
) -> std::io::Result<Started> {
    let mut publishers = BTreeMap::new();
    for (shard, publisher) in streams.iter().flat_map(NatsStreams::other_publishers) {
        publishers.insert(shard, Publisher::Stream(Box::new(publisher)));
    }
    let (mut shards, mut threads) = (Vec::with_capacity(opened.len()), Vec::with_capacity(opened.len()));
    for shard in opened {
        let (handle, writer) = if let Some(streams) = streams {
            let (publisher, source) = streams.take(shard.id);
            publishers.insert(shard.id, Publisher::Stream(Box::new(publisher)));
            let parking = Parking::new(config.auto_create, Arc::clone(&streams.wanted));
            writers::start(shard, source, Some(parking), common)?
        } else {
            let (publisher, source) = embedded::channel();
            publishers.insert(shard.id, Publisher::Embedded(publisher));
            writers::start(shard, source, None, common)?
        };
        threads.push(writer);
        shards.push(handle);
    }
    let publishers = Arc::new(Publishers::new(publishers.into_values().collect()));
    Ok(Started { shards, publishers, threads })
}

/// Where copies of other nodes' shards are put together; `None` without NATS. Completes what a crash
/// interrupted.
fn staged_copies(config: &ServeConfig) -> Result<Option<StagedCopies>, ServiceError> {
    // A path that is no directory would be told of as one of its files.
    known_layout(&config.data_dir).map_err(ServiceError::DataDirectory)?;
    let staged = if config.nats.is_some() {
        StagedCopies::open(&config.data_dir).map(Some)
    } else {
        StagedCopies::complete(&config.data_dir).map(|()| None)
    };
    staged.map_err(ServiceError::DataDirectory)
}

/// Begins to connect to NATS, if there is NATS. Before anything in the data directory is changed, the streams
/// are asked which service they are of, and if shards have lost their data, other nodes that own them are
/// looked for.
async fn connect(
    config: &ServeConfig,
    layout: &DataLayout,
    listener: &TcpListener,
) -> Result<Option<Connecting>, ServiceError> {
    let Some(settings) = &config.nats else { return Ok(None) };
    let Looked { marker, lost } = look_at(config, layout)?;
    // The node is known by its directory.
    make_private_directory(&config.data_dir).map_err(ServiceError::DataDirectory)?;
    let this = this_node::describe(config, listener.local_addr()?)?;
    let mut connecting = Connecting::open(settings.clone(), layout, config.auto_create, this).await?;
    // What is in a new directory fits whatever there is.
    if marker.is_some() {
        connecting.ask_service(&config.data_dir).await?;
    }
    connecting.look_for_owners(&lost, &config.data_dir).await?;
    Ok(Some(connecting))
}

/// The streams of the shards, if there is NATS. If they are refused, what was made in the place of lost
/// shards is taken away.
async fn open_streams(
    config: &ServeConfig,
    layout: &DataLayout,
    connecting: Option<Connecting>,
    opened: Vec<OpenedShard>,
    registry: &Registry,
) -> Result<(Option<NatsStreams>, Vec<OpenedShard>), ServiceError> {
    let Some(connecting) = connecting else { return Ok((None, opened)) };
    match NatsStreams::open(connecting, layout, &config.data_dir, &opened, registry).await {
        Ok(streams) => Ok((Some(streams), opened)),
        Err(error) => {
            close_refused(opened, config);
            Err(error)
        }
    }
}

/// The boards that shards have, without those that some of them have dropped.
fn boards_of(opened: &[OpenedShard], config: &ServeConfig) -> Arc<Registry> {
    let keep = i64::try_from(config.job_ids_keep.as_micros()).unwrap_or(i64::MAX);
    let registry = Arc::new(Registry::new(config.auto_create).keeping_job_ids(keep));
    for shard in opened {
        registry.register_boards_of(&shard.state.read(Purpose::Start));
    }
    for shard in opened {
        for (name, incarnation) in shard.state.read(Purpose::Start).dropped().iter() {
            registry.forget(name, incarnation);
        }
    }
    registry
}

/// Waits until all writers have ended.
async fn join_writers(threads: Vec<JoinHandle<()>>) -> std::io::Result<()> {
    let joined =
        tokio::task::spawn_blocking(move || threads.into_iter().try_for_each(JoinHandle::join)).await;
    match joined {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(std::io::Error::other("a writer panicked; the log says why")),
        Err(error) => Err(std::io::Error::other(error)),
    }
}

/// Whether the node has the data of all shards. For a shard whose data are lost, other owners are asked,
/// until it has a copy; the node goes on asking its shards one by one until the next start.
fn has_all(layout: &DataLayout, shards: &[ShardHandle]) -> bool {
    layout.own.is_first(layout.shards)
        && !shards.iter().any(|shard| shard.health.get(|health| health.filling == Filling::Lost))
}

/// The node of these shards, which are those that it owns.
///
/// # Arguments
/// - `answering`: knows whether shards in memory are behind; `None` without NATS
/// - `peers`: know what the servers' clock says; `None` without NATS
fn node_of(
    layout: &DataLayout,
    shards: Vec<ShardHandle>,
    other_owners: Option<Arc<AskingShards>>,
    answering: Option<&QuestionService>,
    peers: Option<&Arc<Peers>>,
) -> Node {
    let clock = peers.map(|peers| Arc::clone(&peers.clock)).unwrap_or_default();
    if has_all(layout, &shards) {
        let node = Node::in_memory(shards).stamped_by(clock);
        return match answering {
            Some(answering) => node.asking_whether_behind(answering.whether_behind()),
            None => node,
        };
    }
    // Shards that are asked one by one say it themselves, and other owners are asked then.
    let all: Arc<dyn ShardClient> = match other_owners {
        Some(asking) => asking,
        None => Arc::new(LocalShards::new(&shards, layout.shards)),
    };
    Node::of_some(shards, all).stamped_by(clock)
}

/// Ends the answers to other nodes with `shutdown`: from then on other owners are asked. Requests of this
/// node's clients are still answered. Clients that watch boards connect again, to another node.
async fn end_answers(
    shutdown: impl Future<Output = ()>,
    answering: Option<Arc<QuestionService>>,
    live: Arc<WatchedBoards>,
) {
    shutdown.await;
    live.end();
    if let Some(answering) = answering {
        answering.end();
    }
}

fn limits(config: &HttpConfig) -> Limits {
    Limits {
        watchers: WatcherLimits { total: config.max_watchers, per_client: config.max_watchers_per_client },
        body: config.body,
        body_stall: config.body / 3,
        ..Limits::default()
    }
}

fn serving(config: &HttpConfig, credentials: &CredentialFiles) -> Serving {
    if config.sends_tokens_in_the_clear() {
        tracing::warn!(
            "requests carry their tokens unencrypted; pass --tls-cert and --tls-key, unless a proxy in front of the service does TLS and nobody can listen between them"
        );
    }
    Serving {
        tls: credentials.tls.clone(),
        loopback_guard: config.local_only,
        origins: AllowedOrigins::new(config.allow_origin.clone()),
        timeouts: timeouts(config),
    }
}

fn timeouts(config: &HttpConfig) -> ClientTimeouts {
    ClientTimeouts { header: config.header, idle: config.idle, write: config.write }
}

/// The limits on the connections of all front ends together.
fn connection_limits(config: &HttpConfig) -> ConnectionLimits {
    ConnectionLimits { total: config.max_connections, per_client: config.max_connections_per_client }
}

/// Serves Redis' protocol until `shutdown` completes, if it is listened for.
fn serve_redis<S: Future<Output = ()>>(
    listener: Option<redis::Listener>,
    operations: &Arc<Operations>,
    (shared, config, credentials): (&Arc<SharedConnections>, &HttpConfig, &CredentialFiles),
    shutdown: S,
) -> impl Future<Output = ()> + use<S> {
    // The log has its address before the service says that it is ready.
    if let Some(address) = listener.as_ref().map(redis::Listener::address) {
        log_address(&address, config);
    }
    let serving = redis::Serving {
        tls: credentials.tls.clone(),
        timeouts: timeouts(config),
        access: credentials.access.clone(),
        connections_max: config.max_connections,
    };
    let (operations, shared) = (Arc::clone(operations), Arc::clone(shared));
    async move {
        if let Some(listener) = listener {
            redis::serve(listener, operations, shared, serving, shutdown).await;
        }
    }
}

fn log_address(address: &redis::ListenAddress, config: &HttpConfig) {
    let is_exposed = matches!(address, redis::ListenAddress::Tcp(address) if !address.ip().is_loopback());
    if is_exposed && config.tokens.is_some() && config.tls.is_none() {
        tracing::warn!(
            "clients of Redis' protocol send their tokens unencrypted; pass --tls-cert and --tls-key, unless \
             nobody can listen between them and the service"
        );
    }
    tracing::info!("listening for Redis' protocol on {address}");
}

/// Removes the copies that were left behind, and from then on those of clients that do not fetch them any
/// more.
fn expire_snapshots(snapshots: &Arc<Snapshots>) {
    snapshots.clear();
    tokio::spawn(expire_abandoned(Arc::downgrade(snapshots)));
}

async fn expire_abandoned(snapshots: Weak<Snapshots>) {
    loop {
        tokio::time::sleep(EXPIRE_INTERVAL).await;
        let Some(snapshots) = snapshots.upgrade() else { return };
        // It logs what it cannot remove.
        let _ = tokio::task::spawn_blocking(move || snapshots.expire()).await;
    }
}

/// Waits until every writer has started, or has logged why it cannot.
async fn all_started(node: &Node) {
    for shard in &node.shards {
        let mut started = shard.started.clone();
        // A writer that ended before it started has logged why, and its shard is not ready: `/readyz` says
        // so.
        let _ = started.wait_for(|started| *started).await;
    }
}

/// Begins what runs beside the requests, for as long as the node does.
fn run_beside(operations: &Arc<Operations>, publishers: &Arc<Publishers>) {
    tokio::spawn(keep_summaries(Arc::downgrade(&operations.summaries)));
    tokio::spawn(keep_live(Arc::downgrade(&operations.live)));
    tokio::spawn(read_files(Arc::downgrade(&operations.node)));
    let registry = Arc::clone(&operations.registry);
    tokio::spawn(publish_ticks(Arc::downgrade(&operations.node), Arc::clone(publishers), registry));
    tokio::spawn(end_boards(Arc::downgrade(operations)));
}

/// Waits until every shard takes writes or is halted, but no longer than `catch_up_timeout`. A shard that is
/// getting a copy of another node's data is not waited for.
async fn all_live(node: &Node, catch_up_timeout: Duration) {
    let deadline = tokio::time::Instant::now() + catch_up_timeout;
    for shard in &node.shards {
        let is_halted = || matches!(shard.health.state(), ShardState::Halted(_));
        while !shard.health.takes_writes()
            && !is_halted()
            && shard.health.get(|health| health.copying.clone()).is_none()
        {
            if tokio::time::Instant::now() >= deadline {
                return;
            }
            tokio::time::sleep(CATCH_UP_CHECK_INTERVAL).await;
        }
    }
    // All shards are live, and are found to be level in a moment.
    while (node.is_stale() || !node.unfilled().is_empty())
        && node.shards.iter().all(|shard| shard.health.is_live())
    {
        if tokio::time::Instant::now() >= deadline {
            return;
        }
        tokio::time::sleep(CATCH_UP_CHECK_INTERVAL).await;
    }
}

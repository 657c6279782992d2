//! A node's NATS: its settings, its connections, and both ends of each shard's queue.
//!
//! Connections for publishing, consuming (one per shard, on its fetch thread) and managing are separate, so
//! that a backlog on one of them does not delay the others. Other users have connections of their own.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::watch;

use crate::metrics::MESSAGE_REQUESTS;
use crate::queue::nats::connect::access::NatsAccess;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::shard_stream::{GapPolicy, Prepared, ShardStream};
use crate::queue::nats::consume::source::StreamSource;
use crate::queue::nats::names::Names;
use crate::queue::nats::peers::known::Peers;
use crate::queue::nats::peers::owners::AppliedByOthers;
use crate::queue::nats::publish::batcher::PublishBatcher;
use crate::queue::nats::publish::pending_replies::PendingReplies;
use crate::queue::nats::publish::stream_publisher::{Inner, StreamPublisher};
use crate::queue::nats::shard::OtherShard;
use crate::queue::nats::streams::boards_config::ServiceFacts;
use crate::queue::this_node::ThisNode;
use crate::storage::ServiceId;
use crate::types::{NodeName, ShardId};
use crate::writer::Health;

/// What an operator sets about NATS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub access: NatsAccess,
    pub prefix: String,
    /// The limit of a stream of jobs that is created. `None`: half of what the server has room for, within
    /// reason.
    pub stream_bytes: Option<i64>,
    /// Replicas of streams that are created.
    pub replicas: usize,
    /// Shards whose stream may, once, not continue what was applied.
    pub accept_gap: Vec<u16>,
    /// Shards whose data are right here although another replica differs.
    pub accept_diverged: Vec<u16>,
    /// How long a stream must have contradicted what was applied before its shard halts.
    pub halt_after: Duration,
    /// How long another node may be silent before it no longer holds the purging of streams back.
    pub forget_after: Duration,
    /// Messages kept in the stream although they are safe here; `None` keeps all.
    pub purge_keeps: Option<u64>,
}

/// Why streams cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SetupError {
    #[error("{0}")]
    Connection(String),
    #[error("{0}")]
    Refused(String),
    #[error("the thread that fetches messages could not be started: {0}")]
    Thread(String),
}

/// What a shard's queue needs to know when the service starts.
pub struct ShardStart {
    pub shard: ShardId,
    pub health: Arc<Health>,
    /// The service of its data, if that is known.
    pub service: Option<ServiceId>,
    /// Its data are to be bound to the stream that there is.
    pub binds: bool,
}

/// A node's NATS.
pub struct JetStream {
    pub(in crate::queue::nats) settings: Settings,
    pub names: Names,
    pub(in crate::queue::nats) facts: ServiceFacts,
    /// The service of the streams, once they were read and if they say it.
    pub(in crate::queue::nats) service: Arc<OnceLock<ServiceId>>,
    pub(in crate::queue::nats) managing: Connection,
    publishing: Connection,
    pub(in crate::queue::nats) prepared: watch::Sender<Prepared>,
    /// Begins the ids of this process's messages.
    pub(in crate::queue::nats) process: String,
    pub(in crate::queue::nats) rejects_fault: Mutex<Option<String>>,
    /// What is known of other nodes.
    pub peers: Arc<Peers>,
}

impl JetStream {
    /// Begins to connect, and does not wait for the connections.
    pub async fn open(settings: Settings, facts: ServiceFacts, this: ThisNode) -> Result<Self, SetupError> {
        let names = Names::new(&settings.prefix);
        let open = |purpose| {
            let access = settings.access.clone();
            async move { Connection::open(&access, purpose).await.map_err(SetupError::Connection) }
        };
        let (managing, publishing) = (open("manage").await?, open("publish").await?);
        let (prepared, _) = watch::channel(Prepared::Waiting("connecting to NATS".to_owned()));
        let process = managing.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned();
        let peers = Arc::new(Peers::new(this, process.clone(), settings.forget_after));
        let service = Arc::default();
        Ok(Self {
            settings,
            names,
            facts,
            service,
            managing,
            publishing,
            prepared,
            process,
            rejects_fault: Mutex::default(),
            peers,
        })
    }

    /// Another connection of this node.
    pub async fn open_connection(&self, purpose: &'static str) -> Result<Connection, SetupError> {
        Connection::open(&self.settings.access, purpose).await.map_err(SetupError::Connection)
    }

    /// The publishing end of the queue of a shard that other nodes own.
    pub fn other_shard(&self, id: ShardId) -> OtherShard {
        // A node has figures of its own shards only.
        let (publisher, _) = self.publisher(id, None, metrics::Histogram::noop());
        OtherShard { id, publisher }
    }

    /// # Arguments
    /// `health`: `None` for a shard of other nodes
    fn publisher(
        &self,
        shard: ShardId,
        health: Option<Arc<Health>>,
        message_requests: metrics::Histogram,
    ) -> (StreamPublisher, watch::Receiver<bool>) {
        let (closing, closed) = watch::channel(false);
        let inner = Inner {
            connection: self.publishing.clone(),
            jobs_subject: self.names.jobs_subject(shard),
            control_subject: self.names.control_subject(shard),
            stream: self.names.jobs_stream(shard),
            is_own: health.is_some(),
            applied_by_others: AppliedByOthers::new(Arc::clone(&self.peers), shard),
            pending_replies: Arc::new(PendingReplies::new(format!("{}-{shard}", self.process))),
            batcher: Arc::new(PublishBatcher::new(self.settings.replicas)),
            health: health.unwrap_or_default(),
            closing,
            message_requests,
        };
        (StreamPublisher { inner: Arc::new(inner) }, closed)
    }

    /// The service of the streams, once they were read and if they say it.
    pub fn service(&self) -> Option<ServiceId> {
        self.service.get().copied()
    }

    /// What subjects begin with.
    pub fn prefix(&self) -> String {
        self.settings.prefix.clone()
    }

    /// Where the stream of a shard ends, as its leader says.
    ///
    /// # Errors
    /// When nobody says it.
    pub async fn stream_end(&self, shard: ShardId) -> Result<u64, String> {
        let name = self.names.jobs_stream(shard);
        let stream = self.managing.stream(&name).await;
        let stream = stream.map_err(|error| self.managing.explain(&error))?;
        Ok(stream.cached_info().state.last_sequence)
    }

    /// Opens a connection of its own for copies, so that they delay nothing else.
    pub async fn open_copies_connection(&self) -> Result<Connection, SetupError> {
        self.open_connection("copy").await
    }

    /// The subject on which a node is asked for copies of a shard.
    pub fn copy_subject(&self, node: &NodeName, shard: ShardId) -> String {
        self.names.copy_subject(node, shard)
    }

    /// The subjects on which this node is asked for copies.
    pub fn own_copy_subjects(&self) -> String {
        self.names.copy_subjects(&self.peers.this.name)
    }

    /// The number of shards, as the streams' metadata have it.
    pub fn shards(&self) -> u16 {
        self.facts.shards
    }

    /// Both ends of a shard's queue, and what they share.
    ///
    /// # Errors
    /// When the fetch thread cannot be started.
    pub fn shard(
        &self,
        start: &ShardStart,
    ) -> Result<(StreamPublisher, StreamSource, Arc<ShardStream>), SetupError> {
        let requests = metrics::histogram!(MESSAGE_REQUESTS, "shard" => start.shard.to_string());
        let (publisher, closed) = self.publisher(start.shard, Some(Arc::clone(&start.health)), requests);
        let pending_replies = Arc::clone(&publisher.inner.pending_replies);
        let shared = Arc::new(ShardStream::new(
            start.shard,
            self.names.clone(),
            self.settings.access.clone(),
            Arc::clone(&start.health),
            pending_replies,
            self.prepared.subscribe(),
            Arc::clone(&self.peers),
            start.service,
            GapPolicy {
                halt_after: self.settings.halt_after,
                accept: self.settings.accept_gap.contains(&start.shard.0) || start.binds,
                binds: start.binds,
            },
        ));
        let source = StreamSource::start(Arc::clone(&shared), closed)
            .map_err(|error| SetupError::Thread(error.to_string()))?;
        Ok((publisher, source, shared))
    }
}

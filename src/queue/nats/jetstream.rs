//! A node's NATS: its settings, its connections, and both ends of each shard's queue.
//!
//! Connections for publishing, consuming (one per shard, on its fetch thread) and managing are separate, so
//! that a backlog on one of them does not delay the others.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;

use crate::queue::nats::connect::access::NatsAccess;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::shard_stream::{GapPolicy, ShardStream};
use crate::queue::nats::consume::source::StreamSource;
use crate::queue::nats::names::Names;
use crate::queue::nats::peers::known::Peers;
use crate::queue::nats::publish::pending_replies::PendingReplies;
use crate::queue::nats::publish::stream_publisher::{Inner, StreamPublisher};
use crate::queue::nats::streams::prepared::Prepared;
use crate::queue::nats::streams::rejects_fault::RejectsFault;
use crate::queue::this_node::ThisNode;
use crate::types::{Sequence, ShardId};
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
    pub applied: Sequence,
    pub health: Arc<Health>,
}

/// A node's NATS.
pub struct JetStream {
    pub(in crate::queue::nats) settings: Settings,
    pub(in crate::queue::nats) names: Names,
    pub(in crate::queue::nats) shards: u16,
    pub(in crate::queue::nats) managing: Connection,
    publishing: Connection,
    pub(in crate::queue::nats) prepared: watch::Sender<Prepared>,
    /// Begins the ids of this process's messages.
    pub(in crate::queue::nats) process: String,
    pub(in crate::queue::nats) rejects_fault: RejectsFault,
    /// What is known of other nodes.
    pub peers: Arc<Peers>,
}

impl JetStream {
    /// Begins to connect, and does not wait for the connections.
    ///
    /// # Errors
    /// When no connection can be opened at all.
    pub async fn open(settings: Settings, shards: u16, this: ThisNode) -> Result<Self, SetupError> {
        let names = Names::new(&settings.prefix);
        let open = |purpose| {
            let (access, inbox) = (settings.access.clone(), names.inbox());
            async move { Connection::open(&access, &inbox, purpose).await.map_err(SetupError::Connection) }
        };
        let (managing, publishing) = (open("manage").await?, open("publish").await?);
        let (prepared, _) = watch::channel(Prepared::Waiting("connecting to NATS".to_owned()));
        let process = managing.client.new_inbox().rsplit('.').next().unwrap_or_default().to_owned();
        let peers = Arc::new(Peers::new(this, settings.forget_after));
        let rejects_fault = RejectsFault::default();
        Ok(Self { settings, names, shards, managing, publishing, prepared, process, rejects_fault, peers })
    }

    /// Both ends of a shard's queue, and what they share.
    ///
    /// # Errors
    /// When the fetch thread cannot be started.
    pub fn shard(
        &self,
        start: &ShardStart,
    ) -> Result<(StreamPublisher, StreamSource, Arc<ShardStream>), SetupError> {
        let pending_replies = Arc::new(PendingReplies::new(format!("{}-{}", self.process, start.shard)));
        let (closing, closed) = watch::channel(false);
        let inner = Inner {
            connection: self.publishing.clone(),
            jobs_subject: self.names.jobs_subject(start.shard),
            control_subject: self.names.control_subject(start.shard),
            stream: self.names.jobs_stream(start.shard),
            pending_replies: Arc::clone(&pending_replies),
            batcher: Arc::default(),
            health: Arc::clone(&start.health),
            closing,
        };
        let publisher = StreamPublisher { inner: Arc::new(inner) };
        let shared = Arc::new(ShardStream::new(
            start.shard,
            self.names.clone(),
            self.settings.access.clone(),
            Arc::clone(&start.health),
            pending_replies,
            self.prepared.subscribe(),
            GapPolicy {
                halt_after: self.settings.halt_after,
                accept: self.settings.accept_gap.contains(&start.shard.0),
            },
        ));
        let source = StreamSource::start(Arc::clone(&shared), closed)
            .map_err(|error| SetupError::Thread(error.to_string()))?;
        Ok((publisher, source, shared))
    }
}

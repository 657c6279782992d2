//! This node's view of the boards' stream: the state that the other files of this folder work on.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::watch;

use crate::queue::error::NotPublished;
use crate::queue::nats::boards::pending::Pending;
use crate::queue::nats::boards::tombstones::Tombstones;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::names::Names;
use crate::queue::nats::shard::{NatsShard, OtherShard};
use crate::queue::nats::streams::boards_config::ServiceFacts;
use crate::writer::{DefineRefused, Registry, WantedBoards};

/// Why a definition, drop or clear was not made, or not everywhere in time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoardRefused {
    #[error(transparent)]
    Refused(#[from] DefineRefused),
    #[error("there is no board of this name")]
    Unknown,
    #[error("the boards' stream cannot be used: {0}")]
    Unavailable(String),
    #[error(
        "the change is stored in the boards' stream, but has not reached every shard yet; no further request is needed"
    )]
    Late,
    #[error(transparent)]
    NotPublished(#[from] NotPublished),
}

/// A node's view of the boards' stream, by which it decides what boards there are.
pub struct BoardsStream {
    pub(super) managing: Connection,
    pub(super) names: Names,
    /// Of the stream, if this node creates it.
    pub(super) replicas: usize,
    pub(super) facts: ServiceFacts,
    pub(super) registry: Arc<Registry>,
    pub(super) wanted: Arc<WantedBoards>,
    /// The shards that this node owns.
    pub(super) shards: Vec<NatsShard>,
    /// The shards that it does not own.
    pub(super) others: Vec<OtherShard>,
    pub(super) pending: Mutex<Pending>,
    pub(super) tombstones: Mutex<Tombstones>,
    /// Whether the stream is followed and was reconciled with the shards. Nothing is decided before.
    pub(super) reconciled: watch::Sender<bool>,
    /// The highest sequence that was read since the stream is followed.
    pub(super) reached: AtomicU64,
    /// All records up to this sequence were read.
    pub(super) read_through: AtomicU64,
}

impl BoardsStream {
    #[must_use]
    pub fn new(
        nats: &JetStream,
        registry: Arc<Registry>,
        wanted: Arc<WantedBoards>,
        shards: Vec<NatsShard>,
        others: Vec<OtherShard>,
    ) -> Arc<Self> {
        Arc::new(Self {
            managing: nats.managing.clone(),
            names: nats.names.clone(),
            replicas: nats.settings.replicas,
            registry,
            wanted,
            shards,
            others,
            facts: nats.facts,
            pending: Mutex::default(),
            tombstones: Mutex::default(),
            reconciled: watch::channel(false).0,
            reached: AtomicU64::new(0),
            read_through: AtomicU64::new(0),
        })
    }

    pub(super) fn unavailable(&self, error: &dyn std::fmt::Display) -> BoardRefused {
        BoardRefused::Unavailable(self.managing.explain(error))
    }
}

//! This node's view of the boards' stream: the state that the other files of this folder work on.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::{Notify, watch};

use crate::queue::error::NotPublished;
use crate::queue::nats::boards::following::Following;
use crate::queue::nats::boards::pending::Pending;
use crate::queue::nats::boards::tombstones::Tombstones;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::names::Names;
use crate::queue::nats::shard::{NatsShard, OtherShard};
use crate::queue::nats::streams::boards_config::ServiceFacts;
use crate::storage::ServiceId;
use crate::types::{BoardName, ShardId};
use crate::writer::{DefineRefused, Registry, WantedBoards};

/// Why a definition, drop or clear was not made, or not everywhere in time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoardRefused {
    #[error(transparent)]
    Refused(#[from] DefineRefused),
    #[error(
        "the token may create boards until there are {most} of those that it gives access to: there are \
         {existing}; drop some boards, or raise the token's max_boards"
    )]
    OverLimit { most: usize, existing: usize },
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
    /// The service that the stream said it is of, when it was set up.
    pub(super) service: Arc<OnceLock<ServiceId>>,
    pub(super) registry: Arc<Registry>,
    pub(super) wanted: Arc<WantedBoards>,
    /// The shards that this node owns.
    pub(super) shards: Vec<NatsShard>,
    /// The shards that it does not own.
    pub(super) others: Vec<OtherShard>,
    pub(super) pending: Mutex<Pending>,
    pub(super) tombstones: Mutex<Tombstones>,
    /// Whether all records were read once since the start, so that it is known which boards there are.
    pub(super) was_read: watch::Sender<bool>,
    /// How far the stream is followed, for writes.
    pub(super) following: watch::Sender<Following>,
    /// Whether the stream is followed and was compared with this node's shards.
    pub(super) compared: watch::Sender<bool>,
    /// Whether it was reconciled with all shards, those of other nodes among them. Nothing is decided before.
    pub(super) reconciled: watch::Sender<bool>,
    /// The shards whose data are not of their streams, when they were last compared. While there is one, this
    /// node changes nothing in the boards' stream.
    pub(super) foreign: Mutex<Vec<ForeignShard>>,
    /// Boards whose last message is not of a node, with its sequence: their records are stored again.
    pub(super) overwritten: Mutex<BTreeMap<BoardName, u64>>,
    pub(super) confirmations: watch::Sender<Confirmations>,
    /// Another node has stored an inquiry.
    pub(super) inquired: Notify,
    /// This process, for other nodes to see.
    pub(super) process: String,
    /// The highest sequence that was read, and taken notice of, since the stream is followed.
    pub(super) reached: watch::Sender<u64>,
    /// Held while a board is counted and made, so that this node is not in its own way. A tokio mutex,
    /// because it is held while the server answers.
    pub(super) counting: tokio::sync::Mutex<()>,
    /// All records up to this sequence were read.
    pub(super) read_through: AtomicU64,
}

impl BoardsStream {
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
            service: Arc::clone(&nats.service),
            pending: Mutex::default(),
            tombstones: Mutex::default(),
            was_read: watch::channel(false).0,
            following: watch::channel(Following::NotSince(Instant::now())).0,
            compared: watch::channel(false).0,
            reconciled: watch::channel(false).0,
            foreign: Mutex::default(),
            overwritten: Mutex::default(),
            confirmations: watch::channel(Confirmations::default()).0,
            inquired: Notify::new(),
            process: nats.process.clone(),
            reached: watch::channel(0).0,
            counting: tokio::sync::Mutex::new(()),
            read_through: AtomicU64::new(0),
        })
    }

    /// Whether it is known which boards there are: all records were read once since the start.
    pub fn was_read(&self) -> bool {
        *self.was_read.borrow()
    }

    /// Waits until it is known which boards there are, but not for long.
    pub async fn wait_until_read(&self, timeout: Duration) {
        let mut was_read = self.was_read.subscribe();
        // Otherwise it goes on being read while the service runs.
        let _ = tokio::time::timeout(timeout, was_read.wait_for(|was_read| *was_read)).await;
    }

    pub(super) fn unavailable(&self, error: &dyn std::fmt::Display) -> BoardRefused {
        BoardRefused::Unavailable(self.managing.explain(error))
    }
}

/// A shard whose data are not of its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignShard {
    pub shard: ShardId,
    pub why: String,
}

/// What was read of inquiries and confirmations since the stream is followed.
#[derive(Debug, Default)]
pub struct Confirmations {
    /// The last inquiry of any node.
    pub(super) inquired: u64,
    /// The last inquiry of this node.
    pub(super) own: u64,
    pub(super) own_at: Option<Instant>,
    /// For each shard: its owners have confirmed an inquiry of this sequence.
    pub(super) confirmed: BTreeMap<ShardId, u64>,
}

impl Confirmations {
    /// Up to where every decision is in force on a shard, as far as its owners have said.
    pub fn of(&self, shard: ShardId) -> u64 {
        self.confirmed.get(&shard).copied().unwrap_or(0)
    }
}

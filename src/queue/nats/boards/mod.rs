//! What each board is, decided once for all shards and nodes.
//!
//! The boards' stream has one subject per board, and keeps its last message: the definition in force, or that the board
//! was dropped. A message is stored only if it follows the one that its writer has read, so of two definitions at the
//! same moment the server takes one, and the other's writer finds it and agrees or is refused.
//!
//! A message, or record, has a number: its sequence, or a higher one that it states. Whoever stores one states the number
//! after the highest that it ever met, so that along a board's records the numbers rise, also where the stream was lost or an
//! old copy brought back between two. A life of a board has the number of its first record.
//!
//! What is decided is brought to the shards through their own streams, where it takes its place among the jobs; from then
//! on it holds there. Whoever brings it may bring it twice, or late: a shard ignores what it knows to be over. So every
//! node may bring, to the shards that it has, whatever they lack, and what a crash cut short is completed by the next
//! look.
//!
//! Shards remember a limited number of drops (`state::Dropped`), and take a definition with a number as low as one that they have
//! forgotten for one that comes too late. If the board is alive, its record is stored again behind itself, for a later number.
//!
//! - `record`: what a message of the stream says
//! - `decide`: definitions and drops, one after the other or many at once
//! - `follow`: what other nodes decided
//! - `reconcile`: what the shards hold and the stream does not know, because it was lost or replaced
//! - `deliver`: from decisions to shards, and what jobs wait for
//! - `pending`: what is on its way there
//! - `tombstones`: records of boards that are gone, of which the stream keeps a limited number

mod decide;
mod deliver;
mod follow;
mod pending;
mod reconcile;
mod record;
mod tombstones;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::watch;

use crate::queue::error::NotPublished;
use crate::queue::nats::boards::pending::Pending;
use crate::queue::nats::boards::tombstones::Tombstones;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::source::Shared;
use crate::queue::nats::names::Names;
use crate::queue::nats::publish::publisher::StreamPublisher;
use crate::queue::nats::streams::set_up::JetStream;
use crate::state_lock::StateLock;
use crate::types::{Sequence, ShardId};
use crate::writer::{DefineRefused, Health, Registry, WantedBoards};

/// Why a definition or drop did not come about.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoardRefused {
    #[error(transparent)]
    Refused(#[from] DefineRefused),
    #[error("there is no board of this name")]
    Unknown,
    #[error("the boards' stream cannot be used: {0}")]
    Unavailable(String),
    #[error("it is decided, and has not arrived at every shard yet; it will")]
    Late,
    #[error(transparent)]
    NotPublished(#[from] NotPublished),
}

/// A shard that boards are brought to.
pub struct BoardsOfShard {
    pub id: ShardId,
    pub state: Arc<StateLock>,
    pub health: Arc<Health>,
    pub applied: watch::Receiver<Sequence>,
    pub publisher: StreamPublisher,
    pub shared: Arc<Shared>,
}

/// The boards of a node whose definitions are decided in a stream.
pub struct Boards {
    managing: Connection,
    names: Names,
    /// Of the boards' stream, where this node makes it.
    replicas: usize,
    registry: Arc<Registry>,
    wanted: Arc<WantedBoards>,
    shards: Vec<BoardsOfShard>,
    pending: Mutex<Pending>,
    tombstones: Mutex<Tombstones>,
    /// Whether the stream is followed and was compared with the shards since. Nothing is decided before.
    compared: watch::Sender<bool>,
    /// The highest sequence that was heard since the stream is followed.
    reached: AtomicU64,
    /// Everything that the stream says up to this sequence was heard.
    heard_through: AtomicU64,
}

impl JetStream {
    #[must_use]
    pub fn boards(
        &self,
        registry: Arc<Registry>,
        wanted: Arc<WantedBoards>,
        shards: Vec<BoardsOfShard>,
    ) -> Arc<Boards> {
        Arc::new(Boards {
            managing: self.managing.clone(),
            names: self.names.clone(),
            replicas: self.settings.replicas,
            registry,
            wanted,
            shards,
            pending: Mutex::default(),
            tombstones: Mutex::default(),
            compared: watch::channel(false).0,
            reached: AtomicU64::new(0),
            heard_through: AtomicU64::new(0),
        })
    }
}

impl Boards {
    fn unavailable(&self, error: &dyn std::fmt::Display) -> BoardRefused {
        BoardRefused::Unavailable(self.managing.explain(error))
    }
}

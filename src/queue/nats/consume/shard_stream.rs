//! A shard's stream as this node knows it: what its source, its fetcher, its publisher and retention share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OnceCell, watch};

use crate::queue::nats::connect::access::NatsAccess;
use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::copy_need::ShardCopies;
use crate::queue::nats::consume::gap_permission::GapPermission;
use crate::queue::nats::consume::sessions::Sessions;
use crate::queue::nats::names::Names;
use crate::queue::nats::peers::known::Peers;
use crate::queue::nats::publish::pending_replies::PendingReplies;
use crate::queue::nats::retention::growth::Growth;
use crate::storage::ServiceId;
use crate::types::ShardId;
use crate::writer::{Health, ShardState};

/// What a shard does when its stream does not continue what was applied.
#[derive(Debug, Clone, Copy)]
pub struct GapPolicy {
    /// How long the leader of the stream must have reported the gap before the shard halts.
    pub halt_after: Duration,
    /// The operator accepts one gap (`--accept-gap`), or has restored data that are to be bound to a stream.
    pub accept: bool,
    /// It is the latter.
    pub binds: bool,
}

/// What the parts of a shard's queue share: its source, fetcher and publisher, and the tasks that look after
/// its stream.
pub struct ShardStream {
    pub shard: ShardId,
    pub names: Names,
    pub access: NatsAccess,
    pub health: Arc<Health>,
    pub pending_replies: Arc<PendingReplies>,
    pub prepared: watch::Receiver<Prepared>,
    /// The other owners, as far as they are known.
    pub peers: Arc<Peers>,
    /// The service of the shard's data, if that is known.
    service: Mutex<Option<ServiceId>>,
    pub gap_policy: GapPolicy,
    /// The operator accepts, once, that the stream does not continue what was applied, or one command that is
    /// unknown (`--accept-gap`).
    pub accept_gap: GapPermission,
    state: Mutex<ShardState>,
    stream: Mutex<String>,
    /// The identity of the stream that the shard's data are of, whether it is the one that there is or not.
    filled_from: Mutex<String>,
    connection: OnceCell<Connection>,
    /// Tells retention how much the stream has grown.
    pub growth: Growth,
    /// Tells retention whether the stream continues what was applied.
    pub sessions: Sessions,
    /// Copies of other owners' data, and of this one's for others.
    pub copies: ShardCopies,
    /// How much greater a message's sequence is here than in the stream; see `Origin`. `None` until a session
    /// has read the stream's state.
    sequence_offset: Mutex<Option<u64>>,
}

impl ShardStream {
    #[expect(clippy::too_many_arguments, reason = "they are what its parts share, each of its own kind")]
    pub fn new(
        shard: ShardId,
        names: Names,
        access: NatsAccess,
        health: Arc<Health>,
        pending_replies: Arc<PendingReplies>,
        prepared: watch::Receiver<Prepared>,
        peers: Arc<Peers>,
        service: Option<ServiceId>,
        gap_policy: GapPolicy,
    ) -> Self {
        let state = Mutex::new(ShardState::CatchingUp("connecting to NATS".to_owned()));
        let (stream, filled_from, connection) = (Mutex::default(), Mutex::default(), OnceCell::new());
        let accept_gap = GapPermission::new(gap_policy.accept);
        Self {
            shard,
            names,
            access,
            health,
            pending_replies,
            prepared,
            peers,
            service: Mutex::new(service),
            gap_policy,
            accept_gap,
            state,
            stream,
            filled_from,
            connection,
            growth: Growth::default(),
            sessions: Sessions::default(),
            copies: ShardCopies::default(),
            sequence_offset: Mutex::default(),
        }
    }

    /// A session has read the stream's state, and counts its sequences with this offset.
    pub fn set_sequence_offset(&self, offset: u64) {
        *self.sequence_offset.lock() = Some(offset);
    }

    pub fn sequence_offset(&self) -> Option<u64> {
        *self.sequence_offset.lock()
    }

    pub fn set_service(&self, service: Option<ServiceId>) {
        *self.service.lock() = service;
    }

    pub fn service(&self) -> Option<ServiceId> {
        *self.service.lock()
    }

    pub fn state(&self) -> ShardState {
        self.state.lock().clone()
    }

    pub fn set_state(&self, state: ShardState) {
        let is_live = state == ShardState::Live;
        let was_live = std::mem::replace(&mut *self.state.lock(), state) == ShardState::Live;
        if is_live != was_live {
            self.peers.note_live(self.shard, is_live.then(|| self.stream()));
        }
    }

    /// Notes which stream a session has found to continue what was applied.
    pub fn set_stream(&self, identity: &str) {
        identity.clone_into(&mut self.stream.lock());
        if self.state() == ShardState::Live {
            self.peers.note_live(self.shard, Some(identity.to_owned()));
        }
    }

    pub fn set_filled_from(&self, identity: &str) {
        identity.clone_into(&mut self.filled_from.lock());
    }

    pub fn filled_from(&self) -> String {
        self.filled_from.lock().clone()
    }

    pub fn stream(&self) -> String {
        self.stream.lock().clone()
    }

    /// The connection that brings messages. The first call opens it, on the caller's runtime: the fetch
    /// thread's.
    pub async fn connection(&self) -> Result<&Connection, String> {
        self.connection.get_or_try_init(|| Connection::open(&self.access, "consume")).await
    }
}

/// Whether the streams are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// Not yet, and why.
    Waiting(String),
    Ready,
    /// A stream is configured otherwise than it must be; the text says what to do.
    Refused(String),
}

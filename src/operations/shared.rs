//! What all operations share: the shards, their queues, the boards, and what reaches other nodes.

use std::sync::Arc;

use crate::cluster::WriteClient;
use crate::cluster::questions::AskingShards;
use crate::operations::admission::{Admission, RequestLimits};
use crate::operations::failure::Failure;
use crate::operations::offload::Offload;
use crate::operations::write_options::Wait;
use crate::query::live::{NotLive, WatchedBoards};
use crate::query::summary::Summaries;
use crate::query::{LocalShards, NoBoard, Node, ShardClient};
use crate::queue::nats::{BoardsStream, KnownNode, Peers};
use crate::queue::{Publishers, ThisNode};
use crate::types::{ShardId, Timestamp};
use crate::writer::Registry;

/// What all operations share.
pub struct Operations {
    pub node: Arc<Node>,
    pub(crate) publishers: Arc<Publishers>,
    pub registry: Arc<Registry>,
    /// What approximate ranks are made from.
    pub summaries: Arc<Summaries>,
    /// Boards that clients watch.
    pub live: Arc<WatchedBoards>,
    /// How this node is known to others.
    pub this_node: ThisNode,
    pub admission: Arc<Admission>,
    pub offload: Offload,
    /// Held while a board is defined, cleared or dropped, until every shard has it: two changes never
    /// overtake each other on their way to the shards. A tokio mutex, because it is held while shards commit.
    pub board_changes: Arc<tokio::sync::Mutex<()>>,
    /// `None` without NATS.
    pub(super) cluster: Option<Cluster>,
}

/// What a node has with NATS.
pub struct Cluster {
    /// Where boards are decided.
    pub boards: Arc<BoardsStream>,
    pub peers: Arc<Peers>,
    /// Writes to shards that this node does not own, where the client waits for the outcome.
    pub writer: WriteClient,
    /// Asks the owners of other nodes' shards; `None` if there are no such shards.
    pub other_owners: Option<Arc<AskingShards>>,
}

impl Operations {
    /// Work that takes long is offloaded to the runtime that this is called in.
    ///
    /// # Arguments
    /// `cluster`: `None` without NATS
    pub fn new(
        node: Arc<Node>,
        publishers: Arc<Publishers>,
        registry: Arc<Registry>,
        limits: RequestLimits,
        this_node: ThisNode,
        cluster: Option<Cluster>,
    ) -> Self {
        let shards = node.remote.clone().unwrap_or_else(|| {
            let in_memory: Arc<dyn ShardClient> = Arc::<LocalShards>::clone(&node.one_by_one);
            in_memory
        });
        let live = WatchedBoards::new(Arc::clone(&node), Arc::clone(&registry), Arc::clone(&shards));
        Self {
            node,
            publishers,
            registry,
            summaries: Arc::new(Summaries::new(shards)),
            live: Arc::new(live),
            this_node,
            admission: Admission::new(limits),
            offload: Offload::new(),
            board_changes: Arc::default(),
            cluster,
        }
    }

    /// Whether a queue stores a write before it is applied, so that a write may be answered earlier, and
    /// boards are decided on by all nodes together.
    pub fn has_streams(&self) -> bool {
        self.cluster.is_some()
    }

    /// How long a write waits if its client does not say.
    pub fn default_wait(&self) -> Wait {
        if self.has_streams() { Wait::UntilStored } else { Wait::UntilApplied }
    }

    /// What is known of the other nodes.
    pub fn other_nodes(&self) -> Vec<KnownNode> {
        self.cluster.as_ref().map(|cluster| cluster.peers.all()).unwrap_or_default()
    }

    /// The shards that no node owns which runs, this one among them, so that whole boards cannot be read.
    pub fn without_owner(&self) -> Vec<ShardId> {
        let of = |cluster: &Cluster| cluster.peers.without_owner(self.node.not_owned());
        self.cluster.as_ref().map(of).unwrap_or_default()
    }

    /// What is wrong with this node as others see it.
    pub fn own_problem(&self) -> Option<String> {
        self.cluster.as_ref()?.peers.own_problem()
    }

    /// The time that decides which instances of a board there are: what messages would be stamped with, but
    /// no earlier than the time of a shard in memory. A read over shards in memory holds them, and looks at
    /// their times itself.
    pub fn now(&self) -> Timestamp {
        if self.node.remote.is_none() { self.node.clock.now() } else { self.node.now() }
    }

    /// Why there is nothing to read. A node that lacks shards knows boards by their stream alone, and has not
    /// read that yet if NATS was away since the start.
    pub fn no_board(&self, why: NoBoard) -> Failure {
        match &self.cluster {
            Some(cluster)
                if matches!(why, NoBoard::Unknown | NoBoard::UnknownColumn(_))
                    && self.node.remote.is_some()
                    && !cluster.boards.was_read() =>
            {
                Failure::BoardsUnread
            }
            _ => Failure::NoBoard(why),
        }
    }

    /// The same of a board that is watched.
    pub fn not_live(&self, why: NotLive) -> Failure {
        match why {
            NotLive::NoBoard(why) => self.no_board(*why),
            NotLive::Read(why) => why.into(),
            NotLive::NotYetApplied => Failure::NotYetApplied,
            NotLive::NotInTime => Failure::Overloaded,
        }
    }
}

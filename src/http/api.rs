//! What all handlers share: the shards, the queues, the boards, the tokens, the limits.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::access::ActiveTokens;
use crate::cluster::questions::AskingShards;
use crate::http::guard::admission::Admission;
use crate::http::guard::limits::Limits;
use crate::http::guard::refusal_log::RefusalLog;
use crate::http::guard::watchers::Watchers;
use crate::http::offload::Offload;
use crate::http::render::problem::Problem;
use crate::http::resources::scrapes::{RenderMetrics, Scrapes};
use crate::query::live::WatchedBoards;
use crate::query::summary::Summaries;
use crate::query::{LocalShards, NoBoard, Node, ShardClient};
use crate::queue::nats::{BoardsStream, Peers};
use crate::queue::{Publishers, RemoteWriter, ThisNode};
use crate::snapshot::Snapshots;
use crate::types::Timestamp;
use crate::writer::Registry;

/// What all handlers share.
pub struct Api {
    pub node: Arc<Node>,
    pub publishers: Arc<Publishers>,
    pub registry: Arc<Registry>,
    /// What approximate ranks are made from.
    pub summaries: Arc<Summaries>,
    /// Boards that clients watch.
    pub live: Arc<WatchedBoards>,
    pub(super) scrapes: Scrapes,
    pub limits: Limits,
    /// The tokens that requests need; `None` if everybody may do everything.
    pub access: Option<Arc<ActiveTokens>>,
    /// Where boards are decided; `None` if the registry alone decides.
    pub boards_stream: Option<Arc<BoardsStream>>,
    /// How this node is known to others.
    pub this_node: ThisNode,
    /// What is known of other nodes; `None` without NATS.
    pub peers: Option<Arc<Peers>>,
    /// Writes to shards that this node does not own, where the client waits for the outcome; `None` if
    /// nothing carries them.
    pub remote_writer: Option<Arc<dyn RemoteWriter>>,
    /// Asks the owners of other nodes' shards; `None` if there are no such shards, or no NATS.
    pub other_owners: Option<Arc<AskingShards>>,
    /// The copies that clients fetch; `None` if the node's data cannot be copied.
    pub snapshots: Option<Arc<Snapshots>>,
    /// Held while a board is defined, cleared or dropped, until every shard has it: two changes never
    /// overtake each other on their way to the shards. A tokio mutex, because it is held while shards commit.
    pub(super) board_changes: tokio::sync::Mutex<()>,
    pub(super) admission: Arc<Admission>,
    pub(super) watchers: Arc<Watchers>,
    pub(super) offload: Offload,
    pub(super) refusal_log: RefusalLog,
    /// For each shard, whether it lagged too much to be ready when it was last asked.
    pub(super) lagging: Box<[AtomicBool]>,
}

impl Api {
    /// Work that takes long is offloaded to the runtime that this is called in.
    pub fn new(
        node: Arc<Node>,
        publishers: Arc<Publishers>,
        registry: Arc<Registry>,
        render_metrics: RenderMetrics,
        limits: Limits,
        access: Option<Arc<ActiveTokens>>,
        boards_stream: Option<Arc<BoardsStream>>,
    ) -> Self {
        let shards = node.remote.clone().unwrap_or_else(|| {
            let in_memory: Arc<dyn ShardClient> = Arc::<LocalShards>::clone(&node.one_by_one);
            in_memory
        });
        let live = WatchedBoards::new(Arc::clone(&node), Arc::clone(&registry), Arc::clone(&shards));
        let lagging = node.shards.iter().map(|_| AtomicBool::new(false)).collect();
        Self {
            node,
            publishers,
            lagging,
            registry,
            summaries: Arc::new(Summaries::new(shards)),
            live: Arc::new(live),
            scrapes: Scrapes::new(render_metrics),
            limits,
            access,
            boards_stream,
            this_node: ThisNode::unnamed(),
            peers: None,
            remote_writer: None,
            other_owners: None,
            snapshots: None,
            board_changes: tokio::sync::Mutex::new(()),
            admission: Admission::new(limits),
            watchers: Watchers::new(limits.watchers),
            offload: Offload::new(),
            refusal_log: RefusalLog::new(),
        }
    }

    /// The answer where the registry has no board of the name. A node that lacks shards knows boards by their
    /// stream alone, and has not read that yet if NATS was away since the start.
    pub fn unknown_board(&self) -> Problem {
        match &self.boards_stream {
            Some(boards) if self.node.remote.is_some() && !boards.was_read() => Problem::shard_unavailable(
                "this node has not read yet which boards there are; try again in a moment".to_owned(),
            ),
            _ => Problem::unknown_board(),
        }
    }

    /// The time that decides which instances of a board there are: what the clock says, but no earlier than
    /// the time of a shard in memory. A read over shards in memory holds them, and looks at their times
    /// itself.
    pub fn now(&self) -> Timestamp {
        let clock = Timestamp::from_micros(jiff::Timestamp::now().as_microsecond()).unwrap_or_default();
        if self.node.remote.is_none() {
            return clock;
        }
        clock.max(self.node.time())
    }

    /// The answer where there is nothing to read.
    pub fn no_board(&self, why: NoBoard) -> Problem {
        match why {
            NoBoard::Unknown => self.unknown_board(),
            NoBoard::Window(why) => Problem::unknown_window(&why),
            NoBoard::Movement(why) => Problem::bad_parameter(why.to_string()),
        }
    }

    /// With what status says of this node and of others.
    pub fn known_as(self, this_node: ThisNode, peers: Option<Arc<Peers>>) -> Self {
        Self { this_node, peers, ..self }
    }

    /// The same with a way to have jobs applied by other nodes.
    pub fn with_remote_writer(self, remote_writer: Arc<dyn RemoteWriter>) -> Self {
        Self { remote_writer: Some(remote_writer), ..self }
    }

    /// The same with what asks the owners of other nodes' shards.
    pub fn with_other_owners(self, other_owners: Option<Arc<AskingShards>>) -> Self {
        Self { other_owners, ..self }
    }

    /// The same with copies for clients to fetch.
    pub fn with_snapshots(self, snapshots: Arc<Snapshots>) -> Self {
        Self { snapshots: Some(snapshots), ..self }
    }
}

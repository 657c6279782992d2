//! Reads as values: what is asked, of one board or of all, apart from where the shards are.
//!
//! A read over shards in memory holds their locks while it is worked out, and does not wait. A read over
//! remote shards goes on while replies are on their way. Metadata of shards in memory is read afterwards
//! (`metadata`).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::board::Definition;
use crate::query::answer::Listed;
use crate::query::answering_shard::NotAnswered;
use crate::query::board_view::{BoardView, run_in_memory};
use crate::query::entries::{ConsistentAnswer, VisitEntries};
use crate::query::instance::{InstanceAsked, NoMovement, UnknownWindow};
use crate::query::node::{Ahead, Node};
use crate::query::read_shards::ReadShards;
use crate::query::remote_shards::{ReadError, ReadOptions, RemoteShards, ShardClient, ShardUnavailable};
use crate::types::{AsOf, BoardName, Sequence, ShardId, Timestamp};
use crate::window::Instance;
use crate::writer::Registry;

/// How often a read is repeated because a board is over on some shard and the registry still has it, and the
/// pause before. The registry learns of a drop from the boards' stream, mostly before the shards do.
const REGISTRY_ATTEMPTS: u32 = 40;
const REGISTRY_PAUSE: Duration = Duration::from_millis(25);
/// A batch is on disk, and begun with, shortly before readers see it: mostly a fraction of a millisecond.
const PAUSE: Duration = Duration::from_micros(50);
/// Pauses after which a thread stops waiting for that.
const PAUSES_MAX: u32 = 400;
/// The most look-ups, over all shards, that are made while all of them are locked: they take a millisecond.
const LOOKUPS_UNDER_ALL_LOCKS: usize = 1_024;

/// A read of all shards.
pub trait ShardsRead: Send + Sync {
    type Answer: Send;

    /// Whether the answer is about boards as they were once, so that one that is over counts as empty.
    /// Otherwise, the read is repeated if it meets a board that is over on some shard.
    const IS_OF_THE_PAST: bool = false;

    /// Whether it reads the board of this name.
    fn is_about(&self, _board: &BoardName) -> bool {
        true
    }

    /// About how many entries, or places of scores, are looked up in the trees of each shard.
    fn lookups(&self) -> usize {
        1
    }

    /// The same, where what a shard of the node holds tells it better.
    fn lookups_on(&self, _node: &Node) -> usize {
        self.lookups()
    }

    /// # Errors
    /// When some shard does not reply, or what is asked for kept changing.
    fn read<'r>(
        &'r self,
        shards: ReadShards<'r>,
        registry: &'r Registry,
    ) -> impl Future<Output = Result<Self::Answer, ReadError>> + Send + 'r;
}

/// A read of one board.
pub trait BoardRead: Send + Sync {
    type Answer: Send;

    /// Whether the answer shows the board's total. If it does not, shards that the read has not asked are not
    /// asked for it.
    fn shows_total(_answer: &Self::Answer) -> bool {
        true
    }

    /// Whether an instance of a board has what is asked for, at this time.
    fn check(&self, _: &Definition, _: Instance, _now: Timestamp) -> Result<(), NoBoard> {
        Ok(())
    }

    /// As [`ShardsRead::lookups`].
    fn lookups(&self) -> usize {
        1
    }

    /// # Errors
    /// When some shard does not reply, or what is asked for kept changing.
    fn read<'r>(
        &'r self,
        board: &'r BoardView<'r>,
    ) -> impl Future<Output = Result<Self::Answer, ReadError>> + Send + 'r;
}

/// What a read found, and what it was exact at.
#[derive(Debug, Clone)]
pub struct Answer<A> {
    pub as_of: AsOf,
    pub definition: Arc<Definition>,
    /// Which of the board's instances was read.
    pub instance: Instance,
    /// All entries of the instance; 0 if the answer does not show it.
    pub total: u64,
    /// Other boards that its entries show their members of, and by which instance: `None` if there is none
    /// such.
    pub columns: Vec<(BoardName, Option<Instance>)>,
    pub body: A,
}

impl<A> Answer<A> {
    /// What was found, apart from what it was exact at.
    pub fn split(self) -> (Answer<()>, A) {
        let Self { as_of, definition, instance, total, columns, body } = self;
        (Answer { as_of, definition, instance, total, columns, body: () }, body)
    }
}

impl<A: VisitEntries> ConsistentAnswer for Answer<A> {
    fn each_entry_as_of(&mut self, visit: &mut dyn FnMut(&mut Listed, &AsOf)) {
        let Self { as_of, body, .. } = self;
        body.each_entry(&mut |listed| visit(listed, as_of));
    }
}

/// A read of an instance of the board of this name.
pub struct OfBoard<R> {
    pub board: BoardName,
    pub instance: InstanceAsked,
    pub read: R,
}

/// Why there is nothing to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoBoard {
    Unknown,
    /// Another board, which entries should show their members of, is unknown.
    UnknownColumn(BoardName),
    /// The board has no such instance.
    Window(UnknownWindow),
    /// The board is there, and its entries have no movement.
    Movement(NoMovement),
}

impl From<UnknownWindow> for NoBoard {
    fn from(why: UnknownWindow) -> Self {
        Self::Window(why)
    }
}

impl<R: BoardRead> ShardsRead for OfBoard<R> {
    type Answer = Result<Answer<R::Answer>, NoBoard>;

    fn is_about(&self, board: &BoardName) -> bool {
        *board == self.board
    }

    fn lookups(&self) -> usize {
        self.read.lookups()
    }

    async fn read<'r>(
        &'r self,
        shards: ReadShards<'r>,
        registry: &'r Registry,
    ) -> Result<Self::Answer, ReadError> {
        // After shards in memory are locked: a board whose drop had begun before is unknown, so that no
        // answer counts some shards before the drop and others after it.
        let Some(known) = registry.get(self.board.as_str()) else { return Ok(Err(NoBoard::Unknown)) };
        let asked = self.instance.not_before(shards.time());
        let instance = match asked.of(&known.definition) {
            Ok(instance) => instance,
            Err(why) => return Ok(Err(why.into())),
        };
        if let Err(why) = self.read.check(&known.definition, instance, asked.now) {
            return Ok(Err(why));
        }
        let board = shards.board(&self.board, instance, &known);
        let body = self.read.read(&board).await?;
        let total = if R::shows_total(&body) { board.total().await? } else { 0 };
        let definition = Arc::clone(&known.definition);
        Ok(Ok(Answer { as_of: board.as_of(), definition, instance, total, columns: Vec::new(), body }))
    }
}

/// Only the board's total.
pub struct TotalOnly;

impl BoardRead for TotalOnly {
    type Answer = ();

    async fn read<'r>(&'r self, _: &'r BoardView<'r>) -> Result<(), ReadError> {
        Ok(())
    }
}

/// What a read found, and on which shards.
#[derive(Debug, Clone)]
pub struct ReadReply<A> {
    pub answer: A,
    /// Shards that have no part in the answer, because they did not reply. Empty unless the read was
    /// [`ReadOptions::partial`].
    pub missing: Vec<ShardId>,
    /// Whether some shard did not apply what was published, so that the answer may be behind.
    pub is_stale: bool,
}

/// Reads, without the metadata of shards in memory.
///
/// # Errors
/// When some shard does not reply, or what was asked for kept changing.
pub async fn read<R: ShardsRead>(
    node: &Node,
    registry: &Registry,
    read: &R,
    options: &ReadOptions,
) -> Result<ReadReply<R::Answer>, ReadError> {
    // Boxed, like whatever a read seldom waits for: the future of each request would have room for it.
    if let Some(shards) = &node.remote {
        return Box::pin(read_remote(&**shards, registry, read, options)).await;
    }
    if is_one_by_one(node, read) {
        let found = Box::pin(read_from(&*node.one_by_one, node.time(), registry, read, options)).await;
        // Members that move all the time are found under all locks at once.
        if !matches!(found, Err(ReadError::KeptChanging(_))) {
            return found.map(|reply| ReadReply { is_stale: reply.is_stale || node.is_stale(), ..reply });
        }
    }
    let unfilled = node.unfilled();
    if !unfilled.is_empty() {
        let of = |shard| ShardUnavailable { shard, reason: NotAnswered::Unfilled.to_string() };
        return Err(ReadError::Unavailable(unfilled.into_iter().map(of).collect()));
    }
    let answer = loop {
        match read_at_messages(node, registry, read) {
            Ok(answer) => break answer?,
            Err(ahead) => Box::pin(pass(node, ahead)).await?,
        }
    };
    Ok(ReadReply { answer, missing: Vec::new(), is_stale: node.is_stale() })
}

/// Whether a read asks the shards in memory as it would ask remote ones, each under its own lock and with
/// pauses. It does if it would hold all locks for long, and every writer up.
pub(super) fn is_one_by_one<R: ShardsRead>(node: &Node, read: &R) -> bool {
    node.remote.is_none() && read.lookups_on(node).saturating_mul(node.shards.len()) > LOOKUPS_UNDER_ALL_LOCKS
}

/// As [`read`], over remote shards.
///
/// # Errors
/// When some shard does not reply, or what was asked for kept changing.
pub async fn read_remote<R: ShardsRead>(
    shards: &dyn ShardClient,
    registry: &Registry,
    read: &R,
    options: &ReadOptions,
) -> Result<ReadReply<R::Answer>, ReadError> {
    read_from(shards, Timestamp::default(), registry, read, options).await
}

/// # Arguments
/// `time`: what the shards have reached, as far as it is known.
async fn read_from<R: ShardsRead>(
    shards: &dyn ShardClient,
    time: Timestamp,
    registry: &Registry,
    read: &R,
    options: &ReadOptions,
) -> Result<ReadReply<R::Answer>, ReadError> {
    for attempt in 0..REGISTRY_ATTEMPTS {
        if attempt > 0 {
            tokio::time::sleep(REGISTRY_PAUSE).await;
        }
        let remote = RemoteShards::new(shards).with_options(options).at_time(time);
        let answer = read.read(ReadShards::Remote(&remote), registry).await?;
        // A board was dropped or cleared while shards were asked: some replied from before, others from
        // after. The registry knows it soon.
        if R::IS_OF_THE_PAST || !remote.has_ended_board() {
            return Ok(ReadReply { answer, missing: remote.missing(), is_stale: remote.is_stale() });
        }
    }
    Err(ReadError::KeptChanging(REGISTRY_ATTEMPTS))
}

/// As [`read`], on a node that has every shard in memory, for a thread that may wait.
pub fn read_in_memory<R: ShardsRead>(
    node: &Node,
    registry: &Registry,
    read: &R,
) -> Result<R::Answer, ReadError> {
    loop {
        match read_at_messages(node, registry, read) {
            Ok(answer) => return answer,
            Err(Ahead { shard, shown }) => wait_until_shown(node, &[(shard, shown.next())]),
        }
    }
}

/// The same, unless a shard is between two messages.
fn read_at_messages<R: ShardsRead>(
    node: &Node,
    registry: &Registry,
    read: &R,
) -> Result<Result<R::Answer, ReadError>, Ahead> {
    let view = node.view(|board| read.is_about(board))?;
    Ok(run_in_memory(read.read(ReadShards::InMemory(&view), registry)))
}

/// Waits until the shard has applied the message that it has begun with.
async fn pass(node: &Node, Ahead { shard, shown }: Ahead) -> Result<(), ReadError> {
    let Some(handle) = node.owned(shard) else { return Ok(()) };
    let ended = |_| {
        ReadError::Unavailable(vec![ShardUnavailable { shard, reason: "the node is shutting down".into() }])
    };
    handle.applied.pass(shown).await.map_err(ended)
}

/// Waits for a moment until readers see these sequences. A shard may have stopped.
pub(super) fn wait_until_shown(node: &Node, sequences: &[(ShardId, Sequence)]) {
    let is_shown = |(shard, sequence): &(ShardId, Sequence)| {
        node.owned(*shard).is_none_or(|shard| shard.applied.get() >= *sequence)
    };
    for _ in 0..PAUSES_MAX {
        if sequences.iter().all(is_shown) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

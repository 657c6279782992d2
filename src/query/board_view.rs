//! One board over all shards: the sums that every read is made of.
//!
//! The shards are either all in memory and locked, so that every count is of one moment, or remote, and then
//! each round trip is of one moment of each shard. A read is written once, for both. It is an `async fn`,
//! which never waits over shards in memory ([`run_in_memory`]). Only a look-up of members is written twice
//! (`query::lookup`): in memory it finds members and counts in one step.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::board::Definition;
use crate::query::few::Few;
use crate::query::node::View;
use crate::query::question::{
    self, BoardCounts, BoardLife, Mark, MovementReply, Question, Reply, RunQuestion, RunStart, SortKey,
    SplittersQuestion, SplittersReply,
};
use crate::query::remote_shards::{ReadError, RemoteShards, unexpected};
use crate::query::shard_board::ShardBoard;
use crate::query::shard_run::ShardRun;
use crate::state::Incarnation;
use crate::tree::Words;
use crate::types::{AsOf, BoardName, MemberId, ShardId, Timestamp, shard_of};
use crate::writer::RegisteredBoard;

/// How one shard's entries compare with a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardStanding {
    pub shard: ShardId,
    /// Strictly better entries.
    pub better: u64,
    /// Entries with this score.
    pub tied: u64,
    /// All entries.
    pub total: u64,
}

/// One board over all shards.
pub struct BoardView<'v> {
    pub definition: Arc<Definition>,
    pub incarnation: Incarnation,
    shards: BoardShards<'v>,
}

/// Where its shards are.
pub(super) enum BoardShards<'v> {
    InMemory(Few<ShardBoard<'v>>),
    Remote { shards: &'v RemoteShards<'v>, life: BoardLife },
}

/// Runs a read over shards in memory.
///
/// # Panics
/// When the read waits for something, which only reads over remote shards do.
pub fn run_in_memory<A>(read: impl Future<Output = Result<A, ReadError>>) -> Result<A, ReadError> {
    // Not by `FutureExt::now_or_never`, which copies the future.
    match pin!(read).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("a read over shards in memory does not wait"),
    }
}

impl<'v> BoardView<'v> {
    /// The board with the incarnation of `known`, which may not have reached every shard.
    pub fn new(view: &'v View<'_>, name: &str, known: &RegisteredBoard) -> Self {
        let shard_boards =
            view.shards.iter().map(|shard| ShardBoard::of(shard, name, known.incarnation)).collect();
        Self {
            definition: Arc::clone(&known.definition),
            incarnation: known.incarnation,
            shards: BoardShards::InMemory(shard_boards),
        }
    }

    /// The board over remote shards.
    pub fn remote(shards: &'v RemoteShards<'v>, name: BoardName, known: &RegisteredBoard) -> Self {
        Self {
            definition: Arc::clone(&known.definition),
            incarnation: known.incarnation,
            shards: BoardShards::Remote {
                shards,
                life: BoardLife { board: name, incarnation: known.incarnation },
            },
        }
    }

    /// For a read that goes another way in memory.
    pub(super) fn shards(&self) -> &BoardShards<'v> {
        &self.shards
    }

    pub fn shard_count(&self) -> u16 {
        match &self.shards {
            BoardShards::InMemory(shard_boards) => u16::try_from(shard_boards.len()).unwrap_or(u16::MAX),
            BoardShards::Remote { shards, .. } => shards.shard_count(),
        }
    }

    pub fn home_of(&self, member: &MemberId) -> ShardId {
        shard_of(member, self.shard_count())
    }

    /// Whether all round trips of a read are of one moment.
    pub fn is_snapshot(&self) -> bool {
        matches!(self.shards, BoardShards::InMemory(_))
    }

    /// The words of the score that an entry's words begin with.
    pub fn score_words<'w>(&self, words: &'w Words) -> &'w [u64] {
        let words = words.as_slice();
        words.get(..self.definition.keys.len()).unwrap_or(words)
    }

    /// The applied sequences behind what was read.
    pub fn as_of(&self) -> AsOf {
        match &self.shards {
            BoardShards::InMemory(shard_boards) => AsOf(
                shard_boards
                    .iter()
                    .map(|shard_board| (shard_board.shard.id, shard_board.shard.applied.sequence))
                    .collect(),
            ),
            BoardShards::Remote { shards, .. } => shards.as_of(),
        }
    }

    /// The latest time of the shards, as far as it is known; see
    /// [`ReadShards::time`](crate::query::ReadShards::time).
    pub fn time(&self) -> Timestamp {
        match &self.shards {
            BoardShards::InMemory(shard_boards) => {
                shard_boards.iter().map(|shard_board| shard_board.shard.time).max().unwrap_or_default()
            }
            BoardShards::Remote { shards, .. } => shards.time(),
        }
    }

    /// Entries that are shown, of all shards. Asks for it only if no round trip has told it.
    pub async fn total(&self) -> Result<u64, ReadError> {
        let listed = match &self.shards {
            BoardShards::InMemory(shard_boards) => shard_boards.iter().map(ShardBoard::total).sum(),
            BoardShards::Remote { shards, .. } => match shards.total() {
                Some(total) => total,
                None => self.totals().await?.0,
            },
        };
        Ok(self.definition.within_capacity(listed))
    }

    /// Entries on all shards that are not hidden, those beyond the capacity included; and hidden ones.
    pub async fn totals(&self) -> Result<(u64, u64), ReadError> {
        let counts = self.counts(&[]).await?;
        let total = counts.iter().map(|(_, counts)| counts.total).sum();
        Ok((total, counts.iter().map(|(_, counts)| counts.hidden).sum()))
    }

    /// Each shard's counts at some marks.
    pub async fn counts(&self, marks: &[Mark<'_>]) -> Result<Vec<(ShardId, BoardCounts)>, ReadError> {
        match &self.shards {
            BoardShards::InMemory(shard_boards) => Ok(shard_boards
                .iter()
                .map(|shard_board| (shard_board.shard.id, question::counts_of(shard_board, marks)))
                .collect()),
            BoardShards::Remote { shards, life } => {
                let question = Question::Counts(vec![(life.clone(), marks.to_vec())]);
                let replies = shards.ask_all(&question).await?;
                let counts = replies.into_iter().map(|(shard, reply)| match reply {
                    Reply::Counts(mut counts) if counts.len() == 1 => {
                        let counts = counts.swap_remove(0);
                        if counts.marks.len() != marks.len() {
                            return Err(unexpected(shard));
                        }
                        Ok((shard, counts))
                    }
                    _ => Err(unexpected(shard)),
                });
                counts.collect()
            }
        }
    }

    /// A run on each shard but `except`.
    pub async fn runs(
        &self,
        run: &RunQuestion<'_>,
        except: Option<ShardId>,
    ) -> Result<Vec<ShardRun<'v>>, ReadError> {
        Ok(self.several_runs(std::slice::from_ref(run), except).await?.swap_remove(0))
    }

    /// Several runs on each shard but `except`, all in one round trip: for each question, the shards' runs.
    pub async fn several_runs(
        &self,
        runs: &[RunQuestion<'_>],
        except: Option<ShardId>,
    ) -> Result<Vec<Vec<ShardRun<'v>>>, ReadError> {
        match &self.shards {
            BoardShards::InMemory(shard_boards) => {
                let of_run = |run| {
                    let shard_boards = shard_boards.iter();
                    let asked = shard_boards.filter(|shard_board| Some(shard_board.shard.id) != except);
                    asked.filter_map(|shard_board| ShardRun::in_memory(*shard_board, run)).collect()
                };
                Ok(runs.iter().map(of_run).collect())
            }
            BoardShards::Remote { shards, life } => {
                let question = Question::Runs(life.clone(), runs.to_vec());
                let ids = shards.ids().filter(|shard| Some(*shard) != except);
                let replies = shards.ask(ids.map(|shard| (shard, &question))).await?;
                let mut found: Vec<Vec<ShardRun<'v>>> = runs.iter().map(|_| Vec::new()).collect();
                for (shard, reply) in replies {
                    let Reply::Runs(replies) = reply else { return Err(unexpected(shard)) };
                    for ((found, run), reply) in found.iter_mut().zip(runs).zip(replies) {
                        let reply = reply.ok_or_else(|| unexpected(shard))?;
                        found.push(ShardRun::replied(shard, run, reply, self.definition.keys.len()));
                    }
                }
                Ok(found)
            }
        }
    }

    /// The run on the home shard of a member from its entry on; `None` if it is not listed: never here,
    /// removed or hidden.
    pub async fn run_of_member(
        &self,
        member: &MemberId,
        above: u32,
        below: u32,
    ) -> Result<Option<ShardRun<'v>>, ReadError> {
        let home = self.home_of(member);
        let run = RunQuestion {
            start: RunStart::Member(member.as_str()),
            worst: None,
            above,
            below: below.saturating_add(1),
            metadata: true,
        };
        match &self.shards {
            BoardShards::InMemory(shard_boards) => Ok(shard_boards
                .get(home.index())
                .and_then(|shard_board| ShardRun::in_memory(*shard_board, &run))),
            BoardShards::Remote { shards, life } => {
                let question = Question::Runs(life.clone(), vec![run]);
                let Reply::Runs(mut runs) = shards.ask_one(home, &question).await? else {
                    return Err(unexpected(home));
                };
                match runs.pop() {
                    Some(None) => Ok(None),
                    Some(Some(reply)) if !reply.below.is_empty() => {
                        Ok(Some(ShardRun::replied(home, &run, reply, self.definition.keys.len())))
                    }
                    _ => Err(unexpected(home)),
                }
            }
        }
    }

    /// Entries of each shard that divide what lies between two keys, for several pairs of keys in one round
    /// trip: for each question, the shards' replies.
    pub async fn splitters(
        &self,
        splitters: &[SplittersQuestion<'_>],
    ) -> Result<Vec<Vec<SplittersReply>>, ReadError> {
        match &self.shards {
            BoardShards::InMemory(shard_boards) => {
                let of_question = |splitters| {
                    let of_shard = |shard_board| question::splitters_of(shard_board, splitters);
                    shard_boards.iter().map(of_shard).collect()
                };
                Ok(splitters.iter().map(of_question).collect())
            }
            BoardShards::Remote { shards, life } => {
                let question = Question::Splitters(life.clone(), splitters.to_vec());
                let mut found: Vec<Vec<SplittersReply>> = splitters.iter().map(|_| Vec::new()).collect();
                for (shard, reply) in shards.ask_all(&question).await? {
                    let Reply::Splitters(replies) = reply else { return Err(unexpected(shard)) };
                    found.iter_mut().zip(replies).for_each(|(found, reply)| found.push(reply));
                }
                Ok(found)
            }
        }
    }

    /// How the board was on each shard when an instance of another window began. The view is of `all`.
    ///
    /// # Arguments
    /// `members`: for each shard, by number, those of which it is the home. `keys`: of then.
    pub async fn movement(
        &self,
        since: &BoardName,
        members: &[Vec<&str>],
        keys: &[SortKey<'_>],
    ) -> Result<Vec<(ShardId, MovementReply)>, ReadError> {
        let since = BoardLife { board: since.clone(), incarnation: self.incarnation };
        match &self.shards {
            BoardShards::InMemory(shard_boards) => {
                let replies = shard_boards.iter().zip(members).map(|(shard_board, members)| {
                    let reply = question::movement_of(shard_board.shard, &since, members, keys);
                    (shard_board.shard.id, reply)
                });
                Ok(replies.collect())
            }
            BoardShards::Remote { shards, .. } => {
                let question = |members: &Vec<_>| Question::Movement {
                    since: since.clone(),
                    members: members.clone(),
                    keys: keys.to_vec(),
                };
                let questions: Vec<_> = members.iter().map(question).collect();
                let replies = shards.ask(shards.ids().zip(&questions)).await?;
                let found = replies.into_iter().map(|(shard, reply)| match reply {
                    Reply::Movement(reply) => Ok((shard, reply)),
                    _ => Err(unexpected(shard)),
                });
                found.collect()
            }
        }
    }
}

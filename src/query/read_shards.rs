//! The shards that one read is answered from: all of them in memory and locked, or remote.
//!
//! Knows: questions that are about several boards, which every shard replies to in one round trip. Must not
//! know: a board's sums (`board_view`).

use std::sync::Arc;

use crate::query::board_view::BoardView;
use crate::query::combine::on_shard::combine;
use crate::query::instance::InstanceAsked;
use crate::query::node::View;
use crate::query::question::{
    self, BoardCounts, BoardLife, BoardsOfMember, CombineQuestion, CombineReply, FoundMember, HiddenQuestion,
    HiddenReply, Mark, Question, Reply,
};
use crate::query::remote_shards::{ReadError, RemoteShards, unexpected};
use crate::query::shard_board::ShardBoard;
use crate::types::{AsOf, BoardName, MemberId, ShardId, Timestamp, shard_of};
use crate::window::Instance;
use crate::writer::RegisteredBoard;

/// All shards, for one read.
#[derive(Clone, Copy)]
pub enum ReadShards<'v> {
    /// Each at one applied sequence for as long as the read takes.
    InMemory(&'v View<'v>),
    Remote(&'v RemoteShards<'v>),
}

/// Counts of one shard, one for each board asked.
pub type CountsOfBoards = (ShardId, Vec<BoardCounts>);

impl<'v> ReadShards<'v> {
    pub fn board(self, name: &BoardName, instance: Instance, known: &RegisteredBoard) -> BoardView<'v> {
        let name = instance.name_on_shards(name);
        match self {
            Self::InMemory(view) => BoardView::new(view, name.as_str(), known),
            Self::Remote(shards) => BoardView::remote(shards, name, known),
        }
    }

    /// The latest time of the shards, as far as it is known. By the time of its messages a shard may be in an
    /// instance that has not begun by this node's clock.
    pub fn time(self) -> Timestamp {
        match self {
            Self::InMemory(view) => view.shards.iter().map(|shard| shard.time).max().unwrap_or_default(),
            Self::Remote(shards) => shards.time(),
        }
    }

    pub fn shard_count(self) -> u16 {
        match self {
            Self::InMemory(view) => u16::try_from(view.shards.len()).unwrap_or(u16::MAX),
            Self::Remote(shards) => shards.shard_count(),
        }
    }

    pub fn home_of(self, member: &MemberId) -> ShardId {
        shard_of(member, self.shard_count())
    }

    /// The applied sequences behind what was read.
    pub fn as_of(self) -> AsOf {
        match self {
            Self::InMemory(view) => {
                AsOf(view.shards.iter().map(|shard| (shard.id, shard.applied.sequence)).collect())
            }
            Self::Remote(shards) => shards.as_of(),
        }
    }

    /// Counts on each shard but `except`, for several boards.
    pub async fn counts(
        self,
        boards: Vec<(BoardLife, Vec<Mark<'_>>)>,
        except: Option<ShardId>,
    ) -> Result<Vec<CountsOfBoards>, ReadError> {
        match self {
            Self::InMemory(view) => {
                let shards = view.shards.iter().filter(|shard| Some(shard.id) != except);
                let counts = shards.map(|shard| {
                    let of_board = |(life, marks): &(BoardLife, Vec<Mark<'_>>)| {
                        question::counts_of(&ShardBoard::of_life(shard, life), marks)
                    };
                    (shard.id, boards.iter().map(of_board).collect())
                });
                Ok(counts.collect())
            }
            Self::Remote(shards) => {
                let asked = boards.len();
                let question = Question::Counts(boards);
                let ids = shards.ids().filter(|shard| Some(*shard) != except);
                let replies = shards.ask(ids.map(|shard| (shard, &question))).await?;
                let counts = replies.into_iter().map(|(shard, reply)| match reply {
                    Reply::Counts(counts) if counts.len() == asked => Ok((shard, counts)),
                    _ => Err(unexpected(shard)),
                });
                counts.collect()
            }
        }
    }

    /// The member on boards, from its home shard; `None` where it is not listed.
    pub async fn member_on_boards(
        self,
        member: &MemberId,
        boards: Vec<BoardLife>,
        hidden: bool,
    ) -> Result<Vec<Option<FoundMember>>, ReadError> {
        let home = self.home_of(member);
        match self {
            Self::InMemory(view) => {
                let Some(shard) = view.shards.get(home.index()) else { return Ok(Vec::new()) };
                let found = |life| {
                    question::found_member(&ShardBoard::of_life(shard, life), member.as_bytes(), hidden)
                };
                Ok(boards.iter().map(found).collect())
            }
            Self::Remote(shards) => {
                let asked = boards.len();
                let question = Question::MemberOnBoards { member: member.as_str(), boards, hidden };
                match shards.ask_one(home, &question).await? {
                    Reply::MemberOnBoards(found) if found.len() == asked => Ok(found),
                    _ => Err(unexpected(home)),
                }
            }
        }
    }

    /// The parts of shards in boards that are combined.
    ///
    /// # Arguments
    /// `is_asked`: which shards.
    pub async fn combined(
        self,
        asked: CombineQuestion,
        is_asked: impl Fn(ShardId) -> bool,
    ) -> Result<Vec<CombineReply>, ReadError> {
        match self {
            Self::InMemory(view) => {
                let shards = view.shards.iter().filter(|shard| is_asked(shard.id));
                Ok(shards.map(|shard| combine(shard, &asked)).collect())
            }
            Self::Remote(shards) => {
                let question = Question::Combine(Arc::new(asked));
                let ids = shards.ids().filter(|shard| is_asked(*shard));
                let replies = shards.ask(ids.map(|shard| (shard, &question))).await?;
                let combined = replies.into_iter().map(|(shard, reply)| match reply {
                    Reply::Combine(reply) => Ok(reply),
                    _ => Err(unexpected(shard)),
                });
                combined.collect()
            }
        }
    }

    /// The bans of each shard that are asked for.
    pub async fn hidden(self, asked: HiddenQuestion<'_>) -> Result<Vec<HiddenReply>, ReadError> {
        match self {
            Self::InMemory(view) => {
                Ok(view.shards.iter().map(|shard| question::bans_of(shard, &asked)).collect())
            }
            Self::Remote(shards) => {
                let question = Question::Hidden(asked);
                let replies = shards.ask(shards.ids().map(|shard| (shard, &question))).await?;
                let bans = replies.into_iter().map(|(shard, reply)| match reply {
                    Reply::Hidden(bans) => Ok(bans),
                    _ => Err(unexpected(shard)),
                });
                bans.collect()
            }
        }
    }

    /// When a board that ends after a quiet time had its last job on each shard; `None` where that is not
    /// known.
    pub async fn last_jobs(self, life: BoardLife) -> Result<Vec<Option<Timestamp>>, ReadError> {
        match self {
            Self::InMemory(view) => {
                Ok(view.shards.iter().map(|shard| question::last_job_of(shard, &life).1).collect())
            }
            Self::Remote(shards) => {
                let question = Question::LastJob(life);
                let replies = shards.ask(shards.ids().map(|shard| (shard, &question))).await?;
                let last = replies.into_iter().map(|(shard, reply)| match reply {
                    Reply::LastJob(_, last) => Ok(last),
                    _ => Err(unexpected(shard)),
                });
                last.collect()
            }
        }
    }

    /// Boards that list the member, after a place, from its home shard.
    pub async fn boards_of_member(
        self,
        member: &MemberId,
        after: Option<u32>,
        limit: u32,
        prefixes: Option<&[String]>,
        instance: InstanceAsked,
        hidden: bool,
    ) -> Result<BoardsOfMember, ReadError> {
        let home = self.home_of(member);
        let prefixes: Option<Vec<&str>> =
            prefixes.map(|prefixes| prefixes.iter().map(String::as_str).collect());
        match self {
            Self::InMemory(view) => {
                let shard = view.shards.get(home.index());
                let boards = |shard| {
                    let prefixes = prefixes.as_deref();
                    let member = member.as_str();
                    question::boards_of_member(shard, member, after, limit, prefixes, instance, hidden)
                };
                Ok(shard.map(|shard| boards(shard)).unwrap_or_default())
            }
            Self::Remote(shards) => {
                let member = member.as_str();
                let question = Question::BoardsOfMember { member, after, limit, prefixes, instance, hidden };
                match shards.ask_one(home, &question).await? {
                    Reply::BoardsOfMember(boards) => Ok(boards),
                    _ => Err(unexpected(home)),
                }
            }
        }
    }
}

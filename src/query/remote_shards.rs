//! Puts questions to remote shards, and remembers what the replies are exact at.
//!
//! Knows: that all shards are asked at the same time, and that an answer is of each shard's last reply. Must
//! not know: how a question travels, or what it asks.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use thiserror::Error;

use crate::query::columns::marks::{ColumnMarks, ColumnsTold};
use crate::query::question::{EntryMetadata, EntryProfile, Question, Reply, ShardReply, is_consistent};
use crate::types::{AsOf, Sequence, ShardId, Timestamp};

/// Puts questions to shards, on this node or on others.
pub trait ShardClient: Send + Sync {
    /// The number of all shards.
    fn shard_count(&self) -> u16;

    /// Asks one shard.
    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        terms: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>>;
}

/// What a reply must be of, and how long it is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AskTerms {
    /// The shard replies once it has applied this sequence.
    pub least: Sequence,
    /// `None`: as long as any question is waited for.
    pub until: Option<Instant>,
    /// Whether entries come with their members' profiles.
    pub profiles: bool,
}

/// A shard that no node replies for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("shard {shard}: {reason}")]
pub struct ShardUnavailable {
    pub shard: ShardId,
    /// Text for the client and the log.
    pub reason: String,
}

/// Why a shard did not reply.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoReply {
    #[error(transparent)]
    Unavailable(ShardUnavailable),
    /// Until the deadline, the shard had not applied the sequence that was asked for.
    #[error("shard {0} has not applied what was asked for")]
    NotYetApplied(ShardId),
    /// What was asked for is of another history of the shard.
    #[error("what was asked for is of another history of shard {0}")]
    OtherHistory(ShardId),
}

impl NoReply {
    pub fn unavailable(shard: ShardId, reason: impl Into<String>) -> Self {
        Self::Unavailable(ShardUnavailable { shard, reason: reason.into() })
    }
}

/// Why a read has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// No node replied for these shards.
    #[error("{}", list(.0))]
    Unavailable(Vec<ShardUnavailable>),
    /// These shards have not applied in time what the answer must be of.
    #[error("not applied in time on {}", numbers(.0))]
    NotYetApplied(Vec<ShardId>),
    /// What the answer must be of is of another history of this shard, which was set back since.
    #[error("what it must be of is of another history of shard {0}")]
    OtherHistory(ShardId),
    /// What was asked for moved from one round trip to the next, too often to follow.
    #[error("the entries asked for changed while they were counted, {0} times in a row; ask again")]
    KeptChanging(u32),
}

fn list(shards: &[ShardUnavailable]) -> String {
    shards.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn numbers(shards: &[ShardId]) -> String {
    shards.iter().map(|shard| format!("shard {shard}")).collect::<Vec<_>>().join(", ")
}

/// Remote shards as one read sees them: what each replied last.
pub struct RemoteShards<'v> {
    shards: &'v dyn ShardClient,
    seen: Mutex<Vec<Seen>>,
    /// `None`: the defaults.
    options: Option<&'v ReadOptions>,
    time: Timestamp,
    beside: Mutex<Beside>,
}

/// What is asked beside each question, and what each shard's last reply told of it.
#[derive(Debug, Default)]
struct Beside {
    asked: Option<Arc<ColumnMarks>>,
    told: Vec<Option<Arc<ColumnsTold>>>,
}

/// What is known of a shard.
#[derive(Debug, Clone, Default)]
enum Seen {
    /// It was not asked yet.
    #[default]
    Nothing,
    /// What its last reply was exact at.
    Replied(Exact),
    /// It did not reply, and the answer does without it.
    Missing(ShardUnavailable),
}

#[derive(Debug, Clone, Copy)]
struct Exact {
    sequence: Sequence,
    is_live: bool,
    /// Whether a board that was asked about is over.
    has_ended_board: bool,
    /// Entries of the board that is read, if it is one and the reply told.
    total: Option<u64>,
}

impl<'v> RemoteShards<'v> {
    pub fn new(shards: &'v dyn ShardClient) -> Self {
        let seen = Mutex::new(vec![Seen::Nothing; usize::from(shards.shard_count())]);
        Self { shards, seen, options: None, time: Timestamp::default(), beside: Mutex::default() }
    }

    /// The same for a read with options.
    pub fn with_options(self, options: &'v ReadOptions) -> Self {
        Self { options: Some(options), ..self }
    }

    /// The same for a read of shards that have reached this time.
    pub fn at_time(self, time: Timestamp) -> Self {
        Self { time, ..self }
    }

    /// The latest time of the shards, as far as it is known.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Whether shards that do not reply are left out ([`ReadOptions::partial`]).
    pub fn is_partial(&self) -> bool {
        self.options.is_some_and(|options| options.partial)
    }

    /// Shards that were left out, because they did not reply.
    pub fn missing(&self) -> Vec<ShardId> {
        let is_missing = |seen: &Seen| matches!(seen, Seen::Missing(_));
        self.ids()
            .zip(self.seen.lock().iter())
            .filter_map(|(id, seen)| is_missing(seen).then_some(id))
            .collect()
    }

    pub fn shard_count(&self) -> u16 {
        self.shards.shard_count()
    }

    /// Every shard, by number.
    pub fn ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.shard_count()).map(ShardId)
    }

    /// The sequence of each shard's last reply. Shards that were not asked, or are left out, are not in it.
    pub fn as_of(&self) -> AsOf {
        let replied = |(shard, seen): (ShardId, &Seen)| match seen {
            Seen::Replied(exact) => Some((shard, exact.sequence)),
            Seen::Nothing | Seen::Missing(_) => None,
        };
        AsOf(self.ids().zip(self.seen.lock().iter()).filter_map(replied).collect())
    }

    /// Whether some shard that replied does not apply what is published at present.
    pub fn is_stale(&self) -> bool {
        self.any(|exact| !exact.is_live)
    }

    /// Whether a board that was asked about is over on some shard: the registry is behind.
    pub fn has_ended_board(&self) -> bool {
        self.any(|exact| exact.has_ended_board)
    }

    fn any(&self, is_so: impl Fn(&Exact) -> bool) -> bool {
        self.seen.lock().iter().any(|seen| matches!(seen, Seen::Replied(exact) if is_so(exact)))
    }

    /// The entries of the board, by each shard's last reply; `None` unless all have told.
    pub(super) fn total(&self) -> Option<u64> {
        let seen = self.seen.lock();
        let told = seen.iter().filter(|seen| !matches!(seen, Seen::Missing(_))).map(|seen| match seen {
            Seen::Replied(exact) => exact.total,
            Seen::Nothing | Seen::Missing(_) => None,
        });
        told.sum()
    }

    /// From here on, asks this beside each question.
    pub fn ask_beside(&self, asked: Arc<ColumnMarks>) {
        let told = vec![None; usize::from(self.shard_count())];
        *self.beside.lock() = Beside { asked: Some(asked), told };
    }

    /// What each shard's last reply has told of what was asked beside; `None` if it has not replied since.
    pub fn told_beside(&self) -> Vec<Option<Arc<ColumnsTold>>> {
        self.beside.lock().told.clone()
    }

    /// Asks shards at the same time, each its question. Returns the replies in the same order. Shards that
    /// did not reply are left out, if the read may do without them.
    ///
    /// # Errors
    /// When some shard does not reply that is not left out, or none is left.
    pub async fn ask<'q>(
        &self,
        questions: impl IntoIterator<Item = (ShardId, &'q Question<'q>)>,
    ) -> Result<Vec<(ShardId, Reply)>, ReadError> {
        let is_left = |(shard, _): &(ShardId, _)| {
            !matches!(self.seen.lock().get(shard.index()), Some(Seen::Missing(_)))
        };
        let asked = questions
            .into_iter()
            .filter(is_left)
            .map(|(shard, question)| async move { (shard, self.ask_shard(shard, question).await) });
        let (mut replies, mut missing, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        for (shard, reply) in join_all(asked).await {
            match reply {
                Ok(reply) => replies.push((shard, reply)),
                Err(NoReply::Unavailable(why)) => missing.push(why),
                Err(NoReply::NotYetApplied(shard)) => behind.push(shard),
                Err(NoReply::OtherHistory(shard)) => return Err(ReadError::OtherHistory(shard)),
            }
        }
        if !behind.is_empty() {
            return Err(ReadError::NotYetApplied(behind));
        }
        if missing.is_empty() {
            return Ok(replies);
        }
        if !self.is_partial() {
            return Err(ReadError::Unavailable(missing));
        }
        let mut seen = self.seen.lock();
        for why in missing {
            if let Some(seen) = seen.get_mut(why.shard.index()) {
                *seen = Seen::Missing(why);
            }
        }
        let all_missing = seen.iter().map(|seen| match seen {
            Seen::Missing(why) => Some(why.clone()),
            Seen::Nothing | Seen::Replied(_) => None,
        });
        match all_missing.collect() {
            // An answer without any shard would say nothing.
            Some(missing) => Err(ReadError::Unavailable(missing)),
            None => Ok(replies),
        }
    }

    /// Asks every shard the same.
    ///
    /// # Errors
    /// When some shard does not reply that is not left out, or none is left.
    pub async fn ask_all(&self, question: &Question<'_>) -> Result<Vec<(ShardId, Reply)>, ReadError> {
        self.ask(self.ids().map(|shard| (shard, question))).await
    }

    /// Asks the shard without which there is no answer.
    ///
    /// # Errors
    /// When it does not reply.
    pub async fn ask_one(&self, shard: ShardId, question: &Question<'_>) -> Result<Reply, ReadError> {
        self.ask_shard(shard, question).await.map_err(|why| match why {
            NoReply::Unavailable(why) => ReadError::Unavailable(vec![why]),
            NoReply::NotYetApplied(shard) => ReadError::NotYetApplied(vec![shard]),
            NoReply::OtherHistory(shard) => ReadError::OtherHistory(shard),
        })
    }

    async fn ask_shard(&self, shard: ShardId, question: &Question<'_>) -> Result<Reply, NoReply> {
        let after = self.options.and_then(|options| options.after.0.iter().find(|(id, _)| *id == shard));
        let terms = AskTerms {
            least: after.map_or(Sequence::default(), |(_, sequence)| *sequence),
            until: self.options.and_then(|options| options.deadline),
            profiles: question.shows_entries() && self.options.is_some_and(|options| options.profiles),
        };
        // What was is not what the answer is exact at.
        let is_of_past = matches!(question, Question::Movement { .. });
        let beside = if is_of_past { None } else { self.beside.lock().asked.clone() };
        let with_beside = beside.as_ref().map(|beside| beside.beside(question));
        let asked = with_beside.as_ref().unwrap_or(question);
        let ShardReply { sequence, is_live, reply } = self.shards.ask(shard, asked, terms).await?;
        if !is_consistent(asked, &reply) || sequence < terms.least {
            return Err(NoReply::unavailable(shard, UNEXPECTED));
        }
        let (has_ended_board, total) = (reply.has_ended_board(), reply.total());
        let (mut reply, told) = ColumnsTold::take(reply, question.shows_entries());
        // Only the node that replied could read it from its disk.
        reply.each_entry(&mut |entry| {
            if matches!(entry.metadata, EntryMetadata::OnDisk(_)) {
                entry.metadata = EntryMetadata::Unreadable;
            }
            if entry.profile == EntryProfile::OnDisk {
                entry.profile = EntryProfile::Unreadable;
            }
        });
        if let Some(told) = told
            && let Some(last) = self.beside.lock().told.get_mut(shard.index())
        {
            *last = Some(Arc::new(told));
        }
        if let Some(seen) = self.seen.lock().get_mut(shard.index()) {
            match seen {
                Seen::Replied(known) if is_of_past => known.has_ended_board |= has_ended_board,
                seen => *seen = Seen::Replied(Exact { sequence, is_live, has_ended_board, total }),
            }
        }
        Ok(reply)
    }
}

const UNEXPECTED: &str = "its node sent a reply that does not fit the question";

/// A reply that cannot be one to its question: the other node is at fault.
pub(super) fn unexpected(shard: ShardId) -> ReadError {
    ReadError::Unavailable(vec![ShardUnavailable { shard, reason: UNEXPECTED.to_owned() }])
}

/// How a read treats shards that have to be waited for, or that do not reply.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Answer without the shards that do not reply, instead of not at all.
    pub partial: bool,
    /// Whether entries are wanted with their members' profiles.
    pub profiles: bool,
    /// What the answer must be of at least: a shard named here replies once it has applied this sequence. A
    /// read over shards in memory takes no notice of it: whoever asks has waited for them.
    pub after: AsOf,
    /// Until when shards are waited for; `None`: as long as any read waits.
    pub deadline: Option<Instant>,
}

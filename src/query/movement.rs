//! How far entries of `all` have moved since the current instance of another window began.
//!
//! Knows: that a position of then is a sum over shards, as one of now is, and that it stays what it is for as
//! long as the instance is current. So it may be asked after the entries were found, and of a later sequence.
//! Must not know: how a shard keeps what was.

use std::collections::HashMap;
use std::time::Duration;

use crate::board::Definition;
use crate::query::answer::{Listed, ListedMovement};
use crate::query::board_view::BoardView;
use crate::query::entries::VisitEntries;
use crate::query::instance::{InstanceAsked, NoMovement, WindowChoice};
use crate::query::question::{MovementReply, SortKey};
use crate::query::read::{BoardRead, NoBoard};
use crate::query::remote_shards::ReadError;
use crate::types::{AsOf, BoardName, MemberId, ShardId, Timestamp};
use crate::window::{Instance, Span, Window};

/// How often a read is repeated because a shard is in another instance than this node's clock says, or has
/// been left out meanwhile, and the pause before.
const ATTEMPTS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(25);
/// After so many, what counts is not this node's clock but the latest time of a shard. It may be behind for
/// long: a shard that catches up is.
const ATTEMPTS_BY_CLOCK: u32 = 4;
/// Each entry is looked up in the tree of today, and in those of the members that have changed.
const LOOKUPS_OF_ENTRY: usize = 3;
/// Entries of one question to each shard: it takes a shard a tenth of a millisecond.
const ENTRIES_ASKED: usize = 64;
/// How long the entries of an answer may have been found before their movement, in microseconds.
const LONGEST_READ: i64 = 10_000_000;

/// Which movement is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovementAsked {
    pub board: BoardName,
    /// Since its current instance began. Not `all`.
    pub window: Window,
    /// The reading node's time, which decides which instance is current.
    pub now: Timestamp,
    /// The most entries that the answer has.
    pub entries: usize,
}

/// A read whose entries come with their movement, if that is asked for.
pub struct WithMovement<R> {
    pub read: R,
    pub movement: Option<MovementAsked>,
}

/// What came of looking for the movement of entries.
enum Found {
    All,
    /// A shard is in a later instance by its time.
    Later(Timestamp),
    /// The entries are to be found again. A shard has not reached the instance; the latest time of one.
    NotYet(Timestamp),
    /// The entries are to be found again: they may be of a moment before the instance began, which it has by
    /// now.
    JustBegun,
}

impl<R: BoardRead<Answer: VisitEntries>> BoardRead for WithMovement<R> {
    type Answer = R::Answer;

    fn shows_total(answer: &Self::Answer) -> bool {
        R::shows_total(answer)
    }

    fn lookups(&self) -> usize {
        let of_movement = self.movement.as_ref().map_or(0, |asked| asked.entries * LOOKUPS_OF_ENTRY);
        self.read.lookups() + of_movement
    }

    fn check(&self, definition: &Definition, instance: Instance, now: Timestamp) -> Result<(), NoBoard> {
        let Some(asked) = &self.movement else { return Ok(()) };
        if !definition.movement {
            return Err(NoBoard::Movement(NoMovement::NotKept));
        }
        if instance != Instance::ALL {
            return Err(NoBoard::Movement(NoMovement::OfInstance(instance)));
        }
        let since = InstanceAsked { choice: WindowChoice::Current(asked.window), now };
        since.of(definition)?;
        Ok(())
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        match &self.movement {
            None => self.read.read(board).await,
            // Boxed: the future of each read would have room for it.
            Some(asked) => Box::pin(self.read_with(asked, board)).await,
        }
    }
}

impl<R: BoardRead<Answer: VisitEntries>> WithMovement<R> {
    async fn read_with<'r>(
        &'r self,
        asked: &'r MovementAsked,
        board: &'r BoardView<'r>,
    ) -> Result<R::Answer, ReadError> {
        let mut now = asked.now.max(board.time());
        let mut has_begun = false;
        for attempt in 0..ATTEMPTS {
            let mut answer = self.read.read(board).await?;
            match fill(board, asked, (now, has_begun), &mut answer).await? {
                Found::All => return Ok(answer),
                Found::JustBegun => has_begun = true,
                Found::Later(time) => (now, has_begun) = (time, false),
                Found::NotYet(latest) => {
                    if attempt + 1 >= ATTEMPTS_BY_CLOCK {
                        (now, has_begun) = (latest, false);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        Err(ReadError::KeptChanging(ATTEMPTS))
    }
}

/// Finds where the entries of an answer were.
///
/// # Arguments
/// `has_begun`: whether the instance had begun on all shards before the entries were found.
async fn fill(
    board: &BoardView<'_>,
    asked: &MovementAsked,
    (now, has_begun): (Timestamp, bool),
    answer: &mut impl VisitEntries,
) -> Result<Found, ReadError> {
    let calendar = board.definition.calendar();
    let instance = calendar.instance_at(asked.window, now);
    let Some((instance, span)) = instance.and_then(|instance| Some((instance, calendar.span(instance)?)))
    else {
        answer.each_entry(&mut |listed| listed.movement = ListedMovement::NotListedThen);
        return Ok(Found::All);
    };
    let since = instance.name_on_shards(&asked.board);
    let mut members: Vec<MemberId> = Vec::new();
    answer.each_entry(&mut |listed| members.extend(MemberId::new(listed.member.clone())));
    if members.is_empty() {
        return Ok(Found::All);
    }
    let as_of = board.as_of();
    let is_of = |told: &[(ShardId, MovementReply)]| are_of(told, span, &as_of, has_begun);
    let mut positions: HashMap<Box<[u8]>, u64> = HashMap::with_capacity(members.len());
    for members in members.chunks(ENTRIES_ASKED) {
        match positions_then(board, &since, members, &is_of, &mut positions).await? {
            Found::All => {}
            other => return Ok(other),
        }
    }
    answer.each_entry(&mut |listed| {
        listed.movement = match positions.get(listed.member.as_bytes()) {
            Some(then) => ListedMovement::By(climbed(*then, listed)),
            None => ListedMovement::NotListedThen,
        };
    });
    Ok(Found::All)
}

/// Finds where members were. Two round trips with each shard: one for the entries of then, and one that
/// counts those before them.
///
/// # Arguments
/// `is_of`: what can be made of what shards have told. `positions`: gets those that were listed.
async fn positions_then(
    board: &BoardView<'_>,
    since: &BoardName,
    members: &[MemberId],
    is_of: &(impl Fn(&[(ShardId, MovementReply)]) -> Found + Sync),
    positions: &mut HashMap<Box<[u8]>, u64>,
) -> Result<Found, ReadError> {
    let none = vec![Vec::new(); usize::from(board.shard_count())];
    let mut by_shard: Vec<Vec<&str>> = none.clone();
    for member in members {
        if let Some(of_shard) = by_shard.get_mut(board.home_of(member).index()) {
            of_shard.push(member.as_str());
        }
    }
    let told = board.movement(since, &by_shard, &[]).await?;
    match is_of(&told) {
        Found::All => {}
        other => return Ok(other),
    }
    let mut then: Vec<SortKey<'_>> = Vec::new();
    for (shard, reply) in &told {
        let members = by_shard.get(shard.index()).into_iter().flatten();
        for (words, member) in reply.then.iter().zip(members) {
            then.extend(words.map(|words| SortKey { words, member: member.as_bytes() }));
        }
    }
    if then.is_empty() {
        return Ok(Found::All);
    }
    let counted = board.movement(since, &none, &then).await?;
    match is_of(&counted) {
        Found::All => {}
        other => return Ok(other),
    }
    let before = |nth: usize| counted.iter().filter_map(move |(_, reply)| reply.before.get(nth));
    let position = |nth: usize| before(nth).fold(1, |all: u64, of_shard| all.saturating_add(*of_shard));
    // What a capacity does not show was not listed. The one of now decides, for then as well.
    let is_listed = |position: u64| board.definition.capacity_after(position - 1) > 0;
    let found = then.iter().enumerate().map(|(nth, key)| (key.member.into(), position(nth)));
    positions.extend(found.filter(|(_, position)| is_listed(*position)));
    Ok(Found::All)
}

/// Positions are below 2^63.
fn climbed(then: u64, listed: &Listed) -> i64 {
    let signed = |position: u64| i64::try_from(position).unwrap_or(i64::MAX);
    signed(then) - signed(listed.position)
}

/// Whether what shards have told is of the instance of this span, and they are those that the answer is of.
fn are_of(told: &[(ShardId, MovementReply)], span: Span, as_of: &AsOf, has_begun: bool) -> Found {
    let latest = told.iter().map(|(_, reply)| reply.time).max().unwrap_or_default();
    if span.end.is_some_and(|end| end <= latest) {
        return Found::Later(latest);
    }
    let has_moved = |(shard, reply): &(ShardId, MovementReply)| {
        !as_of.0.iter().any(|(id, sequence)| (id, *sequence) == (shard, reply.sequence))
    };
    // Until a shard is in the instance by its time, what it holds now is what it held when that began. It has
    // to be what the answer has counted.
    let is_moving = |told: &(ShardId, MovementReply)| told.1.time < span.begin && has_moved(told);
    // One that was left out meanwhile has a part in the entries' positions.
    if told.len() < as_of.0.len() || told.iter().any(is_moving) {
        return Found::NotYet(latest);
    }
    let just_begun = |told: &(ShardId, MovementReply)| {
        let since = told.1.time.as_micros().saturating_sub(span.begin.as_micros());
        since < LONGEST_READ && has_moved(told)
    };
    if !has_begun && told.iter().any(just_begun) { Found::JustBegun } else { Found::All }
}

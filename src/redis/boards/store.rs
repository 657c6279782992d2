//! Commands that replace all entries of a board by those of others.
//!
//! What is stored each shard makes by itself, at the command's place in its log: so no write comes between.
//! Only which entries a range has is read before, over all shards: it begins and ends with an entry then.

use std::sync::Arc;

use crate::access::Grant;
use crate::board::{
    Aggregate, COMBINED_ENTRIES_MAX, Combination, Definition, KeyType, is_exact_weight, why_no_result,
};
use crate::operations::{Failure, NotStored, Operations, Reading, StoreRefused, StoredResult};
use crate::query::{BoardRead, BoardView, ReadError, trim_point_of_position};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::BoardKey;
use crate::redis::boards::read::check_shape;
use crate::redis::boards::slice::{Slice, SliceOf};
use crate::redis::boards::write::{define, made_definition};
use crate::redis::commands::{Combined, RangeOf, Stored, Storing};
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::state::{Incarnation, StoreOrder, StoreRange, StoreSource, TrimPoint, TrimSide};
use crate::types::{AsOf, BoardName, Number};
use crate::window::Instance;

/// Answers a command that stores what boards make together, or a range of one. What it has written is noted
/// in `written`, also if it fails. Returns the board that was made for it, unless this node has heard of it.
///
/// # Errors
/// When it is not done, or not on every shard. Nothing is written to the replies then.
pub async fn answer_storing(
    (operations, grant): (&Arc<Operations>, Option<&Arc<Grant>>),
    asking: &Asking<'_>,
    storing: &Storing<'_>,
    (written, replies): (&mut AsOf, &mut Replies),
) -> Result<Option<BoardName>, Refused> {
    // Boards that the connection has made may be heard of only when its writes are waited for.
    let keys = keys_of(asking, storing)?;
    let reading = asking.begin_on(&keys).await?;
    let keys = keys_of(asking, storing)?;
    let Some((to, sources)) = keys.split_first() else { return Err(Refused::syntax()) };
    let made = Arc::new(made_definition());
    let definition = to.definition.as_ref().unwrap_or(&made);
    if let Some(why) = why_no_result(definition) {
        return Err(Refused::other_board(to.board.as_str(), why));
    }
    let (order, entries) = match &storing.what {
        Stored::Combined(combined) => (combination(asking, (to, sources), combined)?, None),
        Stored::Range(_, range) => {
            let [source] = sources else { return Err(Refused::syntax()) };
            let (order, entries) = range_of(asking, &reading, (to, source), range).await?;
            (order, Some(entries))
        }
    };
    check_numbers(to, definition, &order)?;
    let refused = |why: StoreRefused| Refused::new(format!("ERR {}", why.words()));
    let most = operations.check_store(&order).map_err(refused)?;
    let mut unheard = None;
    if to.definition.is_none() {
        // Nothing comes of it, and a board without entries is no key.
        if entries.unwrap_or(most) == 0 {
            replies.count(0);
            return Ok(None);
        }
        written.note(define(operations, to, grant).await?);
        unheard = operations.registry.get(to.board.as_str()).is_none().then(|| to.board.clone());
    }
    let stored = operations.store(&order).await?;
    written.note(stored.token.clone());
    told(&stored)?;
    replies.count(stored.entries);
    Ok(unheard)
}

/// The board that is written to, and those that are read.
fn keys_of(asking: &Asking<'_>, storing: &Storing<'_>) -> Result<Vec<BoardKey>, Refused> {
    let sources: &[&[u8]] = match &storing.what {
        Stored::Combined(combined) => &combined.keys,
        Stored::Range(key, _) => std::slice::from_ref(key),
    };
    let keys = std::iter::once(&storing.to).chain(sources).map(|key| asking.board(key));
    let keys: Vec<BoardKey> = keys.collect::<Result<_, _>>()?;
    keys.first().map_or(Ok(()), BoardKey::check_writable)?;
    keys.iter().try_for_each(check_shape)?;
    Ok(keys)
}

fn combination(
    asking: &Asking<'_>,
    (to, sources): (&BoardKey, &[BoardKey]),
    combined: &Combined<'_>,
) -> Result<StoreOrder, Refused> {
    let Combined { weights, combination, aggregate, .. } = combined;
    let mut numbers = KeyType::Integer;
    let mut named = Vec::with_capacity(sources.len());
    for (key, weight) in sources.iter().zip(weights) {
        if !is_exact_weight(*weight) {
            numbers = KeyType::Float;
        }
        let board = match &key.definition {
            Some(definition) => {
                if !is_integer(definition) {
                    numbers = KeyType::Float;
                }
                let instance = key.instance(asking.operations).of(definition);
                let instance = instance.map_err(|why| Refused::from(Failure::NoBoard(why.into())))?;
                instance.name_on_shards(&key.board)
            }
            None => key.board.clone(),
        };
        named.push(StoreSource { board, weight: *weight, range: None });
    }
    let (combination, aggregate) = (*combination, *aggregate);
    Ok(StoreOrder { board: to.board.clone(), sources: named, combination, aggregate, numbers })
}

/// A range that is to be stored, and how many entries it has.
async fn range_of(
    asking: &Asking<'_>,
    reading: &Reading,
    (to, source): (&BoardKey, &BoardKey),
    range: &RangeOf<'_>,
) -> Result<(StoreOrder, u64), Refused> {
    let numbers =
        if source.definition.as_deref().is_none_or(is_integer) { KeyType::Integer } else { KeyType::Float };
    let mut order = StoreOrder {
        board: to.board.clone(),
        sources: Vec::new(),
        combination: Combination::Union,
        aggregate: Aggregate::Sum,
        numbers,
    };
    let read = EndsOf(SliceOf { board: &source.board, range, page: 0 });
    let Some(found) = asking.read(reading, source, read).await? else { return Ok((order, 0)) };
    let instance: Instance = found.instance;
    let (incarnation, ends) = found.body;
    let Ends { entries, first, last } = ends?;
    if entries > COMBINED_ENTRIES_MAX {
        return Err(Refused::new(format!(
            "ERR the range has {entries} entries, and up to {COMBINED_ENTRIES_MAX} are stored; ask for fewer"
        )));
    }
    if let (Some(first), Some(last)) = (first, last) {
        let first = TrimPoint { side: TrimSide::Better, ..first };
        let range = Some(StoreRange { incarnation, first, last });
        let board = instance.name_on_shards(&source.board);
        order.sources.push(StoreSource { board, weight: Number::Integer(1), range });
    }
    Ok((order, entries))
}

/// Reads which entry a range begins with, and which one it ends with.
struct EndsOf<'a>(SliceOf<'a>);

/// A range, by its first entry from the best one, and its last.
struct Ends {
    entries: u64,
    first: Option<TrimPoint>,
    last: Option<TrimPoint>,
}

impl BoardRead for EndsOf<'_> {
    type Answer = (Incarnation, Result<Ends, Refused>);

    fn shows_total(_: &Self::Answer) -> bool {
        false
    }

    async fn read<'r>(&'r self, board: &'r BoardView<'r>) -> Result<Self::Answer, ReadError> {
        let Slice { from, to, .. } = match self.0.read(board).await? {
            Ok(slice) => slice,
            Err(refused) => return Ok((board.incarnation, Err(refused))),
        };
        let mut ends = Ends { entries: to - from, first: None, last: None };
        if from < to {
            ends.first = trim_point_of_position(board, from + 1).await?;
            ends.last = trim_point_of_position(board, to).await?;
        }
        Ok((board.incarnation, Ok(ends)))
    }
}

fn is_integer(definition: &Definition) -> bool {
    definition.keys.iter().all(|key| key.key_type == KeyType::Integer)
}

/// # Errors
/// When the board has integers, and the result would have others.
fn check_numbers(to: &BoardKey, definition: &Definition, order: &StoreOrder) -> Result<(), Refused> {
    if is_integer(definition) && order.numbers == KeyType::Float {
        let why = "has integers, and the result would have doubles: name a board of doubles, or boards of integers \
                   and whole weights";
        return Err(Refused::other_board(to.board.as_str(), why));
    }
    Ok(())
}

/// # Errors
/// When a shard has not stored its part, or it is unknown whether it has.
fn told(stored: &StoredResult) -> Result<(), Refused> {
    let why = |failed: &NotStored| match failed {
        NotStored::Rejected(reject) => Refused::new(format!("ERR {}: {}", reject.code, reject.detail)),
        NotStored::Failed(why) => why.clone().into(),
    };
    let Some(first) = stored.failed.first().map(why) else { return Ok(()) };
    let is_same = stored.failed.iter().map(why).all(|why| why.code() == first.code());
    if is_same && stored.failed.len() == stored.shards {
        return Err(first);
    }
    let (done, shards) = (stored.shards - stored.failed.len(), stored.shards);
    Err(Refused::new(format!(
        "UNKNOWN {done} of {shards} shards are known to have stored their part; of another: {}",
        first.text()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Reject, RejectCode};

    #[test]
    fn what_is_told_is_true_of_all_shards() {
        let stored = |shards, failed| StoredResult { entries: 3, token: AsOf::default(), shards, failed };
        let rejected = || NotStored::Rejected(Reject::new(RejectCode::TooLarge, "it is"));
        assert_eq!(told(&stored(2, Vec::new())), Ok(()));
        let all = told(&stored(2, vec![rejected(), rejected()])).expect_err("it failed");
        assert_eq!(all.text(), "ERR too_large: it is");
        let one = told(&stored(2, vec![rejected()])).expect_err("it failed");
        assert!(one.text().starts_with("UNKNOWN 1 of 2 shards"), "{}", one.text());
        let differing = vec![rejected(), NotStored::Failed(Failure::Unanswered)];
        let differing = told(&stored(2, differing)).expect_err("it failed");
        assert!(differing.text().starts_with("UNKNOWN 0 of 2 shards"), "{}", differing.text());
    }
}

//! Commands about boards as keys. A board without entries is no key, as in Redis: its definition stays.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::board::Definition;
use crate::operations::{Failure, Operations, Reading};
use crate::query::{InstanceAsked, TotalOnly, TotalsOf, WindowChoice};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::{BoardKey, Shape};
use crate::redis::boards::pace::{LOOKUP, Pace};
use crate::redis::boards::pattern::Pattern;
use crate::redis::boards::scan_order::{ScanOrder, each_name};
use crate::redis::commands::{Keyspace, Scan};
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::types::{AsOf, BoardName, count};

/// What `OBJECT ENCODING` says: whatever the number of entries, they are kept in order.
const ENCODING: &str = "skiplist";
/// What an entry takes in memory, about, with its member's id.
const ENTRY_BYTES: u64 = 64;

/// What a board is to `TYPE`.
const SORTED_SET: &str = "zset";
/// The same of a board of several keys, or of the kind `top_k`.
const OTHER_BOARD: &str = "board";
/// Boards whose entries are counted at once, under one hold of the shards.
const TOTALS_AT_ONCE: usize = 100;
/// Names that a call of `SCAN` passes over, at least, to find boards that the token gives access to.
const NAMES_PER_SCAN: usize = 1_000;

/// Answers a command about boards.
///
/// # Arguments
/// `written`: what it has written is added, also if it is refused in the midst of it.
///
/// # Errors
/// When it cannot be answered. What was written to the replies is to be forgotten then.
pub async fn answer_keyspace(
    operations: &Arc<Operations>,
    (asking, order): (&Asking<'_>, &ScanOrder),
    command: &Keyspace<'_>,
    replies: &mut Replies,
    written: &mut AsOf,
) -> Result<(), Refused> {
    match command {
        Keyspace::Exists(keys) => {
            for key in keys {
                asking.board(key)?;
            }
            let (mut found, mut pace) = (0, Pace::begin());
            for key in keys {
                found += u64::from(has_entries(asking, &asking.board(key)?).await?);
                pace.note(asking, LOOKUP).await?;
            }
            replies.count(found);
        }
        Keyspace::Type(key) => {
            let key = asking.board(key)?;
            let is_there = has_entries(asking, &key).await?;
            let of_type = key.definition.as_ref().map(|definition| Shape::of(&key.board, definition));
            replies.word(match of_type {
                Some(Ok(_)) if is_there => SORTED_SET,
                Some(Err(_)) if is_there => OTHER_BOARD,
                _ => "none",
            });
        }
        Keyspace::Encoding(key) => {
            if has_entries(asking, &asking.board(key)?).await? {
                replies.text(ENCODING);
            } else {
                replies.null();
            }
        }
        Keyspace::Memory(key) => {
            let key = asking.board(key)?;
            let reading = asking.begin(Some(&key.board)).await?;
            match asking.read(&reading, &key, TotalOnly).await? {
                Some(answer) if answer.total > 0 => replies.count(answer.total * ENTRY_BYTES),
                _ => replies.null(),
            }
        }
        Keyspace::Delete(keys) => delete(operations, asking, keys, replies, written).await?,
        Keyspace::Keys(pattern) => {
            let (begin, mut found) = (replies.mark(), 0);
            let pattern = Pattern::new(pattern)?;
            each_with_entries(asking, Some(&pattern), |name| {
                replies.text(name.as_str());
                found += 1;
                asking.count(replies)
            })
            .await?;
            replies.insert_array(begin, found);
        }
        Keyspace::Scan(scan) => scanned((asking, order), scan, replies).await?,
        Keyspace::Size => {
            let mut found = 0;
            each_with_entries(asking, None, |_| {
                found += 1;
                Ok(())
            })
            .await?;
            replies.count(found);
        }
    }
    Ok(())
}

/// Boards that the token gives access to, whether they have entries or not.
pub fn board_count(asking: &Asking<'_>) -> u64 {
    let prefixes = asking.grant.and_then(|grant| grant.board_prefixes.as_deref());
    count(asking.operations.registry.count_named(prefixes))
}

async fn has_entries(asking: &Asking<'_>, key: &BoardKey) -> Result<bool, Refused> {
    let reading = asking.begin(Some(&key.board)).await?;
    let found = asking.read(&reading, key, TotalOnly).await?;
    Ok(found.is_some_and(|answer| answer.total > 0))
}

/// Has each board visited that has entries, that the token gives access to, and whose name is as a pattern
/// says.
async fn each_with_entries(
    asking: &Asking<'_>,
    pattern: Option<&Pattern>,
    mut visit: impl FnMut(BoardName) -> Result<(), Refused> + Send,
) -> Result<(), Refused> {
    let reading = asking.begin(None).await?;
    let mut names = Vec::new();
    each_name(asking, |name| {
        let is_allowed = asking.grant.is_none_or(|grant| grant.allows_board(name.as_str()));
        if is_allowed && pattern.is_none_or(|pattern| pattern.matches(name.as_str().as_bytes())) {
            names.push(name);
        }
    })
    .await?;
    let mut pace = Pace::begin();
    for part in names.chunks(TOTALS_AT_ONCE) {
        for (name, _) in with_entries(asking, &reading, part).await? {
            visit(name)?;
        }
        pace.note(asking, LOOKUP * part.len()).await?;
    }
    Ok(())
}

/// Those of some boards that have entries.
async fn with_entries(
    asking: &Asking<'_>,
    reading: &Reading,
    names: &[BoardName],
) -> Result<Vec<(BoardName, Arc<Definition>)>, Refused> {
    let known = |name: &BoardName| Some((name.clone(), asking.operations.registry.get(name.as_str())?));
    let boards: Vec<_> = names.iter().filter_map(known).collect();
    let instance = InstanceAsked { choice: WindowChoice::Default, now: asking.operations.now() };
    let (totals, _) = asking.read_shards(reading, &TotalsOf { boards: &boards, instance }).await?;
    let has_entries = totals.into_iter().map(|total| total.is_some_and(|(_, total)| total > 0));
    let found = boards.into_iter().zip(has_entries).filter(|(_, has)| *has);
    Ok(found.map(|((name, known), _)| (name, known.definition)).collect())
}

async fn scanned(
    (asking, order): (&Asking<'_>, &ScanOrder),
    scan: &Scan<'_>,
    replies: &mut Replies,
) -> Result<(), Refused> {
    let Scan { cursor, pattern, count: wanted, of_type } = scan;
    let pattern = pattern.map(Pattern::new).transpose()?;
    let reading = asking.begin(None).await?;
    let names = order.names(asking, *cursor == 0).await?;
    let wanted = usize::try_from(*wanted).unwrap_or(usize::MAX);
    let begin = names.partition_point(|(place, _)| place <= cursor);
    let (mut looked_at, mut end, mut last) = (Vec::new(), begin, 0);
    // Names of one place are told together.
    for (place, name) in names.iter().skip(begin) {
        let is_enough = looked_at.len() >= wanted || end - begin >= wanted.max(NAMES_PER_SCAN);
        if is_enough && *place != last {
            break;
        }
        (end, last) = (end + 1, *place);
        if asking.grant.is_none_or(|grant| grant.allows_board(name.as_str())) {
            looked_at.push(name.clone());
        }
    }
    replies.array(2);
    let next = if end == names.len() { 0 } else { last };
    replies.text(&next.to_string());
    let (begin, mut found, mut pace) = (replies.mark(), 0, Pace::begin());
    for part in looked_at.chunks(TOTALS_AT_ONCE) {
        for (name, definition) in with_entries(asking, &reading, part).await? {
            let named = if Shape::of(&name, &definition).is_ok() { SORTED_SET } else { OTHER_BOARD };
            if pattern.as_ref().is_none_or(|pattern| pattern.matches(name.as_str().as_bytes()))
                && of_type.is_none_or(|of_type| of_type.eq_ignore_ascii_case(named.as_bytes()))
            {
                replies.text(name.as_str());
                found += 1;
            }
        }
        asking.count(replies)?;
        pace.note(asking, LOOKUP * part.len()).await?;
    }
    replies.insert_array(begin, found);
    Ok(())
}

/// Drops boards, one after the other.
async fn delete(
    operations: &Arc<Operations>,
    asking: &Asking<'_>,
    keys: &[&[u8]],
    replies: &mut Replies,
    written: &mut AsOf,
) -> Result<(), Refused> {
    let mut boards = Vec::new();
    let mut seen = BTreeSet::new();
    for key in keys {
        let key = asking.board(key)?;
        key.check_writable()?;
        if seen.insert(key.board.clone()) {
            boards.push(key);
        }
    }
    let (mut dropped, mut pace) = (0, Pace::begin());
    for board in &boards {
        pace.note(asking, LOOKUP).await?;
        let after = |why: Refused| {
            if dropped == 0 {
                return why;
            }
            Refused::new(format!("UNKNOWN {dropped} of the boards were dropped, and then: {}", why.text()))
        };
        if !has_entries(asking, board).await.map_err(after)? {
            continue;
        }
        let name = board.board.clone();
        let dropping = operations.change_boards(move |boards| boards.drop(name), |_| ()).await;
        let dropping = dropping.map_err(|why| match why {
            // Some shards may have dropped it.
            Failure::NotPublished(why) | Failure::NotPublishedThere(_, why) => {
                Refused::new(format!("UNKNOWN the board {} may be dropped: {why}", board.board))
            }
            why => why.into(),
        });
        written.note(dropping.map_err(after)?);
        dropped += 1;
        tracing::info!(board = %board.board, "dropped by DEL");
    }
    replies.count(dropped);
    Ok(())
}

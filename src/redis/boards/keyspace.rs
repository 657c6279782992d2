//! Commands about boards as keys. A board without entries is no key, as in Redis: its definition stays.

use std::sync::Arc;

use crate::board::Definition;
use crate::operations::Operations;
use crate::query::{InstanceAsked, TotalOnly, TotalsOf, WindowChoice};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::{BoardKey, Shape};
use crate::redis::boards::pattern::matches;
use crate::redis::commands::{Keyspace, Scan};
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::types::{AsOf, BoardName, count, fnv1a_32};

/// What `OBJECT ENCODING` says: whatever the number of entries, they are kept in order.
const ENCODING: &str = "skiplist";
/// What an entry takes in memory, about, with its member's id.
const ENTRY_BYTES: u64 = 64;

/// What a board is to `TYPE`.
const SORTED_SET: &str = "zset";
/// The same of a board of several keys, or of the kind `top_k`.
const OTHER_BOARD: &str = "board";

/// Answers a command about boards. Returns what it has written.
///
/// # Errors
/// When it cannot be answered. Nothing is written to the replies then.
pub async fn answer_keyspace(
    operations: &Arc<Operations>,
    asking: &Asking<'_>,
    command: &Keyspace<'_>,
    replies: &mut Replies,
) -> Result<Option<AsOf>, Refused> {
    match command {
        Keyspace::Exists(keys) => {
            let boards = keys.iter().map(|key| asking.board(key)).collect::<Result<Vec<_>, _>>()?;
            let mut found = 0;
            for board in &boards {
                found += u64::from(has_entries(asking, board).await?);
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
        Keyspace::Delete(keys) => return delete(operations, asking, keys, replies).await.map(Some),
        Keyspace::Keys(pattern) => {
            let names: Vec<BoardName> =
                with_entries(asking, |name| matches(pattern, name.as_str().as_bytes()))
                    .await?
                    .into_iter()
                    .map(|(name, _)| name)
                    .collect();
            replies.array(names.len());
            for name in &names {
                replies.text(name.as_str());
            }
        }
        Keyspace::Scan(scan) => scanned(asking, scan, replies).await?,
        Keyspace::Size => replies.count(board_count(asking).await?),
    }
    Ok(None)
}

/// Boards with entries that the token gives access to.
///
/// # Errors
/// When the boards cannot be read.
pub async fn board_count(asking: &Asking<'_>) -> Result<u64, Refused> {
    Ok(count(with_entries(asking, |_| true).await?.len()))
}

async fn has_entries(asking: &Asking<'_>, key: &BoardKey) -> Result<bool, Refused> {
    let reading = asking.begin(Some(&key.board)).await?;
    let found = asking.read(&reading, key, TotalOnly).await?;
    Ok(found.is_some_and(|answer| answer.total > 0))
}

/// Boards with entries that the token gives access to, by name.
async fn with_entries(
    asking: &Asking<'_>,
    kept: impl Fn(&BoardName) -> bool,
) -> Result<Vec<(BoardName, Arc<Definition>)>, Refused> {
    let reading = asking.begin(None).await?;
    let is_allowed = |name: &BoardName| asking.grant.is_none_or(|grant| grant.allows_board(name.as_str()));
    let mut boards = asking.operations.registry.all();
    boards.retain(|(name, _)| is_allowed(name) && kept(name));
    let instance = InstanceAsked { choice: WindowChoice::Default, now: asking.operations.now() };
    let read = TotalsOf { boards: &boards, instance };
    let (totals, _) = asking.read_shards(&reading, &read).await?;
    let has_entries: Vec<bool> =
        totals.iter().map(|total| total.is_some_and(|(_, total)| total > 0)).collect();
    Ok(boards
        .into_iter()
        .zip(has_entries)
        .filter(|(_, has)| *has)
        .map(|((name, known), _)| (name, known.definition))
        .collect())
}

/// Goes through boards by the hash of their names, so that one that is there all the time is told once,
/// whatever comes and goes.
async fn scanned(asking: &Asking<'_>, scan: &Scan<'_>, replies: &mut Replies) -> Result<(), Refused> {
    let Scan { cursor, pattern, count: wanted, of_type } = scan;
    let place = |name: &BoardName| u64::from(fnv1a_32(name.as_str().as_bytes())) + 1;
    let mut boards: Vec<(u64, BoardName, Arc<Definition>)> =
        with_entries(asking, |name| place(name) > *cursor)
            .await?
            .into_iter()
            .map(|(name, known)| (place(&name), name, known))
            .collect();
    boards.sort_by_key(|(place, _, _)| *place);
    let taken = usize::try_from(*wanted).unwrap_or(usize::MAX).min(boards.len());
    let last = boards.get(taken.wrapping_sub(1)).map_or(0, |(place, _, _)| *place);
    let end = boards.partition_point(|(place, _, _)| *place <= last);
    let next = if end == boards.len() { 0 } else { last };
    boards.truncate(end);
    let is_told = |name: &BoardName, known: &Arc<Definition>| {
        let named = if Shape::of(name, known).is_ok() { SORTED_SET } else { OTHER_BOARD };
        pattern.is_none_or(|pattern| matches(pattern, name.as_str().as_bytes()))
            && of_type.is_none_or(|of_type| of_type.eq_ignore_ascii_case(named.as_bytes()))
    };
    boards.retain(|(_, name, known)| is_told(name, known));
    replies.array(2);
    replies.text(&next.to_string());
    replies.array(boards.len());
    for (_, name, _) in &boards {
        replies.text(name.as_str());
    }
    Ok(())
}

/// Drops boards, one after the other.
async fn delete(
    operations: &Arc<Operations>,
    asking: &Asking<'_>,
    keys: &[&[u8]],
    replies: &mut Replies,
) -> Result<AsOf, Refused> {
    let boards = keys.iter().map(|key| asking.board(key)).collect::<Result<Vec<_>, _>>()?;
    boards.iter().try_for_each(BoardKey::check_writable)?;
    let (mut dropped, mut written) = (0, AsOf::default());
    for board in &boards {
        if !has_entries(asking, board).await? {
            continue;
        }
        let name = board.board.clone();
        let token = operations.change_boards(move |boards| boards.drop(name), |_| ()).await;
        let token = token.map_err(|why| {
            let why = Refused::from(why);
            if dropped == 0 {
                return why;
            }
            Refused::new(format!("{}; {dropped} of the boards were dropped before", why.text()))
        })?;
        dropped += 1;
        written = token;
        tracing::info!(board = %board.board, "dropped by DEL");
    }
    replies.count(dropped);
    Ok(written)
}

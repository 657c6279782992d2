//! When boards end, as the expiry of keys.
//!
//! Knows: that a time that is over drops the board at once, as in Redis. Must not know: how a board ends.

use std::sync::Arc;

use crate::operations::{Failure, Operations};
use crate::query::WindowChoice;
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::BoardKey;
use crate::redis::commands::{Expire, TimeAsked, WhenToExpire};
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::state::LEAP;
use crate::types::{AsOf, BoardName, Timestamp};
use crate::writer::EndingBoard;

/// `TTL` of a key that does not end, and of one that is not there.
const ENDLESS: i64 = -1;
const NO_KEY: i64 = -2;

/// Replies with when a board ends.
///
/// # Errors
/// When it cannot be read.
pub async fn ends(
    asking: &Asking<'_>,
    key: &[u8],
    asked: TimeAsked,
    replies: &mut Replies,
) -> Result<(), Refused> {
    let key = asking.board(key)?;
    if !asking.has_entries(&key).await? {
        replies.integer(NO_KEY);
        return Ok(());
    }
    let Some(at) = asking.operations.board_end(&key.board).await?.and_then(|end| end.at) else {
        replies.integer(ENDLESS);
        return Ok(());
    };
    let micros = if asked.is_time {
        at.as_micros()
    } else {
        // It is there until it is dropped.
        at.as_micros().saturating_sub(asking.operations.now().as_micros()).max(0)
    };
    replies.integer(micros.saturating_add(asked.unit / 2) / asked.unit);
    Ok(())
}

/// Whether the end of a key's board has come. A clock that is far ahead of the shards' time ends nothing, as
/// it does not where boards end by themselves.
pub fn is_over(operations: &Operations, key: &BoardKey) -> bool {
    let at = key.definition.as_ref().and_then(|definition| definition.expires_at);
    let (now, node) = (operations.now(), &operations.node);
    // Without shards in memory, it is the server's clock.
    let is_believed = || node.shards.is_empty() || now <= node.time().plus(LEAP);
    key.choice == WindowChoice::Default && at.is_some_and(|at| at <= now) && is_believed()
}

/// Drops the board of a key that is over before a command changes it: what is written is of the key's next
/// life then, and not dropped with what is over. Redis removes a key that has expired when it is used, too.
///
/// # Errors
/// When it could not be dropped.
pub async fn end_over(operations: &Arc<Operations>, key: &BoardKey) -> Result<(), Refused> {
    let name = key.board.clone();
    let Some(known) = operations.registry.get(name.as_str()) else { return Ok(()) };
    let life = known.incarnation;
    let ending = EndingBoard { name: name.clone(), known, being_dropped: false };
    operations.end_board(ending, operations.now()).await;
    if operations.registry.get(name.as_str()).is_some_and(|known| known.incarnation == life) {
        return Err(Refused::new(format!(
            "TRYAGAIN the key has expired, and its board {name} is not dropped yet; GET /v1/status says why nothing \
             is written, if it stays so"
        )));
    }
    Ok(())
}

/// The same for keys that a command names, as far as they are boards.
///
/// # Errors
/// When one could not be dropped.
pub async fn end_those_over<'k>(
    operations: &Arc<Operations>,
    asking: &Asking<'_>,
    keys: impl IntoIterator<Item = &'k [u8]>,
) -> Result<(), Refused> {
    for key in keys {
        // What is refused is refused by the command, in its own order.
        if let Ok(key) = asking.board(key)
            && is_over(operations, &key)
        {
            end_over(operations, &key).await?;
        }
    }
    Ok(())
}

/// Has a board end at a time.
///
/// # Errors
/// When it cannot be changed.
pub async fn expire(
    operations: &Arc<Operations>,
    asking: &Asking<'_>,
    Expire { key, micros, is_time, when, name }: &Expire<'_>,
    replies: &mut Replies,
    written: &mut AsOf,
) -> Result<(), Refused> {
    let key = asking.board(key)?;
    key.check_writable()?;
    if !asking.has_entries(&key).await? {
        replies.count(0);
        return Ok(());
    }
    let now = operations.now();
    let begin = if *is_time { 0 } else { now.as_micros() };
    let micros = begin.checked_add(*micros);
    let invalid = || Refused::new(format!("ERR invalid expire time in '{name}' command"));
    // Before 1970 is over, too.
    let at = Timestamp::from_micros(micros.ok_or_else(invalid)?.max(0)).map_err(|_| invalid())?;
    if *when != WhenToExpire::default() {
        let before = operations.board_end(&key.board).await?.and_then(|end| end.at);
        if !applies(*when, before, at) {
            replies.count(0);
            return Ok(());
        }
    }
    if at <= now {
        drop_board(operations, &key.board, written).await?;
        replies.count(1);
        return Ok(());
    }
    let board = key.board.clone();
    let token = operations.change_boards(move |boards| boards.expire(board, Some(at)), |_| ()).await?;
    replies.count(u64::from(token.is_some()));
    if let Some(token) = token {
        written.note(token);
        tracing::info!(board = %key.board, %at, "ends by EXPIRE");
    }
    Ok(())
}

/// Has a board not end by itself.
///
/// # Errors
/// When it cannot be changed.
pub async fn persist(
    operations: &Arc<Operations>,
    asking: &Asking<'_>,
    key: &[u8],
    replies: &mut Replies,
    written: &mut AsOf,
) -> Result<(), Refused> {
    let key = asking.board(key)?;
    key.check_writable()?;
    let ends = asking.has_entries(&key).await?
        && operations
            .board_end(&key.board)
            .await?
            .is_some_and(|end| end.known.definition.may_end_at().is_some());
    let board = key.board.clone();
    let token = if ends {
        operations.change_boards(move |boards| boards.expire(board, None), |_| ()).await?
    } else {
        None
    };
    replies.count(u64::from(token.is_some()));
    if let Some(token) = token {
        written.note(token);
        tracing::info!(board = %key.board, "does not end by itself any more, by PERSIST");
    }
    Ok(())
}

/// Drops a board.
///
/// # Errors
/// When there is none, or a shard does not take the drop.
pub(super) async fn drop_board(
    operations: &Arc<Operations>,
    board: &BoardName,
    written: &mut AsOf,
) -> Result<(), Refused> {
    let name = board.clone();
    let dropping = operations.change_boards(move |boards| boards.drop(name), |_| ()).await;
    let dropping = dropping.map_err(|why| match why {
        // Some shards may have dropped it.
        Failure::NotPublished(why) | Failure::NotPublishedThere(_, why) => {
            Refused::new(format!("UNKNOWN the board {board} may be dropped: {why}"))
        }
        why => why.into(),
    });
    written.note(dropping?);
    tracing::info!(%board, "dropped by a client of Redis' protocol");
    Ok(())
}

/// Whether an end may be set that depends on the one before. None is later than all.
fn applies(when: WhenToExpire, before: Option<Timestamp>, at: Timestamp) -> bool {
    let WhenToExpire { if_endless, if_ending, if_later, if_earlier } = when;
    (!if_endless || before.is_none())
        && (!if_ending || before.is_some())
        && (!if_later || before.is_some_and(|before| at > before))
        && (!if_earlier || before.is_none_or(|before| at < before))
}

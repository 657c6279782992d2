//! Commands about boards as keys. A board without entries is no key, as in Redis: its definition stays.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::access::Grant;
use crate::board::Definition;
use crate::operations::{Operations, Reading};
use crate::query::{InstanceAsked, TotalOnly, TotalsOf, WindowChoice};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::expiry::{self, drop_board};
use crate::redis::boards::key::Shape;
use crate::redis::boards::pace::{LOOKUP, Pace};
use crate::redis::boards::pattern::Pattern;
use crate::redis::commands::{Keyspace, Scan};
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::state::Incarnation;
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
/// Names that are taken from the registry at once, under its lock.
const NAMES_AT_ONCE: usize = 1_000;
/// Names that a call of `SCAN` passes over, at most, to find boards that the token gives access to.
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
    asking: &Asking<'_>,
    command: &Keyspace<'_>,
    replies: &mut Replies,
    written: &mut AsOf,
) -> Result<(), Refused> {
    match command {
        Keyspace::Exists(keys) => {
            let (mut found, mut pace) = (0, Pace::begin());
            for key in keys {
                found += u64::from(asking.has_entries(&asking.board(key)?).await?);
                pace.note(asking, LOOKUP).await?;
            }
            replies.count(found);
        }
        Keyspace::Type(key) => {
            let key = asking.board(key)?;
            let is_there = asking.has_entries(&key).await?;
            let of_type = key.definition.as_ref().map(|definition| Shape::of(&key.board, definition));
            replies.word(match of_type {
                Some(Ok(_)) if is_there => SORTED_SET,
                Some(Err(_)) if is_there => OTHER_BOARD,
                _ => "none",
            });
        }
        Keyspace::Encoding(key) => {
            if asking.has_entries(&asking.board(key)?).await? {
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
        Keyspace::Scan(scan) => scanned(asking, scan, replies).await?,
        Keyspace::Ends(key, asked) => expiry::ends(asking, key, *asked, replies).await?,
        Keyspace::Expire(asked) => expiry::expire(operations, asking, asked, replies, written).await?,
        Keyspace::Persist(key) => expiry::persist(operations, asking, key, replies, written).await?,
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
///
/// # Errors
/// When the client has left.
pub async fn board_count(asking: &Asking<'_>) -> Result<u64, Refused> {
    if asking.grant.is_none_or(Grant::allows_every_board) {
        return Ok(count(asking.operations.registry.count_named(None)));
    }
    let (mut names, mut pace, mut found) = (Names::of(asking, ""), Pace::begin(), 0);
    while let Some((page, looked_at)) = names.next() {
        found += count(page.len());
        pace.note(asking, looked_at).await?;
    }
    Ok(found)
}

/// The names of boards that the token gives access to, page by page.
struct Names<'a> {
    asking: &'a Asking<'a>,
    prefix: &'a str,
    after: Option<BoardName>,
    is_over: bool,
}

impl<'a> Names<'a> {
    /// Those that begin with a prefix.
    fn of(asking: &'a Asking<'a>, prefix: &'a str) -> Self {
        Self { asking, prefix, after: None, is_over: false }
    }

    /// Some more, and how many names were looked at for them.
    fn next(&mut self) -> Option<(Vec<BoardName>, usize)> {
        if self.is_over {
            return None;
        }
        let from = match &self.after {
            Some(after) => Bound::Excluded(after.as_str()),
            None => Bound::Included(self.prefix),
        };
        let page = self.asking.operations.registry.page(from, NAMES_AT_ONCE, |_| true);
        let looked_at = page.len();
        let mut names: Vec<BoardName> = page.into_iter().map(|(name, _)| name).collect();
        names.truncate(names.partition_point(|name| name.as_str().starts_with(self.prefix)));
        self.is_over = names.len() < NAMES_AT_ONCE;
        self.after = names.last().cloned();
        names.retain(|name| self.asking.allows(name));
        Some((names, looked_at))
    }
}

/// Has each board visited that has entries, that the token gives access to, and whose name is as a pattern
/// says.
async fn each_with_entries(
    asking: &Asking<'_>,
    pattern: Option<&Pattern>,
    mut visit: impl FnMut(BoardName) -> Result<(), Refused> + Send,
) -> Result<(), Refused> {
    let reading = asking.begin(None).await?;
    let (mut names, mut pace) = (Names::of(asking, pattern.map_or("", Pattern::prefix)), Pace::begin());
    while let Some((mut page, looked_at)) = names.next() {
        page.retain(|name| pattern.is_none_or(|pattern| pattern.matches(name.as_str().as_bytes())));
        pace.note(asking, looked_at).await?;
        for part in page.chunks(TOTALS_AT_ONCE) {
            for (name, _) in with_entries(asking, &reading, part).await? {
                visit(name)?;
            }
            pace.note(asking, LOOKUP * part.len()).await?;
        }
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

/// Replies with boards in the order in which they were made, and with the last one's number: what was there
/// all the time is told, whatever comes and goes.
async fn scanned(asking: &Asking<'_>, scan: &Scan<'_>, replies: &mut Replies) -> Result<(), Refused> {
    let Scan { cursor, pattern, count: wanted, of_type } = scan;
    let pattern = pattern.map(Pattern::new).transpose()?;
    let reading = asking.begin(None).await?;
    let wanted = usize::try_from(*wanted).unwrap_or(usize::MAX);
    let (mut looked_at, mut passed, mut pace) = (Vec::new(), 0, Pace::begin());
    let mut last = Incarnation(*cursor);
    let next = loop {
        let at_once = (wanted - looked_at.len()).min(NAMES_AT_ONCE);
        let page = asking.operations.registry.made_after(last, at_once);
        let length = page.len();
        passed += length;
        last = page.last().map_or(last, |(made, _)| *made);
        looked_at.extend(page.into_iter().map(|(_, name)| name).filter(|name| asking.allows(name)));
        if length < at_once {
            break 0;
        }
        if looked_at.len() >= wanted || passed >= wanted.max(NAMES_PER_SCAN) {
            break last.0;
        }
        pace.note(asking, length).await?;
    };
    replies.array(2);
    replies.text(&next.to_string());
    let (begin, mut found) = (replies.mark(), 0);
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
    let (mut boards, mut seen, mut pace) = (Vec::new(), BTreeSet::new(), Pace::begin());
    for key in keys {
        let key = asking.board(key)?;
        key.check_writable()?;
        if seen.insert(key.board.clone()) {
            boards.push(key);
        }
        pace.note(asking, 1).await?;
    }
    let mut dropped = 0;
    for board in &boards {
        let after = |why: Refused| {
            if dropped == 0 {
                return why;
            }
            Refused::new(format!("UNKNOWN {dropped} of the boards were dropped, and then: {}", why.text()))
        };
        pace.note(asking, LOOKUP).await.map_err(after)?;
        if !asking.has_entries(board).await.map_err(after)? {
            continue;
        }
        drop_board(operations, &board.board, written).await.map_err(after)?;
        dropped += 1;
    }
    replies.count(dropped);
    Ok(())
}

//! Commands that read one board.

use std::collections::HashMap;
use std::sync::Arc;

use crate::operations::Reading;
use crate::query::{Listed, LookupMembers, MemberOf, TotalOnly};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::{BoardKey, Shape, member};
use crate::redis::boards::pace::{LOOKUP, Pace};
use crate::redis::boards::pattern::Pattern;
use crate::redis::boards::random;
use crate::redis::boards::range::{EntryForm, slice, write_range};
use crate::redis::boards::slice::PAGE;
use crate::redis::commands::{EntryScan, RangeOf, Read, Selection};
use crate::redis::frames::Replies;
use crate::redis::number::digits_of as digits;
use crate::redis::refused::Refused;
use crate::types::{MemberId, Score, count};

/// Members that are looked up at once, under one hold of the shards.
const LOOKUPS_AT_ONCE: usize = 256;

/// Answers a command that reads a board.
///
/// # Errors
/// When it cannot be answered. What was written to the replies is to be forgotten then.
pub async fn answer_read(
    asking: &Asking<'_>,
    key: &[u8],
    read: &Read<'_>,
    replies: &mut Replies,
) -> Result<(), Refused> {
    let key = asking.board(key)?;
    check_shape(&key)?;
    let reading = asking.begin(Some(&key.board)).await?;
    match read {
        Read::Score(id) => match entry_of(asking, &reading, &key, id).await? {
            Some((_, _, score)) => replies.double(&digits(&score)),
            None => replies.null(),
        },
        Read::Scores(ids) => scores(asking, &reading, &key, ids, replies).await?,
        Read::Card => {
            let found = asking.read(&reading, &key, TotalOnly).await?;
            replies.count(found.map_or(0, |answer| answer.total));
        }
        Read::Count(selection) => {
            let range = RangeOf { selection: *selection, descending: false, limit: None, with_scores: false };
            let slice = slice(asking, &reading, &key, &range, 0).await?;
            replies.count(slice.map_or(0, |slice| slice.to - slice.from));
        }
        Read::Rank { member, descending, with_score } => {
            let found = entry_of(asking, &reading, &key, member).await?;
            let Some((from_best, from_worst, score)) = found else {
                if *with_score {
                    replies.null_array();
                } else {
                    replies.null();
                }
                return Ok(());
            };
            let shape = shape_of(asking, &key)?;
            let rank = if *descending == shape.best_is_greatest { from_best } else { from_worst };
            if *with_score {
                replies.array(2);
            }
            replies.count(rank);
            if *with_score {
                replies.double(&digits(&score));
            }
        }
        Read::Range(range) => {
            let (form, all) = (EntryForm::of(range.with_scores), |_: &Listed| true);
            write_range(asking, (&reading, &key), range, form, all, replies).await?;
        }
        Read::Scan(scan) => scanned(asking, (&reading, &key), scan, replies).await?,
        Read::Random { count: None, .. } => match random::draw_one(asking, &reading, &key).await? {
            Some(listed) => replies.text(&listed.member),
            None => replies.null(),
        },
        Read::Random { count: Some(wanted), with_scores } => {
            let form = EntryForm::of(*with_scores);
            random::draw(asking, (&reading, &key), *wanted, form, replies).await?;
        }
    }
    Ok(())
}

/// # Errors
/// When there is a board whose entries have no single score.
pub fn check_shape(key: &BoardKey) -> Result<(), Refused> {
    key.definition.as_ref().map_or(Ok(()), |definition| Shape::of(&key.board, definition).map(drop))
}

/// The shape of a board that was just read.
fn shape_of(asking: &Asking<'_>, key: &BoardKey) -> Result<Shape, Refused> {
    let known = asking.operations.registry.get(key.board.as_str()).map(|known| known.definition);
    let definition = known.or_else(|| key.definition.clone());
    let definition = definition.ok_or_else(|| Refused::new("TRYAGAIN the board was dropped meanwhile"))?;
    Shape::of(&key.board, &definition)
}

/// Entries before a member's, those behind it, and its score.
async fn entry_of(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
    id: &[u8],
) -> Result<Option<(u64, u64, Score)>, Refused> {
    let member = member(id)?;
    let found = asking.read(reading, key, MemberOf { member }).await?.and_then(|answer| answer.body);
    Ok(found.map(|entry| {
        let before = entry.listed.position.saturating_sub(1);
        (before, entry.standing.total.saturating_sub(entry.listed.position), entry.listed.score)
    }))
}

async fn scores(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
    ids: &[&[u8]],
    replies: &mut Replies,
) -> Result<(), Refused> {
    let mut pace = Pace::begin();
    replies.array(ids.len());
    for part in ids.chunks(LOOKUPS_AT_ONCE) {
        let members: Vec<MemberId> = part.iter().map(|id| member(id)).collect::<Result<_, _>>()?;
        let members: Arc<[MemberId]> = members.into();
        let read = LookupMembers { members: Arc::clone(&members) };
        let answer = asking.read(reading, key, read).await?;
        let entries = answer.into_iter().flat_map(|answer| answer.body.entries);
        let found: HashMap<Box<str>, Score> =
            entries.map(|(listed, _)| (listed.member, listed.score)).collect();
        for member in &*members {
            match found.get(member.as_str()) {
                Some(score) => replies.double(&digits(score)),
                None => replies.null(),
            }
        }
        asking.count(replies)?;
        pace.note(asking, LOOKUP * part.len()).await?;
    }
    Ok(())
}

/// Replies with entries from a place on, counted from the least score, and with the place behind them.
async fn scanned(
    asking: &Asking<'_>,
    (reading, key): (&Reading, &BoardKey),
    scan: &EntryScan<'_>,
    replies: &mut Replies,
) -> Result<(), Refused> {
    let pattern = scan.pattern.map(Pattern::new).transpose()?;
    let is_wanted = |entry: &Listed| match &pattern {
        Some(pattern) => pattern.matches(entry.member.as_bytes()),
        None => true,
    };
    let length = scan.count.max(count(PAGE));
    let end = scan.cursor.saturating_add(length);
    // Of a board that has no such places, nothing is left.
    let place = |index: u64| i64::try_from(index).unwrap_or(i64::MAX);
    let selection = Selection::Index(place(scan.cursor), place(end - 1));
    let range = RangeOf { selection, descending: false, limit: None, with_scores: true };
    let total = asking.read(reading, key, TotalOnly).await?.map_or(0, |answer| answer.total);
    replies.array(2);
    let next = if end < total { end } else { 0 };
    replies.text(&next.to_string());
    let form = if scan.with_scores { EntryForm::Texts } else { EntryForm::Members };
    write_range(asking, (reading, key), &range, form, is_wanted, replies).await?;
    Ok(())
}

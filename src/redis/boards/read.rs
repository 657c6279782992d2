//! Commands that read one board.

use std::sync::Arc;

use crate::operations::Reading;
use crate::query::{Listed, LookupMembers, MemberOf, TotalOnly};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::{BoardKey, Shape, member};
use crate::redis::boards::pattern::matches;
use crate::redis::boards::random;
use crate::redis::boards::range::{EVERYTHING, entries_of, slice};
use crate::redis::boards::slice::PAGE;
use crate::redis::commands::{RangeOf, Read};
use crate::redis::frames::{Protocol, Replies};
use crate::redis::number::digits_of as digits;
use crate::redis::refused::Refused;
use crate::types::{MemberId, Score};

/// Answers a command that reads a board.
///
/// # Errors
/// When it cannot be answered. Nothing is written to the replies then.
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
            let entries = entries_of(asking, &reading, &key, range).await?;
            write_entries(replies, &entries, range.with_scores);
        }
        Read::Scan { cursor, pattern } => {
            let mut entries = match cursor {
                0 => entries_of(asking, &reading, &key, &EVERYTHING).await?,
                _ => Vec::new(),
            };
            entries.retain(|entry| pattern.is_none_or(|pattern| matches(pattern, entry.member.as_bytes())));
            replies.array(2);
            replies.text("0");
            replies.array(2 * entries.len());
            for entry in &entries {
                replies.text(&entry.member);
                replies.text(&digits(&entry.score));
            }
        }
        Read::Random { count: None, .. } => {
            let drawn = random::draw(asking, &reading, &key, random::ONE).await?;
            match drawn.first() {
                Some(listed) => replies.text(&listed.member),
                None => replies.null(),
            }
        }
        Read::Random { count: Some(count), with_scores } => {
            let drawn = random::draw(asking, &reading, &key, *count).await?;
            write_entries(replies, &drawn, *with_scores);
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
    let members: Vec<MemberId> = ids.iter().map(|id| member(id)).collect::<Result<_, _>>()?;
    let mut found = std::collections::HashMap::with_capacity(members.len());
    for part in members.chunks(PAGE) {
        let read = LookupMembers { members: Arc::from(part) };
        let Some(answer) = asking.read(reading, key, read).await? else { continue };
        found.extend(answer.body.entries.into_iter().map(|(listed, _)| (listed.member, listed.score)));
    }
    replies.array(members.len());
    for member in &members {
        match found.get(member.as_str()) {
            Some(score) => replies.double(&digits(score)),
            None => replies.null(),
        }
    }
    Ok(())
}

fn write_entries(replies: &mut Replies, entries: &[Listed], with_scores: bool) {
    let pairs = with_scores && replies.protocol == Protocol::Resp3;
    replies.array(if with_scores && !pairs { 2 * entries.len() } else { entries.len() });
    for entry in entries {
        if pairs {
            replies.array(2);
        }
        replies.text(&entry.member);
        if with_scores {
            replies.double(&digits(&entry.score));
        }
    }
}

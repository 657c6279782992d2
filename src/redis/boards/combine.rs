//! Commands that read several boards together.

use crate::operations::Failure;
use crate::query::question::COMBINED_LISTED_MAX;
use crate::query::{Combine, CombinedBoard, FROM_THE_LEAST, NoCombination};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::BoardKey;
use crate::redis::boards::pace::Pace;
use crate::redis::boards::range::EntryForm;
use crate::redis::boards::read::check_shape;
use crate::redis::commands::{CombineReply, Combined, Combining};
use crate::redis::frames::Replies;
use crate::redis::number::digits;
use crate::redis::refused::Refused;
use crate::types::count;

/// Entries that are written at once.
const WRITTEN_AT_ONCE: usize = 1_000;
/// What an entry takes in memory beside its reply, about.
const ENTRY_BYTES: usize = 128;
/// The most boards of a command.
const BOARDS_MAX: usize = crate::query::question::COMBINED_BOARDS_MAX;

/// Answers a command that reads several boards together, all at one moment of each shard.
///
/// # Errors
/// When it cannot be answered. What was written to the replies is to be forgotten then.
pub async fn answer_combined(
    asking: &Asking<'_>,
    combining: &Combining<'_>,
    replies: &mut Replies,
) -> Result<(), Refused> {
    let Combining { combined: Combined { keys, weights, combination, aggregate }, reply } = combining;
    if keys.len() > BOARDS_MAX {
        return Err(Refused::new(format!("ERR {BOARDS_MAX} boards are combined at most; name fewer")));
    }
    let keys: Vec<BoardKey> = keys.iter().map(|key| asking.board(key)).collect::<Result<_, _>>()?;
    keys.iter().try_for_each(check_shape)?;
    let reading = asking.begin_on(&keys).await?;
    let board = |(key, weight): (&BoardKey, _)| CombinedBoard {
        board: key.board.clone(),
        choice: key.choice,
        weight,
    };
    let limit = match reply {
        CombineReply::Entries { .. } => COMBINED_LISTED_MAX,
        CombineReply::Count { .. } => 0,
    };
    let read = Combine {
        boards: keys.iter().zip(weights.iter().copied()).map(board).collect(),
        combination: *combination,
        aggregate: *aggregate,
        ranking: Some(FROM_THE_LEAST),
        now: asking.operations.now(),
        cursor: None,
        limit,
        member: None,
        is_lenient: true,
    };
    let answer = asking.read_shards(&reading, &read).await?.map_err(|why| match why {
        NoCombination::NoBoard(why) => Failure::NoBoard(why).into(),
        NoCombination::Refused(why) => Refused::new(format!("ERR {why}")),
    })?;
    let with_scores = match reply {
        CombineReply::Count { limit } => {
            replies.count(if *limit == 0 { answer.total } else { answer.total.min(*limit) });
            return Ok(());
        }
        CombineReply::Entries { with_scores } => *with_scores,
    };
    if answer.total > count(answer.entries.len()) {
        return Err(Refused::new(format!(
            "ERR the result has {} entries, and a reply {COMBINED_LISTED_MAX} at most; POST /v1/boards:combine \
             answers it in pages over HTTP",
            answer.total
        )));
    }
    reading.in_progress.count_answer(answer.entries.len() * ENTRY_BYTES)?;
    let (form, mut pace) = (EntryForm::of(with_scores), Pace::begin());
    replies.array(form.values(answer.entries.len(), replies.protocol));
    for part in answer.entries.chunks(WRITTEN_AT_ONCE) {
        for entry in part {
            form.write(&entry.member, || digits(entry.score), replies);
        }
        asking.count(replies)?;
        pace.note(asking, part.len()).await?;
    }
    Ok(())
}

//! Members drawn at random.

use std::collections::BTreeSet;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::operations::Reading;
use crate::query::{FromPosition, Listed, TotalOnly};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::BoardKey;
use crate::redis::boards::range::{EVERYTHING, count_answer, entries_of};
use crate::redis::commands::RandomCount;
use crate::redis::refused::Refused;

pub const ONE: RandomCount = RandomCount::Different(1);

/// Entries that are drawn before other connections have their turn.
const DRAWN_PER_TURN: usize = 64;

/// Draws entries. Each is of a moment of its own.
///
/// # Errors
/// When the board cannot be read.
pub async fn draw(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
    count: RandomCount,
) -> Result<Vec<Listed>, Refused> {
    let total = asking.read(reading, key, TotalOnly).await?.map_or(0, |answer| answer.total);
    if total == 0 {
        return Ok(Vec::new());
    }
    let random = SystemRandom::new();
    let mut drawn = Vec::new();
    match count {
        RandomCount::Different(count) if count >= total => {
            return entries_of(asking, reading, key, &EVERYTHING).await;
        }
        RandomCount::Different(count) => {
            // Of many, those that are left out are fewer.
            let leaves = count > total / 2;
            let wanted = if leaves { total - count } else { count };
            let mut chosen = BTreeSet::new();
            while u64::try_from(chosen.len()).unwrap_or(u64::MAX) < wanted {
                chosen.insert(below(&random, total)?);
                if chosen.len().is_multiple_of(DRAWN_PER_TURN) {
                    tokio::task::yield_now().await;
                }
            }
            if leaves {
                let all = entries_of(asking, reading, key, &EVERYTHING).await?;
                return Ok(all
                    .into_iter()
                    .zip(0..)
                    .filter(|(_, at)| !chosen.contains(at))
                    .map(|(entry, _)| entry)
                    .collect());
            }
            for index in chosen {
                drawn.extend(at(asking, reading, key, index).await?);
                if drawn.len().is_multiple_of(DRAWN_PER_TURN) {
                    count_answer(reading, &drawn)?;
                    tokio::task::yield_now().await;
                }
            }
        }
        RandomCount::Repeated(count) => {
            for _ in 0..count {
                let found = at(asking, reading, key, below(&random, total)?).await?;
                // The board has shrunk, perhaps to nothing: others would wait for draws that find nothing.
                if found.is_empty() {
                    break;
                }
                drawn.extend(found);
                if drawn.len().is_multiple_of(DRAWN_PER_TURN) {
                    count_answer(reading, &drawn)?;
                    tokio::task::yield_now().await;
                }
            }
        }
    }
    count_answer(reading, &drawn)?;
    Ok(drawn)
}

async fn at(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
    index: u64,
) -> Result<Vec<Listed>, Refused> {
    let read = FromPosition { position: index + 1, limit: 1 };
    Ok(asking.read(reading, key, read).await?.map(|answer| answer.body.entries).unwrap_or_default())
}

/// A number below another one. What 64 bits are too many for is not to be noticed.
fn below(random: &SystemRandom, total: u64) -> Result<u64, Refused> {
    let mut bytes = [0; 8];
    let filled = random.fill(&mut bytes);
    filled.map_err(|_| Refused::new("ERR the operating system returned no random numbers"))?;
    Ok(u64::from_be_bytes(bytes) % total.max(1))
}

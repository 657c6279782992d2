//! Members drawn at random.

use std::collections::BTreeSet;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::operations::Reading;
use crate::query::{FromPosition, Listed, TotalOnly};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::BoardKey;
use crate::redis::boards::pace::{LOOKUP, Pace};
use crate::redis::boards::range::{EVERYTHING, EntryArray, EntryForm, each_page, write_range};
use crate::redis::commands::RandomCount;
use crate::redis::frames::Replies;
use crate::redis::refused::Refused;
use crate::types::count;

/// A place that is looked up takes as long as reading so many entries in a row: of more places, all of a
/// board is read.
const ENTRIES_PER_LOOKUP: u64 = 50;
/// The shortest reply to a member that is drawn, in bytes.
const MEMBER_BYTES_MIN: usize = 7;
/// Draws in a row that may find nothing because the board shrinks meanwhile.
const MISSES_MAX: usize = 16;

/// Draws an entry.
///
/// # Errors
/// When the board cannot be read.
pub async fn draw_one(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
) -> Result<Option<Listed>, Refused> {
    let mut place = RandomPlace::of(asking, reading, key).await?;
    place.draw(asking, reading, key).await
}

/// Draws entries. Each is of a moment of its own.
///
/// # Errors
/// When the board cannot be read, or the reply is too long. What was written is to be forgotten then.
pub async fn draw(
    asking: &Asking<'_>,
    (reading, key): (&Reading, &BoardKey),
    wanted: RandomCount,
    form: EntryForm,
    replies: &mut Replies,
) -> Result<(), Refused> {
    let mut place = RandomPlace::of(asking, reading, key).await?;
    let total = place.total;
    let (mut array, mut pace) = (EntryArray::begin(form, replies), Pace::begin());
    match wanted {
        RandomCount::Different(wanted) if wanted >= total => {
            let all = |_: &Listed| true;
            write_range(asking, (reading, key), &EVERYTHING, form, all, replies).await?;
            return Ok(());
        }
        RandomCount::Different(mut wanted) if wanted > total / ENTRIES_PER_LOOKUP => {
            let (mut seen, mut failed) = (0, None);
            // Of those that are left, each is taken as likely as any other (Knuth, volume 2, 3.4.2,
            // algorithm S).
            let choose = |mut entries: Vec<Listed>, left: u64| -> Result<bool, Refused> {
                let mut behind = left + count(entries.len());
                seen += count(entries.len());
                entries.retain(|_| {
                    let drawn = place.below(behind).unwrap_or_else(|why| {
                        failed = Some(why);
                        0
                    });
                    let is_taken = drawn < wanted;
                    (wanted, behind) = (wanted - u64::from(is_taken), behind - 1);
                    is_taken
                });
                if let Some(why) = failed.take() {
                    return Err(why);
                }
                array.write(asking, &entries, (seen, left), replies)?;
                Ok(wanted > 0)
            };
            each_page(asking, reading, key, &EVERYTHING, choose).await?;
        }
        RandomCount::Different(wanted) => {
            let mut chosen = BTreeSet::new();
            while count(chosen.len()) < wanted {
                chosen.insert(place.below(total)?);
                pace.note(asking, 1).await?;
            }
            for (index, seen) in chosen.into_iter().zip(1..) {
                if let Some(entry) = at(asking, reading, key, index).await? {
                    array.write(asking, &[entry], (seen, wanted - seen), replies)?;
                }
                pace.note(asking, LOOKUP).await?;
            }
        }
        RandomCount::Repeated(wanted) => {
            let bytes = usize::try_from(wanted).unwrap_or(usize::MAX).saturating_mul(MEMBER_BYTES_MIN);
            if total > 0
                && let Some(too_long) = asking.too_long(bytes)
            {
                return Err(too_long);
            }
            for seen in 1..=wanted {
                let Some(entry) = place.draw(asking, reading, key).await? else { break };
                array.write(asking, &[entry], (seen, wanted - seen), replies)?;
                pace.note(asking, LOOKUP).await?;
            }
        }
    }
    array.end(replies);
    Ok(())
}

/// Draws places of a board.
struct RandomPlace {
    random: SystemRandom,
    /// Entries of the board.
    total: u64,
}

impl RandomPlace {
    async fn of(asking: &Asking<'_>, reading: &Reading, key: &BoardKey) -> Result<Self, Refused> {
        let total = asking.read(reading, key, TotalOnly).await?.map_or(0, |answer| answer.total);
        Ok(Self { random: SystemRandom::new(), total })
    }

    /// An entry at a place that is drawn. `None`: there are no entries any more.
    async fn draw(
        &mut self,
        asking: &Asking<'_>,
        reading: &Reading,
        key: &BoardKey,
    ) -> Result<Option<Listed>, Refused> {
        for _ in 0..MISSES_MAX {
            if self.total == 0 {
                break;
            }
            let index = self.below(self.total)?;
            if let Some(entry) = at(asking, reading, key, index).await? {
                return Ok(Some(entry));
            }
            // It has shrunk.
            *self = Self::of(asking, reading, key).await?;
        }
        Ok(None)
    }

    /// A number below another one. What 64 bits are too many for is not to be noticed.
    fn below(&self, total: u64) -> Result<u64, Refused> {
        let mut bytes = [0; 8];
        let filled = self.random.fill(&mut bytes);
        filled.map_err(|_| Refused::new("ERR the operating system returned no random numbers"))?;
        Ok(u64::from_be_bytes(bytes) % total.max(1))
    }
}

async fn at(
    asking: &Asking<'_>,
    reading: &Reading,
    key: &BoardKey,
    index: u64,
) -> Result<Option<Listed>, Refused> {
    let read = FromPosition { position: index + 1, limit: 1 };
    let answer = asking.read(reading, key, read).await?;
    Ok(answer.and_then(|answer| answer.body.entries.into_iter().next()))
}

//! Commands that take entries away by their place.
//!
//! Which entries these are is read first, over all shards. Then each is taken by an operation of the log: a
//! removal that holds only if the entry still has the score that was read. So of all who want an entry one
//! has it, and one that has moved meanwhile is not taken for another.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::job::Op;
use crate::operations::{InProgress, Operations};
use crate::query::{FromPosition, Listed, TotalOnly};
use crate::redis::boards::asked::Asking;
use crate::redis::boards::key::BoardKey;
use crate::redis::boards::pace::{LOOKUP, Pace};
use crate::redis::boards::range::slice;
use crate::redis::boards::read::check_shape;
use crate::redis::boards::slice::PAGE;
use crate::redis::boards::write::{job, unclear, write_jobs};
use crate::redis::commands::{PopReply, Popping, RangeOf, Selection, Taking};
use crate::redis::frames::{Protocol, Replies};
use crate::redis::number::digits_of as digits;
use crate::redis::refused::Refused;
use crate::types::{AsOf, BoardName, MemberId, count, fnv1a_32};

/// How often a command reads anew after others took, or moved, all that it had read.
const ROUNDS_MAX: usize = 100;
/// The most entries that one command pops, as many as one may write.
const POPPED_MAX: usize = 65_536;
/// What such an entry takes in memory until it is told, about.
const POPPED_BYTES: usize = 512;

/// Pops of a board on this node come one after the other: they all want the same entries.
pub struct PopTurns([Mutex<()>; 64]);

impl Default for PopTurns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl PopTurns {
    async fn take(&self, board: &BoardName) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let hash = usize::try_from(fnv1a_32(board.as_str().as_bytes())).unwrap_or_default();
        match self.0.get(hash % self.0.len()) {
            Some(turns) => Some(turns.lock().await),
            None => None,
        }
    }
}

/// Answers a command that takes entries away. What it has written is noted in `written`, also if it fails.
///
/// # Errors
/// When it cannot be answered. Nothing is written to the replies then.
pub async fn answer_taking(
    operations: &Arc<Operations>,
    turns: &PopTurns,
    asking: &Asking<'_>,
    taking: &Taking<'_>,
    (written, replies): (&mut AsOf, &mut Replies),
) -> Result<(), Refused> {
    let mut taker = Taker { operations, asking, written };
    match taking {
        Taking::Range(key, range) => {
            let key = writable(asking, key)?;
            let taken = match range.selection {
                Selection::Index(..) => taker.positions(&key, range).await?,
                Selection::Score(..) | Selection::Lex(..) => taker.all_within(&key, range).await?,
            };
            replies.count(taken);
        }
        Taking::Pop(popping) => {
            let mut pace = Pace::begin();
            for key in &popping.keys {
                writable(asking, key)?;
                pace.note(asking, 1).await?;
            }
            for key in &popping.keys {
                pace.note(asking, LOOKUP).await?;
                let key = &writable(asking, key)?;
                let _turn = turns.take(&key.board).await;
                let popped = taker.pop(key, popping).await?;
                if !popped.is_empty() || popping.reply != PopReply::WithKey {
                    write_popped(replies, popping.reply, &key.board, &popped);
                    return Ok(());
                }
            }
            replies.null_array();
        }
    }
    Ok(())
}

/// The board of a key, if entries can be taken from it.
fn writable(asking: &Asking<'_>, key: &[u8]) -> Result<BoardKey, Refused> {
    let key = asking.board(key)?;
    key.check_writable()?;
    check_shape(&key)?;
    Ok(key)
}

struct Taker<'a> {
    operations: &'a Arc<Operations>,
    asking: &'a Asking<'a>,
    /// What the command has written so far: its next read sees it.
    written: &'a mut AsOf,
}

impl Taker<'_> {
    /// Takes entries from one end, until there are as many as wanted or none is left.
    async fn pop(&mut self, key: &BoardKey, popping: &Popping<'_>) -> Result<Vec<Listed>, Refused> {
        let (mut popped, mut rounds) = (Vec::new(), 0);
        let wanted = usize::try_from(popping.count).unwrap_or(usize::MAX);
        // What is taken has to be told. So there is room for it before it is taken.
        let room = InProgress::new(&self.operations.admission);
        if wanted > PAGE {
            let entries = self.total(key).await?.min(wanted);
            if entries > POPPED_MAX {
                return Err(Refused::new(format!(
                    "ERR a command may pop {POPPED_MAX} entries: pop them in parts"
                )));
            }
            room.count_answer(entries * POPPED_BYTES)?;
        }
        let wanted = wanted.min(POPPED_MAX);
        while popped.len() < wanted {
            let length = (wanted - popped.len()).min(PAGE);
            let last = i64::try_from(length).unwrap_or(i64::MAX) - 1;
            let selection = Selection::Index(0, last);
            let range = RangeOf { selection, descending: popping.greatest, limit: None, with_scores: false };
            let taken = match self.read(key, &range, length).await {
                Ok(entries) if entries.is_empty() => break,
                Ok(entries) => self.take(key, entries).await,
                Err(why) => Err((Vec::new(), why)),
            };
            match taken {
                Ok(taken) => {
                    rounds = if taken.is_empty() { rounds + 1 } else { 0 };
                    popped.extend(taken);
                }
                // What is taken already is nowhere else.
                Err((taken, why)) => {
                    popped.extend(taken);
                    return if popped.is_empty() { Err(why) } else { Ok(popped) };
                }
            }
            if rounds == ROUNDS_MAX {
                return if popped.is_empty() { Err(contended()) } else { Ok(popped) };
            }
        }
        Ok(popped)
    }

    /// How many entries a board has.
    async fn total(&self, key: &BoardKey) -> Result<usize, Refused> {
        let asking = Asking { written: &*self.written, ..*self.asking };
        let reading = asking.begin(Some(&key.board)).await?;
        let found = asking.read(&reading, key, TotalOnly).await?;
        Ok(found.map_or(0, |answer| usize::try_from(answer.total).unwrap_or(usize::MAX)))
    }

    /// Takes all entries of a range of scores or ids, until none is left there. Returns how many.
    async fn all_within(&mut self, key: &BoardKey, range: &RangeOf<'_>) -> Result<u64, Refused> {
        let (mut removed, mut rounds, mut pace) = (0, 0, Pace::begin());
        loop {
            pace.note(self.asking, LOOKUP * PAGE).await.map_err(|why| partly(removed, why))?;
            let entries = self.read(key, range, PAGE).await.map_err(|why| partly(removed, why))?;
            if entries.is_empty() {
                return Ok(removed);
            }
            let taken = self.take(key, entries).await;
            let taken = taken.map_err(|(taken, why)| partly(removed + count(taken.len()), why))?;
            rounds = if taken.is_empty() { rounds + 1 } else { 0 };
            removed += count(taken.len());
            if rounds == ROUNDS_MAX {
                return Err(partly(removed, contended()));
            }
        }
    }

    /// Takes the entries that are at the positions of a range now. Returns how many.
    async fn positions(&mut self, key: &BoardKey, range: &RangeOf<'_>) -> Result<u64, Refused> {
        let reading = self.asking.begin(Some(&key.board)).await?;
        let Some(found) = slice(self.asking, &reading, key, range, 0).await? else { return Ok(0) };
        drop(reading);
        let (mut before, mut left, mut removed) = (found.from, found.to - found.from, 0);
        let mut pace = Pace::begin();
        while left > 0 {
            pace.note(self.asking, LOOKUP * PAGE).await.map_err(|why| partly(removed, why))?;
            let limit = usize::try_from(left).unwrap_or(usize::MAX).min(PAGE);
            let asking = Asking { written: &*self.written, ..*self.asking };
            let reading = asking.begin(Some(&key.board)).await.map_err(|why| partly(removed, why))?;
            let read = FromPosition { position: before + 1, limit };
            let page = asking.read(&reading, key, read).await.map_err(|why| partly(removed, why))?;
            drop(reading);
            let entries = page.map(|page| page.body.entries).unwrap_or_default();
            if entries.is_empty() {
                break;
            }
            left -= count(entries.len());
            before += count(entries.len());
            let taken = self.take(key, entries).await;
            let taken = taken.map_err(|(taken, why)| partly(removed + count(taken.len()), why))?;
            // Those behind have come up.
            before -= count(taken.len());
            removed += count(taken.len());
        }
        Ok(removed)
    }

    async fn read(&self, key: &BoardKey, range: &RangeOf<'_>, page: usize) -> Result<Vec<Listed>, Refused> {
        let asking = Asking { written: &*self.written, ..*self.asking };
        let reading = asking.begin(Some(&key.board)).await?;
        let found = slice(&asking, &reading, key, range, page).await?;
        Ok(found.map(|slice| slice.entries).unwrap_or_default())
    }

    /// Takes entries, each if it has still the score that was read. Returns those that were taken; if what
    /// came of others is not known, why, too.
    async fn take(
        &mut self,
        key: &BoardKey,
        entries: Vec<Listed>,
    ) -> Result<Vec<Listed>, (Vec<Listed>, Refused)> {
        let mut jobs = Vec::with_capacity(entries.len());
        for entry in &entries {
            let member = MemberId::new(&*entry.member).map_err(|_| (Vec::new(), unclear()))?;
            jobs.push(job(&key.board, member, Op::Take, Some(entry.score.clone())));
        }
        let (outcomes, token) = write_jobs(self.operations, jobs, None).await;
        self.written.note(token);
        let (mut taken, mut failed) = (Vec::with_capacity(entries.len()), None);
        for (entry, outcome) in entries.into_iter().zip(outcomes) {
            match outcome {
                Ok(change) if change.before.is_some() && change.after.is_none() => taken.push(entry),
                Ok(_) => {}
                Err(why) => failed = Some(why),
            }
        }
        match failed {
            None => Ok(taken),
            Some(why) => Err((taken, why)),
        }
    }
}

fn contended() -> Refused {
    Refused::new("TRYAGAIN others take these entries, or move them, all the time; try again in a moment")
}

/// Why a command was left half done.
fn partly(removed: u64, why: Refused) -> Refused {
    if removed == 0 {
        return why;
    }
    Refused::new(format!("UNKNOWN {removed} entries are removed, and then: {}", why.text()))
}

fn write_popped(replies: &mut Replies, reply: PopReply, board: &BoardName, popped: &[Listed]) {
    let is_nested = match reply {
        PopReply::One => false,
        PopReply::Several => replies.protocol == Protocol::Resp3,
        PopReply::WithKey => {
            replies.array(2);
            replies.text(board.as_str());
            true
        }
    };
    replies.array(if is_nested { popped.len() } else { 2 * popped.len() });
    for entry in popped {
        if is_nested {
            replies.array(2);
        }
        replies.text(&entry.member);
        replies.double(&digits(&entry.score));
    }
}

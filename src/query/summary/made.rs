//! The summaries that a shard has made. Each is made once for all nodes that ask for it, about once a second,
//! and not at all while the shard applies nothing.
//!
//! Knows: how much of a core summaries may take. Must not know: who asks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;

use crate::query::question::BoardLife;
use crate::query::summary::make::{SummarySizes, summarize};
use crate::query::summary::{KnownSummary, Summary, SummaryReply};
use crate::state_lock::{Purpose, StateLock};
use crate::types::Sequence;

/// A summary is made anew when it is asked for after this time: a little less than a second, so that a node
/// that asks each second gets a new one each time.
const MADE_AFTER: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_millis(800) };
/// A summary that nobody has asked for is forgotten after this time.
const KEPT: Duration = Duration::from_secs(60);
/// Memory of a shard's summaries. Those of the large trees are some 100 KB each.
const BYTES_MAX: usize = 32 << 20;
/// The pause that follows the making of a summary, as a multiple of the time that it took. So summaries take
/// a twentieth of a core for each shard at most, whatever is asked for.
const PAUSE_FACTOR: u32 = if cfg!(test) { 0 } else { 19 };
/// How far the pauses may add up before nothing is made.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Summaries of a shard.
#[derive(Default)]
pub struct MadeSummaries(Mutex<Made>);

#[derive(Default)]
struct Made {
    by_life: HashMap<BoardLife, MadeSummary>,
    /// When the pauses are over.
    paused_until: Option<Instant>,
}

struct MadeSummary {
    summary: Arc<Summary>,
    hash: u64,
    /// The tree was the same at this sequence and at that one, and whenever it was looked at between.
    from: Sequence,
    through: Sequence,
    is_over: bool,
    at: Instant,
    asked: Instant,
}

/// The shard has made so many summaries that it makes no more for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the shard makes as many summaries as it may")]
pub struct TooBusy;

impl MadeSummaries {
    /// The summary of a board of the shard, and the sequence that it is of.
    ///
    /// # Arguments
    /// `known`: the summary that whoever asks has, of this owner or of another one.
    ///
    /// # Errors
    /// When there is none, and no time to make one.
    pub fn reply(
        &self,
        state: &StateLock,
        life: &BoardLife,
        known: Option<KnownSummary>,
    ) -> Result<(Sequence, SummaryReply), TooBusy> {
        let mut made = self.0.lock();
        let now = Instant::now();
        if made.by_life.get(life).is_none_or(|found| now - found.at >= MADE_AFTER) {
            made.renew(state, life, now)?;
        }
        let found = made.by_life.get_mut(life).ok_or(TooBusy)?;
        found.asked = now;
        let is_known = known.is_some_and(|known| {
            known.hash == found.hash && (found.from..=found.through).contains(&known.sequence)
        });
        let reply = match (found.is_over, is_known) {
            (true, _) => SummaryReply::Over,
            (false, true) => SummaryReply::Unchanged,
            (false, false) => SummaryReply::Made(Arc::clone(&found.summary)),
        };
        Ok((found.through, reply))
    }
}

impl Made {
    fn renew(&mut self, state: &StateLock, life: &BoardLife, now: Instant) -> Result<(), TooBusy> {
        let known = self.by_life.get_mut(life);
        let applied = state.read(Purpose::Gauges).applied.sequence;
        if let Some(found) = known
            && found.through == applied
        {
            found.at = now;
            return Ok(());
        }
        if self.paused_until.is_some_and(|until| until > now + PAUSE_MAX) {
            // An older one is better than none.
            return if self.by_life.contains_key(life) { Ok(()) } else { Err(TooBusy) };
        }
        let began = Instant::now();
        let (sequence, is_over, summary) = {
            let state = state.read(Purpose::Summary);
            let is_over = state.has_ended(life.board.split().0, life.incarnation);
            (state.applied.sequence, is_over, summarize(&state, life, &SummarySizes::SERVICE))
        };
        let paused_until = self.paused_until.map_or(now, |until| until.max(now));
        self.paused_until = Some(paused_until + began.elapsed() * PAUSE_FACTOR);
        match self.by_life.get_mut(life) {
            Some(found)
                if *found.summary == summary && found.is_over == is_over && found.through <= sequence =>
            {
                (found.through, found.at) = (sequence, now);
            }
            _ => {
                let (from, through, hash) = (sequence, sequence, summary.hash());
                let summary = Arc::new(summary);
                let made = MadeSummary { summary, hash, from, through, is_over, at: now, asked: now };
                self.by_life.insert(life.clone(), made);
                self.forget(now, life);
            }
        }
        Ok(())
    }

    /// Forgets summaries that nobody asks for, and the longest not asked for if there are too many.
    fn forget(&mut self, now: Instant, newest: &BoardLife) {
        self.by_life.retain(|_, made| now - made.asked < KEPT);
        let mut bytes: usize = self.by_life.values().map(|made| made.summary.bytes()).sum();
        while bytes > BYTES_MAX {
            let others = self.by_life.iter().filter(|(life, _)| *life != newest);
            let Some(oldest) = others.min_by_key(|(_, made)| made.asked).map(|(life, _)| life.clone()) else {
                return;
            };
            bytes -= self.by_life.remove(&oldest).map_or(0, |made| made.summary.bytes());
        }
    }
}

//! The spans of a batch's messages, made once their times are known: how long each waited, and what the batch
//! spent on planning, committing and showing it.
//!
//! Knows: which messages of a batch are sampled. A batch without any costs nothing but a look at each
//! message, and without an endpoint not even that.

use std::collections::VecDeque;
use std::mem;
use std::time::{Instant, SystemTime};

use crate::traces::{self, Arrived, Kind, Span};
use crate::types::{Sequence, ShardId, count};
use crate::writer::source::{Message, Payload};

/// The sampled messages of a batch.
pub struct TracedBatch {
    shard: ShardId,
    /// Those that are not shown yet.
    waiting: VecDeque<TracedMessage>,
    /// Those that are shown, and when they were.
    shown: Vec<(TracedMessage, Instant)>,
    batch_messages: u64,
    began: Moment,
}

struct TracedMessage {
    sequence: Sequence,
    jobs: u64,
    arrived: Box<Arrived>,
}

/// When something was, by both clocks: spans have the time of day.
#[derive(Clone, Copy)]
struct Moment {
    instant: Instant,
    time: SystemTime,
}

impl Moment {
    fn time_of(self, instant: Instant) -> SystemTime {
        self.time + instant.saturating_duration_since(self.instant)
    }
}

/// When the verbs of a batch ended.
#[derive(Clone, Copy)]
pub struct VerbTimes {
    pub planned: Instant,
    pub committed: Instant,
}

impl TracedBatch {
    /// The sampled messages of a batch that begins to be processed. `None`: there are none.
    pub fn take(shard: ShardId, messages: &mut [Message], began: Instant) -> Option<Self> {
        if !traces::is_on() {
            return None;
        }
        let batch_messages = count(messages.len());
        let traced = |message: &mut Message| {
            let arrived = message.traced.take()?;
            let jobs = match &message.payload {
                Payload::Jobs(jobs) => jobs.len(),
                command => command.cost(),
            };
            Some(TracedMessage { sequence: message.sequence, jobs: count(jobs), arrived })
        };
        let waiting: VecDeque<_> = messages.iter_mut().filter_map(traced).collect();
        if waiting.is_empty() {
            return None;
        }
        let since = began.elapsed();
        let now = SystemTime::now();
        let began = Moment { instant: began, time: now.checked_sub(since).unwrap_or(now) };
        Some(Self { shard, waiting, shown: Vec::new(), batch_messages, began })
    }

    /// Notes that readers see the messages up to a sequence, from now on.
    pub fn shown(&mut self, sequence: Sequence) {
        if self.waiting.front().is_none_or(|message| message.sequence > sequence) {
            return;
        }
        let now = Instant::now();
        while self.waiting.front().is_some_and(|message| message.sequence <= sequence)
            && let Some(message) = self.waiting.pop_front()
        {
            self.shown.push((message, now));
        }
    }

    /// Makes the spans of the messages that are shown.
    pub fn end(mut self, times: VerbTimes) {
        let [began, planned, committed] =
            [self.began.instant, times.planned, times.committed].map(|at| self.began.time_of(at));
        for (message, shown) in mem::take(&mut self.shown) {
            let (arrived, shown) = (message.arrived.at, self.began.time_of(shown));
            for caller in &message.arrived.callers {
                let span = self.span(caller, &message).between(arrived, shown);
                for (name, start, end) in [
                    ("wait", arrived, began),
                    ("plan", began, planned),
                    ("commit", planned, committed),
                    ("show", committed, shown),
                ] {
                    drop(Span::child_of(span.context(), Kind::Internal, name).between(start, end));
                }
            }
        }
    }

    fn span(&self, caller: &traces::TraceContext, message: &TracedMessage) -> Span {
        let kind = if caller.is_remote { Kind::Consumer } else { Kind::Internal };
        let mut span = Span::child_of(caller, kind, "apply");
        span.attribute("ranktree.shard", u64::from(self.shard.0));
        span.attribute("ranktree.sequence", message.sequence.0);
        span.attribute("ranktree.jobs", message.jobs);
        span.attribute("messaging.batch.message_count", self.batch_messages);
        span
    }
}

impl Drop for TracedBatch {
    /// A batch that failed shows nothing. With NATS its messages come again.
    fn drop(&mut self) {
        let now = SystemTime::now();
        for message in &self.waiting {
            for caller in &message.arrived.callers {
                let mut span = self.span(caller, message).between(message.arrived.at, now);
                span.fail("the batch could not be committed; the log says why");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_shown_with_their_step_and_the_rest_waits() {
        let now = Moment { instant: Instant::now(), time: SystemTime::now() };
        let message = |sequence| {
            let arrived = Box::new(Arrived { callers: Vec::new(), at: now.time });
            TracedMessage { sequence: Sequence(sequence), jobs: 1, arrived }
        };
        let waiting = [3, 4, 7, 9].map(message).into();
        let mut batch =
            TracedBatch { shard: ShardId(0), waiting, shown: Vec::new(), batch_messages: 4, began: now };
        for (sequence, shown) in [(2, 0), (4, 2), (4, 2), (6, 2), (7, 3)] {
            batch.shown(Sequence(sequence));
            assert_eq!(batch.shown.len(), shown, "up to {sequence}");
        }
        let [(first, at), (second, same), (third, later)] = &batch.shown[..] else { panic!("three") };
        assert_eq!([first, second, third].map(|message| message.sequence.0), [3, 4, 7]);
        assert!(at == same && same <= later, "a step shows its messages at once");
        assert_eq!(batch.waiting.len(), 1);
    }
}

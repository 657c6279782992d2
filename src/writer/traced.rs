//! The spans of a batch's messages, made once their times are known: how long each waited, and what the batch
//! spent on planning, committing and showing it.
//!
//! Knows: which messages of a batch are sampled. A batch without any costs nothing but a look at each
//! message, and without an endpoint not even that.

use std::time::{Instant, SystemTime};

use crate::traces::{self, Arrived, Kind, Span};
use crate::types::{Sequence, ShardId, count};
use crate::writer::source::Message;

/// The sampled messages of a batch that are not shown yet.
pub struct TracedBatch {
    shard: ShardId,
    messages: Vec<TracedMessage>,
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
            Some(TracedMessage { sequence: message.sequence, jobs: count(message.payload.cost()), arrived })
        };
        let messages: Vec<_> = messages.iter_mut().filter_map(traced).collect();
        let since = began.elapsed();
        let now = SystemTime::now();
        let began = Moment { instant: began, time: now.checked_sub(since).unwrap_or(now) };
        (!messages.is_empty()).then_some(Self { shard, messages, batch_messages, began })
    }

    /// Makes the spans of the messages up to a sequence, which readers see from now on.
    pub fn shown(&mut self, sequence: Sequence, times: VerbTimes) {
        let rest = self.messages.iter().position(|message| message.sequence > sequence);
        let end = rest.unwrap_or(self.messages.len());
        if end == 0 {
            return;
        }
        let shown = self.began.time_of(Instant::now());
        let messages: Vec<_> = self.messages.drain(..end).collect();
        for message in messages {
            let arrived = message.arrived.at;
            let [began, planned, committed] =
                [self.began.instant, times.planned, times.committed].map(|at| self.began.time_of(at));
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
        for message in &self.messages {
            for caller in &message.arrived.callers {
                let mut span = self.span(caller, message).between(message.arrived.at, now);
                span.fail("the batch could not be committed; the log says why");
            }
        }
    }
}

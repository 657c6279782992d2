//! What all threads share: which spans are made, and the queue of those that have ended.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::SystemTime;

use crate::metrics::TRACE_SPANS_DROPPED_TOTAL;
use crate::traces::context::{Caller, TraceContext, random_id, random_trace};
use crate::traces::record::SpanRecord;
use crate::traces::settings::Sampler;

/// Ended spans that wait to be sent: some 2 MiB. Further ones are dropped.
const QUEUE_MAX: usize = 4_096;

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// What all threads share.
pub struct Tracer {
    sampler: Sampler,
    pub queue: SyncSender<QueueItem>,
    /// Spans that found the queue full, and are not in the log yet.
    pub dropped: AtomicU64,
    dropped_total: metrics::Counter,
    pub is_ending: AtomicBool,
}

/// What the queue carries.
pub enum QueueItem {
    Span(Box<SpanRecord>),
    /// Wakes the sender, which looks whether the service ends.
    Wake,
}

/// Whether spans are made at all.
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

/// Of which span another one is to be the child, unless it is not sampled.
pub fn choose(caller: Caller) -> Option<TraceContext> {
    let sampler = TRACER.get()?.sampler;
    let context = match caller {
        Caller::Sampled(context) if sampler.follows_callers() => return Some(context),
        Caller::NotSampled(_) if sampler.follows_callers() => return None,
        Caller::Sampled(context) | Caller::NotSampled(context) => context,
        Caller::None => TraceContext::begin(random_trace()),
    };
    sampler.chooses(context.trace).then_some(context)
}

/// The `traceparent` of what was not chosen.
pub fn not_sampled() -> String {
    format!("00-{:032x}-{:016x}-00", random_trace(), random_id())
}

/// Queues an ended span, or drops it.
pub fn send(record: Box<SpanRecord>) {
    let Some(tracer) = TRACER.get() else { return };
    if tracer.queue.try_send(QueueItem::Span(record)).is_err() {
        tracer.dropped.fetch_add(1, Ordering::Relaxed);
        tracer.dropped_total.increment(1);
    }
}

impl Tracer {
    /// A tracer that nobody knows yet, and the other end of its queue.
    pub fn new(sampler: Sampler) -> (Self, Receiver<QueueItem>) {
        let (queue, spans) = sync_channel(QUEUE_MAX);
        let dropped_total = metrics::counter!(TRACE_SPANS_DROPPED_TOTAL, "reason" => "full");
        let (dropped, is_ending) = (AtomicU64::new(0), AtomicBool::new(false));
        (Self { sampler, queue, dropped, dropped_total, is_ending }, spans)
    }

    /// From now on spans are made. The second tracer of a process is dropped, and its queue ends.
    pub fn publish(self) {
        let _ = TRACER.set(self);
    }

    /// The one that was published.
    pub fn get() -> Option<&'static Self> {
        TRACER.get()
    }
}

/// Requests of one message that are traced. Further ones are not, so that a message stays small.
pub const CALLERS_MAX: usize = 16;

/// The traces that a message belongs to, and when this node got it.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// The spans that its own are children of; several, if several requests share the message.
    pub callers: Vec<TraceContext>,
    pub at: SystemTime,
}

impl Arrived {
    /// A message that these spans have caused, now. `None`: nothing is traced.
    pub fn of(callers: Vec<TraceContext>) -> Option<Box<Self>> {
        (!callers.is_empty()).then(|| Box::new(Self { callers, at: SystemTime::now() }))
    }

    /// A message from elsewhere, now, by what its headers say. `None`: it is not sampled.
    pub fn from_headers(callers: impl IntoIterator<Item = Caller>) -> Option<Box<Self>> {
        let mut callers = callers.into_iter().take(CALLERS_MAX).peekable();
        if callers.peek().is_none() {
            return choose(Caller::None).and_then(|begin| Self::of(vec![begin]));
        }
        Self::of(callers.filter_map(choose).collect())
    }
}

//! The process's one tracer: which spans are made, and the queue of those that have ended.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::metrics::TRACE_SPANS_DROPPED_TOTAL;
use crate::traces::context::{Caller, TraceContext};
use crate::traces::settings::{Sampler, Settings};
use crate::traces::span::{Kind, Span, SpanRecord};

/// Ended spans that wait to be sent: some 2 MiB. Further ones are dropped.
const QUEUE_MAX: usize = 4_096;
/// How long the end of the service waits for the last spans.
const END_TIMEOUT: Duration = Duration::from_secs(2);

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// What all threads share.
pub struct Tracer {
    sampler: Sampler,
    queue: SyncSender<QueueItem>,
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
#[must_use]
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

/// The span of a request or a message, unless it is not sampled.
///
/// # Arguments
/// `caller`: what it says of the span that has caused it; is asked only if spans are made at all.
pub fn begin(
    kind: Kind,
    name: impl Into<Cow<'static, str>>,
    caller: impl FnOnce() -> Caller,
) -> Option<Span> {
    if !is_on() {
        return None;
    }
    choose(caller()).map(|parent| Span::child_of(&parent, kind, name))
}

/// Of which span another one is to be the child, unless it is not sampled.
pub(super) fn choose(caller: Caller) -> Option<TraceContext> {
    let sampler = TRACER.get()?.sampler;
    let context = match caller {
        Caller::Sampled(context) if sampler.follows_callers() => return Some(context),
        Caller::NotSampled(_) if sampler.follows_callers() => return None,
        Caller::Sampled(context) | Caller::NotSampled(context) => context,
        Caller::None => TraceContext::begin(u128::from(random_id()) << 64 | u128::from(random_id())),
    };
    sampler.chooses(context.trace).then_some(context)
}

/// Queues an ended span, or drops it.
pub(super) fn send(record: Box<SpanRecord>) {
    let Some(tracer) = TRACER.get() else { return };
    if tracer.queue.try_send(QueueItem::Span(record)).is_err() {
        tracer.dropped.fetch_add(1, Ordering::Relaxed);
        tracer.dropped_total.increment(1);
    }
}

/// A number that nobody else has, other than 0. The standard library seeds its hashers from the system, and
/// each differs from the one before.
pub(super) fn random_id() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}

/// Begins to make spans and to send them. The second call of a process changes nothing.
///
/// # Arguments
/// `node`: which node of the service this is.
///
/// # Errors
/// When the system has no thread for it, or no certificates for https.
pub fn start(settings: &Settings, node: &str) -> std::io::Result<Ending> {
    let (queue, spans) = sync_channel(QUEUE_MAX);
    let (done, ended) = sync_channel(1);
    let tracer = Tracer {
        sampler: settings.sampler,
        queue,
        dropped: AtomicU64::new(0),
        dropped_total: metrics::counter!(TRACE_SPANS_DROPPED_TOTAL, "reason" => "full"),
        is_ending: AtomicBool::new(false),
    };
    spawn(settings, node, spans, done)?;
    let _ = TRACER.set(tracer);
    Ok(Ending(ended))
}

#[cfg(feature = "otlp")]
fn spawn(
    settings: &Settings,
    node: &str,
    spans: Receiver<QueueItem>,
    done: SyncSender<()>,
) -> std::io::Result<()> {
    let exporter = crate::traces::export::Exporter::new(settings, node)?;
    tracing::info!(endpoint = settings.url, "traces are sent to the collector");
    let thread = std::thread::Builder::new().name("traces".to_owned());
    thread.spawn(move || {
        exporter.run(&spans, || TRACER.get());
        // The service may have stopped waiting.
        let _ = done.send(());
    })?;
    Ok(())
}

#[cfg(not(feature = "otlp"))]
fn spawn(_: &Settings, _: &str, _: Receiver<QueueItem>, _: SyncSender<()>) -> std::io::Result<()> {
    Err(std::io::Error::other("this ranktree was built without the feature otlp"))
}

/// The end of the spans' way.
pub struct Ending(Receiver<()>);

impl Ending {
    /// Sends what waits in the queue, for two seconds at most.
    pub fn end(self) {
        let Some(tracer) = TRACER.get() else { return };
        tracer.is_ending.store(true, Ordering::Release);
        // A sender that is at work looks by itself.
        let _ = tracer.queue.try_send(QueueItem::Wake);
        if self.0.recv_timeout(END_TIMEOUT).is_err() {
            tracing::warn!("the last spans were not sent, because the collector does not answer");
        }
    }
}

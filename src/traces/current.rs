//! The span that a task works for. What it calls finds it here, without an argument on every way there.

use std::borrow::Cow;
use std::future::Future;

use crate::traces::context::TraceContext;
use crate::traces::queue::is_on;
use crate::traces::record::Kind;
use crate::traces::span::Span;

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// The span that this task works for, if it is sampled.
pub fn current() -> Option<TraceContext> {
    if is_on() { CURRENT.try_with(TraceContext::clone).ok() } else { None }
}

/// A span for a part of what this task does, if that is sampled.
pub fn child(kind: Kind, name: impl Into<Cow<'static, str>>) -> Option<Span> {
    current().map(|parent| Span::child_of(&parent, kind, name))
}

/// Works for a span, if there is one. The work is passed pinned, so that the traced and the untraced way do
/// not take its memory twice.
pub async fn within<F: Future + Unpin>(span: Option<&Span>, work: F) -> F::Output {
    match span.map(|span| span.context().clone()) {
        Some(context) => CURRENT.scope(context, work).await,
        None => work.await,
    }
}

/// The work, for another task: it works for the same span as this one.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let context = current();
    async move {
        match context {
            Some(context) => Box::pin(CURRENT.scope(context, work)).await,
            None => work.await,
        }
    }
}

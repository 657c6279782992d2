//! Traces, in the terms of OpenTelemetry: what a request or a job took, from node to node.
//!
//! A span is made only for what is sampled: what the caller's `traceparent` says is, or what the sampler
//! chooses. Ended spans go into a bounded queue, from which one thread sends them to a collector. A queue
//! that is full drops spans, so a collector that is slow or away never holds anything up. Without an endpoint
//! there is no thread and no queue, and [`is_on`] is one load from memory.
//!
//! The spans are ranktree's own and not those of the crate `opentelemetry_sdk`: its batch processor does not
//! tell how many spans it drops, and a writer knows the times of its verbs only afterwards. The bytes that
//! are sent are those of the protocol's own crate.
//!
//! Knows: contexts, spans, sampling, and how spans are sent. Must not know: what a span is about.

#![cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "without the feature nothing is sent"))]

mod context;
mod current;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod otlp;
mod queue;
mod record;
mod settings;
mod span;
mod start;

pub use context::{Caller, TRACEPARENT, TRACEPARENT_OF_GO, TRACESTATE, TRACESTATE_OF_GO, TraceContext};
pub use current::{carried, child, current, within};
pub use queue::{Arrived, CALLERS_MAX, is_on, not_sampled};
pub use record::Kind;
pub use settings::{Headers, Sampler, Settings, SettingsError};
pub use span::{Span, begin};
pub use start::{Ending, start};

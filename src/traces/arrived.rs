//! The traces that a message of a queue belongs to, on its way to the writer.

use std::time::SystemTime;

use crate::traces::context::{Caller, TraceContext};
use crate::traces::queue::choose;

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

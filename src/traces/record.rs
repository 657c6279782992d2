//! What is sent of a span.

use std::borrow::Cow;
use std::time::SystemTime;

use crate::traces::context::TraceContext;

/// What a span is between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Internal,
    /// A request that is answered.
    Server,
    /// A request to another node.
    Client,
    /// A message into a queue.
    Producer,
    /// A message out of a queue.
    Consumer,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(Cow<'static, str>),
    Number(u64),
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

/// What is sent of a span.
#[derive(Debug, Clone)]
pub struct SpanRecord {
    pub context: TraceContext,
    /// `None`: the span is the first one of its trace.
    pub parent: Option<u64>,
    pub has_remote_parent: bool,
    pub name: Cow<'static, str>,
    pub kind: Kind,
    pub start: SystemTime,
    pub end: Option<SystemTime>,
    pub attributes: Vec<(&'static str, Value)>,
    pub error: Option<String>,
}

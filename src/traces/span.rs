//! A span, from its beginning until it goes to the queue.

use std::borrow::Cow;
use std::time::SystemTime;

use crate::traces::context::TraceContext;
use crate::traces::tracer;

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

/// A sampled span. It ends when it is dropped.
#[derive(Debug)]
pub struct Span(Option<Box<SpanRecord>>);

impl Span {
    /// A span that begins now.
    #[must_use]
    pub fn child_of(parent: &TraceContext, kind: Kind, name: impl Into<Cow<'static, str>>) -> Self {
        let context = TraceContext { span: tracer::random_id(), is_remote: false, ..parent.clone() };
        Self(Some(Box::new(SpanRecord {
            context,
            parent: Some(parent.span).filter(|span| *span != 0),
            has_remote_parent: parent.is_remote,
            name: name.into(),
            kind,
            start: SystemTime::now(),
            end: None,
            attributes: Vec::new(),
            error: None,
        })))
    }

    /// How its children refer to it.
    #[must_use]
    pub fn context(&self) -> &TraceContext {
        &self.record().context
    }

    pub fn attribute(&mut self, name: &'static str, value: impl Into<Value>) {
        self.record_mut().attributes.push((name, value.into()));
    }

    /// The same span, with other times than those of its making and its end.
    #[must_use]
    pub fn between(mut self, start: SystemTime, end: SystemTime) -> Self {
        let record = self.record_mut();
        record.start = start;
        // A clock that was set back must not make a span that ends before it begins.
        record.end = Some(end.max(start));
        self
    }

    /// Notes that what it is about has failed.
    pub fn fail(&mut self, why: impl Into<String>) {
        self.record_mut().error = Some(why.into());
    }

    fn record(&self) -> &SpanRecord {
        self.0.as_deref().expect("only a drop takes it")
    }

    fn record_mut(&mut self) -> &mut SpanRecord {
        self.0.as_deref_mut().expect("only a drop takes it")
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(mut record) = self.0.take() {
            record.end.get_or_insert_with(SystemTime::now);
            tracer::send(record);
        }
    }
}

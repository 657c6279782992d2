//! A span, from its beginning until it goes to the queue.

use std::borrow::Cow;
use std::time::SystemTime;

use crate::traces::context::{Caller, TraceContext, random_id};
use crate::traces::queue::{choose, is_on, send};
use crate::traces::record::{Kind, SpanRecord, Value};

/// A sampled span. It ends when it is dropped.
#[derive(Debug)]
pub struct Span(Option<Box<SpanRecord>>);

impl Span {
    /// A span that begins now.
    pub fn child_of(parent: &TraceContext, kind: Kind, name: impl Into<Cow<'static, str>>) -> Self {
        let context = TraceContext { span: random_id(), is_remote: false, ..parent.clone() };
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
    pub fn context(&self) -> &TraceContext {
        &self.record().context
    }

    pub fn attribute(&mut self, name: &'static str, value: impl Into<Value>) {
        self.record_mut().attributes.push((name, value.into()));
    }

    /// The same span, with other times than those of its making and its end.
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

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(mut record) = self.0.take() {
            record.end.get_or_insert_with(SystemTime::now);
            send(record);
        }
    }
}

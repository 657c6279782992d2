//! Spans as the protocol has them: OTLP 1, protobuf.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as ProtoValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message as _;

use crate::traces::record::{Kind, SpanRecord, Value};
use crate::traces::settings::Settings;

/// Bits of a span's flags: it is sampled; whether its parent is remote is told; it is.
const SAMPLED: u32 = 1;
const TELLS_REMOTE: u32 = 1 << 8;
const REMOTE: u32 = 1 << 9;

/// What is said of all spans.
pub struct Common {
    resource: Resource,
    scope: InstrumentationScope,
}

impl Common {
    pub fn new(settings: &Settings, node: &str) -> Self {
        let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let mut attributes = vec![
            text("service.name", &settings.service),
            text("service.version", version),
            text("service.instance.id", node),
        ];
        let is_new =
            |name: &str| !matches!(name, "service.name" | "service.version") && name != "service.instance.id";
        let others = settings.attributes.iter().filter(|(name, _)| is_new(name));
        attributes.extend(others.map(|(name, value)| text(name, value)));
        Self {
            resource: Resource { attributes, ..Resource::default() },
            scope: InstrumentationScope {
                name: name.to_owned(),
                version: version.to_owned(),
                ..InstrumentationScope::default()
            },
        }
    }

    /// A request with these spans.
    pub fn encode(&self, spans: Vec<SpanRecord>) -> Vec<u8> {
        let of_scope = ScopeSpans {
            scope: Some(self.scope.clone()),
            spans: spans.into_iter().map(span).collect(),
            ..ScopeSpans::default()
        };
        let of_resource = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![of_scope],
            ..ResourceSpans::default()
        };
        ExportTraceServiceRequest { resource_spans: vec![of_resource] }.encode_to_vec()
    }
}

fn span(record: SpanRecord) -> Span {
    let SpanRecord { context, parent, has_remote_parent, name, kind, start, end, attributes, error } = record;
    let kind = match kind {
        Kind::Internal => SpanKind::Internal,
        Kind::Server => SpanKind::Server,
        Kind::Client => SpanKind::Client,
        Kind::Producer => SpanKind::Producer,
        Kind::Consumer => SpanKind::Consumer,
    };
    Span {
        trace_id: context.trace.to_be_bytes().to_vec(),
        span_id: context.span.to_be_bytes().to_vec(),
        trace_state: context.state.as_deref().unwrap_or_default().to_owned(),
        parent_span_id: parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
        flags: SAMPLED | TELLS_REMOTE | if has_remote_parent { REMOTE } else { 0 },
        name: name.into_owned(),
        kind: kind.into(),
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(end.unwrap_or(start)),
        attributes: attributes.into_iter().map(attribute).collect(),
        status: error.map(|message| Status { message, code: StatusCode::Error.into() }),
        ..Span::default()
    }
}

fn attribute((name, value): (&'static str, Value)) -> KeyValue {
    match value {
        Value::Text(value) => text(name, &value),
        Value::Number(number) => {
            key_value(name, ProtoValue::IntValue(i64::try_from(number).unwrap_or(i64::MAX)))
        }
    }
}

fn text(name: &str, value: &str) -> KeyValue {
    key_value(name, ProtoValue::StringValue(value.to_owned()))
}

fn key_value(name: &str, value: ProtoValue) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

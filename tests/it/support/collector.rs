//! A collector of traces: takes OTLP over HTTP, with the messages of the protocol's own crate.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use parking_lot::Mutex;
use prost::Message as _;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::certificates::Certified;
use crate::support::nats::wait_until;

/// A span as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The instance of the service that sent it.
    pub node: String,
    pub trace: String,
    pub id: String,
    /// Empty: none.
    pub parent: String,
    pub has_remote_parent: bool,
    pub name: String,
    pub kind: SpanKind,
    pub start: u64,
    pub end: u64,
    pub state: String,
    pub attributes: BTreeMap<String, String>,
    pub error: Option<String>,
}

/// What a collector does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Takes,
    /// Reads it, and says nothing.
    Hangs,
    Answers(u16),
}

pub struct Collector {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    spans: Mutex<Vec<Span>>,
    /// The heads of all requests.
    heads: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

impl Collector {
    pub fn start() -> Self {
        Self::that(Behaviour::Takes)
    }

    pub fn that(behaviour: Behaviour) -> Self {
        Self::listen(behaviour, None)
    }

    /// One that speaks TLS only, and shows this certificate.
    pub fn with_tls(certified: &Certified) -> Self {
        let certificate =
            CertificateDer::from_pem_slice(certified.certificate.as_bytes()).expect("it is PEM");
        let key = PrivateKeyDer::from_pem_slice(certified.key.as_bytes()).expect("it is PEM");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has them")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("they belong together");
        Self::listen(Behaviour::Takes, Some(Arc::new(config)))
    }

    fn listen(behaviour: Behaviour, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        let scheme = if tls.is_some() { "https" } else { "http" };
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (shared, tls) = (Arc::clone(&accepting), tls.clone());
                // A connection that breaks is the service's end.
                thread::spawn(move || match tls {
                    None => shared.serve(stream, behaviour),
                    Some(config) => {
                        let connection = ServerConnection::new(config).expect("a good configuration");
                        shared.serve(StreamOwned::new(connection, stream), behaviour)
                    }
                });
            }
        });
        Self { url: format!("{scheme}://{address}"), shared }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The heads of the requests so far.
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().clone()
    }

    /// The spans of a trace so far.
    pub fn spans(&self, trace: &str) -> Vec<Span> {
        self.shared.spans.lock().iter().filter(|span| span.trace == trace).cloned().collect()
    }

    pub fn all(&self) -> Vec<Span> {
        self.shared.spans.lock().clone()
    }

    /// Waits until a trace has as many spans of each of these names, and gives it.
    pub fn wait_for(&self, trace: &str, names: &[(&str, usize)]) -> Trace {
        let has = |spans: &[Span]| {
            names.iter().all(|(name, count)| spans.iter().filter(|span| span.name == *name).count() >= *count)
        };
        wait_until(&format!("the trace {trace} has {names:?}"), || has(&self.spans(trace)));
        Trace(self.spans(trace))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.url.trim_start_matches("https://").trim_start_matches("http://"));
    }
}

impl Shared {
    fn serve(&self, stream: impl Read + Write, behaviour: Behaviour) -> Option<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if stream.read_line(&mut head).ok()? == 0 {
                    return None;
                }
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse().ok())?
            });
            let mut body = vec![0; length.expect("it says how long it is")];
            stream.read_exact(&mut body).ok()?;
            self.heads.lock().push(head);
            match behaviour {
                Behaviour::Hangs => continue,
                Behaviour::Takes => {
                    let request = ExportTraceServiceRequest::decode(&body[..]).expect("it is the protocol's");
                    self.spans.lock().extend(spans(request));
                }
                Behaviour::Answers(_) => {}
            }
            let status = if let Behaviour::Answers(status) = behaviour { status } else { 200 };
            let answer = format!(
                "HTTP/1.1 {status} So\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n"
            );
            stream.get_mut().write_all(answer.as_bytes()).ok()?;
        }
    }
}

fn spans(request: ExportTraceServiceRequest) -> Vec<Span> {
    let mut spans = Vec::new();
    for of_resource in request.resource_spans {
        let resource = attributes(of_resource.resource.expect("it says whose spans they are").attributes);
        let node = resource.get("service.instance.id").expect("it says which node it is");
        for span in of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
            spans.push(Span {
                node: node.clone(),
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                has_remote_parent: span.flags & 0x300 == 0x300,
                kind: span.kind(),
                start: span.start_time_unix_nano,
                end: span.end_time_unix_nano,
                state: span.trace_state,
                attributes: attributes(span.attributes),
                error: span.status.map(|status| status.message),
                name: span.name,
            });
        }
    }
    spans
}

fn attributes(all: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("{other:?} is no value of ours"),
    };
    all.into_iter().map(|KeyValue { key, value, .. }| (key, text(value))).collect()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
    text
}

/// The spans of a trace.
pub struct Trace(pub Vec<Span>);

impl Trace {
    /// The only span of this name.
    pub fn one(&self, name: &str) -> &Span {
        let mut found = self.0.iter().filter(|span| span.name == name);
        let span = found.next().unwrap_or_else(|| panic!("there is no {name}: {:#?}", self.0));
        assert!(found.next().is_none(), "{name} is there twice: {:#?}", self.0);
        span
    }

    /// The only child of a span with this name.
    pub fn child(&self, parent: &Span, name: &str) -> &Span {
        let mut found = self.0.iter().filter(|span| span.name == name && span.parent == parent.id);
        let span = found.next().unwrap_or_else(|| panic!("no {name} of {parent:?}: {:#?}", self.0));
        assert!(found.next().is_none(), "{name} is there twice: {:#?}", self.0);
        span
    }
}

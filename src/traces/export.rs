//! Sends ended spans to the collector: OTLP over HTTP, on a thread of its own.
//!
//! Knows: how spans are gathered, what an answer of the collector means, and for how long it is tried. Must
//! not know: what a span is about.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message as _;
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::metrics::{TRACE_SPANS_DROPPED_TOTAL, TRACE_SPANS_SENT_TOTAL};
use crate::regular_file::read_regular;
use crate::tls_roots::is_untrusted;
use crate::traces::otlp::Common;
use crate::traces::queue::{QueueItem, Tracer};
use crate::traces::record::SpanRecord;
use crate::traces::settings::Settings;

/// Spans of one request to the collector.
const BATCH_MAX: usize = 512;
/// How long the first span of a request waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long the collector may take for an answer, as OpenTelemetry has it by default.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pauses before the same spans are sent again, if the collector is away or asks for it. The queue fills
/// up meanwhile, so they are few.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// How often it is looked, in a pause, whether the service ends.
const PAUSE_STEP: Duration = Duration::from_millis(50);
/// Dropped spans are logged at most so often.
const LOG_INTERVAL: Duration = Duration::from_secs(10);
/// More of an answer is not read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// The port on which collectors take gRPC, which is not spoken here.
const GRPC_PORT: u16 = 4_317;

/// What to do about a collector's certificate that is not taken.
const UNTRUSTED: &str = "--otlp-certificate names a PEM file with the certificate of the authority that has signed the collector's, which must be for the host in the endpoint";

/// The sending end of the spans' way.
pub struct Exporter {
    agent: Agent,
    url: String,
    shown_url: String,
    headers: Vec<(String, String)>,
    common: Common,
    sent: metrics::Counter,
    failed: metrics::Counter,
    lost: Lost,
}

/// Spans that were not sent, until it is logged.
#[derive(Default)]
struct Lost {
    spans: u64,
    why: Option<String>,
    logged_at: Option<Instant>,
}

/// What came of a request.
enum Answer {
    Taken,
    /// Some of the spans were refused, for this reason.
    TakenInPart(u64, String),
    /// It may be sent again.
    Later(String),
    Refused(String),
}

impl Exporter {
    /// # Errors
    /// When there are no certificates for https, or the file of them cannot be read.
    pub fn new(settings: &Settings, node: &str) -> std::io::Result<Self> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .user_agent(concat!("ranktree/", env!("CARGO_PKG_VERSION")));
        if settings.url.starts_with("https:") {
            let certificates = match &settings.certificate {
                Some(path) => certificates_of(path)?,
                None => certificates_of_system()?,
            };
            let roots = RootCerts::from(certificates);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        let dropped = |reason: &'static str| metrics::counter!(TRACE_SPANS_DROPPED_TOTAL, "reason" => reason);
        Ok(Self {
            agent: config.build().into(),
            url: settings.url.clone(),
            shown_url: settings.shown_url(),
            headers: settings.headers.0.clone(),
            common: Common::new(settings, node),
            sent: metrics::counter!(TRACE_SPANS_SENT_TOTAL),
            failed: dropped("not_taken"),
            lost: Lost::default(),
        })
    }

    /// Sends spans until the service ends.
    pub fn run(mut self, spans: &Receiver<QueueItem>) {
        // It is published after this thread has begun.
        let is_ending = || Tracer::get().is_some_and(|tracer| tracer.is_ending.load(Ordering::Acquire));
        loop {
            let (batch, is_over) = gather(spans, &is_ending);
            if let Some(tracer) = Tracer::get() {
                let dropped = tracer.dropped.swap(0, Ordering::Relaxed);
                if dropped > 0 {
                    let why =
                        "more spans ended than the collector takes; choose fewer with --otlp-sampler-arg";
                    self.lost.note(dropped, || why.to_owned());
                }
            }
            if !batch.is_empty() {
                self.send_all(batch, &is_ending);
            } else if is_over || is_ending() {
                self.lost.log(&self.shown_url, true);
                return;
            }
            self.lost.log(&self.shown_url, false);
        }
    }

    /// Sends one batch, several times if need be.
    fn send_all(&mut self, batch: Vec<SpanRecord>, is_ending: &impl Fn() -> bool) {
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let body = self.common.encode(batch);
        let mut pauses = PAUSES.iter();
        loop {
            match self.send(&body) {
                Answer::Taken => return self.sent.increment(spans),
                Answer::TakenInPart(refused, why) => {
                    let refused = refused.min(spans);
                    self.sent.increment(spans - refused);
                    return self.drop_spans(refused, why);
                }
                Answer::Refused(why) => return self.drop_spans(spans, why),
                Answer::Later(why) => match pauses.next() {
                    Some(pause) if pause_unless(*pause, is_ending) => {}
                    _ => return self.drop_spans(spans, why),
                },
            }
        }
    }

    fn drop_spans(&mut self, spans: u64, why: String) {
        self.failed.increment(spans);
        self.lost.note(spans, || why);
    }

    fn send(&self, body: &[u8]) -> Answer {
        let mut request = self.agent.post(&self.url).header("content-type", "application/x-protobuf");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut response = match request.send(body) {
            Ok(response) => response,
            Err(ureq::Error::Io(error)) if is_untrusted(&error) => {
                return Answer::Refused(format!("{error}; {UNTRUSTED}"));
            }
            Err(error) => return Answer::Later(format!("{error}{}", self.advice())),
        };
        let status = response.status();
        let answer = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        if status.is_success() {
            let partial = answer
                .ok()
                .and_then(|answer| ExportTraceServiceResponse::decode(&answer[..]).ok())
                .and_then(|answer| answer.partial_success);
            return match partial {
                Some(partial) if partial.rejected_spans > 0 => Answer::TakenInPart(
                    u64::try_from(partial.rejected_spans).unwrap_or(u64::MAX),
                    format!("the collector refused them: {:?}", partial.error_message),
                ),
                _ => Answer::Taken,
            };
        }
        let why = format!("the collector answers {status}{}", self.advice());
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Answer::Later(why),
            _ => Answer::Refused(why),
        }
    }

    fn advice(&self) -> &'static str {
        let uri: Option<ureq::http::Uri> = self.url.parse().ok();
        if uri.and_then(|uri| uri.port_u16()) == Some(GRPC_PORT) {
            "; port 4317 is usually for gRPC: give the endpoint for HTTP, usually on port 4318"
        } else {
            "; --otlp-endpoint names the collector, and its receiver must take OTLP over HTTP"
        }
    }
}

/// The certificates in a PEM file.
fn certificates_of(path: &Path) -> std::io::Result<Vec<Certificate<'static>>> {
    let wrong = |why: String| {
        std::io::Error::other(format!(
            "--otlp-certificate {}: {why}; a PEM file with the certificate of the authority that has signed \
             the collector's is expected",
            path.display()
        ))
    };
    let text = read_regular(path).map_err(|error| wrong(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(error.to_string()))? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(wrong("there is no certificate in it".to_owned()));
    }
    Ok(certificates)
}

fn certificates_of_system() -> std::io::Result<Vec<Certificate<'static>>> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return Err(std::io::Error::other(
            "this system has no list of trusted certificates, which an https endpoint of traces needs; name \
             a PEM file of them with --otlp-certificate",
        ));
    }
    Ok(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect())
}

impl Lost {
    fn note(&mut self, spans: u64, why: impl FnOnce() -> String) {
        self.spans += spans;
        self.why = Some(why());
    }

    fn log(&mut self, endpoint: &str, is_last: bool) {
        let is_due = self.logged_at.is_none_or(|at| at.elapsed() >= LOG_INTERVAL);
        if self.spans == 0 || !(is_due || is_last) {
            return;
        }
        let why = self.why.take().unwrap_or_default();
        tracing::warn!(spans = self.spans, endpoint, why, "spans of traces were dropped");
        *self = Self { logged_at: Some(Instant::now()), ..Self::default() };
    }
}

/// The next spans: those that end within a second, or as many as a request may have. Also tells whether no
/// more can come.
fn gather(spans: &Receiver<QueueItem>, is_ending: &impl Fn() -> bool) -> (Vec<SpanRecord>, bool) {
    let mut batch = Vec::new();
    let until = Instant::now() + GATHER;
    while batch.len() < BATCH_MAX {
        let wait = if is_ending() { Duration::ZERO } else { until.saturating_duration_since(Instant::now()) };
        match spans.recv_timeout(wait) {
            Ok(QueueItem::Span(span)) => batch.push(*span),
            Ok(QueueItem::Wake) => {}
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return (batch, true),
        }
    }
    (batch, false)
}

/// Waits. `false`: the service ends.
fn pause_unless(pause: Duration, is_ending: &impl Fn() -> bool) -> bool {
    let until = Instant::now() + pause;
    while Instant::now() < until {
        if is_ending() {
            return false;
        }
        std::thread::sleep(PAUSE_STEP);
    }
    !is_ending()
}

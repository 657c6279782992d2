//! Requests and answers over HTTP: connections, time limits, retries. Knows no types of answers.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::{Error, Problem};
use crate::retry::{PAUSE_MAX, is_repeatable, pause};

/// A connection to nobody must fail early enough to tell it from an answer that does not come.
const CONNECT_MAX: Duration = Duration::from_secs(5);

const AGENT: &str = concat!("ranktree-client/", env!("CARGO_PKG_VERSION"));

pub(crate) struct Settings {
    pub(crate) bearer: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) tls: Option<rustls::ClientConfig>,
    pub(crate) silence_max: Duration,
}

pub(crate) struct Transport {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The address without a slash at its end.
    url: String,
    authorization: Option<HeaderValue>,
    timeout: Duration,
    pub(crate) retries: u32,
    /// How long a watched board may say nothing.
    pub(crate) silence_max: Duration,
}

/// A request, which may be sent more than once.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Bytes>,
    /// Whether it changes nothing.
    pub(crate) is_read: bool,
}

/// A request could not be sent, or its answer did not come.
pub(crate) struct Failed {
    why: String,
    /// Nothing was sent if there was no connection to send it on.
    is_unsent: bool,
}

impl Transport {
    pub(crate) fn new(url: &str, settings: Settings) -> Result<Self, Error> {
        let is_plain = url.starts_with("http://");
        if !is_plain && !url.starts_with("https://") {
            let told = "the address of a node begins with http:// or https://";
            return Err(Error::Argument(format!("{told}; got {url:?}")));
        }
        if url.contains(['@', '?', '#']) {
            let told = "the address of a node has no user, query or fragment; a token is given as `bearer`";
            return Err(Error::Argument(told.to_owned()));
        }
        let authorization = settings.bearer.map(|bearer| {
            let mut value = HeaderValue::try_from(format!("Bearer {bearer}"))
                .map_err(|_| Error::Argument("a bearer token is printable ASCII".to_owned()))?;
            value.set_sensitive(true);
            Ok::<_, Error>(value)
        });
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(settings.timeout.min(CONNECT_MAX)));
        let tls = match settings.tls {
            Some(tls) => HttpsConnectorBuilder::new().with_tls_config(tls),
            None if is_plain => HttpsConnectorBuilder::new().with_tls_config(nobody()),
            None => HttpsConnectorBuilder::new()
                .with_native_roots()
                .map_err(|error| Error::Argument(format!("this machine's certificates: {error}")))?,
        };
        let connector = tls.https_or_http().enable_http1().wrap_connector(connector);
        Ok(Self {
            http: Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector),
            url: url.trim_end_matches('/').to_owned(),
            authorization: authorization.transpose()?,
            timeout: settings.timeout,
            retries: settings.retries,
            silence_max: settings.silence_max,
        })
    }

    /// Sends a request until it is answered, or must not be sent again. `waits` is how long the service may
    /// wait before it answers.
    pub(crate) async fn send<A: DeserializeOwned>(
        &self,
        call: &Call,
        query: &str,
        waits: Duration,
    ) -> Result<A, Error> {
        let mut number = 0;
        loop {
            let error = match self.once(call, query, waits).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(rest) = rest(&error, call.is_read, number).filter(|_| number < self.retries) else {
                return Err(error);
            };
            sleep(rest).await;
            number += 1;
        }
    }

    async fn once<A: DeserializeOwned>(&self, call: &Call, query: &str, waits: Duration) -> Result<A, Error> {
        let end = Instant::now() + self.timeout + waits;
        let answer = async {
            let response = self.open(call, query, &[], end).await?;
            let status = response.status();
            let retry_after = retry_after(&response);
            let body = within(end, response.into_body().collect())
                .await?
                .map_err(|error| Failed { why: error.to_string(), is_unsent: false })?;
            Ok::<_, Failed>((status, retry_after, body.to_bytes()))
        };
        let (status, retry_after, body) = answer.await.map_err(|failed| self.failed(call, &failed))?;
        if !status.is_success() {
            return Err(Problem::read(status.as_u16(), &body, retry_after).into());
        }
        serde_json::from_slice(&body).map_err(|error| {
            let mut problem = Problem::read(status.as_u16(), &body, None);
            problem.detail = format!("the answer cannot be read: {error}");
            problem.into()
        })
    }

    /// Sends a request once, and returns its answer when its body begins.
    pub(crate) async fn open(
        &self,
        call: &Call,
        query: &str,
        headers: &[(&'static str, HeaderValue)],
        end: Instant,
    ) -> Result<Response<Incoming>, Failed> {
        let mut request = hyper::Request::builder()
            .method(&call.method)
            .uri(format!("{}{}{query}", self.url, call.path))
            .header(USER_AGENT, AGENT);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let unsent = |why: String| Failed { why, is_unsent: true };
        let body = Full::new(call.body.clone().unwrap_or_default());
        let request = request.body(body).map_err(|error| unsent(error.to_string()))?;
        within(end, self.http.request(request)).await?.map_err(|error| {
            // The reason is a few errors below.
            let mut why = error.to_string();
            let mut source = error.source();
            while let Some(inner) = source {
                why = inner.to_string();
                source = inner.source();
            }
            Failed { why, is_unsent: error.is_connect() }
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// How long a request may take, in addition to what the service waits.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn failed(&self, call: &Call, failed: &Failed) -> Error {
        Error::ConnectionFailed {
            detail: format!("{} did not answer {} {}: {}", self.url, call.method, call.path, failed.why),
            may_be_applied: !failed.is_unsent && !call.is_read,
        }
    }
}

/// How long to wait before a request is sent again; `None` if it must not be.
fn rest(error: &Error, is_read: bool, number: u32) -> Option<Duration> {
    match error {
        Error::ConnectionFailed { may_be_applied: false, .. } => Some(pause(number)),
        error => {
            let problem = error.problem().filter(|problem| is_repeatable(is_read, problem))?;
            Some(problem.retry_after.map_or_else(|| pause(number), |rest| rest.min(PAUSE_MAX)))
        }
    }
}

async fn within<T>(end: Instant, work: impl Future<Output = T>) -> Result<T, Failed> {
    let told = || Failed { why: "it took too long".to_owned(), is_unsent: false };
    timeout_at(end, work).await.map_err(|_| told())
}

/// In seconds, if the service said when to try again.
pub(crate) fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.parse().ok().map(Duration::from_secs)
}

/// For addresses without TLS: no certificate is read from the disk, and none is trusted.
fn nobody() -> rustls::ClientConfig {
    let provider = rustls::crypto::ring::default_provider();
    rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("ring knows the versions of TLS that are on")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

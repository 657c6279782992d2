//! A client of a running service: where it is, the token that it is shown, whose certificates are accepted,
//! and how often a request is tried again.
//!
//! Used by every subcommand that asks a service over HTTP, but for `load`: the generator measures connections
//! of its own, and never retries. Must not know: what is asked of the service.

mod agent;
mod base_url;
mod reader;
mod refusal;
mod retry;
mod tls_roots;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body, RequestBuilder, Timeout};

pub use agent::{agent, wrong_scheme};
pub use base_url::BaseUrl;
pub use reader::Reader;
pub use refusal::{Refused, code_of, describe_refusal, not_there, with_advice};
pub use retry::{Backoff, RETRY_FOR};
pub use tls_roots::load_tls_roots;

use crate::tls_roots::ClientTls;
use crate::types::decimal;
use agent::{is_tls_refused, lacks_tls};

/// A connection that takes longer will not come to be.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the service itself waits for a commit, so that the service is the one to say what came of it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Above the longest answer, which tells of 1,000 jobs on 64 boards each in about 400 bytes per board.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The header of answers that state the checksum of their bodies.
const CRC32C: &str = "ranktree-crc32c";

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("{0}")]
    Address(String),
    /// There are no certificates to accept.
    #[error("{0}")]
    Certificates(String),
}

/// How requests are sent to a service, on keep-alive connections.
pub struct Client {
    /// Without a slash at its end.
    base: String,
    authorization: Option<String>,
    /// For https.
    tls: Option<ClientTls>,
    user_agent: String,
    agent: Agent,
    /// Once the service has answered, the scheme of the URL is right.
    has_answered: Arc<AtomicBool>,
}

/// What the service answered, whatever it was.
pub struct Reply {
    pub status: StatusCode,
    /// How long the service asks to be left alone.
    pub retry_after: Option<Duration>,
    /// The CRC-32C of the body, where the service states it.
    pub crc32c: Option<String>,
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failed {
    /// Nobody took the request, so it was not applied.
    NotReached(String),
    /// The connection broke after the request may have left: it may have been applied.
    Unknown(String),
    /// The answer is longer than any that a service gives; the request may have been applied.
    TooLong(String),
    /// Trying again would not help.
    Permanent(String),
}

impl Client {
    /// # Arguments
    /// `url`: what `--url` says.
    /// `ca`: a PEM file of accepted certificates; `None` for those of the system.
    /// `who`: the subcommand, as requests name it.
    ///
    /// # Errors
    /// When the address is none that can be connected to, or there are no certificates to accept.
    pub fn new(url: &str, token: Option<&str>, ca: Option<&Path>, who: &str) -> Result<Self, ClientError> {
        let BaseUrl { text: base, is_https } = BaseUrl::parse("--url", url).map_err(ClientError::Address)?;
        let tls = is_https.then(|| load_tls_roots(ca)).transpose().map_err(ClientError::Certificates)?;
        let authorization = token.map(|token| format!("Bearer {token}"));
        let user_agent = format!("ranktree-{who}/{}", env!("CARGO_PKG_VERSION"));
        let agent = agent_of(&user_agent, tls.clone());
        let has_answered = Arc::default();
        Ok(Self { base, authorization, tls, user_agent, agent, has_answered })
    }

    /// The same client with connections of its own.
    pub fn with_own_connections(&self) -> Self {
        Self {
            base: self.base.clone(),
            authorization: self.authorization.clone(),
            tls: self.tls.clone(),
            user_agent: self.user_agent.clone(),
            agent: agent_of(&self.user_agent, self.tls.clone()),
            has_answered: Arc::clone(&self.has_answered),
        }
    }

    /// Whether the service has begun to answer a request, on any of the connections.
    pub fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Notes that the service is there, although it has not answered.
    pub fn note_answered(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Scheme, host, port, and what the paths of the API come after.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// # Errors
    /// When there is no answer.
    pub fn get(&self, url: &str) -> Result<Reply, Failed> {
        self.read(self.authorized(self.agent.get(url)).call())
    }

    /// Sends a JSON document.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn post(&self, url: &str, json: &str) -> Result<Reply, Failed> {
        self.send(self.agent.post(url), json)
    }

    /// Sends a JSON document.
    ///
    /// # Errors
    /// When there is no answer.
    pub fn put(&self, url: &str, json: &str) -> Result<Reply, Failed> {
        self.send(self.agent.put(url), json)
    }

    /// # Errors
    /// When there is no answer.
    pub fn delete(&self, url: &str) -> Result<Reply, Failed> {
        self.read(self.authorized(self.agent.delete(url)).call())
    }

    fn send(&self, request: RequestBuilder<ureq::typestate::WithBody>, json: &str) -> Result<Reply, Failed> {
        let request = request.header(header::CONTENT_TYPE, "application/json");
        self.read(self.authorized(request).send(json))
    }

    fn read(&self, response: Result<Response<Body>, ureq::Error>) -> Result<Reply, Failed> {
        match response {
            Ok(response) => {
                self.note_answered();
                Reply::read(response)
            }
            Err(error) => {
                let advice = if self.has_answered() { None } else { lacks_tls(&self.base, &error) };
                Err(advice
                    .map_or_else(|| Failed::of_request(error), |advice| Failed::Permanent(advice.to_owned())))
            }
        }
    }

    fn authorized<T>(&self, request: RequestBuilder<T>) -> RequestBuilder<T> {
        match &self.authorization {
            Some(authorization) => request.header(header::AUTHORIZATION, authorization),
            None => request,
        }
    }
}

fn agent_of(user_agent: &str, tls: Option<ClientTls>) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(ANSWER_TIMEOUT))
        .timeout_recv_body(Some(ANSWER_TIMEOUT))
        .user_agent(user_agent)
        .build();
    agent(config, tls)
}

impl Reply {
    fn read(mut response: Response<Body>) -> Result<Self, Failed> {
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after =
            retry_after.and_then(|value| decimal(value.to_str().ok()?)).map(Duration::from_secs);
        let crc32c = response.headers().get(CRC32C);
        let crc32c = crc32c.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(Failed::of_body)?;
        Ok(Self { status: response.status(), retry_after, crc32c, body })
    }
}

impl Failed {
    /// In words.
    pub fn reason(&self) -> &str {
        match self {
            Self::NotReached(reason)
            | Self::Unknown(reason)
            | Self::TooLong(reason)
            | Self::Permanent(reason) => reason,
        }
    }

    /// What a failed request says about whether it was received.
    fn of_request(error: ureq::Error) -> Self {
        let reason = error.to_string();
        match error {
            error if is_tls_refused(&error) => Self::Permanent(reason),
            ureq::Error::Io(io) if io.kind() == std::io::ErrorKind::ConnectionRefused => {
                Self::NotReached(reason)
            }
            ureq::Error::ConnectionFailed | ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                Self::NotReached(reason)
            }
            ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => Self::Unknown(reason),
            // A host that has no address, a URL that is none.
            _ => Self::Permanent(reason),
        }
    }

    fn of_body(error: ureq::Error) -> Self {
        match error {
            ureq::Error::BodyExceedsLimit(_) => Self::TooLong(error.to_string()),
            error => Self::Unknown(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_if_it_is_a_number_of_seconds() {
        for (asked, expect) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("+7", None),
            ("-1", None),
            ("soon", None),
            ("Sat, 21 Nov 2026 07:00:00 GMT", None),
        ] {
            let answer = Response::builder().status(503).header(header::RETRY_AFTER, asked);
            let answer = answer.body(Body::builder().data("{}")).expect("a good answer");
            let reply = Reply::read(answer).expect("it is read");
            assert_eq!(reply.retry_after.map(|wait| wait.as_secs()), expect, "{asked}");
        }
    }

    #[test]
    fn connections_share_whether_the_service_has_answered() {
        let client = Client::new("http://ranks.example", None, None, "test").expect("an address");
        let other = client.with_own_connections();
        assert!(!other.has_answered());
        client.note_answered();
        assert!(other.has_answered());
    }

    #[test]
    fn only_http_and_https_addresses_are_taken() {
        let client = |url: &str, ca: Option<&Path>| Client::new(url, None, ca, "test");
        for bad in ["", "127.0.0.1:8080", "ftp://ranks.example", "http://"] {
            assert!(matches!(client(bad, None), Err(ClientError::Address(_))), "{bad}");
        }
        let good = client("http://ranks.example/base/", None).expect("an address");
        assert_eq!(good.base(), "http://ranks.example/base");
        let refused = client("https://ranks.example", Some(Path::new("/no/such/file"))).map(|_| ());
        let refused = refused.expect_err("there is no such file").to_string();
        assert!(refused.contains("cannot read /no/such/file"), "{refused}");
    }
}

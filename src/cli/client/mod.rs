//! A client of a running service: where it is, the token that it is shown, whose certificates are accepted,
//! by which proxy it is asked, and how often a request is tried again.
//!
//! Used by every subcommand that asks a service over HTTP, but for `load`: the generator measures connections
//! of its own, and never retries. Must not know: what is asked of the service.

mod agent;
mod base_url;
mod failed;
mod greeting;
mod proxy;
mod reader;
mod refusal;
mod retry;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body, Proxy, ProxyProtocol, RequestBuilder};

pub use agent::{agent, load_tls_roots, wrong_scheme};
pub use base_url::BaseUrl;
pub use failed::Failed;
pub use reader::Reader;
pub use refusal::{Refused, code_of, describe_refusal, not_there, with_advice};
pub use retry::{Backoff, RETRY_FOR};

use crate::config::{ClientArgs, ConfigError, ProxyVariables};
use crate::tls_roots::ClientTls;
use crate::types::decimal;
use proxy::ProxyChoice;

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
    #[error("{0}")]
    Proxy(String),
    #[error(transparent)]
    Settings(#[from] ConfigError),
}

/// How requests are sent to a service, on keep-alive connections.
pub struct Client {
    base: BaseUrl,
    authorization: Option<String>,
    /// For https.
    tls: Option<ClientTls>,
    proxy: Option<Proxy>,
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
    /// What the service's clock says, to the second.
    pub date: Option<String>,
    pub body: Vec<u8>,
}

impl Client {
    /// # Arguments
    /// `url`: what `--url` says.
    /// `who`: the subcommand, as requests name it.
    ///
    /// # Errors
    /// When the address is none that can be connected to, the token cannot be read, there are no certificates
    /// to accept, or the token would be shown to a proxy.
    pub fn new(url: &str, args: &ClientArgs, who: &str) -> Result<Self, ClientError> {
        let base = BaseUrl::parse("--url", url).map_err(ClientError::Address)?;
        let token = args.token()?;
        let variables = ProxyVariables::of_environment();
        let given = args.proxy.as_deref();
        let choice = ProxyChoice { given, variables: &variables, has_token: token.is_some() };
        let proxy = choice.of(&base).map_err(ClientError::Proxy)?;
        let by_tls = proxy.as_ref().is_some_and(|proxy| proxy.protocol() == ProxyProtocol::Https);
        let tls = (base.is_https || by_tls).then(|| load_tls_roots(args.ca.as_deref())).transpose();
        let tls = tls.map_err(ClientError::Certificates)?;
        let authorization = token.map(|token| format!("Bearer {token}"));
        let user_agent = format!("ranktree-{who}/{}", env!("CARGO_PKG_VERSION"));
        let agent = agent_of(&user_agent, tls.clone(), proxy.clone());
        let has_answered = Arc::default();
        Ok(Self { base, authorization, tls, proxy, user_agent, agent, has_answered })
    }

    /// Asks whether there is a service, before anything is sent that matters.
    pub fn greet(&self) -> Result<(), Failed> {
        let status = greeting::greet(&self.agent, &self.base, self.proxy.is_none())?;
        if status == StatusCode::OK {
            self.note_answered();
        }
        Ok(())
    }

    /// The same client with connections of its own.
    pub fn with_own_connections(&self) -> Self {
        Self {
            base: self.base.clone(),
            authorization: self.authorization.clone(),
            tls: self.tls.clone(),
            proxy: self.proxy.clone(),
            user_agent: self.user_agent.clone(),
            agent: agent_of(&self.user_agent, self.tls.clone(), self.proxy.clone()),
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
        &self.base.text
    }

    pub fn get(&self, url: &str) -> Result<Reply, Failed> {
        self.read(self.authorized(self.agent.get(url)).call())
    }

    /// Sends a JSON document.
    pub fn post(&self, url: &str, json: &str) -> Result<Reply, Failed> {
        self.send(self.agent.post(url), json)
    }

    /// Sends a JSON document.
    pub fn put(&self, url: &str, json: &str) -> Result<Reply, Failed> {
        self.send(self.agent.put(url), json)
    }

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
                let may_be_wrong = !self.has_answered() && self.proxy.is_none();
                let advice = if may_be_wrong { wrong_scheme(&self.base, &error) } else { None };
                Err(advice.map_or_else(|| Failed::of_request(error), Failed::Permanent))
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

fn agent_of(user_agent: &str, tls: Option<ClientTls>, proxy: Option<Proxy>) -> Agent {
    let config = Agent::config_builder()
        .proxy(proxy)
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
        let date = response.headers().get(header::DATE);
        let date = date.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(Failed::of_body)?;
        Ok(Self { status: response.status(), retry_after, crc32c, date, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of this address, with no token and the system's certificates.
    fn client_of(url: &str) -> Client {
        Client::new(url, &ClientArgs::default(), "test").expect("an address")
    }

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
        let client = client_of("http://ranks.example");
        let other = client.with_own_connections();
        assert!(!other.has_answered());
        client.note_answered();
        assert!(other.has_answered());
    }

    #[test]
    fn only_http_and_https_addresses_are_taken() {
        let client = |url: &str, ca: Option<&str>| {
            let args = ClientArgs { ca: ca.map(Into::into), ..ClientArgs::default() };
            Client::new(url, &args, "test")
        };
        for bad in ["", "127.0.0.1:8080", "ftp://ranks.example", "http://"] {
            assert!(matches!(client(bad, None), Err(ClientError::Address(_))), "{bad}");
        }
        let good = client("http://ranks.example/base/", None).expect("an address");
        assert_eq!(good.base(), "http://ranks.example/base");
        let refused = client("https://ranks.example", Some("/no/such/file")).map(|_| ());
        let refused = refused.expect_err("there is no such file").to_string();
        assert!(refused.contains("cannot read /no/such/file"), "{refused}");
    }
}

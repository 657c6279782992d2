//! A running service, asked for what it has to tell: who reads may ask again.
//!
//! Knows: how a request proves who it is, whom it trusts, and how long it goes on trying. Must not know: what is asked for.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::{StatusCode, header};

use crate::cli::Failure;
use crate::cli::client::base_url::BaseUrl;
use crate::cli::client::tls_roots::{agent, is_untrusted, trusting};
use crate::config::ClientArgs;

/// Above the longest page: of 1,000 entries each has at most 128 bytes of id and 1 KiB of metadata, either escaped.
const PAGE_BYTES_MAX: u64 = 16 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to go on trying while the service is away or overloaded. Reading again changes nothing.
const TRY_FOR: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

pub struct Service {
    agent: Agent,
    /// Without a slash at its end.
    base: String,
    /// Whether there ever was an answer: whoever named the wrong address is not to wait for one.
    is_there: Cell<bool>,
    authorization: Option<String>,
}

enum Trouble {
    Passing(String),
    Lasting(String),
}

impl Service {
    /// # Arguments
    /// `base`: what `--url` says.
    /// `who`: how the requests call themselves.
    ///
    /// # Errors
    /// When the address is none that can be connected to, the token cannot be read, or nothing says whose certificates
    /// to trust.
    pub fn new(base: &str, client: &ClientArgs, who: &str) -> Result<Self, Failure> {
        let BaseUrl { text: base, is_https } = BaseUrl::parse("--url", base)?;
        let tls = is_https.then(|| trusting(client.ca.as_deref())).transpose()?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .timeout_recv_body(Some(ANSWER_TIMEOUT))
            .user_agent(format!("{who}/{}", env!("CARGO_PKG_VERSION")))
            .build();
        let authorization = client.token()?.map(|token| format!("Bearer {token}"));
        Ok(Self { agent: agent(config, tls), base, is_there: Cell::new(false), authorization })
    }

    /// Scheme, host, port, and what the paths of the API come after.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The answer, once there is one.
    ///
    /// # Errors
    /// When the service refuses, or stays away.
    pub fn get(&self, url: &str) -> Result<String, Failure> {
        let started = Instant::now();
        loop {
            match self.ask(url) {
                Ok(body) => return Ok(body),
                Err(Trouble::Passing(_)) if self.is_there.get() && started.elapsed() < TRY_FOR => {
                    thread::sleep(PAUSE);
                }
                Err(Trouble::Passing(reason) | Trouble::Lasting(reason)) => {
                    return Err(format!("{url} cannot be read: {reason}").into());
                }
            }
        }
    }

    fn ask(&self, url: &str) -> Result<String, Trouble> {
        let mut request = self.agent.get(url);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let failed = |error: ureq::Error| match error {
            error if is_untrusted(&error) => Trouble::Lasting(error.to_string()),
            ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::ConnectionFailed => {
                Trouble::Passing(error.to_string())
            }
            _ => Trouble::Lasting(error.to_string()),
        };
        let mut response = request.call().map_err(failed)?;
        self.is_there.set(true);
        let status = response.status();
        let body =
            response.body_mut().with_config().limit(PAGE_BYTES_MAX).read_to_string().map_err(failed)?;
        if status == StatusCode::OK {
            return Ok(body);
        }
        let reason = format!("{status} {}", body.trim());
        let passes = status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS;
        Err(if passes { Trouble::Passing(reason) } else { Trouble::Lasting(reason) })
    }
}

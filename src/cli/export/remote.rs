//! A running service's board, page by page.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ureq::Agent;
use ureq::http::{StatusCode, header};
use ureq::tls::{RootCerts, TlsConfig};

use crate::cli::Failure;
use crate::cli::base_url::BaseUrl;
use crate::cli::board_line::definition_in;
use crate::cli::export::row::Page;
use crate::cli::trust::{is_untrusted, trusted};
use crate::config::ClientArgs;

/// The most that a page may have.
const PAGE_ENTRIES: usize = 1_000;
/// Above the longest page: each entry has at most 128 bytes of id and 1 KiB of metadata, either escaped.
const PAGE_BYTES_MAX: u64 = 16 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to go on trying while the service is away or overloaded. Reading again changes nothing.
const TRY_FOR: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(500);

pub struct Remote {
    agent: Agent,
    /// The board's own URL.
    board: String,
    /// The first page's.
    url: String,
    /// Whether there ever was an answer: whoever named the wrong address is not to wait for one.
    is_there: Cell<bool>,
    authorization: Option<String>,
}

enum Trouble {
    Passing(String),
    Lasting(String),
}

impl Remote {
    /// # Errors
    /// When the address is none that can be connected to, the token cannot be read, or nothing says whose certificates
    /// to trust.
    pub fn new(base: &str, client: &ClientArgs, board: &str, window: &str) -> Result<Self, Failure> {
        let BaseUrl { text: base, is_https } = BaseUrl::parse("--url", base)?;
        let mut tls = TlsConfig::builder();
        if is_https {
            tls = tls.root_certs(RootCerts::from(trusted(client.ca.as_deref())?));
        }
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT))
            .timeout_recv_body(Some(ANSWER_TIMEOUT))
            .user_agent(concat!("ranktree-export/", env!("CARGO_PKG_VERSION")))
            .build();
        let (board, window) =
            (utf8_percent_encode(board, NON_ALPHANUMERIC), utf8_percent_encode(window, NON_ALPHANUMERIC));
        let board = format!("{base}/v1/boards/{board}");
        let url = format!("{board}/top?window={window}&limit={PAGE_ENTRIES}&reached_at=true");
        let authorization = client.token()?.map(|token| format!("Bearer {token}"));
        let agent = Agent::new_with_config(config);
        Ok(Self { agent, board, url, is_there: Cell::new(false), authorization })
    }

    /// What the board is, as JSON.
    ///
    /// # Errors
    /// When there is none, or the service stays away.
    pub fn definition(&self) -> Result<String, Failure> {
        let answer = self.get(&self.board)?;
        let definition = definition_in(&answer);
        definition.ok_or_else(|| format!("{}: not the answer of a ranktree", self.board).into())
    }

    /// The page behind a cursor, or the first one.
    ///
    /// # Errors
    /// When there is none, or the service stays away.
    pub fn page(&self, cursor: Option<&str>) -> Result<Page, Failure> {
        // A cursor has nothing to escape.
        let url = cursor.map_or_else(|| self.url.clone(), |cursor| format!("{}&cursor={cursor}", self.url));
        let page = serde_json::from_str(&self.get(&url)?);
        page.map_err(|error| format!("{}: not the answer of a ranktree: {error}", self.url).into())
    }

    /// The answer, once there is one.
    fn get(&self, url: &str) -> Result<String, Failure> {
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
            error if is_untrusted(&error) => Trouble::Lasting(format!("{error}; --ca says whom to trust")),
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

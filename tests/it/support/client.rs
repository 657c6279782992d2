//! A small HTTP client that says what came back, whatever it was.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::http::{Method, Request, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, SendBody};

/// One keep-alive connection to a service.
pub struct Client {
    base: String,
    agent: Agent,
    authorization: Option<String>,
    waits_for_writes: bool,
}

/// A status, and the body; `Null` if it is not JSON.
pub type Reply = (u16, Value);

impl Client {
    pub fn new(base: &str) -> Self {
        let config = Agent::config_builder().http_status_as_error(false).build();
        Self::of(base, Agent::new_with_config(config))
    }

    fn of(base: &str, agent: Agent) -> Self {
        Self { base: base.to_owned(), agent, authorization: None, waits_for_writes: false }
    }

    /// One that trusts this certificate, in PEM, and no other.
    pub fn trusting(base: &str, certificate: &str) -> Self {
        let certificate = Certificate::from_pem(certificate.as_bytes()).expect("a certificate");
        let tls = TlsConfig::builder().root_certs(RootCerts::from([certificate])).build();
        let config = Agent::config_builder().http_status_as_error(false).tls_config(tls).build();
        Self::of(base, Agent::new_with_config(config))
    }

    /// Waits until each write of jobs is applied, which without NATS goes without saying.
    pub fn waiting_for_writes(self) -> Self {
        Self { waits_for_writes: true, ..self }
    }

    /// Sends this bearer token with every request.
    pub fn with_token(self, token: &str) -> Self {
        Self { authorization: Some(format!("Bearer {token}")), ..self }
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, None).expect("the service is there")
    }

    pub fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PUT, path, Some(body)).expect("the service is there")
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, Some(body)).expect("the service is there")
    }

    /// # Errors
    /// When there was no complete answer.
    pub fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Reply, ureq::Error> {
        let mut uri = format!("{}{path}", self.base);
        if self.waits_for_writes && writes_jobs(&method, path) && !path.contains("wait=") {
            uri.push_str(if path.contains('?') { "&wait=applied" } else { "?wait=applied" });
        }
        let mut request = Request::builder().method(method).uri(uri);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let mut response = match body {
            Some(body) => {
                let request = request.header(header::CONTENT_TYPE, "application/json");
                let request =
                    request.body(SendBody::from_owned_reader(std::io::Cursor::new(body.to_string())));
                self.agent.run(request.expect("a well-formed path"))?
            }
            None => self.agent.run(request.body(()).expect("a well-formed path"))?,
        };
        let text = response.body_mut().read_to_string()?;
        Ok((response.status().as_u16(), serde_json::from_str(&text).unwrap_or_default()))
    }
}

/// Whether a request writes jobs; boards take effect before they are answered in any case.
fn writes_jobs(method: &Method, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    match *method {
        Method::PUT | Method::DELETE => path.contains("/members/"),
        Method::POST => path == "/v1/jobs",
        _ => false,
    }
}

/// The path of a member's entry.
pub fn entry_path(board: &str, member: &str) -> String {
    format!("/v1/boards/{board}/members/{}", utf8_percent_encode(member, NON_ALPHANUMERIC))
}

/// A score as answers have it: an integer, a decimal string, or several of these.
pub fn score_of(value: &Value) -> Vec<i64> {
    match value {
        Value::Array(keys) => keys.iter().flat_map(score_of).collect(),
        Value::String(text) => vec![text.parse().expect("a decimal integer")],
        other => vec![other.as_i64().expect("an integer")],
    }
}

/// A count, rank or position.
pub fn count_of(value: &Value) -> usize {
    value.as_u64().and_then(|count| usize::try_from(count).ok()).expect("a count")
}

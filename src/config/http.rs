//! Settings of the HTTP side: where it listens, who may reach it, and how long it waits for clients.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::config::{ConfigError, switch};
use crate::http::Origin;

#[derive(Debug, Clone, Args)]
pub struct HttpArgs {
    /// Address to serve HTTP on; port 0 picks a free one
    #[arg(long, env = "RANKTREE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080",
        value_parser = parse_address)]
    pub listen: SocketAddr,
    /// TOML file that lists the hashes of the bearer tokens that requests need; `ranktree token new` makes a
    /// token and the lines for the file. Read again within two seconds of a change. Without it, everybody may
    /// do everything
    #[arg(long, env = "RANKTREE_TOKENS", value_name = "TOKENS_FILE")]
    pub tokens: Option<PathBuf>,
    /// The content of the tokens file itself, for deployments that can set environment variables more easily
    /// than files
    #[arg(long, env = "RANKTREE_TOKEN_LIST", value_name = "TOML", hide_env_values = true)]
    pub token_list: Option<String>,
    /// Serve HTTPS with the certificates in this PEM file: the server's own, then those that sign it. Read
    /// again within two seconds of a change
    #[arg(long, env = "RANKTREE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file
    #[arg(long, env = "RANKTREE_TLS_KEY", value_name = "SECRET_FILE")]
    pub tls_key: Option<PathBuf>,
    /// Serve without tokens to everybody who can reach the port. Without this flag, a service that has no
    /// tokens does not start on an address that other machines can reach. On a loopback address it refuses
    /// the requests that pages of other sites send through a browser on this machine
    #[arg(long, env = "RANKTREE_INSECURE", value_name = "true|false", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch(),
        hide_possible_values = true)]
    pub insecure: bool,
    /// Origin of another site, such as `https://game.example`, whose pages may send every request that this
    /// service's own pages may; may be given several times. Pages of other sites are refused what changes
    /// something, and on a loopback address without tokens nearly everything
    #[arg(long, env = "RANKTREE_ALLOW_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    pub allow_origin: Vec<Origin>,
    /// Maximum of open connections; further ones are answered 503, or closed. 0 means no limit
    #[arg(long, env = "RANKTREE_MAX_CONNECTIONS", value_name = "N", default_value_t = 4_096)]
    pub max_connections: usize,
    /// Maximum of open connections per client. A client is one IPv4 address or one IPv6 network of 64 bits;
    /// raise the limit behind a proxy. 0 means no limit
    #[arg(long, env = "RANKTREE_MAX_CONNECTIONS_PER_CLIENT", value_name = "N", default_value_t = 1_024)]
    pub max_connections_per_client: usize,
    /// Maximum of requests in progress; further ones are answered 503. Probes, metrics and reads that wait
    /// for a write (after=) do not count. A connection has one request at a time, so keep this well below
    /// --max-connections
    #[arg(long, env = "RANKTREE_MAX_REQUESTS", value_name = "N", default_value_t = 1_024,
        value_parser = at_least_one())]
    pub max_requests: usize,
    /// Maximum of clients that watch boards (GET /v1/boards/{board}/live); further ones are answered 503.
    /// Each keeps its connection, so keep this well below --max-connections. 0 means no limit
    #[arg(long, env = "RANKTREE_MAX_WATCHERS", value_name = "N", default_value_t = 2_048)]
    pub max_watchers: usize,
    /// Maximum of them per client, as for connections. 0 means no limit
    #[arg(long, env = "RANKTREE_MAX_WATCHERS_PER_CLIENT", value_name = "N", default_value_t = 512)]
    pub max_watchers_per_client: usize,
    /// Threads that serve HTTP, up to 256. 0: one fewer than there are cores, which leaves one to the
    /// writers, and at least one
    #[arg(long, env = "RANKTREE_HTTP_THREADS", value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u16).range(0..=256))]
    pub http_threads: u16,
    /// How long a request's head may take to arrive, and TLS to be set up, in seconds
    #[arg(long, env = "RANKTREE_HEADER_SECONDS", value_name = "SECONDS", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub header_seconds: u32,
    /// How long a request's body may take to arrive, in seconds. It may pause for at most a third of that
    #[arg(long, env = "RANKTREE_BODY_SECONDS", value_name = "SECONDS", default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub body_seconds: u32,
    /// How long a connection may be open without a request, in seconds
    #[arg(long, env = "RANKTREE_IDLE_SECONDS", value_name = "SECONDS", default_value_t = 75,
        value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub idle_seconds: u32,
    /// How long a client may take to read an answer, in seconds. A client that reads gets one more second for
    /// every 16 KiB
    #[arg(long, env = "RANKTREE_WRITE_SECONDS", value_name = "SECONDS", default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub write_seconds: u32,
}

/// Where tokens are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    File(PathBuf),
    Text(String),
}

/// A certificate's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The HTTP side's settings, decided and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    pub listen: SocketAddr,
    pub tokens: Option<TokenSource>,
    pub tls: Option<TlsFiles>,
    /// Only programs of this machine may ask, and no page of another site in a browser on it.
    pub local_only: bool,
    /// Sites whose pages may ask nevertheless.
    pub allow_origin: Vec<Origin>,
    pub max_connections: usize,
    pub max_connections_per_client: usize,
    pub max_requests: usize,
    pub max_watchers: usize,
    pub max_watchers_per_client: usize,
    /// For 0, as many as [`crate::http::Serving`] takes by itself.
    pub threads: usize,
    pub header: Duration,
    pub body: Duration,
    pub idle: Duration,
    pub write: Duration,
}

impl HttpArgs {
    /// Checks what one setting alone does not say.
    ///
    /// # Errors
    /// When settings contradict each other; when others could reach it without tokens, and nobody said that
    /// they may.
    pub fn resolve(self) -> Result<HttpConfig, ConfigError> {
        let tokens = match (self.tokens, self.token_list) {
            (Some(_), Some(_)) => return Err(ConfigError::Conflicting("--tokens", "--token-list")),
            (Some(path), None) => Some(TokenSource::File(path)),
            (None, Some(text)) => Some(TokenSource::Text(text)),
            (None, None) => None,
        };
        let tls = match (self.tls_cert, self.tls_key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            (Some(_), None) => return Err(ConfigError::RequiresOther("--tls-cert", "--tls-key")),
            (None, Some(_)) => return Err(ConfigError::RequiresOther("--tls-key", "--tls-cert")),
        };
        if !(self.listen.ip().is_loopback() || tokens.is_some() || self.insecure) {
            return Err(ConfigError::Exposed(self.listen));
        }
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        Ok(HttpConfig {
            listen: self.listen,
            local_only: tokens.is_none() && !self.insecure,
            allow_origin: self.allow_origin,
            tokens,
            tls,
            max_connections: self.max_connections,
            max_connections_per_client: self.max_connections_per_client,
            max_requests: self.max_requests,
            max_watchers: self.max_watchers,
            max_watchers_per_client: self.max_watchers_per_client,
            threads: usize::from(self.http_threads),
            header: seconds(self.header_seconds),
            body: seconds(self.body_seconds),
            idle: seconds(self.idle_seconds),
            write: seconds(self.write_seconds),
        })
    }
}

impl HttpConfig {
    /// Whether tokens are sent unencrypted, so that others on the network can read them.
    pub fn sends_tokens_in_the_clear(&self) -> bool {
        self.tokens.is_some() && self.tls.is_none() && !self.listen.ip().is_loopback()
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an IP address and a port are expected, for example 127.0.0.1:8080 or [::1]:8080")
}

fn at_least_one() -> impl clap::builder::TypedValueParser<Value = usize> {
    use clap::builder::TypedValueParser as _;
    clap::value_parser!(u64).range(1..).try_map(usize::try_from)
}

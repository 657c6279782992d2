//! Connections to NATS. They reconnect without end, with pauses, and log it. If a server does not answer, its
//! connection moves to another server.
//!
//! Knows: why the last attempt failed, and which errors the server reported lately, in words for an operator.

use std::collections::VecDeque;
use std::fmt::{Display, Write as _};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, Event, Server, ServerError};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::metrics as names;
use crate::queue::nats::connect::access::NatsAccess;
use crate::queue::nats::connect::inbox::InboxPrefix;
use crate::queue::nats::connect::server_choice::ServerChoice;

/// A server that was silent for so long is pinged. The NATS client leaves a server that owes three answers,
/// so after four and a half seconds. That is soon enough to be elsewhere when a cluster has elected new
/// leaders, which takes it four to nine seconds, and late enough for a message that takes seconds over a slow
/// link.
const PING_INTERVAL: Duration = Duration::from_millis(1_500);
/// How long a server may take to complete a connection. A frozen one accepts it, and stays silent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the server may take to answer anything but a pull.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection without answers for so long is left, even if its server answers pings: the server may be cut
/// off from the others. A cluster that has lost its leader answers sooner than that, by a new one.
const SWITCH_SERVER_AFTER: Duration = Duration::from_secs(8);
/// The same failure to reconnect is logged at most this often.
const LOG_INTERVAL: Duration = Duration::from_secs(30);
/// Reasons that are remembered as logged.
const LOGGED_MAX: usize = 32;
/// For how long an error that the server reported explains failed requests. A request that the server denied
/// has no answer, and times out after [`REQUEST_TIMEOUT`]; the error that the server reported meanwhile is
/// the reason.
const SERVER_ERROR_VALID_FOR: Duration = Duration::from_secs(10);

/// Failures to connect that were logged lately. A node has several connections to the same servers, and one
/// line says it for all.
static FAILURES_LOGGED: Mutex<VecDeque<(String, Instant)>> = Mutex::new(VecDeque::new());

/// A connection that keeps itself up.
#[derive(Clone)]
pub struct Connection {
    pub client: Client,
    pub context: Context,
    /// Counts how often it was connected.
    pub connected: watch::Receiver<u64>,
    problems: Arc<Mutex<Problems>>,
    /// Since when requests have had no answer.
    unanswered: Arc<Mutex<Option<Instant>>>,
}

/// What is known to be wrong with a connection.
#[derive(Default)]
struct Problems {
    /// Why the last attempt to connect failed.
    failure: Option<String>,
    no_jetstream_logged: Option<Instant>,
    /// Reasons that were logged lately: where, which, and when.
    logged: VecDeque<(&'static Location<'static>, String, Instant)>,
    /// The last error that the server reported, and when. Usually it is a missing permission.
    server_error: Option<(Instant, String)>,
}

impl Connection {
    /// Starts to connect, and tries again until it succeeds.
    pub async fn open(access: &NatsAccess, purpose: &'static str) -> Result<Self, String> {
        let (count, connected) = watch::channel(0);
        let label = || [("connection", purpose)];
        metrics::gauge!(names::NATS_CONNECTIONS_WANTED, &label()).increment(1.0);
        let up_count = metrics::gauge!(names::NATS_CONNECTIONS, &label());
        up_count.increment(0.0);
        let disconnects = metrics::counter!(names::NATS_DISCONNECTS_TOTAL, &label());
        let is_up = AtomicBool::new(false);
        let problems = Arc::new(Mutex::new(Problems::default()));
        let unanswered = Arc::new(Mutex::new(None));
        let choice = Arc::new(Mutex::new(ServerChoice::default()));
        let (noting, asked, chosen) = (Arc::clone(&problems), Arc::clone(&unanswered), Arc::clone(&choice));
        let inbox = access.inbox.clone();
        let events = move |event| {
            let mut problems = noting.lock();
            match event {
                Event::Connected => {
                    if !is_up.swap(true, Ordering::Relaxed) {
                        up_count.increment(1.0);
                    }
                    *problems = Problems::default();
                    FAILURES_LOGGED.lock().clear();
                    *asked.lock() = None;
                    chosen.lock().note_connected();
                    count.send_modify(|count| *count += 1);
                    tracing::info!(purpose, "connected to NATS");
                }
                Event::Disconnected => {
                    if is_up.swap(false, Ordering::Relaxed) {
                        up_count.decrement(1.0);
                        disconnects.increment(1);
                    }
                    tracing::warn!(purpose, "the connection to NATS was lost; reconnecting");
                }
                // Logged with its cause by `note_failures`.
                Event::ClientError(_) => {}
                Event::ServerError(error) => {
                    let error = explain_server_error(&error, &inbox);
                    let is_new = problems.server_error.as_ref().is_none_or(|(_, said)| *said != error);
                    if is_new {
                        tracing::warn!(purpose, error, "the NATS server reported an error");
                    }
                    problems.server_error = Some((Instant::now(), error));
                }
                // The node is ending.
                Event::Closed => tracing::debug!(purpose, "the connection to NATS is closed"),
                event => tracing::warn!(purpose, "NATS: {event}"),
            }
            std::future::ready(())
        };
        // Called before each attempt, with the outcomes of the last ones, which nothing else reports.
        let noting = Arc::clone(&problems);
        let has_login = access.has_login();
        let attempting = move |servers: Vec<Server>, _| {
            noting.lock().note_failures(purpose, &servers, has_login);
            std::future::ready(choice.lock().next(&servers))
        };
        let client = with_timeouts(access.options())
            .name(format!("ranktree {purpose}"))
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_to_server_callback(attempting)
            .request_timeout(Some(REQUEST_TIMEOUT))
            .event_callback(events)
            .connect(access.servers.addresses())
            .await
            .map_err(|error| format!("no connection to {}: {error}", access.servers))?;
        let context = jetstream::context::ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .max_ack_inflight(100_000)
            .build(client.clone());
        Ok(Self { client, context, connected, problems, unanswered })
    }

    /// Whether it is up at the moment.
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Notes that a request was answered.
    pub fn note_answer(&self) {
        *self.unanswered.lock() = None;
    }

    /// Notes that a request, sent at `since`, was not answered. Leaves a server that has answered none for
    /// [`SWITCH_SERVER_AFTER`].
    pub async fn note_silence(&self, since: Instant) {
        {
            let mut unanswered = self.unanswered.lock();
            let since = unanswered.map_or(since, |before| before.min(since));
            *unanswered = Some(since);
            if since.elapsed() < SWITCH_SERVER_AFTER || !self.is_up() {
                return;
            }
            *unanswered = None;
        }
        tracing::warn!(
            "the NATS server does not answer requests on this connection; connecting to another server"
        );
        // Fails only if the client is gone, and with it the connection.
        let _ = self.client.force_reconnect().await;
    }

    /// Notes the outcome of a publish that began at `since`.
    pub async fn note_publish(&self, stored: &Result<PublishAck, PublishError>, since: Instant) {
        match stored.as_ref().map_err(PublishError::kind) {
            Err(PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe) => self.note_silence(since).await,
            Ok(_) | Err(_) => self.note_answer(),
        }
    }

    /// Why there is no connection.
    pub fn why_down(&self) -> String {
        match &self.problems.lock().failure {
            Some(failure) => format!("NATS cannot be reached: {failure}"),
            None => "connecting to NATS".to_owned(),
        }
    }

    /// The error of a request, with its cause as far as it is known.
    pub fn explain(&self, error: &dyn Display) -> String {
        if !self.is_up() {
            return self.why_down();
        }
        // No server answers JetStream requests. The NATS client's own message would suggest a missing stream.
        let error = error.to_string();
        let signs = ["requested jetstream resource does not exist", "jetstream not enabled"];
        let said = error.to_ascii_lowercase();
        if signs.iter().any(|sign| said.contains(sign)) {
            return NO_JETSTREAM.to_owned();
        }
        match &self.problems.lock().server_error {
            Some((when, server_error)) if when.elapsed() < SERVER_ERROR_VALID_FOR => {
                format!("{error}; the NATS server reported: {server_error}")
            }
            Some(_) | None => error,
        }
    }

    /// Whether to log a reason that [`Connection::explain`] gave. Requests are tried again all the time, so
    /// the same reason is logged once in a while from the same place. One that all requests share is logged
    /// once in a while altogether.
    #[track_caller]
    pub fn should_log(&self, reason: &str) -> bool {
        if reason != NO_JETSTREAM {
            let (place, logged) = (Location::caller(), &mut self.problems.lock().logged);
            logged.retain(|(_, _, when)| when.elapsed() < LOG_INTERVAL);
            if logged.iter().any(|(at, said, _)| *at == place && said == reason) {
                return false;
            }
            if logged.len() >= LOGGED_MAX {
                logged.pop_front();
            }
            logged.push_back((place, reason.to_owned(), Instant::now()));
            return true;
        }
        let said = &mut self.problems.lock().no_jetstream_logged;
        let should_log = said.is_none_or(|said| said.elapsed() >= LOG_INTERVAL);
        if should_log {
            *said = Some(Instant::now());
        }
        should_log
    }
}

const NO_JETSTREAM: &str = "NATS does not answer JetStream requests, which ranktree needs; start \
                            nats-server with -js, or enable JetStream for the user's account";

impl Problems {
    fn note_failures(&mut self, purpose: &'static str, servers: &[Server], has_login: bool) {
        let mut all = String::new();
        for server in servers {
            let Some(error) = &server.last_error else { continue };
            let comma = if all.is_empty() { "" } else { "; " };
            let (host, port) = (server.addr.host(), server.addr.port());
            write!(all, "{comma}{host}:{port}: {}", explain_failure(error, has_login))
                .expect("writing to a string does not fail");
        }
        if all.is_empty() {
            return;
        }
        let mut logged = FAILURES_LOGGED.lock();
        logged.retain(|(_, when)| when.elapsed() < LOG_INTERVAL);
        if !logged.iter().any(|(said, _)| *said == all) {
            if logged.len() >= LOGGED_MAX {
                logged.pop_front();
            }
            logged.push_back((all.clone(), Instant::now()));
            tracing::warn!(purpose, error = all, "NATS cannot be reached; trying again");
        }
        self.failure = Some(all);
    }
}

/// Options with which a connection does not wait long for a silent server.
pub(in crate::queue::nats) fn with_timeouts(options: ConnectOptions) -> ConnectOptions {
    options.ping_interval(PING_INTERVAL).connection_timeout(CONNECT_TIMEOUT)
}

/// What to do about a failure, if its own message does not say.
pub(in crate::queue::nats) fn explain_failure(error: &str, has_login: bool) -> String {
    let has = |words: &str| error.to_ascii_lowercase().contains(words);
    let advice = if has("authorization violation") && !has_login {
        "the server asks for credentials, and none are given; give --nats-user with --nats-password-file, or --nats-creds, --nats-nkey or --nats-token-file"
    } else if has("authorization violation") {
        "the server refused the credentials; files of credentials are read again at each attempt"
    } else if has("unknownissuer") {
        "the server's certificate is signed by an authority that is not trusted here; give the authority's certificate as --nats-ca"
    } else if has("certificaterequired") || has("certificate required") {
        "the server requires a client certificate; give --nats-cert and --nats-key"
    } else if has("notvalidforname") {
        "the server's certificate does not name the host in --nats; use a name that the certificate has"
    } else {
        return error.to_owned();
    };
    format!("{advice} ({error})")
}

/// What to do about an error that the server reported, if its own message does not say.
pub(in crate::queue::nats) fn explain_server_error(error: &ServerError, inbox: &InboxPrefix) -> String {
    let error = error.to_string();
    let denied = format!("permissions violation for subscription to \"{inbox}.").to_ascii_lowercase();
    if !error.to_ascii_lowercase().contains(&denied) {
        return error;
    }
    format!(
        "no answer can arrive: this user may not subscribe to {inbox}.>; give the prefix that the user's \
         permissions at NATS name as --nats-inbox-prefix, or permit this one ({error})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_login_and_a_missing_one_are_told_apart() {
        let error = "authorization violation: nats: authorization violation";
        assert!(explain_failure(error, true).starts_with("the server refused the credentials"));
        assert!(
            explain_failure(error, false).starts_with("the server asks for credentials, and none are given")
        );
    }

    #[test]
    fn a_denied_inbox_is_told_from_other_denials() {
        let inbox: InboxPrefix = "_INBOX.game".parse().expect("a good prefix");
        let explain = |subject: &str| {
            let said = format!("Permissions Violation for Subscription to \"{subject}\"");
            explain_server_error(&ServerError::Other(said), &inbox)
        };
        let said = explain("_INBOX.game.YGr4.*");
        assert!(said.contains("_INBOX.game.>") && said.contains("--nats-inbox-prefix"), "{said}");
        assert!(said.contains("Permissions Violation"), "{said}");
        for other in ["_INBOX.games.YGr4.*", "ranktree.jobs.*"] {
            assert!(!explain(other).contains("--nats-inbox-prefix"), "{other}");
        }
    }
}

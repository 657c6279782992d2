//! Connections to NATS: they reconnect for ever, with pauses, and say so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::metrics as names;

/// Pauses between attempts double from the first to the second.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long the server may take to answer anything but a pull.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Failures to reconnect are logged at most this often.
const SAY_EVERY: Duration = Duration::from_secs(30);

/// A connection that keeps itself up.
#[derive(Clone)]
pub struct Connection {
    pub client: Client,
    pub context: Context,
    /// Counts how often it was connected.
    pub connected: watch::Receiver<u64>,
}

impl Connection {
    /// Starts to connect, and goes on for as long as it takes.
    ///
    /// # Errors
    /// When the URL is none.
    pub async fn open(url: &str, purpose: &'static str) -> Result<Self, String> {
        let servers = url.split(',').map(str::trim).map(str::parse::<ServerAddr>);
        let servers: Vec<ServerAddr> =
            servers.collect::<Result<_, _>>().map_err(|error| format!("{url} is no NATS URL: {error}"))?;
        let (count, connected) = watch::channel(0);
        let said = Arc::new(Mutex::new(None::<Instant>));
        let label = || [("connection", purpose)];
        metrics::gauge!(names::NATS_CONNECTIONS_WANTED, &label()).increment(1.0);
        let up_count = metrics::gauge!(names::NATS_CONNECTIONS, &label());
        up_count.increment(0.0);
        let disconnects = metrics::counter!(names::NATS_DISCONNECTS_TOTAL, &label());
        let is_up = AtomicBool::new(false);
        let events = move |event| {
            match event {
                Event::Connected => {
                    *said.lock() = None;
                    if !is_up.swap(true, Ordering::Relaxed) {
                        up_count.increment(1.0);
                    }
                    count.send_modify(|count| *count += 1);
                    tracing::info!(purpose, "connected to NATS");
                }
                Event::Disconnected => {
                    if is_up.swap(false, Ordering::Relaxed) {
                        up_count.decrement(1.0);
                        disconnects.increment(1);
                    }
                    tracing::warn!(purpose, "the connection to NATS is lost; reconnecting");
                }
                Event::ClientError(error) => {
                    let mut said = said.lock();
                    if said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
                        *said = Some(Instant::now());
                        tracing::warn!(purpose, %error, "NATS cannot be reached; trying on");
                    }
                }
                event => tracing::warn!(purpose, "NATS: {event}"),
            }
            std::future::ready(())
        };
        let client = ConnectOptions::new()
            .name(format!("ranktree {purpose}"))
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(pause)
            .request_timeout(Some(REQUEST_TIMEOUT))
            .event_callback(events)
            .connect(servers)
            .await
            .map_err(|error| format!("no connection to {url}: {error}"))?;
        let context = jetstream::context::ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .max_ack_inflight(100_000)
            .build(client.clone());
        Ok(Self { client, context, connected })
    }

    /// Whether it is up at the moment.
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }
}

fn pause(attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt.min(10)).unwrap_or(10);
    (PAUSE_FIRST * 2_u32.pow(doublings.saturating_sub(1))).min(PAUSE_MAX)
}

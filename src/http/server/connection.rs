//! One connection, from its handshake to its end.

use std::future::{Future as _, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connections::ClientTimeouts;
use crate::connections::ConnectionPermit;
use crate::http::guard::refusal_log::ClientAddress;
use crate::http::server::activity::{Activity, Overdue};
use crate::http::server::cleartext::{self, is_cleartext};
use crate::http::server::context::ServerContext;
use crate::http::server::ended::count_ended;
use crate::http::server::observed_stream::ObservedStream;
use crate::http::server::requests::ConnectionRequests;
use crate::http::server::socket::{ClientEnd, Disconnect, split};
use crate::operations::HeadBytes;

/// The longest head of a request, in bytes: a member on 1,000 boards takes 66 KiB in its path. hyper is given
/// little at a time, so that a head is not much longer than this when it is refused.
const HEAD_BYTES_MAX: usize = 128 << 10;
/// The longest time limit of an overflow connection. Probes are sent at once.
const OVERFLOW_TIMEOUT: Duration = Duration::from_secs(2);

/// How far the server has shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Serving,
    /// Requests in progress are answered, and no more are taken.
    Draining,
    /// Nothing is answered any more.
    Over,
}

/// Serves a connection until it ends by itself, for its slowness, or with the server.
pub async fn serve(
    (stream, client): (TcpStream, IpAddr),
    permit: ConnectionPermit,
    context: Arc<ServerContext>,
    stage: watch::Receiver<Stage>,
) {
    // A request is one small packet, and so is its answer. Waiting to fill a packet up only adds latency.
    let _ = stream.set_nodelay(true);
    let mut timeouts = context.timeouts;
    if permit.is_overflow {
        let short = |time: Duration| time.min(OVERFLOW_TIMEOUT);
        timeouts = ClientTimeouts {
            header: short(timeouts.header),
            idle: short(timeouts.idle),
            write: short(timeouts.write),
        };
    }
    let activity = Arc::new(Activity::new());
    let requests = ConnectionRequests {
        activity: Arc::clone(&activity),
        is_overflow: permit.is_overflow,
        context: Arc::clone(&context),
        client: ClientAddress(client.to_canonical()),
    };
    let heads = HeadBytes::none(&context.api.operations.admission);
    let conditions = CloseConditions { activity: Arc::clone(&activity), timeouts, stage };
    let Some(tls) = &context.tls else {
        let (stream, disconnect) = split(stream);
        let stream = ObservedStream::new(stream, activity, heads);
        return speak(stream, disconnect, requests, conditions).await;
    };
    let mut stage = conditions.stage.clone();
    let handshake = async {
        if is_cleartext(&stream).await {
            return Err(stream);
        }
        let (stream, disconnect) = split(stream);
        Ok((tls.acceptor().accept(stream).await, disconnect))
    };
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(timeouts.header, handshake) => shaken,
        // Nothing was asked yet.
        _ = stage.wait_for(|stage| *stage > Stage::Serving) => return,
    };
    match shaken {
        Ok(Ok((Ok(stream), disconnect))) => {
            let stream = ObservedStream::new(stream, activity, heads);
            speak(stream, disconnect, requests, conditions).await;
        }
        Ok(Ok((Err(error), _))) => {
            count_ended("handshake");
            tracing::debug!(%error, "a TLS handshake failed");
        }
        Ok(Err(stream)) => {
            count_ended("handshake");
            cleartext::answer(stream).await;
        }
        Err(_) => count_ended("handshake"),
    }
}

/// What a connection is ended by, besides HTTP itself.
struct CloseConditions {
    activity: Arc<Activity>,
    timeouts: ClientTimeouts,
    stage: watch::Receiver<Stage>,
}

/// What seldom happens to a connection.
enum Event {
    /// The server shuts down, as far as this.
    Stage(Stage),
    /// It is time to look whether the client is too slow.
    Check,
    /// The client sends nothing more, and may wait for its answer.
    SendingEnds(ClientEnd),
    Reset,
}

/// Waits until the server has shut down as far as this.
async fn reached(mut stage: watch::Receiver<Stage>, until: Stage) -> Event {
    Event::Stage(stage.wait_for(|stage| *stage >= until).await.map_or(Stage::Over, |stage| *stage))
}

async fn check_at(time: Instant) -> Event {
    tokio::time::sleep_until(time).await;
    Event::Check
}

/// Answers requests until the connection ends.
async fn speak<S>(
    stream: ObservedStream<S>,
    disconnect: Disconnect,
    requests: ConnectionRequests,
    conditions: CloseConditions,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let CloseConditions { activity, timeouts, stage } = conditions;
    let mut builder = http1::Builder::new();
    // `activity` limits the time, because it distinguishes a slow head from an idle connection.
    builder.header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX).keep_alive(!requests.is_overflow);
    // A client that has ended its sending half gets its answers.
    builder.half_close(true);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), requests));
    // Each is looked at when it happens, and not at each request.
    let mut events: FuturesUnordered<BoxFuture<'_, Event>> = FuturesUnordered::new();
    events.push(Box::pin(reached(stage.clone(), Stage::Draining)));
    events.push(Box::pin(check_at(Instant::now())));
    events.push(Box::pin(async { Event::SendingEnds(disconnect.sending_ends().await) }));
    let mut has_left = false;
    loop {
        let served = poll_fn(|context| match connection.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            // Without a request in progress, hyper reads what was sent before the end, and sees the end for
            // itself.
            Poll::Pending if has_left && activity.is_busy() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        let event = tokio::select! {
            biased;
            // The future of the handler is dropped with the connection, and so are the permits that it holds.
            ended = served => {
                let Some(ended) = ended else { return count_ended(Overdue::Left.name()) };
                if ended.is_err() && activity.is_busy() {
                    count_ended(Overdue::Left.name());
                }
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            Some(event) = events.next() => event,
        };
        match event {
            Event::Stage(Stage::Over) => return,
            Event::Stage(_) => {
                events.push(Box::pin(reached(stage.clone(), Stage::Over)));
                connection.as_mut().graceful_shutdown();
            }
            Event::Check => {}
            Event::SendingEnds(end) => {
                has_left = end == ClientEnd::Both;
                activity.sending_ends();
                events.push(Box::pin(async {
                    disconnect.is_reset().await;
                    Event::Reset
                }));
            }
            Event::Reset => has_left = true,
        }
        if matches!(event, Event::Check | Event::SendingEnds(_)) {
            match activity.overdue(&timeouts) {
                Ok(again) => events.push(Box::pin(check_at(again))),
                Err(why) => return count_ended(why.name()),
            }
        }
    }
}

//! One connection, from its handshake to its end.

use std::future::{Future as _, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::http::guard::admission::HeadBytes;
use crate::http::guard::refusal_log::ClientAddress;
use crate::http::server::activity::{Activity, Overdue};
use crate::http::server::cleartext::{self, is_cleartext};
use crate::http::server::connection_limit::ConnectionPermit;
use crate::http::server::context::ServerContext;
use crate::http::server::ended::count_ended;
use crate::http::server::observed_stream::ObservedStream;
use crate::http::server::requests::ConnectionRequests;
use crate::http::server::socket::{ClientEnd, Disconnect, split};
use crate::http::server::timeouts::ClientTimeouts;

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
    let heads = HeadBytes::none(&context.api.admission);
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

/// What became of a connection.
enum Served {
    Completed(hyper::Result<()>),
    /// The client sends nothing more, and may wait for its answer.
    HalfClosed,
    /// The client has left and will not take the answer.
    ClientLeft,
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
    let CloseConditions { activity, timeouts, mut stage } = conditions;
    let mut builder = http1::Builder::new();
    // `activity` limits the time, because it distinguishes a slow head from an idle connection.
    builder.header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX).keep_alive(!requests.is_overflow);
    // A client that has ended its sending half gets its answers.
    builder.half_close(true);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), requests));
    let mut timeout_check = pin!(tokio::time::sleep_until(Instant::now()));
    let mut until = Stage::Draining;
    let (mut sending_ends, mut is_reset) = (pin!(disconnect.sending_ends()), pin!(disconnect.is_reset()));
    let (mut is_half_closed, mut has_left) = (false, false);
    loop {
        let served = poll_fn(|context| {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(Served::Completed(ended));
            }
            if !is_half_closed && let Poll::Ready(end) = sending_ends.as_mut().poll(context) {
                is_half_closed = true;
                has_left = end == ClientEnd::Both;
                activity.sending_ends();
                return Poll::Ready(Served::HalfClosed);
            }
            has_left = has_left || (is_half_closed && is_reset.as_mut().poll(context).is_ready());
            // Without a request in progress, hyper reads what was sent before the end, and sees the end for
            // itself.
            if has_left && activity.is_busy() { Poll::Ready(Served::ClientLeft) } else { Poll::Pending }
        });
        tokio::select! {
            biased;
            // The future of the handler is dropped with the connection, and so are the permits that it holds.
            served = served => match served {
                // How long it is still waited for is looked at now.
                Served::HalfClosed => timeout_check.as_mut().reset(Instant::now()),
                Served::ClientLeft => return count_ended(Overdue::Left.name()),
                Served::Completed(ended) => {
                    if ended.is_err() && activity.is_busy() {
                        count_ended(Overdue::Left.name());
                    }
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection broke");
                    }
                    return;
                }
            },
            reached = stage.wait_for(|stage| *stage >= until) => match reached.map(|stage| *stage) {
                Ok(Stage::Draining) => {
                    until = Stage::Over;
                    connection.as_mut().graceful_shutdown();
                }
                _ => return,
            },
            () = timeout_check.as_mut() => match activity.overdue(&timeouts) {
                Ok(again) => timeout_check.as_mut().reset(again),
                Err(why) => {
                    count_ended(why.name());
                    return;
                }
            },
        }
    }
}

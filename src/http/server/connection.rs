//! One connection, from its handshake to its end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::http::api::{Api, note_shed};
use crate::http::guard::authorize::needs_nothing;
use crate::http::guard::framing;
use crate::http::guard::in_progress::InWork;
use crate::http::guard::loopback::is_local;
use crate::http::guard::refusal_log::{Client, Refused};
use crate::http::render::problem::Problem;
use crate::http::request::call::{NO_ROUTE, Responses};
use crate::http::routing::answering::refuse;
use crate::http::server::activity::{Held, Noted, Patience, Pulse};
use crate::http::server::connection_limit::Place;
use crate::http::server::socket::{OtherSide, ends_of};
use crate::http::server::tls::Tls;
use crate::metrics::HTTP_CONNECTIONS_ENDED_TOTAL;

/// The longest head of a request, in bytes: a member on 1,000 boards takes 66 KiB in its path.
const HEAD_BYTES_MAX: usize = 128 << 10;
/// What a client beyond the limits is given. Probes are sent at once.
const SPARE_PATIENCE: Duration = Duration::from_secs(2);
/// What is answered all the same.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
/// Ranks move: no answer is good for later, and none is to be found in a cache that is shared.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// How far the server is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Serving,
    /// Requests in work are answered, and no more are taken.
    Draining,
    /// Nothing is answered any more.
    Over,
}

/// What all connections share.
pub struct Shared {
    pub router: Router,
    pub tls: Option<Arc<Tls>>,
    pub patience: Patience,
    pub api: Arc<Api>,
    /// Only programs of this machine may ask.
    pub local_only: bool,
}

impl Shared {
    /// Refuses a request that a page of another site may have made.
    async fn refuse_foreign(&self, client: Client, request: Request<Body>) -> Response {
        let problem = Problem::foreign_origin();
        let refused = Refused {
            client: Some(client),
            method: request.method().as_str(),
            path: request.uri().path(),
            token: None,
        };
        self.api.refusals.note(&problem, refused);
        refuse(request, problem).await.into_response()
    }
}

/// Serves a connection until it ends, by itself, for its slowness, or with the server.
pub async fn serve(
    (stream, client): (TcpStream, IpAddr),
    place: Place,
    shared: Arc<Shared>,
    stage: watch::Receiver<Stage>,
) {
    // A request is one small packet and so is its answer: waiting to fill one up only adds latency.
    let _ = stream.set_nodelay(true);
    let mut patience = shared.patience;
    if place.is_spare {
        let short = |time: Duration| time.min(SPARE_PATIENCE);
        patience = Patience {
            header: short(patience.header),
            idle: short(patience.idle),
            write: short(patience.write),
        };
    }
    let pulse = Arc::new(Pulse::new());
    let requests = Requests {
        pulse: Arc::clone(&pulse),
        is_spare: place.is_spare,
        shared: Arc::clone(&shared),
        client: Client(client.to_canonical()),
    };
    let (stream, other_side) = ends_of(stream);
    let watched = Watched { pulse: Arc::clone(&pulse), patience, stage, other_side };
    let Some(tls) = &shared.tls else {
        return speak(Noted::new(stream, pulse), requests, watched).await;
    };
    let mut stage = watched.stage.clone();
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(patience.header, tls.acceptor().accept(stream)) => accepted,
        // Nothing was asked yet.
        _ = stage.wait_for(|stage| *stage > Stage::Serving) => return,
    };
    match accepted {
        Ok(Ok(stream)) => speak(Noted::new(stream, pulse), requests, watched).await,
        Ok(Err(error)) => {
            count_ended("handshake");
            tracing::debug!(%error, "a TLS handshake failed");
        }
        Err(_) => count_ended("handshake"),
    }
}

/// Why connections are ended or turned away, as metrics name it.
const REASONS: [&str; 7] =
    ["handshake", "idle", "left", "over_limit", "refused", "slow_header", "slow_reader"];

/// Says that none was ended yet, so that a rate has something to begin from.
pub fn register_ended() {
    for reason in REASONS {
        metrics::counter!(HTTP_CONNECTIONS_ENDED_TOTAL, "reason" => reason).increment(0);
    }
}

/// Counts a connection that is ended, or turned away, for one of [`REASONS`].
pub fn count_ended(reason: &'static str) {
    metrics::counter!(HTTP_CONNECTIONS_ENDED_TOTAL, "reason" => reason).increment(1);
}

/// What a connection is watched by.
struct Watched {
    pulse: Arc<Pulse>,
    patience: Patience,
    stage: watch::Receiver<Stage>,
    other_side: OtherSide,
}

/// How a connection ended.
enum Ended {
    ByItself(hyper::Result<()>),
    /// Nobody is there any more to take the answer.
    Left,
}

async fn speak<S>(stream: S, requests: Requests, watched: Watched)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Watched { pulse, patience, mut stage, other_side } = watched;
    let mut builder = http1::Builder::new();
    // The pulse does it, which tells a slow head from an idle connection.
    builder.header_read_timeout(None).max_buf_size(HEAD_BYTES_MAX).keep_alive(!requests.is_spare);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), requests));
    let mut look = pin!(tokio::time::sleep_until(Instant::now()));
    let mut until = Stage::Draining;
    let (mut leaves, mut has_left) = (pin!(other_side.leaves()), false);
    loop {
        let served = poll_fn(|context| {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(Ended::ByItself(ended));
            }
            has_left = has_left || leaves.as_mut().poll(context).is_ready();
            // What was sent before is still read, and between requests hyper sees the end for itself.
            if has_left && pulse.is_busy() { Poll::Ready(Ended::Left) } else { Poll::Pending }
        });
        tokio::select! {
            biased;
            // With the connection goes the future of its handler, and so whatever place it had.
            ended = served => {
                let has_left = match &ended {
                    Ended::Left => true,
                    Ended::ByItself(ended) => ended.is_err() && pulse.is_busy(),
                };
                if has_left {
                    count_ended("left");
                }
                if let Ended::ByItself(Err(error)) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            reached = stage.wait_for(|stage| *stage >= until) => match reached.map(|stage| *stage) {
                Ok(Stage::Draining) => {
                    until = Stage::Over;
                    connection.as_mut().graceful_shutdown();
                }
                _ => return,
            },
            () = look.as_mut() => match pulse.overdue(&patience) {
                Ok(again) => look.as_mut().reset(again),
                Err(why) => {
                    count_ended(why.name());
                    return;
                }
            },
        }
    }
}

/// The requests of a connection.
struct Requests {
    shared: Arc<Shared>,
    pulse: Arc<Pulse>,
    is_spare: bool,
    client: Client,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        if self.shared.api.access.is_some() {
            request.extensions_mut().insert(self.client);
        }
        let names_both = self.pulse.request_begins(request.body().size_hint().exact());
        let framing = framing::check(request.headers(), names_both);
        let is_shed = self.is_spare && !PROBES.contains(&request.uri().path());
        let is_foreign = self.shared.local_only
            && !is_local(request.uri(), request.headers())
            && !needs_nothing(request.uri().path());
        let (shared, pulse, client) = (Arc::clone(&self.shared), Arc::clone(&self.pulse), self.client);
        Box::pin(async move {
            let mut must_close = false;
            let mut response = if is_shed {
                note_shed();
                Problem::too_many_connections().into_response()
            } else if let Err(problem) = framing {
                must_close = true;
                let response = refuse(request.map(Body::new), problem).await.into_response();
                Responses::new(NO_ROUTE).note(response.status());
                response
            } else if is_foreign {
                shared.refuse_foreign(client, request.map(Body::new)).await
            } else {
                shared.router.clone().oneshot(request.map(Body::new)).await?
            };
            must_close |= response.status() == StatusCode::REQUEST_TIMEOUT;
            let headers = response.headers_mut();
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
            headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
            if must_close {
                // The rest of its body may still come, or where that ends may be understood otherwise: what comes is no request.
                headers.insert(header::CONNECTION, CLOSE);
            }
            let in_work = response.extensions_mut().remove::<Arc<InWork>>();
            pulse.request_ends(in_work.map(|in_work| -> Held { in_work }));
            Ok(response)
        })
    }
}

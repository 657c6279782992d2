//! The requests of one connection: checked for their framing and where they come from, then handed to the
//! router.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::Request;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::service::Service;

use crate::http::guard::framing;
use crate::http::guard::loopback::is_local;
use crate::http::guard::origin::{Page, is_followed_link};
use crate::http::guard::refusal_log::{ClientAddress, RefusedRequest};
use crate::http::render::problem::Problem;
use crate::http::render::server_sent;
use crate::http::request::body::refuse;
use crate::http::request::metrics::{NO_ROUTE, Responses};
use crate::http::request::percent;
use crate::http::routing::endpoint::Answered;
use crate::http::server::activity::Activity;
use crate::http::server::context::ServerContext;
use crate::http::server::cors;
use crate::operations::{HeadBytes, count_shed};

/// What overflow connections are answered.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
/// Ranks move: no answer may be used again, and none may be stored in a shared cache.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Answers the requests of one connection.
pub struct ConnectionRequests {
    pub context: Arc<ServerContext>,
    pub activity: Arc<Activity>,
    pub is_overflow: bool,
    pub client: ClientAddress,
}

impl Service<Request<Incoming>> for ConnectionRequests {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let is_in_doubt = self.activity.request_begins(request.body().size_hint().exact());
        let framing = framing::check(request.version(), request.headers(), is_in_doubt);
        let mut must_close = framing.is_err();
        let malformed = framing.and_then(|()| percent::check(request.uri().path())).err();
        let is_shed = self.is_overflow && !PROBES.contains(&request.uri().path());
        let page = Page::of(request.headers(), &self.context.origins, self.context.tls.is_some());
        let foreign = refused_sender(&self.context, &request, &page);
        let (context, activity, client) =
            (Arc::clone(&self.context), Arc::clone(&self.activity), self.client);
        Box::pin(async move {
            let answered = if is_shed {
                count_shed();
                Problem::too_many_connections().into_response().into()
            } else if let Some(problem) = malformed {
                noted(refuse_request(request, problem).await).into()
            } else if let Some(problem) = foreign {
                refuse_foreign(&context, client, request, problem).await.into()
            } else if matches!(page, Page::Allowed(_))
                && cors::is_preflight(request.method(), request.headers())
            {
                noted(cors::allow(request.headers())).into()
            } else {
                // Most requests have no body, and one that is read needs memory of its own.
                let body =
                    |body: Incoming| if body.is_end_stream() { Body::empty() } else { Body::new(body) };
                context.router.answer(request.map(body), Some(client)).await
            };
            let Answered { mut response, in_progress, goes_on } = answered;
            must_close |= response.status() == StatusCode::REQUEST_TIMEOUT || !activity.knows_body_end();
            // The memory that a long head has taken is given back with its connection.
            must_close |= HeadBytes::is_long(activity.head_bytes());
            let headers = response.headers_mut();
            headers.insert(header::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
            headers.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
            if let Page::Allowed(origin) = page {
                cors::add(headers, origin);
            }
            if must_close {
                // The rest of the body may still come, or its end may be understood otherwise by a proxy.
                // What comes next must not be read as a request.
                headers.insert(header::CONNECTION, CLOSE);
            }
            if goes_on {
                // The connection is at work until the body ends: an answer that goes on for long is not idle.
                activity.streams();
                return Ok(response.map(|body| Body::new(ObservedBody::new(body, activity))));
            }
            activity.request_ends(in_progress);
            Ok(response)
        })
    }
}

/// The body of an answer that goes on for long: server-sent events. The request ends with it.
struct ObservedBody {
    body: Body,
    activity: Arc<Activity>,
    /// The last piece ended an event, or there was none.
    is_between_events: bool,
    /// The client was written to since it sends nothing more.
    is_probed: bool,
}

impl ObservedBody {
    fn new(body: Body, activity: Arc<Activity>) -> Self {
        Self { body, activity, is_between_events: true, is_probed: false }
    }
}

impl hyper::body::Body for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(piece))) = &frame
            && let Some(data) = piece.data_ref()
        {
            self.is_between_events = data.ends_with(server_sent::END);
        }
        // A client that has left looks like one that only sends nothing more, until something is written to
        // it: so that its place is free at once, and not at the next event.
        let may_have_left = self.activity.is_half_closed() && !self.is_probed;
        if frame.is_pending() && may_have_left && self.is_between_events {
            self.is_probed = true;
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(server_sent::COMMENT)))));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

impl Drop for ObservedBody {
    fn drop(&mut self) {
        self.activity.request_ends(None);
    }
}

/// Notes an answer to a request that reaches no route.
fn noted(response: Response) -> Response {
    Responses::new(NO_ROUTE).note(response.status());
    response
}

async fn refuse_request(request: Request<Incoming>, problem: Problem) -> Response {
    let (parts, body) = request.into_parts();
    refuse(&parts.headers, Body::new(body), problem).await.into_response()
}

/// Why a request is refused for where it comes from. Pages of other sites are kept from what changes
/// something, and without tokens on a loopback address from everything but what anybody may read: a page that
/// sees only whether an answer came learns something from that.
///
/// # Arguments
/// `page`: the page that has sent it.
fn refused_sender(context: &ServerContext, request: &Request<Incoming>, page: &Page) -> Option<Problem> {
    let (uri, headers) = (request.uri(), request.headers());
    let only_reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_foreign_host = context.loopback_guard && !is_local(uri, headers, &context.origins);
    if !is_foreign_host && *page != Page::Foreign {
        return None;
    }
    if only_reads && context.open_paths.contains(&uri.path()) {
        return None;
    }
    if is_foreign_host {
        return Some(Problem::foreign_host());
    }
    let may_ask = || only_reads && (!context.loopback_guard || is_followed_link(headers));
    (*page == Page::Foreign && !may_ask()).then(Problem::foreign_origin)
}

/// Refuses a request that a page of another site may have made.
async fn refuse_foreign(
    context: &ServerContext,
    client: ClientAddress,
    request: Request<Incoming>,
    problem: Problem,
) -> Response {
    let refused = RefusedRequest {
        client: Some(client),
        method: request.method().as_str(),
        path: request.uri().path(),
        token: None,
    };
    context.api.refusal_log.note(&problem, refused);
    refuse_request(request, problem).await
}

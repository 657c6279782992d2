//! What happens to each request of a route: authorized, read, admitted, answered, measured.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};

use crate::access::Grant;
use crate::http::api::Api;
use crate::http::guard::admission::count_shed;
use crate::http::guard::authorize::Needs;
use crate::http::guard::in_progress::InProgress;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::body::refuse;
use crate::http::request::call::Call;
use crate::http::request::head::Head;
use crate::http::request::metrics::{NO_ROUTE, Responses, RouteMetrics};
use crate::http::routing::request_span::{self, TracedRoute};
use crate::traces;

/// Requests with longer bodies are offloaded: some 200 jobs take so long to read and to answer that other
/// connections should not wait for them.
const LONG_BODY_BYTES: usize = 16 << 10;

/// A response that is being made.
pub type Responding = Pin<Box<dyn Future<Output = Response> + Send>>;

/// What answers the requests of a route: a function such as `async fn get(call: Call) -> Result<Reply,
/// Problem>`.
pub trait Handler: Clone + Send + Sync + 'static {
    type Answer: Future<Output = Result<Reply, Problem>> + Send + 'static;

    fn handle(self, call: Call) -> Self::Answer;
}

impl<H, F> Handler for H
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Reply, Problem>> + Send + 'static,
{
    type Answer = F;

    fn handle(self, call: Call) -> F {
        self(call)
    }
}

/// A handler, and where it works.
pub enum Work<H> {
    /// On the connection's thread. A long body is offloaded all the same.
    Inline(H),
    /// Apart from the threads that connections share, because it may take milliseconds of computing.
    Offloaded(H),
}

/// What responds to a request that may reach its route.
pub trait Endpoint: Clone + Send + Sync + 'static {
    /// Whether its requests may be traced. Probes are asked all the time.
    const IS_TRACED: bool = true;

    fn respond(self, request: Authorized) -> impl Future<Output = Response> + Send;
}

/// A request that its token allows. Its body is not read yet.
pub struct Authorized {
    pub api: Arc<Api>,
    pub head: Head,
    /// What the token allows; `None` where no tokens are needed.
    pub grant: Option<Arc<Grant>>,
    pub body: Body,
}

/// A route's endpoint behind the check of tokens.
#[derive(Clone)]
pub struct Guarded<E> {
    endpoint: E,
    needs: Needs,
    /// The verb behind the board's name in the route's path, with its colon.
    verb: Option<&'static str>,
    /// Counts refused requests, which reach no route.
    refused: Arc<Responses>,
    traced: TracedRoute,
}

impl<E> Guarded<E> {
    pub fn new(endpoint: E, needs: Needs, verb: Option<&'static str>, traced: TracedRoute) -> Self {
        Self { endpoint, needs, verb, refused: Arc::new(Responses::new(NO_ROUTE)), traced }
    }
}

impl<E: Endpoint> axum::handler::Handler<(), Arc<Api>> for Guarded<E> {
    type Future = Responding;

    fn call(self, request: Request, api: Arc<Api>) -> Responding {
        let Self { endpoint, needs, verb, refused, traced } = self;
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let mut span = if E::IS_TRACED { traced.begin(&parts) } else { None };
            let head = Head::new(parts, verb).await;
            if let (Some(span), Some(board)) = (&mut span, head.board()) {
                span.attribute("ranktree.board", board.to_owned());
            }
            let response = match head.authorize(&api, needs) {
                Ok(grant) => {
                    let responding = pin!(endpoint.respond(Authorized { api, head, grant, body }));
                    traces::within(span.as_ref(), responding).await
                }
                Err(problem) => {
                    let response = refuse(&head.parts.headers, body, problem).await.into_response();
                    refused.note(response.status());
                    response
                }
            };
            if let Some(span) = span {
                request_span::end(span, response.status());
            }
            response
        })
    }
}

/// A handler whose requests are shed when there are too many, and measured.
#[derive(Clone)]
pub struct Measured<H> {
    handler: H,
    is_offloaded: bool,
    /// Its requests change nothing, so that a finished answer may still be refused.
    only_reads: bool,
    metrics: Arc<RouteMetrics>,
}

impl<H: Handler> Measured<H> {
    pub fn new(work: Work<H>, needs: Needs, name: &'static str) -> Self {
        let (handler, is_offloaded) = match work {
            Work::Inline(handler) => (handler, false),
            Work::Offloaded(handler) => (handler, true),
        };
        let (only_reads, metrics) = (needs.only_reads(), Arc::new(RouteMetrics::new(name)));
        Self { handler, is_offloaded, only_reads, metrics }
    }

    /// Reads and answers the request.
    ///
    /// # Arguments
    /// `in_progress`: set once the request is admitted.
    async fn answer(
        self,
        request: Authorized,
        in_progress: &mut Option<Arc<InProgress>>,
    ) -> Result<Reply, Problem> {
        let Authorized { api, head, grant, body } = request;
        let call = Call::read(api, head, grant, body, self.metrics).await?;
        // After its body is read: a slow body keeps no other request out.
        call.in_progress.admit()?;
        let in_progress = in_progress.insert(Arc::clone(&call.in_progress));
        let reply = if self.is_offloaded || call.body.len() > LONG_BODY_BYTES {
            let api = Arc::clone(&call.api);
            let answered = api.offload.run(traces::carried(self.handler.handle(call))).await;
            answered.unwrap_or_else(|| Err(Problem::internal()))
        } else {
            self.handler.handle(call).await
        };
        let counted = in_progress.count_answer(reply.as_ref().map_or_else(Problem::bytes, Reply::bytes));
        match (reply, counted) {
            // A write is done, and so it is answered.
            (Ok(_), Err(problem)) if self.only_reads => Err(problem),
            (reply, _) => reply,
        }
    }
}

impl<H: Handler> Endpoint for Measured<H> {
    async fn respond(self, request: Authorized) -> Response {
        let started = Instant::now();
        let metrics = Arc::clone(&self.metrics);
        let mut in_progress = None;
        let answer = self.answer(request, &mut in_progress).await;
        if answer.as_ref().is_err_and(Problem::is_overload) {
            count_shed();
        }
        let mut response = answer.map_or_else(Problem::into_response, Reply::into_response);
        metrics.request_seconds.record(started.elapsed());
        metrics.responses.note(response.status());
        // The connection holds it until the answer is written.
        in_progress.map(|in_progress| response.extensions_mut().insert(in_progress));
        response
    }
}

/// A handler whose answers go on for long. Its requests are admitted and measured until an answer begins.
#[derive(Clone)]
pub struct Streamed<H> {
    handler: H,
    metrics: Arc<RouteMetrics>,
}

impl<H> Streamed<H> {
    pub fn new(handler: H, name: &'static str) -> Self {
        Self { handler, metrics: Arc::new(RouteMetrics::new(name)) }
    }
}

impl<H, F> Endpoint for Streamed<H>
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    async fn respond(self, request: Authorized) -> Response {
        let started = Instant::now();
        let Authorized { api, head, grant, body } = request;
        let answer = async {
            let call = Call::read(api, head, grant, body, Arc::clone(&self.metrics)).await?;
            call.in_progress.admit()?;
            (self.handler)(call).await
        };
        let answer = answer.await;
        if answer.as_ref().is_err_and(Problem::is_overload) {
            count_shed();
        }
        let response = answer.unwrap_or_else(Problem::into_response);
        self.metrics.request_seconds.record(started.elapsed());
        self.metrics.responses.note(response.status());
        response
    }
}

/// A handler that an overloaded node runs all the same. Its requests are not measured.
#[derive(Clone)]
pub struct Unlimited<H>(pub H);

impl<H, F> Endpoint for Unlimited<H>
where
    H: Fn(Arc<Api>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    const IS_TRACED: bool = false;

    async fn respond(self, request: Authorized) -> Response {
        (self.0)(request.api).await
    }
}

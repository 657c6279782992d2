//! What happens to each request of a route: authorized, read, admitted, answered, measured.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use axum::body::Body;
use axum::response::{IntoResponse, Response};

use crate::access::Grant;
use crate::connections::turn;
use crate::http::api::Api;
use crate::http::guard::authorize::Needs;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::body::refuse;
use crate::http::request::call::Call;
use crate::http::request::columns::COLUMNS_MAX;
use crate::http::request::head::Head;
use crate::http::request::json_body::BATCH_MAX;
use crate::http::request::metrics::{NO_ROUTE, Responses, RouteMetrics};
use crate::http::routing::request_span::{self, TracedRoute};
use crate::http::routing::taken::RouteTakes;
use crate::operations::InProgress;
use crate::operations::count_shed;
use crate::traces;

/// Requests with longer bodies are offloaded: some 200 jobs take so long to read and to answer that other
/// connections should not wait for them.
const LONG_BODY_BYTES: usize = 16 << 10;

/// Requests that ask for many items are offloaded if these are looked up in the shards more often than this
/// in all, which takes a tenth of a millisecond.
const LOOKUPS_INLINE: usize = 256;

/// The same on a thread that has other requests to answer: from here on a list is supposed to take longer
/// than to hand it over. Only lists of 100 were measured, and those gain.
const LOOKUPS_INLINE_AMONG_OTHERS: usize = 32;

/// Lists of more entries are offloaded: these take a tenth of a millisecond to find and to write.
const ENTRIES_INLINE: usize = 256;

/// A response that is being made.
pub type Responding<'r> = Pin<Box<dyn Future<Output = Answered> + Send + 'r>>;

/// A response, and what the connection has to know of it.
pub struct Answered {
    pub response: Response,
    /// The request's share, to hold until the answer is written.
    pub in_progress: Option<Arc<InProgress>>,
    /// The body goes on for as long as there is something to watch.
    pub goes_on: bool,
}

impl From<Response> for Answered {
    fn from(response: Response) -> Self {
        Self { response, in_progress: None, goes_on: false }
    }
}

/// What answers the requests of a route: a function such as `async fn get(call: Box<Call>) ->
/// Result<Reply, Problem>`.
pub trait Handler: Clone + Send + Sync + 'static {
    type Answer: Future<Output = Result<Reply, Problem>> + Send + 'static;

    fn handle(self, call: Box<Call>) -> Self::Answer;
}

impl<H, F> Handler for H
where
    H: Fn(Box<Call>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Reply, Problem>> + Send + 'static,
{
    type Answer = F;

    fn handle(self, call: Box<Call>) -> F {
        self(call)
    }
}

/// A handler, and where it works.
pub enum Work<H> {
    /// On the connection's thread. A long body is offloaded all the same.
    Inline(H),
    /// On the connection's thread if the body is a short list; apart from it if it is a long one, whose items
    /// may take milliseconds, or if the thread has other requests to answer. So with a list of entries that
    /// the query asks for, which takes less time for each.
    InlineIfFew(H),
    /// Apart from the threads that connections share, because it may take milliseconds of computing.
    Offloaded(H),
}

/// What responds to a request that may reach its route.
pub trait Endpoint: Send + Sync + 'static {
    /// Whether its requests may be traced. Probes are asked all the time.
    const IS_TRACED: bool = true;

    fn respond(&self, request: Authorized) -> impl Future<Output = Answered> + Send;
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
pub struct Guarded<E> {
    endpoint: E,
    needs: Needs,
    /// Counts refused requests, which reach no route.
    refused: Responses,
    traced: TracedRoute,
}

impl<E: Endpoint> Guarded<E> {
    pub fn new(endpoint: E, needs: Needs, traced: TracedRoute) -> Self {
        Self { endpoint, needs, refused: Responses::new(NO_ROUTE), traced }
    }
}

/// A route as the router calls it.
pub trait Routed: Send + Sync + 'static {
    fn answer<'r>(&'r self, api: &'r Arc<Api>, head: Head, body: Body) -> Responding<'r>;
}

impl<E: Endpoint> Routed for Guarded<E> {
    fn answer<'r>(&'r self, api: &'r Arc<Api>, head: Head, body: Body) -> Responding<'r> {
        Box::pin(async move {
            let mut span = if E::IS_TRACED { self.traced.begin(&head) } else { None };
            if let (Some(span), Some(board)) = (&mut span, head.board()) {
                span.attribute("ranktree.board", board.to_owned());
            }
            let answered = match head.authorize(api, self.needs) {
                Ok(grant) => {
                    let authorized = Authorized { api: Arc::clone(api), head, grant, body };
                    traces::within(span.as_ref(), pin!(self.endpoint.respond(authorized))).await
                }
                Err(problem) => {
                    let response = Box::pin(refuse(head.headers(), body, problem)).await.into_response();
                    self.refused.note(response.status());
                    response.into()
                }
            };
            if let Some(span) = span {
                request_span::end(span, answered.response.status());
            }
            answered
        })
    }
}

/// How many entries a query asks for, at most: it need not be exact, and a number that is none is refused
/// later.
fn entries_asked(query: &str) -> usize {
    let params = query.split('&').filter_map(|param| param.split_once('='));
    let numbers = params.filter(|(name, _)| matches!(*name, "limit" | "above" | "below"));
    let asked = numbers.filter_map(|(_, number)| number.parse::<usize>().ok()).fold(0, usize::saturating_add);
    asked.min(BATCH_MAX)
}

/// How many boards a query shows the entries of: one, and those of `with`.
fn boards_asked(query: &str) -> usize {
    let with = query.split('&').find_map(|param| param.strip_prefix("with="));
    1 + with.map_or(0, |boards| boards.split(',').count()).min(COLUMNS_MAX)
}

/// Whether so many look-ups are done apart from the connection's thread.
fn are_many(lookups: usize, has_others: bool) -> bool {
    lookups > if has_others { LOOKUPS_INLINE_AMONG_OTHERS } else { LOOKUPS_INLINE }
}

/// A handler whose requests are shed when there are too many, and measured.
pub struct Measured<H> {
    work: Work<H>,
    /// Its requests change nothing, so that a finished answer may still be refused.
    only_reads: bool,
    /// What an entry of the last long list took.
    entry_bytes: AtomicUsize,
    takes: RouteTakes,
    metrics: Arc<RouteMetrics>,
}

impl<H: Handler> Measured<H> {
    pub fn new(work: Work<H>, needs: Needs, takes: RouteTakes, name: &'static str) -> Self {
        let (only_reads, metrics) = (needs.only_reads(), Arc::new(RouteMetrics::new(name)));
        Self { work, only_reads, entry_bytes: AtomicUsize::new(0), takes, metrics }
    }

    fn handler(&self) -> H {
        let (Work::Inline(handler) | Work::InlineIfFew(handler) | Work::Offloaded(handler)) = &self.work;
        handler.clone()
    }

    /// # Arguments
    /// `entries`: how many the query asks for.
    fn is_offloaded(&self, call: &Call, entries: usize) -> bool {
        if call.body.len() > LONG_BODY_BYTES {
            return true;
        }
        match self.work {
            Work::Inline(_) => false,
            Work::InlineIfFew(_) => {
                // Those of a list are separated by commas. More may be in texts: it need not be exact.
                let separators = memchr::memchr_iter(b',', &call.body).count();
                let items = separators + usize::from(!call.body.is_empty());
                let boards = call.query().map_or(1, boards_asked);
                let lookups = items * usize::from(call.api.operations.node.shard_count()) * boards;
                are_many(lookups, turn::has_others()) || entries * boards > ENTRIES_INLINE
            }
            Work::Offloaded(_) => true,
        }
    }

    /// Reads and answers the request.
    ///
    /// # Arguments
    /// `in_progress`: set once the request is admitted.
    async fn answer(
        &self,
        request: Authorized,
        in_progress: &mut Option<Arc<InProgress>>,
    ) -> Result<Reply, Problem> {
        let Authorized { api, head, grant, body } = request;
        let call = Call::read(api, head, grant, body, Arc::clone(&self.metrics)).await?;
        self.takes.check(&call)?;
        turn::begin_request();
        // After its body is read: a slow body keeps no other request out.
        call.reading.in_progress.admit()?;
        let in_progress = in_progress.insert(Arc::clone(&call.reading.in_progress));
        let entries = match self.work {
            Work::InlineIfFew(_) => call.query().map_or(0, entries_asked),
            Work::Inline(_) | Work::Offloaded(_) => 0,
        };
        if self.only_reads && entries > ENTRIES_INLINE {
            // One that would be refused for its length is refused before it is made: it takes far longer.
            in_progress.count_answer(entries * self.entry_bytes.load(Ordering::Relaxed))?;
        }
        let reply = if self.is_offloaded(&call, entries) {
            let api = Arc::clone(&call.api);
            let work = traces::carried(self.handler().handle(call));
            let answered = Box::pin(api.operations.offload.run(work)).await;
            answered.unwrap_or_else(|| Err(Problem::internal()))
        } else {
            self.handler().handle(call).await
        };
        if let Ok(reply) = &reply
            && entries > ENTRIES_INLINE
        {
            self.entry_bytes.store(reply.bytes() / entries, Ordering::Relaxed);
        }
        let counted = in_progress.count_answer(reply.as_ref().map_or_else(Problem::bytes, Reply::bytes));
        match (reply, counted) {
            // A write is done, and so it is answered.
            (Ok(_), Err(failure)) if self.only_reads => Err(failure.into()),
            (reply, _) => reply,
        }
    }
}

impl<H: Handler> Endpoint for Measured<H> {
    async fn respond(&self, request: Authorized) -> Answered {
        let started = Instant::now();
        let mut in_progress = None;
        let answer = self.answer(request, &mut in_progress).await;
        Answered { in_progress, ..measured(&self.metrics, started, answer).into() }
    }
}

/// The answer to a request of a route, noted in the route's metrics.
fn measured(
    metrics: &RouteMetrics,
    started: Instant,
    answer: Result<impl IntoResponse, Problem>,
) -> Response {
    if answer.as_ref().is_err_and(Problem::is_overload) {
        count_shed();
    }
    let response = answer.into_response();
    metrics.request_seconds.record(started.elapsed());
    metrics.responses.note(response.status());
    response
}

/// A handler whose answers go on for long. Its requests are admitted and measured until an answer begins.
pub struct Streamed<H> {
    handler: H,
    takes: RouteTakes,
    metrics: Arc<RouteMetrics>,
}

impl<H> Streamed<H> {
    pub fn new(handler: H, takes: RouteTakes, name: &'static str) -> Self {
        Self { handler, takes, metrics: Arc::new(RouteMetrics::new(name)) }
    }
}

impl<H, F> Endpoint for Streamed<H>
where
    H: Fn(Box<Call>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Response, Problem>> + Send + 'static,
{
    async fn respond(&self, request: Authorized) -> Answered {
        let started = Instant::now();
        let Authorized { api, head, grant, body } = request;
        let answer = async {
            let call = Call::read(api, head, grant, body, Arc::clone(&self.metrics)).await?;
            self.takes.check(&call)?;
            call.reading.in_progress.admit()?;
            (self.handler)(call).await
        };
        let answer = answer.await;
        Answered { goes_on: answer.is_ok(), ..measured(&self.metrics, started, answer).into() }
    }
}

/// A handler that an overloaded node runs all the same. Its requests are not measured.
pub struct Unlimited<H>(pub H);

impl<H, F> Endpoint for Unlimited<H>
where
    H: Fn(Arc<Api>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    const IS_TRACED: bool = false;

    async fn respond(&self, request: Authorized) -> Answered {
        (self.0)(request.api).await.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_offloaded_sooner_if_others_wait() {
        assert_eq!(
            [1, 32, 33, 256, 257].map(|lookups| are_many(lookups, false)),
            [false, false, false, false, true]
        );
        assert_eq!(
            [1, 32, 33, 256, 257].map(|lookups| are_many(lookups, true)),
            [false, false, true, true, true]
        );
    }

    #[test]
    fn a_query_asks_for_as_many_entries_as_its_numbers_say() {
        for (query, entries) in [
            ("limit=1000", 1000),
            ("above=300&below=20&fill=true", 320),
            ("window=day", 0),
            ("limit=ten", 0),
            ("limit=18446744073709551615&above=1", BATCH_MAX),
        ] {
            assert_eq!(entries_asked(query), entries, "{query}");
        }
    }
}

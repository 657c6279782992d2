//! The list of what the API answers, under construction: each path with its method, its handler and its description.
//!
//! There is no way to add one without the others, so that the router and the OpenAPI document have the same routes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};

use crate::http::api::{Api, note_shed};
use crate::http::guard::authorize::only_reads;
use crate::http::openapi::Doc;
use crate::http::render::problem::Problem;
use crate::http::render::reply::Reply;
use crate::http::request::call::{Call, NO_ROUTE, Responses, RouteMetrics, asks_first, discard};
use crate::http::routing::verbs::{BOARD, Verb, allowed_at};

/// Longer bodies take so long to read and to answer that other connections should not wait for it: some 200 jobs.
const LONG_BODY_BYTES: usize = 16 << 10;

/// A response in the making.
type Responding = Pin<Box<dyn Future<Output = Response> + Send>>;
type Answer = Arc<dyn Fn(Arc<Api>, Request) -> Responding + Send + Sync>;
/// An answer in the making.
type Answering = Pin<Box<dyn Future<Output = Result<Reply, Problem>> + Send>>;

/// A handler that may take milliseconds of computing, whatever the body: made to do it apart from other connections.
pub fn long<H, F>(handler: H) -> impl Fn(Call) -> Answering + Clone + Send + Sync + 'static
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Reply, Problem>> + Send + 'static,
{
    move |call: Call| -> Answering {
        let api = Arc::clone(&call.api);
        let answer = handler(call);
        Box::pin(async move { api.aside(answer).await.unwrap_or_else(|| Err(Problem::internal())) })
    }
}

/// Methods that the API has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Put,
    Post,
    Delete,
}

impl Method {
    /// As OpenAPI names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Post => "post",
            Self::Delete => "delete",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Put => MethodFilter::PUT,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

/// A method of a path, and what is told of it.
#[derive(Debug)]
pub struct Operation {
    pub method: Method,
    pub path: &'static str,
    /// Its name in metrics and in the document.
    pub name: &'static str,
    pub doc: Doc,
}

/// Routes under construction.
#[derive(Default)]
pub struct Routes {
    pub router: Router<Arc<Api>>,
    pub operations: Vec<Operation>,
    verbs: Vec<(&'static str, Answer)>,
}

impl Routes {
    /// Adds a request that is shed when there are too many, and measured.
    pub fn add<H, F>(
        &mut self,
        method: Method,
        path: &'static str,
        name: &'static str,
        handler: H,
        doc: Doc,
    ) -> &mut Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply, Problem>> + Send + 'static,
    {
        let answer = answering(method, path, name, handler);
        self.add_plain(method, path, name, answer, doc)
    }

    /// Adds a verb behind a board's name, to be routed with the others: see [`Verb`].
    pub fn add_verb<H, F>(
        &mut self,
        path: &'static str,
        name: &'static str,
        handler: H,
        doc: Doc,
    ) -> &mut Self
    where
        H: Fn(Call) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<Reply, Problem>> + Send + 'static,
    {
        let answer = answering(Method::Post, path, name, handler);
        let answer = move |api, request| answer.clone()(State(api), request);
        self.verbs.push((path, Arc::new(answer)));
        self.operations.push(Operation { method: Method::Post, path, name, doc });
        self
    }

    /// Routes the verbs that were added. What is none is refused as a method that boards do not take.
    pub fn route_verbs(&mut self) -> &mut Self {
        let verbs: Arc<[_]> = std::mem::take(&mut self.verbs).into();
        let responses = Responses::new(NO_ROUTE);
        let answer = move |State(api): State<Arc<Api>>, request: Request| {
            let (verbs, responses) = (Arc::clone(&verbs), responses.clone());
            async move {
                let (mut parts, body) = request.into_parts();
                let verb = Verb::of(&mut parts).await;
                let request = Request::from_parts(parts, body);
                let is_it =
                    |(path, _): &&(&str, Answer)| verb.as_ref().is_some_and(|verb| verb.route == *path);
                if let Some((_, answer)) = verbs.iter().find(is_it) {
                    return answer(api, request).await;
                }
                let allowed = allowed_at(request.uri().path(), request.extensions().get());
                let mut response = refuse(request, Problem::method_not_allowed()).await.into_response();
                allowed.map(|allowed| response.headers_mut().insert(header::ALLOW, allowed));
                responses.note(response.status());
                response
            }
        };
        self.router = std::mem::take(&mut self.router).route(BOARD, on(MethodFilter::POST, answer));
        self
    }

    /// Adds what an overloaded service answers all the same.
    pub fn add_plain<T: 'static>(
        &mut self,
        method: Method,
        path: &'static str,
        name: &'static str,
        handler: impl Handler<T, Arc<Api>>,
        doc: Doc,
    ) -> &mut Self {
        self.router = std::mem::take(&mut self.router).route(path, on(method.filter(), handler));
        self.operations.push(Operation { method, path, name, doc });
        self
    }
}

/// A handler whose requests are shed when there are too many, and measured.
fn answering<H, F>(
    method: Method,
    path: &'static str,
    name: &'static str,
    handler: H,
) -> impl FnOnce(State<Arc<Api>>, Request) -> Responding + Clone + Send + Sync + 'static
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Reply, Problem>> + Send + 'static,
{
    let metrics = RouteMetrics::new(name);
    let only_reads = only_reads(method.name(), path);
    move |State(api): State<Arc<Api>>, request: Request| -> Responding {
        Box::pin(async move {
            let started = Instant::now();
            let mut in_work = None;
            let answer = match Call::new(api, request, metrics.clone()).await {
                // With its body read: one that comes slowly keeps nobody else out.
                Ok(call) => match call.in_work.begin() {
                    Ok(()) => {
                        let in_work = in_work.insert(Arc::clone(&call.in_work));
                        let is_long = call.body.len() > LONG_BODY_BYTES;
                        let reply = if is_long { long(handler)(call).await } else { handler(call).await };
                        let counted =
                            in_work.count_answer(reply.as_ref().map_or_else(Problem::bytes, Reply::bytes));
                        match (reply, counted) {
                            // What a write did is done: it is told.
                            (Ok(_), Err(problem)) if only_reads => Err(problem),
                            (reply, _) => reply,
                        }
                    }
                    Err(problem) => Err(problem),
                },
                Err(problem) => Err(problem),
            };
            if answer.as_ref().is_err_and(Problem::is_overload) {
                note_shed();
            }
            let mut response = answer.map_or_else(Problem::into_response, Reply::into_response);
            metrics.request_seconds.record(started.elapsed());
            metrics.responses.note(response.status());
            // Whoever writes the answer keeps it until then.
            in_work.map(|in_work| response.extensions_mut().insert(in_work));
            response
        })
    }
}

/// Refuses a request whose body nobody reads.
pub async fn refuse(request: Request, problem: Problem) -> Problem {
    // Who asks before it sends has sent nothing, and to read on would be to tell it to send.
    if !asks_first(request.headers()) {
        discard(request.into_body()).await;
    }
    problem
}

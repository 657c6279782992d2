//! Paths and methods.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::IntoResponse as _;
use axum::routing::{MethodFilter, MethodRouter, get, on};

use crate::http::api::Api;
use crate::http::call::{Call, RouteMetrics, discard};
use crate::http::error::Problem;
use crate::http::reply::Reply;
use crate::http::{boards, jobs, lists, members, probes, ranks, status};

const GET: MethodFilter = MethodFilter::GET;
const PUT: MethodFilter = MethodFilter::PUT;
const POST: MethodFilter = MethodFilter::POST;
const DELETE: MethodFilter = MethodFilter::DELETE;

/// All of the API. Metrics go to the recorder installed at this moment.
pub fn router(api: Arc<Api>) -> Router {
    let router = Router::new()
        .route(
            "/v1/boards/{board}/members/{member}",
            run(GET, "member", members::get).merge(run(PUT, "put_member", members::put)).merge(run(
                DELETE,
                "delete_member",
                members::delete,
            )),
        )
        .route("/v1/boards/{board}/members/{member}/around", run(GET, "around", members::around))
        .route("/v1/boards/{board}/members:lookup", run(POST, "lookup", members::lookup))
        .route("/v1/boards/{board}/top", run(GET, "top", lists::top))
        .route("/v1/boards/{board}/positions/{position}", run(GET, "positions", lists::positions))
        .route("/v1/boards/{board}/rank", run(GET, "rank", ranks::of_score))
        .route("/v1/boards/{board}/ranks:of", run(POST, "ranks_of", ranks::of_scores))
        .route("/v1/boards/{board}/score", run(GET, "score", ranks::score_at))
        .route("/v1/boards/{board}/count", run(GET, "count", ranks::count))
        .route("/v1/boards/{board}/histogram", run(GET, "histogram", ranks::histogram))
        .route("/v1/boards/{board}/percentiles", run(GET, "percentiles", ranks::percentiles))
        .route(
            "/v1/members/{member}",
            run(GET, "member_boards", members::on_boards).merge(run(
                DELETE,
                "delete_everywhere",
                members::delete_everywhere,
            )),
        )
        .route(
            "/v1/boards/{board}",
            run(PUT, "put_board", boards::put).merge(run(GET, "board", boards::get)).merge(run(
                DELETE,
                "delete_board",
                boards::delete,
            )),
        )
        .route("/v1/boards", run(GET, "boards", boards::list))
        .route("/v1/jobs", run(POST, "jobs", jobs::post))
        .route("/v1/status", run(GET, "status", status::get))
        .route("/healthz", get(probes::healthz))
        .route("/readyz", get(probes::readyz))
        .route("/metrics", get(probes::metrics))
        .fallback(async |request: Request| refuse(request, Problem::unknown_route()).await)
        .method_not_allowed_fallback(async |request: Request| {
            refuse(request, Problem::method_not_allowed()).await
        });
    router.with_state(api)
}

/// Refuses a request whose body nobody reads.
async fn refuse(request: Request, problem: Problem) -> Problem {
    discard(request.into_body()).await;
    problem
}

/// Makes a handler of ours one of axum's: takes the request in or sheds it, and takes its time.
fn run<H, F>(method: MethodFilter, route: &'static str, handler: H) -> MethodRouter<Arc<Api>>
where
    H: Fn(Call) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<Reply, Problem>> + Send + 'static,
{
    let metrics = RouteMetrics::new(route);
    let answer = move |State(api): State<Arc<Api>>, request: Request| async move {
        let started = Instant::now();
        let Some(_admitted) = api.admit() else {
            let response = refuse(request, Problem::overloaded()).await.into_response();
            metrics.note_response(response.status());
            return response;
        };
        let answer = match Call::new(api, request, metrics.clone()).await {
            Ok(call) => handler(call).await,
            Err(problem) => Err(problem),
        };
        let response = answer.map_or_else(Problem::into_response, Reply::into_response);
        metrics.request_seconds.record(started.elapsed());
        metrics.note_response(response.status());
        response
    };
    on(method, answer)
}

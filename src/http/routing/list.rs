//! Paths and methods.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse as _;

use crate::http::api::Api;
use crate::http::guard::authorize::{Guard, authorize};
use crate::http::openapi::{self, operations as docs};
use crate::http::render::problem::Problem;
use crate::http::request::call::{NO_ROUTE, Responses};
use crate::http::resources::{boards, jobs, lists, members, probes, ranks, rejects, removals, status};
use crate::http::routing::answering::Method::{Delete, Get, Post, Put};
use crate::http::routing::answering::{Routes, long, refuse};
use crate::http::routing::verbs::{self, BOARD};

const ENTRY: &str = "/v1/boards/{board}/members/{member}";
const MEMBER: &str = "/v1/members/{member}";

/// All of the API. Metrics go to the recorder installed at this moment.
pub fn router(api: Arc<Api>) -> Router {
    let responses = Responses::new(NO_ROUTE);
    let nowhere = |problem: fn() -> Problem| {
        let responses = responses.clone();
        move |request: Request| {
            let responses = responses.clone();
            async move {
                let allowed = verbs::allowed_at(request.uri().path(), request.extensions().get());
                let mut response = refuse(request, problem()).await.into_response();
                allowed.map(|allowed| response.headers_mut().insert(header::ALLOW, allowed));
                responses.note(response.status());
                response
            }
        }
    };
    let router = routes()
        .router
        .fallback(nowhere(Problem::unknown_route))
        .method_not_allowed_fallback(nowhere(Problem::method_not_allowed));
    let guard = api.access.clone().map(|access| Guard { access, api: Arc::clone(&api), responses });
    let router = router.with_state(api);
    match guard {
        Some(guard) => router.layer(from_fn_with_state(Arc::new(guard), authorize)),
        None => router,
    }
}

/// Every path, in the order in which the document tells them.
pub fn routes() -> Routes {
    let mut routes = Routes::default();
    routes
        .add(Get, "/v1/boards", "boards", long(boards::list), docs::boards())
        .add(Put, BOARD, "put_board", boards::put, docs::put_board())
        .add(Get, BOARD, "board", boards::get, docs::board())
        .add(Delete, BOARD, "delete_board", boards::delete, docs::delete_board())
        .add_verb(verbs::CLEAR, "clear_board", removals::clear, docs::clear_board())
        .add_verb(verbs::TRIM, "trim_board", long(removals::trim), docs::trim_board())
        .route_verbs();
    routes
        .add(Put, ENTRY, "put_member", members::put, docs::put_member())
        .add(Delete, ENTRY, "delete_member", members::delete, docs::delete_member())
        .add(Delete, MEMBER, "delete_everywhere", members::delete_everywhere, docs::delete_everywhere())
        .add(Post, "/v1/jobs", "jobs", jobs::post, docs::jobs());
    routes
        .add(Get, ENTRY, "member", members::get, docs::member())
        .add(Get, "/v1/boards/{board}/members/{member}/around", "around", members::around, docs::around())
        .add(Post, "/v1/boards/{board}/members:lookup", "lookup", long(members::lookup), docs::lookup())
        .add(Get, MEMBER, "member_boards", long(members::on_boards), docs::member_boards());
    routes.add(Get, "/v1/boards/{board}/top", "top", lists::top, docs::top()).add(
        Get,
        "/v1/boards/{board}/positions/{position}",
        "positions",
        lists::positions,
        docs::positions(),
    );
    routes.add(Get, "/v1/boards/{board}/range", "range", lists::range, docs::range());
    routes
        .add(Get, "/v1/boards/{board}/rank", "rank", ranks::of_score, docs::rank())
        .add(Post, "/v1/boards/{board}/ranks:of", "ranks_of", long(ranks::of_scores), docs::ranks_of())
        .add(Get, "/v1/boards/{board}/score", "score", ranks::score_at, docs::score())
        .add(Get, "/v1/boards/{board}/count", "count", ranks::count, docs::count())
        .add(Get, "/v1/boards/{board}/histogram", "histogram", long(ranks::histogram), docs::histogram())
        .add(
            Get,
            "/v1/boards/{board}/percentiles",
            "percentiles",
            long(ranks::percentiles),
            docs::percentiles(),
        );
    routes
        .add(Get, "/v1/rejects", "rejects", rejects::list, docs::rejects())
        .add(Get, "/v1/status", "status", status::get, docs::status())
        .add_plain(Get, "/healthz", "healthz", probes::healthz, docs::healthz())
        .add_plain(Get, "/readyz", "readyz", probes::readyz, docs::readyz())
        .add_plain(Get, "/metrics", "metrics", probes::metrics, docs::metrics())
        .add_plain(Get, "/openapi.json", "openapi", openapi::get_json, docs::openapi())
        .add_plain(Get, "/docs", "docs", openapi::get_page, docs::docs());
    routes
}

//! The list of all routes: paths, what they need of a token, handlers, and descriptions.

use std::sync::Arc;

use axum::response::Response;

use crate::access::Scope::{Admin, Read, Write};
use crate::http::api::Api;
use crate::http::guard::authorize::BoardCheck::{ByHandler, EveryBoard, InPath};
use crate::http::guard::authorize::Needs::{self, Nothing, Token};
use crate::http::openapi::operation::Operation;
use crate::http::openapi::{document, operations as docs, served};
use crate::http::render::problem::Problem;
use crate::http::request::call::Call;
use crate::http::resources::{
    boards, combine, hidden, jobs, lists, live, members, probes, ranks, read_only, rejects, removals,
    seasons, snapshots, status,
};
use crate::http::routing::endpoint::Work::{Inline, InlineIfFew, Offloaded};
use crate::http::routing::router::Router;
use crate::http::routing::router_builder::{RouterBuilder, delete, get, post, put};
use crate::http::routing::verbs::BOARD;

const ENTRY: &str = "/v1/boards/{board}/members/{member}";
const SEASON: &str = "/v1/boards/{board}/seasons/{season}";
const MEMBER: &str = "/v1/members/{member}";

/// All of the API. Metrics go to the recorder that is installed at this moment.
pub fn router(api: Arc<Api>) -> Router {
    routes().build(api)
}

/// Every route, in the order in which the document has them.
pub fn operations() -> Vec<Operation> {
    routes().operations
}

/// The paths that need no token.
pub fn open_paths() -> Vec<&'static str> {
    let operations = operations().into_iter();
    operations.filter(|operation| operation.needs == Needs::Nothing).map(|operation| operation.path).collect()
}

/// The OpenAPI document as it is served and committed.
pub fn openapi_json() -> String {
    document::json(&operations())
}

#[rustfmt::skip]
fn routes() -> RouterBuilder {
    let mut routes = RouterBuilder::default();
    routes
        .add(get("/v1/boards", "boards"), Token(Read, ByHandler), Offloaded(boards::list), docs::boards())
        .add(put(BOARD, "put_board"), Token(Admin, InPath), Inline(boards::put), docs::put_board())
        .add(get(BOARD, "board"), Token(Read, InPath), Inline(boards::get), docs::board())
        .add(
            delete(BOARD, "delete_board"),
            Token(Admin, InPath), Inline(boards::delete), docs::delete_board(),
        );
    routes
        .add(
            post("/v1/boards/{board}:clear", "clear_board"),
            Token(Admin, InPath), Inline(removals::clear), docs::clear_board(),
        )
        .add(
            post("/v1/boards/{board}:trim", "trim_board"),
            Token(Admin, InPath), Offloaded(removals::trim), docs::trim_board(),
        );
    add_seasons(&mut routes);
    routes
        .add(put(ENTRY, "put_member"), Token(Write, InPath), Inline(members::put), docs::put_member())
        .add(
            delete(ENTRY, "delete_member"),
            Token(Write, InPath), Inline(members::delete), docs::delete_member(),
        )
        .add(
            delete(MEMBER, "delete_everywhere"),
            Token(Write, EveryBoard), Inline(members::delete_everywhere), docs::delete_everywhere(),
        )
        .add(post("/v1/jobs", "jobs"), Token(Write, ByHandler), Inline(jobs::post), docs::jobs())
        .add(
            post("/v1/readonly", "set_read_only"),
            Token(Admin, ByHandler), Inline(read_only::post), docs::set_read_only(),
        );
    routes
        .add(get(ENTRY, "member"), Token(Read, InPath), Inline(members::get), docs::member())
        .add(
            get("/v1/boards/{board}/members/{member}/around", "around"),
            Token(Read, InPath), InlineIfFew(members::around), docs::around(),
        )
        .add(
            post("/v1/boards/{board}/members:lookup", "lookup"),
            Token(Read, InPath), InlineIfFew(members::lookup), docs::lookup(),
        )
        .add(
            post("/v1/boards:combine", "combine"),
            Token(Read, ByHandler), Offloaded(combine::combine), docs::combine(),
        )
        .add(
            get(MEMBER, "member_boards"),
            Token(Read, ByHandler), Offloaded(members::entries_of_member), docs::member_boards(),
        );
    routes
        .add(get("/v1/boards/{board}/top", "top"), Token(Read, InPath), InlineIfFew(lists::top), docs::top())
        .add(
            get("/v1/boards/{board}/positions/{position}", "positions"),
            Token(Read, InPath), InlineIfFew(lists::positions), docs::positions(),
        )
        .add(
            get("/v1/boards/{board}/range", "range"),
            Token(Read, InPath), InlineIfFew(lists::range), docs::range(),
        )
        .add_streamed(get("/v1/boards/{board}/live", "live"), live::NEEDS, live::live, docs::live());
    routes
        .add(
            get("/v1/boards/{board}/rank", "rank"),
            Token(Read, InPath), Inline(ranks::of_score), docs::rank(),
        )
        .add(
            post("/v1/boards/{board}/ranks:of", "ranks_of"),
            Token(Read, InPath), InlineIfFew(ranks::of_scores), docs::ranks_of(),
        )
        .add(
            get("/v1/boards/{board}/score", "score"),
            Token(Read, InPath), Inline(ranks::score_at), docs::score(),
        )
        .add(
            get("/v1/boards/{board}/count", "count"),
            Token(Read, InPath), Inline(ranks::count), docs::count(),
        )
        .add(
            get("/v1/boards/{board}/histogram", "histogram"),
            Token(Read, InPath), Offloaded(ranks::histogram), docs::histogram(),
        )
        .add(
            get("/v1/boards/{board}/percentiles", "percentiles"),
            Token(Read, InPath), Offloaded(ranks::percentiles), docs::percentiles(),
        );
    routes
        .add(get("/v1/hidden", "hidden"), Token(Write, ByHandler), InlineIfFew(hidden::list), docs::hidden())
        .add(get("/v1/rejects", "rejects"), Token(Read, ByHandler), InlineIfFew(rejects::list), docs::rejects())
        .add(get("/v1/status", "status"), Token(Read, ByHandler), Inline(status::get), docs::status());
    add_snapshots(&mut routes);
    routes
        // Programs that start and stop the service have no token.
        .add_unlimited(get("/healthz", "healthz"), Nothing, probes::healthz, docs::healthz())
        .add_unlimited(get("/readyz", "readyz"), Nothing, probes::readyz, docs::readyz())
        // Its figures are of all boards together.
        .add_unlimited(get("/metrics", "metrics"), Token(Read, EveryBoard), probes::metrics, docs::metrics())
        // The same for every ranktree of this version.
        .add_streamed(get("/openapi.json", "openapi"), Nothing, serve_json, docs::openapi())
        .add_streamed(get("/docs", "docs"), Nothing, serve_page, docs::docs());
    routes
}

#[rustfmt::skip]
fn add_seasons(routes: &mut RouterBuilder) {
    routes
        .add(
            post("/v1/boards/{board}/seasons", "open_season"),
            Token(Admin, InPath), Inline(seasons::open), docs::open_season(),
        )
        .add(
            put(SEASON, "move_season"),
            Token(Admin, InPath), Inline(seasons::move_planned), docs::move_season(),
        )
        .add(
            delete(SEASON, "cancel_season"),
            Token(Admin, InPath), Inline(seasons::cancel), docs::cancel_season(),
        );
}

/// A snapshot has all boards.
#[rustfmt::skip]
fn add_snapshots(routes: &mut RouterBuilder) {
    routes
        .add(
            post("/v1/snapshots", "begin_snapshot"),
            Token(Admin, EveryBoard), Inline(snapshots::begin), docs::begin_snapshot(),
        )
        .add(
            get("/v1/snapshots/{snapshot}/shards/{shard}/files/{file}", "snapshot_file"),
            Token(Admin, EveryBoard), Inline(snapshots::file), docs::snapshot_file(),
        )
        .add(
            delete("/v1/snapshots/{snapshot}", "delete_snapshot"),
            Token(Admin, EveryBoard), Inline(snapshots::delete), docs::delete_snapshot(),
        );
}

async fn serve_json(_: Box<Call>) -> Result<Response, Problem> {
    Ok(served::json(operations))
}

async fn serve_page(_: Box<Call>) -> Result<Response, Problem> {
    Ok(served::page(operations))
}

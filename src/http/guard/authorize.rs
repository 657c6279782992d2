//! Which request needs what, and whether its token allows it: the one place that decides.
//!
//! A layer over the whole router, before anything of a request's body is read. What a route needs stands in a table; a
//! method of a path that the table does not have needs the most there is, so that a route which is forgotten here is
//! closed and not open. Boards that only a body or a parameter names are left to its handler, through
//! [`Call::confined_to`](crate::http::request::call::Call::confined_to).

use std::sync::Arc;

use axum::extract::{FromRequestParts as _, MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::access::{Access, Grant, Scope};
use crate::http::api::Api;
use crate::http::guard::refusal_log::Refused;
use crate::http::render::problem::Problem;
use crate::http::request::call::Responses;
use crate::http::routing::answering::refuse;
use crate::http::routing::verbs::{self, Verb};

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it tells nothing of boards and members.
    Nothing,
    Token(Scope, Boards),
}

/// Which boards a request touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boards {
    /// None: any token of the scope will do.
    None,
    /// The one that its path names.
    InPath,
    /// Some that its handler knows, which refuses those that are ruled out or leaves them out of its answer.
    Judged,
    /// All there are: a token that is confined to some will not do.
    Every,
}

use Boards::{Every, InPath, Judged};
use Needs::{Nothing, Token};
use Scope::{Admin, Read, Write};

const MOST: Needs = Token(Admin, Every);

/// What every route needs.
pub const TABLE: &[(&str, &str, Needs)] = &[
    ("GET", "/v1/boards", Token(Read, Judged)),
    ("PUT", "/v1/boards/{board}", Token(Admin, InPath)),
    ("GET", "/v1/boards/{board}", Token(Read, InPath)),
    ("DELETE", "/v1/boards/{board}", Token(Admin, InPath)),
    ("POST", verbs::CLEAR, Token(Admin, InPath)),
    ("POST", verbs::TRIM, Token(Admin, InPath)),
    ("GET", "/v1/boards/{board}/members/{member}", Token(Read, InPath)),
    ("PUT", "/v1/boards/{board}/members/{member}", Token(Write, InPath)),
    ("DELETE", "/v1/boards/{board}/members/{member}", Token(Write, InPath)),
    ("GET", "/v1/boards/{board}/members/{member}/around", Token(Read, InPath)),
    ("POST", "/v1/boards/{board}/members:lookup", Token(Read, InPath)),
    ("GET", "/v1/boards/{board}/top", Token(Read, InPath)),
    ("GET", "/v1/boards/{board}/positions/{position}", Token(Read, InPath)),
    ("GET", "/v1/boards/{board}/rank", Token(Read, InPath)),
    ("POST", "/v1/boards/{board}/ranks:of", Token(Read, InPath)),
    ("GET", "/v1/boards/{board}/score", Token(Read, InPath)),
    ("GET", "/v1/boards/{board}/count", Token(Read, InPath)),
    ("GET", "/v1/boards/{board}/histogram", Token(Read, InPath)),
    ("GET", "/v1/boards/{board}/percentiles", Token(Read, InPath)),
    ("GET", "/v1/boards/{board}/range", Token(Read, InPath)),
    ("GET", "/v1/members/{member}", Token(Read, Judged)),
    ("DELETE", "/v1/members/{member}", Token(Write, Every)),
    ("POST", "/v1/jobs", Token(Write, Judged)),
    ("GET", "/v1/rejects", Token(Read, Judged)),
    ("GET", "/v1/status", Token(Read, Boards::None)),
    ("GET", "/metrics", Token(Read, Boards::None)),
    // Whoever starts and stops the service asks these, and has no token.
    ("GET", "/healthz", Nothing),
    ("GET", "/readyz", Nothing),
    // The same for every ranktree of this version.
    ("GET", "/openapi.json", Nothing),
    ("GET", "/docs", Nothing),
];

/// What a method of a route's path needs.
pub fn needs(method: &Method, path: &str) -> Needs {
    // Whatever answers GET answers HEAD.
    let name = if method == Method::HEAD { "GET" } else { method.as_str() };
    let found = TABLE.iter().find(|(known, route, _)| *known == name && *route == path);
    found.map_or(MOST, |(_, _, needs)| *needs)
}

/// Whether a method of a route's path changes nothing. A forgotten route may.
pub fn only_reads(method: &str, path: &str) -> bool {
    let found = TABLE.iter().find(|(known, route, _)| known.eq_ignore_ascii_case(method) && *route == path);
    found.is_some_and(|(_, _, needs)| matches!(needs, Nothing | Token(Read, _)))
}

/// Whether what is at this path tells nothing of boards and members, so that anybody may ask.
pub fn needs_nothing(path: &str) -> bool {
    TABLE.iter().any(|(_, route, needs)| *route == path && *needs == Nothing)
}

/// Whom requests are let in by, and where it is noted if they are not.
pub struct Guard {
    pub access: Arc<Access>,
    pub api: Arc<Api>,
    /// Refused requests reach no route.
    pub responses: Responses,
}

/// Lets a request on to its handler, with what its token allows, or refuses it.
pub async fn authorize(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    // What is at no route's path is nothing, and anybody may be told.
    let Some(route) = request.extensions().get::<MatchedPath>().cloned() else {
        return next.run(request).await;
    };
    let (mut parts, body) = request.into_parts();
    let verb = Verb::of(&mut parts).await;
    let route = verb.as_ref().map_or(route.as_str(), |verb| verb.route);
    let Token(scope, boards) = needs(&parts.method, route) else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    let held = find(&guard.access, &parts.headers);
    let judged = match held.clone() {
        Ok(grant) if !grant.allows(scope) => Err(Problem::insufficient_scope(scope)),
        Ok(grant) if boards == InPath => {
            let path = RawPathParams::from_request_parts(&mut parts, &()).await;
            // A path that is not UTF-8 names no board, and is refused for that.
            let board = path.iter().flatten().find(|(name, _)| *name == "board").map(|(_, board)| board);
            // A verb behind it is no part of a board's name: a prefix may be longer than the name.
            match verb.as_ref().map(|verb| verb.board.as_str()).or(board) {
                Some(board) if !grant.allows_board(board) => {
                    Err(Problem::forbidden_board("the token may not touch this board"))
                }
                _ => Ok(grant),
            }
        }
        Ok(grant) if boards == Every && !grant.allows_every_board() => {
            let detail = "this touches every board, and the token is confined to some";
            Err(Problem::forbidden_board(detail))
        }
        held => held.map_err(NoToken::into),
    };
    match judged {
        Ok(grant) => {
            parts.extensions.insert(grant);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(problem) => {
            let refused = Refused {
                client: parts.extensions.get().copied(),
                method: parts.method.as_str(),
                path: parts.uri.path(),
                token: held.as_deref().ok().map(|grant| grant.name.as_str()),
            };
            guard.api.refusals.note(&problem, refused);
            let response = refuse(Request::from_parts(parts, body), problem).await.into_response();
            guard.responses.note(response.status());
            response
        }
    }
}

/// Why a request has no token of ours.
#[derive(Debug, Clone, Copy)]
enum NoToken {
    Missing,
    Unknown,
}

impl From<NoToken> for Problem {
    fn from(why: NoToken) -> Self {
        match why {
            NoToken::Missing => Self::unauthorized(),
            NoToken::Unknown => Self::invalid_token(),
        }
    }
}

/// What the request's token allows.
fn find(access: &Access, headers: &HeaderMap) -> Result<Arc<Grant>, NoToken> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(given), None) = (given.next(), given.next()) else { return Err(NoToken::Missing) };
    let given = given.to_str().map_err(|_| NoToken::Unknown)?;
    // The scheme's name has no case (RFC 9110, section 11.1).
    let (scheme, token) = given.split_once(' ').unwrap_or((given, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(NoToken::Missing);
    }
    access.tokens().find(token.trim_matches(' ')).ok_or(NoToken::Unknown)
}

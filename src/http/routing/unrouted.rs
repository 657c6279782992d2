//! Requests that no route takes: their path is none of the API, or does not take their method.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::{Method, header};
use axum::response::IntoResponse as _;

use crate::http::api::Api;
use crate::http::guard::authorize::Needs;
use crate::http::page;
use crate::http::render::problem::Problem;
use crate::http::request::body::refuse;
use crate::http::request::head::Head;
use crate::http::request::metrics::{NO_ROUTE, Responses};
use crate::http::routing::endpoint::Responding;
use crate::http::routing::verbs;

/// Refuses such requests.
#[derive(Clone)]
pub struct Unrouted {
    /// The verbs of boards, each with its colon, where the path is known and the method is not; `None` where
    /// the path is unknown.
    verbs: Option<Arc<[&'static str]>>,
    responses: Responses,
}

impl Unrouted {
    /// What answers requests whose path is none of the API.
    pub fn path() -> Self {
        Self { verbs: None, responses: Responses::new(NO_ROUTE) }
    }

    /// What answers requests whose path does not take their method.
    pub fn method(verbs: Arc<[&'static str]>) -> Self {
        Self { verbs: Some(verbs), responses: Responses::new(NO_ROUTE) }
    }
}

impl axum::handler::Handler<(), Arc<Api>> for Unrouted {
    type Future = Responding;

    fn call(self, request: Request, api: Arc<Api>) -> Responding {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            if self.verbs.is_none()
                && matches!(parts.method, Method::GET | Method::HEAD)
                && let Some(response) = page::at(parts.uri.path(), &parts.headers)
            {
                self.responses.note(response.status());
                return response;
            }
            let head = Head::new(parts, None).await;
            let (problem, allowed) = match &self.verbs {
                // Anybody may know which paths there are. A method that a path does not take is not a way
                // around tokens.
                Some(verbs) => match head.authorize(&api, Needs::MOST) {
                    Ok(_) => (Problem::method_not_allowed(), verbs::allowed_at(head.path(), verbs)),
                    Err(problem) => (problem, None),
                },
                None if has_slash_in_id(head.path()) => (Problem::unencoded_slash(), None),
                None => (Problem::unknown_route(), None),
            };
            let mut response = refuse(head.headers(), body, problem).await.into_response();
            allowed.map(|allowed| response.headers_mut().insert(header::ALLOW, allowed));
            self.responses.note(response.status());
            response
        })
    }
}

/// Whether a path that no route takes is one of a member whose id has a slash.
fn has_slash_in_id(path: &str) -> bool {
    let below = path.strip_prefix("/v1/").unwrap_or_default();
    let id = match below.split_once("/members/") {
        Some((board, id)) if board.strip_prefix("boards/").is_some_and(|board| !board.contains('/')) => {
            Some(id)
        }
        Some(_) => None,
        None => below.strip_prefix("members/"),
    };
    // An empty id, or a part of an empty id, is no id with a slash.
    id.is_some_and(|id| id.split('/').filter(|part| !part.is_empty()).count() > 1)
}

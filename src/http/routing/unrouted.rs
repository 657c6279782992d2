//! Requests that no route takes: their path is none of the API, or does not take their method.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request};
use axum::http::header;
use axum::response::IntoResponse as _;

use crate::http::api::Api;
use crate::http::guard::authorize::Needs;
use crate::http::render::problem::Problem;
use crate::http::request::body::refuse;
use crate::http::request::head::Head;
use crate::http::request::metrics::{NO_ROUTE, Responses};
use crate::http::routing::endpoint::Responding;
use crate::http::routing::verbs;

/// Refuses such requests.
#[derive(Clone)]
pub struct Unrouted {
    problem: fn() -> Problem,
    /// The verbs of boards, each with its colon.
    verbs: Arc<[&'static str]>,
    responses: Arc<Responses>,
}

impl Unrouted {
    pub fn new(problem: fn() -> Problem, verbs: Arc<[&'static str]>) -> Self {
        Self { problem, verbs, responses: Arc::new(Responses::new(NO_ROUTE)) }
    }
}

impl axum::handler::Handler<(), Arc<Api>> for Unrouted {
    type Future = Responding;

    fn call(self, request: Request, api: Arc<Api>) -> Responding {
        Box::pin(async move {
            let route = request.extensions().get::<MatchedPath>().cloned();
            let (parts, body) = request.into_parts();
            let head = Head::new(parts, None).await;
            // Anybody may know which paths there are. A method that a path does not take is not a way around
            // tokens.
            let unauthorized = route.as_ref().and_then(|_| head.authorize(&api, Needs::MOST).err());
            let allowed = match (&route, &unauthorized) {
                (Some(route), None) => verbs::allowed_at(head.parts.uri.path(), route, &self.verbs),
                _ => None,
            };
            let problem = unauthorized.unwrap_or_else(self.problem);
            let mut response = refuse(&head.parts.headers, body, problem).await.into_response();
            allowed.map(|allowed| response.headers_mut().insert(header::ALLOW, allowed));
            self.responses.note(response.status());
            response
        })
    }
}

//! Requests that no route takes: their path is none of the API, or does not take their method.

use axum::body::Body;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};

use crate::http::api::Api;
use crate::http::guard::authorize::Needs;
use crate::http::page;
use crate::http::render::problem::Problem;
use crate::http::request::body::refuse;
use crate::http::request::head::Head;
use crate::http::request::metrics::{NO_ROUTE, Responses};
use crate::http::routing::endpoint::Answered;

/// Refuses such requests.
pub struct Unrouted {
    responses: Responses,
}

impl Unrouted {
    pub fn new() -> Self {
        Self { responses: Responses::new(NO_ROUTE) }
    }

    /// Answers a request whose path is none of the API. That may be one of the page.
    pub async fn refuse_path(&self, head: Head, body: Body) -> Answered {
        if matches!(*head.method(), Method::GET | Method::HEAD)
            && let Some(response) = page::at(head.path(), head.headers())
        {
            self.responses.note(response.status());
            return response.into();
        }
        let problem =
            if has_slash_in_id(head.path()) { Problem::unencoded_slash() } else { Problem::unknown_route() };
        self.refuse(&head, body, problem).await.into()
    }

    /// Refuses a request whose path does not take its method.
    ///
    /// # Arguments
    /// `allowed`: the value of `Allow`.
    pub async fn refuse_method(&self, api: &Api, head: Head, body: Body, allowed: HeaderValue) -> Answered {
        // Anybody may know which paths there are. A method that a path does not take is not a way around
        // tokens.
        match head.authorize(api, Needs::MOST) {
            Ok(_) => {
                let mut response = self.refuse(&head, body, Problem::method_not_allowed()).await;
                response.headers_mut().insert(header::ALLOW, allowed);
                response.into()
            }
            Err(problem) => self.refuse(&head, body, problem).await.into(),
        }
    }

    async fn refuse(&self, head: &Head, body: Body, problem: Problem) -> Response {
        let response = refuse(head.headers(), body, problem).await.into_response();
        self.responses.note(response.status());
        response
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

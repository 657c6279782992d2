//! The span of a request over HTTP, named for its route: a path would be a name for each member.

use axum::http::{HeaderMap, StatusCode};

use crate::http::openapi::operation::Method;
use crate::http::request::head::Head;
use crate::traces::{self, Caller, Kind, Span, TRACEPARENT, TRACESTATE};

/// What spans say of a route.
#[derive(Clone)]
pub struct TracedRoute {
    method: &'static str,
    path: &'static str,
}

impl TracedRoute {
    pub fn new(method: Method, path: &'static str) -> Self {
        let method = match method {
            Method::Get => "GET",
            Method::Put => "PUT",
            Method::Post => "POST",
            Method::Delete => "DELETE",
        };
        Self { method, path }
    }

    /// The span of a request, if that is sampled.
    pub fn begin(&self, head: &Head) -> Option<Span> {
        if !traces::is_on() {
            return None;
        }
        let name = format!("{} {}", self.method, self.path);
        let mut span = traces::begin(Kind::Server, name, || caller(head.headers()))?;
        span.attribute("http.request.method", self.method);
        span.attribute("http.route", self.path);
        Some(span)
    }
}

/// Ends the span of a request that is about to be answered.
pub fn end(mut span: Span, status: StatusCode) {
    span.attribute("http.response.status_code", u64::from(status.as_u16()));
    if status.is_server_error() {
        span.fail(status.canonical_reason().unwrap_or("the request failed"));
    }
}

fn caller(headers: &HeaderMap) -> Caller {
    let text = |value: &axum::http::HeaderValue| value.to_str().ok().map(str::to_owned);
    // Of several, none can be told to be right.
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = parents.next().and_then(text).filter(|_| parents.next().is_none());
    let states: Vec<String> = headers.get_all(TRACESTATE).iter().filter_map(text).collect();
    Caller::read(parent.as_deref(), Some(&states.join(",")))
}

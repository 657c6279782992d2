//! Routes that a connection may answer by itself: those whose handlers work inline. They are from the list of
//! routes, like the router's, and go the same way from [`Guarded`] on.
//!
//! Must not know: what is written, and when.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use crate::http::api::Api;
use crate::http::openapi::operation::Method;
use crate::http::request::at_once::AtOnce;
use crate::http::request::body::RequestBody;
use crate::http::request::head::{Head, Segments};
use crate::http::request::plain::PlainRequest;
use crate::http::routing::endpoint::{Guarded, Handler, Measured, MeasuredAnswer};

/// The answer to a request, being made.
pub type Answering = Pin<Box<dyn Future<Output = MeasuredAnswer> + Send>>;

/// The routes that a connection may answer by itself.
#[derive(Default)]
pub struct DirectRoutes(Vec<DirectRoute>);

/// One of them.
pub struct DirectRoute {
    method: axum::http::Method,
    segments: Vec<Segment>,
    endpoint: Arc<dyn DirectEndpoint>,
}

/// A segment of a route's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment {
    Text(&'static str),
    /// Any text but none, by this name.
    Named(&'static str),
}

/// What answers the requests of such a route.
pub trait DirectEndpoint: Send + Sync {
    /// As [`Guarded::answer_at_once`].
    fn answer_at_once(&self, asked: &AtOnce<'_>, body: &mut Vec<u8>) -> Option<Instant>;

    fn answer(self: Arc<Self>, head: Head, body: Vec<u8>, api: Arc<Api>) -> Answering;
}

impl<H: Handler> DirectEndpoint for Guarded<Measured<H>> {
    fn answer_at_once(&self, asked: &AtOnce<'_>, body: &mut Vec<u8>) -> Option<Instant> {
        Self::answer_at_once(self, asked, body)
    }

    fn answer(self: Arc<Self>, head: Head, body: Vec<u8>, api: Arc<Api>) -> Answering {
        Box::pin(async move { Guarded::answer(&*self, head, RequestBody::Whole(body), api).await })
    }
}

impl DirectRoutes {
    pub fn add(&mut self, method: Method, path: &'static str, endpoint: Arc<dyn DirectEndpoint>) {
        let method = match method {
            Method::Get => axum::http::Method::GET,
            Method::Put => axum::http::Method::PUT,
            Method::Post => axum::http::Method::POST,
            Method::Delete => axum::http::Method::DELETE,
        };
        let segments = path.split('/').skip(1).map(Segment::of).collect();
        self.0.push(DirectRoute { method, segments, endpoint });
    }

    /// The route of a request, with the segments of its path that the route names.
    ///
    /// # Arguments
    /// `last`: the place of the route that the client asked last, which it mostly asks again.
    pub fn find(&self, request: &PlainRequest<'_>, last: &mut usize) -> Option<(&DirectRoute, Segments)> {
        let of = |route: &DirectRoute| {
            if route.method == request.method { route.segments_of(request.path()) } else { None }
        };
        if let Some((route, segments)) = self.0.get(*last).and_then(|route| Some((route, of(route)?))) {
            return Some((route, segments));
        }
        let mut found = self.0.iter().enumerate().filter_map(|(at, route)| Some((at, route, of(route)?)));
        let (at, route, segments) = found.next()?;
        *last = at;
        Some((route, segments))
    }
}

impl DirectRoute {
    /// The segments of a path that the route names, if it is one of the route's.
    fn segments_of(&self, path: &str) -> Option<Segments> {
        let (mut segments, mut rest) = (Segments::new(), path);
        for segment in &self.segments {
            rest = rest.strip_prefix('/')?;
            match segment {
                Segment::Text(text) => rest = rest.strip_prefix(text)?,
                Segment::Named(name) => {
                    let length = rest.bytes().position(|byte| byte == b'/').unwrap_or(rest.len());
                    if length == 0 {
                        return None;
                    }
                    let begin = path.len() - rest.len();
                    segments.push((name, begin..begin + length));
                    rest = rest.get(length..)?;
                }
            }
        }
        // A text that only begins like the route's leaves something over, here or before a slash.
        rest.is_empty().then_some(segments)
    }

    /// As [`Guarded::answer_at_once`].
    pub fn answer_at_once(&self, asked: &AtOnce<'_>, body: &mut Vec<u8>) -> Option<Instant> {
        self.endpoint.answer_at_once(asked, body)
    }

    /// Begins to answer a request of the route.
    pub fn answer(&self, head: Head, body: Vec<u8>, api: &Arc<Api>) -> Answering {
        Arc::clone(&self.endpoint).answer(head, body, Arc::clone(api))
    }
}

impl Segment {
    fn of(text: &'static str) -> Self {
        let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        name.map_or(Self::Text(text), Self::Named)
    }
}

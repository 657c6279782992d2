//! Routes that a connection may answer by itself: those whose handlers work inline. They are from the list of
//! routes, like the router's, and go the same way from [`Guarded`] on.
//!
//! Must not know: what is written, and when.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::http::api::Api;
use crate::http::openapi::operation::Method;
use crate::http::request::body::RequestBody;
use crate::http::request::head::{Head, Segments};
use crate::http::request::plain::PlainRequest;
use crate::http::routing::endpoint::{Guarded, Handler, Measured, MeasuredAnswer};

/// The answer to a request, being made.
pub type Answering = Pin<Box<dyn Future<Output = MeasuredAnswer> + Send>>;

/// The most segments that a path of these routes has.
const SEGMENTS_MAX: usize = 8;

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
    fn answer(self: Arc<Self>, head: Head, body: Vec<u8>, api: Arc<Api>) -> Answering;
}

impl<H: Handler> DirectEndpoint for Guarded<Measured<H>> {
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
        let mut parts: [&[u8]; SEGMENTS_MAX] = [&[]; SEGMENTS_MAX];
        let mut count = 0;
        for part in request.path().as_bytes().split(|byte| *byte == b'/').skip(1) {
            *parts.get_mut(count)? = part;
            count += 1;
        }
        let parts = parts.get(..count)?;
        let is_it = |route: &DirectRoute| route.takes(parts) && route.method == request.method;
        if !self.0.get(*last).is_some_and(is_it) {
            *last = self.0.iter().position(is_it)?;
        }
        let route = self.0.get(*last)?;
        let (mut segments, mut begin) = (Segments::new(), 1);
        for (segment, part) in route.segments.iter().zip(parts) {
            if let Segment::Named(name) = segment {
                segments.push((name, begin..begin + part.len()));
            }
            begin += part.len() + 1;
        }
        Some((route, segments))
    }
}

impl DirectRoute {
    fn takes(&self, parts: &[&[u8]]) -> bool {
        self.segments.len() == parts.len()
            && self.segments.iter().zip(parts).all(|(segment, part)| match segment {
                Segment::Text(text) => text.as_bytes() == *part,
                Segment::Named(_) => !part.is_empty(),
            })
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

//! Finds the route of a request: by its path, its method, and the verb behind a board's name.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request};

use crate::http::api::Api;
use crate::http::guard::refusal_log::ClientAddress;
use crate::http::request::head::{Head, Segments};
use crate::http::routing::endpoint::{Responding, Routed};
use crate::http::routing::unrouted::Unrouted;
use crate::http::routing::verbs;

/// All routes.
pub struct Router {
    api: Arc<Api>,
    paths: matchit::Router<PathRoutes>,
    unrouted: Unrouted,
}

/// The routes of one path.
pub struct PathRoutes {
    path: &'static str,
    /// What the path names of a request's path, in their order.
    names: Vec<&'static str>,
    /// `GET` also answers `HEAD`, whose body is left out when it is written.
    methods: Vec<(Method, Box<dyn Routed>)>,
    /// Of a board's path, the routes of `POST`, each with its verb, which has a colon.
    verbs: Vec<(&'static str, Box<dyn Routed>)>,
}

impl PathRoutes {
    pub fn new(path: &'static str) -> Self {
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        Self { path, names, methods: Vec::new(), verbs: Vec::new() }
    }

    pub fn path(&self) -> &'static str {
        self.path
    }

    pub fn add(&mut self, method: Method, route: Box<dyn Routed>) {
        self.methods.push((method, route));
    }

    pub fn add_verb(&mut self, verb: &'static str, route: Box<dyn Routed>) {
        self.verbs.push((verb, route));
    }

    /// The verb behind the board's name in a path with these segments, with its colon.
    fn verb_in(&self, segments: &Segments) -> Option<&(&'static str, Box<dyn Routed>)> {
        if self.verbs.is_empty() {
            return None;
        }
        let (_, board) = segments.as_ref()?.iter().find(|(name, _)| *name == "board")?;
        self.verbs.iter().find(|(verb, _)| verbs::ends_with_verb(board, verb))
    }

    /// The value of `Allow`.
    fn allowed(&self, has_verb: bool) -> HeaderValue {
        let methods = self.methods.iter().map(|(method, _)| method.as_str());
        let mut names: Vec<&str> =
            methods.flat_map(|name| [Some(name), (name == "GET").then_some("HEAD")]).flatten().collect();
        names.extend(has_verb.then_some("POST"));
        HeaderValue::from_str(&names.join(",")).expect("methods are letters")
    }
}

impl Router {
    /// # Panics
    /// When two paths are the same to a request.
    pub fn new(api: Arc<Api>, paths: Vec<PathRoutes>) -> Self {
        let mut router = matchit::Router::new();
        for routes in paths {
            router.insert(routes.path, routes).expect("no two routes have the same path");
        }
        Self { api, paths: router, unrouted: Unrouted::new() }
    }

    /// Answers a request, whether there is a route for it or not.
    pub fn answer(&self, request: Request<Body>, client: Option<ClientAddress>) -> Responding<'_> {
        let (parts, body) = request.into_parts();
        let Ok(found) = self.paths.at(parts.uri.path()) else {
            let head = Head::new(parts, client, Some(Vec::new()), None);
            return Box::pin(self.unrouted.refuse_path(head, body));
        };
        let (routes, segments) = (found.value, segments(&found.value.names, &found.params));
        let wanted = if parts.method == Method::HEAD { &Method::GET } else { &parts.method };
        let verb = routes.verb_in(&segments);
        let route = match verb.filter(|_| *wanted == Method::POST) {
            Some((verb, route)) => Some((Some(*verb), route)),
            None => {
                routes.methods.iter().find(|(method, _)| method == wanted).map(|(_, route)| (None, route))
            }
        };
        let Some((verb, route)) = route else {
            let allowed = routes.allowed(verb.is_some());
            let head = Head::new(parts, client, segments, None);
            return Box::pin(self.unrouted.refuse_method(&self.api, head, body, allowed));
        };
        route.answer(&self.api, Head::new(parts, client, segments, verb), body)
    }
}

/// # Arguments
/// `names`: of the route. `found`: what they stand for, in the same order.
fn segments(names: &[&'static str], found: &matchit::Params<'_, '_>) -> Segments {
    let mut segments = Vec::with_capacity(names.len());
    for (name, (_, value)) in names.iter().zip(found.iter()) {
        let decoded = match memchr::memchr(b'%', value.as_bytes()) {
            // Most have none, and are UTF-8.
            None => value.to_owned(),
            Some(_) => percent_encoding::percent_decode_str(value).decode_utf8().ok()?.into_owned(),
        };
        segments.push((*name, decoded));
    }
    Some(segments)
}

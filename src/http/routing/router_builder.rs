//! Collects routes, and makes the router of them.
//!
//! A route is added with all that there is to say about it: its path, its name, what it needs of a token,
//! where its handler works, and its description. So the router, the check of tokens and the OpenAPI document
//! have the same routes.

use std::sync::Arc;

use axum::http;

use crate::http::api::Api;
use crate::http::guard::authorize::Needs;
use crate::http::openapi::doc::Doc;
use crate::http::openapi::operation::{Method, Operation};
use crate::http::routing::endpoint::{Endpoint, Guarded, Handler, Measured, Streamed, Unlimited, Work};
use crate::http::routing::request_span::TracedRoute;
use crate::http::routing::router::{PathRoutes, Router};
use crate::http::routing::taken::RouteTakes;
use crate::http::routing::verbs::{self, BOARD};

/// Where a route is. Its name is its label in metrics, and its `operationId` in the document.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    method: Method,
    path: &'static str,
    name: &'static str,
}

pub fn get(path: &'static str, name: &'static str) -> Route {
    Route { method: Method::Get, path, name }
}

pub fn put(path: &'static str, name: &'static str) -> Route {
    Route { method: Method::Put, path, name }
}

pub fn post(path: &'static str, name: &'static str) -> Route {
    Route { method: Method::Post, path, name }
}

pub fn delete(path: &'static str, name: &'static str) -> Route {
    Route { method: Method::Delete, path, name }
}

/// The routes that were added.
#[derive(Default)]
pub struct RouterBuilder {
    paths: Vec<PathRoutes>,
    /// All routes, in the order in which the document has them.
    pub operations: Vec<Operation>,
}

impl RouterBuilder {
    /// Adds a route whose requests are shed when there are too many, and measured.
    ///
    /// # Arguments
    /// `needs`: what a request needs of its token.
    /// `work`: the handler, and where it works.
    pub fn add(&mut self, route: Route, needs: Needs, work: Work<impl Handler>, doc: Doc) -> &mut Self {
        let takes = RouteTakes::of(route.method, needs, &doc);
        self.put(route, needs, Measured::new(work, needs, takes, route.name), doc)
    }

    /// Adds a route whose answers go on for long.
    pub fn add_streamed<H>(&mut self, route: Route, needs: Needs, handler: H, doc: Doc) -> &mut Self
    where
        Streamed<H>: Endpoint,
    {
        let takes = RouteTakes::of(route.method, needs, &doc);
        self.put(route, needs, Streamed::new(handler, takes, route.name), doc)
    }

    /// Adds a route that an overloaded node answers all the same.
    pub fn add_unlimited<H>(&mut self, route: Route, needs: Needs, handler: H, doc: Doc) -> &mut Self
    where
        Unlimited<H>: Endpoint,
    {
        self.put(route, needs, Unlimited(handler), doc)
    }

    fn put(&mut self, route: Route, needs: Needs, endpoint: impl Endpoint, doc: Doc) -> &mut Self {
        let Route { method, path, name } = route;
        let routed = Box::new(Guarded::new(endpoint, needs, TracedRoute::new(method, path)));
        match verbs::verb_of(path) {
            Some(verb) => self.at(BOARD).add_verb(verb, routed),
            None => self.at(path).add(http_method(method), routed),
        }
        self.operations.push(Operation { method, path, name, needs, doc });
        self
    }

    fn at(&mut self, path: &'static str) -> &mut PathRoutes {
        if !self.paths.iter().any(|routes| routes.path() == path) {
            self.paths.push(PathRoutes::new(path));
        }
        self.paths.iter_mut().find(|routes| routes.path() == path).expect("it was just put there")
    }

    /// The router of all routes.
    pub fn build(self, api: Arc<Api>) -> Router {
        Router::new(api, self.paths)
    }
}

fn http_method(method: Method) -> http::Method {
    match method {
        Method::Get => http::Method::GET,
        Method::Put => http::Method::PUT,
        Method::Post => http::Method::POST,
        Method::Delete => http::Method::DELETE,
    }
}

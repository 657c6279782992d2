//! `POST /v1/boards/{board}`, which is for verbs behind the board's name only.

use std::sync::Arc;

use axum::extract::{FromRequestParts as _, RawPathParams, Request};

use crate::http::api::Api;
use crate::http::routing::endpoint::{Responding, Routed};
use crate::http::routing::unrouted::Unrouted;
use crate::http::routing::verbs;

/// Hands a request to the route of its verb. Without a known verb it is refused as a method that boards do
/// not take.
#[derive(Clone)]
pub struct VerbDispatch {
    /// Each with its verb, which has a colon.
    routes: Arc<[(&'static str, Routed)]>,
    without_verb: Unrouted,
}

impl VerbDispatch {
    pub fn new(routes: Vec<(&'static str, Routed)>, without_verb: Unrouted) -> Self {
        Self { routes: routes.into(), without_verb }
    }
}

impl axum::handler::Handler<(), Arc<Api>> for VerbDispatch {
    type Future = Responding;

    fn call(self, request: Request, api: Arc<Api>) -> Responding {
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let path = RawPathParams::from_request_parts(&mut parts, &()).await.ok();
            let board = path.iter().flatten().find(|(name, _)| *name == "board").map(|(_, segment)| segment);
            let route = board
                .and_then(|board| self.routes.iter().find(|(verb, _)| verbs::ends_with_verb(board, verb)));
            let request = Request::from_parts(parts, body);
            match route {
                Some((_, routed)) => routed.clone().call(request, api).await,
                None => self.without_verb.call(request, api).await,
            }
        })
    }
}

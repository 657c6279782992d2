//! `POST /v1/boards/{board}`, which is for verbs behind the board's name only.

use std::sync::Arc;

use axum::extract::{FromRequestParts as _, RawPathParams, Request};

use crate::http::api::Api;
use crate::http::routing::endpoint::Responding;
use crate::http::routing::unrouted::Unrouted;
use crate::http::routing::verbs;

/// Answers the requests for a verb.
pub struct VerbEndpoint {
    /// With its colon.
    pub verb: &'static str,
    pub answer: Arc<dyn Fn(Request, Arc<Api>) -> Responding + Send + Sync>,
}

/// Hands a request to the endpoint of its verb. Without a known verb it is refused as a method that boards do
/// not take.
#[derive(Clone)]
pub struct VerbDispatch {
    endpoints: Arc<[VerbEndpoint]>,
    without_verb: Unrouted,
}

impl VerbDispatch {
    pub fn new(endpoints: Vec<VerbEndpoint>, without_verb: Unrouted) -> Self {
        Self { endpoints: endpoints.into(), without_verb }
    }
}

impl axum::handler::Handler<(), Arc<Api>> for VerbDispatch {
    type Future = Responding;

    fn call(self, request: Request, api: Arc<Api>) -> Responding {
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let path = RawPathParams::from_request_parts(&mut parts, &()).await.ok();
            let board = path.iter().flatten().find(|(name, _)| *name == "board").map(|(_, segment)| segment);
            let endpoint = board.and_then(|board| {
                self.endpoints.iter().find(|endpoint| verbs::ends_with_verb(board, endpoint.verb))
            });
            let request = Request::from_parts(parts, body);
            match endpoint {
                Some(endpoint) => (endpoint.answer)(request, api).await,
                None => self.without_verb.call(request, api).await,
            }
        })
    }
}

//! The head of a request that was routed.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};

use crate::access::Grant;
use crate::http::api::Api;
use crate::http::guard::authorize::{Needs, authorize, find_grant};
use crate::http::guard::refusal_log::{ClientAddress, RefusedRequest};
use crate::http::render::problem::Problem;

/// By which other services recognise repeated requests.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// What a route names of a path, decoded; `None` if that is not UTF-8.
pub type Segments = Option<Vec<(&'static str, String)>>;

/// The head of a request that was routed.
pub struct Head {
    /// In a box, because a head goes from future to future.
    parts: Box<Parts>,
    client: Option<ClientAddress>,
    segments: Segments,
    /// The verb behind the board's name in the path, with its colon.
    verb: Option<&'static str>,
}

impl Head {
    /// # Arguments
    /// `verb`: the verb of the route, with its colon.
    pub fn new(
        parts: Parts,
        client: Option<ClientAddress>,
        segments: Segments,
        verb: Option<&'static str>,
    ) -> Self {
        Self { parts: Box::new(parts), client, segments, verb }
    }

    pub fn is_utf8(&self) -> bool {
        self.segments.is_some()
    }

    pub fn method(&self) -> &Method {
        &self.parts.method
    }

    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    pub fn query(&self) -> Option<&str> {
        self.parts.uri.query()
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// By what the client wants the request to be recognised if it comes again.
    pub fn idempotency_key(&self) -> Option<&HeaderValue> {
        self.parts.headers.get(IDEMPOTENCY_KEY)
    }

    pub fn client(&self) -> Option<ClientAddress> {
        self.client
    }

    /// A segment of the path, by its name in the route.
    pub fn segment(&self, name: &str) -> Option<&str> {
        self.segments.iter().flatten().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The board that the path names, without the verb behind it.
    pub fn board(&self) -> Option<&str> {
        let segment = self.segment("board")?;
        Some(self.verb.and_then(|verb| segment.strip_suffix(verb)).unwrap_or(segment))
    }

    /// What the request's token allows; `None` where no token is needed. A refusal is noted in the refusal
    /// log.
    ///
    /// # Errors
    /// When the token does not allow what the route needs.
    pub fn authorize(&self, api: &Api, needs: Needs) -> Result<Option<Arc<Grant>>, Problem> {
        let (Some(tokens), Needs::Token(scope, check)) = (&api.access, needs) else { return Ok(None) };
        let grant = find_grant(tokens, self.headers());
        let grant = grant.inspect_err(|problem| self.note_refusal(api, problem, None))?;
        authorize(&grant, scope, check, self.board())
            .inspect_err(|problem| self.note_refusal(api, problem, Some(&grant)))?;
        Ok(Some(grant))
    }

    /// Notes in the refusal log that a token rules the request out.
    pub fn note_refusal(&self, api: &Api, problem: &Problem, grant: Option<&Grant>) {
        let refused = RefusedRequest {
            client: self.client(),
            method: self.method().as_str(),
            path: self.path(),
            token: grant.map(|grant| grant.name.as_str()),
        };
        api.refusal_log.note(problem, refused);
    }
}

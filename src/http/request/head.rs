//! The head of a request that was routed.

use std::sync::Arc;

use axum::extract::{FromRequestParts as _, RawPathParams};
use axum::http::request::Parts;

use crate::access::Grant;
use crate::http::api::Api;
use crate::http::guard::authorize::{Needs, authorize, find_grant};
use crate::http::guard::refusal_log::RefusedRequest;
use crate::http::render::problem::Problem;

/// The head of a request that was routed.
pub struct Head {
    pub parts: Parts,
    /// The segments of the path that the route names; `None` if they are not UTF-8 once decoded.
    path: Option<RawPathParams>,
    /// The verb behind the board's name in the path, with its colon.
    verb: Option<&'static str>,
}

impl Head {
    /// # Arguments
    /// `verb`: the verb of the route, with its colon.
    pub async fn new(mut parts: Parts, verb: Option<&'static str>) -> Self {
        let path = RawPathParams::from_request_parts(&mut parts, &()).await.ok();
        Self { parts, path, verb }
    }

    pub fn is_utf8(&self) -> bool {
        self.path.is_some()
    }

    /// A segment of the path, by its name in the route.
    pub fn segment(&self, name: &str) -> Option<&str> {
        self.path.iter().flatten().find(|(known, _)| *known == name).map(|(_, value)| value)
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
        let grant = find_grant(tokens, &self.parts.headers);
        let grant = grant.inspect_err(|problem| self.note_refusal(api, problem, None))?;
        authorize(&grant, scope, check, self.board())
            .inspect_err(|problem| self.note_refusal(api, problem, Some(&grant)))?;
        Ok(Some(grant))
    }

    /// Notes in the refusal log that a token rules the request out.
    pub fn note_refusal(&self, api: &Api, problem: &Problem, grant: Option<&Grant>) {
        let refused = RefusedRequest {
            client: self.parts.extensions.get().copied(),
            method: self.parts.method.as_str(),
            path: self.parts.uri.path(),
            token: grant.map(|grant| grant.name.as_str()),
        };
        api.refusal_log.note(problem, refused);
    }
}

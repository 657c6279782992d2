//! The head of a request that was routed.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequestParts as _, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use smallvec::SmallVec;

use crate::access::Grant;
use crate::http::api::Api;
use crate::http::guard::authorize::{Needs, authorize, find_grant};
use crate::http::guard::refusal_log::{ClientAddress, RefusedRequest};
use crate::http::render::problem::Problem;
use crate::http::request::plain::{IDEMPOTENCY_KEY, PlainHead};

/// The head of a request that was routed.
pub struct Head {
    source: Source,
    /// The verb behind the board's name in the path, with its colon.
    verb: Option<&'static str>,
}

/// The segments of a path that its route names, each with its place in the path.
pub type Segments = SmallVec<[(&'static str, Range<usize>); 2]>;

/// Where a head is from.
enum Source {
    /// The router. The segments of the path that the route names are `None` if they are not UTF-8 once
    /// decoded.
    Router(Box<Parts>, Option<RawPathParams>),
    /// The connection.
    Connection(Box<OfPlain>),
}

/// The head of a request of the plain form. Nothing in its path has to be decoded.
struct OfPlain {
    plain: PlainHead,
    client: ClientAddress,
    segments: Segments,
    headers: OnceLock<HeaderMap>,
}

impl Head {
    /// # Arguments
    /// `verb`: the verb of the route, with its colon.
    pub async fn new(mut parts: Parts, verb: Option<&'static str>) -> Self {
        let path = RawPathParams::from_request_parts(&mut parts, &()).await.ok();
        Self { source: Source::Router(Box::new(parts), path), verb }
    }

    /// The head of a request of the plain form.
    pub fn of_plain(plain: PlainHead, client: ClientAddress, segments: Segments) -> Self {
        let of_plain = OfPlain { plain, client, segments, headers: OnceLock::new() };
        Self { source: Source::Connection(Box::new(of_plain)), verb: None }
    }

    pub fn is_utf8(&self) -> bool {
        !matches!(self.source, Source::Router(_, None))
    }

    pub fn method(&self) -> &Method {
        match &self.source {
            Source::Router(parts, _) => &parts.method,
            Source::Connection(head) => &head.plain.method,
        }
    }

    pub fn path(&self) -> &str {
        match &self.source {
            Source::Router(parts, _) => parts.uri.path(),
            Source::Connection(head) => head.plain.path(),
        }
    }

    pub fn query(&self) -> Option<&str> {
        match &self.source {
            Source::Router(parts, _) => parts.uri.query(),
            Source::Connection(head) => head.plain.query(),
        }
    }

    pub fn headers(&self) -> &HeaderMap {
        match &self.source {
            Source::Router(parts, _) => &parts.headers,
            Source::Connection(head) => head.headers.get_or_init(|| head.plain.headers()),
        }
    }

    /// Whether the client asks for the request to be recognised if it comes again.
    pub fn has_idempotency_key(&self) -> bool {
        match &self.source {
            Source::Router(parts, _) => parts.headers.contains_key(IDEMPOTENCY_KEY),
            // Requests of the plain form do not have it.
            Source::Connection(_) => false,
        }
    }

    pub fn client(&self) -> Option<ClientAddress> {
        match &self.source {
            Source::Router(parts, _) => parts.extensions.get().copied(),
            Source::Connection(head) => Some(head.client),
        }
    }

    /// A segment of the path, by its name in the route.
    pub fn segment(&self, name: &str) -> Option<&str> {
        match &self.source {
            Source::Router(_, path) => {
                path.iter().flatten().find(|(known, _)| *known == name).map(|(_, value)| value)
            }
            Source::Connection(head) => {
                let (_, place) = head.segments.iter().find(|(known, _)| *known == name)?;
                head.plain.path().get(place.clone())
            }
        }
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

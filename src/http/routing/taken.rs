//! What a route takes of a request beside its path and its parameters. What it does not take is refused: a
//! client that sends it counts on it.
//!
//! Knows: bodies, and the header by which other services recognise repeated requests. Must not know: what a
//! body says.

use crate::http::guard::authorize::Needs;
use crate::http::openapi::doc::Doc;
use crate::http::openapi::operation::Method;
use crate::http::render::problem::Problem;
use crate::http::request::call::Call;

/// What a route takes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteTakes {
    body: bool,
    /// Whether its requests change something, so that it matters whether one is a repeated one.
    changes: bool,
    /// Whether jobs of its requests get ids.
    has_key: bool,
}

impl RouteTakes {
    pub fn of(method: Method, needs: Needs, doc: &Doc) -> Self {
        let changes = method != Method::Get && !needs.only_reads();
        Self { body: doc.takes_body(), changes, has_key: doc.has_key() }
    }

    /// # Errors
    /// When the request has something that the route does not take.
    pub fn check(self, call: &Call) -> Result<(), Problem> {
        // Some clients send an empty object where they have nothing to say.
        if !self.body && !matches!(call.body.trim_ascii(), b"" | b"{}") {
            return Err(Problem::bad_parameter(
                "this request takes no body, and nothing of the one that was sent would count; leave it out. \
                 What such a request takes are parameters in its address, as ?version=17 for a removal; to \
                 remove some entries of a board and not all, send the body to :trim",
            ));
        }
        if self.changes && !self.has_key && call.idempotency_key()?.is_some() {
            return Err(Problem::unsupported(
                "Idempotency-Key is for requests that write jobs, and this one is not recognised if it comes \
                 again; leave the header out",
            ));
        }
        Ok(())
    }
}

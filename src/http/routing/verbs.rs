//! Verbs behind a board's name: `POST /v1/boards/arena:clear`.
//!
//! Names of boards may hold colons too. So a verb is what follows the last one, if it is a known one and the method is POST,
//! which boards do not take otherwise: every other method has the whole segment for a name.

use axum::extract::{FromRequestParts as _, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};

/// The path of all of them, as the router has it.
pub const BOARD: &str = "/v1/boards/{board}";
pub const CLEAR: &str = "/v1/boards/{board}:clear";
pub const TRIM: &str = "/v1/boards/{board}:trim";

const VERBS: [(&str, &str); 2] = [(":clear", CLEAR), (":trim", TRIM)];

/// What boards take without a verb. The router would name POST too, which it has for the verbs.
const WITHOUT_VERB: HeaderValue = HeaderValue::from_static("GET,HEAD,PUT,DELETE");

/// What `Allow` says where a method is refused, if it is not what the router says.
pub fn allowed_at(path: &str, route: Option<&MatchedPath>) -> Option<HeaderValue> {
    let is_board = route.is_some_and(|route| route.as_str() == BOARD);
    (is_board && Verb::find(path).is_none()).then_some(WITHOUT_VERB)
}

/// A path that ends with a verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verb {
    /// With its colon.
    pub suffix: &'static str,
    /// As it is documented, and as it stands in the table of what routes need.
    pub route: &'static str,
    /// What the verb is about.
    pub board: String,
}

impl Verb {
    fn find(segment: &str) -> Option<Self> {
        VERBS.into_iter().find_map(|(suffix, route)| {
            let board = segment.strip_suffix(suffix)?.to_owned();
            Some(Self { suffix, route, board })
        })
    }

    /// The verb of a request that was routed, if it has one.
    pub async fn of(parts: &mut Parts) -> Option<Self> {
        if parts.method != Method::POST || parts.extensions.get::<MatchedPath>()?.as_str() != BOARD {
            return None;
        }
        let path = RawPathParams::from_request_parts(parts, &()).await.ok()?;
        let (_, segment) = path.iter().find(|(name, _)| *name == "board")?;
        Self::find(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_colon_counts_and_only_known_verbs_do() {
        for (segment, expect) in [
            ("arena:clear", Some(("arena", CLEAR))),
            ("arena:trim", Some(("arena", TRIM))),
            ("eu:arena:clear", Some(("eu:arena", CLEAR))),
            ("arena:clear:trim", Some(("arena:clear", TRIM))),
            (":clear", Some(("", CLEAR))),
            ("arena", None),
            ("arena:", None),
            ("arena:explode", None),
            ("arena:CLEAR", None),
            ("clear", None),
        ] {
            let found = Verb::find(segment);
            let found = found.as_ref().map(|verb| (verb.board.as_str(), verb.route));
            assert_eq!(found, expect, "{segment}");
        }
    }
}

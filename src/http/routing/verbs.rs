//! Verbs behind a board's name: `POST /v1/boards/arena:clear`.
//!
//! Names of boards may hold colons too. So a verb is what follows the last colon, if it is a known verb and
//! the method is POST, which boards do not take otherwise. Every other method takes the whole segment for a
//! name.

/// The path of a board, to which the router sends verbs as well.
pub const BOARD: &str = "/v1/boards/{board}";

/// The verb at the end of a route's path, with its colon.
pub fn verb_of(path: &'static str) -> Option<&'static str> {
    path.strip_prefix(BOARD).filter(|verb| verb.starts_with(':'))
}

/// Whether a segment of a request's path is a board's name with this verb behind it.
///
/// # Arguments
/// `verb`: with its colon, and without another one.
pub fn ends_with_verb(segment: &str, verb: &str) -> bool {
    segment.ends_with(verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_colon_right_behind_the_board_begins_a_verb() {
        for (path, expect) in [
            ("/v1/boards/{board}:clear", Some(":clear")),
            ("/v1/boards/{board}", None),
            ("/v1/boards/{board}/members:lookup", None),
            ("/v1/boards", None),
        ] {
            assert_eq!(verb_of(path), expect, "{path}");
        }
    }

    #[test]
    fn the_last_colon_of_a_segment_begins_its_verb() {
        let verbs = [":clear", ":trim"];
        for (segment, expect) in [
            ("arena:clear", Some(":clear")),
            ("arena:trim", Some(":trim")),
            ("eu:arena:clear", Some(":clear")),
            ("arena:clear:trim", Some(":trim")),
            (":clear", Some(":clear")),
            ("arena", None),
            ("arena:", None),
            ("arena:explode", None),
            ("arena:CLEAR", None),
            ("clear", None),
        ] {
            let found = verbs.into_iter().find(|verb| ends_with_verb(segment, verb));
            assert_eq!(found, expect, "{segment}");
        }
    }
}

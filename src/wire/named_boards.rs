//! Which boards a rejected job names, whatever else is wrong with it.
//!
//! Knows: the two fields of a job that name boards. Used for tokens that may see the rejects of some boards
//! only: a job that may be about other boards, too, is not shown to them.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::job::MAX_BOARDS_PER_JOB;
use crate::wire::lenient::{JsonFields, Name, given, text_of};

/// Whether a rejected job names boards, and only allowed ones.
///
/// `false` for bytes that are no JSON object or were cut, for a job that names no board, such as a removal
/// from every board, and for board names in a form that no job has.
pub fn names_only(job: &[u8], is_allowed: impl Fn(&str) -> bool) -> bool {
    let mut reader = serde_json::Deserializer::from_slice(job);
    let visitor = BoardsVisitor { is_allowed: &is_allowed };
    let named = reader.deserialize_map(visitor).and_then(|named| reader.end().map(|()| named));
    named.is_ok_and(|named| named == Named::Allowed)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Nothing,
    Allowed,
    /// A board that is not allowed, or something that is no board's name.
    Others,
}

impl Named {
    fn and(self, allowed: bool) -> Self {
        if allowed && self != Self::Others { Self::Allowed } else { Self::Others }
    }
}

struct BoardsVisitor<'a, F> {
    is_allowed: &'a F,
}

impl<'de, F: Fn(&str) -> bool> Visitor<'de> for BoardsVisitor<'_, F> {
    type Value = Named;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a job")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
        let mut named = Named::Nothing;
        // A field may be given twice: each occurrence counts.
        while let Some(Name(field)) = map.next_key::<Name<'de>>()? {
            let is_board = match field.as_ref() {
                "board" => true,
                "scores" => false,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value = map.next_value::<&'de RawValue>()?;
            let Some(json) = given(Some(value)) else { continue };
            if is_board {
                named = text_of(json).map_or(Named::Others, |board| named.and((self.is_allowed)(&board)));
                continue;
            }
            match serde_json::from_str::<JsonFields<'_>>(json) {
                // Longer lists were cut.
                Ok(JsonFields(scores)) if scores.len() <= MAX_BOARDS_PER_JOB => {
                    for (board, _) in scores {
                        named = named.and((self.is_allowed)(&board));
                    }
                }
                _ => named = Named::Others,
            }
        }
        Ok(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_mine(board: &str) -> bool {
        board.starts_with("mine.")
    }

    #[test]
    fn a_job_that_names_only_allowed_boards_is_recognised() {
        for job in [
            r#"{"board":"mine.a","member":"m","score":1}"#,
            r#"{"board":"mine.a","member":"","score":1.5,"stray":{"x":[1]}}"#,
            r#" {"scores":{"mine.a":1,"mine.b":2},"board":null} "#,
        ] {
            assert!(names_only(job.as_bytes(), is_mine), "{job}");
        }
    }

    #[test]
    fn a_job_that_may_be_about_other_boards_is_not_recognised() {
        for job in [
            r#"{"board":"theirs","member":"m","score":1}"#,
            r#"{"board":"mine.a","board":"theirs"}"#,
            r#"{"board":"theirs","board":"mine.a"}"#,
            r#"{"board":"mine.a","scores":{"theirs":1}}"#,
            r#"{"scores":{"theirs":1,"mine.a":1}}"#,
            r#"{"scores":{"mine.a":1,"theirs":1}}"#,
            r#"{"bo\u0061rd":"theirs","board":"mine.a"}"#,
            r#"{"member":"m","op":"remove"}"#,
            r#"{"board":["mine.a"]}"#,
            r#"{"board":"mine.a","scores":["theirs"]}"#,
            r#"{"board":"mine.a","score":1"#,
            r#"{"board":"mine.a"} {"board":"theirs"}"#,
            r#"[{"board":"mine.a"}]"#,
            r#""mine.a""#,
            "mine.a",
            "",
        ] {
            assert!(!names_only(job.as_bytes(), is_mine), "{job}");
        }
        assert!(!names_only(b"\xff", is_mine));
        let many = |last: &str| {
            let mine = (0..65).map(|number| format!("\"mine.{number}\":1")).collect::<Vec<_>>().join(",");
            format!("{{\"scores\":{{{mine},\"{last}\":1}}}}")
        };
        assert!(!names_only(many("theirs").as_bytes(), is_mine), "more than a job may name are not all read");
    }
}

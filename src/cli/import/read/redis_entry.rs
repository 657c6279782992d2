//! A member of a sorted set of Redis as a job.
//!
//! Redis keeps no times: all rows carry the time at which the import began, so that equal scores are always
//! ordered by member id.

use std::sync::Arc;

use smallvec::smallvec;

use crate::cli::import::read::job_text::JobText;
use crate::cli::import::read::numbers::{AS_IT_IS, Numbers, Written};
use crate::cli::import::read::row::{RejectedLine, Row};
use crate::job::{Op, RejectCode};
use crate::types::{BoardName, Double, MemberId, Number, Score, Timestamp, quoted};

/// What members become.
pub struct RedisEntries {
    pub board: BoardName,
    /// The same, as rows share it.
    pub shared: Arc<str>,
    pub op: Op,
    pub numbers: Numbers,
    pub at: Timestamp,
}

impl RedisEntries {
    pub fn new(board: BoardName, op: Op, numbers: Numbers, at: Timestamp) -> Self {
        let shared = board.as_str().into();
        Self { board, shared, op, numbers, at }
    }

    /// # Errors
    /// When the member's id or its score cannot be sent.
    pub fn row(&self, line: u64, member: &[u8], score: &str) -> Result<Row, RejectedLine> {
        let named = |why: String| format!("member {}: {why}", quoted(&String::from_utf8_lossy(member)));
        let bad_member = |why: String| RejectedLine::new(line, RejectCode::BadMember, named(why));
        let text = std::str::from_utf8(member).map_err(|_| bad_member("it is not UTF-8".to_owned()))?;
        let id = MemberId::new(text).map_err(|why| bad_member(why.to_string()))?;
        let (key, no_integer) = key_of_double(score, &self.numbers)
            .map_err(|why| RejectedLine::new(line, RejectCode::BadScore, named(why)))?;
        let score = Score::of_numbers(&[key]).map_err(|why| bad_member(why.to_string()))?;
        let (board, op) = (self.board.as_str(), Some(self.op.name()));
        let (score, at) = (Some(&score), Some(self.at));
        let job = JobText { board, member: id.as_str(), score, op, version: None, at, meta: None };
        let boards = smallvec![Arc::clone(&self.shared)];
        let row = Row::new(line, job.json(), id.as_str(), Some(self.op.name()), false, boards);
        Ok(Row { no_integer: no_integer.map(|why| named(why).into_boxed_str()), ..row })
    }
}

/// A score of Redis, which is a double, as `numbers` says. If it is no signed 64-bit integer, also why it is
/// none of a board of integers.
///
/// A fraction is read as the shortest decimal of the double. That is what the writer gave to Redis, unless it
/// had more than fifteen digits.
fn key_of_double(text: &str, numbers: &Numbers) -> Result<(Number, Option<String>), String> {
    let score: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if !score.is_finite() {
        let why = format!("{score} is not a score of integers");
        let double = Double::new(score).filter(|_| numbers.is_plain());
        return double.map_or(Err(why.clone()), |double| {
            Ok((Number::Float(double), Some(format!("{why}; {AS_IT_IS}"))))
        });
    }
    // Whole numbers are written out exactly, however large; a double's shortest decimal is not its value
    // beyond 2^53.
    let decimal = if score.fract() == 0.0 { format!("{score:.0}") } else { score.to_string() };
    numbers.number(&decimal, Written::JsonNumber)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_become_the_integers_that_they_are_or_are_refused() {
        for (text, scale, expect) in [
            ("1200", 1, Some(1_200)),
            ("-0", 1, Some(0)),
            ("-7", 1, Some(-7)),
            ("3.25", 100, Some(325)),
            ("12.34", 100, Some(1_234)),
            ("12.340000000000000", 100, Some(1_234)),
            ("-0.07", 100, Some(-7)),
            ("1e3", 1, Some(1_000)),
            ("9007199254740993", 1, Some(9_007_199_254_740_992)),
            ("9.2233720368547748e+18", 1, Some(9_223_372_036_854_774_784)),
            ("-9.2233720368547758e+18", 1, Some(i64::MIN)),
            ("9.2233720368547758e+18", 1, None),
            ("1e300", 1, None),
            ("1e18", 100, None),
            ("3.25", 1, None),
            ("3.25", 10, None),
            ("1e-30", 1_000, None),
            ("1e-300", 1_000, None),
            ("inf", 1, None),
            ("-inf", 100, None),
            ("nan", 1, None),
            ("", 1, None),
        ] {
            let numbers = Numbers { scale, ..Numbers::default() };
            let found = key_of_double(text, &numbers).ok().and_then(|(number, _)| number.integer().ok());
            assert_eq!(found, expect, "{text} times {scale}");
        }
        for (text, digits) in [("3.25", "3.25"), ("1e300", "1e300"), ("5e-324", "5e-324"), ("-inf", "-inf")] {
            let (number, told) = key_of_double(text, &Numbers::default()).expect("a double");
            assert_eq!((number.to_string().as_str(), told.is_some()), (digits, true));
            let numbers = Numbers { scale: 10, ..Numbers::default() };
            assert!(key_of_double(text, &numbers).is_err(), "{text}: what is scaled is whole");
        }
        let told = |text| key_of_double(text, &Numbers::default()).expect("a double").1.expect("no integer");
        let found = told("3.25");
        assert!(found.contains("--scale 100 keeps its 2 places"), "{found}");
        let told = told("inf");
        assert!(told.contains("inf is not a score"), "{told}");
    }
}

//! Rows of a sorted set in a running Redis: ZSCAN from beginning to end, a job per member.
//!
//! ZSCAN returns each member that stays during the scan at least once. It may return some twice, and miss
//! members that come or go. So jobs set a score, which is the same once or twice. Redis keeps no times: all
//! rows carry the time at which the import began, so that equal scores are always ordered by member id.

use std::sync::Arc;
use std::time::Duration;

use redis::{Connection, ConnectionInfo, IntoConnectionInfo as _, RedisError};
use smallvec::smallvec;

use crate::cli::import::ImportError;
use crate::cli::import::read::job_text::JobText;
use crate::cli::import::read::row::{Parsed, RejectedLine, Row};
use crate::cli::import::read::scale::scaled;
use crate::job::{Op, RejectCode};
use crate::types::{BoardName, MemberId, Score, Timestamp, quoted};

/// Members of one ZSCAN call: Redis serves nobody else during a call.
const SCAN_COUNT: u32 = 1_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the sorted set is, and what its members become.
pub struct RedisSource<'a> {
    pub url: &'a str,
    pub password: Option<&'a str>,
    pub key: &'a str,
    pub board: &'a BoardName,
    pub op: Op,
    /// What scores are multiplied by.
    pub scale: u32,
}

pub struct RedisRows {
    connection: Connection,
    key: String,
    board: BoardName,
    /// The same, as rows share it.
    board_named: Arc<str>,
    op: Op,
    scale: u32,
    at: Timestamp,
    /// `None` at the end.
    cursor: Option<String>,
    page: std::vec::IntoIter<(Vec<u8>, String)>,
    read: u64,
    /// Members when the scan began.
    pub total: u64,
}

impl RedisRows {
    /// # Errors
    /// When Redis cannot be reached, or has no such sorted set.
    pub fn open(source: &RedisSource<'_>, at: Timestamp) -> Result<Self, ImportError> {
        let info = connection_info(source).map_err(ImportError::Redis)?;
        let client = redis::Client::open(info).map_err(ImportError::Redis)?;
        let mut connection =
            client.get_connection_with_timeout(CONNECT_TIMEOUT).map_err(ImportError::Redis)?;
        connection.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(ImportError::Redis)?;
        connection.set_write_timeout(Some(ANSWER_TIMEOUT)).map_err(ImportError::Redis)?;
        let total = redis::cmd("ZCARD").arg(source.key).query(&mut connection).map_err(ImportError::Redis)?;
        if total == 0 {
            return Err(ImportError::RedisEmpty(source.key.to_owned()));
        }
        Ok(Self {
            connection,
            key: source.key.to_owned(),
            board: source.board.clone(),
            board_named: source.board.as_str().into(),
            op: source.op,
            scale: source.scale,
            at,
            cursor: Some("0".to_owned()),
            page: Vec::new().into_iter(),
            read: 0,
            total,
        })
    }

    fn scan(&mut self, cursor: &str) -> Result<(), RedisError> {
        let mut command = redis::cmd("ZSCAN");
        command.arg(&self.key).arg(cursor).arg("COUNT").arg(SCAN_COUNT);
        let (next, page): (String, Vec<(Vec<u8>, String)>) = command.query(&mut self.connection)?;
        self.cursor = (next != "0").then_some(next);
        self.page = page.into_iter();
        Ok(())
    }

    fn parse(&self, member: &[u8], score: &str) -> Result<Row, RejectedLine> {
        let line = self.read;
        let named = |why: String| format!("member {}: {why}", quoted(&String::from_utf8_lossy(member)));
        let bad_member = |why: String| RejectedLine::new(line, RejectCode::BadMember, named(why));
        let text = std::str::from_utf8(member).map_err(|_| bad_member("it is not UTF-8".to_owned()))?;
        let id = MemberId::new(text).map_err(|why| bad_member(why.to_string()))?;
        let score = scaled_double(score, self.scale)
            .map_err(|why| RejectedLine::new(line, RejectCode::BadScore, named(why)))?;
        let score = Score::new(&[score]).map_err(|why| bad_member(why.to_string()))?;
        let (board, op) = (self.board.as_str(), Some(self.op.name()));
        let (score, at) = (Some(&score), Some(self.at));
        let job = JobText { board, member: id.as_str(), score, op, version: None, at, meta: None };
        let boards = smallvec![Arc::clone(&self.board_named)];
        Ok(Row::new(line, job.json(), id.as_str(), Some(self.op.name()), false, boards))
    }
}

impl Iterator for RedisRows {
    type Item = Result<Parsed, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((member, score)) = self.page.next() {
                self.read += 1;
                return Some(Ok(self.parse(&member, &score).map_or_else(Parsed::Rejected, Parsed::Row)));
            }
            let cursor = self.cursor.take()?;
            if let Err(error) = self.scan(&cursor) {
                return Some(Err(ImportError::Redis(error)));
            }
        }
    }
}

fn connection_info(source: &RedisSource<'_>) -> Result<ConnectionInfo, RedisError> {
    let info = source.url.into_connection_info()?;
    let Some(password) = source.password else { return Ok(info) };
    let settings = info.redis_settings().clone().set_password(password);
    Ok(info.set_redis_settings(settings))
}

/// A score of Redis, which is a double, times `scale`. The product must be exactly a signed 64-bit integer.
///
/// A fraction is read as the shortest decimal of the double. That is what the writer gave to Redis, unless it
/// had more than fifteen digits.
fn scaled_double(text: &str, scale: u32) -> Result<i64, String> {
    let score: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if !score.is_finite() {
        return Err(format!("{score} is not a score; scores are signed 64-bit integers"));
    }
    // Whole numbers are written out exactly, however large; a double's shortest decimal is not its value
    // beyond 2^53.
    let decimal = if score.fract() == 0.0 { format!("{score:.0}") } else { score.to_string() };
    scaled(&decimal, scale)
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
            assert_eq!(scaled_double(text, scale).ok(), expect, "{text} times {scale}");
        }
        assert!(
            scaled_double("3.25", 1).expect_err("a fraction").contains("a larger --scale keeps more places")
        );
        assert!(scaled_double("inf", 1).expect_err("infinity").contains("inf is not a score"));
    }
}

//! The fast path of decoding: jobs in their commonest form are read straight into their fields. Such a plain
//! job has one board, one score of one key, and at most a version and an operation. Measured: this takes half
//! of the time of `strict`.
//!
//! Knows: plain jobs. Must not know: why any other job is refused; a message with any other job goes to
//! `strict` whole.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use crate::job::{Job, MAX_JOBS_PER_MESSAGE, Op, Targets};
use crate::types::{MemberId, Score};
use crate::wire::board_names::BoardNames;
use crate::wire::decoded::Decoded;

struct PlainJob<'a> {
    board: &'a str,
    member: &'a str,
    score: i64,
    op: Option<&'a str>,
    version: Option<u64>,
}

/// Decodes one plain job, or an array of 1 to [`MAX_JOBS_PER_MESSAGE`] plain jobs. `None`: the strict decoder
/// must look at the message, which may be right or wrong.
pub fn decode(names: &mut BoardNames, bytes: &[u8]) -> Option<Vec<Decoded>> {
    if bytes.first() == Some(&b'{') {
        let job: PlainJob<'_> = serde_json::from_slice(bytes).ok()?;
        return Some(vec![Ok(job.into_job(names)?)]);
    }
    let jobs: Vec<PlainJob<'_>> = serde_json::from_slice(bytes).ok()?;
    if !(1..=MAX_JOBS_PER_MESSAGE).contains(&jobs.len()) {
        return None;
    }
    jobs.into_iter().map(|job| job.into_job(names).map(Ok)).collect()
}

impl PlainJob<'_> {
    fn into_job(self, names: &mut BoardNames) -> Option<Job> {
        let op = match self.op {
            None => None,
            Some(name) => Some(Op::ALL.into_iter().find(|op| op.name() == name && op.takes_score())?),
        };
        Some(Job {
            member: MemberId::new(self.member).ok()?,
            targets: Targets::Boards(vec![(
                names.get(self.board).ok()?,
                Some(Score::new(&[self.score]).ok()?),
            )]),
            op,
            version: self.version,
            at: None,
            meta: None,
        })
    }
}

/// Not derived, because a derived implementation would accept an array of values as a job, too.
impl<'de: 'a, 'a> Deserialize<'de> for PlainJob<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PlainJobVisitor)
    }
}

struct PlainJobVisitor;

impl<'de> Visitor<'de> for PlainJobVisitor {
    type Value = PlainJob<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain job")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PlainJob<'de>, A::Error> {
        let (mut board, mut member, mut score, mut op, mut version) = (None, None, None, None, None);
        while let Some(name) = map.next_key::<&str>()? {
            let twice = match name {
                "board" => board.replace(map.next_value()?).is_some(),
                "member" => member.replace(map.next_value()?).is_some(),
                "score" => score.replace(map.next_value()?).is_some(),
                "op" => op.replace(map.next_value()?).is_some(),
                "version" => version.replace(map.next_value()?).is_some(),
                _ => return Err(A::Error::custom("not a plain job's field")),
            };
            if twice {
                return Err(A::Error::custom("given twice"));
            }
        }
        let (Some(board), Some(member), Some(score)) = (board, member, score) else {
            return Err(A::Error::custom("not a plain job"));
        };
        Ok(PlainJob { board, member, score, op: op.flatten(), version: version.flatten() })
    }
}

#[cfg(test)]
#[path = "fast_path_tests.rs"]
mod tests;

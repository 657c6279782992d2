//! Jobs that an owner on another node applies while the client waits.
//!
//! Knows: that the owner answers as `POST /v1/jobs?wait=applied` does. Must not know: how the jobs get there
//! (`queue::RemoteWriter`).

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::api::Api;
use crate::http::writes::options::Detail;
use crate::http::writes::results::JobResult;
use crate::job::{Job, Reject, RejectCode};
use crate::queue::{NotPublished, RemoteWriter};
use crate::types::{AsOf, Sequence, ShardId};
use crate::wire;

/// What an owner said of a job that it has applied.
pub struct RemoteResult(Box<RawValue>);

impl RemoteResult {
    /// A JSON object.
    pub fn json(&self) -> &str {
        self.0.get()
    }
}

/// What came of some jobs of a shard on another node.
pub struct RemoteOutcome {
    /// Where on the shard they hold; `None` if that is not known.
    pub sequence: Option<Sequence>,
    /// One for each job, in order.
    pub results: Vec<JobResult>,
}

#[derive(Deserialize)]
struct AnswerJson {
    token: Option<String>,
    results: Vec<Box<RawValue>>,
}

/// What decides how a result is reported; the rest is passed on.
#[derive(Deserialize)]
struct ResultJson {
    rejected: Option<String>,
    failed: Option<String>,
    detail: Option<String>,
    #[serde(default)]
    waits_for_board: bool,
}

/// The shards that have to be written to by other nodes, if nothing carries the jobs there.
pub fn unreachable(api: &Api, shards: impl IntoIterator<Item = ShardId>) -> Vec<ShardId> {
    if api.remote_writer.is_some() {
        return Vec::new();
    }
    let mut unreachable: Vec<ShardId> =
        shards.into_iter().filter(|shard| api.node.owned(*shard).is_none()).collect();
    unreachable.sort_unstable();
    unreachable.dedup();
    unreachable
}

/// Has jobs applied by an owner of their shard.
pub async fn write_remotely(
    writer: &dyn RemoteWriter,
    shard: ShardId,
    jobs: &[Job],
    detail: Detail,
) -> RemoteOutcome {
    let encoded: Vec<Vec<u8>> = jobs.iter().map(wire::encode).collect();
    let body = [b"[".as_slice(), &encoded.join(&b','), b"]"].concat();
    let answer = writer.write(shard, body, detail == Detail::Changed).await;
    let read = answer.and_then(|answer| {
        let outcome = read_answer(&answer, shard).filter(|outcome| outcome.results.len() == jobs.len());
        outcome.ok_or_else(|| {
            NotPublished::Unknown("another node sent an answer to the write that cannot be read".to_owned())
        })
    });
    read.unwrap_or_else(|why| RemoteOutcome {
        sequence: None,
        results: jobs.iter().map(|_| JobResult::Failed(why.clone())).collect(),
    })
}

fn read_answer(answer: &[u8], shard: ShardId) -> Option<RemoteOutcome> {
    let AnswerJson { token, results } = serde_json::from_slice(answer).ok()?;
    let token = token.and_then(|token| AsOf::parse(&token).ok()).unwrap_or_default();
    let sequence = token.0.iter().find(|(of, _)| *of == shard).map(|(_, sequence)| *sequence);
    Some(RemoteOutcome { sequence, results: results.into_iter().map(read_result).collect::<Option<_>>()? })
}

fn read_result(json: Box<RawValue>) -> Option<JobResult> {
    let said: ResultJson = serde_json::from_str(json.get()).ok()?;
    let detail = said.detail.unwrap_or_default();
    Some(if let Some(code) = said.rejected {
        let code = RejectCode::ALL.into_iter().find(|known| known.name() == code)?;
        JobResult::Rejected(Reject::new(code, detail))
    } else if said.failed.is_some() {
        JobResult::Failed(NotPublished::Unknown(detail))
    } else if said.waits_for_board {
        JobResult::Parked
    } else {
        JobResult::Remote(RemoteResult(json))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owners_answer_is_read_and_its_results_are_passed_on() {
        let applied = r#"{"changed":true,"entry":{"score":7},"previous":null}"#;
        let answer = format!(
            r#"{{"token":"1:5,2:17","results":[{applied},{{"rejected":"overflow","detail":"too much"}},
            {{"failed":"commit_failed","detail":"the disk"}},{{"changed":false,"waits_for_board":true}}]}}"#
        );
        let RemoteOutcome { sequence, results } =
            read_answer(answer.as_bytes(), ShardId(2)).expect("it is an answer");
        assert_eq!(sequence, Some(Sequence(17)));
        assert!(matches!(results.get(2), Some(JobResult::Failed(_))));
        assert!(matches!(results.get(3), Some(JobResult::Parked)));
        let [JobResult::Remote(remote), JobResult::Rejected(reject), _, _] = results.as_slice() else {
            panic!("other results")
        };
        assert_eq!(remote.json(), applied);
        assert_eq!((reject.code, reject.detail.as_str()), (RejectCode::Overflow, "too much"));
        for other in ["", "{}", r#"{"results":[{"rejected":"unheard of"}]}"#, r#"{"results":[7]}"#] {
            assert!(read_answer(other.as_bytes(), ShardId(2)).is_none(), "{other}");
        }
    }
}

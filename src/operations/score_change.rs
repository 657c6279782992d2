//! What a job of one board did to its member's score, wherever it was applied.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::operations::results::JobResult;
use crate::types::Score;
use crate::wire::lenient::score_of;

/// A member's score before a job and after it; `None`: it had none, or none that is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScoreChange {
    pub before: Option<Score>,
    pub after: Option<Score>,
}

/// What an owner on another node says of a job.
#[derive(Deserialize)]
struct RemoteJson<'j> {
    #[serde(borrow)]
    entry: Option<ScoredJson<'j>>,
    #[serde(borrow)]
    previous: Option<ScoredJson<'j>>,
    /// The owner knows that the job is applied, and not how it stands.
    #[serde(borrow)]
    missing: Option<&'j RawValue>,
}

#[derive(Deserialize)]
struct ScoredJson<'j> {
    #[serde(borrow)]
    score: &'j RawValue,
}

impl JobResult {
    /// What the job did. `None`: it is not known, or it was none of one board.
    pub fn score_change(&self) -> Option<ScoreChange> {
        match self {
            Self::Applied { changes, .. } => {
                let change = changes.first()?;
                Some(ScoreChange {
                    before: change.previous.as_ref().map(|previous| previous.score.clone()),
                    after: change.entry.as_ref().map(|entry| entry.listed.score.clone()),
                })
            }
            Self::Remote { json, .. } => {
                let RemoteJson { entry, previous, missing } = serde_json::from_str(json.get()).ok()?;
                let score = |scored: Option<ScoredJson<'_>>| match scored {
                    Some(ScoredJson { score }) => score_of(score.get()).ok().map(Some),
                    None => Some(None),
                };
                let (before, after) = (score(previous)?, score(entry)?);
                missing.is_none().then_some(ScoreChange { before, after })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owners_answer_tells_the_scores_before_and_after() {
        let change = |json: &str| {
            let json = RawValue::from_string(json.to_owned()).expect("JSON");
            let change = JobResult::Remote { changed: true, json }.score_change()?;
            let text = |score: Option<Score>| score.map_or("none".to_owned(), |score| score.to_string());
            Some(format!("{} {}", text(change.before), text(change.after)))
        };
        let told = |json| change(json).expect("it is told");
        assert_eq!(told(r#"{"changed":true,"entry":{"score":12,"rank":1},"previous":null}"#), "none 12");
        assert_eq!(told(r#"{"changed":true,"entry":null,"previous":{"score":"-inf"}}"#), "-inf none");
        assert_eq!(change(r#"{"changed":true,"missing":[1]}"#), None);
        assert_eq!(change(r#"{"changed":true,"entry":{"score":"x"}}"#), None);
    }
}

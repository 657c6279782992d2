//! What a job of one board did to its member's score, wherever it was applied.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::state::ShardRanking;
use crate::types::Score;
use crate::wire::lenient::score_of;
use crate::writer::BoardOutcome;

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

impl ScoreChange {
    /// What a job did on a board.
    pub(super) fn of(outcome: &BoardOutcome) -> Self {
        let BoardOutcome { board, before, after, .. } = outcome;
        let score = |ranking: &ShardRanking| board.definition.score_of(ranking.words.as_slice());
        Self { before: before.as_ref().map(score), after: after.as_ref().map(score) }
    }

    /// What an owner on another node says of a job. `None`: it does not know.
    pub fn of_remote(json: &RawValue) -> Option<Self> {
        let RemoteJson { entry, previous, missing } = serde_json::from_str(json.get()).ok()?;
        let score = |scored: Option<ScoredJson<'_>>| match scored {
            Some(ScoredJson { score }) => score_of(score.get()).ok().map(Some),
            None => Some(None),
        };
        let (before, after) = (score(previous)?, score(entry)?);
        missing.is_none().then_some(Self { before, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owners_answer_tells_the_scores_before_and_after() {
        let change = |json: &str| {
            let json = RawValue::from_string(json.to_owned()).expect("JSON");
            let change = ScoreChange::of_remote(&json)?;
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

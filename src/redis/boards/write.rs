//! Commands that write to one board: as jobs, and what came of them as a reply.

use std::sync::Arc;

use crate::access::Grant;
use crate::board::{Definition, DefinitionPatch, Field, KeyPatch, KeyType, Order, Ties};
use crate::job::{Boards, Compare, Job, MAX_JOBS_PER_MESSAGE, Op, Presence, RejectCode, Targets, When};
use crate::operations::{
    BoardChanges, BoardRefused, DefineRefused, DefinedBoard, Failure, InProgress, JobResult, NotPublished,
    Operations, OutcomeDetail, ScoreChange, Wait, WriteOptions,
};
use crate::redis::boards::key::{BoardKey, Shape, check_policy, member};
use crate::redis::commands::{Add, Write};
use crate::redis::frames::Replies;
use crate::redis::number::digits_of;
use crate::redis::refused::Refused;
use crate::types::{AsOf, BoardName, MemberId, Score, count};

/// What a job's result takes in memory, about.
const RESULT_BYTES: usize = 512;

/// How the outcomes of a command's jobs become its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteReply {
    /// The number of new entries.
    New,
    /// The number of entries whose score is another one.
    Changed,
    /// The number of entries that are gone.
    Removed,
    /// The score after the only job, or nothing if its condition did not hold.
    Score(Presence, Compare),
}

/// What came of a job.
pub type Outcome = Result<ScoreChange, Refused>;

/// What a command writes to a board that is there.
///
/// # Errors
/// When the board is none for it.
pub fn jobs_of(
    key: &BoardKey,
    definition: &Definition,
    write: &Write<'_>,
) -> Result<(Vec<Job>, WriteReply), Refused> {
    Shape::of(&key.board, definition)?;
    match write {
        Write::Add(add) => {
            check_policy(&key.board, definition, add)?;
            let Add { presence, compare, increment, .. } = *add;
            let op = Op::when(When { presence, compare, adds: increment });
            let mut jobs = Vec::with_capacity(add.pairs.len());
            for (score, id) in &add.pairs {
                let score = Score::of_numbers(&[*score]).map_err(|_| Refused::no_float())?;
                let refused = |what: &str, why| {
                    Refused::new(format!("ERR {what}: {}", definition.refused(why, &score)))
                };
                let typed = definition.typed(&score);
                let typed = typed.map_err(|why| refused("value is not a valid float", why))?;
                // A sum is judged where it is made. Of other scores it is known before any is written.
                if !increment {
                    let admitted = definition.admit(&typed);
                    admitted.map_err(|why| refused(RejectCode::OutOfRange.name(), why))?;
                }
                jobs.push(job(&key.board, member(id)?, op, Some(score)));
            }
            Ok((jobs, reply_of(add)))
        }
        Write::Remove(ids) => {
            let members = ids.iter().map(|id| member(id));
            let jobs: Result<Vec<Job>, Refused> =
                members.map(|member| Ok(job(&key.board, member?, Op::Remove, None))).collect();
            Ok((jobs?, WriteReply::Removed))
        }
    }
}

fn reply_of(add: &Add<'_>) -> WriteReply {
    match add {
        Add { increment: true, presence, compare, .. } => WriteReply::Score(*presence, *compare),
        Add { counts_changed: true, .. } => WriteReply::Changed,
        _ => WriteReply::New,
    }
}

pub fn job(board: &BoardName, member: MemberId, op: Op, score: Option<Score>) -> Job {
    let mut boards = Boards::new();
    boards.push((board.clone(), score));
    Job { member, targets: Targets::Boards(boards), op: Some(op), version: None, at: None, meta: None }
}

/// A board as Redis orders it: doubles, the greatest first, equal scores by the greatest id.
fn made_patch() -> DefinitionPatch {
    let score = KeyPatch {
        name: "score".to_owned(),
        order: Field::Value(Order::Descending),
        key_type: Field::Value(KeyType::Float),
        min: Field::Absent,
        max: Field::Absent,
        below_min: Field::Absent,
        above_max: Field::Absent,
    };
    DefinitionPatch {
        keys: Field::Value(vec![score]),
        ties: Field::Value(Ties::MemberDesc),
        ..DefinitionPatch::default()
    }
}

/// The definition of a board that a command makes.
pub fn made_definition() -> Definition {
    made_patch().onto(None).unwrap_or_default()
}

/// Makes the board of a key as Redis orders it: doubles, the greatest first, equal scores by the greatest id.
///
/// # Errors
/// When it cannot be made. That there is one by now is no error.
pub async fn define(
    operations: &Arc<Operations>,
    key: &BoardKey,
    grant: Option<&Arc<Grant>>,
) -> Result<AsOf, Refused> {
    if !operations.registry.may_create(key.board.as_str())
        && operations.registry.get(key.board.as_str()).is_none()
    {
        return Err(Refused::new(format!(
            "ERR there is no board {}, and this service makes none for a score (--no-auto-create): define it with \
             PUT /v1/boards/{{board}}",
            key.board
        )));
    }
    let limited = grant.filter(|grant| grant.max_boards.is_some()).cloned();
    let name = key.board.clone();
    let define = move |boards: BoardChanges| boards.define(name, made_patch(), false, limited);
    match operations.change_boards(define, |_| ()).await {
        Ok(DefinedBoard { board, .. }) => Ok(board.token),
        // Somebody else has defined it meanwhile.
        Err(Failure::Board(BoardRefused::Refused(DefineRefused::Conflict(_)))) => Ok(AsOf::default()),
        Err(why) => Err(why.into()),
    }
}

/// Writes jobs, as many at a time as a message may have. After a failure, of all of them or of some, none of
/// those behind are sent: they would overtake it.
pub async fn write_jobs(
    operations: &Arc<Operations>,
    jobs: Vec<Job>,
    grant: Option<&Arc<Grant>>,
) -> (Vec<Outcome>, AsOf) {
    let options = WriteOptions { wait: Wait::UntilApplied, detail: OutcomeDetail::Scores };
    let (mut outcomes, mut token) = (Vec::with_capacity(jobs.len()), AsOf::default());
    let mut jobs = jobs.into_iter();
    let mut has_failed = false;
    loop {
        let part: Vec<Job> = jobs.by_ref().take(MAX_JOBS_PER_MESSAGE).collect();
        // Their numbers are of the board's key.
        let are_sums: Vec<bool> = part.iter().map(|job| job.op.is_some_and(Op::adds)).collect();
        if part.is_empty() {
            return (outcomes, token);
        }
        if has_failed {
            outcomes.extend(are_sums.iter().map(|_| Err(not_sent())));
            continue;
        }
        match admitted(operations, part, options, grant).await {
            Ok((results, at)) => {
                has_failed = results.iter().any(|result| matches!(result, JobResult::Failed(_)));
                outcomes
                    .extend(results.iter().zip(are_sums).map(|(result, is_sum)| outcome_of(result, is_sum)));
                // Later sequences of the same shards come last.
                token.0.extend(at.0);
            }
            Err(failure) => {
                has_failed = true;
                outcomes.extend(are_sums.iter().map(|_| Err(failure.clone().into())));
            }
        }
    }
}

fn not_sent() -> Refused {
    let why = "it was not sent, because a write before it in the same pipeline failed";
    NotPublished::Unavailable(why.to_owned()).into()
}

async fn admitted(
    operations: &Arc<Operations>,
    jobs: Vec<Job>,
    options: WriteOptions,
    grant: Option<&Arc<Grant>>,
) -> Result<(Vec<JobResult>, AsOf), Failure> {
    let in_progress = InProgress::new(&operations.admission);
    in_progress.admit()?;
    in_progress.count_answer(jobs.len() * RESULT_BYTES)?;
    let written = operations.write(jobs, options, grant).await?;
    Ok((written.results, written.token))
}

/// What came of a job.
///
/// # Arguments
/// `is_sum`: it added a number that the board's key has.
fn outcome_of(result: &JobResult, is_sum: bool) -> Outcome {
    match result {
        // The number itself was judged before it was sent.
        JobResult::Rejected(reject) if is_sum && reject.code == RejectCode::BadScore => {
            Err(Refused::new("ERR resulting score is not a number (NaN)"))
        }
        JobResult::Rejected(reject) if reject.code == RejectCode::ReadOnly => {
            Err(Refused::read_only(&reject.detail))
        }
        JobResult::Rejected(reject) => Err(Refused::new(format!("ERR {}: {}", reject.code, reject.detail))),
        JobResult::Failed(why) => Err(why.clone().into()),
        JobResult::Parked => {
            Err(Refused::new("UNKNOWN the write is stored, and applied as soon as its board is decided"))
        }
        JobResult::Scores(change) => Ok(change.clone()),
        JobResult::Remote { json, .. } => ScoreChange::of_remote(json).ok_or_else(unclear),
        _ => Err(unclear()),
    }
}

pub fn unclear() -> Refused {
    Refused::new("UNKNOWN the write is applied, and its shard did not tell what it has changed")
}

impl WriteReply {
    /// Writes the reply to a command.
    ///
    /// # Errors
    /// When some of it was not done. Nothing is written to the replies then.
    pub fn write(
        self,
        outcomes: &[Outcome],
        definition: &Definition,
        replies: &mut Replies,
    ) -> Result<(), Refused> {
        let changes: Vec<&ScoreChange> = outcomes
            .iter()
            .map(Result::as_ref)
            .collect::<Result<_, _>>()
            .map_err(|why| told(outcomes, why))?;
        let counted = |is_counted: &dyn Fn(&ScoreChange) -> bool| {
            count(changes.iter().filter(|change| is_counted(change)).count())
        };
        match self {
            Self::New => replies.count(counted(&|change| change.before.is_none() && change.after.is_some())),
            Self::Changed => {
                replies.count(counted(&|change| change.after.is_some() && change.before != change.after));
            }
            Self::Removed => {
                replies.count(counted(&|change| change.before.is_some() && change.after.is_none()));
            }
            Self::Score(presence, compare) => {
                let held = changes.first().filter(|change| condition_held(presence, compare, change));
                match held.and_then(|change| change.after.as_ref()) {
                    Some(score) => {
                        let typed = definition.typed(score);
                        replies.double(&digits_of(typed.as_ref().map_or(score, |typed| &**typed)));
                    }
                    None => replies.null(),
                }
            }
        }
        Ok(())
    }
}

/// What is told of a command of which something was not done.
///
/// # Arguments
/// `first`: why the first of its members was not written.
fn told(outcomes: &[Outcome], first: &Refused) -> Refused {
    let codes = |code: &str| {
        outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(|why| why.code() == code)
    };
    let written = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    if written == 0 && codes(first.code()) {
        return first.clone();
    }
    let count = outcomes.len();
    Refused::new(format!(
        "UNKNOWN {written} of {count} members are known to be written; of another: {}",
        first.text()
    ))
}

/// Whether the condition of a job held, by what it came to.
fn condition_held(presence: Presence, compare: Compare, change: &ScoreChange) -> bool {
    let ScoreChange { before, after } = change;
    match (presence, compare) {
        (Presence::New, _) => before.is_none(),
        (_, Compare::Greater | Compare::Less) => before != after,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Number;

    #[test]
    fn what_is_told_of_a_command_is_true_of_all_its_members() {
        let score = Score::of_numbers(&[Number::Integer(1)]).expect("a score");
        let done = || Ok(ScoreChange { before: None, after: Some(score.clone()) });
        let failed = |text: &'static str| Err(Refused::new(text));
        for (outcomes, expect) in [
            (vec![failed("ERR a")], "ERR a"),
            (vec![failed("TRYAGAIN a"), failed("TRYAGAIN b")], "TRYAGAIN a"),
            (vec![done(), failed("ERR a")], "UNKNOWN 1 of 2 members"),
            (vec![failed("TRYAGAIN a"), done(), done()], "UNKNOWN 2 of 3 members"),
            (vec![failed("ERR a"), failed("UNKNOWN b")], "UNKNOWN 0 of 2 members"),
            (vec![failed("UNKNOWN b")], "UNKNOWN b"),
        ] {
            let mut replies = Replies::default();
            let told = WriteReply::New.write(&outcomes, &made_definition(), &mut replies);
            let told = told.expect_err("some of it failed");
            assert!(told.text().starts_with(expect), "{}", told.text());
            assert_eq!(replies.len(), 0);
        }
        let mut replies = Replies::default();
        let told = WriteReply::New.write(&[done(), done()], &made_definition(), &mut replies);
        assert_eq!((told, replies.bytes()), (Ok(()), b":2\r\n".to_vec()));
    }
}

//! Decides what one job does to one entry: the meaning of every operation. Pure.
//!
//! Knows: an entry before, a job, a definition. Must not know: trees, batches, disks.

use std::borrow::Cow;

use crate::board::{Definition, Key, ScoreRefused};
use crate::job::{Compare, Job, MAX_AHEAD_MICROS, Op, Presence, Reject, RejectCode, When};
use crate::state::{Entry, EntryState};
use crate::tree::Words;
use crate::types::{MemberId, Score, Timestamp};

/// What a job asks of one board.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub op: Op,
    pub score: Option<&'a Score>,
    pub version: Option<u64>,
    pub at: Timestamp,
    pub member: &'a MemberId,
    /// A version that holds for the member on every board: a job's must be greater than that, too.
    pub member_version: Option<u64>,
    /// Whether the member is hidden on the board, once the job has applied.
    pub is_hidden: bool,
    /// `Some(true)`: the job sets metadata. `Some(false)`: it removes them. `None`: it leaves them alone.
    pub metadata: Option<bool>,
}

impl<'a> Request<'a> {
    /// A removal that no job asks for.
    pub fn removal(member: &'a MemberId, at: Timestamp) -> Self {
        Self {
            op: Op::Remove,
            score: None,
            version: None,
            at,
            member,
            member_version: None,
            is_hidden: false,
            metadata: None,
        }
    }
}

/// The result of a decided job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    pub after: Option<Entry>,
    /// Whether the entry is another one than before for readers who see hidden ones, too: its score, its
    /// place, its time, its metadata, whether it is there, or whether it is listed.
    pub changed: bool,
    /// Whether all that may have changed are the metadata, which may be what they were.
    pub changes_only_metadata: bool,
    /// Whether the job's metadata take effect.
    pub takes_metadata: bool,
}

/// Decides one job on one board.
///
/// # Errors
/// The reason for which the job, and with it every board it names, is refused.
pub fn decide(
    definition: &Definition,
    before: Option<&Entry>,
    request: &Request<'_>,
) -> Result<Decision, Reject> {
    let stored = before.and_then(|entry| entry.version).max(request.member_version);
    if let (Some(version), Some(stored)) = (request.version, stored)
        && version <= stored
    {
        return Err(stale_version(version, stored));
    }
    let version = request.version.or_else(|| before.and_then(|entry| entry.version));
    // A version is remembered even where there is no entry to hide or show: an older job that arrives late
    // must not apply.
    let remembered = || {
        version.map(|version| Entry {
            state: EntryState::Removed,
            updated_at: request.at,
            version: Some(version),
            has_metadata: false,
        })
    };
    let unchanged =
        || Decision::of(before.map(|entry| Entry { version, ..*entry }).or_else(remembered), false);
    // What changes no score is an update all the same: the entry stays for longer.
    let refreshed = || {
        let expires = definition.entry_ttl_micros.is_some();
        let Some(entry) = before.filter(|entry| expires && entry.updated_at < request.at) else {
            return unchanged();
        };
        Decision::of(Some(Entry { version, updated_at: request.at, ..*entry }), true)
    };
    match request.op {
        Op::Set | Op::Best | Op::Incr | Op::When(_) => {
            let given = &*given_score(definition, request)?;
            let held = before.and_then(Entry::words);
            let applies = match request.op {
                Op::When(When { presence: Presence::New, .. }) => held.is_none(),
                Op::When(When { presence: Presence::Existing, .. }) => held.is_some(),
                _ => true,
            };
            if !applies {
                return Ok(unchanged());
            }
            let sum = if request.op.adds() {
                let base = held.map(|words| definition.score_of(words.as_slice()));
                let sum = definition.add(base.as_ref(), given);
                Some(sum.map_err(|refused| reject(definition, refused, given))?)
            } else {
                None
            };
            let score = sum.as_ref().unwrap_or(given);
            if let (Op::When(When { compare, .. }), Some(held)) = (request.op, held)
                && !is_compared_so(compare, score, &definition.score_of(held.as_slice()))
            {
                return Ok(unchanged());
            }
            definition.admit(score).map_err(|refused| reject(definition, refused, score))?;
            let error = held.and_then(|held| definition.error_of(held.as_slice())).unwrap_or_default();
            let place = definition.entry_words_with(score, error, request.at, request.member.as_bytes());
            let words = match held {
                // An equal score keeps its place among the ties.
                Some(held) if same_score(definition, &held, &place) => {
                    if request.op == Op::Best {
                        return Ok(refreshed());
                    }
                    held
                }
                Some(held) if request.op == Op::Best && held < place => return Ok(refreshed()),
                _ => place,
            };
            let state = EntryState::of(words, request.is_hidden);
            let had_metadata = before.is_some_and(|entry| entry.has_metadata);
            let has_metadata = request.metadata.unwrap_or(had_metadata);
            // A job that comes late does not make the entry older, nor one with an `entry_ttl` expire.
            let known = before.filter(|entry| entry.state != EntryState::Removed);
            let updated_at = known.map_or(request.at, |entry| entry.updated_at.max(request.at));
            let after = Entry { state, updated_at, version, has_metadata };
            let differs = before.is_none_or(|entry| (entry.state, entry.updated_at) != (state, updated_at));
            let takes_metadata = request.metadata.is_some();
            let changes_metadata = takes_metadata && (had_metadata || has_metadata);
            let changes_only_metadata = changes_metadata && had_metadata && has_metadata && !differs;
            let changed = differs || changes_metadata;
            Ok(Decision { after: Some(after), changed, changes_only_metadata, takes_metadata })
        }
        Op::Take => {
            let given = given_score(definition, request)?;
            let held = before.and_then(Entry::words).map(|words| definition.score_of(words.as_slice()));
            if held.as_ref() == Some(&*given) {
                Ok(Decision::of(remembered(), true))
            } else {
                Ok(unchanged())
            }
        }
        Op::Remove => {
            let changed = before.is_some_and(|entry| entry.state != EntryState::Removed);
            // A remembered version keeps a late retry from bringing the entry back.
            Ok(Decision::of(remembered(), changed))
        }
        // It is no entry's.
        Op::Profile => Ok(unchanged()),
        // The ban itself is no entry's (`plan::bans`).
        Op::Hide | Op::Show => Ok(match before.and_then(|entry| Some((entry, entry.words()?))) {
            Some((entry, words)) => {
                let state = EntryState::of(words, request.is_hidden);
                Decision::of(Some(Entry { state, version, ..*entry }), entry.state != state)
            }
            None => unchanged(),
        }),
    }
}

impl Decision {
    /// Of a job that leaves metadata alone, or takes them away with the entry.
    pub fn of(after: Option<Entry>, changed: bool) -> Self {
        Self { after, changed, changes_only_metadata: false, takes_metadata: false }
    }
}

/// Rejects a job whose `at` is further in the future than clocks may differ: it would win or lose ties
/// without merit.
pub fn check_time(job: &Job, now: Timestamp) -> Result<(), Reject> {
    match job.at {
        Some(at) if at.as_micros() - now.as_micros() > MAX_AHEAD_MICROS => {
            let detail = format!(
                "the job's `at`, {at}, is more than five minutes after the time of its message, {now}"
            );
            Err(Reject::new(RejectCode::FutureTime, detail))
        }
        Some(_) | None => Ok(()),
    }
}

/// A job is too old for what is remembered of its member.
pub fn stale_version(version: u64, stored: u64) -> Reject {
    let detail = format!("version {version} is not greater than the stored version, {stored}");
    Reject::new(RejectCode::StaleVersion, detail)
}

/// The score that the job brings, with the numbers that the board's keys have.
fn given_score<'a>(definition: &Definition, request: &Request<'a>) -> Result<Cow<'a, Score>, Reject> {
    let sent = request.score.ok_or_else(|| Reject::new(RejectCode::BadScore, "the job has no score"))?;
    definition.typed(sent).map_err(|refused| reject(definition, refused, sent))
}

/// Whether a score compares with the one that is there as a condition says.
fn is_compared_so(compare: Compare, score: &Score, held: &Score) -> bool {
    match compare {
        Compare::Any => true,
        Compare::Greater => score.keys() > held.keys(),
        Compare::Less => score.keys() < held.keys(),
    }
}

fn same_score(definition: &Definition, a: &Words, b: &Words) -> bool {
    let keys = definition.keys.len();
    a.as_slice().get(..keys) == b.as_slice().get(..keys)
}

/// `score`: the resulting score; on overflow, the score that the job brought.
/// Why a score is none for a board, in words for its sender.
pub fn reject(definition: &Definition, refused: ScoreRefused, score: &Score) -> Reject {
    match refused {
        ScoreRefused::KeyCount | ScoreRefused::NoInteger(_) => {
            Reject::new(RejectCode::BadScore, definition.refused(refused, score))
        }
        ScoreRefused::NotANumber => {
            let detail = format!("adding {score} to the opposite infinity gives no number");
            Reject::new(RejectCode::BadScore, detail)
        }
        ScoreRefused::OutOfRange => {
            let keys = definition.keys.iter().zip(score.keys());
            let outside = keys.filter(|(key, value)| !(key.min..=key.max).contains(value));
            let told = outside.map(|(key, value)| {
                let value = key.number(*value);
                format!("{} would be {value}, but must be {} on this board", key.name, bounds(key))
            });
            Reject::new(RejectCode::OutOfRange, told.collect::<Vec<_>>().join("; "))
        }
        ScoreRefused::Overflow => {
            let detail = format!("adding {score} would take a key out of the signed 64-bit range");
            Reject::new(RejectCode::Overflow, detail)
        }
    }
}

fn bounds(key: &Key) -> String {
    let (min, max) = (key.number(key.min), key.number(key.max));
    match (key.min > i64::MIN, key.max < i64::MAX) {
        (true, true) => format!("{min} to {max}"),
        (true, false) => format!("{min} or more"),
        (false, _) => format!("{max} or less"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Beyond, Ties};

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).expect("in range")
    }

    fn run(
        board: &Definition,
        before: Option<&Entry>,
        op: Op,
        score: i64,
        time: i64,
    ) -> Result<Decision, Reject> {
        versioned(board, before, op, score, time, None)
    }

    fn versioned(
        board: &Definition,
        before: Option<&Entry>,
        op: Op,
        score: i64,
        time: i64,
        version: Option<u64>,
    ) -> Result<Decision, Reject> {
        let member = MemberId::new("p").expect("well-formed");
        let score = Score::new(&[score]).expect("one key");
        let score = op.takes_score().then_some(&score);
        // As the planner has it: a ban begins with `hide` and ends with `show`.
        let was_hidden = before.is_some_and(|entry| matches!(entry.state, EntryState::Hidden(_)));
        let is_hidden = op == Op::Hide || (was_hidden && op != Op::Show);
        let (member, member_version, metadata) = (&member, None, None);
        let at = at(time);
        decide(
            board,
            before,
            &Request { op, score, version, at, member, member_version, is_hidden, metadata },
        )
    }

    fn entry(decision: Result<Decision, Reject>) -> Entry {
        decision.expect("accepted").after.expect("an entry")
    }

    fn score(entry: &Entry) -> i64 {
        Definition::default().score_of(entry.words().expect("has words").as_slice()).keys()[0]
    }

    #[test]
    fn best_keeps_the_better_and_an_equal_score_changes_nothing() {
        let board = Definition::default();
        let ten = entry(run(&board, None, Op::Best, 10, 1));
        for worse_or_equal in [9, 10] {
            let decision = run(&board, Some(&ten), Op::Best, worse_or_equal, 2).expect("accepted");
            assert_eq!(decision, Decision::of(Some(ten), false));
        }
        assert_eq!(score(&entry(run(&board, Some(&ten), Op::Best, 11, 2))), 11);
    }

    #[test]
    fn an_equal_set_keeps_the_place_among_ties_and_moves_the_time() {
        let board = Definition::default();
        let first = entry(run(&board, None, Op::Set, 10, 1));
        let again = run(&board, Some(&first), Op::Set, 10, 5).expect("accepted");
        assert!(again.changed, "readers see another time");
        let again = again.after.expect("an entry");
        assert_eq!(again.words(), first.words());
        assert_eq!(again.updated_at, at(5));
        let late = run(&board, Some(&again), Op::Incr, 1, 3).expect("accepted").after.expect("an entry");
        assert_eq!((score(&late), late.updated_at), (11, at(5)));
    }

    #[test]
    fn incr_counts_from_zero_and_is_refused_out_of_bounds() {
        let board = Definition { keys: vec![Key { max: 10, ..Key::score() }], ..Definition::default() };
        let seven = entry(run(&board, None, Op::Incr, 7, 1));
        let refused = run(&board, Some(&seven), Op::Incr, 4, 2).expect_err("beyond the maximum");
        assert_eq!(refused.code, RejectCode::OutOfRange);
        assert_eq!(refused.detail, "score would be 11, but must be 10 or less on this board");
        assert_eq!(score(&entry(run(&board, Some(&seven), Op::Incr, 3, 2))), 10);
        let top = entry(run(&Definition::default(), None, Op::Set, i64::MAX, 1));
        let refused = run(&Definition::default(), Some(&top), Op::Incr, 1, 2).expect_err("beyond 64 bits");
        assert_eq!(refused.code, RejectCode::Overflow);
        assert_eq!(refused.detail, "adding 1 would take a key out of the signed 64-bit range");
        let clamping =
            Key { min: -2, max: 10, below_min: Beyond::Clamp, above_max: Beyond::Clamp, ..Key::score() };
        let clamping = Definition { keys: vec![clamping], ..Definition::default() };
        for (step, expected) in [(4, 10), (i64::MAX, 10), (-9, -2), (i64::MIN, -2), (3, 10), (-8, -1)] {
            assert_eq!(score(&entry(run(&clamping, Some(&seven), Op::Incr, step, 2))), expected, "{step}");
        }
        assert_eq!(score(&entry(run(&clamping, None, Op::Incr, 99, 2))), 10);
        let refused = run(&clamping, None, Op::Set, 11, 2).expect_err("only increments are clamped");
        assert_eq!(refused.code, RejectCode::OutOfRange);
        let two = Definition {
            keys: vec![Key::score(), Key { name: "t".to_owned(), min: 5, max: 7, ..Key::score() }],
            ..board
        };
        let refused = run(&two, None, Op::Set, 4, 1).expect_err("one key for two");
        assert_eq!(refused.code, RejectCode::BadScore);
        assert_eq!(refused.detail, "a score of this board has 2 keys (score, t): send [1200, 7], not 4");
    }

    #[test]
    fn a_removal_with_a_version_is_remembered() {
        let board = Definition::default();
        let first = entry(versioned(&board, None, Op::Set, 10, 1, Some(5)));
        let gone = entry(versioned(&board, Some(&first), Op::Remove, 0, 2, Some(6)));
        assert_eq!(gone.state, EntryState::Removed);
        let late = versioned(&board, Some(&gone), Op::Set, 10, 3, Some(6)).expect_err("a late retry");
        assert_eq!(late.code, RejectCode::StaleVersion);
        assert_eq!(score(&entry(versioned(&board, Some(&gone), Op::Incr, 3, 4, Some(7)))), 3);
        let never_there = entry(versioned(&board, None, Op::Hide, 0, 2, Some(6)));
        let late =
            versioned(&board, Some(&never_there), Op::Set, 10, 3, Some(5)).expect_err("before the hide");
        assert_eq!(late.code, RejectCode::StaleVersion);
        let plain = entry(run(&board, None, Op::Set, 1, 1));
        assert_eq!(run(&board, Some(&plain), Op::Remove, 0, 2).expect("accepted").after, None);
    }

    #[test]
    fn a_hidden_entry_goes_on_receiving_updates() {
        let board = Definition { ties: Ties::Last, ..Definition::default() };
        let listed = entry(run(&board, None, Op::Set, 10, 1));
        let hidden = entry(run(&board, Some(&listed), Op::Hide, 0, 2));
        assert_eq!(hidden.listed(), None);
        let raised = entry(run(&board, Some(&hidden), Op::Incr, 5, 3));
        assert_eq!(raised.listed(), None);
        let shown = entry(run(&board, Some(&raised), Op::Show, 0, 4));
        assert_eq!(shown.listed(), raised.words());
        assert!(!run(&board, None, Op::Hide, 0, 1).expect("accepted").changed);
    }

    #[test]
    fn conditions_are_judged_by_the_entry_that_is_there() {
        let board = Definition::default();
        let when = |presence, compare, adds| Op::When(When { presence, compare, adds });
        let score = |op, before: Option<i64>, given| {
            let held = before.map(|score| entry(run(&board, None, Op::Set, score, 1)));
            let decided = run(&board, held.as_ref(), op, given, 2).expect("accepted");
            let words = decided.after.as_ref().and_then(Entry::words);
            words.map(|words| board.score_of(words.as_slice()).keys()[0])
        };
        for (op, before, given, expect) in [
            (Op::Take, None, 5, None),
            (Op::Take, Some(7), 7, None),
            (Op::Take, Some(7), 5, Some(7)),
            (Op::CREATE, None, 5, Some(5)),
            (Op::CREATE, Some(7), 5, Some(7)),
            (Op::UPDATE, None, 5, None),
            (Op::UPDATE, Some(7), 5, Some(5)),
            (when(Presence::Any, Compare::Greater, false), None, 5, Some(5)),
            (when(Presence::Any, Compare::Greater, false), Some(7), 5, Some(7)),
            (when(Presence::Any, Compare::Greater, false), Some(7), 9, Some(9)),
            (when(Presence::Any, Compare::Less, false), Some(7), 5, Some(5)),
            (when(Presence::Any, Compare::Less, false), Some(7), 7, Some(7)),
            (when(Presence::Existing, Compare::Less, false), None, 7, None),
            (when(Presence::New, Compare::Any, true), Some(7), 5, Some(7)),
            (when(Presence::Existing, Compare::Any, true), Some(7), 5, Some(12)),
            (when(Presence::Any, Compare::Less, true), Some(7), 5, Some(7)),
            (when(Presence::Any, Compare::Less, true), Some(7), -5, Some(2)),
            (when(Presence::Any, Compare::Greater, true), None, 5, Some(5)),
        ] {
            assert_eq!(score(op, before, given), expect, "{op:?} {before:?} {given}");
        }
    }
}

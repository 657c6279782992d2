//! The law of approximate ranks: what a summary guesses is off by no more than it says, whatever the scores,
//! and by nothing for the best thousand.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::remote::reply_of;
use super::*;
use crate::query::question::{BoardLife, Question, ShardReply};
use crate::query::summary::{
    ApproximateShards, KnownSummary, MadeSummaries, Summaries, SummaryReply, SummarySizes, summarize,
};
use crate::query::{AskTerms, NoReply, ReadOptions, ShardClient};

/// Shards that are asked as remote ones are, and can be made to say nothing.
struct Asked {
    shards: Vec<StateLock>,
    made: Vec<MadeSummaries>,
    are_gone: Mutex<bool>,
}

impl Asked {
    fn new(shards: Vec<StateLock>) -> Arc<Self> {
        let made = shards.iter().map(|_| MadeSummaries::default()).collect();
        Arc::new(Self { shards, made, are_gone: Mutex::new(false) })
    }
}

impl ShardClient for Asked {
    fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).expect("a few")
    }

    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        _: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
        Box::pin(async move {
            if *self.are_gone.lock() {
                return Err(NoReply::unavailable(shard, "it is gone"));
            }
            let state = &self.shards[shard.index()];
            if let Question::Summary { board, known } = question {
                let (sequence, reply) = self.made[shard.index()]
                    .reply(state, board, *known)
                    .map_err(|why| NoReply::unavailable(shard, why.to_string()))?;
                let reply = crate::query::question::Reply::Summary(reply);
                return Ok(ShardReply { sequence, is_live: true, reply });
            }
            Ok(reply_of(state, question))
        })
    }
}

fn life() -> BoardLife {
    BoardLife { board: BoardName::new(BOARD).expect("a good name"), incarnation: Incarnation(7) }
}

fn refresh(summaries: &Summaries) {
    summaries.refresh(false).now_or_never().expect("nothing is waited for");
}

/// Gives the sequence at which it is done.
fn change(state: &StateLock, change: Change) -> Sequence {
    let mut state = state.write(Purpose::Apply);
    let sequence = state.applied.sequence.next();
    let applied = Applied { sequence, ..Applied::default() };
    state.apply(&Step { changes: vec![change], applied, ..Step::default() });
    sequence
}

/// Scores of a kind, from a seed.
#[derive(Debug, Clone, Copy)]
enum Scores {
    Uniform,
    Normal,
    Zipf,
    AllTied,
    FewDistinct,
    /// Nearly all between two scores that are far apart, some beyond them.
    Squeezed,
    /// Half of them equal, and the others in powers of two up to the ends of the range.
    Extreme,
}

const KINDS: [Scores; 7] = [
    Scores::Uniform,
    Scores::Normal,
    Scores::Zipf,
    Scores::AllTied,
    Scores::FewDistinct,
    Scores::Squeezed,
    Scores::Extreme,
];

impl Scores {
    fn next(self, random: &mut SmallRng) -> i64 {
        match self {
            Self::Uniform => random.random_range(0..1_000_000_000),
            Self::Normal => (0..12).map(|_| random.random_range(-1_000_000_i64..1_000_000)).sum(),
            Self::Zipf => {
                let share: f64 = random.random_range(0.000_01..1.0);
                (1.0 / share) as i64
            }
            Self::AllTied => 42,
            Self::FewDistinct => random.random_range(0..7),
            Self::Squeezed => match random.random_range(0..100) {
                0 => random.random_range(1 << 50..1 << 60),
                1 => random.random_range(-(1 << 60)..-(1 << 50)),
                _ => 500_000 + random.random_range(0..300),
            },
            Self::Extreme => match random.random_range(0..4) {
                0 => (1_i64 << random.random_range(0..63)).wrapping_neg(),
                1 => 1_i64 << random.random_range(0..63),
                _ => [i64::MAX, i64::MIN, 0][random.random_range(0..3_usize)],
            },
        }
    }

    /// Rows whose times are often the same, so that often only ids order them.
    fn rows(self, count: usize, seed: u64) -> Vec<Row> {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut row = |nth: usize| Row {
            entry: ModelEntry {
                member: format!("m{nth}"),
                score: vec![self.next(&mut random)],
                reached: random.random_range(0..5),
            },
            hidden: false,
            updated: None,
        };
        (0..count).map(&mut row).collect()
    }
}

/// Places of entries, beside them, and far away.
fn asked_scores(model: &Model, first: usize, each: usize) -> Vec<Score> {
    let mut scores = vec![i64::MIN, -1, 0, 1, 499_999, 500_300, i64::MAX];
    for entry in model.entries.iter().take(first).step_by(each) {
        let score = entry.score[0];
        scores.extend([score, score.saturating_add(1), score.saturating_sub(1), score / 2]);
    }
    scores.into_iter().map(|score| Score::new(&[score]).expect("one key")).collect()
}

/// What was guessed, what is so, the error that was told, and how many entries are ahead of what was asked.
struct Compared {
    guess: u64,
    truth: u64,
    error: u64,
    ahead: u64,
}

impl Compared {
    /// The promise of the API.
    fn check(&self) -> Result<(), TestCaseError> {
        let Self { guess, truth, error, ahead } = *self;
        prop_assert!(guess.abs_diff(truth) <= error, "{} for {} by {}", guess, truth, error);
        prop_assert!(ahead >= 1_000 || error == 0, "{} for {} by {}", guess, truth, error);
        Ok(())
    }
}

/// Reads with summaries what is asked of some entries among the `first`, and of some scores, and checks each.
fn compare(
    summaries: &Summaries,
    definition: &Arc<Definition>,
    model: &Model,
    (first, each): (usize, usize),
    check: &mut dyn FnMut(Compared) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let name = || BoardName::new(BOARD).expect("a good name");
    let total = model.entries.len() as u64;
    let scores = asked_scores(model, first, each);
    let approximate = ApproximateShards::new(summaries);
    let remote = RemoteShards::new(&approximate);
    let ranks = ok(ranks_of_scores(&BoardView::remote(&remote, name(), &known(definition)), &scores));
    for (nth, (score, rank)) in scores.iter().zip(&ranks).enumerate() {
        let standing = rank.standing;
        prop_assert_eq!(standing.total, total);
        prop_assert_eq!(standing.better + standing.tied + standing.worse(), total);
        let ahead = model.better(score.keys());
        let error = approximate.rank_error(nth);
        check(Compared { guess: standing.rank(), truth: ahead + 1, error, ahead })?;
    }
    for (index, entry) in model.entries.iter().enumerate().take(first).step_by(each) {
        let approximate = ApproximateShards::new(summaries);
        let remote = RemoteShards::new(&approximate);
        let board = BoardView::remote(&remote, name(), &known(definition));
        let found = ok(member(&board, &id(&entry.member))).expect("it is listed");
        let (listed, standing) = (found.listed, found.standing);
        let error = approximate.rank_error(0);
        prop_assert!(standing.tied >= 1 && standing.total == total);
        prop_assert!((listed.rank()..listed.rank() + standing.tied).contains(&listed.position));
        let ahead = index as u64;
        check(Compared { guess: listed.rank(), truth: model.better(&entry.score) + 1, error, ahead })?;
        check(Compared { guess: listed.position, truth: ahead + 1, error, ahead })?;
    }
    Ok(())
}

#[test]
fn ranks_and_positions_are_off_by_no_more_than_the_error_that_is_told() {
    let definition = Arc::new(Definition { ties: Ties::First, ..Definition::default() });
    for (kind, count) in KINDS.into_iter().flat_map(|kind| [1, 3, 16].map(|count| (kind, count))) {
        // So that no shard tells its tree whole.
        let total = 6_000 + 2_500 * usize::from(count);
        let rows = kind.rows(total, 7);
        let model = Model::new(Arc::clone(&definition), rows.iter().map(|row| row.entry.clone()).collect());
        let asked = Asked::new(shards(&definition, &rows, count));
        let summaries = Summaries::new(asked);
        // Named by a read, which is exact.
        let exact = compare(&summaries, &definition, &model, (total, total - 1), &mut |found| {
            prop_assert_eq!((found.guess, found.error), (found.truth, 0));
            Ok(())
        });
        exact.expect("without summaries the shards are asked");
        refresh(&summaries);
        let (mut checked, mut largest) = (0, 0);
        let bounded = compare(&summaries, &definition, &model, (total, total / 41), &mut |found| {
            (checked, largest) = (checked + 1, found.error.max(largest));
            found.check()
        });
        bounded.unwrap_or_else(|why| panic!("{kind:?} on {count} shards: {why}"));
        assert!(checked > 200);
        // Each shard can be off by what is between two marks: a thousandth of its entries, rounded up.
        let most = total as u64 / 1_000 + 2 * u64::from(count);
        assert!(largest <= most, "{kind:?} on {count} shards: {largest} of at most {most}");
    }
}

#[test]
fn the_best_thousand_are_exact_one_by_one() {
    let definition = Arc::new(Definition { ties: Ties::Member, ..Definition::default() });
    for kind in KINDS {
        let rows = kind.rows(9_000, 3);
        let model = Model::new(Arc::clone(&definition), rows.iter().map(|row| row.entry.clone()).collect());
        let asked = Asked::new(shards(&definition, &rows, 3));
        let summaries = Summaries::new(asked);
        for _ in 0..2 {
            let mut seen = 0;
            compare(&summaries, &definition, &model, (1_100, 13), &mut |found| {
                seen += u32::from(found.ahead < 1_000);
                found.check()
            })
            .unwrap_or_else(|why| panic!("{kind:?}: {why}"));
            assert!(seen > 100, "{kind:?}");
            refresh(&summaries);
        }
    }
}

#[test]
fn summaries_follow_writes_and_answer_alone_once_the_owners_are_gone() {
    let definition = Arc::<Definition>::default();
    let rows = Scores::Uniform.rows(5_000, 1);
    let asked = Asked::new(shards(&definition, &rows, 3));
    let summaries = Summaries::new(Arc::<Asked>::clone(&asked));
    let best = Score::new(&[0]).expect("one key");
    let read = |options: &ReadOptions| {
        let approximate = ApproximateShards::new(&summaries);
        let remote = RemoteShards::new(&approximate).with_options(options);
        let name = BoardName::new(BOARD).expect("a good name");
        let board = BoardView::remote(&remote, name, &known(&definition));
        let found = run_in_memory(ranks_of_scores(&board, std::slice::from_ref(&best)));
        found.map(|ranks| (ranks[0].standing.total, remote.as_of(), approximate.rank_error(0)))
    };
    let now = ReadOptions::default();
    let (_, exact_as_of, _) = read(&now).expect("the shards answer");
    refresh(&summaries);
    assert_eq!(read(&now).expect("summaries answer"), (5_000, exact_as_of.clone(), 0));
    // A write on each shard.
    let removed = |state: &StateLock| {
        let handle = {
            let state = state.read(Purpose::Read);
            let tree = state.board(BOARD).and_then(|board| state.tree(board.all));
            tree.and_then(|tree| tree.tree.select(9)).expect("it is").0
        };
        change(state, Change { tree: TreeId(0), handle, after: None })
    };
    let sequences: Vec<Sequence> = asked.shards.iter().map(removed).collect();
    assert_eq!(read(&now).expect("summaries answer").1, exact_as_of, "as of the summaries");
    let after = crate::types::AsOf(vec![(ShardId(1), sequences[1])]);
    let (total, as_of, _) = read(&ReadOptions { after, ..now.clone() }).expect("the shard itself is asked");
    assert_eq!((total, as_of.0[1].1), (4_999, sequences[1]));
    refresh(&summaries);
    let (total, as_of, _) = read(&now).expect("summaries answer");
    let expected: Vec<(ShardId, Sequence)> = (0..).map(ShardId).zip(sequences).collect();
    assert_eq!((total, as_of.0.clone()), (4_997, expected));
    *asked.are_gone.lock() = true;
    refresh(&summaries);
    assert_eq!(read(&now).expect("summaries answer alone"), (4_997, as_of, 0));
}

#[test]
fn a_summary_that_has_not_changed_is_not_sent_again() {
    let definition = Arc::<Definition>::default();
    let shard = shards(&definition, &Scores::Zipf.rows(3_000, 5), 1).remove(0);
    let made = MadeSummaries::default();
    let mut hash = 0;
    let ask = |sequence: Option<Sequence>, hash| {
        let known = sequence.map(|sequence| KnownSummary { sequence, hash });
        made.reply(&shard, &life(), known).expect("it has time")
    };
    let (sequence, first) = ask(None, hash);
    if let SummaryReply::Made(summary) = &first {
        assert_eq!(summary.total, 3_000);
        hash = summary.hash();
    }
    assert_eq!(ask(Some(sequence), hash), (sequence, SummaryReply::Unchanged));
    // Something else was applied.
    let later = sequence.next();
    let applied = Applied { sequence: later, ..Applied::default() };
    shard.write(Purpose::Apply).apply(&Step { applied, ..Step::default() });
    assert_eq!(ask(Some(sequence), hash), (later, SummaryReply::Unchanged));
    assert_eq!(ask(None, hash), (later, first));
    let event = BoardEvent::Drop {
        board: BoardName::new(BOARD).expect("a good name"),
        incarnation: Incarnation(7),
        number: None,
    };
    let applied = Applied { sequence: later.next(), ..Applied::default() };
    shard.write(Purpose::Apply).apply(&Step { events: vec![event], applied, ..Step::default() });
    assert_eq!(ask(Some(later), hash).1, SummaryReply::Over);
}

#[test]
fn a_summary_of_another_owner_that_saw_what_this_one_missed_is_replaced() {
    let definition = Arc::<Definition>::default();
    let shard = shards(&definition, &Scores::Uniform.rows(3_000, 5), 1).remove(0);
    let (one, other) = (MadeSummaries::default(), MadeSummaries::default());
    let ask = |owner: &MadeSummaries, known| {
        let (sequence, reply) = owner.reply(&shard, &life(), known).expect("it has time");
        match reply {
            SummaryReply::Made(summary) => (sequence, Some(summary)),
            _ => (sequence, None),
        }
    };
    let (_, first) = ask(&one, None);
    let (handle, entry) = {
        let state = shard.read(Purpose::Read);
        let tree = state.board(BOARD).and_then(|board| state.tree(board.all)).expect("it is there");
        let handle = tree.tree.select(9).expect("it is").0;
        (handle, tree.entry(handle).expect("it is"))
    };
    change(&shard, Change { tree: TreeId(0), handle, after: None });
    let (sequence, without) = ask(&other, None);
    let without = without.expect("nothing was known");
    assert_eq!(without.total, 2_999);
    change(&shard, Change { tree: TreeId(0), handle, after: Some(entry) });
    // What the one owner sees is as it was before the entry went.
    let known = KnownSummary { sequence, hash: without.hash() };
    let (through, found) = ask(&one, Some(known));
    assert!(through > sequence);
    assert_eq!(found, first, "the asking node does not keep one without the entry");
    let hash = first.expect("nothing was known").hash();
    assert_eq!(ask(&one, Some(KnownSummary { sequence: through, hash })), (through, None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Small summaries of few entries, so that every place is looked at.
    #[test]
    fn what_is_counted_is_within_the_bounds_of_a_summary(
        scores in prop::collection::vec(
            prop_oneof![
                3 => 0_i64..12,
                2 => -300_i64..300,
                1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, -1, i64::MAX - 1, i64::MAX]),
                1 => any::<i64>(),
            ],
            0..400,
        ),
        reached in 1_i64..4,
        best in 1_u64..12,
        parts in 1_u64..30,
        shared in 0_usize..5,
        other in any::<i64>(),
    ) {
        let definition = Arc::new(Definition { ties: Ties::First, ..Definition::default() });
        let row = |(nth, score): (usize, &i64)| {
            let (member, reached) = (format!("m{nth}"), nth as i64 % reached);
            Row { entry: ModelEntry { member, score: vec![*score], reached }, hidden: false, updated: None }
        };
        let rows: Vec<Row> = scores.iter().enumerate().map(row).collect();
        let shard = shards(&definition, &rows, 1).remove(0);
        let shard = shard.read(Purpose::Read);
        let sizes = SummarySizes { whole: best + 3, best, parts, shared };
        let summary = summarize(&shard, &life(), &sizes);
        prop_assert!(summary.is_consistent());
        let total = scores.len() as u64;
        let without_gap = summary.before.iter().zip(0..).take_while(|(before, index)| **before == *index);
        prop_assert!(without_gap.count() as u64 >= total.min(best));
        let model = Model::new(Arc::clone(&definition), rows.iter().map(|row| row.entry.clone()).collect());
        // A tree that fits into a leaf has no outline.
        let depth = if total > 64 { total.div_ceil(parts).max(2) } else { total + 1 };
        for entry in &model.entries {
            let own = entry.score[0];
            for score in [own, own.saturating_sub(1), own.saturating_add(1), other] {
                let words = definition.score_words(&Score::new(&[score]).expect("one key"));
                let (better, through) = summary.at_score(words.as_slice());
                let (is_better, is_tied) = (model.better(&[score]), model.tied(&[score]));
                prop_assert!((better.low..=better.high).contains(&is_better), "{} {:?}", is_better, better);
                prop_assert!((through.low..=through.high).contains(&(is_better + is_tied)), "{:?}", through);
                prop_assert!((better.low..=better.high).contains(&better.guess));
                prop_assert!(better.guess <= through.guess);
                prop_assert!((through.low..=through.high).contains(&through.guess) && through.high <= total);
                prop_assert!(better.high - better.low < depth && through.high - through.low < depth);
                if is_better < best {
                    prop_assert_eq!(better.error(), 0);
                }
            }
            let index = model.index_of(&entry.member).expect("it is there") as u64;
            let score = Score::new(&entry.score).expect("one key");
            // Beside the entry: of members that are on other shards.
            for (name, before) in [
                (entry.member.clone(), index),
                (format!("{}!", entry.member), index + 1),
                (entry.member.trim_end_matches(|_| true).to_owned(), u64::MAX),
            ] {
                let words = definition.entry_words(&score, time(entry.reached), name.as_bytes());
                let found = summary.before(words.as_slice(), name.as_bytes());
                let (better, through) = summary.at_score(&words.as_slice()[..1]);
                prop_assert!((found.low..=found.high).contains(&found.guess));
                prop_assert!((better.guess..=through.guess).contains(&found.guess));
                if before == u64::MAX {
                    continue;
                }
                prop_assert!((found.low..=found.high).contains(&before), "{} {:?}", before, found);
                if before < best {
                    prop_assert_eq!(found.error(), 0);
                }
            }
        }
    }
}

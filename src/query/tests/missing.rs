//! Reads without some shards, and while a board is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;

use super::remote::reply_of;
use super::{BOARD, Row, check_run, id, known, numbered_rows, shards};
use crate::board::Definition;
use crate::query::model::Model;
use crate::query::question::{Question, ShardReply};
use crate::query::{
    Around, AroundMember, AskTerms, CountAll, FromPosition, InstanceAsked, LookupMembers, MemberOf, NoBoard,
    NoReply, OfBoard, RanksOf, ReadError, ReadOptions, ScoreTarget, ScoresAt, ShardClient, Start, Top,
    read_remote,
};
use crate::query::{BoardRead, End, ReadReply};
use crate::state::{Applied, BoardEvent, Incarnation, Step};
use crate::state_lock::{Purpose, StateLock};
use crate::types::{AsOf, BoardName, MemberId, Score, Sequence, ShardId, shard_of};
use crate::writer::Registry;

/// Shards of which some do not reply.
struct Lacking {
    shards: Vec<StateLock>,
    missing: Vec<ShardId>,
    asked: AtomicU32,
    /// What happens before each reply.
    happens: Happens,
}

/// Gets how many questions were asked before.
type Happens = Box<dyn Fn(u32, &[StateLock]) + Send + Sync>;

impl ShardClient for Lacking {
    fn shard_count(&self) -> u16 {
        u16::try_from(self.shards.len()).expect("a few")
    }

    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        terms: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
        Box::pin(async move {
            let nth = self.asked.fetch_add(1, Ordering::Relaxed);
            (self.happens)(nth, &self.shards);
            if self.missing.contains(&shard) {
                return Err(NoReply::unavailable(shard, "it is away"));
            }
            let reply = reply_of(&self.shards[shard.index()], question);
            if reply.sequence < terms.least {
                return Err(NoReply::NotYetApplied(shard));
            }
            Ok(ShardReply { is_live: shard.0 != 2, ..reply })
        })
    }
}

const COUNT: u16 = 4;

fn rows() -> Vec<Row> {
    numbered_rows(200, |index| index as i64 % 37)
}

fn lacking(missing: &[u16]) -> (Lacking, Registry, Model) {
    let definition = Arc::new(Definition::default());
    let missing: Vec<ShardId> = missing.iter().copied().map(ShardId).collect();
    let is_there = |row: &&Row| !missing.contains(&shard_of(&id(&row.entry.member), COUNT));
    let rows = rows();
    let model = Model::new(
        Arc::clone(&definition),
        rows.iter().filter(is_there).map(|row| row.entry.clone()).collect(),
    );
    let shards = shards(&definition, &rows, COUNT);
    let registry = Registry::new(true);
    registry.register_boards_of(&shards[0].read(Purpose::Read));
    assert_eq!(registry.get(BOARD).map(|known| known.incarnation), Some(known(&definition).incarnation));
    let happens = Box::new(|_, _: &[StateLock]| {});
    (Lacking { shards, missing, asked: AtomicU32::new(0), happens }, registry, model)
}

fn board() -> BoardName {
    BoardName::new(BOARD).expect("a good name")
}

async fn ask<R: BoardRead>(
    shards: &Lacking,
    registry: &Registry,
    read: R,
    partial: bool,
) -> Result<ReadReply<Result<crate::query::Answer<R::Answer>, NoBoard>>, ReadError> {
    let options = ReadOptions { partial, ..ReadOptions::default() };
    read_remote(
        shards,
        registry,
        &OfBoard { board: board(), instance: InstanceAsked::default(), read },
        &options,
    )
    .await
}

#[tokio::test]
async fn a_partial_answer_is_that_of_the_shards_that_replied() {
    let (shards, registry, model) = lacking(&[1]);
    let there = |reply: &AsOf, missing: &[ShardId]| {
        let shards: Vec<u16> = reply.0.iter().map(|(shard, _)| shard.0).collect();
        assert_eq!((shards.as_slice(), missing), (&[0, 2, 3][..], &[ShardId(1)][..]));
    };
    let total = model.entries.len() as u64;
    for from in [End::Top, End::Bottom] {
        let reply = ask(&shards, &registry, Top { start: Start::End(from), limit: 20 }, true).await;
        let reply = reply.expect("three shards reply");
        let answer = reply.answer.expect("it is known");
        there(&answer.as_of, &reply.missing);
        assert!(reply.is_stale, "one of them is not live");
        let mut entries = answer.body.entries;
        let first = if from == End::Top { 0 } else { model.entries.len() - 20 };
        if from == End::Bottom {
            entries.reverse();
        }
        check_run(&entries, &model, first, 20).expect("as the model says");
    }
    let score = Score::new(&[20]).expect("one key");
    let reply = ask(&shards, &registry, RanksOf { scores: &[score] }, true).await.expect("three reply");
    let answer = reply.answer.expect("it is known");
    let standing = answer.body.expect("one key")[0].standing;
    assert_eq!((standing.better, standing.total, answer.total), (model.better(&[20]), total, total));
    there(&answer.as_of, &reply.missing);
    let reply = ask(&shards, &registry, FromPosition { position: 60, limit: 9 }, true).await;
    let answer = reply.expect("three reply").answer.expect("it is known");
    check_run(&answer.body.entries, &model, 59, 9).expect("as the model says");
    let targets = vec![ScoreTarget::Position(60), ScoreTarget::Position(100)];
    let answer = ask(&shards, &registry, ScoresAt { targets }, true).await.expect("three reply").answer;
    for (position, found) in [60, 100].into_iter().zip(answer.expect("it is known").body) {
        let (score, standing) = found.expect("it is there");
        assert_eq!((score.keys(), standing.total), (&*model.entries[position - 1].score, total));
    }
    let members: Vec<MemberId> = rows().iter().map(|row| id(&row.entry.member)).collect();
    let answer = ask(&shards, &registry, LookupMembers { members: members.clone().into() }, true).await;
    let answer = answer.expect("three reply").answer.expect("it is known");
    let listed: Vec<_> = answer.body.entries.into_iter().map(|(listed, _)| listed).collect();
    check_run(&listed, &model, 0, usize::MAX).expect("as the model says");
    for member in members {
        let reply = ask(&shards, &registry, MemberOf { member: member.clone() }, true).await;
        let around = Around { above: 3, below: 3, fill: true };
        let around = ask(&shards, &registry, AroundMember { member: member.clone(), around }, true).await;
        let Some(index) = model.index_of(member.as_str()) else {
            // What its home shard holds is unknown, and not absent.
            assert!(matches!(reply, Err(ReadError::Unavailable(_))));
            assert!(matches!(around, Err(ReadError::Unavailable(_))));
            continue;
        };
        let answer = reply.expect("its home replies").answer.expect("the board is known");
        let entry = answer.body.expect("it is listed");
        check_run(&[entry.listed], &model, index, 1).expect("as the model says");
        let answer = around.expect("its home replies").answer.expect("the board is known");
        let first = index.saturating_sub(3).min(model.entries.len() - 7);
        check_run(&answer.body.expect("it is listed"), &model, first, 7).expect("as the model says");
    }
}

#[tokio::test]
async fn an_answer_lacks_no_shard_unless_it_may_and_never_all() {
    let (shards, registry, _) = lacking(&[1, 3]);
    let refused = ask(&shards, &registry, CountAll, false).await.expect_err("two are away");
    let ReadError::Unavailable(missing) = refused else { panic!("{refused}") };
    assert_eq!(missing.iter().map(|why| why.shard.0).collect::<Vec<_>>(), [1, 3]);
    let (shards, registry, _) = lacking(&[0, 1, 2, 3]);
    let refused = ask(&shards, &registry, CountAll, true).await.expect_err("all are away");
    assert!(matches!(refused, ReadError::Unavailable(missing) if missing.len() == 4));
}

#[tokio::test]
async fn an_answer_is_of_what_it_should_be_after() {
    let (shards, registry, _) = lacking(&[]);
    let applied = shards.shards[2].read(Purpose::Read).applied.sequence;
    let read = OfBoard { board: board(), instance: InstanceAsked::default(), read: CountAll };
    for (sequence, is_there) in [(applied, true), (applied.next(), false)] {
        let after = AsOf(vec![(ShardId(2), sequence)]);
        let options = ReadOptions { partial: true, after, ..ReadOptions::default() };
        let reply = read_remote(&shards, &registry, &read, &options).await.map(|reply| reply.missing);
        let behind = Err(ReadError::NotYetApplied(vec![ShardId(2)]));
        assert_eq!(reply, if is_there { Ok(Vec::new()) } else { behind });
    }
}

#[tokio::test]
async fn an_answer_never_has_shards_from_before_and_after_a_drop() {
    for drops_at in 0..9 {
        let (mut shards, registry, model) = lacking(&[]);
        let registry = Arc::new(registry);
        let learning = Arc::clone(&registry);
        shards.happens = Box::new(move |nth, shards| {
            // The shards drop the board one after the other; the registry learns of it later.
            if let Some(shard) = nth.checked_sub(drops_at).and_then(|nth| shards.get(nth as usize)) {
                let drop = BoardEvent::Drop { board: board(), incarnation: Incarnation(7), number: None };
                let mut state = shard.write(Purpose::Apply);
                let applied = Applied { sequence: Sequence(9_000), ..Applied::default() };
                state.apply(&Step { events: vec![drop], applied, ..Step::default() });
            }
            if nth == drops_at + 13 {
                learning.forget(&board(), Incarnation(7));
            }
        });
        for _ in 0..3 {
            let reply = ask(&shards, &registry, CountAll, false).await.expect("all reply").answer;
            if let Ok(answer) = reply {
                assert_eq!(answer.body, model.entries.len() as u64, "it is from before the drop");
            }
        }
        let reply = ask(&shards, &registry, CountAll, false).await.expect("all reply").answer;
        assert!(reply.is_err() || drops_at > 8, "it is dropped");
    }
}

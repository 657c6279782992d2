//! Columns are what one sorted vector of each board says, over any split, in memory and remote, and over
//! shards that move.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::remote::{AnsweringShards, reply_of};
use super::windows::{DAY, FRIDAY, Windows, asked, name};
use super::{BOARD, SPLITS, id};
use crate::board::{Definition, Key, Order};
use crate::query::model::{Model, ModelEntry};
use crate::query::question::{Question, ShardReply};
use crate::query::read::is_one_by_one;
use crate::query::{
    Answer, Around, AroundMember, AskTerms, BoardRead, Bounds, ColumnsAsked, End, FromPosition, Listed,
    LookupMembers, NoBoard, NoReply, OfBoard, Range, ReadError, ReadOptions, ShardClient, Start, Top,
    VisitEntries, WithColumns, read, read_remote,
};
use crate::state_lock::Purpose;
use crate::types::{AsOf, BoardName, Sequence, ShardId, shard_of};
use crate::window::Window;

const NOW: i64 = FRIDAY + DAY / 2;
const TODAY: &str = "2026-11-20";
/// `kills` has another order, `deaths` a capacity, and `daily` another window by default.
const OTHERS: [&str; 3] = ["kills", "deaths", "daily"];

/// By board as shards name it, then by member: score and time.
type Rows = BTreeMap<String, BTreeMap<String, (i64, i64)>>;

fn boards(shards: u16) -> Windows {
    let windows = Windows::new(shards);
    let with_day = vec![Window::All, Window::Day];
    windows.define_as(BOARD, Definition { windows: with_day.clone(), ..Definition::default() });
    let ascending = Key { order: Order::Ascending, ..Definition::default().keys[0].clone() };
    windows.define_as("kills", Definition { keys: vec![ascending], ..Definition::default() });
    windows.define_as("deaths", Definition { windows: with_day, capacity: Some(9), ..Definition::default() });
    windows.define("daily", &[Window::Day], 12);
    windows
}

fn enter(windows: &Windows, rows: &mut Rows, board: &str, member: &str, entry: (i64, i64)) {
    windows.enter(board, member, entry.0, entry.1);
    rows.entry(board.to_owned()).or_default().insert(member.to_owned(), entry);
}

/// Members on some of the boards, with few scores: many ties.
fn filled(windows: &Windows, members: usize, random: &mut StdRng) -> Rows {
    let mut rows = Rows::new();
    let today = |board: &str| format!("{board}#{TODAY}");
    for board in
        [BOARD.into(), today(BOARD), "kills".into(), "deaths".into(), today("deaths"), today("daily")]
    {
        for number in 0..members {
            if random.random_range(0..4) > 0 {
                let entry = (random.random_range(0..6), FRIDAY + random.random_range(0..DAY / 2));
                enter(windows, &mut rows, &board, &format!("m{number}"), entry);
            }
        }
    }
    rows
}

fn model(windows: &Windows, rows: &Rows, on_shards: &str) -> Model {
    let known = windows.registry.get(name(on_shards).split().0).expect("it is defined");
    let entry = |(member, (score, reached)): (&String, &(i64, i64))| ModelEntry {
        member: member.clone(),
        score: vec![*score],
        reached: *reached,
    };
    Model::new(known.definition, rows.get(on_shards).into_iter().flatten().map(entry).collect())
}

fn of_board<R>(read: R, window: &str) -> OfBoard<R> {
    OfBoard { board: name(BOARD), instance: asked(window, NOW), read }
}

fn table<R>(read: R, window: &str, ranks: bool, entries: usize) -> WithColumns<R> {
    let (boards, choice) = (OTHERS.map(name).to_vec(), asked(window, NOW).choice);
    let counted = if ranks { boards.len() } else { 1 };
    WithColumns {
        read: of_board(read, window),
        columns: Some(ColumnsAsked { boards, ranks, choice, entries, counted }),
    }
}

fn entries(answer: &mut impl VisitEntries) -> Vec<Listed> {
    let mut entries = Vec::new();
    answer.each_entry(&mut |listed| entries.push(listed.clone()));
    entries
}

/// The columns of entries are those of the models, in which a rank is 1 + those with a better score.
fn check_columns(listed: &[Listed], models: &[(&str, Model)], ranks: bool) {
    for listed in listed {
        let columns: Vec<_> = listed
            .columns
            .iter()
            .map(|column| {
                let entry = column.entry.as_ref();
                let entry = entry.map(|entry| (entry.score.keys()[0], entry.rank));
                (column.board.as_str(), entry)
            })
            .collect();
        let expected: Vec<_> = models
            .iter()
            .map(|(board, model)| {
                let score = model.index_of(&listed.member).map(|index| &model.entries[index].score);
                (*board, score.map(|score| (score[0], ranks.then(|| model.better(score) + 1))))
            })
            .collect();
        assert_eq!(columns, expected, "{}", listed.member);
    }
}

/// Reads with and without columns, in memory and remote: the entries are the same, and the columns are those
/// of the models.
async fn check<R, M>(windows: &Windows, rows: &Rows, window: &str, made: M) -> usize
where
    R: BoardRead<Answer: VisitEntries> + 'static,
    M: Fn() -> R,
{
    let others = |on_day: bool| {
        let deaths = if on_day { format!("deaths#{TODAY}") } else { "deaths".to_owned() };
        let on_shards = ["kills".to_owned(), deaths, format!("daily#{TODAY}")];
        OTHERS.into_iter().zip(on_shards.map(|board| model(windows, rows, &board))).collect::<Vec<_>>()
    };
    let models = others(window == "day");
    let [plain, _] = windows.read(&of_board(made(), window)).await.map(|answer| answer.expect("it is there"));
    let (plain_as_of, mut plain) = (plain.as_of, plain.body);
    let plain = entries(&mut plain);
    for ranks in [false, true] {
        for answer in windows.read(&table(made(), window, ranks, 10)).await {
            let mut answer: Answer<R::Answer> = answer.expect("the boards are there");
            let deaths = if window == "day" { TODAY } else { "all" };
            let read: Vec<_> = answer
                .columns
                .iter()
                .map(|(board, instance)| (board.as_str(), instance.map(|instance| instance.to_string())))
                .collect();
            let expected = [("kills", "all"), ("deaths", deaths), ("daily", TODAY)];
            assert_eq!(read, expected.map(|(board, instance)| (board, Some(instance.to_owned()))));
            let mut listed = entries(&mut answer.body);
            check_columns(&listed, &models, ranks);
            for listed in &mut listed {
                listed.columns = Box::default();
            }
            assert_eq!(listed, plain);
            assert!(answer.as_of == plain_as_of || plain.is_empty());
        }
    }
    plain.len()
}

#[tokio::test]
async fn columns_are_what_sorted_vectors_say_on_any_split() {
    let mut random = StdRng::seed_from_u64(11);
    for count in SPLITS {
        for members in [0, 1, 4, 60] {
            let windows = boards(count);
            let rows = filled(&windows, members, &mut random);
            let mut seen = 0;
            for window in ["", "day"] {
                for from in [End::Top, End::Bottom] {
                    let top = || Top { start: Start::End(from), limit: 12 };
                    seen += check(&windows, &rows, window, top).await;
                }
                let bounds = || Bounds { min: None, max: None };
                let range = || Range { bounds: bounds(), after: None, limit: 30 };
                seen += check(&windows, &rows, window, range).await;
                seen += check(&windows, &rows, window, || FromPosition { position: 3, limit: 12 }).await;
                let around =
                    || AroundMember { member: id("m2"), around: Around { above: 3, below: 4, fill: true } };
                seen += check(&windows, &rows, window, around).await;
                let group = || LookupMembers { members: (0..70).map(|nth| id(&format!("m{nth}"))).collect() };
                seen += check(&windows, &rows, window, group).await;
            }
            assert!(seen > members || members < 4, "{seen} entries of {members} members");
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_named_or_empty() {
    let windows = boards(2);
    enter(&windows, &mut Rows::new(), BOARD, "m1", (1, FRIDAY));
    let top = || Top { start: Start::End(End::Top), limit: 5 };
    let with = |boards: &[&str], window: &str| {
        let asked = table(top(), window, true, 5);
        let boards = boards.iter().map(|board| name(board)).collect();
        let columns = asked.columns.map(|columns| ColumnsAsked { boards, ..columns });
        WithColumns { columns, ..asked }
    };
    for answer in windows.read(&with(&["kills", "nobody"], "")).await {
        assert_eq!(answer.err(), Some(NoBoard::UnknownColumn(name("nobody"))));
    }
    let mut unknown = with(&["nobody"], "");
    unknown.read.board = name("neither");
    for answer in windows.read(&unknown).await {
        assert_eq!(answer.err(), Some(NoBoard::Unknown), "the board itself comes first");
    }
    // Its own entry, a day that the other board has no longer or not yet, and a board without seasons.
    windows.define("short", &[Window::Day], 1);
    let days = Windows::read(&windows, &with(&[BOARD, "short", "kills"], "2026-11-18")).await;
    for answer in days {
        let mut answer = answer.expect("the board keeps twelve days");
        assert_eq!(answer.body.entries, []);
        let read = answer.columns.iter().map(|(_, instance)| instance.map(|instance| instance.to_string()));
        let read: Vec<Option<String>> = read.collect();
        assert_eq!(read, [Some("2026-11-18".to_owned()), None, Some("all".to_owned())]);
        assert_eq!(entries(&mut answer.body), []);
    }
    enter(&windows, &mut Rows::new(), &format!("{BOARD}#2026-11-18"), "m1", (1, FRIDAY));
    for answer in windows.read(&with(&[BOARD, "short"], "2026-11-18")).await {
        let entry = &answer.expect("the board keeps twelve days").body.entries[0];
        let ranks = entry.columns.iter().map(|column| column.entry.as_ref().and_then(|entry| entry.rank));
        assert_eq!(ranks.collect::<Vec<_>>(), [Some(1), None]);
    }
}

#[tokio::test]
async fn pages_of_many_columns_hold_one_shard_at_a_time_and_find_the_same() {
    let mut random = StdRng::seed_from_u64(12);
    for count in [1, 5] {
        let windows = boards(count);
        let rows = filled(&windows, 40, &mut random);
        let node = windows.node();
        let top = || Top { start: Start::End(End::Top), limit: 40 };
        let few = |entries| is_one_by_one(&node, &table(top(), "", true, entries));
        assert_eq!([few(10), few(1_000)], [false, true]);
        let large = table(top(), "", true, 1_000);
        let reply = read(&node, &windows.registry, &large, &ReadOptions::default()).await;
        let mut one_by_one = reply.expect("they are in memory").answer.expect("they are there");
        let [mut in_memory, _] = windows.read(&large).await.map(|answer| answer.expect("they are there"));
        let found = entries(&mut one_by_one.body);
        assert_eq!(found, entries(&mut in_memory.body));
        assert_eq!(found.len(), rows[BOARD].len());
    }
}

async fn answered<R: BoardRead<Answer: VisitEntries> + 'static>(
    windows: &Windows,
    read: R,
    columns: Option<ColumnsAsked>,
) {
    for answer in windows.read(&WithColumns { read: of_board(read, ""), columns }).await {
        let listed = entries(&mut answer.expect("the boards are there").body);
        assert_eq!((listed.len(), listed[0].columns.len()), (1, 8));
    }
}

/// What the interface lets through is within what a shard takes: a page of the greatest length with eight
/// boards.
#[tokio::test]
async fn the_largest_pages_with_columns_are_answered() {
    let windows = boards(1);
    enter(&windows, &mut Rows::new(), BOARD, "m1", (1, FRIDAY));
    let columns = |entries| {
        for number in 0..8 {
            windows.define(&format!("b{number}"), &[Window::All], 1);
        }
        let boards: Vec<BoardName> = (0..8).map(|number| name(&format!("b{number}"))).collect();
        Some(ColumnsAsked { boards, ranks: false, choice: asked("", NOW).choice, entries, counted: 0 })
    };
    answered(&windows, Top { start: Start::End(End::Bottom), limit: 1_000 }, columns(1_000)).await;
    answered(&windows, FromPosition { position: 1, limit: 1_000 }, columns(1_000)).await;
    let around = Around { above: 500, below: 499, fill: true };
    answered(&windows, AroundMember { member: id("m1"), around }, columns(1_000)).await;
    let members: Arc<[_]> = (0..1_000).map(|number| id(&format!("m{number}"))).collect();
    answered(&windows, LookupMembers { members }, columns(1_000)).await;
}

/// Shards of which an entry of some board may change before each reply.
struct Changing {
    windows: Windows,
    /// For each shard, what it has at each of its sequences.
    history: Vec<Mutex<BTreeMap<Sequence, Rows>>>,
    random: Mutex<StdRng>,
    missing: Option<ShardId>,
}

impl Changing {
    fn new(count: u16, members: usize, seed: u64) -> Self {
        let (windows, mut random) = (boards(count), StdRng::seed_from_u64(seed));
        let rows = filled(&windows, members, &mut random);
        let history = windows.shards.iter().enumerate().map(|(number, shard)| {
            let mut of_shard = rows.clone();
            for board in of_shard.values_mut() {
                board.retain(|member, _| shard_of(&id(member), count).index() == number);
            }
            Mutex::new(BTreeMap::from([(shard.read(Purpose::Read).applied.sequence, of_shard)]))
        });
        let history = history.collect();
        Self { windows, history, random: Mutex::new(random), missing: None }
    }

    fn change(&self, shard: ShardId) {
        let mut random = self.random.lock();
        if random.random_range(0..2) == 0 {
            return;
        }
        let mut history = self.history[shard.index()].lock();
        let mut rows = history.last_key_value().expect("it began with one").1.clone();
        let on_shards = [BOARD.to_owned(), "kills".into(), "deaths".into(), format!("daily#{TODAY}")];
        let board = &on_shards[random.random_range(0..on_shards.len())];
        let members: Vec<String> = rows.get(board).into_iter().flatten().map(|(id, _)| id.clone()).collect();
        if members.is_empty() {
            return;
        }
        let member = &members[random.random_range(0..members.len())];
        let entry = (random.random_range(0..6), FRIDAY + random.random_range(0..DAY / 2));
        enter(&self.windows, &mut rows, board, member, entry);
        let sequence = self.windows.shards[shard.index()].read(Purpose::Read).applied.sequence;
        history.insert(sequence, rows);
    }

    /// What the shards had at their sequences.
    fn rows(&self, as_of: &AsOf) -> Rows {
        let mut all = Rows::new();
        for (shard, sequence) in &as_of.0 {
            let history = self.history[shard.index()].lock();
            for (board, rows) in history.get(sequence).expect("a sequence of the shard") {
                all.entry(board.clone()).or_default().extend(rows.clone());
            }
        }
        all
    }
}

impl ShardClient for Changing {
    fn shard_count(&self) -> u16 {
        u16::try_from(self.windows.shards.len()).expect("a few")
    }

    fn ask<'a>(
        &'a self,
        shard: ShardId,
        question: &'a Question<'a>,
        _: AskTerms,
    ) -> BoxFuture<'a, Result<ShardReply, NoReply>> {
        Box::pin(async move {
            if self.missing == Some(shard) {
                return Err(NoReply::unavailable(shard, "it is away"));
            }
            self.change(shard);
            Ok(reply_of(&self.windows.shards[shard.index()], question))
        })
    }
}

async fn check_moving<R: BoardRead<Answer: VisitEntries> + 'static>(moving: &Changing, read: R, ranks: bool) {
    let options = ReadOptions { partial: moving.missing.is_some(), ..ReadOptions::default() };
    let asked = table(read, "", ranks, 12);
    let reply = match read_remote(moving, &moving.windows.registry, &asked, &options).await {
        Ok(reply) => reply,
        // As it may be without columns.
        Err(ReadError::KeptChanging(1)) => return,
        Err(why) => panic!("{why}"),
    };
    let mut answer = reply.answer.expect("they are there");
    let rows = moving.rows(&answer.as_of);
    let listed = entries(&mut answer.body);
    if listed.is_empty() {
        return;
    }
    // Where a member is not, only its home shard was asked.
    assert_eq!(reply.missing.first().copied(), moving.missing);
    assert_eq!(answer.as_of.0.len() + reply.missing.len(), moving.windows.shards.len());
    let arena = model(&moving.windows, &rows, BOARD);
    for listed in &listed {
        let index = arena.index_of(&listed.member).expect("it is listed");
        assert_eq!(listed.position, index as u64 + 1, "{}", listed.member);
        assert_eq!(listed.better, arena.better(&arena.entries[index].score), "{}", listed.member);
    }
    let on_shards = ["kills".to_owned(), "deaths".to_owned(), format!("daily#{TODAY}")];
    let models: Vec<_> =
        OTHERS.into_iter().zip(on_shards.map(|board| model(&moving.windows, &rows, &board))).collect();
    check_columns(&listed, &models, ranks);
}

#[tokio::test]
async fn columns_of_moving_shards_are_of_the_sequences_named() {
    for (seed, count) in [(21, 1), (22, 2), (23, 5)] {
        for missing in [None, Some(ShardId(count - 1)).filter(|_| count > 1)] {
            let moving = Changing { missing, ..Changing::new(count, 60, seed) };
            for nth in 0..60_u64 {
                let ranks = nth % 2 == 0;
                check_moving(&moving, Top { start: Start::End(End::Top), limit: 10 }, ranks).await;
                check_moving(&moving, Top { start: Start::End(End::Bottom), limit: 10 }, ranks).await;
                let bounds = Bounds { min: None, max: None };
                check_moving(&moving, Range { bounds, after: None, limit: 12 }, ranks).await;
                check_moving(&moving, FromPosition { position: nth / 2 + 1, limit: 5 }, ranks).await;
                let members: Arc<[_]> = (nth..nth + 9).map(|number| id(&format!("m{number}"))).collect();
                check_moving(&moving, LookupMembers { members }, ranks).await;
                let member = id(&format!("m{nth}"));
                if missing.is_none_or(|missing| shard_of(&member, count) != missing) {
                    let around = Around { above: 4, below: 3, fill: false };
                    check_moving(&moving, AroundMember { member, around }, ranks).await;
                }
            }
        }
    }
}

/// The registry knows of a clear before the shards do.
#[tokio::test]
async fn a_cleared_board_is_an_empty_column() {
    let windows = boards(3);
    let mut rows = Rows::new();
    for number in 0..9 {
        for board in [BOARD, "kills"] {
            enter(&windows, &mut rows, board, &format!("m{number}"), (number, FRIDAY));
        }
    }
    let known = windows.registry.get("kills").expect("it is defined");
    windows.registry.begin_next_incarnation(&name("kills")).expect("it is there");
    assert_ne!(windows.registry.get("kills").expect("it is there").incarnation, known.incarnation);
    let asked = table(Top { start: Start::End(End::Top), limit: 9 }, "", true, 9);
    let shards = AnsweringShards(&windows.shards);
    let reply = read_remote(&shards, &windows.registry, &asked, &ReadOptions::default()).await;
    let answer = reply.expect("all reply").answer.expect("it is there");
    let kills = answer.body.entries.iter().map(|listed| &listed.columns[0].entry);
    assert!(kills.clone().all(Option::is_none) && kills.count() == 9);
}

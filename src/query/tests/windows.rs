//! Reads of instances: each is ranked by itself, over any split, in memory and remote.

use std::sync::Arc;

use tokio::sync::watch;

use super::{BOARD, SPLITS, id, time};
use crate::applied_sequence::applied_sequence;
use crate::board::Definition;
use crate::query::question::{BoardLife, LifeOnShard, Question, Reply, answer};
use crate::query::tests::remote::AnsweringShards;
use crate::query::{
    BoardSelection, End, InstanceAsked, InstancesOfBoard, ListInstances, MemberOf, MemberOnBoards, NoBoard,
    Node, OfBoard, RanksOf, ReadError, ReadOptions, ShardHandle, ShardsRead, Start, Top, TotalsOf,
    UnknownWindow, WindowChoice, read_in_memory, read_remote,
};
use crate::state::{Applied, BoardEvent, Change, Entry, EntryState, Incarnation, Shard, Step};
use crate::state_lock::{Purpose, StateLock};
use crate::types::{BoardName, Score, Sequence, ShardId, shard_of};
use crate::window::Window;
use crate::writer::{Defined, RegisteredBoard, Registry};

pub(super) const DAY: i64 = 24 * 60 * 60 * 1_000_000;
/// 2026-11-20T00:00:00Z.
pub(super) const FRIDAY: i64 = 20_777 * DAY;

/// Some shards, and what the boards on them are.
pub(super) struct Windows {
    pub(super) shards: Vec<Arc<StateLock>>,
    pub(super) registry: Registry,
}

pub(super) fn name(text: &str) -> BoardName {
    BoardName::of_shard(text).expect("a good name")
}

fn choice(text: &str) -> WindowChoice {
    if text.is_empty() {
        WindowChoice::Default
    } else {
        WindowChoice::of_name(text).expect("a window or an instance")
    }
}

pub(super) fn asked(window: &str, now: i64) -> InstanceAsked {
    InstanceAsked { choice: choice(window), now: time(now) }
}

impl Windows {
    pub(super) fn new(count: u16) -> Self {
        let shards = (0..count).map(|number| Arc::new(StateLock::new(Shard::new(ShardId(number)))));
        Self { shards: shards.collect(), registry: Registry::new(true) }
    }

    /// Defines a board on every shard.
    pub(super) fn define(&self, board: &str, windows: &[Window], keep: u32) {
        self.define_as(board, Definition { windows: windows.to_vec(), keep, ..Definition::default() });
    }

    pub(super) fn define_as(&self, board: &str, definition: Definition) {
        self.registry.define(&name(board), definition).expect("few boards");
        for shard in &self.shards {
            self.bring(shard, board);
        }
    }

    /// Brings a board or an instance to a shard.
    fn bring(&self, shard: &StateLock, on_shard: &str) {
        let RegisteredBoard { incarnation, definition } = self.known(on_shard);
        let board = name(on_shard);
        let define = BoardEvent::Define { board, incarnation, number: None, definition };
        shard.write(Purpose::Apply).apply(&Step { events: vec![define], ..Step::default() });
    }

    fn known(&self, on_shard: &str) -> RegisteredBoard {
        self.registry.get(name(on_shard).split().0).expect("it is defined")
    }

    /// Brings an entry to the member's shard, and the instance if need be: no other shard gets it.
    pub(super) fn enter(&self, on_shard: &str, member: &str, score: i64, at: i64) {
        let home = &self.shards[shard_of(&id(member), self.count()).index()];
        if home.read(Purpose::Read).board(on_shard).is_none() {
            self.bring(home, on_shard);
        }
        let score = Score::new(&[score]).expect("one key");
        let words = self.known(on_shard).definition.entry_words(&score, time(at), member.as_bytes());
        let mut shard = home.write(Purpose::Apply);
        let tree = shard.board(on_shard).expect("just defined").all;
        let known = shard.members.get(member.as_bytes());
        let handle = known.unwrap_or_else(|| shard.members.nth_next_handle(0));
        let added = if known.is_none() { vec![member.as_bytes().into()] } else { Vec::new() };
        let state = EntryState::Listed(words);
        let after = Some(Entry { state, updated_at: time(at), version: None, has_metadata: false });
        let sequence = shard.applied.sequence.next();
        let applied = Applied { sequence, timestamp: time(at), hash: 0 };
        let changes = vec![Change { tree, handle, after }];
        shard.apply(&Step { added, changes, applied, time: time(at).into(), ..Step::default() });
    }

    fn count(&self) -> u16 {
        u16::try_from(self.shards.len()).expect("a few")
    }

    /// A node that has the shards in memory.
    pub(super) fn node(&self) -> Node {
        let handle = |shard: &Arc<StateLock>| ShardHandle {
            id: shard.read(Purpose::Read).id,
            state: Arc::clone(shard),
            applied: applied_sequence(Sequence(0)).1,
            started: watch::channel(true).1,
            health: Arc::default(),
            store: Arc::default(),
            summaries: Arc::default(),
        };
        Node::in_memory(self.shards.iter().map(handle).collect())
    }

    /// The answers of a node that has the shards in memory, and of one that asks them.
    pub(super) async fn read<R: ShardsRead>(&self, asked: &R) -> [R::Answer; 2] {
        let in_memory = read_in_memory(&self.node(), &self.registry, asked).expect("they are in memory");
        let remote: Result<_, ReadError> =
            read_remote(&AnsweringShards(&self.shards), &self.registry, asked, &ReadOptions::default()).await;
        [in_memory, remote.expect("all shards answer").answer]
    }

    /// The members of an instance, best first, or why there is none.
    async fn top(&self, board: &str, window: &str, now: i64) -> Result<(String, Vec<String>), NoBoard> {
        let read = OfBoard {
            board: name(board),
            instance: asked(window, now),
            read: Top { start: Start::End(End::Top), limit: 100 },
        };
        let found = self.read(&read).await.map(|answer| {
            let answer = answer?;
            assert_eq!(answer.total, answer.body.entries.len() as u64);
            let members = answer.body.entries.iter().map(|listed| listed.member.to_string()).collect();
            Ok((answer.instance.to_string(), members))
        });
        let [in_memory, remote] = found;
        assert_eq!(in_memory, remote, "{board} {window}");
        remote
    }

    async fn instances(&self, list: &ListInstances) -> Result<InstancesOfBoard, NoBoard> {
        let [in_memory, remote] = self.read(list).await;
        let (Ok(one), Ok(other)) = (&in_memory, &remote) else {
            assert_eq!(in_memory.err(), remote.as_ref().err().cloned());
            return remote;
        };
        assert_eq!((&one.windows, one.total), (&other.windows, other.total));
        remote
    }
}

fn list(board: &str, window: &str, now: i64) -> ListInstances {
    ListInstances { board: name(board), asked: asked(window, now), before: None, limit: 100 }
}

/// The instances of a window as `name total`, open ones with a plus.
fn told(answer: &InstancesOfBoard, window: Window) -> Vec<String> {
    let found = answer.windows.iter().find(|found| found.window == window).expect("it is listed");
    let instance = |listed: &crate::query::ListedInstance| {
        let open = if listed.is_open { "+" } else { "" };
        format!("{}{open} {}", listed.instance, listed.total)
    };
    found.instances.iter().map(instance).collect()
}

#[tokio::test]
async fn each_instance_is_ranked_by_itself_on_any_split() {
    for count in SPLITS {
        let windows = Windows::new(count);
        windows.define(BOARD, &[Window::All, Window::Day], 12);
        for (nth, member) in ["a", "b", "c", "d", "e", "f", "g"].into_iter().enumerate() {
            let nth = nth as i64;
            windows.enter(BOARD, member, nth, FRIDAY);
            windows.enter("arena#2026-11-19", member, -nth, FRIDAY - DAY);
        }
        windows.enter("arena#2026-11-20", "c", 5, FRIDAY);
        for (window, instance, members) in [
            ("", "all", "g f e d c b a"),
            ("all", "all", "g f e d c b a"),
            ("day", "2026-11-20", "c"),
            ("2026-11-19", "2026-11-19", "a b c d e f g"),
            ("2026-11-18", "2026-11-18", ""),
        ] {
            let members = members.split_whitespace().map(str::to_owned).collect();
            assert_eq!(
                windows.top(BOARD, window, FRIDAY).await,
                Ok((instance.to_owned(), members)),
                "{window}"
            );
        }
        let score = Score::new(&[-2]).expect("one key");
        let read = |window| OfBoard {
            board: name(BOARD),
            instance: asked(window, FRIDAY),
            read: RanksOf { scores: std::slice::from_ref(&score) },
        };
        for (window, rank, total) in
            [("2026-11-19", 3, 7), ("day", 2, 1), ("all", 8, 7), ("2026-11-18", 1, 0)]
        {
            for answer in windows.read(&read(window)).await {
                let ranks = answer.expect("there is such an instance").body.expect("one key");
                let standing = ranks.first().expect("one score").standing;
                assert_eq!((standing.rank(), standing.total), (rank, total), "{window}");
            }
        }
        let read = OfBoard {
            board: name(BOARD),
            instance: asked("2026-11-19", FRIDAY),
            read: MemberOf { member: id("c") },
        };
        for answer in windows.read(&read).await {
            let entry = answer.expect("there is such an instance").body.expect("it is listed");
            assert_eq!((entry.listed.position, entry.listed.score.keys()), (3, &[-2][..]));
        }
    }
}

#[tokio::test]
async fn a_new_instance_is_empty_from_its_first_instant_on_and_no_shard_has_it() {
    for count in SPLITS {
        let windows = Windows::new(count);
        windows.define(BOARD, &[Window::Day], 1);
        windows.enter("arena#2026-11-20", "m", 5, FRIDAY);
        let entered = |instance: &str| Ok((instance.to_owned(), vec!["m".to_owned()]));
        assert_eq!(windows.top(BOARD, "", FRIDAY + DAY - 1).await, entered("2026-11-20"));
        assert_eq!(windows.top(BOARD, "", FRIDAY + DAY).await, Ok(("2026-11-21".to_owned(), Vec::new())));
        assert_eq!(windows.top(BOARD, "2026-11-20", FRIDAY + DAY).await, entered("2026-11-20"));
        // One closed instance is kept: Saturday's, once it has closed five minutes into Sunday.
        let closed = FRIDAY + 2 * DAY + 5 * 60 * 1_000_000;
        assert_eq!(windows.top(BOARD, "2026-11-20", closed - 1).await, entered("2026-11-20"));
        let dropped = windows.top(BOARD, "2026-11-20", closed).await;
        assert!(matches!(dropped, Err(NoBoard::Window(UnknownWindow::Dropped { .. }))), "{dropped:?}");
        let unknown = windows.top("nobody", "day", FRIDAY).await;
        assert_eq!(unknown, Err(NoBoard::Unknown));
    }
}

/// The clock of a node may be behind that of the queue.
#[tokio::test]
async fn an_instance_that_a_shard_in_memory_is_in_has_begun() {
    let windows = Windows::new(2);
    windows.define(BOARD, &[Window::Day], 12);
    windows.enter("arena#2026-11-20", "m", 5, FRIDAY);
    let read = OfBoard { board: name(BOARD), instance: asked("", FRIDAY - 1), read: crate::query::TotalOnly };
    let [in_memory, _] = windows.read(&read).await;
    let answer = in_memory.expect("it is known");
    assert_eq!((answer.instance.to_string().as_str(), answer.total), ("2026-11-20", 1));
}

#[tokio::test]
async fn a_members_boards_are_listed_by_one_instance_each() {
    for count in SPLITS {
        let windows = Windows::new(count);
        windows.define("all-only", &[Window::All], 12);
        windows.define("both", &[Window::Day, Window::All], 12);
        windows.define("days", &[Window::Day], 12);
        windows.define("weeks", &[Window::Week], 12);
        windows.define("none", &[Window::Day], 12);
        for (board, score) in [
            ("all-only", 1),
            ("both", 2),
            ("both#2026-11-19", 3),
            ("both#2026-11-20", 4),
            ("days#2026-11-19", 5),
            ("days#2026-11-20", 6),
            ("weeks#2026-W47", 7),
            ("none#2026-11-19", 8),
        ] {
            windows.enter(board, "m", score, FRIDAY);
            windows.enter(board, "other", 100, FRIDAY);
        }
        let named = || {
            let boards = ["none", "days", "nobody", "both"].map(name);
            BoardSelection::Named(boards.to_vec())
        };
        // The test's shards look at five trees for a page, so that it takes several.
        let all = |after, prefix: Option<&str>| {
            let prefixes = prefix.map(|prefix| vec![prefix.to_owned()]);
            BoardSelection::All { after, limit: 10, prefixes }
        };
        for (selection, window, expected, missing) in [
            (all(None, None), "", "all-only=1 both=2 days#2026-11-20=6 weeks#2026-W47=7", ""),
            (all(None, None), "day", "both#2026-11-20=4 days#2026-11-20=6", ""),
            (all(None, None), "2026-11-19", "both#2026-11-19=3 days#2026-11-19=5 none#2026-11-19=8", ""),
            (all(None, Some("days")), "", "days#2026-11-20=6", ""),
            (all(None, Some("days#")), "", "", ""),
            (named(), "", "days#2026-11-20=6 both=2", "none nobody"),
            (named(), "2026-11-19", "none#2026-11-19=8 days#2026-11-19=5 both#2026-11-19=3", "nobody"),
            (named(), "all", "both=2", "none days nobody"),
        ] {
            let mut read = MemberOnBoards {
                member: id("m"),
                boards: selection,
                instance: asked(window, FRIDAY),
                hidden: false,
                windows: None,
            };
            let (mut found, mut not_found) = (Vec::new(), Vec::new());
            loop {
                let [in_memory, remote] = windows.read(&read).await;
                let entries = |answer: &crate::query::EntriesOfMember| {
                    let entry = |(board, entry): &(BoardName, crate::query::MemberEntry)| {
                        assert_eq!((entry.standing.total, entry.standing.better), (2, 1), "{board}");
                        format!("{board}={}", entry.listed.score)
                    };
                    answer.entries.iter().map(entry).collect::<Vec<_>>()
                };
                assert_eq!(entries(&in_memory), entries(&remote));
                assert_eq!((in_memory.next, &in_memory.not_found), (remote.next, &remote.not_found));
                found.extend(entries(&remote));
                not_found.extend(remote.not_found.iter().map(ToString::to_string));
                match (&mut read.boards, remote.next) {
                    (BoardSelection::All { after, .. }, Some(next)) => *after = Some(next),
                    _ => break,
                }
            }
            if matches!(read.boards, BoardSelection::All { .. }) {
                found.sort_unstable();
            }
            assert_eq!(found.join(" "), expected, "{window}");
            assert_eq!(not_found.join(" "), missing, "{window}");
        }
    }
}

#[tokio::test]
async fn instances_are_listed_from_the_current_one_to_the_oldest_that_has_entries() {
    for count in SPLITS {
        let windows = Windows::new(count);
        windows.define(BOARD, &[Window::All, Window::Day, Window::Week], 12);
        for (instance, members) in [(BOARD, 3), ("arena#2026-11-20", 2), ("arena#2026-11-17", 4)] {
            for member in 0..members {
                windows.enter(instance, &format!("m{member}"), member, FRIDAY);
            }
        }
        let answer = windows.instances(&list(BOARD, "", FRIDAY)).await.expect("it is there");
        assert_eq!(
            answer.total.map(|(instance, total)| (instance.to_string(), total)),
            Some(("all".to_owned(), 3))
        );
        assert_eq!(told(&answer, Window::All), ["all+ 3"]);
        // Thursday is open until five minutes past midnight.
        let days = ["2026-11-20+ 2", "2026-11-19+ 0", "2026-11-18 0", "2026-11-17 4"];
        assert_eq!(told(&answer, Window::Day), days);
        assert_eq!(told(&answer, Window::Week), ["2026-W47+ 0"]);
        assert!(answer.windows.iter().all(|window| window.next.is_none()));

        // Twelve closed ones are kept: on the 29th, from the 17th on.
        let later = FRIDAY + 9 * DAY + 10 * 60 * 1_000_000;
        let answer = windows.instances(&list(BOARD, "day", later)).await.expect("it is there");
        assert_eq!(answer.windows.len(), 1);
        let listed = told(&answer, Window::Day);
        assert_eq!((listed.len(), listed.last().map(String::as_str)), (13, Some("2026-11-17 4")));
        let answer = windows.instances(&list(BOARD, "day", later + DAY)).await.expect("it is there");
        assert_eq!(told(&answer, Window::Day).last().map(String::as_str), Some("2026-11-20 2"));
        let one = windows.instances(&list(BOARD, "2026-11-17", later)).await.expect("it is there");
        assert_eq!(told(&one, Window::Day), ["2026-11-17 4"]);
        let dropped = windows.instances(&list(BOARD, "2026-11-17", later + DAY)).await;
        assert!(matches!(dropped, Err(NoBoard::Window(UnknownWindow::Dropped { .. }))), "{dropped:?}");

        // Page by page.
        let mut page = ListInstances { limit: 5, ..list(BOARD, "", later) };
        let mut all = Vec::new();
        loop {
            let answer = windows.instances(&page).await.expect("it is there");
            let days = answer.windows.iter().find(|window| window.window == Window::Day).expect("listed");
            all.extend(told(&answer, Window::Day));
            page.before = days.next;
            if page.before.is_none() {
                break;
            }
        }
        assert_eq!(all, listed);
        // However few are on a page, the list ends with the oldest that has entries.
        for limit in 1..=5 {
            let mut page = ListInstances { limit, ..list(BOARD, "day", FRIDAY) };
            let mut pages = Vec::new();
            loop {
                let answer = windows.instances(&page).await.expect("it is there");
                pages.push(told(&answer, Window::Day));
                page.before = answer.windows.first().and_then(|days| days.next);
                if page.before.is_none() {
                    break;
                }
            }
            assert_eq!(pages.concat(), days, "{limit}");
            assert_eq!(pages.len(), days.len().div_ceil(limit), "{limit}: no page is empty");
        }
        // Of the future nothing is listed, and behind the only instance of a window nothing.
        let before =
            |name| ListInstances { before: crate::window::Instance::of_name(name), ..list(BOARD, "", later) };
        let answer = windows.instances(&before("9999-12-31")).await.expect("it is there");
        assert_eq!(told(&answer, Window::Day), listed);
        for last in ["2026-11-17", "1971-01-01"] {
            let answer = windows.instances(&before(last)).await.expect("it is there");
            assert_eq!(told(&answer, Window::Day), [""; 0]);
        }
        assert_eq!(told(&windows.instances(&before("all")).await.expect("there"), Window::All), [""; 0]);
    }
}

#[tokio::test]
async fn totals_of_boards_are_of_one_instance_each() {
    let windows = Windows::new(3);
    windows.define("both", &[Window::Day, Window::All], 12);
    windows.define("days", &[Window::Day], 12);
    for member in ["a", "b", "c"] {
        windows.enter("both", member, 1, FRIDAY);
        windows.enter("days#2026-11-19", member, 1, FRIDAY);
    }
    windows.enter("days#2026-11-20", "a", 1, FRIDAY);
    let boards: Vec<(BoardName, RegisteredBoard)> =
        ["both", "days"].map(|board| (name(board), windows.known(board))).to_vec();
    for (window, expected) in [
        ("", ["all 3", "2026-11-20 1"]),
        ("day", ["2026-11-20 0", "2026-11-20 1"]),
        ("all", ["all 3", ""]),
        ("2026-11-19", ["2026-11-19 0", "2026-11-19 3"]),
    ] {
        let read = TotalsOf { boards: &boards, instance: asked(window, FRIDAY) };
        for (totals, _) in windows.read(&read).await {
            let told = |total: &Option<(crate::window::Instance, u64)>| {
                total.map_or_else(String::new, |(instance, total)| format!("{instance} {total}"))
            };
            assert_eq!(totals.iter().map(told).collect::<Vec<_>>(), expected, "{window}");
        }
    }
}

#[tokio::test]
async fn every_instance_shows_its_best_entries_only() {
    for count in SPLITS {
        let windows = Windows::new(count);
        let with = |capacity| Definition {
            windows: vec![Window::All, Window::Day],
            capacity,
            ..Definition::default()
        };
        windows.define_as(BOARD, with(Some(3)));
        windows.define("other", &[Window::All, Window::Day], 12);
        for (nth, member) in (0..).zip(["a", "b", "c", "d", "e"]) {
            for board in [BOARD, "other"] {
                windows.enter(board, member, nth, FRIDAY);
            }
            windows.enter("arena#2026-11-18", member, -nth, FRIDAY - 2 * DAY);
        }
        windows.enter("arena#2026-11-20", "a", 1, FRIDAY);
        let of_a = async |window: &str| {
            let boards = BoardSelection::Named(["nobody", BOARD, "other"].map(name).to_vec());
            let read = MemberOnBoards {
                member: id("a"),
                boards,
                instance: asked(window, FRIDAY),
                hidden: false,
                windows: None,
            };
            let all = BoardSelection::All { after: None, limit: 10, prefixes: None };
            let unnamed = MemberOnBoards {
                member: id("a"),
                boards: all,
                instance: asked(window, FRIDAY),
                hidden: false,
                windows: None,
            };
            let told = |found: &crate::query::EntriesOfMember| {
                let entry = |(board, entry): &(BoardName, crate::query::MemberEntry)| {
                    format!("{board} {}/{}", entry.listed.position, entry.standing.total)
                };
                found.entries.iter().map(entry).collect::<Vec<_>>().join(" ")
            };
            let [found, remote] = windows.read(&read).await;
            assert_eq!((told(&found), &found.not_found), (told(&remote), &remote.not_found));
            let [all, _] = windows.read(&unnamed).await;
            assert_eq!(told(&all), told(&found));
            let not_found = found.not_found.iter().map(ToString::to_string).collect::<Vec<_>>();
            (told(&found), not_found.join(" "))
        };
        let shown = |members: &str| members.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (capacity, all, past) in [
            (Some(3), "e d c", "a b c"),
            (Some(1), "e", "a"),
            (None, "e d c b a", "a b c d e"),
            (Some(4), "e d c b", "a b c d"),
        ] {
            let changed = windows.registry.define(&name(BOARD), with(capacity)).expect("it may change");
            assert!(matches!(changed, Defined::Changed(_) | Defined::Same(_)));
            for (window, instance, members) in
                [("all", "all", all), ("2026-11-18", "2026-11-18", past), ("day", "2026-11-20", "a")]
            {
                let found = windows.top(BOARD, window, FRIDAY).await;
                assert_eq!(found, Ok((instance.to_owned(), shown(members))), "{capacity:?} {window}");
            }
            let (all, past) = (shown(all).len(), shown(past).len());
            let answer = windows.instances(&list(BOARD, "", FRIDAY)).await.expect("it is there");
            assert_eq!(answer.total.map(|(_, total)| total), Some(all as u64));
            assert_eq!(told(&answer, Window::All), [format!("all+ {all}")]);
            let days = ["2026-11-20+ 1".to_owned(), "2026-11-19+ 0".to_owned(), format!("2026-11-18 {past}")];
            assert_eq!(told(&answer, Window::Day), days);
            let boards = [(name(BOARD), windows.known(BOARD)), (name("other"), windows.known("other"))];
            let read = TotalsOf { boards: &boards, instance: asked("", FRIDAY) };
            for (totals, _) in windows.read(&read).await {
                let totals: Vec<u64> = totals.iter().flatten().map(|(_, total)| *total).collect();
                assert_eq!(totals, [all as u64, 5]);
            }
            let expected =
                if all == 5 { ("arena 5/5 other 5/5", "nobody") } else { ("other 5/5", "nobody arena") };
            let (found, not_found) = of_a("all").await;
            assert_eq!((&*found, &*not_found), expected);
            let (found, not_found) = of_a("2026-11-18").await;
            let expected = format!("arena#2026-11-18 1/{past}");
            assert_eq!((found, &*not_found), (expected, "nobody other"));
        }
    }
}

#[test]
fn an_instance_is_over_with_its_board_and_otherwise_empty_until_a_job_enters_it() {
    let windows = Windows::new(1);
    windows.define(BOARD, &[Window::Day], 12);
    windows.enter("arena#2026-11-20", "m", 1, FRIDAY);
    let first = windows.known(BOARD).incarnation;
    let shard = &windows.shards[0];
    let life_of = |board: &str, incarnation| {
        let life = BoardLife { board: name(board), incarnation };
        let Reply::Counts(counts) =
            answer(&shard.read(Purpose::Read), &Question::Counts(vec![(life, vec![])]))
        else {
            unreachable!("the reply fits the question")
        };
        (counts[0].life, counts[0].total)
    };
    assert_eq!(life_of("arena#2026-11-20", first), (LifeOnShard::Here, 1));
    assert_eq!(life_of("arena#2026-11-21", first), (LifeOnShard::NotYet, 0));
    assert_eq!(life_of("arena#2026-11-20", Incarnation(first.0 + 1)), (LifeOnShard::NotYet, 0));
    let drop = BoardEvent::Drop { board: name(BOARD), incarnation: first, number: None };
    let instance = BoardEvent::Drop { board: name("arena#2026-11-20"), incarnation: first, number: None };
    shard.write(Purpose::Apply).apply(&Step { events: vec![instance, drop], ..Step::default() });
    assert_eq!(life_of("arena#2026-11-20", first), (LifeOnShard::Over, 0));
    assert_eq!(life_of("arena#2026-11-21", first), (LifeOnShard::Over, 0));
}

//! Movement is what two sorted vectors say, over any split, in memory and remote.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::IteratorRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::remote::reply_of;
use super::windows::{DAY, FRIDAY, Windows, asked, name};
use super::{BOARD, SPLITS, id, time};
use crate::board::Definition;
use crate::query::question::{Question, ShardReply};
use crate::query::{
    Around, AroundMember, AskTerms, BoardRead, End, Listed, ListedMovement, LookupMembers, MemberOf,
    MovementAsked, NoBoard, NoMovement, NoReply, OfBoard, ReadOptions, ShardClient, Start, Top,
    UnknownWindow, VisitEntries, WithMovement, read_remote,
};
use crate::state_lock::Purpose;
use crate::types::{ShardId, shard_of};
use crate::window::Window;

const HOUR: i64 = DAY / 24;

/// Score and time of a member's entry.
type Entry = (i64, i64);

pub(super) fn windows(shards: u16) -> Windows {
    let windows = Windows::new(shards);
    let with_day = vec![Window::All, Window::Day];
    windows
        .define_as(BOARD, Definition { windows: with_day.clone(), movement: true, ..Definition::default() });
    windows.define_as("other", Definition { windows: with_day, ..Definition::default() });
    windows
}

/// Brings what a member had when a day began and what it has now, as its shard keeps them.
fn bring(windows: &Windows, day: &str, member: &str, then: Option<Entry>, now: Option<Entry>) {
    let put = |on_shard: &str, entry: Option<Entry>| {
        let Some((score, at)) = entry else { return };
        windows.enter(on_shard, member, score, at);
    };
    put(BOARD, now);
    if then != now {
        put(&format!("{BOARD}#{day}.then"), then);
        put(&format!("{BOARD}#{day}.now"), now);
    }
}

/// Members best first.
fn order(entries: &BTreeMap<String, Entry>) -> Vec<&String> {
    let mut order: Vec<_> = entries.iter().map(|(member, (score, at))| (-score, *at, member)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, member)| member).collect()
}

fn movement(then: &[&String], now: usize, member: &str) -> ListedMovement {
    match then.iter().position(|other| *other == member) {
        Some(then) => ListedMovement::By(then as i64 - now as i64),
        None => ListedMovement::NotListedThen,
    }
}

fn read<R>(read: R, board: &str, window: &str, since: Window, now: i64) -> OfBoard<WithMovement<R>> {
    let movement = Some(MovementAsked { board: name(board), window: since, now: time(now), entries: 1 });
    OfBoard { board: name(board), instance: asked(window, now), read: WithMovement { read, movement } }
}

/// The entries of an answer, which is the same in memory and remote.
async fn entries<R>(windows: &Windows, asked: R, now: i64) -> Vec<Listed>
where
    R: BoardRead<Answer: VisitEntries> + 'static,
{
    let read = read(asked, BOARD, "", Window::Day, now);
    let [in_memory, remote] = windows.read(&read).await.map(|answer| {
        let mut answer = answer.expect("the board has movement");
        let mut entries = Vec::new();
        answer.body.each_entry(&mut |listed| entries.push(listed.clone()));
        (answer.as_of, entries)
    });
    assert_eq!(in_memory.1, remote.1);
    // Where a member is not, only its home shard was asked.
    assert!(in_memory.0 == remote.0 || remote.1.is_empty());
    remote.1
}

async fn check(windows: &Windows, then: &BTreeMap<String, Entry>, now: &BTreeMap<String, Entry>, at: i64) {
    let (then, order_now) = (order(then), order(now));
    let check = |entries: Vec<Listed>, expected: usize| {
        assert_eq!(entries.len(), expected);
        for listed in entries {
            let position = order_now.iter().position(|member| **member == *listed.member).expect("listed");
            assert_eq!(listed.position, position as u64 + 1);
            assert_eq!(listed.movement, movement(&then, position, &listed.member), "{}", listed.member);
        }
    };
    for (from, limit) in [(End::Top, 1_000), (End::Bottom, 7)] {
        let found = entries(windows, Top { start: Start::End(from), limit }, at).await;
        check(found, limit.min(now.len()));
    }
    let members: Vec<_> = now.keys().chain([&"nobody".to_owned()]).map(|member| id(member)).collect();
    for member in now.keys().take(5) {
        check(entries(windows, MemberOf { member: id(member) }, at).await, 1);
        let around = Around { above: 2, below: 2, fill: true };
        let found = entries(windows, AroundMember { member: id(member), around }, at).await;
        check(found, now.len().min(5));
    }
    check(entries(windows, LookupMembers { members: members.into() }, at).await, now.len());
    assert_eq!(entries(windows, MemberOf { member: id("nobody") }, at).await, []);
}

#[tokio::test]
async fn movement_is_what_two_sorted_vectors_say_on_any_split() {
    let mut random = StdRng::seed_from_u64(5);
    for count in SPLITS {
        for members in [1, 4, 60] {
            let windows = windows(count);
            let (mut then, mut now) = (BTreeMap::new(), BTreeMap::new());
            for number in 0..members {
                let member = format!("m{number}");
                // Few scores and times: many ties.
                let mut entry =
                    |from: i64| (random.random_range(0..4), from + random.random_range(0..3) * HOUR);
                let before = entry(FRIDAY - 5 * HOUR);
                let after = entry(FRIDAY);
                let (before, after) = match random.random_range(0..8) {
                    0 => (Some(before), None),
                    1 => (None, Some(after)),
                    2 | 3 => (Some(before), Some(after)),
                    _ => (Some(before), Some(before)),
                };
                bring(&windows, "2026-11-20", &member, before, after);
                then.extend(before.map(|entry| (member.clone(), entry)));
                now.extend(after.map(|entry| (member.clone(), entry)));
            }
            check(&windows, &then, &now, FRIDAY + 3 * HOUR).await;
            // Nothing has changed since the next day began, although no shard knows that it has.
            check(&windows, &now, &now, FRIDAY + DAY).await;
        }
    }
}

/// A shard may be in the next day by its messages while it is still Friday by the clock of the reading node:
/// that day is the current one then. Of Friday there is nothing any more.
#[tokio::test]
async fn the_latest_time_of_a_shard_decides_which_instance_is_current() {
    for count in SPLITS {
        let windows = windows(count);
        let (mut then, mut now) = (BTreeMap::new(), BTreeMap::new());
        for number in 0..9 {
            let member = format!("m{number}");
            let before = (number, FRIDAY + HOUR);
            let after = if number == 2 { (100, FRIDAY + DAY) } else { before };
            bring(&windows, "2026-11-21", &member, Some(before), Some(after));
            then.insert(member.clone(), before);
            now.insert(member, after);
        }
        let times = windows.shards.iter().map(|shard| shard.read(Purpose::Read).time);
        assert_eq!(times.max(), Some(time(FRIDAY + DAY)));
        check(&windows, &then, &now, FRIDAY + DAY - 1).await;
    }
}

/// Shards of which an entry changes before each reply, in the day that is current.
struct Changing {
    windows: Windows,
    entries: Mutex<BTreeMap<String, Entry>>,
    changed: Mutex<BTreeSet<String>>,
    random: Mutex<StdRng>,
}

impl Changing {
    fn change(&self, shard: ShardId) {
        let mut entries = self.entries.lock();
        let count = self.shard_count();
        let of_shard: Vec<_> =
            entries.iter_mut().filter(|(member, _)| shard_of(&id(member), count) == shard).collect();
        let mut random = self.random.lock();
        let Some((member, entry)) = of_shard.into_iter().choose(&mut *random) else { return };
        if self.changed.lock().insert(member.clone()) {
            self.windows.enter("arena#2026-11-20.then", member, entry.0, entry.1);
        }
        *entry = (random.random_range(0..5), FRIDAY + random.random_range(0..HOUR));
        for on_shard in ["arena#2026-11-20.now", BOARD] {
            self.windows.enter(on_shard, member, entry.0, entry.1);
        }
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
            self.change(shard);
            Ok(reply_of(&self.windows.shards[shard.index()], question))
        })
    }
}

/// The entries are of earlier sequences than what they are compared with, which is what it was when the day
/// began.
#[tokio::test]
async fn positions_of_then_stay_while_shards_move() {
    for count in [1, 2, 5] {
        let windows = windows(count);
        let mut random = StdRng::seed_from_u64(6);
        let mut entries = BTreeMap::new();
        for number in 0..80 {
            let (member, entry) = (format!("m{number}"), (random.random_range(0..5), FRIDAY - number * HOUR));
            bring(&windows, "2026-11-20", &member, Some(entry), Some(entry));
            entries.insert(member, entry);
        }
        let then = entries.clone();
        let then = order(&then);
        // Each shard is in the day.
        for number in 0..80 {
            let member = format!("n{number}");
            bring(&windows, "2026-11-20", &member, None, Some((number % 5, FRIDAY + number)));
        }
        let (entries, random) = (Mutex::new(entries), Mutex::new(random));
        let changing = Changing { windows, entries, changed: Mutex::default(), random };
        for _ in 0..100 {
            let top = Top { start: Start::End(End::Top), limit: 40 };
            let asked = read(top, BOARD, "", Window::Day, FRIDAY + 2 * HOUR);
            let options = ReadOptions::default();
            let reply = read_remote(&changing, &changing.windows.registry, &asked, &options).await;
            let answer = reply.expect("the shards answer").answer.expect("the board has movement");
            assert_eq!(answer.body.entries.len(), 40);
            for listed in answer.body.entries {
                let now = usize::try_from(listed.position).expect("a few") - 1;
                assert_eq!(listed.movement, movement(&then, now, &listed.member), "{}", listed.member);
            }
        }
    }
}

#[tokio::test]
async fn without_movement_and_of_other_windows_there_is_none() {
    let windows = windows(3);
    let top = || Top { start: Start::End(End::Top), limit: 1 };
    let day = crate::window::Instance::of_name("2026-11-20").expect("an instance");
    let no_week = UnknownWindow::NotOfBoard { asked: Window::Week, windows: "all, day".to_owned() };
    for (board, window, since, why) in [
        ("other", "", Window::Day, NoBoard::Movement(NoMovement::NotKept)),
        (BOARD, "day", Window::Day, NoBoard::Movement(NoMovement::OfInstance(day))),
        (BOARD, "2026-11-20", Window::Day, NoBoard::Movement(NoMovement::OfInstance(day))),
        (BOARD, "", Window::Week, NoBoard::Window(no_week)),
        ("none", "", Window::Day, NoBoard::Unknown),
    ] {
        for answer in windows.read(&read(top(), board, window, since, FRIDAY)).await {
            assert_eq!(answer.expect_err("it has none"), why, "{board} {window} {since:?}");
        }
    }
    for answer in windows.read(&read(top(), BOARD, "all", Window::Day, FRIDAY)).await {
        assert!(answer.is_ok());
    }
}

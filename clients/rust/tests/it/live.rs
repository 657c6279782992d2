//! Boards as they change, at a real node that is killed, and over connections that are lost.

use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt};
use ranktree_client::types::{DefinitionInput, Job, ListedEntry, Op, Wait};
use ranktree_client::{Error, LiveEvent, LiveView, Ranktree};
use tokio::time::timeout;

use crate::support::LIMIT;
use crate::support::fake::Fake;
use crate::support::link::Link;
use crate::support::node::Node;

type Events = BoxStream<'static, Result<LiveEvent, Error>>;

async fn next(events: &mut Events) -> LiveEvent {
    let next = timeout(LIMIT, events.try_next()).await.expect("something is told");
    next.expect("it is no error").expect("it has no end")
}

/// Takes events until the view is as expected.
async fn until(events: &mut Events, view: &mut LiveView, expected: impl Fn(&LiveView) -> bool) {
    while !expected(view) {
        view.apply(next(events).await);
    }
}

async fn write(client: &Ranktree, scores: &[(&str, i64)]) {
    let jobs: Vec<_> = scores.iter().map(|(member, score)| Job::scored("arena", *member, *score)).collect();
    client.write_many(&jobs).wait(Wait::Applied).await.expect("they are well-formed");
}

fn members(entries: &[ListedEntry]) -> Vec<(&str, i64)> {
    entries.iter().map(|entry| (&*entry.member, entry.score.first())).collect()
}

#[tokio::test]
async fn a_watched_board_is_told_as_a_whole_and_then_by_its_changes() {
    let node = Node::alone().await;
    let client = node.client();
    client.define("arena", &DefinitionInput::new()).await.expect("it is well-formed");
    write(&client, &[("alice", 30), ("bob", 20), ("carol", 10)]).await;
    let request = client.live("arena").top(2).max_rate(20).members(["carol", "a,b", "nobody"]);
    let (mut events, mut view) = (request.stream(), LiveView::default());
    let first = next(&mut events).await;
    assert!(matches!(first, LiveEvent::State(_)), "{first:?}");
    view.apply(first);
    assert_eq!((view.total, view.is_connected, view.is_stale), (3, true, false));
    assert_eq!(members(&view.entries), [("alice", 30), ("bob", 20)]);
    assert_eq!(members(&view.members), [("carol", 10)]);
    assert_eq!(view.not_found, ["a,b", "nobody"]);
    write(&client, &[("a,b", i64::MAX), ("carol", 25)]).await;
    let second = next(&mut events).await;
    assert!(matches!(second, LiveEvent::Changes(_)), "{second:?}");
    view.apply(second);
    until(&mut events, &mut view, |view| view.not_found == ["nobody"] && view.total == 4).await;
    until(&mut events, &mut view, |view| members(&view.members).contains(&("carol", 25))).await;
    assert_eq!(members(&view.entries), [("a,b", i64::MAX), ("alice", 30)]);
    assert_eq!(members(&view.members), [("a,b", i64::MAX), ("carol", 25)]);
    client.remove("arena", "a,b").await.expect("it is there");
    until(&mut events, &mut view, |view| view.not_found.len() == 2).await;
    assert_eq!(members(&view.entries), [("alice", 30), ("carol", 25)]);
    assert_eq!(members(&view.members), [("carol", 25)]);
    let as_of = view.as_of.clone().expect("each event has one");
    client.board("arena").after(as_of).await.expect("it is a token");
}

#[tokio::test]
async fn a_lost_connection_goes_on_where_it_was() {
    let node = Node::alone().await;
    let client = node.client();
    write(&client, &[("alice", 30), ("bob", 20)]).await;
    let link = Link::to(node.port()).await;
    let watcher = Ranktree::new(link.url("http")).expect("it is an address");
    let mut events = watcher.live("arena").max_rate(20).stream();
    let mut view = LiveView::default();
    until(&mut events, &mut view, |view| view.total == 2).await;
    for round in 1..=3_i64 {
        link.cut();
        // Nobody hears of this on the connection that is lost.
        write(&client, &[("carol", round), ("bob", 20 + round)]).await;
        let mut told = Vec::new();
        while view
            .entries
            .iter()
            .find(|entry| entry.member == "carol")
            .is_none_or(|entry| entry.score != round)
        {
            let event = next(&mut events).await;
            told.push(match &event {
                LiveEvent::Disconnected { .. } => "disconnected",
                LiveEvent::Changes(_) => "changes",
                _ => "state",
            });
            view.apply(event);
        }
        // The node knows what the watcher had.
        let (first, later) = told.split_first().expect("something was told");
        assert!(*first == "disconnected" && later.iter().all(|told| *told == "changes"), "{told:?}");
        assert_eq!(members(&view.entries), [("alice", 30), ("bob", 20 + round), ("carol", round)]);
    }
}

/// With ties, members that come back, and a connection that is cut again and again.
#[tokio::test]
async fn what_is_put_together_is_what_a_read_answers() {
    let node = Node::alone().await;
    let client = node.client();
    client.define("arena", &DefinitionInput::new()).await.expect("it is well-formed");
    let link = Link::to(node.port()).await;
    let watcher = Ranktree::new(link.url("http")).expect("it is an address");
    let watched = ["p1", "p2", "p3", "p4"];
    let mut events = watcher.live("arena").top(20).max_rate(20).members(watched).stream();
    let mut view = LiveView::default();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 1..=60_i64 {
        let mut jobs = Vec::new();
        for _ in 0..random.usize(1..8) {
            let member = format!("p{}", random.u32(0..60));
            jobs.push(match random.u32(0..4) {
                0 => Job::new(member).board("arena").op(Op::Remove),
                _ => Job::scored("arena", member, random.i64(0..20)),
            });
        }
        // Each round changes what is watched.
        jobs.push(Job::scored("arena", "first", 1_000 + round));
        client.write_many(&jobs).wait(Wait::Applied).await.expect("they are well-formed");
        if round % 7 == 0 {
            link.cut();
        }
        if round % 5 == 0 {
            let page = client.top("arena").limit(20).await.expect("it is there");
            let group = client.lookup("arena", watched).await.expect("it is there");
            until(&mut events, &mut view, |view| {
                let place = |member: &str, score, position| (member.to_owned(), score, position);
                let told = view.members.iter().map(|entry| place(&entry.member, entry.score, entry.position));
                let read =
                    group.entries.iter().map(|entry| place(&entry.member, entry.score, entry.position));
                let mut not_found = view.not_found.clone();
                not_found.sort();
                (&view.entries, view.total) == (&page.entries, page.total)
                    && told.eq(read)
                    && not_found == group.not_found
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_node_that_was_killed_is_watched_again() {
    let mut node = Node::alone().await;
    let client = node.client();
    write(&client, &[("alice", 30), ("bob", 20)]).await;
    let mut events = client.live("arena").top(10).max_rate(20).stream();
    let mut view = LiveView::default();
    until(&mut events, &mut view, |view| view.total == 2).await;
    node.kill();
    until(&mut events, &mut view, |view| !view.is_connected).await;
    assert_eq!(view.total, 2, "what was known stays");
    node.start_again().await;
    write(&client, &[("carol", 40)]).await;
    until(&mut events, &mut view, |view| view.total == 3).await;
    assert_eq!(members(&view.entries), [("carol", 40), ("alice", 30), ("bob", 20)]);
}

#[tokio::test]
async fn a_silent_connection_is_made_again() {
    let node = Node::alone().await;
    let client = node.client();
    write(&client, &[("alice", 30)]).await;
    let link = Link::to(node.port()).await;
    let watcher = Ranktree::builder(link.url("http")).silence_max(Duration::from_millis(500)).build();
    let mut events = watcher.expect("it is an address").live("arena").max_rate(20).stream();
    let mut view = LiveView::default();
    until(&mut events, &mut view, |view| view.total == 1).await;
    link.set_deaf(true);
    write(&client, &[("bob", 20)]).await;
    until(&mut events, &mut view, |view| !view.is_connected).await;
    link.set_deaf(false);
    // The connection that was made while nothing came through is silent, too.
    until(&mut events, &mut view, |view| view.total == 2).await;
    assert!(link.opened() >= 2, "{} connections", link.opened());
}

#[tokio::test]
async fn a_heartbeat_keeps_a_quiet_connection() {
    let node = Node::alone().await;
    let client = node.client();
    write(&client, &[("alice", 30)]).await;
    // More than the 10 seconds between two comments, and less than two of them.
    let watcher = Ranktree::builder(&node.url).silence_max(Duration::from_secs(18)).build();
    let mut events = watcher.expect("it is an address").live("arena").stream();
    let first = next(&mut events).await;
    assert!(matches!(first, LiveEvent::State(_)), "{first:?}");
    let quiet = timeout(Duration::from_secs(25), events.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}

#[tokio::test]
async fn what_cannot_be_watched_any_more_ends_the_stream() {
    let node = Node::alone().await;
    let client = node.client();
    let mut absent = client.live("arena").stream();
    let error = absent.try_next().await.expect_err("there is no such board");
    assert!(matches!(&error, Error::NotFound(problem) if problem.code == "unknown_board"), "{error}");
    assert!(absent.next().await.is_none());
    write(&client, &[("alice", 30)]).await;
    let mut events = client.live("arena").stream();
    next(&mut events).await;
    client.drop_board("arena").await.expect("it is there");
    let error = loop {
        match timeout(LIMIT, events.next()).await.expect("something is told") {
            Some(Err(error)) => break error,
            Some(Ok(_)) => {}
            None => panic!("it says why"),
        }
    };
    assert!(matches!(&error, Error::NotFound(problem) if problem.code == "unknown_board"), "{error}");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_watcher_that_comes_back_says_what_it_had() {
    let fake = Fake::start().await;
    let state = |id: &str, name: &str, total: u64| {
        let lists = r#""entries":[],"left":[],"members":[],"not_found":[],"as_of":"0:1""#;
        let data = format!(r#"{{"board":"arena","window":"all","total":{total},{lists}}}"#);
        format!("id: {id}\nevent: {name}\ndata: {data}\n\n:\n\nevent: later_versions\ndata: {{}}\n\n")
    };
    fake.answer(200, "", &state("7-0:1", "state", 1));
    fake.answer(503, "retry-after: 0\r\n", r#"{"code":"overloaded","detail":"too many watchers"}"#);
    fake.answer(500, "", r#"{"code":"internal","detail":"?"}"#);
    fake.answer(200, "", &state("8-0:2", "changes", 2));
    fake.answer(401, "", r#"{"code":"invalid_token","detail":"the token was taken back"}"#);
    let client = Ranktree::builder(&fake.url).bearer("rkt_abc").build().expect("it is an address");
    let events = client.live("arena").after("0:1").stream();
    let told: Vec<_> = timeout(LIMIT, events.collect()).await.expect("it ends");
    let totals = told.iter().map(|told| match told {
        Ok(LiveEvent::State(state)) => format!("state {}", state.total),
        Ok(LiveEvent::Changes(changes)) => format!("changes {}", changes.total),
        Ok(_) => "disconnected".to_owned(),
        Err(error) => error.code().unwrap_or_default().to_owned(),
    });
    let totals: Vec<_> = totals.collect();
    assert_eq!(totals, ["state 1", "disconnected", "changes 2", "disconnected", "invalid_token"]);
    let asked: Vec<_> = fake.asked().iter().map(|head| head.to_lowercase()).collect();
    let ids: Vec<_> =
        asked.iter().map(|head| head.lines().find_map(|line| line.strip_prefix("last-event-id: "))).collect();
    assert_eq!(ids, [None, Some("7-0:1"), Some("7-0:1"), Some("7-0:1"), Some("8-0:2")]);
    let waits: Vec<_> = asked.iter().map(|head| head.contains("after=")).collect();
    assert_eq!(waits, [true, false, false, false, false], "what it names is in the first event");
    assert!(asked.iter().all(|head| head.contains("accept: text/event-stream")), "{asked:?}");
    assert!(asked.iter().all(|head| head.contains("authorization: bearer rkt_abc")), "{asked:?}");
}

//! Boards that are watched: what a watcher is told first, what afterwards, and when it ends.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::{Client, entry_path};
use crate::support::nats::{Nats, wait_state, wait_until};
use crate::support::node::Node;
use crate::support::raw::get;
use crate::support::tokens::new_token;
use crate::support::watch::{Board, Event, Watch};

fn put(client: &Client, board: &str, member: &str, score: i64) -> String {
    let (status, answer) = client.put(&entry_path(board, member), &json!({ "score": score }));
    assert!(status < 300, "{answer}");
    answer["token"].as_str().expect("a token").to_owned()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|entry| entry.as_str().or_else(|| entry["member"].as_str()).expect("a member"))
        .collect()
}

fn watch(node: &Node, path: &str) -> Watch {
    let watch = Watch::open(node.address(), path, &[]);
    assert_eq!(watch.status, 200, "{}", watch.head);
    watch
}

fn resume(node: &Node, path: &str, last: &Event) -> Event {
    let mut watch = Watch::open(node.address(), path, &[format!("last-event-id: {}", last.id)]);
    assert_eq!(watch.status, 200, "{}", watch.head);
    watch.event()
}

/// The value of a metric that has these labels.
fn metric(node: &Node, name: &str) -> u64 {
    let metrics = get(node.address(), "/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |value| value.trim().parse().expect("a count"))
}

#[test]
fn a_watcher_is_told_the_state_and_then_what_changes() {
    let node = Node::shards(3).start();
    let client = node.client();
    for (member, score) in [("a", 50), ("b", 40), ("c", 30), ("d", 20), ("e", 10)] {
        put(&client, "arena", member, score);
    }
    let mut watch = watch(&node, "/v1/boards/arena/live?top=3&members=e,nobody,x%2Cy&max_rate=20");
    for header in [
        "content-type: text/event-stream",
        "cache-control: no-cache",
        "x-accel-buffering: no",
        "x-content-type-options: nosniff",
    ] {
        assert!(watch.head.contains(header), "{header} in {}", watch.head);
    }
    let first = watch.event();
    let (_, top) = client.get("/v1/boards/arena/top?limit=3");
    assert_eq!(first.kind, "state");
    for field in ["board", "window", "total", "entries", "as_of"] {
        assert_eq!(first.data[field], top[field], "{field}");
    }
    assert_eq!(names(&first.data["members"]), ["e"]);
    assert_eq!(first.data["members"][0]["position"], 5);
    assert_eq!(names(&first.data["not_found"]), ["nobody", "x,y"]);

    let mut board = Board::default();
    board.take(&first);
    put(&client, "arena", "e", 45);
    let change = watch.event();
    board.take(&change);
    assert_eq!((change.kind.as_str(), board.total), ("changes", 5), "{change:?}");
    assert_eq!(names(&change.data["entries"]), ["e", "b"], "{change:?}");
    assert_eq!(names(&change.data["left"]), ["c"]);
    assert_eq!(names(&change.data["members"]), ["e"]);
    put(&client, "arena", "nobody", 1);
    let change = watch.event();
    board.take(&change);
    assert_eq!((names(&change.data["members"]), board.total), (vec!["nobody"], 6), "{change:?}");
    assert!(change.data["entries"].as_array().is_some_and(Vec::is_empty), "{change:?}");
    let (status, _) =
        client.send(ureq::http::Method::DELETE, &entry_path("arena", "nobody"), None).expect("it answers");
    assert_eq!(status, 200);
    let change = watch.event();
    board.take(&change);
    assert_eq!(names(&change.data["not_found"]), ["nobody"], "{change:?}");
    let (_, top) = client.get("/v1/boards/arena/top?limit=3");
    assert_eq!((&top["entries"], &top["total"]), (&json!(board.entries), &json!(board.total)));
}

#[test]
fn a_watcher_that_comes_back_goes_on_from_its_last_event() {
    let node = Node::shards(2).start();
    let client = node.client();
    put(&client, "arena", "a", 50);
    let path = "/v1/boards/arena/live?max_rate=20";
    let first = watch(&node, path).event();
    let same = resume(&node, path, &first);
    assert_eq!(same.kind, "changes", "it has the newest state: {same:?}");
    assert_eq!(
        (same.id.split('@').next(), names(&same.data["entries"])),
        (first.id.split('@').next(), vec![])
    );
    let token = put(&client, "arena", "b", 60);
    let next = resume(&node, &format!("{path}&after={token}"), &first);
    assert_eq!((next.kind.as_str(), names(&next.data["entries"])), ("changes", vec!["b", "a"]), "{next:?}");
    for unknown in ["", "7", "0123456789abcdef@0:1"] {
        let last = Event { kind: String::new(), id: unknown.to_owned(), data: Value::Null };
        let all = resume(&node, path, &last);
        assert_eq!((all.kind.as_str(), names(&all.data["entries"])), ("state", vec!["b", "a"]), "{unknown}");
    }
    // Of another question it says nothing.
    assert_eq!(resume(&node, "/v1/boards/arena/live?top=1", &first).kind, "state");
}

#[test]
fn one_who_comes_back_is_shown_what_changed_while_others_watched() {
    let node = Node::shards(2).start();
    let client = node.client();
    put(&client, "arena", "a", 50);
    put(&client, "arena", "p", 10);
    let path = "/v1/boards/arena/live?top=10&members=p&max_rate=20";
    let first = watch(&node, path).event();
    assert_eq!(names(&first.data["entries"]), ["a", "p"]);
    // The same board and rate, and another view.
    let mut other = watch(&node, "/v1/boards/arena/live?top=10&members=a&max_rate=20");
    other.event();
    wait_until("the first has left", || metric(&node, "ranktree_live_watchers") == 1);
    let token = put(&client, "arena", "p", 60);
    other.until(|event| names(&event.data["entries"]) == ["p", "a"]);
    let back = watch(&node, &format!("{path}&after={token}")).event();
    assert_eq!(names(&back.data["entries"]), ["p", "a"], "{back:?}");
    assert_eq!(back.data["members"][0]["score"], 60, "{back:?}");
    wait_until("it has left again", || metric(&node, "ranktree_live_watchers") == 1);
    put(&client, "arena", "p", 40);
    other.until(|event| names(&event.data["entries"]) == ["a", "p"]);
    let resumed = resume(&node, path, &back);
    assert_eq!((resumed.kind.as_str(), names(&resumed.data["entries"])), ("changes", vec!["a", "p"]));
    assert_eq!(resumed.data["members"][0]["score"], 40, "{resumed:?}");
}

#[test]
fn a_state_that_a_node_has_not_reached_yet_is_not_waited_for_longer_than_asked() {
    let node = Node::shards(1).start();
    put(&node.client(), "arena", "a", 50);
    let path = "/v1/boards/arena/live?timeout_ms=300";
    let mut ahead = watch(&node, path).event();
    ahead.id = format!("{}@0:999999", ahead.id.split('@').next().expect("an id"));
    let same = resume(&node, path, &ahead);
    assert_eq!((same.kind.as_str(), names(&same.data["entries"])), ("changes", vec![]), "{same:?}");
}

#[test]
fn a_watch_ends_with_its_board_and_begins_anew_when_that_is_cleared() {
    let node = Node::shards(2).start();
    let client = node.client();
    put(&client, "arena", "a", 50);
    let mut watch = watch(&node, "/v1/boards/arena/live?max_rate=20");
    assert_eq!(names(&watch.event().data["entries"]), ["a"]);
    assert_eq!(client.post("/v1/boards/arena:clear", &json!({})).0, 200);
    let cleared = watch.until(|event| event.kind == "state");
    assert_eq!((names(&cleared.data["entries"]), &cleared.data["total"]), (vec![], &json!(0)));
    put(&client, "arena", "b", 7);
    assert_eq!(names(&watch.event().data["entries"]), ["b"]);
    let (status, _) = client.send(ureq::http::Method::DELETE, "/v1/boards/arena", None).expect("it answers");
    assert_eq!(status, 200);
    let end = watch.until(|event| event.kind == "end");
    assert_eq!(end.data["code"], "unknown_board");
    assert_eq!(watch.next(), None, "and the stream is over");
    assert_eq!(Watch::open(node.address(), "/v1/boards/arena/live", &[]).refusal(), "unknown_board");
}

#[test]
fn a_watched_window_goes_on_with_its_next_instance() {
    let node = Node::shards(2).start();
    let client = node.client();
    let definition = json!({ "windows": ["all", "season"], "season": "manual" });
    assert!(client.put("/v1/boards/cup", &definition).0 < 300);
    let path = "/v1/boards/cup/live?window=season&max_rate=20";
    assert_eq!(Watch::open(node.address(), path, &[]).refusal(), "unknown_window");
    let open = || {
        let (status, answer) = client.post("/v1/boards/cup/seasons?force=true", &json!({}));
        assert!(status < 300, "{answer}");
    };
    open();
    wait_until("the season has begun", || client.get("/v1/boards/cup/top?window=season").0 == 200);
    put(&client, "cup", "a", 50);
    let (mut seasons, mut named, mut all) = (
        watch(&node, path),
        watch(&node, "/v1/boards/cup/live?window=s1"),
        watch(&node, "/v1/boards/cup/live"),
    );
    for (watch, window) in [(&mut seasons, "s1"), (&mut named, "s1"), (&mut all, "all")] {
        let first = watch.event();
        assert_eq!((first.data["window"].as_str(), names(&first.data["entries"])), (Some(window), vec!["a"]));
    }
    open();
    let next = seasons.until(|event| event.kind == "state");
    assert_eq!((next.data["window"].as_str(), names(&next.data["entries"])), (Some("s2"), vec![]));
    put(&client, "cup", "b", 60);
    assert_eq!(names(&seasons.event().data["entries"]), ["b"]);
    // It is not current any more, but still open: jobs of before may come.
    let last = all.until(|event| !event.data["entries"].as_array().is_some_and(Vec::is_empty));
    assert_eq!(names(&last.data["entries"]), ["b", "a"]);
}

#[test]
fn a_token_is_needed_and_a_watch_ends_when_it_is_taken_back() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let (reader, reader_lines) = new_token(&["--name", "reader", "--scope", "read", "--board-prefix", "eu-"]);
    let (game, game_lines) = new_token(&["--name", "game", "--scope", "write"]);
    let both = format!("{reader_lines}\n{game_lines}");
    fs::write(&file, &both).expect("it can be written");
    let node = Node::flags(&["--tokens", file.to_str().expect("UTF-8")]).start();
    let (client, reading) = (node.client().with_token(&game), node.client().with_token(&reader));
    put(&client, "eu-arena", "a", 1);
    put(&client, "us-arena", "a", 1);
    let bearer = |token: &str| vec![format!("authorization: Bearer {token}")];
    let refusal = |path: &str, headers: &[String]| Watch::open(node.address(), path, headers).refusal();
    assert_eq!(refusal("/v1/boards/eu-arena/live", &[]), "unauthorized");
    assert_eq!(
        refusal("/v1/boards/eu-arena/live", &bearer("rkt_no-such-token-0123456789abcdef")),
        "invalid_token"
    );
    assert_eq!(refusal("/v1/boards/us-arena/live", &bearer(&reader)), "forbidden_board");
    let path = "/v1/boards/eu-arena/live?max_rate=20";
    let (mut taken, mut kept) = (
        Watch::open(node.address(), path, &bearer(&reader)),
        Watch::open(node.address(), path, &bearer(&game)),
    );
    assert_eq!((taken.event().kind.as_str(), kept.event().kind.as_str()), ("state", "state"));
    fs::write(&file, &game_lines).expect("it can be written");
    let end = taken.until(|event| event.kind == "end");
    assert_eq!(end.data["code"], "invalid_token");
    put(&client, "eu-arena", "b", 2);
    assert_eq!(names(&kept.event().data["entries"]), ["b", "a"]);

    // One that is taken back while the first state is waited for does not begin to watch.
    fs::write(&file, both).expect("it can be written");
    wait_until("it is known again", || reading.get("/v1/boards/eu-arena/top").0 == 200);
    let last = put(&client, "eu-arena", "a", 3);
    let (shard, sequence) = last.split_once(':').expect("a token of one shard");
    let sequence: u64 = sequence.parse().expect("a sequence");
    let (address, headers) = (node.address().to_owned(), bearer(&reader));
    let path = format!("/v1/boards/eu-arena/live?after={shard}:{}&timeout_ms=60000", sequence + 200);
    let waiting = thread::spawn(move || Watch::open(&address, &path, &headers));
    // It is to wait by then. If it does not yet, it is refused as well.
    thread::sleep(Duration::from_millis(500));
    fs::write(&file, game_lines).expect("it can be written");
    wait_until("it is taken back", || reading.get("/v1/boards/eu-arena/top").0 == 401);
    for score in 0..=200 {
        put(&client, "eu-arena", "a", score);
    }
    assert_eq!(waiting.join().expect("it answers").refusal(), "invalid_token");
}

#[test]
fn what_is_asked_for_is_checked_and_watchers_are_limited() {
    let node = Node::flags(&["--max-watchers", "3", "--max-watchers-per-client", "2"]).start();
    put(&node.client(), "arena", "a", 1);
    let refusal = |query: &str| {
        let path = format!("/v1/boards/arena/live?{query}");
        let watch = Watch::open(node.address(), &path, &[]);
        (watch.status, watch.refusal())
    };
    let many: Vec<String> = (0..101).map(|number| format!("m{number}")).collect();
    for (query, code) in [
        ("top=101", "too_large"),
        ("max_rate=21", "too_large"),
        (&*format!("members={}", many.join(",")), "too_large"),
        ("max_rate=0", "bad_parameter"),
        ("top=x", "bad_parameter"),
        ("window=today", "bad_parameter"),
        ("partial=true", "bad_parameter"),
        ("members=%00", "bad_member"),
        ("after=7", "malformed"),
    ] {
        assert_eq!(refusal(query), (422, code.to_owned()), "{query}");
    }
    assert_eq!(refusal("after=0:999999&timeout_ms=50"), (504, "not_yet_applied".to_owned()));
    assert_eq!(refusal("window=day"), (404, "unknown_window".to_owned()));
    let first = watch(&node, "/v1/boards/arena/live");
    let _second = watch(&node, "/v1/boards/arena/live");
    assert_eq!(refusal(""), (503, "overloaded".to_owned()));
    assert_eq!(metric(&node, "ranktree_live_watchers"), 2);
    // Whoever leaves makes room.
    drop(first);
    wait_until("there is room", || Watch::open(node.address(), "/v1/boards/arena/live", &[]).status == 200);
}

#[test]
fn watchers_of_one_board_share_a_computation_and_boards_that_do_not_change_take_none() {
    const WATCHERS: usize = 50;
    let node = Node::shards(2).flags(&["--max-watchers-per-client", "0"]).start();
    let client = node.client();
    for board in 0..20 {
        put(&client, &format!("quiet-{board}"), "a", 1);
    }
    put(&client, "arena", "a", 1);
    let mut quiet: Vec<Watch> =
        (0..20).map(|board| watch(&node, &format!("/v1/boards/quiet-{board}/live"))).collect();
    let mut watchers: Vec<Watch> =
        (0..WATCHERS).map(|_| watch(&node, "/v1/boards/arena/live?max_rate=20")).collect();
    for watch in quiet.iter_mut().chain(&mut watchers) {
        assert_eq!(watch.event().kind, "state");
    }
    let computed = || metric(&node, "ranktree_live_computations_total");
    let before = computed();
    for score in 2..12 {
        put(&client, "arena", "a", score);
        for watch in &mut watchers {
            watch.until(|event| event.data["entries"][0]["score"] == score);
        }
    }
    // A change may come in while the one before is being computed.
    let took = computed() - before;
    assert!((10..=20).contains(&took), "{took} computations for 10 changes");
    assert!(
        quiet.iter_mut().all(|watch| watch.next().is_none_or(|event| event.kind.is_empty())),
        "heartbeats"
    );
}

#[test]
fn a_slow_client_holds_nobody_and_is_told_the_newest() {
    // It would be disconnected after a while.
    let node = Node::shards(1).flags(&["--write-seconds", "3600"]).start();
    let client = node.client();
    // Entries with much metadata fill the connection of a client that does not read.
    let filler = "x".repeat(900);
    let write = |turn: usize| {
        let job = |member: usize| {
            json!({"board": "arena", "member": format!("m{member}"), "score": turn + member,
                   "meta": {"turn": turn, "filler": filler}})
        };
        let jobs: Vec<Value> = (0..100).map(job).collect();
        assert_eq!(client.post("/v1/jobs?results=changed", &Value::from(jobs)).0, 200);
    };
    // A request is applied as more than one message.
    let is_of = |board: &Board, turn: usize| {
        board.entries.len() == 100 && board.entries.iter().all(|entry| entry["meta"]["turn"] == turn)
    };
    write(0);
    let path = "/v1/boards/arena/live?top=100&max_rate=20";
    let (mut slow, mut quick) = (watch(&node, path), watch(&node, path));
    slow.take_little();
    let (mut late, mut board) = (Board::default(), Board::default());
    late.take(&slow.event());
    board.take(&quick.event());
    let mut turn = 0;
    while metric(&node, "ranktree_live_coalesced_total") == 0 && turn < 1_000 {
        turn += 1;
        write(turn);
        while !is_of(&board, turn) {
            board.take(&quick.event());
        }
        // The quick one has taken every state; of the slow one it is known once it is written to again.
        if turn % 100 == 0 {
            late.take(&slow.event());
        }
    }
    let mut events = 0;
    while !is_of(&late, turn) {
        late.take(&slow.event());
        events += 1;
    }
    assert!(metric(&node, "ranktree_live_coalesced_total") > 0, "{turn} states, {events} late events");
    let (_, top) = client.get("/v1/boards/arena/top?limit=100");
    assert!(top["entries"] == json!(late.entries), "it knows what there is now");
}

#[test]
fn watches_end_with_the_node_and_it_ends_at_once() {
    let mut node = Node::start();
    put(&node.client(), "arena", "a", 1);
    let mut watch = watch(&node, "/v1/boards/arena/live");
    assert_eq!(watch.event().kind, "state");
    let (ended, end) = channel();
    thread::spawn(move || ended.send(node.terminate().success()));
    // It does not wait for its watchers to leave, which takes it ten seconds and a line in the log.
    assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(true));
    while let Some(event) = watch.next() {
        assert_ne!(event.kind, "end");
    }
}

#[test]
fn a_stream_outlives_the_time_of_idle_connections_and_leaves_its_connection_to_further_requests() {
    let node = Node::flags(&["--idle-seconds", "1", "--header-seconds", "1"]).start();
    put(&node.client(), "arena", "a", 1);
    let mut watch = watch(&node, "/v1/boards/arena/live");
    assert_eq!(watch.event().kind, "state");
    let comment = watch.next().expect("it goes on");
    assert_eq!((comment.kind.as_str(), comment.id.as_str()), ("", ""), "a heartbeat");
    put(&node.client(), "arena", "b", 2);
    assert_eq!(names(&watch.event().data["entries"]), ["b", "a"]);
    // One that leaves is noticed without a write to the board.
    drop(watch);
    wait_until("it has left", || metric(&node, "ranktree_live_watchers") == 0);
    let mut stream = TcpStream::connect(node.address()).expect("it listens");
    stream.write_all(b"HEAD /v1/boards/arena/live HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it reads");
    wait_until("a head is no watch", || metric(&node, "ranktree_live_watchers") == 0);
}

#[test]
fn a_board_is_watched_through_any_node() {
    const SHARDS: u16 = 3;
    let nats = Nats::start();
    let owning = |name: &str, own: &str| {
        let setup = Node::with_nats(&nats).shards(SHARDS).flags(&["--node", name, "--own", own]);
        setup.stream_mib(16).start()
    };
    let (a, b) = (owning("a", "0"), owning("b", "1-2"));
    for (node, shards) in [(&a, 0..1), (&b, 1..3)] {
        for shard in shards {
            wait_state(&node.client(), shard, "live");
        }
    }
    let nothing = owning("nothing", "none");
    let client = a.client().waiting_for_writes();
    wait_until("a write is applied", || {
        client.put(&entry_path("arena", "m0"), &json!({"score": 0})).0 == 200
    });
    for node in [&b, &nothing] {
        wait_until("the board is known", || node.client().get("/v1/boards/arena/top").0 == 200);
    }
    let path = "/v1/boards/arena/live?top=5&members=m0&max_rate=20";
    let mut watches: Vec<(Watch, Board)> =
        [&a, &b, &nothing].map(|node| (watch(node, path), Board::default())).into();
    for (watch, board) in &mut watches {
        board.take(&watch.event());
    }
    let mut last = String::new();
    for number in 1..30 {
        let member = format!("m{number}");
        last = put(&client, "arena", &member, number);
    }
    let (_, top) = client.get(&format!("/v1/boards/arena/top?limit=5&after={last}&timeout_ms=60000"));
    let mut ids = Vec::new();
    for (watch, board) in &mut watches {
        let event = watch.until(|event| {
            board.take(event);
            board.total == 30 && json!(board.entries) == top["entries"]
        });
        ids.push(event.id.split('@').next().map(str::to_owned));
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "the same state has the same id on every node: {ids:?}");
    // With the id of one node, a client goes on at another.
    let id = format!("{}@{last}", ids[0].as_deref().expect("an id"));
    let same = resume(&nothing, path, &Event { kind: String::new(), id, data: Value::Null });
    assert_eq!((same.kind.as_str(), names(&same.data["entries"])), ("changes", vec![]), "{same:?}");
    // A shard that nobody answers for makes what is shown stale, and is made up for.
    drop(b);
    let (watch, _) = watches.last_mut().expect("the node that owns nothing");
    watch.until(|event| event.data["stale"] == true);
    let _back = owning("b", "1-2");
    watch.until(|event| !event.kind.is_empty() && event.data["stale"] != true);
}

//! Commands that take entries away by their place: as a real redis-server does, and each entry once, whoever
//! asks, whatever else is written.

use std::collections::BTreeMap;

use redis::{Connection, Value};
use serde_json::json;

use crate::support::client::count_of;
use crate::support::nats::Nats;
use crate::support::node::{Node, NodeSetup};
use crate::support::redis::{RedisServer, ask, connect, listening_in, socket_in, start};

/// A node over NATS, or one without.
fn setups(nats: &Nats) -> [NodeSetup; 3] {
    [Node::shards(1), Node::shards(5), Node::with_nats(nats).shards(2)]
}

#[test]
fn the_keys_of_a_pop_are_where_its_first_argument_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::shards(1));
    let mut keys = |words: &[&str]| ask(&mut redis, &[&["COMMAND", "GETKEYS"], words].concat());
    assert_eq!(keys(&["ZMPOP", "2", "a", "b", "MIN"]), r#"["a" "b"]"#);
    assert!(keys(&["ZMPOP", "x", "a", "MIN"]).contains("Invalid arguments specified"));
    assert!(keys(&["ECHO", "a"]).contains("has no key arguments"));
}

#[test]
fn ranges_are_removed_and_ends_popped_as_in_redis() {
    let nats = Nats::start();
    for setup in setups(&nats) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let real = RedisServer::start(folder.path());
        let mut real = real.connect();
        let _node = listening_in(folder.path(), setup).start();
        let mut ours = connect(&socket_in(folder.path()));
        let mut both = |command: &str| {
            let words: Vec<&str> = command.split(' ').collect();
            let (expect, found) = (ask(&mut real, &words), ask(&mut ours, &words));
            assert_eq!(found, expect, "{command}");
        };
        let fill = "ZADD k 1 a 2 b 2 c 2.5 d 7 e 7 f 10 g -inf h inf i";
        for command in [
            fill,
            "ZREMRANGEBYRANK k 0 0",
            "ZREMRANGEBYRANK k -2 -1",
            "ZREMRANGEBYRANK k 5 2",
            "ZRANGE k 0 -1 WITHSCORES",
            fill,
            "ZREMRANGEBYSCORE k (2 7",
            "ZREMRANGEBYSCORE k 3 -3",
            "ZRANGE k 0 -1 WITHSCORES",
            "ZREMRANGEBYSCORE k -inf +inf",
            "EXISTS k",
            "ZPOPMIN k",
            "ZPOPMIN k 2",
            fill,
            "ZPOPMIN k",
            "ZPOPMAX k",
            "ZPOPMIN k 2",
            "ZPOPMAX k 0",
            "ZPOPMAX k 100",
            "EXISTS k",
            "ZADD w 0 a 0 b 0 c 0 d 0 e",
            "ZREMRANGEBYLEX w [b (d",
            "ZREMRANGEBYLEX w - (b",
            "ZRANGE w 0 -1",
            "ZREMRANGEBYLEX w - +",
            "ZCARD w",
            "OBJECT ENCODING none",
            "MEMORY USAGE none",
        ] {
            both(command);
        }
    }
}

/// As Redis 7 documents it; older ones do not have it.
#[test]
fn the_first_board_that_has_entries_is_popped_of_several() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::shards(3));
    for (command, expect) in [
        ("ZMPOP 2 none k MIN", "nil"),
        ("ZADD k 1 a 2 b 3 c 4 d", "4"),
        ("ZADD other 9 z", "1"),
        ("ZMPOP 3 none k other MIN", r#"["k" [["a" "1"]]]"#),
        ("ZMPOP 2 k other MAX COUNT 2", r#"["k" [["d" "4"] ["c" "3"]]]"#),
        ("ZMPOP 2 k other MAX COUNT 9", r#"["k" [["b" "2"]]]"#),
        ("ZMPOP 2 k other MAX COUNT 9", r#"["other" [["z" "9"]]]"#),
        ("ZMPOP 2 k other MAX", "nil"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(ask(&mut redis, &words), expect, "{command}");
    }
}

/// More than are read at once.
#[test]
fn thousands_of_entries_are_removed_by_one_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(3));
    for part in 0..5 {
        let mut command = redis::cmd("ZADD");
        command.arg("k");
        for number in part * 1_000..(part + 1) * 1_000 {
            command.arg(number).arg(format!("m{number}"));
        }
        assert_eq!(command.query::<u64>(&mut redis), Ok(1_000));
    }
    assert_eq!(ask(&mut redis, &["ZREMRANGEBYRANK", "k", "0", "-2001"]), "3000");
    assert_eq!(ask(&mut redis, &["ZRANGE", "k", "0", "0"]), r#"["m3000"]"#);
    assert_eq!(ask(&mut redis, &["ZREMRANGEBYSCORE", "k", "-inf", "(4500"]), "1500");
    let popped: Vec<(String, u64)> =
        redis::cmd("ZPOPMAX").arg("k").arg(1_000).query(&mut redis).expect("entries");
    let expect: Vec<(String, u64)> =
        (4_500..5_000).rev().map(|number| (format!("m{number}"), number)).collect();
    assert_eq!(popped, expect);
    assert_eq!(node.client().get("/v1/boards/k").1["board"], "k", "the board stays");
}

/// Pops until nothing is left.
fn pop_all(connection: &mut Connection, command: &[&str]) -> Vec<(String, u64)> {
    let mut popped = Vec::new();
    loop {
        let mut asked = redis::Cmd::new();
        for word in command {
            asked.arg(*word);
        }
        let some: Vec<(String, u64)> = asked.query(connection).expect("entries");
        if some.is_empty() {
            return popped;
        }
        popped.extend(some);
    }
}

#[test]
fn each_entry_is_popped_once_by_whoever_asks() {
    const MEMBERS: u64 = 400;
    let nats = Nats::start();
    for setup in setups(&nats) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (_node, mut redis) = start(folder.path(), setup);
        let mut command = redis::cmd("ZADD");
        command.arg("queue");
        for number in 0..MEMBERS {
            command.arg(number).arg(format!("m{number}"));
        }
        assert_eq!(command.query::<u64>(&mut redis), Ok(MEMBERS));
        let folder = folder.path();
        let popped: Vec<(String, u64)> = std::thread::scope(|scope| {
            let clients: Vec<_> =
                [&["ZPOPMIN", "queue"][..], &["ZPOPMAX", "queue", "3"], &["ZPOPMIN", "queue", "7"]]
                    .into_iter()
                    .map(|command| scope.spawn(move || pop_all(&mut connect(&socket_in(folder)), command)))
                    .collect();
            clients.into_iter().flat_map(|client| client.join().expect("it does not panic")).collect()
        });
        let by_member: BTreeMap<&str, u64> =
            popped.iter().map(|(member, score)| (member.as_str(), *score)).collect();
        assert_eq!((popped.len(), by_member.len()), (400, 400), "each once");
        assert!(by_member.iter().all(|(member, score)| *member == format!("m{score}")));
    }
}

/// An entry that is moved all the time is popped with a score that it had, and is gone then until it is added
/// anew.
#[test]
fn what_is_popped_while_it_moves_is_neither_lost_nor_doubled() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::shards(3));
    let folder = folder.path();
    let (added, popped) = std::thread::scope(|scope| {
        let mover = scope.spawn(move || {
            let mut redis = connect(&socket_in(folder));
            let mut added = 0_u64;
            for round in 0_u64..1_500 {
                let member = format!("m{}", round % 5);
                added += redis::cmd("ZADD")
                    .arg("k")
                    .arg(round)
                    .arg(member)
                    .query::<u64>(&mut redis)
                    .expect("a number of new entries");
            }
            added
        });
        let mut popped = 0_u64;
        while !mover.is_finished() {
            let some: Vec<(String, u64)> =
                redis::cmd("ZPOPMIN").arg("k").arg(2).query(&mut redis).expect("entries");
            popped += u64::try_from(some.len()).expect("few");
        }
        (mover.join().expect("it does not panic"), popped)
    });
    let left: u64 = redis::cmd("ZCARD").arg("k").query(&mut redis).expect("a number");
    assert_eq!(added, popped + left, "each that was added is popped once, or there");
}

#[test]
fn what_is_popped_leaves_open_windows_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(3));
    let http = node.client();
    for (board, windows) in [("all", json!(["all", "day"])), ("days", json!(["day", "week"]))] {
        assert_eq!(http.put(&format!("/v1/boards/{board}"), &json!({"windows": windows})).0, 201);
        assert_eq!(ask(&mut redis, &["ZADD", board, "1", "a", "2", "b", "3", "c"]), "3");
        assert_eq!(ask(&mut redis, &["ZPOPMAX", board]), r#"["c" "3"]"#);
        assert_eq!(ask(&mut redis, &["ZREMRANGEBYSCORE", board, "1", "1"]), "1");
        for window in windows.as_array().expect("a list") {
            let window = window.as_str().expect("a name");
            let top = http.get(&format!("/v1/boards/{board}/top?window={window}")).1;
            assert_eq!((count_of(&top["total"]), &top["entries"][0]["member"]), (1, &json!("b")), "{top}");
        }
        let refused = ask(&mut redis, &["ZPOPMIN", &format!("{board}@day")]);
        assert!(refused.contains("read only"), "{refused}");
    }
    assert_eq!(http.put("/v1/boards/two", &json!({"keys": [{"name": "x"}, {"name": "y"}]})).0, 201);
    let refused = ask(&mut redis, &["ZPOPMIN", "two"]);
    assert!(refused.contains("2 keys"), "{refused}");
}

#[test]
fn pops_are_nested_in_resp3_where_redis_nests_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let real = RedisServer::start(folder.path());
    let mut real = real.connect();
    let _node = listening_in(folder.path(), Node::shards(2)).start();
    let mut ours = connect(&socket_in(folder.path()));
    for connection in [&mut real, &mut ours] {
        let _: Value = redis::cmd("HELLO").arg(3).query(connection).expect("RESP3");
    }
    for command in [
        "ZADD k 1 a 2 b 3 c 4 d 5 e",
        "ZPOPMIN k",
        "ZPOPMIN k 1",
        "ZPOPMAX k 2",
        "ZPOPMIN k 2",
        "ZPOPMIN k 2",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(ask(&mut ours, &words), ask(&mut real, &words), "{command}");
    }
}

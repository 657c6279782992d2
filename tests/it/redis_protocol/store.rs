//! What boards make together, stored on one of them: as a real redis-server does, whatever else is written,
//! on one shard and on several, with NATS and without.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use crate::support::nats::Nats;
use crate::support::node::{Node, NodeSetup};
use crate::support::redis::{RedisServer, ask, connect, listening_in, socket_in, start};

/// A node over NATS, or one without.
fn setups(nats: &Nats) -> [NodeSetup; 3] {
    [Node::shards(1), Node::shards(3), Node::with_nats(nats).shards(3)]
}

fn words(command: &str) -> Vec<&str> {
    command.split(' ').collect()
}

#[test]
fn results_are_stored_as_in_redis_and_are_there_after_a_kill() {
    let nats = Nats::start();
    for setup in setups(&nats) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let real = RedisServer::start(folder.path());
        let mut real = real.connect();
        let mut node = listening_in(folder.path(), setup).start();
        let mut ours = connect(&socket_in(folder.path()));
        let mut both = |command: &str| {
            let (expect, found) = (ask(&mut real, &words(command)), ask(&mut ours, &words(command)));
            assert_eq!(found, expect, "{command}");
        };
        for command in [
            "ZADD a 1 p 2 q 3 r 4 s inf i",
            "ZADD b 10 q 20 r 30 t -inf i 2.5 u",
            "ZUNIONSTORE none 2 no none",
            "EXISTS none",
            "ZUNIONSTORE to 2 a b",
            "ZRANGE to 0 -1 WITHSCORES",
            "ZUNIONSTORE to 2 a b WEIGHTS 2 0.5 AGGREGATE MAX",
            "ZRANGE to 0 -1 WITHSCORES",
            "ZINTERSTORE to 2 to b WEIGHTS 1 -1",
            "ZREVRANGE to 0 -1 WITHSCORES",
            "ZDIFFSTORE a 2 a b",
            "ZRANGE a 0 -1 WITHSCORES",
            "ZRANGESTORE to b 1 -2",
            "ZRANGE to 0 -1 WITHSCORES",
            "ZRANGESTORE to b (10 30 BYSCORE",
            "ZRANGE to 0 -1 WITHSCORES",
            "ZRANGESTORE to b +inf -inf BYSCORE REV LIMIT 1 2",
            "ZRANGE to 0 -1 WITHSCORES",
            "ZADD same 0 a 0 b 0 c 0 d",
            "ZRANGESTORE to same [b (d BYLEX",
            "ZRANGE to 0 -1",
            "ZRANGESTORE to same 9 12",
            "EXISTS to",
            "TYPE to",
            "ZUNIONSTORE to 1 same",
            "MULTI",
            "ZADD same 7 z",
            "ZUNIONSTORE to 2 same b",
            "ZCARD to",
            "EXEC",
            "ZDIFFSTORE same 1 nothing",
            "EXISTS same",
            "ZRANGE to 0 -1 WITHSCORES",
        ] {
            both(command);
        }
        node.kill9();
        node.restart();
        let mut ours = connect(&socket_in(folder.path()));
        for command in ["ZRANGE to 0 -1 WITHSCORES", "ZRANGE a 0 -1 WITHSCORES", "DBSIZE"] {
            assert_eq!(ask(&mut ours, &words(command)), ask(&mut real, &words(command)), "{command}");
        }
        assert!(node.terminate().success());
        node.verify();
    }
}

/// More than one step applies, and more than a request's jobs.
#[test]
fn many_entries_are_stored_while_others_write_and_read() {
    const MEMBERS: u64 = 30_000;
    let nats = Nats::start();
    for setup in setups(&nats) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (mut node, mut redis) = start(folder.path(), setup);
        for part in 0..MEMBERS / 5_000 {
            let mut command = redis::cmd("ZADD");
            command.arg("large");
            for number in part * 5_000..(part + 1) * 5_000 {
                command.arg(number).arg(format!("m{number}"));
            }
            assert_eq!(command.query::<u64>(&mut redis), Ok(5_000));
        }
        assert_eq!(ask(&mut redis, &["ZADD", "one", "1", "m7"]), "1");
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            // A result is seen as a whole on a shard; `one` is on a single one.
            let reader = scope.spawn(|| {
                let mut redis = connect(&socket_in(folder.path()));
                let mut seen = 0;
                while !over.load(Ordering::Relaxed) {
                    let total = ask(&mut redis, &["ZCARD", "one"]);
                    assert_eq!(total, "1", "it is replaced by one of the same size");
                    seen += 1;
                }
                seen
            });
            let writer = scope.spawn(|| {
                let mut redis = connect(&socket_in(folder.path()));
                for number in 0..200 {
                    let member = format!("w{number}");
                    assert_eq!(ask(&mut redis, &["ZADD", "large", "-1", &member]), "1");
                }
            });
            for round in 0..5 {
                let stored = ask(&mut redis, &["ZUNIONSTORE", "to", "1", "large", "WEIGHTS", "2"]);
                let stored: u64 = stored.parse().unwrap_or_else(|_| panic!("{stored}"));
                assert!((MEMBERS..=MEMBERS + 200).contains(&stored), "{round}: {stored}");
                assert_eq!(ask(&mut redis, &["ZSCORE", "to", "m29999"]), r#""59998""#);
                assert_eq!(ask(&mut redis, &["ZINTERSTORE", "one", "2", "one", "large"]), "1");
            }
            writer.join().expect("it writes");
            over.store(true, Ordering::Relaxed);
            assert!(reader.join().expect("it reads") > 0);
        });
        assert_eq!(ask(&mut redis, &["ZRANGESTORE", "to", "large", "0", "-1"]), "30200");
        assert_eq!(ask(&mut redis, &["ZRANGESTORE", "to", "to", "-3", "-1"]), "3");
        assert_eq!(ask(&mut redis, &["ZRANGE", "to", "0", "-1"]), r#"["m29997" "m29998" "m29999"]"#);
        assert!(node.metrics().contains("ranktree_redis_command_seconds_count{command=\"zunionstore\"}"));
        assert!(node.terminate().success());
        node.verify();
    }
}

#[test]
fn boards_that_take_no_results_are_refused_and_say_why() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(3));
    let client = node.client();
    for (name, definition) in [
        ("two", json!({"keys": [{"name": "a"}, {"name": "b"}]})),
        ("best", json!({"policy": "best"})),
        ("weekly", json!({"windows": ["all", "week"]})),
        ("whole", json!({"policy": "set"})),
        ("narrow", json!({"keys": [{"name": "score", "min": 0, "max": 5}]})),
    ] {
        let (status, said) = client.put(&format!("/v1/boards/{name}"), &definition);
        assert!(status < 300, "{name}: {said}");
    }
    assert_eq!(ask(&mut redis, &["ZADD", "a", "1", "x", "2.5", "y"]), "2");
    assert_eq!(ask(&mut redis, &["ZADD", "weekly", "7", "w"]), "1");
    for (command, expect) in [
        ("ZUNIONSTORE two 1 a", "has 2 keys"),
        ("ZUNIONSTORE to 1 two", "has 2 keys"),
        ("ZUNIONSTORE best 1 a", "policy best"),
        ("ZUNIONSTORE weekly 1 a", "has windows"),
        ("ZUNIONSTORE weekly@week 1 a", "read only"),
        ("ZUNIONSTORE whole 1 a", "has integers"),
        ("ZUNIONSTORE whole 1 weekly WEIGHTS 0.5", "has integers"),
        ("ZRANGESTORE whole a 0 -1", "has integers"),
        ("ZUNIONSTORE narrow 1 weekly", "must be 0 to 5"),
        ("ZRANGESTORE to two 0 -1", "has 2 keys"),
    ] {
        let said = ask(&mut redis, &words(command));
        assert!(said.contains(expect), "{command}: {said}");
    }
    // Exactly, and of a window.
    assert_eq!(ask(&mut redis, &words("ZUNIONSTORE whole 1 weekly@week WEIGHTS 3")), "1");
    assert_eq!(ask(&mut redis, &words("ZSCORE whole w")), r#""21""#);
    assert_eq!(ask(&mut redis, &words("ZRANGESTORE to weekly@week 0 -1")), "1");
    let (status, _) =
        client.post("/v1/readonly", &json!({"readonly": true, "board": "to", "reason": "it is over"}));
    assert!(status < 300, "{status}");
    let said = ask(&mut redis, &words("ZUNIONSTORE to 1 a"));
    assert!(said.contains("it is over"), "{said}");
    let mut keys = |command: &str| ask(&mut redis, &[&["COMMAND", "GETKEYS"], &words(command)[..]].concat());
    assert_eq!(keys("ZUNIONSTORE to 2 a b WEIGHTS 1 2"), r#"["to" "a" "b"]"#);
    assert_eq!(keys("ZRANGESTORE to a 0 1"), r#"["to" "a"]"#);
}

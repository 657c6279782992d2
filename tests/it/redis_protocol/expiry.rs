//! Keys that expire: the same replies as those of a real redis-server, or of Redis' documents where that is
//! an older one, and what HTTP shows of it.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::support::clock::shifted;
use crate::support::nats::{Nats, wait_until};
use crate::support::node::{Node, NodeSetup};
use crate::support::redis::{RedisServer, ask, start};

#[test]
fn expiry_replies_as_redis_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut ranktree) = start(folder.path(), Node::shards(3));
    let real = RedisServer::start(folder.path());
    let mut redis = real.connect();
    let far = "4102444800";
    // What every version of Redis has.
    let commands = format!(
        "ZADD k 1 a|TTL k|PTTL k|PERSIST k|TTL none|PTTL none|PERSIST none|EXPIRE none 9|EXPIREAT k {far}
        PEXPIREAT k 4102444800001|ZSCORE k a|PERSIST k|PERSIST k|TTL k|EXPIRE k x|EXPIRE k|EXPIREAT k {far}
        EXPIRE k 0|EXISTS k|ZADD k 2 b|TTL k|EXPIREAT k 1000|EXISTS k|ZADD k 3 c|PEXPIRE k -5|ZCARD k
        ZADD k 5 e|MULTI|EXPIREAT k {far}|ZADD k 6 f|EXEC|PERSIST k|DEL k|TTL k"
    );
    for command in commands.split(['|', '\n']).map(str::trim).filter(|command| !command.is_empty()) {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(ask(&mut ranktree, &words), ask(&mut redis, &words), "{command}");
    }
    // What came with Redis 7, as its documents have it.
    for (command, reply) in [
        ("ZADD k 1 a", "1"),
        ("EXPIRETIME k", "-1"),
        ("PEXPIRETIME none", "-2"),
        ("EXPIREAT k 4102444800 XX", "0"),
        ("EXPIREAT k 4102444800 GT", "0"),
        ("EXPIREAT k 4102444800 NX", "1"),
        ("EXPIREAT k 4102444900 NX", "0"),
        ("EXPIREAT k 4102444801 GT", "1"),
        ("PEXPIRETIME k", "4102444801000"),
        ("EXPIREAT k 4102444800 GT", "0"),
        ("EXPIREAT k 4102444802 LT", "0"),
        ("PEXPIREAT k 4102444800600 xx lt", "1"),
        ("PEXPIRETIME k", "4102444800600"),
        ("EXPIRETIME k", "4102444801"),
        ("PERSIST k", "1"),
        ("EXPIREAT k 4102444800 LT", "1"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(ask(&mut ranktree, &words), reply, "{command}");
    }
    assert_eq!(ask(&mut ranktree, &["DEL", "k"]), "1");
    // What runs down: within what a slow machine takes.
    ask(&mut ranktree, &["ZADD", "k", "1", "a"]);
    assert_eq!(ask(&mut ranktree, &["EXPIRE", "k", "100"]), "1");
    let left: i64 = ask(&mut ranktree, &["TTL", "k"]).parse().expect("a number");
    let exactly: i64 = ask(&mut ranktree, &["PTTL", "k"]).parse().expect("a number");
    assert!((60..=100).contains(&left) && (60_000..=100_000).contains(&exactly), "{left} {exactly}");
    // The board itself ends, and over HTTP it is the same one.
    let http = node.client();
    assert!(http.get("/v1/boards/k").1["expires_at"].is_string());
    assert_eq!(http.put("/v1/boards/k", &json!({"expires_at": null, "expires_after": "1h"})).0, 200);
    let left: i64 = ask(&mut ranktree, &["TTL", "k"]).parse().expect("a number");
    assert!((3_500..=3_600).contains(&left), "{left}");
    assert_eq!(ask(&mut ranktree, &["PEXPIRE", "k", "1500"]), "1");
    assert_eq!(http.get("/v1/boards/k").1["expires_after"], json!(null), "EXPIRE says all of it");
    wait_until("it is over", || ask(&mut ranktree, &["EXISTS", "k"]) == "0");
    assert_eq!(http.get("/v1/boards/k").0, 404);
    assert_eq!(ask(&mut ranktree, &["TTL", "k"]), "-2");
}

/// Until the board of a key is dropped, which has expired, a tenth of a second or more may pass: no write of
/// that time goes with it.
fn whoever_comes_late_begins_the_key_anew(setup: NodeSetup) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut client) = start(folder.path(), setup);
    let mut kept = Vec::new();
    for late in 0..10 {
        for (number, (command, reply, left)) in [
            ("ZINCRBY k 5 new", r#""5""#, r#"["new"]"#),
            ("ZADD k NX 1 old 2 new", "2", r#"["old" "new"]"#),
            ("ZREM k old", "0", "[]"),
            ("ZPOPMIN k", "[]", "[]"),
            ("ZREMRANGEBYRANK k 0 -1", "0", "[]"),
            ("EXPIRE k 100", "0", "[]"),
            ("DEL k", "0", "[]"),
            ("ZUNIONSTORE k 2 k other", "1", r#"["o"]"#),
        ]
        .into_iter()
        .enumerate()
        {
            let key = format!("k{late}-{number}");
            ask(&mut client, &["ZADD", "other", "1", "o"]);
            assert_eq!(ask(&mut client, &["ZADD", &key, "1", "old"]), "1");
            assert_eq!(ask(&mut client, &["PEXPIRE", &key, "40"]), "1", "{key}");
            sleep(Duration::from_millis(42 + 9 * late));
            let words: Vec<&str> =
                command.split(' ').map(|word| if word == "k" { key.as_str() } else { word }).collect();
            assert_eq!(ask(&mut client, &words), reply, "{command}, {late}");
            assert_eq!(ask(&mut client, &["ZRANGE", &key, "0", "-1"]), left, "{command}, {late}");
            kept.push((key, left));
        }
    }
    sleep(Duration::from_secs(1));
    for (key, left) in &kept {
        assert_eq!(ask(&mut client, &["ZRANGE", key, "0", "-1"]), *left, "{key}");
        let ends = ask(&mut client, &["TTL", key]);
        assert_eq!(ends, if *left == "[]" { "-2" } else { "-1" }, "{key}");
    }
}

#[test]
fn whoever_comes_late_begins_the_key_anew_without_nats() {
    whoever_comes_late_begins_the_key_anew(Node::shards(3));
}

#[test]
fn whoever_comes_late_begins_the_key_anew_with_nats() {
    whoever_comes_late_begins_the_key_anew(Node::with_nats(&Nats::start()).shards(3).stream_mib(64));
}

/// The clock is put right again later, and then the key is as it was.
#[test]
fn a_clock_that_is_far_ahead_ends_no_key_that_is_written_to() {
    let Some(ahead) = shifted("+40d") else { return };
    let ahead: Vec<(&str, &str)> = ahead.iter().map(|(name, value)| (&**name, &**value)).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    let at = |clock: &[(&str, &str)]| start(folder.path(), Node::at(&data).environment(clock));
    let (mut node, mut client) = at(&[]);
    assert_eq!(ask(&mut client, &["ZADD", "k", "1", "old"]), "1");
    assert_eq!(ask(&mut client, &["EXPIRE", "k", "2592000"]), "1");
    drop(client);
    assert!(node.terminate().success());
    let (mut node, mut client) = at(&ahead);
    for words in [&["ZADD", "k", "2", "new"][..], &["ZREM", "k", "new"], &["ZREMRANGEBYRANK", "k", "5", "9"]]
    {
        ask(&mut client, words);
    }
    drop(client);
    assert!(node.terminate().success());
    let (_node, mut client) = at(&[]);
    assert_eq!(ask(&mut client, &["ZRANGE", "k", "0", "-1"]), r#"["old"]"#);
}

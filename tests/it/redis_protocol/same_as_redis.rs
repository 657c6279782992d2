//! Random commands, sent to a real redis-server and to ranktree: the same replies.
//!
//! Scores are such that Redis prints them with the fewest digits in every version.

use std::fmt::Write as _;

use redis::Connection;

use crate::support::nats::Nats;
use crate::support::node::{Node, NodeSetup};
use crate::support::random::Random;
use crate::support::redis::{RedisServer, ask, connect, listening_in, socket_in};

const KEYS: [&str; 3] = ["arena", "{game:7}/laps", "kills"];
const MEMBERS: [&str; 12] =
    ["a", "b", "ab", "alice", "Zoë", "日本", "player 7", "p1", "p10", "p2", "same-prefix-1", "same-prefix-2"];
const SCORES: [&str; 12] = ["0", "1", "-1", "2.5", "2.5", "10", "-10.25", "100", "7", "inf", "-inf", "1e3"];
const BOUNDS: [&str; 10] = ["-inf", "+inf", "0", "(0", "1", "(2.5", "-10", "(100", "7", "99.5"];
const IDS: [&str; 8] = ["-", "+", "[a", "(a", "[b", "[p1", "(zz", "[日本"];

/// What both refuse, in the same words.
const MISTAKES: [&[&str]; 19] = [
    &["ZADD", "arena", "x", "a"],
    &["ZADD", "arena", "1"],
    &["ZADD", "arena", "NX", "XX", "1", "a"],
    &["ZADD", "arena", "GT", "LT", "1", "a"],
    &["ZADD", "arena", "INCR", "1", "a", "2", "b"],
    &["ZINCRBY", "arena", "nan", "a"],
    &["ZRANGE", "arena", "a", "1"],
    &["ZRANGE", "arena", "0", "1", "LIMIT", "0", "1"],
    &["ZRANGEBYSCORE", "arena", "x", "1"],
    &["ZCOUNT", "arena", "1"],
    &["ZRANGEBYLEX", "arena", "a", "b"],
    &["ZUNION", "3", "arena", "kills"],
    &["ZINTER", "1", "arena", "WEIGHTS", "x"],
    &["ZDIFF", "1", "arena", "AGGREGATE", "MAX"],
    &["ZINTERSTORE", "arena", "2", "kills"],
    &["ZDIFFSTORE", "arena", "1", "kills", "WITHSCORES"],
    &["ZRANGESTORE", "arena", "kills", "0", "1", "WITHSCORES"],
    &["SELECT", "99"],
    &["PING", "a b"],
];

/// A command of random words, most of them good ones.
fn command(random: &mut Random) -> Vec<String> {
    let key = *random.pick(&KEYS);
    let mut words: Vec<&str> = Vec::new();
    let count = 1 + random.index(3);
    match random.below(32) {
        0..=4 => {
            words.extend(["ZADD", key]);
            words.extend(*random.pick(&[
                &[][..],
                &[],
                &["CH"],
                &["GT", "CH"],
                &["lt"],
                &["NX"],
                &["XX", "CH"],
                &["XX", "GT"],
                &["LT", "XX", "CH"],
            ]));
            for _ in 0..count {
                words.extend([*random.pick(&SCORES), *random.pick(&MEMBERS)]);
            }
        }
        5 => {
            words.extend(["ZADD", key]);
            words.extend(*random.pick(&[&[][..], &["NX"], &["XX"], &["GT"], &["LT"], &["XX", "LT"]]));
            words.extend(["INCR", *random.pick(&SCORES), *random.pick(&MEMBERS)]);
        }
        6 | 7 => words.extend(["ZINCRBY", key, *random.pick(&SCORES), *random.pick(&MEMBERS)]),
        8 | 9 => {
            words.extend(["ZREM", key]);
            words.extend((0..count).map(|_| *random.pick(&MEMBERS)));
        }
        10 => words.extend(["ZSCORE", key, *random.pick(&MEMBERS)]),
        11 => {
            words.extend(["ZMSCORE", key]);
            words.extend((0..count).map(|_| *random.pick(&MEMBERS)));
        }
        12 => words.extend(["ZCARD", key]),
        13 => words.extend(["ZCOUNT", key, *random.pick(&BOUNDS), *random.pick(&BOUNDS)]),
        14 | 15 => words.extend([*random.pick(&["ZRANK", "ZREVRANK"]), key, *random.pick(&MEMBERS)]),
        16 | 17 => {
            let index = ["0", "1", "2", "5", "20", "-1", "-2", "-5", "-20"];
            let name = *random.pick(&["ZRANGE", "ZREVRANGE"]);
            words.extend([name, key, *random.pick(&index), *random.pick(&index)]);
            if name == "ZRANGE" && random.below(2) == 0 {
                words.push("REV");
            }
            if random.below(2) == 0 {
                words.push("WITHSCORES");
            }
        }
        18 | 19 => {
            let form = ["ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZRANGE"];
            let name = *random.pick(&form);
            words.extend([name, key, *random.pick(&BOUNDS), *random.pick(&BOUNDS)]);
            if name == "ZRANGE" {
                words.push("BYSCORE");
            }
            if random.below(2) == 0 {
                words.extend(["LIMIT", *random.pick(&["0", "1", "2"]), *random.pick(&["0", "1", "3", "-1"])]);
            }
            if random.below(2) == 0 {
                words.push("withscores");
            }
        }
        27 | 28 => words.extend(combination(random, key)),
        29..=31 => words.extend(stored(random, key)),
        20 => words.extend([*random.pick(&["EXISTS", "TYPE"]), key]),
        24 => {
            words.extend([*random.pick(&["ZPOPMIN", "ZPOPMAX"]), key]);
            words.extend(*random.pick(&[&[][..], &["1"], &["2"], &["0"]]));
        }
        25 => {
            let (first, last) = (*random.pick(&["0", "1", "-2"]), *random.pick(&["0", "1", "-1"]));
            words.extend(["ZREMRANGEBYRANK", key, first, last]);
        }
        26 => words.extend(["ZREMRANGEBYSCORE", key, *random.pick(&BOUNDS), *random.pick(&BOUNDS)]),
        21 => words.extend(*random.pick(&[&["DBSIZE"][..], &["ZSCAN", key, "0", "MATCH", "p*"]])),
        22 if random.below(6) == 0 => words.extend(["DEL", key]),
        22 => words.extend(["EXISTS", key, *random.pick(&KEYS), "none"]),
        _ => words.extend(*random.pick(&MISTAKES)),
    }
    words.into_iter().map(str::to_owned).collect()
}

/// A union, intersection or difference of `key` and at most one board more: of more than two Redis adds
/// in the order of their sizes, which infinities tell.
fn combination(random: &mut Random, key: &'static str) -> Vec<&'static str> {
    let name = *random.pick(&["ZUNION", "ZINTER", "ZDIFF"]);
    let mut words = random.pick(&[&[name, "1", key][..], &[name, "2", key, "kills"]]).to_vec();
    let is_of_two = words.len() == 4;
    if name != "ZDIFF" && is_of_two && random.below(2) == 0 {
        words.extend(["weights", *random.pick(&["1", "2", "0.5"]), *random.pick(&["1", "2", "0.5"])]);
    }
    if name != "ZDIFF" && random.below(2) == 0 {
        words.extend(["AGGREGATE", *random.pick(&["SUM", "MIN", "MAX"])]);
    }
    if random.below(2) == 0 {
        words.push("WITHSCORES");
    }
    words
}

/// What is stored on a board, of `key` and others. What doubles a board's own scores would end in numbers
/// that versions of Redis print with other digits.
fn stored(random: &mut Random, key: &'static str) -> Vec<&'static str> {
    let (to, other) = (*random.pick(&KEYS), *random.pick(&KEYS));
    if random.below(4) == 0 {
        let bounds = [*random.pick(&BOUNDS), *random.pick(&BOUNDS)];
        let by_score = ["ZRANGESTORE", to, key, bounds[0], bounds[1], "BYSCORE", "LIMIT", "1", "3"];
        let by_index = ["ZRANGESTORE", to, key, *random.pick(&["0", "1", "-3"]), *random.pick(&["2", "-1"])];
        let mut words =
            if random.below(2) == 0 { by_index.to_vec() } else { by_score[..*random.pick(&[6, 9])].to_vec() };
        words.extend((random.below(2) == 0).then_some("REV"));
        return words;
    }
    let name = *random.pick(&["ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"]);
    let mut words = random.pick(&[&[name, to, "1", key][..], &[name, to, "2", key, other]]).to_vec();
    if name != "ZDIFFSTORE" {
        // Those below 0 would make -0, which is 0 here.
        let weight = ["1", "1", "2"];
        if words.len() == 5 && random.below(2) == 0 {
            words.extend(["weights", *random.pick(&weight), *random.pick(&weight)]);
        }
        words.extend(["AGGREGATE", *random.pick(&["MIN", "MAX"])]);
    }
    words
}

/// Sends the same commands to both, and compares each reply.
fn compare(
    real: &mut Connection,
    ours: &mut Connection,
    random: &mut Random,
    count: usize,
    sent: &mut String,
) {
    for _ in 0..count {
        let words = command(random);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let _ = writeln!(sent, "{}", words.join(" "));
        let (expect, found) = (ask(real, &words), ask(ours, &words));
        let last: Vec<&str> = sent.lines().rev().take(12).collect();
        assert_eq!(found, expect, "after, the last one first:\n{}", last.join("\n"));
    }
}

/// As [`compare`], in rounds: between two of them the service is killed and started again.
fn compare_in_rounds(setup: NodeSetup, rounds: usize, commands: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let real = RedisServer::start(folder.path());
    let mut real = real.connect();
    let mut node = listening_in(folder.path(), setup).start();
    let mut random = Random::seeded();
    let mut sent = String::new();
    for round in 0..rounds {
        if round > 0 {
            node.kill9();
            node.restart();
        }
        let mut ours = connect(&socket_in(folder.path()));
        compare(&mut real, &mut ours, &mut random, commands, &mut sent);
    }
}

#[test]
fn random_commands_have_the_replies_of_redis_on_one_shard_across_kills() {
    compare_in_rounds(Node::shards(1), 3, 700);
}

#[test]
fn random_commands_have_the_replies_of_redis_on_five_shards_across_kills() {
    compare_in_rounds(Node::shards(5), 3, 700);
}

#[test]
fn random_commands_have_the_replies_of_redis_over_nats_across_kills() {
    let nats = Nats::start();
    compare_in_rounds(Node::with_nats(&nats).shards(2), 2, 250);
}

#[test]
fn what_is_seldom_sent_has_the_replies_of_redis() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let real = RedisServer::start(folder.path());
    let mut real = real.connect();
    let _node = listening_in(folder.path(), Node::shards(2)).start();
    let mut ours = connect(&socket_in(folder.path()));
    for words in [
        &["ZADD", "s", "10000000000000000", "a", "-9007199254740993", "b", "3", "c"][..],
        &["ZSCORE", "s", "a"],
        &["ZRANGE", "s", "0", "-1", "WITHSCORES"],
        &["ZINCRBY", "s", "1024", "a"],
        &["ZRANGEBYSCORE", "s", "", "1e400"],
        &["ZRANGEBYSCORE", "s", "(", " 3"],
        &["ZRANGEBYSCORE", "s", "-1e400", "1e-400"],
        &["ZCOUNT", "s", "3 ", "4"],
        &["ZCOUNT", "s", " ", "4"],
        &["ZRANGE", "s", "0", "1", "REV", "REV"],
        &["ZRANGE", "s", "0", "1", "BYSCORE", "BYSCORE"],
        &["ZRANGE", "s", "-", "+", "BYLEX", "BYSCORE"],
        &["ZRANDMEMBER", "none", "9223372036854775807"],
        &["ZRANDMEMBER", "none", "-9223372036854775808"],
        &["ZRANDMEMBER", "none", "9223372036854775807", "WITHSCORES"],
        &["SCAN", "00", "MATCH", "none"],
        &["SCAN", "+0", "MATCH", "none"],
        &["SCAN", "x"],
        &["ZSCAN", "s", "00", "MATCH", "[b"],
        &["ZSCAN", "none", "0"],
        &["ZRANK", "s", "a", "foo", "bar"],
        &["CLIENT", "LIST", "TYPE", "pubsub"],
        &["CLIENT", "LIST", "TYPE", "x"],
        &["CLIENT", "LIST", "ID", "x"],
        &["CLIENT", "LIST", "ID", "1000000"],
        &["ZINCRBY", "s", "NX", "a"],
        &["ZINCRBY", "s", "incr", "a"],
        &["COMMAND", "INFO", "nonsense"],
        &["HELLO", "2", "FOO"],
        &["HELLO", "2", "AUTH", "x"],
        &["AUTH", "x"],
        &["AUTH", "default", "x"],
        &["EXISTS", "s@day", "s@all"],
        &["TYPE", "s@day"],
    ] {
        let (expect, found) = (ask(&mut real, words), ask(&mut ours, words));
        assert_eq!(found, expect, "{words:?}");
    }
    for sent in [
        "*+1\r\n$4\r\nPING\r\n",
        "*1\r\n$+4\r\nPING\r\n",
        "*1\r\n$04\r\nPING\r\n",
        "*111111111111111111111111111111111111111111111111111111111111111111111111\r\n$4\r\nPING\r\n",
        "*1\r\n$111111111111111111111111111111111111111111111111111111111111111111111111\r\n",
        // What is wrong with an argument is told at EXEC, and the others are done.
        "MULTI\r\nZADD t 1 a\r\nZADD t x a\r\nZADD t 2 b\r\nZRANGE t 0 -1\r\nEXEC\r\nQUIT\r\n",
        "MULTI\r\nZADD t 3 c\r\nZADD t 1\r\nEXEC\r\nZSCORE t c\r\nQUIT\r\n",
        "MULTI\r\nMULTI\r\nZCARD t\r\nEXEC\r\nEXEC\r\nDISCARD\r\nQUIT\r\n",
        "MULTI\r\nZADD t 3 c\r\nDISCARD\r\nZSCORE t c\r\nMULTI\r\nEXEC\r\nQUIT\r\n",
        "MULTI\r\nZADD t 3 c\r\nQUIT\r\n",
        "MULTI\r\nZADD t 3 c\r\nEXEC x\r\nEXEC\r\nZSCORE t c\r\nQUIT\r\n",
        "MULTI\r\nPING\r\nRESET\r\nEXEC\r\nQUIT\r\n",
    ] {
        let said = [folder.path().join("real.sock"), socket_in(folder.path())].map(|socket| {
            use std::io::{Read as _, Write as _};
            let mut stream = std::os::unix::net::UnixStream::connect(socket).expect("it listens");
            stream.write_all(sent.as_bytes()).expect("it is read");
            let mut said = String::new();
            let _ = stream.read_to_string(&mut said);
            said
        });
        assert_eq!(said[1], said[0], "{sent:?}");
    }
}

#[test]
fn ranges_of_members_have_the_replies_of_redis() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let real = RedisServer::start(folder.path());
    let mut real = real.connect();
    let _node = listening_in(folder.path(), Node::shards(3)).start();
    let mut ours = connect(&socket_in(folder.path()));
    let mut random = Random::seeded();
    let mut both = |words: &[&str]| {
        let (expect, found) = (ask(&mut real, words), ask(&mut ours, words));
        assert_eq!(found, expect, "{words:?}");
    };
    for member in MEMBERS {
        both(&["ZADD", "words", "0", member]);
    }
    for _ in 0..200 {
        let [min, max] = [(); 2].map(|()| *random.pick(&IDS));
        match random.below(4) {
            0 => both(&["ZLEXCOUNT", "words", min, max]),
            1 => both(&["ZRANGEBYLEX", "words", min, max]),
            2 => both(&["ZREVRANGEBYLEX", "words", min, max, "LIMIT", "1", "4"]),
            _ => both(&["ZRANGE", "words", min, max, "BYLEX", "REV"]),
        }
    }
}

//! What one client may take of the time and the memory of all.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use redis::{Connection, Value};

use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::redis::{ask, connect, listening_in, socket_in, start};
use crate::support::tokens::new_token;

fn raw(folder: &Path) -> UnixStream {
    UnixStream::connect(socket_in(folder)).expect("it listens")
}

/// Makes a board of so many members, the first of which has the least score.
fn fill(redis: &mut Connection, board: &str, members: usize) {
    let all: Vec<usize> = (0..members).collect();
    for part in all.chunks(50_000) {
        let mut command = redis::cmd("ZADD");
        command.arg(board);
        for number in part {
            command.arg(*number).arg(format!("m{number:07}"));
        }
        let added: usize = command.query(redis).expect("it is written");
        assert_eq!(added, part.len());
    }
}

fn members(redis: &mut Connection, words: &[&str]) -> Vec<String> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    command.query(redis).expect("members")
}

#[test]
fn draws_from_a_board_that_is_emptied_end_and_others_have_their_turn() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::flags(&["--http-threads", "1"]));
    assert_eq!(ask(&mut redis, &["ZADD", "r", "1", "a"]), "1");
    // What can never be told is not begun.
    for count in ["-4611686018427387903", "-9223372036854775807", "-100000000"] {
        let told = ask(&mut redis, &["ZRANDMEMBER", "r", count]);
        assert!(told.contains("ask for it in parts"), "{told}");
    }
    assert_eq!(ask(&mut redis, &["ZRANDMEMBER", "r", "9223372036854775807"]), r#"["a"]"#);
    let drawing = {
        let mut other = connect(&socket_in(folder.path()));
        std::thread::spawn(move || members(&mut other, &["ZRANDMEMBER", "r", "-10000000"]))
    };
    assert_eq!(ask(&mut redis, &["PING"]), "PONG");
    assert_eq!(ask(&mut redis, &["ZREM", "r", "a"]), "1");
    let drawn = drawing.join().expect("it does not panic");
    assert!(drawn.iter().all(|member| member == "a"));
}

#[test]
fn a_long_command_is_given_up_when_its_client_has_left() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::flags(&["--http-threads", "1"]));
    assert_eq!(ask(&mut redis, &["ZADD", "r", "1", "a"]), "1");
    let mut leaving = raw(folder.path());
    leaving.write_all(b"ZRANDMEMBER r -18000000\r\n").expect("it is read");
    drop(leaving);
    let open = || node.metric("ranktree_redis_connections");
    wait_until("only this connection is left", || open() == Some(1.0));
    let errors = node.metric("ranktree_redis_command_errors_total{command=\"zrandmember\"}");
    assert_eq!(errors, Some(1.0));
}

#[test]
fn as_many_different_members_are_drawn_as_are_asked_for_and_parts_of_a_scan_are_the_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::shards(3));
    fill(&mut redis, "big", 3_500);
    for count in [0_usize, 1, 17, 70, 71, 1_750, 3_499, 3_500, 10_000] {
        let drawn = members(&mut redis, &["ZRANDMEMBER", "big", &count.to_string()]);
        let different: std::collections::BTreeSet<&String> = drawn.iter().collect();
        assert_eq!((drawn.len(), different.len()), (count.min(3_500), count.min(3_500)), "{count}");
        if count > 0 {
            let repeated = members(&mut redis, &["ZRANDMEMBER", "big", &format!("-{count}")]);
            assert_eq!(repeated.len(), count);
        }
        let scored = members(&mut redis, &["ZRANDMEMBER", "big", &count.to_string(), "WITHSCORES"]);
        assert_eq!(scored.len(), 2 * count.min(3_500));
        for pair in scored.chunks(2) {
            assert_eq!(format!("m{:0>7}", pair[1]), pair[0]);
        }
    }
    for (count, parts) in [("1", 4), ("1500", 3), ("100000", 1)] {
        let (mut cursor, mut seen, mut told) = ("0".to_owned(), Vec::new(), 0);
        loop {
            let (next, found): (String, Vec<String>) = redis::cmd("ZSCAN")
                .arg("big")
                .arg(&cursor)
                .arg("MATCH")
                .arg("m*[05]")
                .arg("COUNT")
                .arg(count)
                .query(&mut redis)
                .expect("a part");
            seen.extend(found.chunks(2).map(|pair| pair[0].clone()));
            (cursor, told) = (next, told + 1);
            if cursor == "0" {
                break;
            }
        }
        let expect: Vec<String> = (0..3_500).step_by(5).map(|number| format!("m{number:07}")).collect();
        assert_eq!((told, seen), (parts, expect));
    }
    let beyond = ask(&mut redis, &["ZSCAN", "big", "18446744073709551615"]);
    assert_eq!(beyond, r#"["0" []]"#);
}

#[test]
fn a_scan_in_parts_tells_every_board_once_and_a_new_one_from_its_begin() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::shards(2));
    let mut names: Vec<String> = (0..300).map(|number| format!("game:{number:03}")).collect();
    let mut pipe = redis::pipe();
    for name in &names {
        pipe.cmd("ZADD").arg(name).arg(1).arg("a").ignore();
    }
    let () = pipe.query(&mut redis).expect("they are written");
    let scan = |redis: &mut Connection, count: &str| {
        let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
        loop {
            let (next, part): (String, Vec<String>) =
                redis::cmd("SCAN").arg(&cursor).arg("COUNT").arg(count).query(redis).expect("a part");
            found.extend(part);
            cursor = next;
            if cursor == "0" {
                found.sort();
                return found;
            }
        }
    };
    for count in ["7", "100", "1000000"] {
        assert_eq!(scan(&mut redis, count), names, "{count}");
    }
    assert_eq!(ask(&mut redis, &["ZADD", "game:new", "1", "a"]), "1");
    assert_eq!(ask(&mut redis, &["ZREM", "game:000", "a"]), "1");
    names.remove(0);
    names.push("game:new".to_owned());
    assert_eq!(scan(&mut redis, "7"), names);
    assert_eq!(ask(&mut redis, &["DBSIZE"]), "300");
    for (pattern, expect) in [
        ("game:*9", 30),
        ("game:00*", 9),
        ("game:00", 0),
        ("game:001", 1),
        ("*", 300),
        ("h*", 0),
        ("?ame:new", 1),
    ] {
        assert_eq!(members(&mut redis, &["KEYS", pattern]).len(), expect, "{pattern}");
    }
    // It costs no more than its length, and a longer one none.
    let stars = "*a".repeat(512);
    assert_eq!(ask(&mut redis, &["KEYS", &stars]), "[]");
    for command in
        [&["KEYS"][..], &["CONFIG", "GET"], &["SCAN", "0", "MATCH"], &["ZSCAN", "game:1", "0", "MATCH"]]
    {
        let told = ask(&mut redis, &[command, &[&"*".repeat(1_025)]].concat());
        assert!(told.contains("a pattern may have 1024 bytes"), "{command:?}: {told}");
    }
}

/// The greatest memory that the node had, in MiB.
fn peak_mib(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).expect("Linux has it");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    peak.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

#[test]
fn all_of_a_large_board_is_told_and_replies_take_no_more_memory_than_there_is_for_them() {
    const MEMBERS: usize = 600_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(2));
    fill(&mut redis, "big", MEMBERS);
    for words in [&["ZRANGE", "big", "0", "-1"][..], &["ZREVRANGE", "big", "0", "-1"]] {
        let mut all = members(&mut redis, words);
        if words[0] == "ZREVRANGE" {
            all.reverse();
        }
        assert_eq!(all.len(), MEMBERS);
        assert!(all.iter().enumerate().all(|(number, member)| *member == format!("m{number:07}")));
    }

    // The replies of a transaction are sent as they are made.
    let before = peak_mib(&node);
    let mut stream = raw(folder.path());
    let mut sent = "MULTI\r\n".to_owned();
    sent += &"ZRANGE big 0 -1 WITHSCORES\r\n".repeat(12);
    sent += "EXEC\r\nQUIT\r\n";
    stream.write_all(sent.as_bytes()).expect("it is read");
    let (mut piece, mut bytes) = (vec![0; 1 << 20], 0);
    loop {
        match stream.read(&mut piece).expect("it is not reset") {
            0 => break,
            read => bytes += read,
        }
    }
    assert!(bytes > 12 * 20 * MEMBERS, "{bytes}");
    let grown = peak_mib(&node).saturating_sub(before);
    let replied = u64::try_from(bytes >> 20).expect("it is no more");
    assert!(grown < replied / 3, "{grown} MiB for replies of {replied} MiB");

    // Clients that do not read theirs have no more made.
    let asks = |words: &str| {
        let mut stream = raw(folder.path());
        stream.write_all(words.as_bytes()).expect("it is read");
        stream
    };
    let mut unread: Vec<UnixStream> = (0..8).map(|_| asks("ZRANGE big 0 -1 WITHSCORES\r\n")).collect();
    wait_until("there is no room for more", || {
        unread.push(asks("ZRANGE big 0 29999 WITHSCORES\r\n"));
        let told = redis::cmd("ZRANGE").arg("big").arg(0).arg(50_000).query::<Value>(&mut redis);
        told.is_err_and(|why| why.to_string().to_lowercase().contains("memory"))
    });
    assert!(peak_mib(&node) - before < 400, "{} MiB", peak_mib(&node) - before);
    // Short answers always have room, those of HTTP too.
    assert_eq!(ask(&mut redis, &["ZCARD", "big"]), MEMBERS.to_string());
    assert_eq!(members(&mut redis, &["ZRANGE", "big", "0", "99"]).len(), 100);
    assert_eq!(node.client().get("/v1/boards/big/top?limit=10").0, 200);
    drop(unread);
    wait_until("there is room again", || {
        redis::cmd("ZRANGE").arg("big").arg(0).arg(50_000).query::<Value>(&mut redis).is_ok()
    });
}

/// Sends bytes, one whenever nothing has come for a while, until the service ends the connection.
fn trickle(mut stream: UnixStream, bytes: &[u8]) -> usize {
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("it can be set");
    let mut sent = 0;
    for byte in bytes.iter().cycle() {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        sent += 1;
        match stream.read(&mut [0; 100]) {
            Ok(0) => break,
            Ok(_) => {}
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    sent
}

#[test]
fn a_request_has_its_time_from_its_first_byte_and_a_client_without_a_token_from_the_beginning() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("tokens.toml");
    let (token, lines) = new_token(&["--scope", "read", "--name", "reader"]);
    std::fs::write(&file, lines).expect("it can be written");
    let tokens = file.to_str().expect("UTF-8");
    let flags = ["--header-seconds", "1", "--idle-seconds", "1", "--tokens", tokens];
    let node = listening_in(folder.path(), Node::flags(&flags)).start();
    let with_token = || {
        let mut stream = raw(folder.path());
        stream.write_all(format!("AUTH {token}\r\n").as_bytes()).expect("it is read");
        let mut ok = [0; 5];
        stream.read_exact(&mut ok).expect("a reply");
        assert_eq!(&ok, b"+OK\r\n");
        stream
    };
    drop(connect(&socket_in(folder.path())));
    // A hundred times as many would be sent within the timeout of each read.
    let half = "*1\r\n$1000\r\n".to_owned() + &"x".repeat(900);
    assert!(trickle(with_token(), half.as_bytes()) < 100);
    for sent in ["\r\n", "PING\r\n", "AUTH no\r\n"] {
        assert!(trickle(raw(folder.path()), sent.as_bytes()) < 100, "{sent:?}");
    }
    // Commands do not wait for their EXEC for ever.
    let mut waiting = with_token();
    waiting.write_all(b"MULTI\r\nZCARD a\r\n").expect("it is read");
    let mut rest = String::new();
    waiting.read_to_string(&mut rest).expect("it is ended");
    assert_eq!(rest, "+OK\r\n+QUEUED\r\n");
    let ended = node.metric_for(&token, "ranktree_redis_connections_ended_total{reason=\"slow_request\"}");
    assert_eq!(ended, Some(5.0));
}

#[test]
fn a_write_of_which_some_is_wrong_is_refused_before_any_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut redis) = start(folder.path(), Node::shards(2));
    let bounded = serde_json::json!({"keys": [{"name": "points", "min": 0, "max": 10}]});
    assert_eq!(node.client().put("/v1/boards/int", &bounded).0, 201);
    for words in ["ZADD int 5 a 50 b", "ZADD int NX -1 a 5 b", "ZADD int 5 a 1.5 b"] {
        let told = ask(&mut redis, &words.split(' ').collect::<Vec<_>>());
        assert!(told.starts_with("error") && !told.contains("UNKNOWN"), "{words}: {told}");
        assert_eq!(ask(&mut redis, &["ZCARD", "int"]), "0", "{words}");
    }
    // Of a sum it is known when it is made.
    assert_eq!(ask(&mut redis, &["ZADD", "int", "9", "a"]), "1");
    assert!(ask(&mut redis, &["ZINCRBY", "int", "5", "a"]).contains("out_of_range"));
    assert_eq!(ask(&mut redis, &["ZSCORE", "int", "a"]), r#""9""#);
    let pairs: Vec<String> = (0..=65_536).flat_map(|number| ["1".to_owned(), format!("m{number}")]).collect();
    let words: Vec<&str> = ["ZADD", "int"].into_iter().chain(pairs.iter().map(String::as_str)).collect();
    assert!(ask(&mut redis, &words).contains("send them in parts"));
    assert_eq!(ask(&mut redis, &["ZCARD", "int"]), "1");
}

#[test]
fn requests_that_have_come_are_answered_when_the_service_ends() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut node, _) = start(folder.path(), Node::shards(1));
    let mut streams: Vec<UnixStream> = (0..20).map(|_| raw(folder.path())).collect();
    wait_until("all are connected", || node.metric("ranktree_redis_connections") == Some(20.0));
    for stream in &mut streams {
        stream.write_all(b"PING\r\n*1\r\n").expect("it is read");
    }
    node.terminate();
    for mut stream in streams {
        let mut replied = String::new();
        stream.read_to_string(&mut replied).expect("it is not reset");
        assert_eq!(replied, "+PONG\r\n");
    }
}

//! Pipelines, and clients that do not behave.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::support::node::Node;
use crate::support::redis::{ask, connect, socket_in, start};

fn raw(folder: &Path) -> UnixStream {
    UnixStream::connect(socket_in(folder)).expect("it listens")
}

/// All that is replied until the service closes the connection.
fn rest(mut stream: UnixStream) -> String {
    let mut bytes = Vec::new();
    // A connection may be reset, if the service had not read all of it.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_long_pipeline_is_answered_in_order_and_its_reads_see_its_writes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, _) = start(folder.path(), Node::shards(3));
    let mut stream = raw(folder.path());
    let (mut sent, mut expect) = (String::new(), String::new());
    for number in 0..5_000 {
        write!(sent, "ZADD arena {number} m{}\r\n", number % 100).expect("memory takes it");
        expect += if number < 100 { ":1\r\n" } else { ":0\r\n" };
        if number % 10 == 9 {
            let digits = number.to_string();
            write!(sent, "ZSCORE arena m{}\r\nnonsense\r\n", number % 100).expect("memory takes it");
            write!(expect, "${}\r\n{digits}\r\n", digits.len()).expect("memory takes it");
            expect += "-ERR unknown command 'nonsense', with args beginning with: \r\n";
        }
    }
    sent += "QUIT\r\n";
    expect += "+OK\r\n";
    let writing = stream.try_clone().expect("a handle");
    let writer = std::thread::spawn(move || (&writing).write_all(sent.as_bytes()).expect("it is read"));
    let mut found = String::new();
    stream.read_to_string(&mut found).expect("text");
    writer.join().expect("it does not panic");
    assert_eq!(found.len(), expect.len());
    assert!(found == expect, "replies are in order");
}

#[test]
fn a_client_may_send_all_of_a_pipeline_before_it_reads() {
    const REQUESTS: usize = 40_000;
    const IN_TRANSACTION: usize = 1_000;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::flags(&["--http-threads", "1"]));
    assert_eq!(ask(&mut redis, &["ZADD", "arena", "1", &"a".repeat(200), "2", &"b".repeat(200)]), "2");
    let request = "ZREVRANGE arena 0 -1 WITHSCORES\r\n";
    let transaction = "MULTI\r\n".to_owned() + &request.repeat(IN_TRANSACTION) + "EXEC\r\n";
    let one =
        format!("*4\r\n$200\r\n{}\r\n$1\r\n2\r\n$200\r\n{}\r\n$1\r\n1\r\n", "b".repeat(200), "a".repeat(200));
    let executed = format!("+OK\r\n{}*{IN_TRANSACTION}\r\n", "+QUEUED\r\n".repeat(IN_TRANSACTION))
        + &one.repeat(IN_TRANSACTION);
    // Replies of many times what the system keeps for a client.
    for (sent, expect, times) in [
        (request, one.as_str(), REQUESTS),
        (transaction.as_str(), executed.as_str(), REQUESTS / IN_TRANSACTION),
    ] {
        let mut stream = raw(folder.path());
        stream.write_all((sent.repeat(times) + "QUIT\r\n").as_bytes()).expect("it is read");
        // Others are served meanwhile.
        assert_eq!(ask(&mut redis, &["PING"]), "PONG");
        assert!(rest(stream) == expect.repeat(times) + "+OK\r\n", "replies are whole and in order");
    }
}

#[test]
fn what_is_no_request_is_told_so_and_the_connection_ends() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::shards(1));
    for (sent, expect) in [
        ("*1\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'\r\n"),
        ("*99999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        ("PING\r\n*1\r\n$-5\r\n", "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n"),
        ("PING \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
    ] {
        let mut stream = raw(folder.path());
        stream.write_all(sent.as_bytes()).expect("it is read");
        assert_eq!(rest(stream), expect, "{sent:?}");
    }
    // A page in a browser can send this, and must not reach a command in the body.
    let mut stream = raw(folder.path());
    let sent = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nZADD arena 1 evil\r\n";
    stream.write_all(sent.as_bytes()).expect("it is read");
    assert_eq!(rest(stream), "");
    assert_eq!(ask(&mut redis, &["ZCARD", "arena"]), "0");
    // More than a request may have: it is not waited for.
    let mut stream = raw(folder.path());
    stream.write_all(b"*2\r\n$4\r\nECHO\r\n$536870911\r\n").expect("it is read");
    assert_eq!(rest(stream), "-ERR Protocol error: a request may have 8388608 bytes; send it in parts\r\n");
    assert_eq!(ask(&mut redis, &["PING"]), "PONG");
}

#[test]
fn a_request_that_does_not_end_is_given_up_and_a_silent_client_is_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut silent) =
        start(folder.path(), Node::flags(&["--header-seconds", "1", "--idle-seconds", "1"]));
    assert_eq!(ask(&mut silent, &["PING"]), "PONG");
    let mut half = raw(folder.path());
    half.write_all(b"*2\r\n$4\r\nECHO\r\n$3\r\nab").expect("it is read");
    assert_eq!(rest(half), "");
    let ended = node.metric("ranktree_redis_connections_ended_total{reason=\"slow_request\"}");
    assert_eq!(ended, Some(1.0));
    assert_eq!(ask(&mut silent, &["PING"]), "PONG");
    // One that comes byte by byte is answered.
    let mut slow = raw(folder.path());
    for byte in b"*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n" {
        slow.write_all(&[*byte]).expect("it is read");
    }
    let mut reply = [0; 9];
    slow.read_exact(&mut reply).expect("a reply");
    assert_eq!(&reply, b"$3\r\nabc\r\n");
}

#[test]
fn connections_beyond_the_limit_are_told_so_and_those_of_http_count() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, mut first) =
        start(folder.path(), Node::flags(&["--max-connections", "3", "--header-seconds", "60"]));
    assert_eq!(ask(&mut first, &["PING"]), "PONG");
    // Each is answered before the next one comes: who is told that there is no room follows from the order.
    let mut second = raw(folder.path());
    second.write_all(b"PING\r\n").expect("it is read");
    second.read_exact(&mut [0; 7]).expect("+PONG");
    let mut http = std::net::TcpStream::connect(node.address()).expect("it listens");
    http.write_all(b"GET /v1/boards HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it is read");
    let mut status = [0; 12];
    http.read_exact(&mut status).expect("it answers");
    assert_eq!(&status, b"HTTP/1.1 200");
    let mut beyond = raw(folder.path());
    // The service may have closed it already.
    let _ = beyond.write_all(b"QUIT\r\n");
    let told = rest(beyond);
    assert!(told.contains("max number of clients"), "{told}");
    drop((second, http));
    crate::support::nats::wait_until("there is room again", || {
        let mut next = raw(folder.path());
        let _ = next.write_all(b"QUIT\r\n");
        rest(next) == "+OK\r\n"
    });
    drop(connect(&socket_in(folder.path())));
}

#[test]
fn a_transaction_is_done_in_order_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_node, mut redis) = start(folder.path(), Node::shards(2));
    let all = |redis: &mut redis::Connection, commands: &[&str]| -> Vec<String> {
        let words = |command: &str| command.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut ask_all = |command: &&str| {
            let words = words(command);
            ask(redis, &words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        commands.iter().map(&mut ask_all).collect()
    };
    let done =
        all(&mut redis, &["MULTI", "ZADD a 1 x 2 y", "ZINCRBY a 5 x", "ZREVRANGE a 0 -1", "PING", "EXEC"]);
    assert_eq!(done[..4], ["OK", "QUEUED", "QUEUED", "QUEUED"]);
    assert_eq!(done[5], r#"[2 "6" ["x" "y"] PONG]"#);
    let refused = all(&mut redis, &["MULTI", "ZADD a 9 z", "ZADD a 1", "EXEC", "ZSCORE a z"]);
    assert!(refused[2].contains("wrong number") && refused[3].contains("discarded"), "{refused:?}");
    assert_eq!(refused[4], "nil");
    let forgotten = all(&mut redis, &["MULTI", "ZADD a 9 z", "DISCARD", "ZSCORE a z", "EXEC"]);
    assert_eq!((forgotten[2].as_str(), forgotten[3].as_str()), ("OK", "nil"));
    assert!(forgotten[4].contains("EXEC without MULTI"), "{forgotten:?}");
    // As client libraries send it.
    let mut pipe = redis::pipe();
    pipe.atomic().cmd("ZADD").arg("a").arg(3).arg("z").ignore().cmd("ZCARD").arg("a");
    let (count,): (u64,) = pipe.query(&mut redis).expect("it is done");
    assert_eq!(count, 3);
}

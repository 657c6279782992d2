//! Clients that keep the service waiting are disconnected after their timeout, and other clients do not
//! notice. Floods of connections are refused, and probes get through.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::nats::wait_until;
use crate::support::node::Node;
use crate::support::raw::{ask, connect, get, rest_of, trickle};

const PACE: Duration = Duration::from_millis(50);
/// A timeout that does not expire during a test.
const NEVER: &str = "3600";
/// Far longer than disconnecting takes, and far shorter than [`NEVER`].
const SOON: Duration = Duration::from_secs(300);

/// The service's timeout runs from when it sees the client, which is after `began`.
fn check_time(began: Instant, seconds: u64, what: &str) {
    let took = began.elapsed();
    // The service counts in milliseconds.
    let least = Duration::from_secs(seconds).saturating_sub(PACE);
    assert!(took >= least, "{what} ended after {took:?}, before its {seconds} s");
}

/// How many connections were ended for this reason.
fn ended(service: &Node, reason: &str) -> u64 {
    let metrics = get(service.address(), "/metrics");
    let name = format!("ranktree_http_connections_ended_total{{reason=\"{reason}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |count| count.trim().parse().expect("a count"))
}

/// A connection on which a request was answered with 200. On a busy machine the service may disconnect the
/// client before, and the client tries again.
fn connect_and_ask(address: &str, sent: &str) -> TcpStream {
    let mut answered = None;
    wait_until("a request is answered", || {
        let mut stream = connect(address);
        let mut answer = [0; 12];
        let read = stream.write_all(sent.as_bytes()).and_then(|()| stream.read_exact(&mut answer));
        answered = (read.is_ok() && &answer == b"HTTP/1.1 200").then_some(stream);
        answered.is_some()
    });
    answered.expect("it was just seen")
}

#[test]
fn an_incomplete_request_head_is_given_up_after_its_timeout() {
    const SECONDS: u64 = 1;
    let service =
        Node::flags(&["--header-seconds", "1", "--idle-seconds", NEVER, "--write-seconds", NEVER]).start();
    let address = service.address();
    let health = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n";

    // Nothing at all.
    let began = Instant::now();
    assert_eq!(rest_of(&mut connect(address)), "");
    check_time(began, SECONDS, "a connection without a request");

    // A head, a byte at a time.
    let began = Instant::now();
    let mut stream = connect(address);
    let _ = stream.write_all(format!("{health}x-slow: ").as_bytes());
    let said = trickle(&mut stream, PACE);
    check_time(began, SECONDS, "a slow head");
    assert_eq!(said, "");

    // A second head, after a good request.
    let mut stream = connect_and_ask(address, &format!("{health}\r\n"));
    let began = Instant::now();
    let _ = stream.write_all(format!("{health}x-slow: ").as_bytes());
    trickle(&mut stream, PACE);
    check_time(began, SECONDS, "a slow second head");

    // A second head whose beginning came with the first.
    let began = Instant::now();
    let mut stream = connect_and_ask(address, &format!("{health}\r\n{health}x-slow: "));
    rest_of(&mut stream);
    check_time(began, SECONDS, "a second head that was begun");

    wait_until("each is counted", || ended(&service, "slow_header") >= 4);
    assert_eq!(ended(&service, "idle"), 0);
}

#[test]
fn an_incomplete_body_is_answered_with_an_error() {
    let service =
        Node::flags(&["--header-seconds", NEVER, "--body-seconds", "3", "--idle-seconds", NEVER]).start();
    let address = service.address();

    // The body arrives a byte at a time. A client that pauses for a third of the time is disconnected at
    // once.
    let began = Instant::now();
    let mut stream = connect(address);
    let put = "PUT /v1/boards/a/members/m HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    stream.write_all(put.as_bytes()).expect("it is open");
    let said = trickle(&mut stream, PACE);
    check_time(began, 1, "a slow body");
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("body_too_slow"), "{said}");
    assert!(said.contains("connection: close"), "{said}");

    // A body that stops.
    let began = Instant::now();
    let said = ask(address, put);
    check_time(began, 1, "a body that stops");
    assert!(said.starts_with("HTTP/1.1 408"), "{said}");

    // A body whose Content-Length is too large is refused before any of it has arrived, also with `Expect:
    // 100-continue`.
    for (length, more) in [("99999999999", ""), ("2000000", "expect: 100-continue\r\n")] {
        let said = ask(
            address,
            &format!("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\n{more}content-length: {length}\r\n\r\n"),
        );
        assert!(said.starts_with("HTTP/1.1 413") && said.contains("\"code\":\"too_large\""), "{said}");
    }
    let (status, boards) = service.client().get("/v1/boards");
    assert_eq!((status, &boards["boards"]), (200, &json!([])), "nothing of all that was taken for a write");
}

#[test]
fn an_idle_connection_is_closed() {
    let service = Node::flags(&["--header-seconds", NEVER, "--idle-seconds", "1"]).start();
    let began = Instant::now();
    let said = ask(service.address(), "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    check_time(began, 1, "an idle connection");
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    wait_until("it is counted", || ended(&service, "idle") == 1);
}

#[test]
fn a_client_that_does_not_read_its_answers_is_disconnected() {
    let service = Node::flags(&["--write-seconds", "1"]).start();
    let jobs: Vec<Value> =
        (0..1_000).map(|n| json!({"board": "a", "member": format!("member-{n}"), "score": n})).collect();
    assert_eq!(service.client().post("/v1/jobs", &json!(jobs)).0, 200);
    // More than the buffers of both sides hold.
    let top = "GET /v1/boards/a/top?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut stream = connect(service.address());
    stream.write_all(top.repeat(300).as_bytes()).expect("it is open");
    wait_until("the client is let go", || ended(&service, "slow_reader") == 1);
    assert_eq!(service.client().get("/v1/boards/a").0, 200);
    // The client gets the content of the buffers, and no more.
    let said = rest_of(&mut stream);
    assert!(said.starts_with("HTTP/1.1 200") && said.matches("HTTP/1.1 200").count() < 300);
}

/// A client that does not read its answer keeps its permit until it reads or disconnects.
#[test]
fn a_request_keeps_its_permit_until_its_answer_is_read() {
    let service = Node::flags(&["--write-seconds", "3600", "--max-requests", "1"]).start();
    let jobs: Vec<Value> =
        (0..1_000).map(|n| json!({"board": "a", "member": format!("member-{n}"), "score": n})).collect();
    assert_eq!(service.client().post("/v1/jobs?results=changed", &json!(jobs)).0, 200);
    let is_there = || get(service.address(), "/v1/boards/a").starts_with("HTTP/1.1 200");
    // More than the buffers of both sides hold.
    let top = "GET /v1/boards/a/top?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let ends = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut stream = connect(service.address());
    stream.write_all(format!("{}{ends}", top.repeat(300)).as_bytes()).expect("it is open");
    wait_until("the place is taken for good", || (0..100).all(|_| !is_there()));
    assert!(get(service.address(), "/healthz").starts_with("HTTP/1.1 200"));
    // Requests in between may have had the permit, and some of these get 503.
    let said = rest_of(&mut stream);
    assert_eq!(said.matches("HTTP/1.1 ").count(), 301, "all are answered");
    wait_until("there is room again", is_there);
    let mut stream = connect(service.address());
    stream.write_all(top.repeat(300).as_bytes()).expect("it is open");
    wait_until("the place is taken again", || (0..100).all(|_| !is_there()));
    drop(stream);
    wait_until("there is room again", is_there);
}

/// A connection that sends nothing.
fn silent(address: &str) -> TcpStream {
    connect(address)
}

/// Whether the other side has ended it.
fn is_ended(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("it can be set");
    match stream.read(&mut [0; 16]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn a_flood_of_connections_is_refused_and_probes_get_through() {
    for limits in [
        ["--max-connections", "20", "--max-connections-per-client", "0"],
        ["--max-connections", "0", "--max-connections-per-client", "20"],
    ] {
        let mut service = Node::flags(&[&limits[..], &["--header-seconds", NEVER]].concat()).start();
        let address = service.address().to_owned();
        let mut held: Vec<_> = (0..20).map(|_| silent(&address)).collect();
        wait_until("all places are taken", || {
            get(&address, "/metrics").lines().any(|line| line == "ranktree_http_connections 21")
        });
        // One connection more gets a complete answer that says so.
        let said = get(&address, "/v1/boards");
        assert!(said.starts_with("HTTP/1.1 503") && said.contains("\"code\":\"overloaded\""), "{said}");
        assert!(said.contains("retry-after: 1\r\n") && said.contains("connection: close\r\n"), "{said}");
        let metrics = get(&address, "/metrics");
        assert!(metrics.lines().any(|line| line == "ranktree_http_requests_shed_total 1"), "it is counted");
        for path in ["/healthz", "/readyz", "/metrics"] {
            let said = get(&address, path);
            assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        }
        // Connections of a flood are closed at once, except for a few that are closed soon after.
        let mut flood: Vec<_> = (0..300).map(|_| silent(&address)).collect();
        wait_until("probes get through", || get(&address, "/healthz").starts_with("HTTP/1.1 200"));
        wait_until("the flood is closed", || flood.iter_mut().all(is_ended));
        // Each had no permit, or was one of the few overflow connections for a moment.
        let turned_away = ended(&service, "refused") + ended(&service, "over_limit");
        assert!(turned_away >= 300, "{turned_away}");
        assert!(held.iter_mut().all(|stream| !is_ended(stream)), "who was there first stays");
        drop(held);
        wait_until("there is room again", || get(&address, "/v1/boards").starts_with("HTTP/1.1 200"));
        service.terminate();
    }
}

#[test]
fn silent_connections_do_not_delay_a_shutdown() {
    let mut service = Node::flags(&["--header-seconds", NEVER, "--idle-seconds", NEVER]).start();
    let address = service.address().to_owned();
    let mut idle = connect(&address);
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("it is open");
    idle.read_exact(&mut [0; 12]).expect("there is an answer");
    let _silent = connect(&address);
    let mut slow = connect(&address);
    slow.write_all(b"GET /healthz HTTP/1.1\r\n").expect("it is open");
    let started = Instant::now();
    assert!(service.terminate().success());
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
}

/// The size that a page with metadata may have is reserved before any of it is read, so that all unread
/// answers together are bounded.
#[test]
fn unread_pages_with_metadata_stay_within_the_memory_for_answers() {
    const CLIENTS: usize = 600;
    const MEMBERS: usize = 1_000;
    /// The memory of an idle service, plus the 128 MiB for answers, plus as much again while answers are
    /// made.
    const MOST_KIB: usize = 400 << 10;
    let mut service = Node::flags(&["--write-seconds", NEVER, "--idle-seconds", NEVER]).start();
    let client = service.client();
    let meta = json!({ "text": "x".repeat(1_000) });
    let job = |n: usize| json!({ "board": "a", "member": format!("m{n}"), "score": n, "meta": meta });
    for first in (0..MEMBERS).step_by(500) {
        let jobs: Vec<_> = (first..first + 500).map(job).collect();
        assert_eq!(client.post("/v1/jobs?results=changed", &Value::from(jobs)).0, 200);
    }
    let mut streams: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(service.address())).collect();
    for stream in &mut streams {
        let request = "GET /v1/boards/a/top?limit=1000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("it can be sent");
    }
    let mut statuses = std::collections::BTreeMap::<String, usize>::new();
    for stream in &mut streams {
        let mut begun = [0; 12];
        stream.read_exact(&mut begun).expect("each is answered");
        *statuses.entry(String::from_utf8_lossy(&begun).into_owned()).or_default() += 1;
    }
    assert_eq!(statuses.keys().collect::<Vec<_>>(), ["HTTP/1.1 200", "HTTP/1.1 503"], "{statuses:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.pid())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    let peak: usize = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < MOST_KIB, "{peak} KiB, {statuses:?}");
    drop(streams);
    wait_until("there is room again", || client.get("/v1/boards/a/top?limit=1000").0 == 200);
    assert!(service.terminate().success());
}

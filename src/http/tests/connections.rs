//! Connections, at the level of bytes: requests that come together, and what becomes of them at a shutdown.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::access::Scope;
use crate::connections::{ConnectionLimits, SharedConnections};
use crate::http::guard::authorize::{BoardCheck, Needs};
use crate::http::openapi::operation::Method;
use crate::http::openapi::operations;
use crate::http::request::head::Head;
use crate::http::resources::{members, ranks};
use crate::http::routing::endpoint::{Endpoint, Guarded, Measured, Routed, Work};
use crate::http::routing::request_span::TracedRoute;
use crate::http::routing::taken::RouteTakes;
use crate::http::tests::{Fixture, start};
use crate::http::{Serving, serve};

/// Far above what anything here takes.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// A service that listens, and a connection to it.
struct Served {
    fixture: Fixture,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: Option<tokio::task::JoinHandle<()>>,
}

impl Served {
    fn start(runtime: &Runtime) -> Self {
        let _entered = runtime.enter();
        let fixture = start(2);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = Serving { loopback_guard: true, ..Serving::default() };
        let shared = SharedConnections::start(1, ConnectionLimits::default()).expect("threads");
        let ended = runtime.spawn(serve(listener, Arc::clone(&fixture.api), shared, serving, async {
            let _ = stopped.await;
        }));
        Self { fixture, address, stop: Some(stop), ended: Some(ended) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the service listens");
        stream.set_read_timeout(Some(HANGS_AFTER)).expect("a socket has the option");
        stream.set_nodelay(true).expect("a socket has the option");
        stream
    }

    fn stop(mut self, runtime: &Runtime) {
        drop(self.stop.take());
        let ended = self.ended.take().expect("it is stopped once");
        runtime.block_on(ended).expect("it does not panic");
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// One whole answer. `None`: the other side has closed.
fn answer(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
            if bytes.len() >= end + 4 + length {
                assert_eq!(bytes.len(), end + 4 + length, "nothing follows: {head}");
                return Some(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        match stream.read(&mut piece) {
            Ok(0) => {
                assert!(bytes.is_empty(), "it ends within an answer: {}", String::from_utf8_lossy(&bytes));
                return None;
            }
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) => panic!("no answer: {error}"),
        }
    }
}

fn request(method: &str, path: &str, fields: &str, body: &str) -> String {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{fields}{length}\r\n{body}")
}

/// The future of a request is copied when it is made, and in parts while it is polled, so that each request
/// pays for its size. What requests seldom wait for has boxes of its own.
#[tokio::test]
async fn futures_of_frequent_requests_are_small() {
    fn size(endpoint: impl Endpoint, fixture: &Fixture) -> usize {
        let needs = Needs::Token(Scope::Read, BoardCheck::InPath);
        let guarded = Guarded::new(endpoint, needs, TracedRoute::new(Method::Get, "/"));
        let head = Head::new(Request::new(()).into_parts().0, None, Some(Vec::new()), None);
        size_of_val(&*guarded.answer(&fixture.api, head, Body::empty()))
    }
    let fixture = start(2);
    let needs = Needs::Token(Scope::Read, BoardCheck::InPath);
    let takes = RouteTakes::of(Method::Get, needs, &operations::member());
    let sizes = [
        size(Measured::new(Work::Inline(members::get), needs, takes, "member"), &fixture),
        size(Measured::new(Work::Inline(ranks::of_score), needs, takes, "rank"), &fixture),
        size(Measured::new(Work::Inline(members::put), needs, takes, "put_member"), &fixture),
    ];
    let most = [2_624, 2_048, 2_816];
    assert!(sizes.iter().zip(most).all(|(size, most)| *size <= most), "{sizes:?} bytes, of {most:?}");
}

/// The statuses of the answers to bytes that are sent at once, until the last of them closes the connection.
fn statuses(served: &Served, bytes: &str) -> Vec<String> {
    let mut stream = served.connect();
    stream.write_all(bytes.as_bytes()).expect("it is open");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("it ends");
    said.split("HTTP/1.1 ").skip(1).map(|answer| answer.chars().take(3).collect()).collect()
}

#[test]
fn requests_that_come_together_are_answered_in_their_order() {
    let runtime = runtime();
    let served = Served::start(&runtime);
    let get = |member: &str| request("GET", &format!("/v1/boards/arena/members/{member}"), "", "");
    let put =
        |member: &str| request("PUT", &format!("/v1/boards/arena/members/{member}"), "", r#"{"score":1}"#);
    let last = request("GET", "/v1/boards/arena/members/none", "connection: close\r\n", "");
    for (together, expect) in [
        (format!("{}{last}", put("a")), &["200", "404"][..]),
        (
            format!("{}{}{}{}{last}", get("b"), get("a"), put("b"), get("b")),
            &["404", "200", "200", "200", "404"],
        ),
        (format!("\r\n{}\r\n{last}", get("a")), &["200", "404"]),
        (format!("{}{last}", request("GET", "/healthz", "", "")), &["200", "404"]),
    ] {
        assert_eq!(statuses(&served, &together), expect, "{together}");
    }
    // A piece that ends within a request, behind another one: the rest comes once that is answered.
    let mut stream = served.connect();
    let get = get("a");
    for (piece, answers) in [(get.as_str(), true), (&get[..20], false), (&get[20..], true), (&put("a"), true)]
    {
        stream.write_all(piece.as_bytes()).expect("it is open");
        if answers {
            let answer = answer(&mut stream).expect("it is open");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
    }
    drop(stream);
    served.stop(&runtime);
}

#[test]
fn requests_of_rarer_forms_are_answered_or_refused_with_a_reason() {
    const ENTRY: &str = "/v1/boards/arena/members/p1";
    let runtime = runtime();
    let served = Served::start(&runtime);
    let get = |path: &str| request("GET", path, "", "");
    let with = |fields: &str| request("GET", ENTRY, fields, "");
    let put = |fields: &str| request("PUT", ENTRY, fields, r#"{"score":5}"#);
    let (mut stream, mut wrong) = (served.connect(), Vec::new());
    for (request, status) in [
        (put("content-type: x/y\r\n"), "200"),
        (get(ENTRY), "200"),
        (format!("\r\n{}", get(ENTRY)), "200"),
        (get("/v1/boards/arena/members/p%31"), "200"),
        (get("/v1/boards/arena/members/p1?"), "200"),
        (get("/v1/boards/arena/members/p1?window=all&&accuracy=exact"), "200"),
        (get("/v1/boards/arena/members/p1?x=1"), "422"),
        (get("/v1/boards/arena/members/%ff"), "400"),
        (get("/v1/boards/arena/members/p1/"), "404"),
        (get("/v1/boards/arena/members/"), "404"),
        (get("/v1/boards//members/p1"), "422"),
        (get("/v1/boards/arena:clear"), "404"),
        (get("http://localhost/v1/boards/arena"), "200"),
        (get(&format!("/v1/boards/arena/members/{}", "x".repeat(9_000))), "422"),
        (request("GET", ENTRY, "", "a body"), "422"),
        (request("POST", ENTRY, "", "{}"), "405"),
        (request("PATCH", ENTRY, "", "{}"), "405"),
        (put("Idempotency-Key: a\r\n"), "200"),
        (put("Idempotency-Key: \r\n"), "422"),
        (put(&format!("Idempotency-Key: {}\r\n", "k".repeat(61))), "422"),
        (with("idempotency-key: a\r\n"), "200"),
        (with("te: trailers\r\n"), "200"),
        (with("content-length: 0\r\ncontent-length: 0\r\n"), "400"),
        (with("content-length: +0\r\n"), "400"),
        (with("expect: 100-continue\r\n"), "200"),
        (with("connection: keep-alive, x\r\n"), "200"),
        (with("connection: Keep-Alive\r\naccept: */*\r\n"), "200"),
        (with("host: localhost\r\n"), "400"),
        (get(ENTRY).replace("host: localhost\r\n", ""), "400"),
        // Who sends it.
        (get(ENTRY).replace("localhost", "evil.example"), "403"),
        (get(ENTRY).replace("localhost", ""), "403"),
        (with("origin: http://evil.example\r\n"), "403"),
        (with("origin: http://localhost:3000\r\n"), "403"),
        (put("origin: http://localhost:3000\r\n"), "403"),
        (with("sec-fetch-site: cross-site\r\n"), "403"),
        (with("sec-fetch-site: same-origin\r\norigin: http://localhost\r\n"), "200"),
        (with("connection: close\r\n"), "200"),
    ] {
        stream.write_all(request.as_bytes()).expect("it is open");
        let said = answer(&mut stream).unwrap_or_default();
        if !said.starts_with(&format!("HTTP/1.1 {status} ")) {
            wrong.push(format!("{request:.200} is not {status}: {said}"));
        }
        if said.contains("\r\nconnection: close\r\n") {
            assert_eq!(answer(&mut stream), None, "{request:.200}");
            stream = served.connect();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    drop(stream);
    served.stop(&runtime);
}

#[test]
fn a_request_in_work_is_answered_when_the_service_stops() {
    const TIMEOUT_MS: u32 = 5_000;
    let runtime = runtime();
    let mut served = Served::start(&runtime);
    let mut streams = [(); 2].map(|()| served.connect());
    let put = request("PUT", "/v1/boards/arena/members/m", "", r#"{"score":1}"#);
    for stream in &mut streams {
        stream.write_all(put.as_bytes()).expect("it is open");
        assert!(answer(stream).is_some_and(|answer| answer.starts_with("HTTP/1.1 200 OK\r\n")));
    }
    // It waits for what never comes. As long as it does, it has a reference of its own.
    let idle = Arc::strong_count(&served.fixture.api);
    let path = format!("/v1/boards/arena/members/m?after=0:9999&timeout_ms={TIMEOUT_MS}");
    streams[0].write_all(request("GET", &path, "", "").as_bytes()).expect("it is open");
    while Arc::strong_count(&served.fixture.api) == idle {
        std::thread::yield_now();
    }
    drop(served.stop.take());
    let [waited, idle] = streams.each_mut().map(answer);
    assert_eq!(idle, None);
    let waited = waited.unwrap_or_default();
    assert!(waited.starts_with("HTTP/1.1 504 "), "{waited}");
    assert!(waited.contains("\r\nconnection: close\r\n") && waited.contains("\r\ndate: "), "{waited}");
    assert_eq!(answer(&mut streams[0]), None);
    drop(streams);
    served.stop(&runtime);
}

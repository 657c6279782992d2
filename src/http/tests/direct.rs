//! Requests that a connection answers by itself, compared byte by byte with what hyper's answers are.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use crate::access::{ActiveTokens, Scope, Secret, Tokens};
use crate::http::guard::refusal_log::ClientAddress;
use crate::http::request::at_once::AtOnce;
use crate::http::request::head::Head;
use crate::http::request::plain::PlainRequest;
use crate::http::routing::direct::DirectRoutes;
use crate::http::routing::routes::{operations, router_and_direct};
use crate::http::tests::{Fixture, start_guarded};
use crate::http::{Limits, Serving, Threads, serve};

/// Far above what anything here takes.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// Whether a request is answered by the connection itself.
const DIRECT: bool = true;
const BY_HYPER: bool = false;

/// A service that listens, and a connection to it.
struct Served {
    fixture: Fixture,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    ended: Option<tokio::task::JoinHandle<std::io::Result<Threads>>>,
}

impl Served {
    fn start(runtime: &Runtime, access: Option<Arc<ActiveTokens>>, by_hyper_alone: bool) -> Self {
        let _entered = runtime.enter();
        let loopback_guard = access.is_none();
        let fixture = start_guarded(2, Limits::default(), access);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = Serving { threads: 1, loopback_guard, by_hyper_alone, ..Serving::default() };
        let ended = runtime.spawn(serve(listener, Arc::clone(&fixture.api), serving, async {
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
        runtime.block_on(ended).expect("it does not panic").expect("there were threads for it");
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// One whole answer, with what follows from the time left out. `None`: the other side has closed.
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
                return Some(without_times(&String::from_utf8_lossy(&bytes)));
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

/// Times differ from one service to the other, and so do their digits. That the length is the body's is
/// checked where an answer is read.
fn without_times(answer: &str) -> String {
    [("\r\ndate: ", "\r\n"), ("\"updated_at\":\"", "\""), ("\r\ncontent-length: ", "\r\n")].iter().fold(
        answer.to_owned(),
        |text, (begin, end)| {
            let mut parts = text.split(begin);
            let first = parts.next().unwrap_or_default().to_owned();
            parts.fold(first, |done, part| done + begin + part.find(end).map_or(part, |at| &part[at..]))
        },
    )
}

fn request(method: &str, path: &str, fields: &str, body: &str) -> String {
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{fields}{length}\r\n{body}")
}

fn is_direct(routes: &DirectRoutes, request: &str) -> bool {
    PlainRequest::parse(request.as_bytes()).is_some_and(|request| routes.find(&request, &mut 0).is_some())
}

/// Sends the same requests, one after the other on one connection, to a service that answers what it can
/// directly, and to one that leaves all to hyper.
fn check_same(access: Option<&Arc<ActiveTokens>>, requests: &[(bool, String)]) {
    let runtime = runtime();
    let [direct, by_hyper] =
        [false, true].map(|by_hyper_alone| Served::start(&runtime, access.cloned(), by_hyper_alone));
    let _entered = runtime.enter();
    let (_, routes) = router_and_direct(Arc::clone(&direct.fixture.api));
    let mut streams = [&direct, &by_hyper].map(Served::connect);
    for (goes_direct, request) in requests {
        assert_eq!(is_direct(&routes, request), *goes_direct, "{request}");
        let answers = streams.each_mut().map(|stream| {
            stream.write_all(request.as_bytes()).expect("it is open");
            answer(stream)
        });
        assert!(answers[0].is_some(), "no answer to {request}");
        assert_eq!(answers[0], answers[1], "{request}");
        if answers[0].as_ref().is_some_and(|answer| answer.contains("\r\nconnection: close\r\n")) {
            assert_eq!(streams.each_mut().map(answer), [None, None], "{request}");
            streams = [&direct, &by_hyper].map(Served::connect);
        }
    }
    drop(streams);
    direct.stop(&runtime);
    by_hyper.stop(&runtime);
}

/// The future of a request is copied when it is made, and in parts while it is polled, so that each request
/// pays for its size. What requests seldom wait for has boxes of its own.
#[test]
fn futures_of_frequent_requests_are_small() {
    let runtime = runtime();
    let served = Served::start(&runtime, None, false);
    let api = &served.fixture.api;
    let (_, routes) = router_and_direct(Arc::clone(api));
    for (request, bytes_max) in [
        (request("GET", "/v1/boards/arena/members/p1", "", ""), 2_112),
        (request("GET", "/v1/boards/arena/rank?score=6", "", ""), 1_536),
        (request("PUT", "/v1/boards/arena/members/p1", "", r#"{"score":5}"#), 2_304),
    ] {
        let plain = PlainRequest::parse(request.as_bytes()).expect("it is plain");
        let (route, segments) = routes.find(&plain, &mut 0).expect("its route is direct");
        let head = plain.to_head().expect("it is text");
        let head = Head::of_plain(head, ClientAddress(IpAddr::from([127, 0, 0, 1])), segments);
        let bytes = size_of_val(&*route.answer(head, plain.body.to_vec(), api));
        assert!(bytes <= bytes_max, "{bytes} bytes: {request}");
    }
    served.stop(&runtime);
}

/// That these answers are the same as others is held by comparing them with hyper's.
#[test]
fn reads_that_need_not_wait_are_answered_at_once() {
    let runtime = runtime();
    let served = Served::start(&runtime, None, false);
    let api = &served.fixture.api;
    let (_, routes) = router_and_direct(Arc::clone(api));
    let mut stream = served.connect();
    stream
        .write_all(request("PUT", "/v1/boards/arena/members/p1", "", r#"{"score":5}"#).as_bytes())
        .expect("open");
    assert!(answer(&mut stream).is_some_and(|answer| answer.starts_with("HTTP/1.1 200 OK\r\n")));
    for (path, is_at_once) in [
        ("members/p1", true),
        ("members/p1?window=all", true),
        ("members/p1?after=0:0", false),
        ("members/p1?profile=true", false),
        ("members/p1?x=1", false),
        ("members/nobody", false),
        ("rank?score=6", true),
        ("rank?score=6&accuracy=approx", false),
        ("rank?score=x", false),
        ("rank", false),
        ("top", false),
    ] {
        let request = request("GET", &format!("/v1/boards/arena/{path}"), "", "");
        let plain = PlainRequest::parse(request.as_bytes()).expect("it is plain");
        let (route, segments) = routes.find(&plain, &mut 0).expect("its route is direct");
        let mut body = Vec::new();
        let asked = AtOnce { api, request: &plain, segments: &segments };
        assert_eq!(route.answer_at_once(&asked, &mut body).is_some(), is_at_once, "{path}");
        assert!(!is_at_once || body.ends_with(b"}"), "{path}");
    }
    drop(stream);
    served.stop(&runtime);
}

#[test]
fn direct_answers_are_those_of_hyper_byte_for_byte() {
    const ENTRY: &str = "/v1/boards/arena/members/p1";
    let get = |path: &str| request("GET", path, "", "");
    let with = |fields: &str| request("GET", ENTRY, fields, "");
    let long = format!("/v1/boards/arena/members/{}", "x".repeat(9_000));
    let jobs = format!("[{}]", [r#"{"board":"arena","member":"q","score":1}"#; 9].join(","));
    let lookup = |query: &str, body: &str| {
        request("POST", &format!("/v1/boards/arena/members:lookup{query}"), "", body)
    };
    let ranks =
        |query: &str, body: &str| request("POST", &format!("/v1/boards/arena/ranks:of{query}"), "", body);
    let requests = [
        (DIRECT, get(ENTRY)),
        (DIRECT, request("PUT", ENTRY, "", r#"{"score":5}"#)),
        (DIRECT, request("PUT", "/v1/boards/arena/members/p2", "content-type: x/y\r\n", r#"{"score":7}"#)),
        (DIRECT, get(ENTRY)),
        (DIRECT, get("/v1/boards/arena/members/nobody")),
        (DIRECT, get("/v1/boards/nothing/members/p1")),
        (DIRECT, get("/v1/boards/arena/members/p1?window=day")),
        (DIRECT, get("/v1/boards/arena/members/p1?x=1")),
        (DIRECT, get("/v1/boards/arena/members/p1?window=all&&accuracy=approx")),
        (DIRECT, get("/v1/boards/arena/members/p1?after=0:1&timeout_ms=10000")),
        (DIRECT, get("/v1/boards/arena/members/p1?after=0:9999&timeout_ms=1")),
        (DIRECT, get("/v1/boards/arena/members/p1?")),
        (DIRECT, get("/v1/boards/arena/members/p1/around")),
        (DIRECT, get("/v1/boards/arena/rank?score=6")),
        (DIRECT, get("/v1/boards/arena/rank?score=%35")),
        (DIRECT, get("/v1/boards/arena/rank?score=6&window=all")),
        (DIRECT, get("/v1/boards/arena/rank?score=6&accuracy=approx")),
        (DIRECT, get("/v1/boards/arena/rank?score=6,7")),
        (DIRECT, get("/v1/boards/arena/members/p1?window=all")),
        (DIRECT, get("/v1/boards/arena/members/p1?profile=true")),
        (DIRECT, get("/v1/boards/arena/members/p1?movement=day")),
        (DIRECT, request("GET", "/v1/boards/arena/rank?score=6", "", "a body")),
        (DIRECT, get("/v1/boards/arena/rank")),
        (DIRECT, get("/v1/boards/arena/rank?score=x")),
        (DIRECT, get("/v1/boards/arena/top?limit=2")),
        (DIRECT, get("/v1/boards/arena/positions/1")),
        (DIRECT, get("/v1/boards/arena/positions/first")),
        (DIRECT, get("/v1/boards/arena/range?min=1&max=6")),
        (DIRECT, get("/v1/boards/arena/score?rank=1")),
        (DIRECT, get("/v1/boards/arena/count?min=1")),
        (DIRECT, get("/v1/boards/arena")),
        (DIRECT, get("/v1/boards/@")),
        (DIRECT, get("/v1/boards/arena:clear")),
        (DIRECT, get("/v1/rejects")),
        (DIRECT, request("PUT", ENTRY, "", r#"{"score":13}"#)),
        (DIRECT, request("PUT", ENTRY, "", r#"{"score":}"#)),
        (DIRECT, request("PUT", ENTRY, "", "")),
        (DIRECT, request("PUT", ENTRY, "content-length: 0\r\n", "")),
        (DIRECT, request("PUT", ENTRY, "", r#"{"score":666}"#)),
        (DIRECT, request("GET", ENTRY, "", "a body")),
        (DIRECT, request("POST", "/v1/jobs", "", &jobs)),
        (DIRECT, lookup("", r#"{"members":["p2","p1","nobody","p1"]}"#)),
        (DIRECT, lookup("?profile=true", r#"{"members":["p\u0031","q"]}"#)),
        (DIRECT, lookup("?movement=day", r#"{"members":["p1"]}"#)),
        (DIRECT, lookup("", r#"{"members":[""]}"#)),
        (DIRECT, lookup("", &format!(r#"{{"members":[{}]}}"#, [r#""p1""#; 200].join(",")))),
        (DIRECT, ranks("", r#"{"scores":[6,-1,7]}"#)),
        (DIRECT, ranks("?accuracy=approx", r#"{"scores":["6"]}"#)),
        (DIRECT, ranks("", r#"{"scores":[[6]]}"#)),
        (DIRECT, ranks("", r#"{"scores":[[6,7]]}"#)),
        (DIRECT, ranks("", r#"{"scores":[6.5]}"#)),
        (DIRECT, ranks("", r#"{"scores":[]}"#)),
        (DIRECT, ranks("", r#"{"scores":[6],"#)),
        (DIRECT, ranks("", &format!(r#"{{"scores":[{}]}}"#, [r"6"; 1_000].join(",")))),
        (DIRECT, ranks("", &format!(r#"{{"scores":[{}]}}"#, [r"6"; 1_001].join(",")))),
        (DIRECT, request("PUT", "/v1/boards/other", "", "{}")),
        (DIRECT, request("DELETE", ENTRY, "", "")),
        (DIRECT, with("connection: Keep-Alive\r\nuser-agent: x\r\naccept: */*\r\n")),
        (DIRECT, with("authorization: Bearer nothing\r\norigin: http://localhost\r\n")),
        (DIRECT, with("sec-fetch-site: same-origin\r\norigin: http://localhost\r\n")),
        // From here on, the connection leaves it to hyper.
        (BY_HYPER, get("/healthz")),
        (BY_HYPER, format!("\r\n{}", get(ENTRY))),
        (BY_HYPER, get("/v1/boards/arena/members/p%31")),
        (BY_HYPER, get("/v1/boards/arena/members/%ff")),
        (BY_HYPER, get("/v1/boards/arena/members/p1/")),
        (BY_HYPER, get("/v1/boards/arena/members/")),
        (BY_HYPER, get("/v1/boards//members/p1")),
        (BY_HYPER, get("/v1/boards/arena/histogram")),
        (BY_HYPER, get("/v1/nothing")),
        (BY_HYPER, get(&long)),
        (BY_HYPER, get("http://localhost/v1/boards/arena")),
        (BY_HYPER, request("POST", ENTRY, "", "{}")),
        (BY_HYPER, request("PATCH", ENTRY, "", "{}")),
        (BY_HYPER, request("POST", "/v1/boards/other:clear", "", "")),
        (BY_HYPER, with("transfer-encoding: chunked\r\n\r\n0\r\n").replace("\r\n0\r\n\r\n", "0\r\n\r\n")),
        (BY_HYPER, with("content-length: 0\r\ncontent-length: 0\r\n")),
        (BY_HYPER, with("content-length: +0\r\n")),
        (BY_HYPER, with("te: trailers\r\n")),
        (BY_HYPER, with("idempotency-key: a\r\n")),
        (BY_HYPER, request("PUT", ENTRY, "Idempotency-Key: a\r\n", r#"{"score":5}"#)),
        (BY_HYPER, with("expect: 100-continue\r\n")),
        (BY_HYPER, with("connection: close\r\n")),
        (BY_HYPER, with("connection: keep-alive, x\r\n")),
        (BY_HYPER, with("host: localhost\r\n")),
        (BY_HYPER, get(ENTRY).replace("host: localhost\r\n", "")),
        (BY_HYPER, get(ENTRY).replace("HTTP/1.1\r\n", "HTTP/1.0\r\nconnection: keep-alive\r\n")),
        (DIRECT, get(ENTRY)),
        // Their routes are direct, and hyper is left to refuse them as of another site.
        (DIRECT, get(ENTRY).replace("localhost", "evil.example")),
        (DIRECT, get(ENTRY).replace("localhost", "")),
        (DIRECT, with("origin: http://evil.example\r\n")),
        (DIRECT, with("origin: http://localhost:3000\r\n")),
        (DIRECT, request("PUT", ENTRY, "origin: http://localhost:3000\r\n", r#"{"score":5}"#)),
        (BY_HYPER, with("sec-fetch-site: cross-site\r\n")),
        (DIRECT, get(ENTRY)),
    ];
    check_same(None, &requests);
}

#[test]
fn direct_requests_need_the_tokens_that_others_need() {
    let secrets = [Scope::Read, Scope::Write].map(|_| Secret::random().expect("random numbers"));
    let token = |name: &str, secret: &Secret| {
        let digest = secret.digest();
        format!(
            "[[token]]\nname = \"{name}\"\nscope = \"{name}\"\nboard_prefixes = [\"eu-\"]\nsha256 = \"{digest}\"\n"
        )
    };
    let list = token("read", &secrets[0]) + &token("write", &secrets[1]);
    let access = Arc::new(ActiveTokens::new(Tokens::parse(&list).expect("a good list")));
    let [read, write] =
        secrets.each_ref().map(|secret| format!("authorization: Bearer {}\r\n", secret.reveal()));
    let put = |fields: &str, board: &str| {
        request("PUT", &format!("/v1/boards/{board}/members/m"), fields, r#"{"score":1}"#)
    };
    let get =
        |fields: &str, board: &str| request("GET", &format!("/v1/boards/{board}/members/m"), fields, "");
    let twice = format!("{read}{read}");
    let requests = [put(&write, "eu-1"), put(&read, "eu-1"), put(&write, "us-1"), put("", "eu-1")]
        .into_iter()
        .chain(
            [&read, &write, &twice, "authorization: Bearer x\r\n", "authorization: Basic eA==\r\n", ""]
                .map(|fields| get(fields, "eu-1")),
        )
        .chain([get(&read, "us-1"), get(&read, "eu-1").replace("authorization", "AUTHORIZATION")]);
    let requests: Vec<(bool, String)> = requests.map(|request| (DIRECT, request)).collect();
    check_same(Some(&access), &requests);
}

/// The router prefers a segment's text over its name. Direct routes are not looked at in that order, and need
/// not be as long as no path is one of two routes.
#[test]
fn no_path_is_one_of_two_routes_of_a_method() {
    let is_named = |segment: &str| segment.starts_with('{') && segment.ends_with('}');
    let operations = operations();
    for (nth, one) in operations.iter().enumerate() {
        for other in operations.iter().skip(nth + 1).filter(|other| other.method == one.method) {
            let (mut of_one, mut of_other) = (one.path.split('/'), other.path.split('/'));
            let mut differ = std::iter::from_fn(|| match (of_one.next(), of_other.next()) {
                (None, None) => None,
                (Some(a), Some(b)) => Some(a != b && !is_named(a) && !is_named(b)),
                _ => Some(true),
            });
            assert!(differ.any(|differs| differs), "{} and {}", one.path, other.path);
        }
    }
}

/// The answers to bytes that are sent at once, until the last of them closes the connection.
fn conversation(served: &Served, bytes: &str) -> String {
    let mut stream = served.connect();
    stream.write_all(bytes.as_bytes()).expect("it is open");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("it ends");
    without_times(&said)
}

#[test]
fn requests_that_come_together_are_answered_in_their_order() {
    let runtime = runtime();
    let [direct, by_hyper] =
        [false, true].map(|by_hyper_alone| Served::start(&runtime, None, by_hyper_alone));
    let get = request("GET", "/v1/boards/arena/members/m", "", "");
    let put = request("PUT", "/v1/boards/arena/members/m", "", r#"{"score":1}"#);
    let last = request("GET", "/v1/boards/arena/members/m", "connection: close\r\n", "");
    for together in [
        format!("{put}{last}"),
        format!("{get}{get}{put}{get}{last}"),
        format!("\r\n{get}\r\n{last}"),
        format!("{}{last}", request("GET", "/healthz", "", "")),
    ] {
        assert_eq!(conversation(&direct, &together), conversation(&by_hyper, &together), "{together}");
    }
    // A piece that ends within a request, behind a direct one: the rest comes once that is answered.
    for served in [&direct, &by_hyper] {
        let mut stream = served.connect();
        for (piece, answers) in [(get.as_str(), true), (&get[..20], false), (&get[20..], true), (&put, true)]
        {
            stream.write_all(piece.as_bytes()).expect("it is open");
            if answers {
                let answer = answer(&mut stream).expect("it is open");
                assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            }
        }
    }
    direct.stop(&runtime);
    by_hyper.stop(&runtime);
}

#[test]
fn a_request_in_work_is_answered_when_the_service_stops() {
    const TIMEOUT_MS: u32 = 5_000;
    let runtime = runtime();
    let both = [false, true].map(|by_hyper_alone| Served::start(&runtime, None, by_hyper_alone));
    let waiting = both.map(|mut served| {
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
        (served, streams)
    });
    let said = waiting.map(|(served, mut streams)| {
        let said = streams.each_mut().map(answer);
        assert_eq!(answer(&mut streams[0]), None);
        drop(streams);
        served.stop(&runtime);
        said
    });
    assert_eq!(said[0], said[1]);
    let [waited, idle] = &said[0];
    assert_eq!(*idle, None);
    let waited = waited.as_deref().unwrap_or_default();
    assert!(waited.starts_with("HTTP/1.1 504 "), "{waited}");
    assert!(waited.contains("\r\nconnection: close\r\ndate: "), "{waited}");
}

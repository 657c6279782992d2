//! Work that is done apart from the threads that connections share.

use std::future::pending;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::connections::{ConnectionLimits, SharedConnections, turn};
use crate::http::tests::start;
use crate::http::{Serving, serve};
use crate::state_lock::Purpose;

/// Far above what anything here takes.
const HANGS_AFTER: Duration = Duration::from_secs(120);

#[tokio::test]
async fn offloaded_work_is_dropped_with_its_request_and_its_panic_is_contained() {
    let fixture = start(1);
    assert_eq!(fixture.api.operations.offload.run(async { 7 }).await, Some(7));
    assert_eq!(fixture.api.operations.offload.run(async { assert!(never(), "it panics") }).await, None);
    let (held, released) = oneshot::channel::<()>();
    let work = fixture.api.operations.offload.run(async move {
        let _held = held;
        pending::<()>().await;
    });
    tokio::select! {
        biased;
        _ = work => panic!("it never ends by itself"),
        () = tokio::task::yield_now() => {}
    }
    assert!(released.await.is_err(), "it goes on although nobody waits");
}

#[tokio::test]
async fn requests_are_counted_in_their_threads_turn() {
    let fixture = start(1);
    turn::end();
    for has_others in [false, true] {
        fixture.send("GET", "/v1/boards/a/rank?score=1", "").await;
        assert_eq!(turn::has_others(), has_others);
    }
}

fn never() -> bool {
    std::hint::black_box(false)
}

/// A connection that is kept.
struct Kept(BufReader<TcpStream>);

impl Kept {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the service listens");
        stream.set_read_timeout(Some(HANGS_AFTER)).expect("a socket has the option");
        Self(BufReader::new(stream))
    }

    fn send(&mut self, method: &str, path: &str, body: &str) {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
        self.0.get_mut().write_all(format!("{head}{body}").as_bytes()).expect("it is open");
    }

    /// The status line of an answer, all of which is read.
    fn answer(&mut self) -> String {
        let (mut status, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("it is answered");
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().expect("a length");
                }
                Some(_) => {}
                None if line.trim_end().is_empty() => break,
                None => line.trim_end().clone_into(&mut status),
            }
        }
        self.0.read_exact(&mut vec![0; length]).expect("the body comes too");
        status
    }

    fn asks(&mut self, path: &str) -> String {
        self.send("GET", path, "");
        self.answer()
    }
}

/// Offloaded requests do not keep other connections of their thread waiting.
/// Here it takes as long as a writer holds the shard, on both of two threads at a time.
#[test]
fn requests_on_the_same_thread_are_answered_while_others_are_offloaded() {
    const THREADS: usize = 2;
    // One for each of the long requests, and one that accepts connections.
    let runtime =
        Builder::new_multi_thread().worker_threads(THREADS + 1).enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let fixture = start(1);
    let defined = runtime.block_on(fixture.send("PUT", "/v1/boards/a", "{}"));
    assert_eq!(defined.0, StatusCode::CREATED, "{}", defined.1);
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (stop, stopped) = oneshot::channel::<()>();
    let shared = SharedConnections::start(THREADS, ConnectionLimits::default()).expect("threads");
    let served = serve(listener, std::sync::Arc::clone(&fixture.api), shared, Serving::default(), async {
        let _ = stopped.await;
    });
    let served = runtime.spawn(served);

    // Two on each thread: a connection goes to the thread that has fewest.
    let mut connections: Vec<Kept> = (0..2 * THREADS).map(|_| Kept::open(address)).collect();
    for connection in &mut connections {
        assert_eq!(connection.asks("/healthz"), "HTTP/1.1 200 OK");
    }
    let (long, others) = connections.split_at_mut(THREADS);
    let wait_for = |in_work: usize, what: &str| {
        let began = Instant::now();
        while fixture.api.operations.admission.requests() != in_work {
            assert!(
                began.elapsed() < HANGS_AFTER,
                "{what}: {} in work",
                fixture.api.operations.admission.requests()
            );
            std::thread::yield_now();
        }
    };
    let list = |name: &str, item: &str| format!("{{\"{name}\":[{}]}}", [item; 300].join(","));
    let (members, scores) = (list("members", "\"m\""), list("scores", "1"));
    for (method, path, body) in [
        ("GET", "/v1/boards", ""),
        ("GET", "/v1/members/m", ""),
        ("POST", "/v1/boards/a/members:lookup", &members),
        ("POST", "/v1/boards/a/ranks:of", &scores),
        ("GET", "/v1/boards/a/histogram?edges=20,30,40", ""),
        ("GET", "/v1/boards/a/percentiles?p=50", ""),
        ("POST", "/v1/boards:combine", r#"{"boards":{"a":1}}"#),
    ] {
        let writing = fixture.api.operations.node.shards[0].state.write(Purpose::Apply);
        for connection in &mut *long {
            connection.send(method, path, body);
        }
        wait_for(THREADS, path);
        for other in &mut *others {
            assert_eq!(other.asks("/healthz"), "HTTP/1.1 200 OK", "beside {path}");
        }
        assert_eq!(fixture.api.operations.admission.requests(), THREADS, "{path}");
        drop(writing);
        for connection in &mut *long {
            assert_eq!(connection.answer(), "HTTP/1.1 200 OK", "{path}");
        }
        // Each keeps its place until its answer is written.
        wait_for(0, path);
    }
    drop((connections, stop));
    runtime.block_on(served).expect("it does not panic");
}

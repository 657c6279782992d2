//! As much of a NATS client as a load needs: connections that have one request each under way, on one thread.
//! redis-benchmark is no heavier.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::nats::runtime;

/// What a run came to.
pub struct Run {
    pub per_second: f64,
    /// The longest of the fastest half, and of the fastest 99 in a hundred.
    pub p50: Duration,
    pub p99: Duration,
}

/// Has each connection send requests and wait for each answer, for so long.
///
/// # Arguments
/// `request`: makes the body of a connection's nth request. `is_good`: whether an answer is one.
pub fn run(
    port: u16,
    subject: &'static str,
    connections: u64,
    time: Duration,
    request: impl Fn(u64, u64) -> String + Clone + Send + 'static,
    is_good: fn(&[u8]) -> bool,
) -> Run {
    runtime().block_on(async {
        let mut asking = JoinSet::new();
        let began = Instant::now();
        for number in 0..connections {
            let request = request.clone();
            asking.spawn(async move {
                let mut connection = Connection::open(port, number).await;
                let mut took = Vec::new();
                let mut nth = 0;
                while began.elapsed() < time {
                    let sent = Instant::now();
                    let answer = connection.ask(subject, &request(number, nth)).await;
                    assert!(is_good(answer), "not a good answer: {}", String::from_utf8_lossy(answer));
                    took.push(sent.elapsed());
                    nth += 1;
                }
                took
            });
        }
        let mut took: Vec<Duration> = asking.join_all().await.into_iter().flatten().collect();
        let elapsed = began.elapsed();
        took.sort_unstable();
        let at = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
        Run { per_second: took.len() as f64 / elapsed.as_secs_f64(), p50: at(50), p99: at(99) }
    })
}

/// Sends a request again and again until it has a good answer.
pub fn wait_until_answered(port: u16, subject: &'static str, body: &str, is_good: fn(&[u8]) -> bool) {
    runtime().block_on(async {
        let mut connection = Connection::open(port, 0).await;
        while !is_good(connection.ask(subject, body).await) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

/// Answers each request on a subject at once with the same bytes, on a thread of its own, until the process
/// ends: the least that an answer over NATS takes.
pub fn answer_at_once(url: String, subject: &'static str, answer: &'static [u8]) {
    std::thread::spawn(move || {
        runtime().block_on(async {
            let client = async_nats::connect(url).await.expect("nats-server answers");
            let mut requests = client.subscribe(subject).await.expect("a subscription");
            while let Some(request) = requests.next().await {
                let Some(reply) = request.reply else { continue };
                client.publish(reply, answer.into()).await.expect("the connection is up");
            }
        });
    });
}

struct Connection {
    stream: TcpStream,
    inbox: String,
    out: String,
    read: Vec<u8>,
    /// Bytes of `read` that were handed on.
    used: usize,
}

impl Connection {
    async fn open(port: u16, number: u64) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.expect("nats-server listens");
        stream.set_nodelay(true).expect("a socket has the option");
        let inbox = format!("_INBOX.bench.{number}");
        let mut this = Self { stream, inbox, out: String::new(), read: Vec::new(), used: 0 };
        this.out = format!(
            "CONNECT {{\"verbose\":false,\"headers\":true,\"no_responders\":true}}\r\nSUB {} 1\r\nPING\r\n",
            this.inbox
        );
        this.send().await;
        while !this.read.ends_with(b"PONG\r\n") {
            this.receive().await;
        }
        this.used = this.read.len();
        this
    }

    async fn send(&mut self) {
        self.stream.write_all(self.out.as_bytes()).await.expect("nats-server takes it");
        self.out.clear();
    }

    async fn receive(&mut self) {
        let count = self.stream.read_buf(&mut self.read).await.expect("nats-server answers");
        assert!(count > 0, "nats-server closed the connection");
    }

    /// Sends one request, and gives the body of its answer, behind its headers if it has any.
    async fn ask(&mut self, subject: &str, body: &str) -> &[u8] {
        write!(self.out, "PUB {subject} {} {}\r\n{body}\r\n", self.inbox, body.len()).expect("into memory");
        self.send().await;
        loop {
            self.read.drain(..self.used);
            self.used = 0;
            let Some(end) = self.read.windows(2).position(|bytes| bytes == b"\r\n") else {
                self.receive().await;
                continue;
            };
            let line = String::from_utf8_lossy(self.read.get(..end).unwrap_or_default()).into_owned();
            match line.split(' ').next() {
                Some("MSG" | "HMSG") => {
                    let length = line.rsplit(' ').next().and_then(|length| length.parse().ok());
                    let length: usize = length.expect("its length is last");
                    let (from, to) = (end + 2, end + 2 + length);
                    while self.read.len() < to + 2 {
                        self.receive().await;
                    }
                    self.used = to + 2;
                    return self.read.get(from..to).unwrap_or_default();
                }
                Some("PING") => {
                    self.out.push_str("PONG\r\n");
                    self.send().await;
                }
                Some("INFO" | "PONG") => {}
                _ => panic!("nats-server says {line}"),
            }
            self.used = end + 2;
        }
    }
}

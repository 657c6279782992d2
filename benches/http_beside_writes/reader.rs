//! Reads that are due at fixed times, over some connections, sent by one thread.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZero;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use ranktree::short_slice;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::thread_figures::ThreadFigures;
use crate::support::workload::id;

/// More than any answer to these reads.
const ANSWER_MAX: usize = 4 << 10;
/// A service that answers nothing for so long is gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// How long reads took, in nanoseconds.
pub struct Reads {
    /// From when they were due.
    pub from_due: Histogram<u64>,
    /// From when they were sent. The difference is what they waited for a connection, or for this thread.
    pub from_sent: Histogram<u64>,
    /// Processor time of this thread, as a share of a core.
    pub cores: f64,
}

struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
    /// When the request was due and when it was sent, while it is not answered.
    asked: Option<(Duration, Duration)>,
}

/// Reads for a time.
///
/// # Arguments
/// `per_second`: the reads that are due in each second, at equal distances.
pub fn read(port: u16, connections: usize, per_second: u64, members: u64, time: Duration) -> Reads {
    short_slice::for_this_thread();
    // Linux wakes a sleeper up to 50 us late unless asked for better.
    rustix::thread::set_current_timer_slack(NonZero::new(1)).expect("any thread may");
    let histogram =
        || Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("these bounds are well-formed");
    let (mut from_due, mut from_sent) = (histogram(), histogram());
    let mut connections: Vec<Connection> = (0..connections).map(|_| Connection::open(port)).collect();
    let (mut random, mut path) = (SmallRng::seed_from_u64(7), String::new());
    let due = |read: u64| Duration::from_nanos(read * 1_000_000_000 / per_second);
    let (mut next, all) = (0, time.as_secs() * per_second);
    let figures = ThreadFigures::of_this_thread();
    let (ran, started) = (figures.ran(), Instant::now());
    loop {
        let mut now = started.elapsed();
        for connection in connections.iter_mut().filter(|connection| connection.asked.is_none()) {
            if next >= all || due(next) > now {
                break;
            }
            path.clear();
            if next.is_multiple_of(2) {
                let member = id(random.random_range(0..members));
                write!(path, "/v1/boards/arena/members/{member}").expect("into memory");
            } else {
                let score = random.random_range(0..1_u64 << 40);
                write!(path, "/v1/boards/arena/rank?score={score}").expect("into memory");
            }
            connection.ask(&path, due(next), now);
            next += 1;
            now = started.elapsed();
        }
        let busy = connections.iter().filter(|connection| connection.asked.is_some()).count();
        if next >= all && busy == 0 {
            break;
        }
        // With all connections busy, the next read waits for an answer.
        let wait = if busy < connections.len() && next < all {
            due(next).saturating_sub(now)
        } else {
            ANSWER_WITHIN
        };
        let (waiting, mut polled): (Vec<usize>, Vec<PollFd<'_>>) = connections
            .iter()
            .enumerate()
            .filter(|(_, connection)| connection.asked.is_some())
            .map(|(index, connection)| (index, PollFd::new(&connection.stream, PollFlags::IN)))
            .unzip();
        let wait = Timespec::try_from(wait).expect("it is short");
        poll(&mut polled, Some(&wait)).expect("it can be waited for");
        let ready: Vec<usize> = waiting
            .into_iter()
            .zip(polled)
            .filter(|(_, polled)| !polled.revents().is_empty())
            .map(|(index, _)| index)
            .collect();
        for index in ready {
            let Some(connection) = connections.get_mut(index) else { continue };
            if let Some((due, sent)) = connection.answered() {
                let now = started.elapsed();
                from_due.saturating_record(now.saturating_sub(due).as_nanos() as u64);
                from_sent.saturating_record(now.saturating_sub(sent).as_nanos() as u64);
            }
        }
        assert!(
            started.elapsed() < time + ANSWER_WITHIN,
            "the service is slower than {per_second} reads a second"
        );
    }
    let ran = figures.ran().saturating_sub(ran);
    Reads { from_due, from_sent, cores: ran.as_secs_f64() / started.elapsed().as_secs_f64() }
}

impl Connection {
    fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the service listens");
        stream.set_nodelay(true).expect("it is a TCP connection");
        stream.set_nonblocking(true).expect("it is a TCP connection");
        Self { stream, answer: Vec::with_capacity(ANSWER_MAX), asked: None }
    }

    fn ask(&mut self, path: &str, due: Duration, now: Duration) {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        self.stream.write_all(request.as_bytes()).expect("a request fits into the socket's buffer");
        self.asked = Some((due, now));
    }

    /// When the request was due and sent, if all of its answer is here.
    fn answered(&mut self) -> Option<(Duration, Duration)> {
        let mut chunk = [0; ANSWER_MAX];
        match self.stream.read(&mut chunk) {
            Ok(0) => panic!("the service closed the connection"),
            Ok(length) => self.answer.extend(chunk.iter().take(length)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => panic!("the connection broke: {error}"),
        }
        let text = str::from_utf8(&self.answer).expect("it is text");
        let (head, body) = text.split_once("\r\n\r\n")?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize =
            length.and_then(|length| length.parse().ok()).expect("each answer has its length");
        if body.len() < length {
            return None;
        }
        // A member that was never drawn has no score.
        assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 404"), "{text}");
        self.answer.clear();
        self.asked.take()
    }
}

//! One connection, from its first byte to its last.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::connections::{ClientTimeouts, turn};
use crate::redis::server::client_stream::ClientStream;
use crate::redis::server::figures::Figures;
use crate::redis::server::flow::Flow;
use crate::redis::server::incoming::Incoming;
use crate::redis::server::outgoing::Outgoing;
use crate::redis::server::round::{REQUESTS_PER_TURN, Round};
use crate::redis::server::service::Service;
use crate::redis::server::session::{Allowed, Session};
use crate::redis::server::transaction::Transaction;

/// The most bytes of one request: some hundred thousand members.
const REQUEST_BYTES_MAX: usize = 8 << 20;
/// The same before a client has brought a token.
const REQUEST_BYTES_BEFORE_TOKEN: usize = 16 << 10;
/// A long request gets a second more for each of these that have come.
const BYTES_PER_SECOND: usize = 16 << 10;
/// For how long, and for how many bytes, a client may go on to send when its connection is closed: what is
/// not read makes the system take replies back that are on their way.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// Answers requests until the connection ends.
///
/// # Arguments
/// `stopping`: turns true when the service shuts down. Requests that have come are answered.
pub async fn speak(
    stream: &mut dyn ClientStream,
    service: &Service,
    session: &mut Session,
    timeouts: &ClientTimeouts,
    mut stopping: watch::Receiver<bool>,
) {
    let mut incoming = Incoming::new(&service.operations.admission);
    let mut out = Outgoing::new(stream, &service.operations, timeouts.write);
    let mut waits = Waits { without_token: Some(Instant::now()), for_request: None };
    loop {
        let Answered { flow, has_request } = answer(&mut out, service, session, &mut incoming).await;
        if flow == Flow::Close {
            break;
        }
        if !incoming.hold() {
            out.replies.error("OOM the requests of all clients take too much memory together");
            let _ = out.send(None).await;
            break;
        }
        let pending = incoming.reader.pending();
        waits.note(session.allowed(service) == Allowed::Nothing, pending, has_request);
        let due = waits.due(timeouts, pending, session);
        if due.is_some_and(|due| due <= Instant::now()) {
            Figures::note_end("slow_request");
            return;
        }
        let read = tokio::select! {
            // What has come is read before the service shuts down.
            biased;
            read = out.stream.read_buf(incoming.reader.room()) => read,
            _ = stopping.wait_for(|stopping| *stopping) => break,
            () = wait_until(due) => continue,
        };
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
    }
    close(out.stream, timeouts).await;
}

/// Closes a connection so that the client can read what was written.
pub async fn close(stream: &mut dyn ClientStream, timeouts: &ClientTimeouts) {
    if !matches!(timeout(timeouts.write, stream.shutdown()).await, Ok(Ok(()))) {
        return;
    }
    let (mut scrap, mut left) = (vec![0; 4 << 10], LINGER_BYTES);
    let lingering = async {
        while left > 0 {
            match stream.read(&mut scrap).await {
                Ok(read) if read > 0 => left = left.saturating_sub(read),
                _ => break,
            }
        }
    };
    let _ = timeout(LINGER, lingering).await;
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// Since when the client lets the service wait. Otherwise clients may be silent.
struct Waits {
    /// For a token.
    without_token: Option<Instant>,
    /// For the end of a request that has begun.
    for_request: Option<Instant>,
}

impl Waits {
    /// Notes what has come.
    ///
    /// # Arguments
    /// - `pending`: bytes of a request that has come in part
    /// - `has_request`: whether whole ones have come with them
    fn note(&mut self, is_without_token: bool, pending: usize, has_request: bool) {
        let now = Instant::now();
        self.without_token = is_without_token.then(|| self.without_token.unwrap_or(now));
        let since = self.for_request.filter(|_| !has_request).unwrap_or(now);
        self.for_request = (pending > 0).then_some(since);
    }

    /// When the connection is ended.
    fn due(&self, timeouts: &ClientTimeouts, pending: usize, session: &Session) -> Option<Instant> {
        let longer = Duration::from_secs(u64::try_from(pending / BYTES_PER_SECOND).unwrap_or(u64::MAX));
        let request = self.for_request.map(|since| since + timeouts.header.saturating_add(longer));
        let token = self.without_token.map(|since| since + timeouts.header);
        let transaction = session.transaction.as_ref().and_then(Transaction::since);
        let transaction = transaction.map(|since| since + timeouts.idle);
        [request, token, transaction].into_iter().flatten().min()
    }
}

/// What came of the requests that have come.
struct Answered {
    flow: Flow,
    /// Whether there were any.
    has_request: bool,
}

/// Answers all requests that have come, and those that come while replies are sent.
async fn answer(
    out: &mut Outgoing<'_>,
    service: &Service,
    session: &mut Session,
    incoming: &mut Incoming,
) -> Answered {
    let (mut flow, mut has_request) = (Flow::Continue, false);
    loop {
        let mut round = Round::begin(service, session, out);
        let mut requests = 0;
        let is_over = loop {
            let bytes_max = if round.has_token() { REQUEST_BYTES_MAX } else { REQUEST_BYTES_BEFORE_TOKEN };
            match incoming.reader.next(bytes_max) {
                Ok(Some(request)) => {
                    turn::begin_request();
                    has_request = true;
                    flow = round.run(incoming.reader.arguments(&request)).await;
                    flow = flow.or(round.execute(incoming).await);
                    requests += 1;
                    if flow == Flow::Close {
                        break true;
                    }
                    if requests == REQUESTS_PER_TURN || round.out.is_long() {
                        break false;
                    }
                }
                Ok(None) => break true,
                Err(why) => {
                    round.end(why).await;
                    flow = Flow::Close;
                    break true;
                }
            }
        };
        round.flush().await;
        let (reads_ahead, before) = (round.has_token(), incoming.reader.pending());
        if (is_over || out.is_long()) && out.send(Some(&mut *incoming).filter(|_| reads_ahead)).await.is_err()
        {
            flow = Flow::Close;
        }
        if flow == Flow::Close || (is_over && incoming.reader.pending() == before) {
            return Answered { flow, has_request };
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_due_from_its_first_byte_and_a_token_from_the_beginning() {
        let second = Duration::from_secs(1);
        let mut waits = Waits { without_token: Some(Instant::now()), for_request: None };
        let begin = Instant::now();
        for step in 0..5 {
            // A byte more.
            waits.note(true, step, false);
            tokio::time::advance(second).await;
        }
        assert_eq!((waits.without_token, waits.for_request), (Some(begin), Some(begin + second)));
        // It is whole, and the next one has begun.
        waits.note(false, 1, true);
        assert_eq!((waits.without_token, waits.for_request), (None, Some(begin + 5 * second)));
        waits.note(false, 0, true);
        assert_eq!(waits.for_request, None);
        // The token is taken away.
        waits.note(true, 0, false);
        assert_eq!(waits.without_token, Some(begin + 5 * second));
    }
}

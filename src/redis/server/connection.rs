//! One connection, from its first byte to its last.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;

use crate::connections::{ClientTimeouts, turn};
use crate::operations::BodyBytes;
use crate::redis::frames::{Replies, RequestReader};
use crate::redis::server::figures::Figures;
use crate::redis::server::flow::Flow;
use crate::redis::server::round::Round;
use crate::redis::server::service::Service;
use crate::redis::server::session::{Allowed, Session};

/// The most bytes of one request: some hundred thousand members.
const REQUEST_BYTES_MAX: usize = 8 << 20;
/// The same before a client has brought a token.
const REQUEST_BYTES_BEFORE_TOKEN: usize = 16 << 10;
/// Replies are sent when they come to so many bytes, though more requests have come.
const REPLIES_BYTES: usize = 64 << 10;
/// A long reply gets a second more for each of these.
const BYTES_PER_SECOND: usize = 16 << 10;
/// After so many requests, others have their turn.
const REQUESTS_PER_TURN: usize = 256;

/// Answers requests until the connection ends.
///
/// # Arguments
/// `stopping`: turns true when the service shuts down. Requests that have come are answered.
pub async fn speak<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    service: &Service,
    session: &mut Session,
    timeouts: &ClientTimeouts,
    mut stopping: watch::Receiver<bool>,
) {
    let (mut reader, mut replies) = (RequestReader::default(), Replies::default());
    let (mut held, mut held_bytes) = (BodyBytes::none(&service.operations.admission), 0);
    loop {
        if answer(stream, (service, timeouts), session, &mut reader, &mut replies).await == Flow::Close {
            // The client may still read what was written.
            let _ = tokio::time::timeout(timeouts.write, stream.shutdown()).await;
            return;
        }
        let pending = reader.pending();
        if pending == 0 {
            (held, held_bytes) = (BodyBytes::none(&service.operations.admission), 0);
        } else if pending > held_bytes {
            let is_too_much = !held.take(pending - held_bytes);
            held_bytes = pending;
            if is_too_much {
                replies.error("OOM the requests of all clients take too much memory together");
                let _ = send(stream, &mut replies, timeouts).await;
                return;
            }
        }
        // A request that has begun has to end, and a token has to be brought. Otherwise clients may be
        // silent.
        let is_due = pending > 0 || session.allowed(service) == Allowed::Nothing;
        let read = tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return,
            read = stream.read_buf(reader.room()) => read,
            () = due(is_due.then_some(timeouts.header)) => {
                Figures::note_end("slow_request");
                return;
            }
        };
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
    }
}

async fn due(within: Option<Duration>) {
    match within {
        Some(within) => tokio::time::sleep(within).await,
        None => std::future::pending().await,
    }
}

/// Answers all requests that have come.
async fn answer<S: AsyncWrite + Unpin>(
    stream: &mut S,
    (service, timeouts): (&Service, &ClientTimeouts),
    session: &mut Session,
    reader: &mut RequestReader,
    replies: &mut Replies,
) -> Flow {
    let mut flow = Flow::Continue;
    while flow == Flow::Continue {
        let bytes_max = match session.allowed(service) {
            Allowed::Nothing => REQUEST_BYTES_BEFORE_TOKEN,
            Allowed::Everything | Allowed::By(_) => REQUEST_BYTES_MAX,
        };
        let mut round = Round::begin(service, session, replies);
        let mut requests = 0;
        let is_over = loop {
            match reader.next(bytes_max) {
                Ok(Some(request)) => {
                    turn::begin_request();
                    flow = round.run(reader.arguments(&request)).await;
                    requests += 1;
                    if flow == Flow::Close {
                        break true;
                    }
                    if requests == REQUESTS_PER_TURN || round.replies.bytes().len() > REPLIES_BYTES {
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
        if is_over {
            break;
        }
        if replies.bytes().len() > REPLIES_BYTES && send(stream, replies, timeouts).await.is_err() {
            return Flow::Close;
        }
        tokio::task::yield_now().await;
    }
    if send(stream, replies, timeouts).await.is_err() { Flow::Close } else { flow }
}

/// Sends what is to be sent.
///
/// # Errors
/// When the client does not take it.
async fn send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    replies: &mut Replies,
    timeouts: &ClientTimeouts,
) -> Result<(), ()> {
    let bytes = replies.bytes();
    if bytes.is_empty() {
        return Ok(());
    }
    let longer = u64::try_from(bytes.len() / BYTES_PER_SECOND).unwrap_or(u64::MAX);
    let within = timeouts.write.saturating_add(Duration::from_secs(longer));
    let written = tokio::time::timeout(within, async {
        stream.write_all(bytes).await?;
        stream.flush().await
    });
    let written = written.await;
    if written.is_err() {
        Figures::note_end("slow_reader");
    }
    replies.clear();
    match written {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(()),
    }
}

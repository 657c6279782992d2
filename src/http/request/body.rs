//! Bodies: read within limits of size, time and memory, or read and thrown away.

use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use hyper::body::{Body as _, Frame};
use tokio::time::{Instant, timeout_at};

use crate::http::api::Api;
use crate::http::render::problem::Problem;
use crate::http::request::head::Head;
use crate::operations::{BodyBytes, FIRST_BYTES};

/// The longest body, in bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// How long a body may take that is thrown away.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);
/// How much more of a body is read and thrown away, so that a client that writes before it reads sees the
/// refusal.
const BODY_BYTES_DISCARDED: usize = 8 << 20;

/// Reads the body of a request.
///
/// # Errors
/// When it has more than [`BODY_BYTES_MAX`] bytes, breaks off, or is too slow; when all bodies take too much
/// memory.
pub async fn read(api: &Arc<Api>, head: &Head, body: Body) -> Result<(Vec<u8>, BodyBytes), Problem> {
    let mut counted = BodyBytes::none(&api.operations.admission);
    if body.is_end_stream() {
        return Ok((Vec::new(), counted));
    }
    // Most requests have no body: their futures need no room to read one.
    let read = Box::pin(read_pieces(api, head, body, &mut counted)).await?;
    Ok((read, counted))
}

async fn read_pieces(
    api: &Api,
    head: &Head,
    mut body: Body,
    counted: &mut BodyBytes,
) -> Result<Vec<u8>, Problem> {
    if announced(&body) > BODY_BYTES_MAX {
        return Err(refuse(head.headers(), body, Problem::body_too_large()).await);
    }
    let end = Instant::now() + api.limits.body;
    // A client gets no more memory at first than it has to send to fill it.
    let mut bytes = Vec::with_capacity(announced(&body).min(FIRST_BYTES));
    let mut seen: usize = 0;
    loop {
        let deadline = end.min(Instant::now() + api.limits.body_stall);
        let data = timeout_at(deadline, next(&mut body)).await;
        let Some(data) = data.map_err(|_| Problem::body_too_slow())? else { break };
        let data = data?;
        seen += data.len();
        if seen <= BODY_BYTES_MAX {
            if !counted.take(data.len()) {
                drop(bytes);
                discard(body).await;
                return Err(Problem::overloaded());
            }
            bytes.extend_from_slice(&data);
        } else if seen > BODY_BYTES_MAX + BODY_BYTES_DISCARDED {
            break;
        }
    }
    if seen > BODY_BYTES_MAX { Err(Problem::body_too_large()) } else { Ok(bytes) }
}

/// Refuses a request whose body no handler reads.
pub async fn refuse(headers: &HeaderMap, body: Body, problem: Problem) -> Problem {
    // A client that asks before it sends has sent nothing. Reading on would tell it to send.
    if !asks_first(headers) {
        discard(body).await;
    }
    problem
}

/// Whether the client waits to be told to send its body (RFC 9110, section 10.1.1). hyper tells it at the
/// first read.
fn asks_first(headers: &HeaderMap) -> bool {
    let expects = headers.get(header::EXPECT);
    expects.is_some_and(|expects| expects.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Reads a body and throws it away. Left unread, it would cost the client the connection, and most likely the
/// answer.
async fn discard(mut body: Body) {
    if body.is_end_stream() || announced(&body) > BODY_BYTES_MAX + BODY_BYTES_DISCARDED {
        return;
    }
    let mut left = BODY_BYTES_MAX + BODY_BYTES_DISCARDED;
    let all = async {
        while let Some(Ok(data)) = next(&mut body).await {
            match left.checked_sub(data.len()) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // A client that is too slow does not see the refusal.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, all).await;
}

/// The bytes that a body has at least, by its head.
fn announced(body: &Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

/// The next piece of a body; `None` at its end.
async fn next(body: &mut Body) -> Option<Result<Bytes, Problem>> {
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        match frame.map_err(|error| explain_broken(&error)).map(Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            // Trailers are skipped.
            Ok(Err(_)) => {}
            Err(problem) => return Some(Err(problem)),
        }
    }
}

/// What is wrong with a body that cannot be read on. hyper tells by the kind of an inner error whether it
/// ended too early or has chunks that are none.
fn explain_broken(error: &axum::Error) -> Problem {
    let mut cause = error.source();
    while let Some(inner) = cause {
        let kind = inner.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(kind, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)) {
            return Problem::bad_chunks();
        }
        cause = inner.source();
    }
    Problem::body_broken()
}

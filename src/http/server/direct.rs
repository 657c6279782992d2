//! Requests that a connection answers by itself, without hyper: those of the plain form whose routes are
//! direct. Nearly all reads and single writes are such.
//!
//! hyper holds nothing of the connection at that moment, neither of the client's bytes nor of its own
//! ([`Activity::is_free`]), and is given none of these requests to read. So it goes on as if they had not
//! been there. What happens to a request is the same as through `requests`: the guards, the endpoint, the
//! answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use crate::http::guard::in_progress::InProgress;
use crate::http::guard::loopback::{is_local_host, is_local_origin};
use crate::http::guard::refusal_log::ClientAddress;
use crate::http::request::head::Head;
use crate::http::request::plain::PlainRequest;
use crate::http::routing::direct::Answering;
use crate::http::routing::endpoint::MeasuredAnswer;
use crate::http::server::activity::Activity;
use crate::http::server::answer_head;
use crate::http::server::context::ServerContext;

/// Longer bodies are not copied behind the head.
const COPIED_BODY_BYTES_MAX: usize = 4 << 10;

/// Answers a connection's plain requests, one at a time.
pub struct Direct {
    context: Arc<ServerContext>,
    activity: Arc<Activity>,
    client: ClientAddress,
    /// The value of `Host` that was found to be local. Clients send the same again.
    local_host: Option<Vec<u8>>,
    /// Where the route of the last request is among the direct ones.
    last_route: usize,
    work: Work,
}

/// What is being done.
enum Work {
    None,
    Answering(Answering),
    Writing(Unwritten),
}

/// An answer that is not written yet.
struct Unwritten {
    head: Vec<u8>,
    body: Vec<u8>,
    /// Bytes of both that are written.
    written: usize,
    _in_progress: Option<Arc<InProgress>>,
}

impl Direct {
    pub fn new(context: Arc<ServerContext>, activity: Arc<Activity>, client: ClientAddress) -> Self {
        Self { context, activity, client, local_host: None, last_route: 0, work: Work::None }
    }

    /// Takes the bytes that the client has sent, if they are a request to be answered here. Otherwise they
    /// are hyper's. [`Self::poll`] works on it.
    pub fn takes(&mut self, bytes: &[u8]) -> bool {
        let Some(answering) = self.begin(bytes) else { return false };
        self.activity.direct_begins();
        self.work = Work::Answering(answering);
        true
    }

    fn begin(&mut self, bytes: &[u8]) -> Option<Answering> {
        let request = PlainRequest::parse(bytes)?;
        if self.context.loopback_guard && !self.is_local(&request) {
            return None;
        }
        let (route, segments) = self.context.direct.find(&request, &mut self.last_route)?;
        let head = Head::of_plain(request.to_head(), self.client, segments);
        Some(route.answer(head, request.body.to_vec(), &self.context.api))
    }

    /// As the loopback guard judges it. A plain request names no host but in `Host`.
    fn is_local(&mut self, request: &PlainRequest<'_>) -> bool {
        if self.local_host.as_deref() != Some(request.host) {
            if !is_local_host(request.host) {
                return false;
            }
            self.local_host = Some(request.host.to_vec());
        }
        request.origin.is_none_or(is_local_origin)
    }

    pub fn is_at_work(&self) -> bool {
        !matches!(self.work, Work::None)
    }

    /// Answers what was taken, and writes the answer. Ready when there is nothing left to do.
    pub fn poll<S: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
    ) -> Poll<io::Result<()>> {
        if let Work::Answering(answering) = &mut self.work {
            let answer = ready!(answering.as_mut().poll(context));
            self.work = Work::Writing(Unwritten::new(answer, self.activity.is_draining()));
            self.activity.direct_is_answered();
        }
        if let Work::Writing(unwritten) = &mut self.work {
            ready!(unwritten.poll(context, stream, &self.activity))?;
            self.work = Work::None;
            self.activity.direct_ends();
        }
        Poll::Ready(Ok(()))
    }
}

impl Unwritten {
    fn new(answer: MeasuredAnswer, closes: bool) -> Self {
        let MeasuredAnswer { finished, in_progress } = answer;
        let is_copied = finished.body().len() <= COPIED_BODY_BYTES_MAX;
        let mut head =
            answer_head::write(&finished, closes, if is_copied { finished.body().len() } else { 0 });
        let body = if is_copied {
            head.extend_from_slice(finished.body());
            Vec::new()
        } else {
            finished.into_body()
        };
        Self { head, body, written: 0, _in_progress: in_progress }
    }

    fn poll<S: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
        activity: &Activity,
    ) -> Poll<io::Result<()>> {
        loop {
            let head = self.head.get(self.written..).unwrap_or_default();
            let body = self.body.get(self.written.saturating_sub(self.head.len())..).unwrap_or_default();
            let mut stream = Pin::new(&mut *stream);
            let written = match (head, body) {
                ([], []) => {
                    let flushed = stream.poll_flush(context);
                    if flushed.is_pending() {
                        activity.write_waits();
                    }
                    return flushed;
                }
                (one, []) | ([], one) => stream.as_mut().poll_write(context, one),
                (head, body) => {
                    stream.as_mut().poll_write_vectored(context, &[IoSlice::new(head), IoSlice::new(body)])
                }
            };
            match written {
                Poll::Pending => {
                    activity.write_waits();
                    return Poll::Pending;
                }
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => {
                    activity.has_written(bytes);
                    self.written += bytes;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    }
}

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

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::http::guard::in_progress::InProgress;
use crate::http::guard::loopback::is_local_host;
use crate::http::guard::origin::is_of_host;
use crate::http::guard::refusal_log::ClientAddress;
use crate::http::request::at_once::AtOnce;
use crate::http::request::head::Head;
use crate::http::request::plain::PlainRequest;
use crate::http::routing::direct::Answering;
use crate::http::routing::endpoint::MeasuredAnswer;
use crate::http::server::activity::Activity;
use crate::http::server::answer_buffer::{AnswerBuffer, Buffers};
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

/// What has come.
pub enum Came {
    /// A request, which is answered or worked on.
    Request,
    /// Bytes that are not to be answered here; none at the stream's end.
    Other(Vec<u8>),
}

/// What is being done.
enum Work {
    None,
    Answering(Answering),
    Writing(Unwritten),
}

/// What is to be done with bytes that were read.
enum Begun {
    /// The answer is in the thread's buffer.
    Answered,
    Answering(Answering),
}

/// An answer that is not written yet.
struct Unwritten {
    head: Vec<u8>,
    body: Vec<u8>,
    /// Bytes of both that are written.
    written: usize,
    in_progress: Option<Arc<InProgress>>,
}

impl Direct {
    pub fn new(context: Arc<ServerContext>, activity: Arc<Activity>, client: ClientAddress) -> Self {
        Self { context, activity, client, local_host: None, last_route: 0, work: Work::None }
    }

    /// Reads what has come, and begins to answer it if it is a request to be answered here.
    pub fn poll_request<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
    ) -> Poll<io::Result<Came>> {
        Buffers::of_thread(|Buffers { read, answer }| {
            let mut read = ReadBuf::new(read);
            ready!(Pin::new(&mut *stream).poll_read(context, &mut read))?;
            match self.begin(read.filled(), answer) {
                Some(Begun::Answered) => {
                    answer.put_head_of_json(self.activity.is_draining());
                    self.write_at_once(context, stream, answer.as_bytes())?;
                }
                Some(Begun::Answering(answering)) => {
                    self.activity.direct_begins();
                    self.work = Work::Answering(answering);
                }
                None => return Poll::Ready(Ok(Came::Other(read.filled().to_vec()))),
            }
            Poll::Ready(Ok(Came::Request))
        })
    }

    fn begin(&mut self, bytes: &[u8], answer: &mut AnswerBuffer) -> Option<Begun> {
        let request = PlainRequest::parse(bytes)?;
        if !self.is_of_own_page(&request) || (self.context.loopback_guard && !self.is_local(request.host)) {
            return None;
        }
        let (route, segments) = self.context.direct.find(&request, &mut self.last_route)?;
        let asked = AtOnce { api: &self.context.api, request: &request, segments: &segments };
        if let Some(now) = route.answer_at_once(&asked, answer.body()) {
            self.activity.direct_is_done(Instant::from_std(now));
            return Some(Begun::Answered);
        }
        let head = Head::of_plain(request.to_head()?, self.client, segments);
        Some(Begun::Answering(route.answer(head, request.body.to_vec(), &self.context.api)))
    }

    /// As the loopback guard judges it. A plain request names no host but in `Host`.
    fn is_local(&mut self, host: &[u8]) -> bool {
        if self.local_host.as_deref() != Some(host) {
            if !is_local_host(host, &self.context.origins) {
                return false;
            }
            self.local_host = Some(host.to_vec());
        }
        true
    }

    /// Whether no page has sent it, or one of the service's own. A plain request does not say of itself that
    /// it is another site's.
    fn is_of_own_page(&self, request: &PlainRequest<'_>) -> bool {
        let is_tls = self.context.tls.is_some();
        request.origin.is_none_or(|origin| is_of_host(origin, request.host, is_tls))
    }

    /// Writes an answer as far as there is room for it. The rest is [`Self::poll`]'s.
    fn write_at_once<S: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
        answer: &[u8],
    ) -> io::Result<()> {
        let mut written = 0;
        match poll_write_all(context, stream, &self.activity, [answer, &[]], &mut written) {
            Poll::Ready(done) => done,
            Poll::Pending => {
                // From now on it takes of what all requests share. It was made, and so it is not refused.
                let in_progress = InProgress::new(&self.context.api.admission);
                let _ = in_progress.admit();
                let head = answer.get(written..).unwrap_or_default().to_vec();
                let _ = in_progress.count_answer(head.len());
                let in_progress = Some(Arc::new(in_progress));
                self.activity.direct_waits_to_be_written();
                self.work = Work::Writing(Unwritten { head, body: Vec::new(), written: 0, in_progress });
                Ok(())
            }
        }
    }

    pub fn is_at_work(&self) -> bool {
        !matches!(self.work, Work::None)
    }

    /// Answers what was begun, and writes the answer. Ready when there is nothing left to do.
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
            // It is written: what the request took is free for others.
            drop(unwritten.in_progress.take());
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
        Self { head, body, written: 0, in_progress }
    }

    fn poll<S: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
        activity: &Activity,
    ) -> Poll<io::Result<()>> {
        let pieces = [self.head.as_slice(), self.body.as_slice()];
        poll_write_all(context, stream, activity, pieces, &mut self.written)
    }
}

/// Writes the pieces of an answer one after the other, and flushes.
///
/// # Arguments
/// `written`: how many of their bytes are written.
fn poll_write_all<S: AsyncWrite + Unpin>(
    context: &mut Context<'_>,
    stream: &mut S,
    activity: &Activity,
    [head, body]: [&[u8]; 2],
    written: &mut usize,
) -> Poll<io::Result<()>> {
    loop {
        let rest_of_head = head.get(*written..).unwrap_or_default();
        let rest_of_body = body.get(written.saturating_sub(head.len())..).unwrap_or_default();
        let mut stream = Pin::new(&mut *stream);
        let wrote = match (rest_of_head, rest_of_body) {
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
        match wrote {
            Poll::Pending => {
                activity.write_waits();
                return Poll::Pending;
            }
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(Ok(bytes)) => {
                activity.has_written(bytes);
                *written += bytes;
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
        }
    }
}

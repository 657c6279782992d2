//! A request on its way through a handler.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use hyper::body::{Body as _, Frame};
use metrics::{Counter, Histogram};

use crate::access::Grant;
use crate::http::api::{Admitted, Api, BodyBytes};
use crate::http::guard::in_progress::InWork;
use crate::http::guard::refusal_log::{Client, Refused};
use crate::http::render::problem::Problem;
use crate::http::request::params::Params;
use crate::http::routing::verbs::Verb;
use crate::job::MAX_METADATA_BYTES;
use crate::metrics::{HTTP_REQUEST_SECONDS, HTTP_RESPONSES_TOTAL, READ_SECONDS, READ_SHARDS};
use crate::query::{
    Answer, BoardView, HoldsEntries, fill_metadata, missing_metadata, read, read_with_metadata,
};
use crate::types::{AsOf, BoardName, MemberId, Sequence, ShardId};

/// The longest body, in bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;
/// What most bodies stay below, in bytes.
const BODY_BYTES_EXPECTED: usize = 16 << 10;
/// An entry without its metadata, mostly: in an answer, and while that is made.
const ENTRY_BYTES_EXPECTED: usize = 512;
/// How long a body may take that is thrown away.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);
/// How much more of a body is read and thrown away, so that a client that writes before it reads sees the refusal.
const BODY_BYTES_DRAINED: usize = 8 << 20;

/// Metadata of so many entries is read at once: it is mostly in memory, and handing over to another thread costs more.
pub const INLINE_DISK_READS: usize = 4;

/// The route, in metrics, of what reaches none.
pub const NO_ROUTE: &str = "none";

/// A route's metrics, registered once.
#[derive(Clone)]
pub struct RouteMetrics {
    pub request_seconds: Histogram,
    pub responses: Responses,
    read_seconds: Histogram,
    read_shards: Histogram,
}

/// A route's answers, counted by class of status, from 2xx.
#[derive(Clone)]
pub struct Responses([Counter; 4]);

impl RouteMetrics {
    pub fn new(route: &'static str) -> Self {
        Self {
            request_seconds: metrics::histogram!(HTTP_REQUEST_SECONDS, "route" => route),
            responses: Responses::new(route),
            read_seconds: metrics::histogram!(READ_SECONDS, "route" => route),
            read_shards: metrics::histogram!(READ_SHARDS, "route" => route),
        }
    }
}

impl Responses {
    pub fn new(route: &'static str) -> Self {
        let classes = ["2xx", "3xx", "4xx", "5xx"];
        Self(classes.map(|class| metrics::counter!(HTTP_RESPONSES_TOTAL, "route" => route, "class" => class)))
    }

    /// Counts an answer.
    pub fn note(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).checked_sub(2);
        if let Some(counter) = class.and_then(|class| self.0.get(class)) {
            counter.increment(1);
        }
    }
}

/// A request, all of it read.
pub struct Call {
    pub api: Arc<Api>,
    parts: Parts,
    path: RawPathParams,
    /// What follows the board's name in the path, and is no part of it.
    verb: Option<&'static str>,
    /// What the request's token allows; `None` where no tokens are needed.
    grant: Option<Arc<Grant>>,
    pub body: Vec<u8>,
    /// Held as long as the body is.
    _body_bytes: BodyBytes,
    /// What it takes of what all share, kept until its answer is written.
    pub in_work: Arc<InWork>,
    metrics: RouteMetrics,
}

impl Call {
    /// # Errors
    /// When the path, decoded, is not UTF-8, or the body has more than [`BODY_BYTES_MAX`] bytes, or breaks off.
    pub async fn new(
        api: Arc<Api>,
        request: axum::extract::Request,
        metrics: RouteMetrics,
    ) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let path = RawPathParams::from_request_parts(&mut parts, &()).await;
        let verb = Verb::of(&mut parts).await.map(|verb| verb.suffix);
        let grant = parts.extensions.remove::<Arc<Grant>>();
        let mut body_bytes = BodyBytes::none(&api);
        let body = if body.is_end_stream() {
            Vec::new()
        } else if announced(&body) > BODY_BYTES_MAX {
            if !asks_first(&parts.headers) {
                discard(body).await;
            }
            return Err(Problem::body_too_large());
        } else {
            let read = read_body(body, api.limits.body_stall, &mut body_bytes);
            let read = tokio::time::timeout(api.limits.body, read);
            read.await.map_err(|_| Problem::body_too_slow())??
        };
        let path = path.map_err(|_| Problem::path_not_utf8())?;
        let in_work = Arc::new(InWork::new(&api));
        Ok(Self { api, parts, path, verb, grant, body, _body_bytes: body_bytes, in_work, metrics })
    }

    /// The request's place among those in work, for what goes on by itself.
    pub fn place(&self) -> Option<Arc<Admitted>> {
        self.in_work.place()
    }

    /// A segment of the path, by its name in the route.
    pub fn segment(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value).unwrap_or_default()
    }

    pub fn board(&self) -> &str {
        let segment = self.segment("board");
        self.verb.and_then(|verb| segment.strip_suffix(verb)).unwrap_or(segment)
    }

    /// # Errors
    /// When the segment is no board's name.
    pub fn board_name(&self) -> Result<BoardName, Problem> {
        BoardName::new(self.board()).map_err(|why| Problem::not_one(&why, self.board()))
    }

    /// # Errors
    /// When the segment is no member's id.
    pub fn member(&self) -> Result<MemberId, Problem> {
        let id = self.segment("member");
        MemberId::new(id).map_err(|why| Problem::not_one(&why, id))
    }

    /// What confines the request to boards of some names, if anything does. Of boards that its path names this was judged
    /// before; of others, whoever reads their names judges.
    pub fn confined_to(&self) -> Option<&Grant> {
        self.grant.as_deref().filter(|grant| !grant.allows_every_board())
    }

    /// The request's token, if there is a limit to the boards that it may make.
    pub fn limited(&self) -> Option<&Arc<Grant>> {
        self.grant.as_ref().filter(|grant| grant.max_boards.is_some())
    }

    /// Notes that the token rules out what the request turned out to be about.
    pub fn refused(&self, problem: &Problem) {
        let refused = Refused {
            client: self.parts.extensions.get().copied(),
            method: self.parts.method.as_str(),
            path: self.parts.uri.path(),
            token: self.grant.as_deref().map(|grant| grant.name.as_str()),
        };
        self.api.refusals.note(problem, refused);
    }

    /// Logs whose token did what others will ask about.
    pub fn tell_who(&self, did: &'static str) {
        let Some(grant) = &self.grant else { return };
        let client: Option<&Client> = self.parts.extensions.get();
        tracing::info!(
            token = grant.name,
            client = client.map(|Client(address)| tracing::field::display(address)),
            method = self.parts.method.as_str(),
            path = ?self.parts.uri.path(),
            "{did}"
        );
    }

    pub fn query(&self) -> Option<&str> {
        self.parts.uri.query()
    }

    /// The parameters of a read. Waits until what `after` names is applied.
    ///
    /// # Errors
    /// When a parameter is not as it should be, or the wait is too long.
    pub async fn read_params(&self, known: &[&str]) -> Result<Params<'_>, Problem> {
        let params = Params::parse_read(self.query(), known)?;
        if let Some((token, timeout)) = params.after()? {
            self.wait_until(&token, timeout).await?;
        }
        Ok(params)
    }

    async fn wait_until(&self, token: &AsOf, timeout: Duration) -> Result<(), Problem> {
        let deadline = tokio::time::Instant::now() + timeout;
        let shard = |id: &ShardId| self.api.node.shards.get(id.index());
        if token.0.iter().any(|(id, _)| shard(id).is_none()) {
            return Err(Problem::unknown_shard());
        }
        let lacks = |(id, sequence): &&(ShardId, Sequence)| {
            shard(id).is_some_and(|shard| *shard.applied.borrow() < *sequence)
        };
        if !token.0.iter().any(|part| lacks(&part)) {
            return Ok(());
        }
        // Who only waits keeps nobody else out: it has its connection, which are limited per client.
        self.in_work.rest();
        for (id, sequence) in token.0.iter().filter(lacks) {
            let Some(shard) = shard(id) else { continue };
            let mut applied = shard.applied.clone();
            let waited = tokio::time::timeout_at(deadline, applied.wait_for(|now| now >= sequence)).await;
            if !matches!(waited, Ok(Ok(_))) {
                return Err(Problem::not_yet_applied());
            }
        }
        self.in_work.begin()
    }

    /// Asks a board for what needs no disk: counts.
    ///
    /// # Errors
    /// When there is no such board.
    pub fn ask<A>(&self, ask: impl FnOnce(&BoardView<'_>) -> A) -> Result<Answer<A>, Problem> {
        let started = Instant::now();
        let answer = read(&self.api.node, &self.api.registry, self.board(), ask);
        self.asked(started);
        answer.ok_or_else(Problem::unknown_board)
    }

    /// Asks a board for entries, with their metadata.
    ///
    /// # Errors
    /// When there is no such board.
    pub async fn ask_entries<A: HoldsEntries + Send + 'static>(
        &self,
        ask: impl Fn(&BoardView<'_>) -> A + Send + 'static,
    ) -> Result<Answer<A>, Problem> {
        let started = Instant::now();
        let first = read(&self.api.node, &self.api.registry, self.board(), &ask);
        let mut answer = first.ok_or_else(Problem::unknown_board)?;
        if !self.fill_metadata_at_once(&answer.as_of, &mut answer.body) {
            // The disk blocks: off the threads that serve everyone else.
            self.expect_metadata(&mut answer.body)?;
            drop(answer);
            let (api, board) = (Arc::clone(&self.api), self.board().to_owned());
            let read = move || read_with_metadata(&api.node, &api.registry, &board, ask);
            let again = self.api.read_disk(self.place(), read).await?;
            answer = again.ok_or_else(Problem::unknown_board)?;
        }
        self.asked(started);
        Ok(answer)
    }

    /// Reads metadata where there is none, or little, of it to read. False: there is more to do.
    pub fn fill_metadata_at_once(&self, as_of: &AsOf, answer: &mut impl HoldsEntries) -> bool {
        let missing = missing_metadata(answer);
        missing == 0 || (missing <= INLINE_DISK_READS && fill_metadata(&self.api.node, as_of, answer))
    }

    /// Counts the most that an answer can come to whose metadata is still to be read, before any of it is.
    ///
    /// # Errors
    /// When that is more than there is room for.
    pub fn expect_metadata(&self, answer: &mut impl HoldsEntries) -> Result<(), Problem> {
        let each = ENTRY_BYTES_EXPECTED + MAX_METADATA_BYTES;
        self.in_work.count_answer(missing_metadata(answer) * each)
    }

    /// Takes the time of a read.
    pub fn asked(&self, started: Instant) {
        self.metrics.read_seconds.record(started.elapsed());
        self.metrics.read_shards.record(f64::from(self.api.node.shard_count()));
    }
}

async fn read_body(mut body: Body, stall: Duration, budget: &mut BodyBytes) -> Result<Vec<u8>, Problem> {
    // No more at first than a client has to send to get it.
    let mut bytes = Vec::with_capacity(announced(&body).min(BODY_BYTES_EXPECTED));
    let mut seen: usize = 0;
    loop {
        let data = tokio::time::timeout(stall, next(&mut body)).await;
        let Some(data) = data.map_err(|_| Problem::body_too_slow())? else { break };
        let data = data?;
        seen += data.len();
        if seen <= BODY_BYTES_MAX {
            if !budget.take(data.len()) {
                drop(bytes);
                discard(body).await;
                return Err(Problem::overloaded());
            }
            bytes.extend_from_slice(&data);
        } else if seen > BODY_BYTES_MAX + BODY_BYTES_DRAINED {
            break;
        }
    }
    if seen > BODY_BYTES_MAX { Err(Problem::body_too_large()) } else { Ok(bytes) }
}

/// Whether the client waits to be told to send its body (RFC 9110, section 10.1.1). That is done when the body is first read.
pub fn asks_first(headers: &HeaderMap) -> bool {
    let expects = headers.get(header::EXPECT);
    expects.is_some_and(|expects| expects.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Reads a body that is of no use, and throws it away: left unread, it would cost the client the connection, and with
/// it most likely the answer.
pub async fn discard(mut body: Body) {
    if body.is_end_stream() || announced(&body) > BODY_BYTES_MAX + BODY_BYTES_DRAINED {
        return;
    }
    let mut left = BODY_BYTES_MAX + BODY_BYTES_DRAINED;
    let all = async {
        while let Some(Ok(data)) = next(&mut body).await {
            match left.checked_sub(data.len()) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // Too slow a client is let go.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, all).await;
}

fn announced(body: &Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

/// The next piece of a body; `None` at its end.
async fn next(body: &mut Body) -> Option<Result<Bytes, Problem>> {
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        match frame.map_err(|_| Problem::body_broken()).map(Frame::into_data) {
            Ok(Ok(data)) => return Some(Ok(data)),
            // Trailers.
            Ok(Err(_)) => {}
            Err(problem) => return Some(Err(problem)),
        }
    }
}

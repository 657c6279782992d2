//! A request, all of it read: what its handler works with.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::http::{HeaderValue, header};

use crate::access::{Grant, ProfileAccess, Scope};
use crate::http::api::Api;
use crate::http::guard::authorize::Needs;
use crate::http::guard::refusal_log::ClientAddress;
use crate::http::render::problem::Problem;
use crate::http::request::body;
use crate::http::request::change::{Author, Change};
use crate::http::request::head::Head;
use crate::http::request::held_token::HeldToken;
use crate::http::request::job_list::{REQUEST_ID_BYTES_MAX, identify};
use crate::http::request::metrics::RouteMetrics;
use crate::job::{Job, JobId};
use crate::operations::{BoardChanges, BodyBytes, Failure, Reading, WriteOptions, Written, answer_bytes_max};
use crate::query::{InstanceAsked, WindowChoice};
use crate::types::{BoardName, MemberId};

/// A request, all of it read.
pub struct Call {
    pub api: Arc<Api>,
    head: Head,
    /// What the request's token allows; `None` where no tokens are needed.
    grant: Option<Arc<Grant>>,
    pub body: Vec<u8>,
    /// Held as long as the body is.
    _body_bytes: BodyBytes,
    /// What its reads wait for, and what it takes of what all requests share.
    pub reading: Reading,
    pub metrics: Arc<RouteMetrics>,
    /// Which instance of a board the request reads; not set: the default.
    pub(super) window: OnceLock<WindowChoice>,
}

impl Call {
    /// Reads the body of a request. In a box, because a call goes from future to future: each would have room
    /// for it, and be copied with it.
    ///
    /// # Errors
    /// When the path, decoded, is not UTF-8; when the body is too long or too slow, or breaks off.
    pub async fn read(
        api: Arc<Api>,
        head: Head,
        grant: Option<Arc<Grant>>,
        body: Body,
        metrics: Arc<RouteMetrics>,
    ) -> Result<Box<Self>, Problem> {
        let (body, body_bytes) = body::read(&api, &head, body).await?;
        if !head.is_utf8() {
            return Err(Problem::path_not_utf8());
        }
        let reading = Reading::new(&api.operations.admission);
        Ok(Box::new(Self {
            api,
            head,
            grant,
            body,
            _body_bytes: body_bytes,
            reading,
            metrics,
            window: OnceLock::new(),
        }))
    }

    /// A segment of the path, by its name in the route.
    pub fn segment(&self, name: &str) -> &str {
        self.head.segment(name).unwrap_or_default()
    }

    pub fn board(&self) -> &str {
        self.head.board().unwrap_or_default()
    }

    /// # Errors
    /// When the segment is no board's name.
    pub fn board_name(&self) -> Result<BoardName, Problem> {
        BoardName::new(self.board()).map_err(|why| Problem::malformed_text(&why, self.board()))
    }

    /// # Errors
    /// When the segment is no member's id.
    pub fn member(&self) -> Result<MemberId, Problem> {
        let id = self.segment("member");
        MemberId::new(id).map_err(|why| Problem::malformed_text(&why, id))
    }

    /// Which instance of a board the request asks for.
    pub fn window(&self) -> WindowChoice {
        self.window.get().copied().unwrap_or_default()
    }

    /// The instance that the request asks for, at this node's time.
    pub fn instance_asked(&self) -> InstanceAsked {
        InstanceAsked { choice: self.window(), now: self.api.operations.now() }
    }

    /// The value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers().get(name)?.to_str().ok()
    }

    /// By what the client wants the request to be recognised if it comes again.
    ///
    /// # Errors
    /// When it is no id of jobs.
    pub fn idempotency_key(&self) -> Result<Option<JobId>, Problem> {
        let Some(key) = self.head.idempotency_key() else { return Ok(None) };
        let id =
            key.to_str().ok().and_then(JobId::new).filter(|id| id.as_str().len() <= REQUEST_ID_BYTES_MAX);
        id.map(Some).ok_or_else(|| {
            Problem::bad_parameter(format!(
                "the header Idempotency-Key must have 1 to {REQUEST_ID_BYTES_MAX} bytes of printable ASCII, such \
                 as a UUID"
            ))
        })
    }

    pub fn client_address(&self) -> Option<IpAddr> {
        self.head.client().map(|ClientAddress(address)| address)
    }

    /// The request's token, to be judged again while the request is answered for long.
    pub fn held_token(&self, needs: Needs) -> Option<HeldToken> {
        let active = self.api.access.as_ref()?;
        let presented = self.head.headers().get_all(header::AUTHORIZATION).iter();
        // Copied: a clone would keep all of the request's head in memory.
        let presented = presented.filter_map(|value| HeaderValue::from_bytes(value.as_bytes()).ok());
        let headers = presented.map(|value| (header::AUTHORIZATION, value)).collect();
        Some(HeldToken::new(active, headers, needs))
    }

    pub fn query(&self) -> Option<&str> {
        self.head.query()
    }

    /// The request's token, if it is confined to boards of some names. A board in the path was checked
    /// before; a handler that reads the names of boards elsewhere checks them.
    pub fn confined_to(&self) -> Option<&Grant> {
        self.grant.as_deref().filter(|grant| !grant.allows_every_board())
    }

    /// Whether the request's token allows this with profiles.
    pub fn allows_profiles(&self, access: ProfileAccess) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.profiles >= access)
    }

    /// Whether the request's token has a scope, beside that of the route.
    pub fn allows(&self, scope: Scope) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.allows(scope))
    }

    /// The request's token, if there is a limit to the boards that it may make.
    pub fn board_limited(&self) -> Option<&Arc<Grant>> {
        self.grant.as_ref().filter(|grant| grant.max_boards.is_some())
    }

    /// Notes in the refusal log that the token rules out the boards of the request.
    pub fn note_refusal(&self, problem: &Problem) {
        self.head.note_refusal(&self.api, problem, self.grant.as_deref());
    }

    /// A change that the request makes and that others will ask about. The log has whose token made it.
    pub fn begin_change(&self, what: &'static str) -> Change {
        Change::new(what, self.author())
    }

    /// Has boards changed, and notes it in the log.
    ///
    /// # Errors
    /// Those of the change.
    pub async fn change_boards<T: Send + 'static, F: Future<Output = Result<T, Failure>> + Send>(
        &self,
        what: &'static str,
        change: impl FnOnce(BoardChanges) -> F + Send + 'static,
    ) -> Result<T, Problem> {
        let noted = self.begin_change(what);
        let noted = |made: &Result<T, Failure>| noted.finish_operation(made);
        Ok(self.api.operations.change_boards(change, noted).await?)
    }

    /// As [`Call::begin_change`], of those jobs that take entries away, or hide or show them.
    pub fn begin_jobs(&self, jobs: &[Job]) -> Option<Box<Change>> {
        Change::of_jobs(jobs, || self.author())
    }

    /// Has jobs written, and boards made for them as far as the token may.
    ///
    /// # Errors
    /// When the answer may be larger than there is room for, or the jobs cannot be published.
    pub async fn write(&self, mut jobs: Vec<Job>, options: WriteOptions) -> Result<Written, Problem> {
        let operations = &self.api.operations;
        if let Some(id) = self.idempotency_key()? {
            identify(&mut jobs, &id);
        }
        // Before anything is published: afterwards the request can no longer be refused.
        let bytes = answer_bytes_max(operations.node.shard_count(), &jobs, options);
        self.reading.in_progress.count_answer(bytes)?;
        Ok(operations.write(jobs, options, self.board_limited()).await?)
    }

    /// `None` where no tokens are needed: nobody has a name then.
    fn author(&self) -> Option<Author> {
        let grant = self.grant.as_ref()?;
        Some(Author {
            token: grant.name.clone(),
            client: self.client_address(),
            method: self.head.method().clone(),
            path: self.head.path().to_owned(),
        })
    }
}

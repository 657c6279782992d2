//! Problems (RFC 9457): failures with a status and a stable code. Only this file and `failure` pick statuses.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::access::Scope;
use crate::board::Definition;
use crate::http::render::json::{self, Object};
use crate::http::render::reply::{PROBLEM_JSON, body_response};
use crate::job::{Reject, RejectCode};
use crate::operations::WouldDrop;
use crate::query::UnknownWindow;
use crate::snapshot::SnapshotError;
use crate::types::{BoardName, Malformed, ShardId, quoted};
use crate::window::Instance;
use crate::wire::json_words;

/// The code of what a token's board prefixes rule out, also within a list of jobs.
pub const FORBIDDEN_BOARD: &str = "forbidden_board";

/// The code of what a token does not allow with profiles, also within a list of jobs.
pub const FORBIDDEN_PROFILE: &str = "forbidden_profile";

const FOREIGN_ORIGIN: &str = "foreign_origin";

pub(super) const OVERLOADED: &str = "overloaded";

/// An error answer.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: Cow<'static, str>,
    /// Seconds after which the client should try again.
    retry_after: Option<u32>,
    /// The value of `WWW-Authenticate`.
    challenge: Option<HeaderValue>,
    /// Further members of the problem as JSON, without braces: `"errors":[...]`.
    more: Option<Vec<u8>>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, detail: detail.into(), retry_after: None, challenge: None, more: None }
    }

    pub(super) fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    fn challenge(self, challenge: &'static str) -> Self {
        Self { challenge: Some(HeaderValue::from_static(challenge)), ..self }
    }

    /// Adds members to the problem, written as JSON without the braces.
    pub fn with(self, members: Vec<u8>) -> Self {
        Self { more: Some(members), ..self }
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Whether the request was shed.
    pub fn is_overload(&self) -> bool {
        self.code == OVERLOADED
    }

    /// The memory of the answer, about.
    pub fn bytes(&self) -> usize {
        self.more.as_ref().map_or(0, Vec::capacity)
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    pub fn unknown_route() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "unknown_route",
            "there is nothing at this path; /docs lists the paths of the API",
        )
    }

    /// A path that would be a member's if a slash in the id were encoded.
    pub fn unencoded_slash() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "unknown_route",
            "there is nothing at this path; if the member's id has a slash, write it as %2F, for example \
             members/tokio-rs%2Ftokio",
        )
    }

    pub fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this path does not support this method; the header Allow lists those that it supports",
        )
    }

    pub fn unknown_board() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "unknown_board",
            "there is no board of this name; GET /v1/boards lists the boards, and a PUT or a job creates one",
        )
    }

    /// A board that a request names beside its path.
    pub fn unknown_column(board: &BoardName) -> Self {
        let detail = format!(
            "the request names the board {board}, which there is not; GET /v1/boards lists the boards, and a PUT or a job \
             creates one"
        );
        Self::new(StatusCode::NOT_FOUND, "unknown_board", detail)
    }

    /// The name would be another board's with a verb behind it.
    pub fn unknown_board_or_verb() -> Self {
        let detail = "there is no board of this name; to clear or trim a board, send POST to this path";
        Self::new(StatusCode::NOT_FOUND, "unknown_board", detail)
    }

    pub fn unknown_member() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "unknown_member",
            "the member has no entry on this board, or a hidden one; a job with a score creates one, and `show` shows a hidden one",
        )
    }

    /// The same on a board of this definition.
    pub fn unknown_member_of(definition: &Definition) -> Self {
        let Some(capacity) = definition.capacity else { return Self::unknown_member() };
        if definition.is_top_k() {
            return Self::new(
                StatusCode::NOT_FOUND,
                "unknown_member",
                "the member has no entry on this board, which keeps only those that are counted most often (`top_k`)",
            );
        }
        Self::new(
            StatusCode::NOT_FOUND,
            "unknown_member",
            format!(
                "the member has no entry on this board, or a hidden one, or one beyond the best {capacity}, which are all that the board shows (`capacity`)"
            ),
        )
    }

    /// The board has no such window, or the instance has not begun or was dropped.
    pub fn unknown_window(why: &UnknownWindow) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_window", why.to_string())
    }

    pub fn unknown_season(detail: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_window", detail)
    }

    /// A change of a board would take from it what readers can see. `?force=true` consents.
    pub fn would_drop(would: &WouldDrop) -> Self {
        let WouldDrop { instances, entries, is_at_least, is_board } = *would;
        let counted = |n: u64, one: &str, many: &str| format!("{n}{}", if n == 1 { one } else { many });
        let mut lost = Vec::new();
        if instances > 0 {
            lost.push(counted(instances, " closed instance", " closed instances"));
        }
        if entries > 0 || is_at_least {
            let least = if is_at_least { "at least " } else { "" };
            lost.push(format!("{least}{}", counted(entries, " entry", " entries")));
        }
        if is_board {
            let detail = format!(
                "expires_at is over, so that the board would end now, with {}; send a later time, or ?force=true \
                 to drop it",
                counted(entries, " entry", " entries")
            );
            let members = format!(r#""instances":{instances},"entries":{entries}"#).into_bytes();
            return Self::new(StatusCode::CONFLICT, "would_drop", detail).with(members);
        }
        let detail = format!(
            "the change would drop {} of the board; export them first if they are wanted, and send ?force=true \
             to drop them",
            lost.join(" and ")
        );
        let members = format!(r#""instances":{instances},"entries":{entries}"#).into_bytes();
        Self::new(StatusCode::CONFLICT, "would_drop", detail).with(members)
    }

    /// The instance is final.
    pub fn closed_window(instance: Instance) -> Self {
        let detail = format!(
            "{instance} is closed: its entries are final; an instance can be trimmed until its end and the board's grace after it"
        );
        Self::new(StatusCode::CONFLICT, "closed_window", detail)
    }

    pub fn unknown_position() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "unknown_position",
            "the board has fewer entries than that; `total` in answers about the board says how many",
        )
    }

    pub fn path_not_utf8() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "malformed",
            "the path, percent-decoded, is not UTF-8; encode the UTF-8 bytes of names and ids",
        )
    }

    /// Part of the path looks percent-encoded, and is not.
    pub fn path_malformed(found: &str) -> Self {
        let detail = format!(
            "in a path % is followed by two hexadecimal digits, and a percent sign itself is %25; got {}",
            quoted(found)
        );
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    /// A query parameter, or a member of a body that is no job, is not what it should be.
    pub fn bad_parameter(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_parameter", detail)
    }

    pub fn bad_cursor() -> Self {
        let detail = "the cursor was not returned for this board, this window and this direction; send next_cursor unchanged, with the same window, or begin without a cursor";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_cursor", detail)
    }

    pub fn bad_cursor_of(detail: String) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_cursor", detail)
    }

    pub fn bad_cursor_of_rejects() -> Self {
        let detail = "the cursor was not returned by this node for this shard and reason; send next_cursor unchanged, or begin without a cursor";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_cursor", detail)
    }

    pub fn bad_score(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_score", detail)
    }

    pub fn unsupported(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unsupported", detail)
    }

    pub fn invalid_definition(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_definition", detail)
    }

    /// More items than a page or batch may have.
    pub fn over_limit(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "too_large", detail)
    }

    pub fn body_too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "the body is larger than 1 MiB; send fewer jobs at a time",
        )
    }

    pub fn body_broken() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "malformed",
            "the body is shorter than its Content-Length, or ended within a chunk; send it again",
        )
    }

    pub fn bad_chunks() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "malformed",
            "the chunks of the body cannot be read: a size is no hexadecimal number, a chunk does not end \
             where its size says, or extensions or trailers are too long; send a Content-Length instead",
        )
    }

    pub fn not_one_host() -> Self {
        let detail = "a request of HTTP/1.1 has exactly one header Host; send one";
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    /// The head says more than once where the body ends, by a length or by chunks.
    pub fn body_ends_twice() -> Self {
        let detail = "the head says twice where the body ends: both Content-Length and Transfer-Encoding, or one of them twice; send one of them, once";
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    pub fn unsupported_coding() -> Self {
        let detail = "the only transfer coding that is supported is chunked; send the body without another";
        Self::new(StatusCode::NOT_IMPLEMENTED, "unsupported_coding", detail)
    }

    pub fn body_too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            "the body did not arrive in time; send it again, or send a smaller one",
        )
    }

    /// There is no token (RFC 6750, section 3: no error is named then).
    pub fn unauthorized() -> Self {
        let detail = "a token is needed: send it in the header Authorization: Bearer ...";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail).challenge("Bearer realm=\"ranktree\"")
    }

    pub fn invalid_token() -> Self {
        let detail = "the token is unknown, or was removed; ask the operator of the service for a token";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_token", detail)
            .challenge("Bearer realm=\"ranktree\", error=\"invalid_token\"")
    }

    pub fn insufficient_scope(needed: Scope) -> Self {
        let detail =
            format!("this request takes a token with the scope {needed}; the scope of this token is lower");
        Self::new(StatusCode::FORBIDDEN, "insufficient_scope", detail).challenge(match needed {
            Scope::Read => "Bearer realm=\"ranktree\", error=\"insufficient_scope\", scope=\"read\"",
            Scope::Write => "Bearer realm=\"ranktree\", error=\"insufficient_scope\", scope=\"write\"",
            Scope::Admin => "Bearer realm=\"ranktree\", error=\"insufficient_scope\", scope=\"admin\"",
        })
    }

    /// The token is confined to other boards. The problem does not tell whether the board exists.
    pub fn forbidden_board(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, FORBIDDEN_BOARD, detail)
            .challenge("Bearer realm=\"ranktree\", error=\"insufficient_scope\"")
    }

    /// The token is confined to some boards, and not let at profiles, which are of members.
    pub fn forbidden_profile(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, FORBIDDEN_PROFILE, detail)
            .challenge("Bearer realm=\"ranktree\", error=\"insufficient_scope\"")
    }

    /// More boards than there can be, or than the token may make.
    pub fn too_many_boards(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_boards", detail)
    }

    /// A node without tokens is asked by a name that another machine can have.
    pub fn foreign_host() -> Self {
        let detail = "a node without tokens answers only programs on its own machine, but the Host of the \
                      request is not localhost or a loopback address; use localhost in the URL, or give the \
                      node tokens, or start it with --insecure";
        Self::new(StatusCode::FORBIDDEN, FOREIGN_ORIGIN, detail)
    }

    /// A page of another site has sent the request, as far as its browser says.
    pub fn foreign_origin() -> Self {
        let detail = "the request comes from a page of another origin, as its Origin or Sec-Fetch-Site says, \
                      and only pages of this service may send it; to let the pages of a site in, start the \
                      node with --allow-origin and the site's origin; a proxy in front of the node must pass \
                      the Host on, or name it in X-Forwarded-Host";
        Self::new(StatusCode::FORBIDDEN, FOREIGN_ORIGIN, detail)
    }

    pub fn not_json(body: &[u8], error: &serde_json::Error) -> Self {
        let detail = format!("the body is not JSON: {}", json_words(body, error));
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    pub fn overloaded() -> Self {
        let detail = "too many requests are in progress; try again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, OVERLOADED, detail).retry_after(1)
    }

    pub fn too_many_connections() -> Self {
        let detail = "too many connections are open; try again in a moment, and reuse open connections";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, OVERLOADED, detail).retry_after(1)
    }

    pub fn too_many_watchers() -> Self {
        let detail = "too many clients watch boards on this node, or too many of this address; try again \
                      later, or at another node, or share one watch among clients";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, OVERLOADED, detail).retry_after(10)
    }

    pub fn shutting_down() -> Self {
        let detail = "the node is shutting down; ask another one, or this one again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, OVERLOADED, detail).retry_after(1)
    }

    pub fn shard_unavailable(detail: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shard_unavailable", detail).retry_after(1)
    }

    /// The same, naming the shards that it is about.
    pub fn with_shards(self, shards: &[ShardId]) -> Self {
        let mut members = b"\"shards\":".to_vec();
        json::array(&mut members, shards, |out, shard| json::unsigned(out, u64::from(shard.0)));
        self.with(members)
    }

    /// Damaged files do not mend by themselves: the answer does not ask the client to try again.
    pub fn shard_damaged(detail: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shard_damaged", detail)
    }

    /// Snapshots of the node cannot be taken, or there is no such piece of one.
    pub fn snapshot(why: &SnapshotError) -> Self {
        let (status, code) = match why {
            SnapshotError::TooMany => (StatusCode::CONFLICT, "too_many_snapshots"),
            SnapshotError::Unknown => (StatusCode::NOT_FOUND, "unknown_snapshot"),
            SnapshotError::NotCopied { .. } | SnapshotError::Unreadable(_) => {
                return Self::snapshot_failed(why.to_string());
            }
        };
        Self::new(status, code, why.to_string())
    }

    pub fn no_snapshots() -> Self {
        Self::snapshot_failed("this node has no data directory to copy; ask another node".to_owned())
    }

    fn snapshot_failed(detail: String) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "snapshot_failed", detail).retry_after(1)
    }

    pub fn not_ready() -> Self {
        let detail = "a shard is not live, or too far behind its queue, or its lag is not known yet; `shards` says which, and GET /v1/status says why";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", detail)
    }

    /// `text` is no name, id, number or token.
    pub fn malformed_text(why: &Malformed, text: &str) -> Self {
        let code = match why {
            Malformed::Member => RejectCode::BadMember,
            Malformed::Score => RejectCode::BadScore,
            Malformed::Board | Malformed::Node | Malformed::Time | Malformed::Token => RejectCode::Malformed,
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, code.name(), why.got(text))
    }

    /// A failure of the service, for which the client can do nothing.
    pub fn internal() -> Self {
        let detail = "the request failed because of an error in the service; its log says more";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// A job that is invalid whatever the state: the request is refused and nothing is applied.
    pub fn invalid_job(reject: Reject) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, reject.code.name(), reject.detail)
    }

    /// A job that the current state refuses.
    pub fn rejected_job(reject: &Reject) -> Self {
        match reject.code {
            RejectCode::ReadOnly => Self::read_only(reject.detail.clone()),
            code => Self::new(StatusCode::CONFLICT, code.name(), reject.detail.clone()),
        }
    }

    /// A board, or the service, takes no writes.
    pub fn read_only(detail: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "read_only", detail)
    }
}

impl Problem {
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The body of the answer.
    pub fn to_json(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(256);
        let mut problem = Object::begin(&mut body);
        problem.text("type", &format!("urn:ranktree:problem:{}", self.code));
        problem.text("title", self.status.canonical_reason().unwrap_or("Error"));
        problem.count("status", u64::from(self.status.as_u16()));
        problem.text("code", self.code);
        problem.text("detail", &self.detail);
        problem.end();
        if let Some(more) = self.more.as_ref().filter(|more| !more.is_empty()) {
            body.pop();
            body.push(b',');
            body.extend(more);
            body.push(b'}');
        }
        body
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = body_response(self.status, PROBLEM_JSON, self.to_json());
        let headers = response.headers_mut();
        self.retry_after.map(|seconds| headers.insert(header::RETRY_AFTER, seconds.into()));
        self.challenge.map(|challenge| headers.insert(header::WWW_AUTHENTICATE, challenge));
        response
    }
}

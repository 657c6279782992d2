//! Requests against the router, with a writer that answers from a script instead of planning and committing.

#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "a test's numbers are small, and a bad index fails the test"
)]

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use serde_json::{Value, json};
use smallvec::smallvec;
use tokio::sync::watch;

use crate::access::ActiveTokens;
use crate::applied_sequence::{AppliedSequence, applied_sequence};
use crate::board::Definition;
use crate::http::openapi::document::document;
use crate::http::openapi::validator::check_answer;
use crate::http::routing::endpoint::Answered;
use crate::http::routing::router::Router;
use crate::http::routing::routes::operations;
use crate::http::{Api, Limits, router};
use crate::job::{Reject, RejectCode, Targets};
use crate::operations::{Operations, RequestLimits, ThisNode};
use crate::query::{Node, ShardHandle};
use crate::queue::publisher::Publisher;
use crate::queue::{Publishers, embedded};
use crate::state::{Applied, BoardEvent, Change, Entry, EntryState, Shard, ShardRanking, Step};
use crate::state_lock::{Purpose, StateLock};
use crate::storage::StoreSlot;
use crate::tree::Words;
use crate::types::{Sequence, ShardId, Timestamp};
use crate::writer::{
    BatchLimits, BoardOutcome, BoardOutcomes, CommitFailed, Fetched, FoundBoard, Health, JobOutcome,
    JobSource as _, Message, MessageOutcome, ParkedOutcome, Payload, RegisteredBoard, Registry, ShardState,
};

mod connections;
mod offload;
mod reads;
mod refusals;
mod rejects;
mod seasons;
mod tokens;
mod windows;
mod writes;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(&operations()));

const SHARDS: [u16; 3] = [1, 2, 5];
/// The score that the script rejects.
const REJECTED: i64 = 13;
/// The score whose message cannot be committed.
const UNCOMMITTED: i64 = 666;

/// The score whose job waits for its board, and is unparked by a batch that cannot be committed.
const FREED_IN_VAIN: i64 = 668;

pub struct Fixture {
    router: Router,
    api: Arc<Api>,
}

/// The score whose message is never answered.
const UNHEARD: i64 = 667;

/// A service of so many shards.
pub fn start(shards: u16) -> Fixture {
    start_with(shards, RequestLimits::default())
}

fn start_with(shards: u16, limits: RequestLimits) -> Fixture {
    start_guarded(shards, limits, None)
}

fn start_guarded(shards: u16, limits: RequestLimits, access: Option<Arc<ActiveTokens>>) -> Fixture {
    let registry = Arc::new(Registry::new(true));
    let started = (0..shards).map(|number| start_shard(ShardId(number), Arc::clone(&registry)));
    let (handles, publishers) = started.unzip();
    let (node, publishers) = (Arc::new(Node::in_memory(handles)), Arc::new(Publishers::new(publishers)));
    let render = Arc::new(|| "ranktree_build_info 1\n".to_owned());
    let operations = Operations::new(node, publishers, registry, limits, ThisNode::unnamed(), None);
    let api = Arc::new(Api::new(Arc::new(operations), render, Limits::default(), access, None));
    Fixture { router: router(Arc::clone(&api)), api }
}

fn start_shard(id: ShardId, registry: Arc<Registry>) -> (ShardHandle, Publisher) {
    let (publisher, mut source) = embedded::channel();
    let state = Arc::new(StateLock::new(Shard::new(id)));
    let (applied_sender, applied) = applied_sequence(Sequence(0));
    let health = Arc::new(Health::default());
    health.set_state(ShardState::Live);
    let shard = Arc::clone(&state);
    std::thread::spawn(move || {
        loop {
            let limits = BatchLimits { jobs: 1_000, bytes: 1 << 20 };
            match source.fetch(limits, Duration::from_secs(5)) {
                Fetched::Ended => return,
                Fetched::OriginChanged(_) | Fetched::Nothing => {}
                Fetched::Batch(messages) => {
                    for message in messages {
                        answer(message, &shard, &registry, &applied_sender);
                    }
                }
            }
        }
    });
    let (_, started) = watch::channel(true);
    let store = Arc::new(StoreSlot::default());
    let summaries = Arc::default();
    (ShardHandle { id, state, applied, started, health, store, summaries }, Publisher::Embedded(publisher))
}

fn without_boards(targets: &Targets) -> JobOutcome {
    match targets {
        Targets::Profile(profile) => JobOutcome::WithProfile {
            boards: BoardOutcomes::new(),
            changed: profile.json().is_some(),
            left: None,
        },
        Targets::Boards(_) | Targets::EveryBoard => JobOutcome::Applied(BoardOutcomes::new()),
    }
}

/// A `set` of one score that never was there before, or what the score's value stands for.
fn answer(message: Message, shard: &StateLock, registry: &Registry, applied: &AppliedSequence) {
    let at = Applied { sequence: message.sequence, timestamp: message.timestamp, hash: 0 };
    let mut step = Step { applied: at, ..Step::default() };
    let mut shard = shard.write(Purpose::Apply);
    let (mut outcomes, mut removed) = (Vec::new(), 0);
    match message.payload {
        Payload::Define { board, incarnation, number, definition } => {
            step.events.push(BoardEvent::Define { board, incarnation, number, definition });
        }
        Payload::Drop { board, incarnation, number } => {
            step.events.push(BoardEvent::Drop { board, incarnation, number });
        }
        Payload::Store(_) | Payload::Erase { .. } | Payload::Unpark { .. } | Payload::Tick => {}
        Payload::Trim { board, point, members, .. } => {
            let tree = shard.board(board.as_str()).expect("it was looked at").all;
            for member in members {
                let handle = shard.members.get(member.as_bytes()).expect("it was just found");
                let words =
                    shard.entry(tree, handle).and_then(|entry| entry.words()).expect("it was found there");
                assert!(point.removes(&words, member.as_bytes()), "{member} is to stay");
                step.changes.push(Change { tree, handle, after: None });
                removed += 1;
            }
        }
        Payload::Jobs(jobs) => {
            for job in jobs {
                let job = job.expect("requests are decoded before they are published");
                let Targets::Boards(boards) = &job.targets else {
                    outcomes.push(without_boards(&job.targets));
                    continue;
                };
                let (board, score) = boards.first().expect("a job names a board");
                let Some(score) = score else {
                    outcomes.push(JobOutcome::Applied(BoardOutcomes::new()));
                    continue;
                };
                if score.keys() == [REJECTED] {
                    let reject = Reject::new(RejectCode::OutOfRange, "the script says so");
                    outcomes.push(JobOutcome::Rejected(reject));
                    continue;
                }
                if score.keys() == [UNCOMMITTED] {
                    if let Some(answer) = message.answer {
                        drop(answer.send(Err(CommitFailed { reason: "the script says so".to_owned() })));
                    }
                    return;
                }
                if score.keys() == [FREED_IN_VAIN] {
                    let (tell, told) = tokio::sync::oneshot::channel();
                    drop(tell.send(Err(CommitFailed { reason: "the script says so".to_owned() })));
                    outcomes.push(JobOutcome::Parked(ParkedOutcome::new(told)));
                    continue;
                }
                if score.keys() == [UNHEARD] {
                    // Dropped, it would be an answer.
                    std::mem::forget(message.answer);
                    return;
                }
                let known = registry.get(board.as_str());
                let known = known.unwrap_or_else(|| registry.create_default(board).expect("few boards"));
                let words = known.definition.entry_words(score, message.timestamp, job.member.as_bytes());
                if shard.board(board.as_str()).is_none() {
                    let (board, definition) = (board.clone(), Arc::clone(&known.definition));
                    let (incarnation, number) = (known.incarnation, None);
                    let event = BoardEvent::Define { board, incarnation, number, definition };
                    shard.apply(&Step { events: vec![event], ..Step::default() });
                }
                let tree = shard.board(board.as_str()).expect("just defined").all;
                let entry = Entry {
                    state: EntryState::Listed(words),
                    updated_at: message.timestamp,
                    version: None,
                    has_metadata: false,
                };
                let known_handle = shard.members.get(job.member.as_bytes());
                let handle = known_handle.unwrap_or_else(|| shard.members.nth_next_handle(0));
                let added =
                    if known_handle.is_none() { vec![job.member.as_bytes().into()] } else { Vec::new() };
                let changes = vec![Change { tree, handle, after: Some(entry) }];
                shard.apply(&Step { added, changes, applied: step.applied, ..Step::default() });
                let after =
                    Some(ranking(&shard, board.as_str(), &known.definition, words, message.timestamp));
                let name = board.clone();
                let RegisteredBoard { definition, incarnation } = known;
                outcomes.push(JobOutcome::Applied(smallvec![BoardOutcome {
                    board: Arc::new(FoundBoard { name, definition, incarnation }),
                    changed: true,
                    takes_metadata: true,
                    before: None,
                    after,
                }]));
            }
        }
    }
    shard.apply(&step);
    drop(shard);
    applied.show(message.sequence);
    if let Some(answer) = message.answer {
        let outcome = MessageOutcome { sequence: message.sequence, jobs: outcomes, entries: removed };
        drop(answer.send(Ok(outcome)));
    }
}

fn ranking(shard: &Shard, board: &str, definition: &Definition, words: Words, at: Timestamp) -> ShardRanking {
    let window = shard.board_tree(board).expect("the board is there");
    let score = definition.score_of(words.as_slice());
    let score = definition.score_words(&score);
    let better = window.tree.count_below(score.as_slice());
    ShardRanking {
        words,
        updated_at: at,
        has_metadata: false,
        better,
        tied: window.tree.count_through(score.as_slice()) - better,
        ahead: window.tree.count_below(words.as_slice()),
        total: window.total(),
    }
}

impl Fixture {
    pub async fn send(&self, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
        self.send_bytes(method, path, body.as_bytes().to_vec()).await
    }

    async fn send_bytes(&self, method: &str, path: &str, body: Vec<u8>) -> (StatusCode, Value) {
        let (status, headers, bytes) = self.send_for_all(method, path, body).await;
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // Whatever a test asks, the answer is as the document says.
        let told = |body: &Value| check_answer(&DOCUMENT, method, path, status.as_u16(), body);
        if !status.is_success() {
            assert_eq!(kind, "application/problem+json", "{method} {path}");
            let problem: Value = serde_json::from_slice(&bytes).expect("a problem is JSON");
            assert_eq!(problem["status"], json!(status.as_u16()), "{problem}");
            for name in ["type", "title", "code", "detail"] {
                assert!(problem[name].is_string(), "{name} in {problem}");
            }
            told(&problem);
            return (status, problem);
        }
        if kind.starts_with("text/") {
            let text = Value::String(String::from_utf8_lossy(&bytes).into_owned());
            told(&text);
            return (status, text);
        }
        assert_eq!(kind, "application/json", "{method} {path}");
        let answer = serde_json::from_slice(&bytes).expect("answers are JSON");
        told(&answer);
        (status, answer)
    }

    /// The status, the headers and the body, whatever they are.
    pub async fn send_for_all(
        &self,
        method: &str,
        path: &str,
        body: Vec<u8>,
    ) -> (StatusCode, HeaderMap, Bytes) {
        let request = Request::builder().method(method).uri(path).body(Body::from(body));
        let answered = self.router.answer(request.expect("a good request"), None).await;
        let (head, body) = answered.response.into_parts();
        (head.status, head.headers, to_bytes(body, usize::MAX).await.expect("the body is in memory"))
    }

    /// An answer that is not written yet.
    async fn answered(&self, method: &str, path: &str) -> Answered {
        let request = Request::builder().method(method).uri(path).body(Body::empty());
        self.router.answer(request.expect("a good request"), None).await
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send("GET", path, "").await;
        assert_eq!(status, StatusCode::OK, "{path}: {body}");
        body
    }

    async fn put(&self, path: &str, body: &str) -> Value {
        let (status, body) = self.send("PUT", path, body).await;
        assert!(status.is_success(), "{path}: {body}");
        body
    }

    async fn check_refusals(&self, refusals: &[(&str, &str, &str, u16, &str)]) {
        for (method, path, body, status, code) in refusals {
            let (found, problem) = self.send(method, path, body).await;
            let found = (found.as_u16(), problem["code"].as_str().unwrap_or_default());
            assert_eq!(found, (*status, *code), "{method} {path} {body}: {problem}");
        }
    }
}

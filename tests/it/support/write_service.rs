//! A game service that has its jobs written by the write service.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, HeaderMap, Request};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::support::nats::connect;

/// Far above what any answer takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection, which may have many requests under way.
#[derive(Clone)]
pub struct GameService {
    runtime: Arc<Runtime>,
    pub client: Client,
}

/// What a request was answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The status, 200 unless the headers say it is an error, and the body.
    Said(u16, Value),
    NoResponders,
    /// It is not known what came of it.
    Nothing,
}

impl Answer {
    /// What came of each job of a request that was taken.
    pub fn results(&self) -> Vec<Value> {
        let Self::Said(200, body) = self else { panic!("it was not taken: {self:?}") };
        body["results"].as_array().unwrap_or_else(|| panic!("there are results: {body}")).clone()
    }

    /// The status and the code of a problem.
    pub fn problem(&self) -> (u16, &str) {
        let Self::Said(status, body) = self else { panic!("there was no answer: {self:?}") };
        assert_eq!(body["status"], *status, "{body}");
        (*status, body["code"].as_str().unwrap_or_default())
    }
}

impl GameService {
    pub fn connect(url: &str) -> Self {
        let runtime = Arc::new(Runtime::new().expect("a runtime"));
        let client = runtime.block_on(connect(url));
        Self { runtime, client }
    }

    /// Has one job, or an array of them, written by an owner of shard 0.
    pub fn write(&self, jobs: &Value) -> Answer {
        self.ask("ranktree.write.0", &jobs.to_string(), HeaderMap::new())
    }

    pub fn ask(&self, subject: &str, body: &str, headers: HeaderMap) -> Answer {
        self.runtime.block_on(ask(&self.client, subject.to_owned(), body.to_owned(), headers, PATIENCE))
    }

    /// Sends all of them before any is answered.
    pub fn write_all(&self, requests: &[Value]) -> Vec<Answer> {
        let asked = requests.iter().map(|jobs| {
            ask(&self.client, "ranktree.write.0".to_owned(), jobs.to_string(), HeaderMap::new(), PATIENCE)
        });
        self.runtime.block_on(join_all(asked))
    }

    /// Sends all of them, and waits on a thread of its own.
    pub fn begin_writes(&self, requests: Vec<Value>) -> thread::JoinHandle<Vec<Answer>> {
        let this = self.clone();
        thread::spawn(move || this.write_all(&requests))
    }

    /// As [`GameService::write`], for a client that does not wait long.
    pub fn write_impatiently(&self, jobs: &Value, patience: Duration) -> Answer {
        let asked =
            ask(&self.client, "ranktree.write.0".to_owned(), jobs.to_string(), HeaderMap::new(), patience);
        self.runtime.block_on(asked)
    }

    /// Publishes a request whose answer is to go to a subject.
    pub fn write_with_reply(&self, jobs: &Value, reply: &str) {
        self.runtime.block_on(async {
            let (subject, reply) = ("ranktree.write.0".to_owned(), reply.to_owned());
            let sent = self.client.publish_with_reply(subject, reply, jobs.to_string().into());
            sent.await.expect("it is sent");
            self.client.flush().await.expect("the server answers");
        });
    }

    /// All answers to a question of service discovery, from so many processes.
    pub fn discover(&self, subject: &str, processes: usize) -> Vec<Value> {
        self.runtime.block_on(async {
            let inbox = self.client.new_inbox();
            let answers = self.client.subscribe(inbox.clone()).await.expect("it is sent");
            let sent = self.client.publish_with_reply(subject.to_owned(), inbox, "".into()).await;
            sent.expect("it is sent");
            let answers = answers
                .take(processes)
                .map(|answer| serde_json::from_slice(&answer.payload).expect("it is JSON"));
            tokio::time::timeout(PATIENCE, answers.collect()).await.expect("all of them answer")
        })
    }
}

async fn ask(
    client: &Client,
    subject: String,
    body: String,
    headers: HeaderMap,
    patience: Duration,
) -> Answer {
    let request = Request::new().headers(headers).payload(body.into()).timeout(Some(patience));
    let message = match client.send_request(subject, request).await {
        Ok(message) => message,
        Err(error) if error.kind() == RequestErrorKind::NoResponders => return Answer::NoResponders,
        Err(_) => return Answer::Nothing,
    };
    let header = |name| message.headers.as_ref().and_then(|headers| headers.get(name));
    let status =
        header("Nats-Service-Error-Code").map_or(200, |code| code.as_str().parse().expect("a number"));
    let body: Value = serde_json::from_slice(&message.payload).expect("answers are JSON");
    let code = header("Nats-Service-Error").map(|code| code.as_str().to_owned());
    assert_eq!(code.is_some(), status != 200, "both headers or none");
    assert_eq!(code.unwrap_or_default(), body["code"].as_str().unwrap_or_default(), "{body}");
    Answer::Said(status, body)
}

//! Boards as they change: server-sent events, with all connections that it takes.

mod events;
mod view;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use self::events::{Event, Events};
pub use self::view::LiveView;
use crate::error::{Error, Problem};
use crate::query::query;
use crate::request::{Request, waits};
use crate::retry::{PAUSE_MAX, is_repeatable, pause};
use crate::transport::{Failed, retry_after};
use crate::types::{LiveChanges, LiveQuery, LiveState};

/// Stands for the answer of [`Ranktree::live`], which has no end.
///
/// [`Ranktree::live`]: crate::Ranktree::live
#[derive(Clone, Copy, Debug)]
pub struct Watch(());

/// What a watcher is told. [`LiveView`] puts it together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LiveEvent {
    /// All that is watched. It takes the place of all before.
    State(LiveState),
    /// What has changed since the event before.
    Changes(LiveChanges),
    /// The connection was lost. It is made again, and the next event says what has changed meanwhile.
    Disconnected {
        /// Why, for people.
        detail: String,
    },
}

impl Request<LiveQuery, Watch> {
    /// Watches the board: first a [`LiveEvent::State`], then what changes.
    ///
    /// A connection that is lost, or silent for too long, is made again until the stream is dropped, and
    /// nothing is missed. The first connection is tried as often as any read. The stream ends after an error:
    /// the board was dropped, the window is not kept any more, or the token is not good.
    pub fn stream(self) -> BoxStream<'static, Result<LiveEvent, Error>> {
        let watching = Watching { request: self, connected: None, last_id: None, tries: 0, has_ended: false };
        let next = |mut watching: Watching| async move {
            let told = watching.next().await?;
            watching.has_ended |= told.is_err();
            Some((told, watching))
        };
        stream::unfold(watching, next).boxed()
    }
}

struct Watching {
    request: Request<LiveQuery, Watch>,
    connected: Option<(Incoming, Events)>,
    /// Of the last event.
    last_id: Option<HeaderValue>,
    /// Since the last event.
    tries: u32,
    has_ended: bool,
}

impl Watching {
    /// What is told next; `None` at the end.
    async fn next(&mut self) -> Option<Result<LiveEvent, Error>> {
        if self.has_ended {
            return None;
        }
        let silence_max = self.request.client.transport().silence_max;
        loop {
            let Some((body, events)) = &mut self.connected else {
                if let Err(error) = self.connect().await {
                    return Some(Err(error));
                }
                continue;
            };
            if let Some(event) = events.next() {
                if let Some(told) = self.told(event) {
                    return Some(told);
                }
                continue;
            }
            match timeout(silence_max, read(body)).await {
                Ok(Ok(more)) => events.push(&more),
                Ok(Err(why)) => return Some(Ok(self.disconnected(why))),
                Err(_) => {
                    let why = format!("nothing was heard for {} s", silence_max.as_secs_f32());
                    return Some(Ok(self.disconnected(why)));
                }
            }
        }
    }

    fn disconnected(&mut self, detail: String) -> LiveEvent {
        self.connected = None;
        LiveEvent::Disconnected { detail }
    }

    /// What an event says; `None` of an event that a later version of the service may have.
    fn told(&mut self, event: Event) -> Option<Result<LiveEvent, Error>> {
        let told = match &*event.name {
            "state" => parsed(&event.data).map(LiveEvent::State),
            "changes" => parsed(&event.data).map(LiveEvent::Changes),
            "end" => {
                let body = event.data.as_bytes();
                let status = serde_json::from_slice::<serde_json::Value>(body).ok();
                let status = status.and_then(|body| u16::try_from(body.get("status")?.as_u64()?).ok());
                return Some(Err(Problem::read(status.unwrap_or(500), body, None).into()));
            }
            _ => return None,
        };
        if told.is_ok() {
            self.tries = 0;
            // What `after` names is in this event, and the next connection goes on from it.
            self.request.query.after = None;
            if let Some(id) = event.id.and_then(|id| HeaderValue::try_from(id).ok()) {
                self.last_id = Some(id);
            }
        }
        Some(told)
    }

    /// Tries until there is a connection.
    async fn connect(&mut self) -> Result<(), Error> {
        loop {
            let is_first = self.last_id.is_none();
            // Nobody comes back at once: a node that stops has many watchers.
            if self.tries > 0 || !is_first {
                sleep(pause(self.tries)).await;
            }
            self.tries = self.tries.saturating_add(1);
            let error = match self.try_once().await {
                Ok(connected) => {
                    self.connected = Some(connected);
                    return Ok(());
                }
                Err(error) => error,
            };
            let is_passing = match &error {
                Error::ConnectionFailed { .. } => true,
                error => error.problem().is_some_and(|problem| {
                    // Later, also an internal error and a node that is behind.
                    is_repeatable(true, problem) || (!is_first && problem.status >= 500)
                }),
            };
            if !is_passing || (is_first && self.tries > self.request.client.transport().retries) {
                return Err(error);
            }
            if let Some(rest) = error.problem().and_then(|problem| problem.retry_after) {
                sleep(rest.min(PAUSE_MAX)).await;
            }
        }
    }

    async fn try_once(&mut self) -> Result<(Incoming, Events), Error> {
        let transport = self.request.client.transport();
        let call = &self.request.call;
        let query = query(&self.request.required, &self.request.query);
        let end = Instant::now() + transport.timeout() + waits(&query);
        let mut headers = vec![("accept", HeaderValue::from_static("text/event-stream"))];
        headers.extend(self.last_id.clone().map(|id| ("last-event-id", id)));
        let failed = |failed: Failed| transport.failed(call, &failed);
        let response = transport.open(call, &query, &headers, end).await.map_err(failed)?;
        let status = response.status();
        if status.is_success() {
            return Ok((response.into_body(), Events::default()));
        }
        let retry_after = retry_after(&response);
        let body = timeout(transport.timeout(), response.into_body().collect()).await;
        let body =
            body.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Err(Problem::read(status.as_u16(), &body, retry_after).into())
    }
}

/// The next bytes; why there are none otherwise.
async fn read(body: &mut Incoming) -> Result<Bytes, String> {
    match body.frame().await {
        None => Err("the node ended the connection".to_owned()),
        Some(Err(error)) => Err(error.to_string()),
        Some(Ok(frame)) => Ok(frame.into_data().unwrap_or_default()),
    }
}

fn parsed<T: DeserializeOwned>(data: &str) -> Result<T, Error> {
    serde_json::from_str(data).map_err(|error| {
        let mut problem = Problem::read(200, data.as_bytes(), None);
        problem.detail = format!("the event cannot be read: {error}");
        problem.into()
    })
}

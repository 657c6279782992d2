//! What is said to NATS: messages to streams, until they are acknowledged.

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::{HeaderMap, Request};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::error::Error;
use crate::nats::PublishError;
use crate::retry::pause;

/// How long a stream may take to say how many shards there are.
const INFO_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Link {
    pub(super) connection: async_nats::Client,
    pub(super) prefix: String,
    pub(super) shards: u32,
    pub(super) ack_timeout: Duration,
    pub(super) give_up_after: Duration,
}

/// A message was not acknowledged when it was sent once.
struct Refused {
    detail: String,
    /// Whether it will be refused each time.
    is_final: bool,
    may_be_stored: bool,
}

/// What a stream answers.
#[derive(Deserialize)]
struct Acknowledgement {
    seq: Option<u64>,
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct ApiError {
    #[serde(default)]
    code: u64,
    #[serde(default)]
    description: String,
}

impl Link {
    /// What is sent without a connection waits in memory, once for each time that it is sent, and goes out when
    /// there is one again: maybe after the server has forgotten the id, or after nobody waits for it any more.
    pub(super) fn is_connected(&self) -> bool {
        self.connection.connection_state() == State::Connected
    }

    /// Publishes until the server acknowledges, always under the same id, and returns the sequence. The error
    /// has no id: who shares the message knows what its jobs may be published again under.
    pub(super) async fn store(&self, shard: u32, payload: Bytes, id: &str) -> Result<u64, PublishError> {
        let end = Instant::now() + self.give_up_after;
        let mut may_be_stored = false;
        let mut number = 0;
        loop {
            let refused = match self.store_once(shard, payload.clone(), id).await {
                Ok(sequence) => return Ok(sequence),
                Err(refused) => refused,
            };
            may_be_stored |= refused.may_be_stored;
            let rest = pause(number);
            if refused.is_final || Instant::now() + rest >= end {
                return Err(PublishError { detail: refused.detail, message_id: None, may_be_stored });
            }
            sleep(rest).await;
            number += 1;
        }
    }

    async fn store_once(&self, shard: u32, payload: Bytes, id: &str) -> Result<u64, Refused> {
        let subject = format!("{}.jobs.{shard}", self.prefix);
        let stream = format!("{}_JOBS_{shard}", self.prefix.to_uppercase());
        let refused = |told: String| Refused {
            detail: format!("{subject}: {told}"),
            is_final: false,
            may_be_stored: false,
        };
        if !self.is_connected() {
            return Err(refused("not connected to NATS".to_owned()));
        }
        let mut headers = HeaderMap::new();
        headers.insert(async_nats::header::NATS_MESSAGE_ID, id);
        headers.insert(async_nats::header::NATS_EXPECTED_STREAM, &*stream);
        let request = Request::new().headers(headers).payload(payload).timeout(Some(self.ack_timeout));
        let answer =
            self.connection.send_request(subject.clone(), request).await.map_err(|error| {
                match error.kind() {
                    RequestErrorKind::TimedOut => {
                        let told = format!("not acknowledged within {} s", self.give_up_after.as_secs_f32());
                        Refused { may_be_stored: true, ..refused(told) }
                    }
                    RequestErrorKind::NoResponders => refused(format!(
                        "there is no stream {stream}; a node with the same prefix creates it"
                    )),
                    RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => {
                        Refused { is_final: true, ..refused(error.to_string()) }
                    }
                    RequestErrorKind::Other => {
                        Refused { is_final: true, may_be_stored: true, ..refused(error.to_string()) }
                    }
                }
            })?;
        match serde_json::from_slice(&answer.payload) {
            Ok(Acknowledgement { seq: Some(sequence), error: None }) => Ok(sequence),
            // A full stream, and one without a leader, have a status from 500 on: they may come back.
            Ok(Acknowledgement { error: Some(error), .. }) => {
                Err(Refused { is_final: error.code < 500, ..refused(error.description) })
            }
            _ => {
                let told = "the answer is no acknowledgement".to_owned();
                Err(Refused { is_final: true, may_be_stored: true, ..refused(told) })
            }
        }
    }
}

/// How many shards there are, as the first jobs stream says.
pub(super) async fn find_shards(connection: &async_nats::Client, prefix: &str) -> Result<u32, Error> {
    let stream = format!("{}_JOBS_0", prefix.to_uppercase());
    let told = |why: String| {
        let told = format!("the stream {stream} does not say how many shards there are: {why}");
        Error::UnknownShards(format!("{told}; start a node, or give `shards`"))
    };
    let request = Request::new().payload(Bytes::new()).timeout(Some(INFO_TIMEOUT));
    let answer = connection.send_request(format!("$JS.API.STREAM.INFO.{stream}"), request).await;
    let answer = answer.map_err(|error| told(error.to_string()))?;
    let answer: Value = serde_json::from_slice(&answer.payload).map_err(|error| told(error.to_string()))?;
    if let Some(error) = answer.pointer("/error/description").and_then(Value::as_str) {
        return Err(told(error.to_owned()));
    }
    let shards = answer.pointer("/config/metadata/ranktree-shards").and_then(Value::as_str);
    shards
        .and_then(|shards| shards.parse().ok())
        .ok_or_else(|| told("it is not one of ranktree's".to_owned()))
}

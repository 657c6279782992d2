//! The client of the write service: has jobs applied by an owner of their shard, whichever node that is.
//!
//! Knows: which failures mean that nothing was applied, and after which that is unknown. Must not know: what
//! an answer says.

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{HeaderMap, Request};
use futures_util::future::{BoxFuture, FutureExt as _};

use crate::cluster::write_service::{HEADERS_BYTES_MAX, RESULTS_HEADER};
use crate::queue::nats::{Connection, Names};
use crate::queue::{NotPublished, RemoteWriter};
use crate::types::ShardId;

/// How long an owner may take. An owner waits ten seconds for a new board, and a cluster that lost its leader
/// has another one sooner. An owner that died with a request answers nothing.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

/// Sends requests to the write service.
pub struct WriteClient {
    connection: Connection,
    subjects: Names,
}

impl WriteClient {
    #[must_use]
    pub fn new(connection: &Connection, subjects: &Names) -> Self {
        Self { connection: connection.clone(), subjects: subjects.clone() }
    }

    async fn ask(&self, shard: ShardId, jobs: Vec<u8>, only_changed: bool) -> Result<Vec<u8>, NotPublished> {
        // The NATS client would keep a request and send it some time later, when nobody waits any more.
        if !self.connection.is_up() {
            return Err(NotPublished::Unavailable(self.connection.why_down()));
        }
        let mut request = Request::new().payload(jobs.into()).timeout(Some(ANSWER_TIMEOUT));
        if only_changed {
            let mut headers = HeaderMap::new();
            headers.insert(RESULTS_HEADER, "changed");
            request = request.headers(headers);
        }
        let answer = self.connection.client.send_request(self.subjects.write_subject(shard), request).await;
        match answer {
            Ok(answer) => Ok(answer.payload.into()),
            Err(error) => Err(match error.kind() {
                RequestErrorKind::NoResponders => NotPublished::Unavailable(format!(
                    "no node on which shard {shard} is live takes writes; try again in a moment"
                )),
                RequestErrorKind::MaxPayloadExceeded => NotPublished::TooLarge(
                    "the jobs take more bytes than the NATS server allows in a message; send fewer at a time"
                        .to_owned(),
                ),
                RequestErrorKind::InvalidSubject => NotPublished::Unavailable(error.to_string()),
                RequestErrorKind::TimedOut | RequestErrorKind::Other => {
                    NotPublished::Unknown("the node that took the write did not answer in time".to_owned())
                }
            }),
        }
    }
}

impl RemoteWriter for WriteClient {
    fn bytes_max(&self) -> usize {
        self.connection.client.max_payload().saturating_sub(HEADERS_BYTES_MAX)
    }

    fn write(
        &self,
        shard: ShardId,
        jobs: Vec<u8>,
        only_changed: bool,
    ) -> BoxFuture<'_, Result<Vec<u8>, NotPublished>> {
        self.ask(shard, jobs, only_changed).boxed()
    }
}

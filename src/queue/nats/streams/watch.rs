//! What has become of streams while the node runs: whether a stream of jobs is still configured as it must
//! be, and whether there still is a stream of rejects.
//!
//! Knows: which changes may lose messages that were acknowledged. Must not know: how a stream of jobs is
//! looked at (`retention::task`), or how rejects are published.

use std::time::{Duration, Instant};

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::Config;

use crate::queue::nats::consume::shard_stream::Prepared;
use crate::queue::nats::jetstream::JetStream;
use crate::queue::nats::streams::jobs_config::{jobs_mismatches, may_lose_messages};
use crate::queue::nats::streams::rejects_config::{rejects_config, rejects_mismatches};
use crate::types::ShardId;
use crate::writer::QueueFault;

/// How often the stream of rejects is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// How long the server must report that there is no stream of rejects before it is created again. An operator
/// may be about to restore an old copy, and a server that has just started may not know it yet.
const RECREATE_AFTER: Duration = Duration::from_secs(10);
/// The same problem is logged at most this often.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

impl JetStream {
    /// What is wrong with the settings of a shard's stream of jobs, which someone has changed since the
    /// start.
    pub fn jobs_fault(&self, found: &Config, shard: ShardId) -> Option<QueueFault> {
        // Until then the set-up says what is wrong.
        if *self.prepared.borrow() != Prepared::Ready {
            return None;
        }
        let wrong = jobs_mismatches(found, &self.names, shard, self.facts.shards);
        if wrong.is_empty() {
            return None;
        }
        let refuses_writes = may_lose_messages(found);
        let meanwhile = if refuses_writes {
            "; it may lose messages that it has acknowledged, so this node publishes none into it meanwhile"
        } else {
            ""
        };
        let what = format!(
            "the stream {} was changed and is not as it must be: {}; change it back, with nats stream edit{meanwhile}",
            found.name,
            wrong.join("; "),
        );
        Some(QueueFault { what, refuses_writes })
    }

    /// Looks after the stream of rejects for as long as the service runs: one that is gone is created again.
    /// What was published into it is lost; stored rejects that were not published yet are published.
    pub async fn keep_rejects_stream(&self) {
        let (mut gone_since, mut logged): (Option<Instant>, Option<(Instant, String)>) = (None, None);
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if !self.managing.is_up() || *self.prepared.borrow() != Prepared::Ready {
                gone_since = None;
                continue;
            }
            let fault = self.look_at_rejects_stream(&mut gone_since).await;
            match &fault {
                Some(what) => {
                    let was_logged =
                        |(when, said): &(Instant, String)| when.elapsed() < LOG_INTERVAL && said == what;
                    if !logged.as_ref().is_some_and(was_logged) {
                        tracing::warn!(fault = what, "rejects are not published as they should be");
                        logged = Some((Instant::now(), what.clone()));
                    }
                }
                None if logged.take().is_some() => {
                    tracing::info!("the stream of rejects is as it should be again");
                }
                None => {}
            }
            *self.rejects_fault.lock() = fault;
        }
    }

    async fn look_at_rejects_stream(&self, gone_since: &mut Option<Instant>) -> Option<String> {
        let name = self.names.rejects_stream();
        let error = match self.managing.context.get_stream(&name).await {
            Ok(stream) => {
                *gone_since = None;
                let wrong = rejects_mismatches(&stream.cached_info().config, &self.names);
                let joined = || {
                    format!(
                        "the stream {name} was changed and is not as it must be: {}; change it back, with nats stream edit",
                        wrong.join("; ")
                    )
                };
                return (!wrong.is_empty()).then(joined);
            }
            Err(error) => error,
        };
        let is_gone = matches!(
            error.kind(),
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND
        );
        if !is_gone {
            *gone_since = None;
            // The connection says what it lacks, and who publishes rejects says that they could not be.
            return None;
        }
        if gone_since.get_or_insert_with(Instant::now).elapsed() < RECREATE_AFTER {
            return Some(format!(
                "the stream {name} does not exist any more; it is created again {} seconds after that was noticed",
                RECREATE_AFTER.as_secs()
            ));
        }
        *gone_since = None;
        match self.managing.context.create_stream(rejects_config(&self.names, self.settings.replicas)).await {
            Ok(_) => {
                tracing::warn!(
                    stream = name,
                    "the stream of rejects did not exist any more, and was created again"
                );
                None
            }
            Err(error) => Some(format!(
                "the stream {name} does not exist any more, and cannot be created again: {}",
                self.managing.explain(&error)
            )),
        }
    }
}

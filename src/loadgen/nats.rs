//! Load over NATS: messages go into the shards' streams, or as requests to the write service, with many in
//! flight on each connection.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::mpsc;

use crate::loadgen::feed::{Due, Feed};
use crate::loadgen::http::{Connection, written};
use crate::loadgen::service::Service;
use crate::loadgen::tally::{OperationError, Stored, Tally, Times};
use crate::loadgen::workload::{Operation, Read};
use crate::queue::nats::{BulkPublisher, NotStored};
use crate::types::{Sequence, ShardId};

/// Where messages go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Via {
    /// Into the shards' streams.
    #[default]
    Stream,
    /// To the write service, which answers what came of them.
    Service,
}

/// A message that is watched until readers see it.
pub struct Sample {
    pub intended: Instant,
    pub shard: ShardId,
    pub sequence: Sequence,
}

/// A message that was sent, and what was answered.
struct Answered {
    intended: Instant,
    started: Instant,
    jobs: u32,
    outcome: Result<Stored, OperationError>,
    /// Where it is stored, if readers do not see it yet.
    stored: Option<(ShardId, Sequence)>,
}

/// A read on its way to a connection that makes it.
pub type DueRead = (Read, Instant);

/// What a publishing connection hands on.
#[derive(Clone)]
pub struct PublisherOutputs {
    /// `None` when the workload has no reads.
    pub reads: Option<mpsc::Sender<DueRead>>,
    pub samples: Option<mpsc::Sender<Sample>>,
}

impl From<NotStored> for OperationError {
    fn from(why: NotStored) -> Self {
        Self::new(why.kind, why.detail)
    }
}

/// Publishes until there are no more operations and all are answered, with at most `in_flight` messages
/// unanswered.
pub async fn publish(
    publisher: BulkPublisher,
    via: Via,
    feed: Arc<Feed>,
    tally: Arc<Tally>,
    in_flight: usize,
    outputs: PublisherOutputs,
) {
    let mut answers: FuturesUnordered<BoxFuture<'static, Answered>> = FuturesUnordered::new();
    let mut over = false;
    // At most one read waits while all readers are busy: the ratio is kept, and the slower side sets the
    // pace.
    let mut waiting_read: Option<DueRead> = None;
    while !over || !answers.is_empty() || waiting_read.is_some() {
        tokio::select! {
            // Answers first: their times are being measured.
            biased;
            Some(answer) = answers.next(), if !answers.is_empty() => {
                let Answered { intended, started, jobs, outcome, stored } = answer;
                let ended = Instant::now();
                match (&outputs.samples, stored) {
                    // It is a sample: messages are left out while every watcher is busy.
                    (Some(samples), Some((shard, sequence))) => {
                        drop(samples.try_send(Sample { intended, shard, sequence }));
                    }
                    // The write service answers once readers see it.
                    (Some(_), None) if outcome.is_ok() => tally.visible(intended, ended),
                    _ => {}
                }
                tally.write(Times { intended, started, ended }, jobs, outcome);
            }
            place = place(outputs.reads.as_ref()), if waiting_read.is_some() => {
                if let (Some(place), Some(read)) = (place, waiting_read.take()) {
                    place.send(read);
                }
            }
            due = feed.next(), if !over && waiting_read.is_none() && answers.len() < in_flight => match due {
                None => over = true,
                Some(Due { operation: Operation::Read(read), intended }) => {
                    waiting_read = Some((read, intended));
                }
                Some(Due { operation: Operation::Write(message), intended }) => {
                    let started = Instant::now();
                    let (shard, jobs) = (message.shard, message.jobs);
                    if via == Via::Service {
                        let publisher = publisher.clone();
                        answers.push(Box::pin(async move {
                            let outcome = match publisher.ask(shard, message.body).await {
                                Ok((status, body)) => written(status, body, jobs),
                                Err(why) => Err(why.into()),
                            };
                            Answered { intended, started, jobs, outcome, stored: None }
                        }));
                        continue;
                    }
                    match publisher.send(shard, message.body).await {
                        Ok(answer) => {
                            answers.push(Box::pin(async move {
                                let stored = answer.await;
                                let of_all = |_: &Sequence| Stored { jobs: jobs.into(), ..Stored::default() };
                                let outcome = stored.as_ref().map(of_all).map_err(|why| why.clone().into());
                                let stored = stored.ok().map(|sequence| (shard, sequence));
                                Answered { intended, started, jobs, outcome, stored }
                            }));
                        }
                        Err(why) => {
                            let times = Times { intended, started, ended: Instant::now() };
                            tally.write(times, jobs, Err(why.into()));
                        }
                    }
                }
            },
        }
    }
}

/// A place for a read; `None` if nobody makes any.
async fn place(reads: Option<&mpsc::Sender<DueRead>>) -> Option<mpsc::Permit<'_, DueRead>> {
    reads?.reserve().await.ok()
}

/// Makes reads until no publisher is left to ask for more.
pub async fn read(
    service: Service,
    reads: Arc<tokio::sync::Mutex<mpsc::Receiver<DueRead>>>,
    tally: Arc<Tally>,
) {
    let mut connection = Connection::new(service);
    loop {
        // The lock is held while waiting: whoever holds it gets the next one, and the others wait for the
        // lock.
        let next = reads.lock().await.recv().await;
        let Some((read, intended)) = next else { return };
        if let Some(pause) = connection.read(&read, intended, &tally).await {
            tokio::time::sleep(pause).await;
        }
    }
}

/// Measures when readers see the sampled messages, until no publisher is left.
pub async fn watch(
    service: Service,
    samples: Arc<tokio::sync::Mutex<mpsc::Receiver<Sample>>>,
    tally: Arc<Tally>,
) {
    let mut connection = Connection::new(service);
    loop {
        let next = samples.lock().await.recv().await;
        let Some(Sample { intended, shard, sequence }) = next else { return };
        match connection.until_visible(shard, sequence).await {
            Ok(()) => tally.visible(intended, Instant::now()),
            Err(error) => {
                let pause = error.pause;
                tally.error(OperationError { kind: format!("visible_{}", error.kind), ..error });
                if let Some(pause) = pause {
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

//! The embedded queue: requests of this process, in memory, until the writer has committed them.
//!
//! Knows: how requests become messages with sequences. Must not know: what a job does. Requests that arrive
//! while the writer commits wait here and share the next batch: group commit.

mod clock;
mod delivery;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::job::{Job, Targets};
use crate::queue::embedded::clock::MessageClock;
use crate::queue::embedded::delivery::Delivery;
use crate::queue::embedded::waiting::{NotTaken, Waiting};
use crate::queue::error::NotPublished;
use crate::queue::gathering::Gathering;
use crate::queue::message_order::MessageOrder;
use crate::state::Applied;
use crate::traces::{Arrived, current};
use crate::types::{BoardName, Score, Sequence};
use crate::writer::{
    BatchLimits, CommitFailed, Fetched, JobSource, Message, MessageOutcome, Outcome, OutcomeDetail,
    OutcomeSender, Payload,
};

/// Requests that may wait for one shard's writer; beyond that, publishing is refused as overload.
const WAITING_REQUESTS: usize = 8_192;

/// A write that becomes one message.
struct QueuedWrite {
    payload: Payload,
    bytes: usize,
    answer: oneshot::Sender<Outcome>,
    /// How the answer gets there; `None` if it is given straight away.
    delivery: Option<Delivery>,
    order: MessageOrder,
    /// What the client wants to be told.
    detail: OutcomeDetail,
    traced: Option<Box<Arrived>>,
}

impl QueuedWrite {
    /// The write, unless an earlier message of the same HTTP request failed. Then the client is answered that
    /// it was not applied.
    fn unless_failed(self) -> Option<Self> {
        if !self.order.has_failed() {
            return Some(self);
        }
        let reason = "this job was not applied, because an earlier job of the request could not be committed"
            .to_owned();
        // The client may have disconnected.
        let _ = self.answer.send(Err(CommitFailed { reason }));
        None
    }

    fn answer_to(
        answer: oneshot::Sender<Outcome>,
        delivery: Option<Delivery>,
        order: MessageOrder,
    ) -> OutcomeSender {
        if delivery.is_none() && !order.is_one_of_several() {
            return answer.into();
        }
        OutcomeSender::by_callback(move |outcome| {
            if outcome.is_err() {
                // The writer reports a failed commit before it fetches the next message.
                order.fail();
            }
            match delivery {
                Some(delivery) => delivery.send(answer, outcome),
                None => answer.send(outcome),
            }
        })
    }
}

/// The publishing end; clone it freely. The queue ends with the last one.
#[derive(Clone)]
pub struct EmbeddedPublisher {
    requests: Arc<PublishingEnds>,
}

/// All publishing ends of a queue.
struct PublishingEnds(Arc<Waiting<QueuedWrite>>);

impl Drop for PublishingEnds {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The reading end, for the shard's writer.
pub struct EmbeddedSource {
    requests: Arc<Waiting<QueuedWrite>>,
    /// What was taken from there and not handed out yet, because a batch was full.
    taken: VecDeque<QueuedWrite>,
    /// Its length when `requests` was last told of it.
    kept: usize,
    gathering: Gathering,
    last: Sequence,
    clock: MessageClock,
}

impl Drop for EmbeddedSource {
    /// Nobody is left waiting once the writer has gone.
    fn drop(&mut self) {
        self.requests.close_and_drop();
    }
}

/// A queue for one shard.
pub fn channel() -> (EmbeddedPublisher, EmbeddedSource) {
    let requests = Arc::new(Waiting::new(WAITING_REQUESTS));
    let source = EmbeddedSource {
        requests: Arc::clone(&requests),
        taken: VecDeque::new(),
        kept: 0,
        gathering: Gathering::default(),
        last: Sequence(0),
        clock: MessageClock::new(),
    };
    (EmbeddedPublisher { requests: Arc::new(PublishingEnds(requests)) }, source)
}

impl EmbeddedPublisher {
    /// Publishes jobs of this shard as one message, and waits for its synced commit.
    ///
    /// # Errors
    /// When the queue is full, the shard is closing, or the commit failed.
    pub async fn publish_jobs(&self, jobs: Vec<Job>) -> Result<MessageOutcome, NotPublished> {
        self.publish_in_order(jobs, MessageOrder::default(), OutcomeDetail::Rankings).await
    }

    /// The same for one of several messages of an HTTP request. Once one of them failed, the later ones are
    /// not applied.
    ///
    /// # Arguments
    /// `detail`: what the client wants to be told of the jobs.
    pub async fn publish_in_order(
        &self,
        jobs: Vec<Job>,
        order: MessageOrder,
        detail: OutcomeDetail,
    ) -> Result<MessageOutcome, NotPublished> {
        let bytes = jobs.iter().map(job_bytes).sum();
        self.send(Payload::Jobs(jobs.into_iter().map(Ok).collect()), bytes, order, detail).await
    }

    /// Publishes anything as one message, and waits for its synced commit.
    pub async fn publish(&self, payload: Payload, bytes: usize) -> Result<MessageOutcome, NotPublished> {
        self.send(payload, bytes, MessageOrder::default(), OutcomeDetail::Rankings).await
    }

    async fn send(
        &self,
        payload: Payload,
        bytes: usize,
        order: MessageOrder,
        detail: OutcomeDetail,
    ) -> Result<MessageOutcome, NotPublished> {
        let (answer, answered) = oneshot::channel();
        let traced = current().and_then(|caller| Arrived::of(vec![caller]));
        let delivery = Delivery::here();
        let request = QueuedWrite { payload, bytes, answer, delivery, order, detail, traced };
        self.requests.0.push(request).map_err(|error| match error {
            NotTaken::Full => NotPublished::Overloaded,
            NotTaken::Closed => NotPublished::Unavailable("the node is shutting down".to_owned()),
        })?;
        let closed = || {
            NotPublished::Unavailable(
                "the shard's queue was closed before the write was committed".to_owned(),
            )
        };
        Ok(answered.await.map_err(|_| closed())??)
    }
}

impl EmbeddedPublisher {
    /// Ends the queue: the writer drains what was sent before, and finishes.
    pub fn close(&self) {
        self.requests.0.close();
    }
}

/// Roughly what a job takes in memory. Boards and metadata are most of a large one.
fn job_bytes(job: &Job) -> usize {
    let boards = match &job.targets {
        Targets::Boards(boards) => {
            let own = |(_, score): &(BoardName, Option<Score>)| score.as_ref().map_or(0, Score::heap_bytes);
            size_of_val::<[_]>(boards) + boards.iter().map(own).sum::<usize>()
        }
        Targets::EveryBoard => 0,
        Targets::Profile(profile) => profile.0.len(),
    };
    let metadata = job.meta.as_ref().map_or(0, |metadata| metadata.0.len());
    size_of::<Job>() + job.member.as_bytes().len() + boards + metadata
}

impl EmbeddedSource {
    /// Waits up to `wait` for requests, and a moment for those who were just answered, who mostly come back
    /// at once. Takes what is there then, and returns whether the queue has ended.
    fn gather(&mut self, wait: Duration) -> bool {
        let now = Instant::now();
        if !self.taken.is_empty() {
            self.requests.take(&mut self.taken);
            return false;
        }
        let (wanted, until) = self.gathering.begin(now);
        let mut arrived = self.requests.wait_for(wanted, until.min(now + wait));
        let found = arrived.items;
        if arrived.items == 0 && !arrived.is_closed {
            arrived = self.requests.wait_for(1, now + wait);
        }
        self.requests.take(&mut self.taken);
        if !self.taken.is_empty() {
            self.gathering.end(wanted, found, self.taken.len(), Instant::now());
        }
        arrived.is_closed && self.taken.is_empty()
    }

    fn message(&mut self, request: QueuedWrite) -> Message {
        self.last = self.last.next();
        let answer = QueuedWrite::answer_to(request.answer, request.delivery, request.order);
        Message {
            sequence: self.last,
            timestamp: self.clock.next(),
            hash: 0,
            payload: request.payload,
            bytes: request.bytes,
            traced: request.traced,
            answer: Some(answer.telling(request.detail)),
        }
    }
}

impl JobSource for EmbeddedSource {
    fn resume(&mut self, applied: Applied, stream: &str) -> Result<(), String> {
        if !stream.is_empty() {
            return Err(format!(
                "the data directory was filled from the stream {stream}; start with --nats, or give another directory with --data-dir"
            ));
        }
        self.last = applied.sequence;
        self.clock.resume(applied.timestamp);
        Ok(())
    }

    fn fetch(&mut self, limits: BatchLimits, wait: Duration) -> Fetched {
        if self.gather(wait) {
            return Fetched::Ended;
        }
        let (mut jobs, mut bytes) = (0, 0);
        let mut batch = Vec::with_capacity(self.taken.len());
        while let Some(request) = self.taken.pop_front() {
            let Some(request) = request.unless_failed() else { continue };
            jobs += request.payload.cost();
            bytes += request.bytes;
            if !batch.is_empty() && (jobs > limits.jobs || bytes > limits.bytes) {
                self.taken.push_front(request);
                break;
            }
            batch.push(self.message(request));
        }
        if self.kept != self.taken.len() {
            self.kept = self.taken.len();
            self.requests.keep(self.kept);
        }
        if batch.is_empty() { Fetched::Nothing } else { Fetched::Batch(batch) }
    }

    /// All waiting clients share one sync, so a batch takes all waiting writes, up to 16 MiB and 10,000 jobs.
    fn limits(&self) -> BatchLimits {
        BatchLimits { jobs: 10_000, bytes: 16 << 20 }
    }

    fn needs_sync(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;

//! The publishing end of a shard's queue, whichever it is: the embedded queue (`queue::embedded`) or the
//! shard's stream (`queue::nats::publish::stream_publisher`).

use crate::job::Job;
use crate::queue::embedded::EmbeddedPublisher;
use crate::queue::error::NotPublished;
use crate::queue::message_order::MessageOrder;
use crate::queue::nats::StreamPublisher;
use crate::types::{Sequence, ShardId};
use crate::writer::{MessageOutcome, OutcomeDetail, Payload};

/// A shard's publishing end; clone it freely.
#[derive(Clone)]
pub enum Publisher {
    Embedded(EmbeddedPublisher),
    Stream(Box<StreamPublisher>),
}

impl Publisher {
    /// Whether the queue stores a message before the shard applies it, so that a write may return earlier.
    pub fn stores_before_apply(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Publishes jobs of this shard as one message, and waits until it is applied.
    ///
    /// # Arguments
    /// - `order`: the messages of the request that go before this one. Without any, this one is published at
    ///   the first poll. The embedded queue takes it at the first poll in any case.
    /// - `detail`: what the client wants to be told of the jobs.
    pub async fn publish_jobs(
        &self,
        jobs: Vec<Job>,
        mut order: MessageOrder,
        detail: OutcomeDetail,
    ) -> Result<MessageOutcome, NotPublished> {
        match self {
            Self::Embedded(publisher) => publisher.publish_in_order(jobs, order, detail).await,
            Self::Stream(publisher) => {
                order.wait().await?;
                publisher.publish_jobs(&jobs, order, detail).await
            }
        }
    }

    /// Publishes jobs of this shard as one message, and waits until it is safe in the queue.
    ///
    /// # Arguments
    /// `order`: as for [`Publisher::publish_jobs`].
    pub async fn store_jobs(
        &self,
        jobs: Vec<Job>,
        mut order: MessageOrder,
    ) -> Result<Sequence, NotPublished> {
        match self {
            Self::Embedded(_) => {
                let published = self.publish_jobs(jobs, order, OutcomeDetail::Changed).await;
                published.map(|outcome| outcome.sequence)
            }
            Self::Stream(publisher) => {
                order.wait().await?;
                publisher.store_jobs(&jobs, order).await
            }
        }
    }

    /// Publishes a board's definition or drop, and waits until it is safe in the queue.
    pub async fn store_command(&self, payload: Payload, bytes: usize) -> Result<Sequence, NotPublished> {
        match self {
            Self::Embedded(publisher) => {
                publisher.publish(payload, bytes).await.map(|outcome| outcome.sequence)
            }
            Self::Stream(publisher) => publisher.store_command(&payload).await,
        }
    }

    /// Publishes a command, and waits until it is applied.
    pub async fn apply_command(
        &self,
        payload: Payload,
        bytes: usize,
    ) -> Result<MessageOutcome, NotPublished> {
        match self {
            Self::Embedded(publisher) => publisher.publish(payload, bytes).await,
            Self::Stream(publisher) => publisher.publish_command(&payload).await,
        }
    }

    /// Ends the queue for this node. Its writer finishes the batch that it has begun, and ends.
    pub fn close(&self) {
        match self {
            Self::Embedded(publisher) => publisher.close(),
            Self::Stream(publisher) => publisher.close(),
        }
    }
}

/// One publisher for each shard, by number.
pub struct Publishers(Vec<Publisher>);

impl Publishers {
    /// # Arguments
    /// `publishers`: one for each shard, in the order of their numbers.
    pub fn new(publishers: Vec<Publisher>) -> Self {
        Self(publishers)
    }

    pub fn of(&self, shard: ShardId) -> &Publisher {
        self.0.get(shard.index()).expect("every shard of the node has a publisher")
    }

    /// Ends the queues of all shards for this node; see [`Publisher::close`].
    pub fn close(&self) {
        for publisher in &self.0 {
            publisher.close();
        }
    }
}

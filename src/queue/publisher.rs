//! Where writes go: straight to the shard's writer, or into its stream.

use crate::job::Job;
use crate::queue::MessageOrder;
use crate::queue::local::LocalPublisher;
use crate::queue::nats::StreamPublisher;
use crate::types::Sequence;
use crate::writer::{CommitFailed, MessageOutcome, Payload};

/// Why a request was not taken, or not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotPublished {
    #[error("too many writes are waiting for this shard; try again in a moment")]
    Overloaded,
    #[error("this shard takes no writes now: {0}")]
    Unavailable(String),
    #[error("this shard takes no writes now: {0}")]
    Full(String),
    #[error("{0}")]
    TooLarge(String),
    /// It may have been taken, and may not.
    #[error("{0}; a versioned job may safely be sent again")]
    Unknown(String),
    #[error(transparent)]
    CommitFailed(#[from] CommitFailed),
}

/// A shard's publishing end; clone it freely.
#[derive(Clone)]
pub enum Publisher {
    Local(LocalPublisher),
    Stream(Box<StreamPublisher>),
}

impl Publisher {
    /// Whether a message is stored before it is applied, so that a write need not wait for that.
    #[must_use]
    pub fn stores(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Publishes jobs of this shard as one message, and waits until it is applied.
    ///
    /// # Arguments
    /// `order`: which messages of the request go before it. It is published at the first poll if none do, and to the embedded
    /// queue in any case.
    ///
    /// # Errors
    /// See [`NotPublished`].
    pub async fn publish_jobs(
        &self,
        jobs: Vec<Job>,
        mut order: MessageOrder,
    ) -> Result<MessageOutcome, NotPublished> {
        match self {
            Self::Local(publisher) => publisher.publish_in_order(jobs, order).await,
            Self::Stream(publisher) => {
                order.wait().await?;
                publisher.publish_jobs(&jobs, order).await
            }
        }
    }

    /// Publishes jobs of this shard as one message, and waits until it is safe.
    ///
    /// # Arguments
    /// `order`: as for [`Publisher::publish_jobs`].
    ///
    /// # Errors
    /// See [`NotPublished`].
    pub async fn store_jobs(
        &self,
        jobs: Vec<Job>,
        mut order: MessageOrder,
    ) -> Result<Sequence, NotPublished> {
        match self {
            Self::Local(_) => self.publish_jobs(jobs, order).await.map(|outcome| outcome.sequence),
            Self::Stream(publisher) => {
                order.wait().await?;
                publisher.store_jobs(&jobs, order).await
            }
        }
    }

    /// Publishes a board's definition or drop, and waits until it is safe.
    ///
    /// # Errors
    /// See [`NotPublished`].
    pub async fn store_command(&self, payload: Payload, bytes: usize) -> Result<Sequence, NotPublished> {
        match self {
            Self::Local(publisher) => publisher.publish(payload, bytes).await.map(|outcome| outcome.sequence),
            Self::Stream(publisher) => publisher.store_command(&payload).await,
        }
    }

    /// Publishes a command, and waits until it is applied.
    ///
    /// # Errors
    /// See [`NotPublished`].
    pub async fn apply_command(
        &self,
        payload: Payload,
        bytes: usize,
    ) -> Result<MessageOutcome, NotPublished> {
        match self {
            Self::Local(publisher) => publisher.publish(payload, bytes).await,
            Self::Stream(publisher) => publisher.publish_command(&payload).await,
        }
    }

    /// Ends the queue for this node: its writer finishes what it has begun, and ends.
    pub async fn close(&self) {
        match self {
            Self::Local(publisher) => publisher.close().await,
            Self::Stream(publisher) => publisher.close(),
        }
    }
}

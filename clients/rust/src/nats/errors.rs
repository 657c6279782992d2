//! What can go wrong with messages.

use crate::tokens::Token;

/// A message was not acknowledged by NATS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
#[non_exhaustive]
pub struct PublishError {
    /// What happened, for people.
    pub detail: String,
    /// Its `Nats-Msg-Id`: publish the same jobs under the same id to go on.
    pub message_id: String,
    /// False only if the message was refused each time, and so is not stored.
    pub may_be_stored: bool,
}

/// Some messages of a `publish_many` were not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} messages: {first}", .others.len() + 1)]
#[non_exhaustive]
pub struct PublishManyError {
    /// The first message that failed.
    pub first: PublishError,
    /// The others that failed.
    pub others: Vec<PublishError>,
    /// Names the messages that did not fail.
    pub token: Option<Token>,
}

impl PublishManyError {
    /// `None` of none.
    pub(super) fn of(errors: Vec<PublishError>) -> Option<Self> {
        let mut errors = errors.into_iter();
        Some(Self { first: errors.next()?, others: errors.collect(), token: None })
    }

    pub(super) fn with(self, token: Option<Token>) -> Self {
        Self { token, ..self }
    }

    /// All messages that failed.
    pub fn errors(&self) -> impl Iterator<Item = &PublishError> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Whether one of them may be stored.
    #[must_use]
    pub fn may_be_stored(&self) -> bool {
        self.errors().any(|error| error.may_be_stored)
    }
}

//! What can go wrong with messages.

use crate::tokens::Token;

/// A message was not acknowledged by NATS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
#[non_exhaustive]
pub struct PublishError {
    /// What happened, for people.
    pub detail: String,
    /// The `Nats-Msg-Id` that follows from the one you gave: publish the same jobs under the same id to go on.
    /// `None` if you gave none. Then the jobs may have shared a message with others, and whether they may be
    /// published again is for their `version` to say.
    pub message_id: Option<String>,
    /// False only if the message was refused each time, or not sent, and so is not stored.
    pub may_be_stored: bool,
}

/// Some messages of a `publish_many` were not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} messages: {first}", .others.len() + 1)]
#[non_exhaustive]
pub struct PublishManyError {
    /// The one that you gave: publish the same jobs in the same order under it to go on. `None` if you gave none.
    pub message_id: Option<String>,
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
        Some(Self { message_id: None, first: errors.next()?, others: errors.collect(), token: None })
    }

    pub(super) fn with(self, message_id: Option<String>, token: Option<Token>) -> Self {
        Self { message_id, token, ..self }
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

//! The service that rows are sent to, as all connections share it.

use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;
use ureq::http::StatusCode;

use crate::cli::client::{Client, Failed, RETRY_FOR, describe_refusal};
use crate::cli::import::ImportError;
use crate::cli::import::send::pending::Pending;
use crate::cli::import::tally::Tally;

pub struct Service<'a> {
    pub client: Client,
    /// `None`: not at all before the service has answered once, and for [`RETRY_FOR`] from then on.
    retry_for: Option<Duration>,
    pub tally: &'a Tally,
    /// Rows that were sent and have no outcome yet.
    pub pending: Pending,
    /// Whether jobs make boards, once it was asked for.
    makes_boards: OnceLock<Option<bool>>,
}

impl<'a> Service<'a> {
    pub fn new(client: Client, retry_for: Option<Duration>, tally: &'a Tally) -> Self {
        Self { client, retry_for, tally, pending: Pending::default(), makes_boards: OnceLock::new() }
    }

    /// Asks whether there is a service, before rows are sent.
    ///
    /// # Errors
    /// When what is there is none; or does not answer, and is not waited for.
    pub fn greet(&self) -> Result<(), ImportError> {
        let to = || self.client.base().to_owned();
        match self.client.greet() {
            // Where nobody is, the first rows are waited with, or say the same.
            Ok(()) | Err(Failed::NotReached(_)) => Ok(()),
            Err(Failed::Unknown(_)) if self.retry_for.is_some() => Ok(()),
            Err(Failed::Unknown(reason)) => Err(ImportError::NotThere { to: to(), reason }),
            Err(Failed::Permanent(reason) | Failed::TooLong(reason)) => {
                Err(ImportError::Unusable { to: to(), reason })
            }
        }
    }

    /// Asks whether jobs are taken from whoever asks, by a request of none.
    ///
    /// # Errors
    /// When they are not.
    pub fn ask_leave(&self) -> Result<(), ImportError> {
        let refused = self.client.post(&format!("{}/v1/jobs", self.client.base()), "[]");
        let Ok(refused) = refused else { return Ok(()) };
        if !matches!(refused.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Ok(());
        }
        let reason = describe_refusal(refused.status, &refused.body);
        Err(ImportError::Unusable { to: self.client.base().to_owned(), reason })
    }

    /// Whether a job for a board that is not there makes it. `None`: the service does not tell.
    pub fn makes_boards(&self) -> Option<bool> {
        *self.makes_boards.get_or_init(|| {
            let answer = self.client.get(&format!("{}/v1/status", self.client.base())).ok()?;
            let status: Value = serde_json::from_slice(&answer.body).ok()?;
            status.get("auto_create")?.as_bool()
        })
    }

    /// How long to go on trying; `None` where there may be no service at all.
    pub fn retry_for(&self) -> Option<Duration> {
        let once_there = self.client.has_answered().then_some(RETRY_FOR);
        self.retry_for.or(once_there)
    }

    pub fn note_answered(&self) {
        self.client.note_answered();
    }

    pub fn not_understood(&self, reason: String) -> ImportError {
        ImportError::Answer { to: self.client.base().to_owned(), reason }
    }
}

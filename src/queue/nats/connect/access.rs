//! Access to a NATS system: where its servers are, and who this process is to them. Safe to log: secrets are
//! not shown.

use async_nats::ConnectOptions;
use thiserror::Error;

use crate::queue::nats::connect::credentials::{Login, NatsCredentials, NatsCredentialsError, Secret};
use crate::queue::nats::connect::servers::{Servers, ServersError};

/// Everything that a connection needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsAccess {
    pub servers: Servers,
    pub credentials: NatsCredentials,
}

/// Why no connection could be made this way.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NatsAccessError {
    #[error(transparent)]
    Servers(#[from] ServersError),
    #[error(transparent)]
    Credentials(#[from] NatsCredentialsError),
    #[error(
        "the URL of --nats holds credentials, and other settings give credentials too; give them in one place only"
    )]
    Twice,
}

impl NatsAccess {
    /// From URLs as an operator writes them, and credentials given beside them, whose files are read once.
    ///
    /// # Errors
    /// When a URL is malformed, credentials are in both places, or a file cannot be used.
    pub fn new(urls: &Secret, mut credentials: NatsCredentials) -> Result<Self, NatsAccessError> {
        let (servers, login) = Servers::read(urls.text())?;
        if let Some(login) = login {
            if credentials.login != Login::Nobody {
                return Err(NatsAccessError::Twice);
            }
            credentials.login = login;
        }
        credentials.check()?;
        Ok(Self { servers, credentials })
    }

    /// Whether there are credentials for servers that ask for some.
    #[must_use]
    pub fn has_login(&self) -> bool {
        self.credentials.login != Login::Nobody
    }

    /// Options for a connection to [`NatsAccess::servers`], with nothing else set.
    #[must_use]
    pub fn options(&self) -> ConnectOptions {
        self.credentials.options()
    }
}

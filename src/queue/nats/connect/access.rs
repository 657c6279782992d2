//! Access to a NATS system: where it is, and who this process is there. Safe to show: secrets are not.

use async_nats::ConnectOptions;
use thiserror::Error;

use crate::queue::nats::connect::credentials::{Credentials, CredentialsError, Login, Secret};
use crate::queue::nats::connect::servers::{Servers, ServersError};

/// All that is needed to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    pub servers: Servers,
    pub credentials: Credentials,
}

/// Why nobody could connect this way.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AccessError {
    #[error(transparent)]
    Servers(#[from] ServersError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("the URL of --nats holds credentials, and others are given beside it; give them in one place")]
    Twice,
}

impl Access {
    /// From URLs as an operator writes them, and the credentials given beside them, whose files are read once.
    ///
    /// # Errors
    /// When a URL is none, credentials are in both, or a file is not what it should be.
    pub fn new(urls: &Secret, mut credentials: Credentials) -> Result<Self, AccessError> {
        let (servers, login) = Servers::read(urls.text())?;
        if let Some(login) = login {
            if credentials.login != Login::Nobody {
                return Err(AccessError::Twice);
            }
            credentials.login = login;
        }
        credentials.check()?;
        Ok(Self { servers, credentials })
    }

    /// Options for a connection to [`Access::servers`], with nothing else decided.
    #[must_use]
    pub fn options(&self) -> ConnectOptions {
        self.credentials.options()
    }
}

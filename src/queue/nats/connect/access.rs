//! Access to a NATS system: where its servers are, who this process is to them, and by which subjects answers
//! come to it. Safe to log: secrets are not shown.

use async_nats::ConnectOptions;
use thiserror::Error;

use crate::queue::nats::connect::credentials::{Login, NatsCredentials, NatsCredentialsError, Secret};
use crate::queue::nats::connect::inbox::InboxPrefix;
use crate::queue::nats::connect::servers::{Servers, ServersError};

/// Everything that a connection needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsAccess {
    pub servers: Servers,
    pub credentials: NatsCredentials,
    /// What the subjects begin with that answers come by.
    pub inbox: InboxPrefix,
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
    #[error(
        "--nats-inbox-prefix {inbox} is among the subjects of --prefix {prefix}, to which nodes send no answers; give another, such as _INBOX.{prefix}"
    )]
    InboxWithinPrefix { inbox: InboxPrefix, prefix: String },
}

impl NatsAccess {
    /// From URLs as an operator writes them, and credentials given beside them, whose files are read once.
    ///
    /// # Errors
    /// When a URL is malformed, credentials are in both places, a file cannot be used, or no answers are sent
    /// to this inbox.
    ///
    /// # Arguments
    /// `inbox`: if it is not to follow from the login. `prefix`: what the names of the service begin with.
    pub fn new(
        urls: &Secret,
        mut credentials: NatsCredentials,
        inbox: Option<InboxPrefix>,
        prefix: &str,
    ) -> Result<Self, NatsAccessError> {
        let (servers, login) = Servers::read(urls.text())?;
        if let Some(login) = login {
            if credentials.login != Login::Nobody {
                return Err(NatsAccessError::Twice);
            }
            credentials.login = login;
        }
        credentials.check()?;
        let inbox = inbox.unwrap_or_else(|| InboxPrefix::of(&credentials.login, prefix));
        if inbox.is_within(prefix) {
            return Err(NatsAccessError::InboxWithinPrefix { inbox, prefix: prefix.to_owned() });
        }
        Ok(Self { servers, credentials, inbox })
    }

    /// Whether there are credentials for servers that ask for some.
    pub fn has_login(&self) -> bool {
        self.credentials.login != Login::Nobody
    }

    /// Options for a connection to [`NatsAccess::servers`], with nothing else set.
    pub fn options(&self) -> ConnectOptions {
        self.credentials.options().custom_inbox_prefix(&self.inbox)
    }
}

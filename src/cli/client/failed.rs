//! Why a request has no answer, and so whether it may have been applied.

use ureq::Timeout;

use crate::cli::client::agent::is_tls_refused;

/// Why there is no answer.
#[derive(Debug)]
pub enum Failed {
    /// Nobody took the request, so it was not applied.
    NotReached(String),
    /// The connection broke after the request may have left: it may have been applied.
    Unknown(String),
    /// The answer is longer than any that a service gives; the request may have been applied.
    TooLong(String),
    /// Trying again would not help.
    Permanent(String),
}

impl Failed {
    /// In words.
    pub fn reason(&self) -> &str {
        match self {
            Self::NotReached(reason)
            | Self::Unknown(reason)
            | Self::TooLong(reason)
            | Self::Permanent(reason) => reason,
        }
    }

    /// What a failed request says about whether it was received.
    pub fn of_request(error: ureq::Error) -> Self {
        let reason = error.to_string();
        match error {
            error if is_tls_refused(&error) => Self::Permanent(reason),
            ureq::Error::Io(io) if is_not_connected(&io) => Self::NotReached(reason),
            ureq::Error::ConnectionFailed | ureq::Error::Timeout(Timeout::Connect | Timeout::Resolve) => {
                Self::NotReached(reason)
            }
            ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => Self::Unknown(reason),
            // A host that has no address, a URL that is none.
            _ => Self::Permanent(reason),
        }
    }

    pub fn of_body(error: ureq::Error) -> Self {
        match error {
            ureq::Error::BodyExceedsLimit(_) => Self::TooLong(error.to_string()),
            error => Self::Unknown(error.to_string()),
        }
    }
}

/// Whether no connection came to be, so that nothing was sent.
fn is_not_connected(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    // A name without an address has no kind of its own; the words are the standard library's.
    matches!(error.kind(), AddrNotAvailable | ConnectionRefused | HostUnreachable | NetworkUnreachable)
        || error.to_string().starts_with("failed to lookup address information")
}

//! The time limits of clients.

use std::time::Duration;

/// How long a client may keep its connection waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// To set up TLS; to send a request's head, from the connection's beginning or from the head's first
    /// byte.
    pub header: Duration,
    /// Between an answer and the next request's first byte.
    pub idle: Duration,
    /// To read an answer. A long answer gets besides the time that it takes at 16 KiB a second.
    pub write: Duration,
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        // Many clients and proxies close idle connections after 60 seconds. They should close first: when the
        // server does, a request may be on its way at that moment.
        Self {
            header: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
        }
    }
}

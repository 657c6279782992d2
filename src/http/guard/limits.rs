//! The limits on requests over HTTP that an operator may change. What all requests take together is limited
//! by `operations::admission`.

use std::time::Duration;

use crate::http::guard::watchers::WatcherLimits;

/// The limits on requests over HTTP that an operator may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Clients that watch boards at a time. Further ones are refused with 503.
    pub watchers: WatcherLimits,
    /// Messages that a shard may be behind its queue and still be called ready.
    pub lag: u64,
    /// How long a body may take to arrive.
    pub body: Duration,
    /// How long a body may pause.
    pub body_stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // At a mebibyte, 30 seconds are 35 kB/s.
        Self {
            watchers: WatcherLimits::default(),
            lag: 10_000,
            body: Duration::from_secs(30),
            body_stall: Duration::from_secs(10),
        }
    }
}

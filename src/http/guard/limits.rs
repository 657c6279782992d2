//! The limits on requests that an operator may change.

use std::time::Duration;

use crate::http::guard::watchers::WatcherLimits;

/// The limits on requests that an operator may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in progress at a time, without probes and metrics. Further requests are shed with 503.
    pub requests_in_flight: usize,
    /// Bytes that the heads of all requests may have together, without the first 8 KiB of each. A connection
    /// whose head would exceed it is closed.
    pub head_bytes_in_flight: usize,
    /// Bytes that the bodies of all requests in progress may have together. A request that would exceed it is
    /// shed.
    pub body_bytes_in_flight: usize,
    /// Bytes that the answers of all requests in progress may have together, until they are written. A
    /// request whose answer would exceed it is shed; a write is shed before it is published.
    pub answer_bytes_in_flight: usize,
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
        // A quarter of the connections, each of which has one request at a time: a longer queue only makes
        // all wait. 128 bodies of the largest size at a time keep any disk busy. At a mebibyte, 30 seconds
        // are 35 kB/s.
        Self {
            requests_in_flight: 1_024,
            // 273 of the longest at a time. Buffers are up to twice as long as what is in them.
            head_bytes_in_flight: 32 << 20,
            body_bytes_in_flight: 128 << 20,
            // A page of 1,000 entries with metadata takes 1.3 MB, a request of 4,000 boards 7 MB at most.
            answer_bytes_in_flight: 128 << 20,
            watchers: WatcherLimits::default(),
            lag: 10_000,
            body: Duration::from_secs(30),
            body_stall: Duration::from_secs(10),
        }
    }
}

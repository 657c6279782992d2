//! Counts the connections that the server ends or turns away.

use crate::metrics::HTTP_CONNECTIONS_ENDED_TOTAL;

/// Why connections are ended or turned away, as metrics name it.
const REASONS: [&str; 8] =
    ["handshake", "idle", "left", "long_heads", "over_limit", "refused", "slow_header", "slow_reader"];

/// Registers the counters, so that rates have a beginning.
pub fn register_ended() {
    for reason in REASONS {
        metrics::counter!(HTTP_CONNECTIONS_ENDED_TOTAL, "reason" => reason).increment(0);
    }
}

/// Counts a connection that is ended or turned away for one of [`REASONS`].
pub fn count_ended(reason: &'static str) {
    metrics::counter!(HTTP_CONNECTIONS_ENDED_TOTAL, "reason" => reason).increment(1);
}

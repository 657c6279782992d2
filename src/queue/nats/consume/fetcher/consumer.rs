//! The consumer that a session reads with.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};

/// The server forgets a consumer that nobody has pulled from for so long.
const INACTIVE_THRESHOLD: Duration = Duration::from_secs(60);

/// A consumer without a name that starts at a sequence of the stream and acknowledges nothing.
pub fn consumer(start_sequence: u64) -> pull::Config {
    pull::Config {
        description: Some("ranktree: the writer of this shard".to_owned()),
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
        ack_policy: AckPolicy::None,
        inactive_threshold: INACTIVE_THRESHOLD,
        memory_storage: true,
        num_replicas: 1,
        ..pull::Config::default()
    }
}

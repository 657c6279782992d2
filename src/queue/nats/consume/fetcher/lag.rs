//! Whether the consumer's server keeps up with the stream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::queue::nats::connect::connection::Connection;
use crate::queue::nats::consume::shard_stream::ShardStream;

/// A consumer that has brought nothing for so long is compared with the stream's end. After two such looks in
/// a row, with nothing brought between them, the session ends.
const LAG_CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// Returns when the consumer delivers nothing although its stream has later messages: the consumer's server
/// lags behind the leader, or is cut off from it.
///
/// # Arguments
/// `tip`: the stream's sequence of the last message that was taken.
pub async fn lag(shared: &ShardStream, connection: &Connection, tip: &AtomicU64) -> String {
    let name = shared.names.jobs_stream(shared.shard);
    let mut was_behind_at = None;
    loop {
        let at = tip.load(Ordering::Relaxed);
        tokio::time::sleep(LAG_CHECK_INTERVAL).await;
        if tip.load(Ordering::Relaxed) != at {
            continue;
        }
        // Without answers the connection is left soon, which ends the session.
        let Ok(stream) = connection.stream(&name).await else { continue };
        let last = stream.cached_info().state.last_sequence;
        if last <= at || tip.load(Ordering::Relaxed) != at {
            was_behind_at = None;
        } else if was_behind_at.replace(at) == Some(at) {
            return format!(
                "the consumer delivers nothing after {at}, although the stream {name} has messages up to {last}"
            );
        }
    }
}

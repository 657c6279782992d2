//! Names of all metrics, with their units: the only place that spells them.
//!
//! Base units, `_total` on counters, labels `shard`, `reason` and `route`, never a member.

/// Histogram, seconds, by route: from a request's arrival to its answer.
pub const HTTP_REQUEST_SECONDS: &str = "ranktree_http_request_seconds";
/// Histogram, seconds, by route: what a read takes, shards held and metadata fetched.
pub const READ_SECONDS: &str = "ranktree_read_seconds";
/// Histogram, shards, by route: how many shards a read asked.
pub const READ_SHARDS: &str = "ranktree_read_shards";

/// Tells the recorder what the metrics of reads and requests mean. Call it once, after the recorder is installed.
pub fn describe_http() {
    metrics::describe_histogram!(
        HTTP_REQUEST_SECONDS,
        metrics::Unit::Seconds,
        "Time from a request's arrival to its answer, by route"
    );
    metrics::describe_histogram!(
        READ_SECONDS,
        metrics::Unit::Seconds,
        "Time a read takes, shards held and metadata fetched, by route"
    );
    metrics::describe_histogram!(READ_SHARDS, metrics::Unit::Count, "Shards that a read asked, by route");
}

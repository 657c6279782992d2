//! Names of all metrics, with their units: the only place that spells them.
//!
//! Base units, `_total` on counters, labels `shard`, `reason` and `route`, never a member.

/// Histogram, seconds, by route: from a request's arrival to its answer.
pub const HTTP_REQUEST_SECONDS: &str = "ranktree_http_request_seconds";
/// Histogram, seconds, by route: what a read takes, shards held and metadata fetched.
pub const READ_SECONDS: &str = "ranktree_read_seconds";
/// Histogram, shards, by route: how many shards a read asked.
pub const READ_SHARDS: &str = "ranktree_read_shards";

/// Histogram, seconds, by shard: from a question to a shard of another node to its reply, whichever owner
/// replied.
pub const QUESTION_SECONDS: &str = "ranktree_question_seconds";
/// Counter, questions, by shard: those for which a second owner was asked because the first was slow.
pub const QUESTIONS_HEDGED_TOTAL: &str = "ranktree_questions_hedged_total";
/// Counter, by shard and reason: owners that did not answer a question of this node, and questions that no
/// owner answered.
pub const QUESTION_FAILURES_TOTAL: &str = "ranktree_question_failures_total";
/// Counter, questions of other nodes, by shard and outcome: `answered`, or why not.
pub const QUESTIONS_ANSWERED_TOTAL: &str = "ranktree_questions_answered_total";

/// Gauge, seconds, by shard: how long ago an owner has confirmed the oldest summary of the shard that this
/// node keeps for approximate ranks; 0 while nobody asks for any.
pub const SUMMARY_AGE_SECONDS: &str = "ranktree_summary_age_seconds";
/// Gauge, bytes: the summaries that this node keeps.
pub const SUMMARY_BYTES: &str = "ranktree_summary_bytes";
/// Counter, summaries that this node has made, by shard.
/// Counter, parts that shards have in approximate answers, by source: `summary`, or `shard` if the shard was
/// asked.
pub const APPROXIMATE_PARTS_TOTAL: &str = "ranktree_approximate_parts_total";

/// Gauge, connections: clients that watch a board.
pub const LIVE_WATCHERS: &str = "ranktree_live_watchers";
/// Counter, states of watched boards that were computed, each once for all who watch the same board, window
/// and rate.
pub const LIVE_COMPUTATIONS_TOTAL: &str = "ranktree_live_computations_total";
/// Counter, events sent to watchers, by kind: `state`, `changes` or `end`.
pub const LIVE_EVENTS_TOTAL: &str = "ranktree_live_events_total";
/// Counter, states that a watcher was not sent by themselves, because it had not taken the one before.
pub const LIVE_COALESCED_TOTAL: &str = "ranktree_live_coalesced_total";
/// Counter, watchers that were refused or whose stream was ended, by reason: `limit`, `token` or `gone`, if
/// there is nothing to watch any more.
pub const LIVE_DROPPED_TOTAL: &str = "ranktree_live_dropped_total";

/// Histogram, seconds, by command: from a command of Redis' protocol to its reply.
pub const REDIS_COMMAND_SECONDS: &str = "ranktree_redis_command_seconds";
/// Counter, by command: commands of Redis' protocol that were refused.
pub const REDIS_COMMAND_ERRORS_TOTAL: &str = "ranktree_redis_command_errors_total";
/// Counter, by command: commands of Redis that are not here; `other` if Redis has none of this name.
pub const REDIS_UNKNOWN_COMMANDS_TOTAL: &str = "ranktree_redis_unknown_commands_total";
/// Gauge, connections: those that speak Redis' protocol.
pub const REDIS_CONNECTIONS: &str = "ranktree_redis_connections";
/// Counter, connections of Redis' protocol that were ended or turned away, by reason.
pub const REDIS_CONNECTIONS_ENDED_TOTAL: &str = "ranktree_redis_connections_ended_total";

/// Counter, spans of traces that the collector has taken.
pub const TRACE_SPANS_SENT_TOTAL: &str = "ranktree_trace_spans_sent_total";
/// Counter, spans of traces that were dropped, by reason: `full`, because the collector is slower than spans
/// end, or `not_taken`, because it is away or refused them.
pub const TRACE_SPANS_DROPPED_TOTAL: &str = "ranktree_trace_spans_dropped_total";

/// Tells the recorder what the metrics of traces mean, and makes them. Call it once, after the recorder is
/// installed.
pub fn describe_traces() {
    use metrics::{Unit, describe_counter};
    describe_counter!(TRACE_SPANS_SENT_TOTAL, Unit::Count, "Spans of traces that the collector has taken");
    describe_counter!(TRACE_SPANS_DROPPED_TOTAL, Unit::Count, "Spans of traces that were dropped, by reason");
    metrics::counter!(TRACE_SPANS_SENT_TOTAL).increment(0);
    for reason in ["full", "not_taken"] {
        metrics::counter!(TRACE_SPANS_DROPPED_TOTAL, "reason" => reason).increment(0);
    }
}

/// Tells the recorder what the metrics of Redis' protocol mean. Call it once, after the recorder is
/// installed.
pub fn describe_redis() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_histogram!(
        REDIS_COMMAND_SECONDS,
        Unit::Seconds,
        "Time from a command of Redis' protocol to its reply"
    );
    describe_counter!(
        REDIS_COMMAND_ERRORS_TOTAL,
        Unit::Count,
        "Commands of Redis' protocol that were refused"
    );
    describe_counter!(
        REDIS_UNKNOWN_COMMANDS_TOTAL,
        Unit::Count,
        "Commands of Redis that are not here, by name"
    );
    describe_gauge!(REDIS_CONNECTIONS, Unit::Count, "Connections that speak Redis' protocol");
    describe_counter!(
        REDIS_CONNECTIONS_ENDED_TOTAL,
        Unit::Count,
        "Connections of Redis' protocol that were ended or turned away, by reason"
    );
}

/// Tells the recorder what the metrics of watched boards mean. Call it once, after the recorder is installed.
pub fn describe_live() {
    use metrics::{Unit, describe_counter, describe_gauge};
    describe_gauge!(LIVE_WATCHERS, Unit::Count, "Clients that watch a board");
    describe_counter!(LIVE_COMPUTATIONS_TOTAL, Unit::Count, "States of watched boards that were computed");
    describe_counter!(LIVE_EVENTS_TOTAL, Unit::Count, "Events sent to watchers, by kind");
    describe_counter!(
        LIVE_COALESCED_TOTAL,
        Unit::Count,
        "States that slow watchers were sent together with later ones"
    );
    describe_counter!(LIVE_DROPPED_TOTAL, Unit::Count, "Watchers refused or ended, by reason");
}

/// Tells the recorder what the metrics of summaries mean. Call it once, after the recorder is installed.
pub fn describe_summaries() {
    use metrics::{Unit, describe_counter, describe_gauge};
    describe_gauge!(
        SUMMARY_AGE_SECONDS,
        Unit::Seconds,
        "Time since an owner has confirmed the oldest summary of the shard that approximate ranks are made from"
    );
    describe_gauge!(
        SUMMARY_BYTES,
        Unit::Bytes,
        "Memory of the summaries that approximate ranks are made from"
    );
    describe_counter!(
        APPROXIMATE_PARTS_TOTAL,
        Unit::Count,
        "Parts that shards have in approximate answers, by where they are from"
    );
}

/// Tells the recorder what the metrics of questions between nodes mean. Call it once, after the recorder is
/// installed.
pub fn describe_questions() {
    use metrics::{Unit, describe_counter, describe_histogram};
    describe_histogram!(
        QUESTION_SECONDS,
        Unit::Seconds,
        "Time from a question to a shard of another node to its reply"
    );
    describe_counter!(
        QUESTIONS_HEDGED_TOTAL,
        Unit::Count,
        "Questions for which a second owner of the shard was asked because the first one was slow"
    );
    describe_counter!(
        QUESTION_FAILURES_TOTAL,
        Unit::Count,
        "Owners that did not answer a question of this node, and questions that nobody answered, by reason"
    );
    describe_counter!(
        QUESTIONS_ANSWERED_TOTAL,
        Unit::Count,
        "Questions of other nodes to shards of this one, by outcome"
    );
}

/// Counter, answers, by route and class of status: `2xx`, `3xx`, `4xx` or `5xx`. Of what reaches no route,
/// `none`.
pub const HTTP_RESPONSES_TOTAL: &str = "ranktree_http_responses_total";
/// Counter, requests, by reason: refused for the token that they have, or do not have.
pub const HTTP_UNAUTHORIZED_TOTAL: &str = "ranktree_http_unauthorized_total";
/// Counter, requests that were turned away because too many were in work, or waiting to be written, or
/// connected.
pub const HTTP_REQUESTS_SHED_TOTAL: &str = "ranktree_http_requests_shed_total";
/// Gauge: connections that are open.
pub const HTTP_CONNECTIONS: &str = "ranktree_http_connections";
/// Counter, connections, by reason: ended for what the client did or did not do, or turned away.
pub const HTTP_CONNECTIONS_ENDED_TOTAL: &str = "ranktree_http_connections_ended_total";

/// Tells the recorder what the metrics of reads and requests mean. Call it once, after the recorder is
/// installed.
pub fn describe_http() {
    metrics::describe_counter!(
        HTTP_RESPONSES_TOTAL,
        metrics::Unit::Count,
        "Answers, by route and class of status; requests that were shed count as 5xx, and requests for unknown paths have the route none"
    );
    metrics::describe_counter!(
        HTTP_REQUESTS_SHED_TOTAL,
        metrics::Unit::Count,
        "Requests refused with 503 because too many requests were in progress, answers waiting to be written, or connections open"
    );
    metrics::describe_counter!(
        HTTP_UNAUTHORIZED_TOTAL,
        metrics::Unit::Count,
        "Requests refused with 401 or 403 because of their token or the lack of one, by reason"
    );
    metrics::describe_histogram!(
        HTTP_REQUEST_SECONDS,
        metrics::Unit::Seconds,
        "Time from a request's arrival to its answer, by route"
    );
    metrics::describe_histogram!(
        READ_SECONDS,
        metrics::Unit::Seconds,
        "Time of a read, including holding the shards and reading metadata, by route"
    );
    metrics::describe_gauge!(HTTP_CONNECTIONS, metrics::Unit::Count, "Open connections");
    metrics::describe_counter!(
        HTTP_CONNECTIONS_ENDED_TOTAL,
        metrics::Unit::Count,
        "Connections that the service closed or refused, by reason"
    );
    metrics::describe_histogram!(READ_SHARDS, metrics::Unit::Count, "Shards that a read asked, by route");
}

/// Counter, jobs, by shard.
pub const JOBS_APPLIED_TOTAL: &str = "ranktree_jobs_applied_total";
/// Counter, jobs, by shard and reason.
pub const JOBS_REJECTED_TOTAL: &str = "ranktree_jobs_rejected_total";
/// Histogram, jobs, by shard.
pub const BATCH_JOBS: &str = "ranktree_batch_jobs";
/// Histogram, seconds, by shard.
pub const FETCH_SECONDS: &str = "ranktree_fetch_seconds";
/// Histogram, seconds, by shard; with NATS only: jobs over HTTP are decoded with their request.
pub const DECODE_SECONDS: &str = "ranktree_decode_seconds";
/// Histogram, seconds, by shard.
pub const PLAN_SECONDS: &str = "ranktree_plan_seconds";
/// Histogram, seconds, by shard.
pub const COMMIT_SECONDS: &str = "ranktree_commit_seconds";
/// Histogram, seconds, by shard.
pub const APPLY_SECONDS: &str = "ranktree_apply_seconds";
/// Histogram, seconds, by shard: from a message's timestamp to readers seeing it, message by message. While a
/// shard catches up, one message in sixteen.
pub const PUBLISH_TO_VISIBLE_SECONDS: &str = "ranktree_publish_to_visible_seconds";
/// Gauge, by shard.
pub const APPLIED_SEQUENCE: &str = "ranktree_applied_sequence";
/// Gauge, messages, by shard.
pub const STREAM_LAG_MESSAGES: &str = "ranktree_stream_lag_messages";
/// Gauge, members, by shard.
pub const MEMBERS: &str = "ranktree_members";
/// Gauge, bytes, by shard.
pub const TREE_BYTES: &str = "ranktree_tree_bytes";
/// Gauge, by shard: 0 halted, 1 catching up, 2 live.
pub const SHARD_STATE: &str = "ranktree_shard_state";
/// Histogram, seconds, by purpose: how long the lock of a shard's state was held. Of the reads for answers,
/// one in seventeen.
pub const STATE_LOCK_HELD_SECONDS: &str = "ranktree_state_lock_held_seconds";
/// Histogram, seconds, by purpose: how long that lock was waited for, each time that it was not to be had at
/// once.
pub const STATE_LOCK_WAIT_SECONDS: &str = "ranktree_state_lock_wait_seconds";
/// Gauge, always 1, by version.
pub const BUILD_INFO: &str = "ranktree_build_info";
/// Gauge, boards, by shard.
pub const BOARDS: &str = "ranktree_boards";
/// Gauge, by shard: 1 while the service is read-only as far as the shard knows, else 0.
pub const READ_ONLY: &str = "ranktree_read_only";
/// Gauge, boards, by shard: those that are read-only by themselves.
pub const BOARDS_READ_ONLY: &str = "ranktree_boards_read_only";
/// Gauge, by shard: instances of windows that jobs have entered, apart from `all`.
pub const INSTANCES: &str = "ranktree_instances";
/// Counter, by shard: instances that were dropped because `keep` newer ones had closed.
pub const INSTANCES_DROPPED_TOTAL: &str = "ranktree_instances_dropped_total";
/// Gauge, by shard: entries that will expire unless they are updated.
pub const ENTRIES_EXPIRING: &str = "ranktree_entries_expiring";
/// Counter, by shard: entries that have expired.
pub const ENTRIES_EXPIRED_TOTAL: &str = "ranktree_entries_expired_total";
/// Counter, by shard: messages that this node published to tell a quiet shard the time.
pub const TICKS_TOTAL: &str = "ranktree_ticks_total";
/// Gauge, jobs, by shard: those that wait for the definition of their board.
pub const JOBS_PARKED: &str = "ranktree_jobs_parked";
/// Counter, by shard.
pub const COMMIT_FAILURES_TOTAL: &str = "ranktree_commit_failures_total";
/// Histogram, seconds, by shard.
pub const CHECKPOINT_SECONDS: &str = "ranktree_checkpoint_seconds";
/// Gauges of the last completed checkpoint, by shard.
pub const CHECKPOINT_BYTES: &str = "ranktree_checkpoint_bytes";
pub const CHECKPOINT_PAGES: &str = "ranktree_checkpoint_pages";
pub const CHECKPOINT_SEQUENCE: &str = "ranktree_checkpoint_sequence";
pub const CHECKPOINT_TIMESTAMP_SECONDS: &str = "ranktree_checkpoint_timestamp_seconds";
/// Gauge, changes, by shard: those that no checkpoint holds.
pub const CHECKPOINT_PENDING_CHANGES: &str = "ranktree_checkpoint_pending_changes";
/// Counter, by shard.
pub const CHECKPOINT_FAILURES_TOTAL: &str = "ranktree_checkpoint_failures_total";
/// Gauge, seconds, by shard: how far the shard's time is ahead of the node's clock.
pub const TIME_AHEAD_SECONDS: &str = "ranktree_time_ahead_seconds";
/// Gauges, bytes, of the file system that holds the data directory.
pub const DATA_DIR_FREE_BYTES: &str = "ranktree_data_dir_free_bytes";
pub const DATA_DIR_SIZE_BYTES: &str = "ranktree_data_dir_size_bytes";
/// Gauges of the shard's stream, by shard; with NATS only.
pub const STREAM_MESSAGES: &str = "ranktree_stream_messages";
pub const STREAM_BYTES: &str = "ranktree_stream_bytes";
pub const STREAM_BYTES_MAX: &str = "ranktree_stream_bytes_max";
/// Gauge, by shard; with NATS only: 1 while the stream is not configured as it must be, or else 0.
pub const STREAM_MISCONFIGURED: &str = "ranktree_stream_misconfigured";
/// Counter, messages, by shard; with NATS only.
pub const STREAM_PURGED_MESSAGES_TOTAL: &str = "ranktree_stream_purged_messages_total";
/// Counter, messages, by shard; with NATS only. Those among them that were younger than the stream's
/// duplicate window.
pub const STREAM_PURGED_EARLY_MESSAGES_TOTAL: &str = "ranktree_stream_purged_early_messages_total";
/// Gauge, nodes, by version: those that are alive, this one among them; with NATS only.
pub const NODES: &str = "ranktree_nodes";
/// Gauge, seconds: how far the node's clock is ahead of the NATS server's, negative if it is behind, and 0
/// within a second; with NATS only.
pub const CLOCK_SKEW_SECONDS: &str = "ranktree_clock_skew_seconds";
/// Gauge, seconds, by node: since something was last heard of it; with NATS only. At most 64 nodes.
pub const NODE_SILENT_SECONDS: &str = "ranktree_node_silent_seconds";
/// Gauges, nodes, by shard: those that own it and are not forgotten, and those of them on which it is live;
/// with NATS only.
pub const SHARD_OWNERS: &str = "ranktree_shard_owners";
pub const SHARD_OWNERS_LIVE: &str = "ranktree_shard_owners_live";
/// Counter, requests to the write service, by shard and class of the answer's status: `2xx`, `4xx` or `5xx`;
/// with NATS only.
pub const WRITE_REQUESTS_TOTAL: &str = "ranktree_write_requests_total";
/// Counter, jobs of such requests that were taken, by shard; with NATS only.
pub const WRITE_JOBS_TOTAL: &str = "ranktree_write_jobs_total";
/// Histogram, seconds, by shard: from such a request's arrival to its answer; with NATS only.
pub const WRITE_SECONDS: &str = "ranktree_write_seconds";
/// Histogram, requests, by shard: how many requests, of the write service and over HTTP, shared a message
/// that this node published; with NATS only.
pub const MESSAGE_REQUESTS: &str = "ranktree_message_requests";
/// Gauge, by shard: 1 while the shard needs a copy of another node's data; with NATS only.
pub const SHARD_COPY_NEEDED: &str = "ranktree_shard_copy_needed";
/// Gauge, copies of shards, by direction (`fetched` from other nodes, `given` to them); with NATS only.
pub const COPIES_UNDER_WAY: &str = "ranktree_copies_under_way";
/// Counter, by result: copies of shards that were fetched and `installed`, or `failed`, or were `damaged`;
/// with NATS only.
pub const COPIES_TOTAL: &str = "ranktree_copies_total";
/// Counter, bytes of copies, by direction; with NATS only.
pub const COPY_BYTES_TOTAL: &str = "ranktree_copy_bytes_total";
/// Gauge, nodes, by shard: other owners that have applied the same messages with other results; with NATS
/// only.
pub const SHARD_REPLICAS_DIFFERING: &str = "ranktree_shard_replicas_differing";
/// Gauges, connections, by what they are for (`manage`, `publish`, `consume`, `questions`, `writes`, `copy`);
/// with NATS only.
pub const NATS_CONNECTIONS: &str = "ranktree_nats_connections";
pub const NATS_CONNECTIONS_WANTED: &str = "ranktree_nats_connections_wanted";
/// Counter, by what the connection is for; with NATS only.
pub const NATS_DISCONNECTS_TOTAL: &str = "ranktree_nats_disconnects_total";
/// Gauge, by shard: 1 once something was found damaged in the shard's files since the start.
pub const STORAGE_DAMAGED: &str = "ranktree_storage_damaged";
/// Gauges of RocksDB, by shard.
pub const ROCKSDB_MEMTABLE_BYTES: &str = "ranktree_rocksdb_memtable_bytes";
pub const ROCKSDB_SST_BYTES: &str = "ranktree_rocksdb_sst_bytes";
pub const ROCKSDB_PENDING_COMPACTION_BYTES: &str = "ranktree_rocksdb_pending_compaction_bytes";
pub const ROCKSDB_RUNNING_COMPACTIONS: &str = "ranktree_rocksdb_running_compactions";
pub const ROCKSDB_RUNNING_FLUSHES: &str = "ranktree_rocksdb_running_flushes";
pub const ROCKSDB_LEVEL0_FILES: &str = "ranktree_rocksdb_level0_files";
pub const ROCKSDB_TABLE_READERS_BYTES: &str = "ranktree_rocksdb_table_readers_bytes";
pub const ROCKSDB_BACKGROUND_ERRORS: &str = "ranktree_rocksdb_background_errors";
pub const ROCKSDB_WRITES_STOPPED: &str = "ranktree_rocksdb_writes_stopped";
/// Gauges, bytes, of the one block cache that all shards share.
pub const ROCKSDB_BLOCK_CACHE_BYTES: &str = "ranktree_rocksdb_block_cache_bytes";
pub const ROCKSDB_BLOCK_CACHE_CAPACITY_BYTES: &str = "ranktree_rocksdb_block_cache_capacity_bytes";

/// From 25 µs to 10 s, in steps of 1, 2.5 and 5 by ten.
pub const SECONDS_BUCKETS: [f64; 18] = [
    25e-6, 50e-6, 1e-4, 25e-5, 5e-4, 1e-3, 25e-4, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0,
];
/// A checkpoint of ten million members takes some four seconds of one core, and of a billion minutes.
pub const CHECKPOINT_SECONDS_BUCKETS: [f64; 14] =
    [1e-3, 25e-4, 5e-3, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 900.0];
/// From 5 µs to a second. No hold should be above one millisecond, and no reader wait above two.
pub const STATE_LOCK_SECONDS_BUCKETS: [f64; 12] =
    [5e-6, 25e-6, 1e-4, 25e-5, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.05, 0.25, 1.0];
/// Jobs in a batch, shards in a read.
pub const COUNT_BUCKETS: [f64; 13] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0];

/// Tells the recorder what the writers' metrics mean. Call it once, after the recorder is installed.
pub fn describe_writers() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_counter!(JOBS_APPLIED_TOTAL, Unit::Count, "Jobs applied");
    describe_counter!(JOBS_REJECTED_TOTAL, Unit::Count, "Jobs rejected, by reason");
    describe_histogram!(BATCH_JOBS, Unit::Count, "Jobs in a drained batch");
    describe_histogram!(FETCH_SECONDS, Unit::Seconds, "Time the writer waited for a batch from the queue");
    describe_histogram!(
        DECODE_SECONDS,
        Unit::Seconds,
        "Time to decode a chunk of messages that arrived together, before the writer"
    );
    describe_histogram!(PLAN_SECONDS, Unit::Seconds, "Time to plan a batch");
    describe_histogram!(COMMIT_SECONDS, Unit::Seconds, "Time to commit a batch, its sync included");
    describe_histogram!(APPLY_SECONDS, Unit::Seconds, "Time to apply a batch to the trees and publish it");
    describe_histogram!(
        PUBLISH_TO_VISIBLE_SECONDS,
        Unit::Seconds,
        "Time from a message entering the queue to readers seeing it"
    );
    describe_gauge!(APPLIED_SEQUENCE, Unit::Count, "Highest sequence that readers see");
    describe_gauge!(STREAM_LAG_MESSAGES, Unit::Count, "Messages in the queue that are not applied yet");
    describe_gauge!(MEMBERS, Unit::Count, "Members that hold a score on any board");
    describe_gauge!(
        TREE_BYTES,
        Unit::Bytes,
        "Memory held by trees, the member index and a running checkpoint"
    );
    describe_gauge!(SHARD_STATE, Unit::Count, "0 halted, 1 catching up, 2 live");
    describe_gauge!(BUILD_INFO, Unit::Count, "Always 1; the label says which version runs");
    describe_gauge!(BOARDS, Unit::Count, "Boards");
    describe_gauge!(READ_ONLY, "1 while the service is read-only, else 0");
    describe_gauge!(BOARDS_READ_ONLY, Unit::Count, "Boards that are read-only by themselves");
    describe_gauge!(INSTANCES, Unit::Count, "Instances of windows that jobs have entered, apart from all");
    describe_counter!(
        INSTANCES_DROPPED_TOTAL,
        Unit::Count,
        "Instances dropped because keep newer ones had closed"
    );
    describe_gauge!(ENTRIES_EXPIRING, Unit::Count, "Entries that will expire unless they are updated");
    describe_counter!(ENTRIES_EXPIRED_TOTAL, Unit::Count, "Entries that have expired");
    describe_counter!(TICKS_TOTAL, Unit::Count, "Messages published to tell a quiet shard the time");
    describe_gauge!(JOBS_PARKED, Unit::Count, "Jobs that wait for the definition of their board");
    describe_gauge!(
        STORAGE_DAMAGED,
        Unit::Count,
        "1 if anything was found damaged in the shard's files since the start"
    );
    describe_counter!(COMMIT_FAILURES_TOTAL, Unit::Count, "Failed commits; the store is reopened after each");
    describe_histogram!(
        CHECKPOINT_SECONDS,
        Unit::Seconds,
        "Time to write a checkpoint, while the writer continues"
    );
    describe_gauge!(
        CHECKPOINT_BYTES,
        Unit::Bytes,
        "Size of the last checkpoint, which holds what changed since the one before"
    );
    describe_gauge!(CHECKPOINT_PAGES, Unit::Count, "Pages in the last checkpoint");
    describe_gauge!(CHECKPOINT_SEQUENCE, Unit::Count, "Sequence that the last checkpoint holds");
    describe_gauge!(
        CHECKPOINT_TIMESTAMP_SECONDS,
        Unit::Seconds,
        "Unix time at which the last checkpoint was completed, or the shard was loaded if none was since"
    );
    describe_gauge!(
        CHECKPOINT_PENDING_CHANGES,
        Unit::Count,
        "Changes that are in no checkpoint yet; a start replays them"
    );
    describe_gauge!(
        TIME_AHEAD_SECONDS,
        Unit::Seconds,
        "How far the shard's time, which never goes back, is ahead of the node's clock"
    );
    describe_counter!(CHECKPOINT_FAILURES_TOTAL, Unit::Count, "Failed checkpoints; each is tried again");
    describe_histogram!(
        STATE_LOCK_HELD_SECONDS,
        Unit::Seconds,
        "Time that the lock of a shard's state was held, by purpose; one in 17 reads for answers is timed"
    );
    describe_histogram!(
        STATE_LOCK_WAIT_SECONDS,
        Unit::Seconds,
        "Time that was spent waiting for the lock of a shard's state, by purpose; uncontended locks are not counted"
    );
    describe_rocksdb();
}

fn describe_rocksdb() {
    use metrics::{Unit, describe_gauge};
    describe_gauge!(ROCKSDB_RUNNING_FLUSHES, Unit::Count, "Running flushes of memtables");
    describe_gauge!(
        ROCKSDB_LEVEL0_FILES,
        Unit::Count,
        "Files on RocksDB's level 0; many of them slow writes down"
    );
    describe_gauge!(
        ROCKSDB_TABLE_READERS_BYTES,
        Unit::Bytes,
        "Memory held by the indexes and filters of open files"
    );
    describe_gauge!(
        ROCKSDB_BACKGROUND_ERRORS,
        Unit::Count,
        "Errors of flushes and compactions since the store was opened"
    );
    describe_gauge!(ROCKSDB_WRITES_STOPPED, Unit::Count, "1 while RocksDB blocks all writes");
    describe_gauge!(
        ROCKSDB_BLOCK_CACHE_BYTES,
        Unit::Bytes,
        "Memory held by the block cache that all shards share"
    );
    describe_gauge!(ROCKSDB_BLOCK_CACHE_CAPACITY_BYTES, Unit::Bytes, "Capacity of the block cache");
    describe_gauge!(ROCKSDB_MEMTABLE_BYTES, Unit::Bytes, "Memory held by RocksDB's memtables");
    describe_gauge!(ROCKSDB_SST_BYTES, Unit::Bytes, "Disk held by RocksDB's live files");
    describe_gauge!(ROCKSDB_PENDING_COMPACTION_BYTES, Unit::Bytes, "Bytes that RocksDB still has to compact");
    describe_gauge!(ROCKSDB_RUNNING_COMPACTIONS, Unit::Count, "Running compactions");
}

/// Tells the recorder what the metrics of NATS and its streams mean. Call it once, after the recorder is
/// installed.
pub fn describe_streams() {
    use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
    describe_gauge!(STREAM_MESSAGES, Unit::Count, "Messages in the shard's stream, applied ones included");
    describe_gauge!(STREAM_BYTES, Unit::Bytes, "Bytes in the shard's stream");
    describe_gauge!(
        STREAM_BYTES_MAX,
        Unit::Bytes,
        "Bytes that the stream may hold; when it is full, publishing is refused"
    );
    describe_gauge!(
        STREAM_MISCONFIGURED,
        Unit::Count,
        "1 while the shard's stream is not configured as it must be, because someone has changed it"
    );
    describe_counter!(
        STREAM_PURGED_MESSAGES_TOTAL,
        Unit::Count,
        "Messages that this node purged because a checkpoint holds them"
    );
    describe_counter!(
        STREAM_PURGED_EARLY_MESSAGES_TOTAL,
        Unit::Count,
        "Messages among them that were within the duplicate window, and were purged because the stream was filling up"
    );
    describe_gauge!(NODES, Unit::Count, "Nodes on the same streams that are alive, by version");
    describe_gauge!(
        CLOCK_SKEW_SECONDS,
        Unit::Seconds,
        "How far the node's clock is ahead of the NATS server's, negative if behind; 0 within a second"
    );
    describe_gauge!(
        NODE_SILENT_SECONDS,
        Unit::Seconds,
        "Time since a node was last heard of; 0 for this node, and for one that is forgotten"
    );
    describe_gauge!(SHARD_OWNERS, Unit::Count, "Nodes that own the shard, without those that are forgotten");
    describe_gauge!(SHARD_OWNERS_LIVE, Unit::Count, "Nodes that own the shard and on which it is live");
    describe_counter!(WRITE_REQUESTS_TOTAL, Unit::Count, "Requests to the write service, by class of status");
    describe_counter!(WRITE_JOBS_TOTAL, Unit::Count, "Jobs of requests to the write service");
    describe_histogram!(
        WRITE_SECONDS,
        Unit::Seconds,
        "Time from a request to the write service to its answer"
    );
    describe_histogram!(
        MESSAGE_REQUESTS,
        Unit::Count,
        "Requests that shared a message, of the write service and over HTTP"
    );
    describe_gauge!(
        SHARD_COPY_NEEDED,
        Unit::Count,
        "1 while the shard needs a copy of another node's data to go on"
    );
    describe_gauge!(
        COPIES_UNDER_WAY,
        Unit::Count,
        "Copies of shards on their way between nodes, by direction"
    );
    describe_counter!(COPIES_TOTAL, Unit::Count, "Copies of other nodes' shards, by what came of them");
    describe_counter!(COPY_BYTES_TOTAL, Unit::Bytes, "Bytes of copies of shards between nodes, by direction");
    describe_gauge!(
        SHARD_REPLICAS_DIFFERING,
        Unit::Count,
        "Other owners that have applied the same messages with other results"
    );
    describe_gauge!(NATS_CONNECTIONS, Unit::Count, "Connections to NATS that are up, by purpose");
    describe_gauge!(
        NATS_CONNECTIONS_WANTED,
        Unit::Count,
        "Connections to NATS that the node keeps, up or not, by purpose"
    );
    describe_counter!(NATS_DISCONNECTS_TOTAL, Unit::Count, "Connections to NATS that were lost, by purpose");
}

/// Tells the recorder what the metrics of the disk mean. Call it once, after the recorder is installed.
pub fn describe_disk() {
    use metrics::{Unit, describe_gauge};
    describe_gauge!(
        DATA_DIR_FREE_BYTES,
        Unit::Bytes,
        "Bytes free, to this process, on the file system of the data directory"
    );
    describe_gauge!(DATA_DIR_SIZE_BYTES, Unit::Bytes, "Size of the file system of the data directory");
}

/// A count as metrics have it.
#[expect(
    clippy::cast_precision_loss,
    clippy::as_conversions,
    reason = "metrics are floating-point; 2^53 is enough to look at"
)]
pub fn figure(count: u64) -> f64 {
    count as f64
}

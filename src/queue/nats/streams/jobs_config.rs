//! The configuration of a stream of jobs, and what is wrong with one that was made otherwise.
//!
//! Knows: which settings keep every message until it is purged, and which metadata say whose stream it is. An
//! operator may make the streams beforehand, with other limits and replicas. A setting that could lose or
//! reorder a job is refused, and so is one that would let a publisher of jobs do more than publish jobs.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType};

use crate::queue::nats::names::Names;
use crate::queue::nats::streams::mismatches::Mismatches;
use crate::storage::ServiceId;
use crate::types::{ShardId, decimal};

/// Raised when subjects, payloads or the choice of the shard change.
pub const LAYOUT: &str = "2";
pub(super) const HASH: &str = "fnv1a-32";
pub(super) const LAYOUT_KEY: &str = "ranktree-layout";
const SHARD_KEY: &str = "ranktree-shard";
pub(super) const SHARDS_KEY: &str = "ranktree-shards";
/// Which service a stream is of. Whoever creates the boards' stream decides it; streams that an operator has
/// made need not say it.
const SERVICE_KEY: &str = "ranktree-service";
pub(super) const HASH_KEY: &str = "ranktree-hash";

/// For so long, a publisher that got no answer may send a message again under the same `Nats-Msg-Id`, and it
/// is stored once. An operator may change it on the stream. Younger messages are not purged, because a server
/// that starts again knows the ids of stored messages only.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Nodes put jobs of up to 64 KiB into a message, and an id into its headers. A job with metadata for many
/// boards, or an array of a publisher's, may be larger.
const MESSAGE_BYTES: i32 = 128 << 10;

/// The configuration that a shard's stream of jobs is created with.
pub fn jobs_config(names: &Names, shard: ShardId, shards: u16, bytes_max: i64, replicas: usize) -> Config {
    Config {
        name: names.jobs_stream(shard),
        // Jobs and commands share a stream, so that a definition has its place among the jobs, and sequences
        // have no holes.
        subjects: vec![names.jobs_subject(shard), names.control_subject(shard)],
        description: Some(format!("ranktree: jobs of shard {shard} of {shards}")),
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        // A full stream refuses publishers, who can wait. It never drops stored messages.
        discard: DiscardPolicy::New,
        max_bytes: bytes_max,
        duplicate_window: DUPLICATE_WINDOW,
        num_replicas: replicas,
        deny_delete: true,
        allow_direct: true,
        metadata: facts(shard, shards).into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        ..Config::default()
    }
}

fn facts(shard: ShardId, shards: u16) -> [(&'static str, String); 4] {
    [
        (LAYOUT_KEY, LAYOUT.to_owned()),
        (SHARD_KEY, shard.to_string()),
        (SHARDS_KEY, shards.to_string()),
        (HASH_KEY, HASH.to_owned()),
    ]
}

/// The same configuration, of a stream of this service.
pub fn of_service(mut config: Config, service: Option<ServiceId>) -> Config {
    config.metadata.extend(service.map(|service| (SERVICE_KEY.to_owned(), service.to_string())));
    config
}

/// The service of a stream, as far as its metadata say it.
pub fn service_of(found: &Config) -> Option<ServiceId> {
    ServiceId::parse(found.metadata.get(SERVICE_KEY)?)
}

/// Says that data and streams are of two services.
///
/// # Arguments
/// `streams`: which these are
pub fn of_another_service(own: ServiceId, streams: &str, theirs: ServiceId) -> String {
    format!(
        "the data are of the service {own}, and {streams} of the service {theirs}: the data directory is \
         another service's, or --nats leads to another server"
    )
}

/// What is to be done about it.
pub const STEP_TO_OWN_SERVICE: &str = "Start with the data directory of this service";

/// The number of shards, as the metadata of a stream of jobs say.
pub fn shards_of(found: &Config) -> Option<u16> {
    decimal(found.metadata.get(SHARDS_KEY)?)
}

/// What is wrong with an existing stream of jobs; empty if it can be used.
pub fn jobs_mismatches(found: &Config, names: &Names, shard: ShardId, shards: u16) -> Vec<String> {
    let mut wrong = Mismatches::default();
    for (key, wanted) in facts(shard, shards) {
        let is = found.metadata.get(key);
        let said = is.map_or("nothing", String::as_str);
        let what = if key == LAYOUT_KEY {
            format!("its metadata has {said} for {key}, not {wanted}: another version of ranktree created it")
        } else {
            format!("its metadata has {said} for {key}, not {wanted}")
        };
        wrong.unless(is == Some(&wanted), what);
    }
    let mut subjects = [names.jobs_subject(shard), names.control_subject(shard)];
    let mut found_subjects = found.subjects.clone();
    subjects.sort();
    found_subjects.sort();
    wrong
        .unless(found_subjects == subjects, format!("its subjects are {found_subjects:?}, not {subjects:?}"));
    wrong.unless(found.retention == RetentionPolicy::Limits, "its retention is not limits");
    wrong.unless(found.storage == StorageType::File, "its storage is not file");
    wrong.unless(
        found.discard == DiscardPolicy::New,
        "it discards old messages when it is full, instead of refusing new ones",
    );
    wrong.unless(found.max_bytes > 0, "it has no limit in bytes (max_bytes)");
    wrong.unless(found.max_age.is_zero(), "its messages expire (max_age)");
    wrong
        .unless(found.max_messages_per_subject <= 0, "it limits messages per subject (max_msgs_per_subject)");
    wrong.unless(
        found.max_message_size <= 0 || found.max_message_size >= MESSAGE_BYTES,
        format!(
            "it refuses messages above {} bytes (max_msg_size), but nodes send up to {MESSAGE_BYTES}",
            found.max_message_size
        ),
    );
    // A stream that cannot be purged would some day be full, and stay so.
    wrong.unless(!found.deny_purge, "it cannot be purged (deny_purge is on)");
    wrong.unless(found.deny_delete, "single messages may be deleted from it (deny_delete is off)");
    wrong.unless(!found.allow_rollup, "a publisher may roll it up (allow_rollup_hdrs is on)");
    wrong.unless(!found.allow_message_ttl, "a publisher may let messages expire (allow_msg_ttl is on)");
    // A scheduled message names the subject that it is stored under, so a publisher of jobs could store
    // commands.
    wrong.unless(
        !found.allow_message_schedules,
        "a publisher may schedule messages to other subjects (allow_msg_schedules is on)",
    );
    wrong.unless(
        !found.allow_message_counter,
        "its messages are counters (allow_msg_counter is on), not jobs",
    );
    wrong.unless(
        found.persist_mode.is_none_or(|mode| mode == PersistenceMode::Default),
        "it acknowledges before it has written (persist_mode is async)",
    );
    wrong.unless(!found.sealed, "it is sealed");
    wrong.unless(!found.no_ack, "it does not acknowledge what it stores (no_ack is on)");
    let foreign = found.mirror.is_some() || found.sources.as_ref().is_some_and(|sources| !sources.is_empty());
    wrong.unless(!foreign, "it is filled from another stream");
    wrong.unless(found.subject_transform.is_none(), "it transforms subjects");
    wrong.into_texts()
}

/// Whether the stream may drop messages that were stored, or acknowledge what it did not store.
pub fn may_lose_messages(found: &Config) -> bool {
    found.discard != DiscardPolicy::New
        || !found.max_age.is_zero()
        || found.max_messages_per_subject > 0
        || found.retention != RetentionPolicy::Limits
        || found.no_ack
        || found.persist_mode.is_some_and(|mode| mode != PersistenceMode::Default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_jobs_must_be_configured_as_it_is_created_but_for_limits_and_replicas() {
        let names = Names::new("ranktree");
        let good = || jobs_config(&names, ShardId(1), 3, 1 << 30, 1);
        let wrong = |config: &Config| jobs_mismatches(config, &names, ShardId(1), 3);
        assert!(wrong(&good()).is_empty());
        let other_way_round = good().subjects.into_iter().rev().collect();
        assert!(wrong(&Config { subjects: other_way_round, ..good() }).is_empty());
        assert!(wrong(&Config { num_replicas: 3, max_bytes: 5, ..good() }).is_empty());
        assert!(wrong(&Config { max_messages: 5, max_message_size: 128 << 10, ..good() }).is_empty());
        assert_eq!(jobs_mismatches(&good(), &names, ShardId(1), 4).len(), 1);
        assert_eq!(jobs_mismatches(&good(), &names, ShardId(0), 3).len(), 2);
        for bad in [
            Config { retention: RetentionPolicy::WorkQueue, ..good() },
            Config { storage: StorageType::Memory, ..good() },
            Config { discard: DiscardPolicy::Old, ..good() },
            Config { max_bytes: -1, ..good() },
            Config { max_age: std::time::Duration::from_secs(1), ..good() },
            Config { deny_delete: false, ..good() },
            Config { deny_purge: true, ..good() },
            Config { max_message_size: 64 << 10, ..good() },
            Config { subjects: vec!["ranktree.jobs.*".to_owned()], ..good() },
            Config { subjects: vec!["ranktree.jobs.1".to_owned()], ..good() },
            Config { allow_rollup: true, ..good() },
            Config { allow_message_ttl: true, ..good() },
            Config { allow_message_schedules: true, ..good() },
            Config { allow_message_counter: true, ..good() },
            Config { persist_mode: Some(PersistenceMode::Async), ..good() },
        ] {
            assert_eq!(wrong(&bad).len(), 1, "{bad:?}");
        }
        assert!(!may_lose_messages(&good()));
        assert!(!may_lose_messages(&Config { max_message_size: 64 << 10, allow_rollup: true, ..good() }));
        for bad in [
            Config { discard: DiscardPolicy::Old, ..good() },
            Config { max_age: std::time::Duration::from_secs(1), ..good() },
            Config { max_messages_per_subject: 3, ..good() },
            Config { no_ack: true, ..good() },
        ] {
            assert!(may_lose_messages(&bad), "{bad:?}");
            assert_eq!(wrong(&bad).len(), 1, "{bad:?}");
        }
        assert_eq!(wrong(&Config { metadata: std::collections::HashMap::new(), ..good() }).len(), 4);
    }
}

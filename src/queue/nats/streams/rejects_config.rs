//! The configuration of the stream of rejects, and what is wrong with one that was made otherwise.
//!
//! Knows: the stream must never be full, or no more rejects would be published. An operator may make it
//! beforehand, with other limits and replicas.

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};

use crate::queue::nats::names::Names;
use crate::queue::nats::streams::mismatches::common_mismatches;

/// How much the stream keeps, the newest rejects: it is for operators to look at.
const REJECTS_BYTES: i64 = 256 << 20;
/// A reject holds 4 KiB of its job, each byte of which may take six in JSON.
const REJECTS_MESSAGE_BYTES: i32 = 32 << 10;

/// The configuration that the stream of rejects is created with.
pub fn rejects_config(names: &Names, replicas: usize) -> Config {
    Config {
        name: names.rejects_stream(),
        subjects: vec![names.rejects_subject("*")],
        description: Some("ranktree: jobs that were refused, the newest".to_owned()),
        storage: StorageType::File,
        discard: DiscardPolicy::Old,
        max_bytes: REJECTS_BYTES,
        num_replicas: replicas,
        allow_direct: true,
        allow_atomic_publish: true,
        ..Config::default()
    }
}

/// What is wrong with an existing stream of rejects; empty if it can be used.
pub fn rejects_mismatches(found: &Config, names: &Names) -> Vec<String> {
    let mut wrong = common_mismatches(found, &names.rejects_subject("*"), REJECTS_MESSAGE_BYTES);
    let discards_old = found.discard == DiscardPolicy::Old;
    wrong.unless(discards_old, "it refuses new messages when it is full, instead of discarding old ones");
    wrong.unless(found.allow_atomic_publish, "it takes no batches of messages (allow_atomic is off)");
    wrong.into_texts()
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream::stream::RetentionPolicy;

    use super::*;

    #[test]
    fn a_stream_of_rejects_must_be_configured_as_it_is_created_but_for_limits_and_replicas() {
        let names = Names::new("ranktree");
        let rejects = || rejects_config(&names, 1);
        assert!(rejects_mismatches(&rejects(), &names).is_empty());
        let short = Config { max_messages: 10, max_age: std::time::Duration::from_secs(60), ..rejects() };
        assert!(rejects_mismatches(&short, &names).is_empty());
        for bad in [
            Config { subjects: vec!["ranktree.rejects.0".to_owned()], ..rejects() },
            Config { discard: DiscardPolicy::New, ..rejects() },
            Config { max_message_size: 4_096, ..rejects() },
            Config { allow_atomic_publish: false, ..rejects() },
            Config { retention: RetentionPolicy::WorkQueue, ..rejects() },
        ] {
            assert_eq!(rejects_mismatches(&bad, &names).len(), 1, "{bad:?}");
        }
    }
}

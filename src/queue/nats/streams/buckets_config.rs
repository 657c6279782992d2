//! The configurations of the two key-value buckets, and what is wrong with one that was made otherwise.
//!
//! Knows: entries of the bucket of nodes expire, and entries of the bucket of floors must not. Both are what
//! `nats kv` tools read. An operator may make them beforehand, with other replicas.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};

use crate::queue::nats::names::{Bucket, Names};
use crate::queue::nats::streams::mismatches::common_mismatches;

/// An entry that its node has not renewed for so long is dropped by the server. Nodes renew theirs every two
/// seconds.
const NODES_AGE: Duration = Duration::from_secs(60);
/// The entry of a node with 64 shards takes half of this at most.
const ENTRY_BYTES: i32 = 64 << 10;

/// The configuration that the bucket of nodes is created with.
pub fn nodes_config(names: &Names, replicas: usize) -> Config {
    let description = "ranktree: the nodes that are alive";
    Config { max_age: NODES_AGE, ..bucket_config(&names.nodes_bucket(), description, replicas) }
}

/// The configuration that the bucket of floors is created with.
pub fn floors_config(names: &Names, replicas: usize) -> Config {
    let description = "ranktree: what each node's last checkpoint holds, so that what it needs is not purged";
    bucket_config(&names.floors_bucket(), description, replicas)
}

/// No limit of bytes is set, because the server would reserve it. There is one small message for each node,
/// or each node and shard.
fn bucket_config(bucket: &Bucket, description: &str, replicas: usize) -> Config {
    Config {
        name: bucket.stream(),
        subjects: vec![bucket.all_subjects()],
        description: Some(description.to_owned()),
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        max_bytes: -1,
        max_message_size: ENTRY_BYTES,
        max_messages_per_subject: 1,
        num_replicas: replicas,
        allow_direct: true,
        // As in every bucket: an operator deletes an entry by a message that replaces it.
        allow_rollup: true,
        ..Config::default()
    }
}

/// What is wrong with an existing bucket's stream; empty if it can be used.
///
/// # Arguments
/// `wanted`: what it would be created with.
pub fn buckets_mismatches(found: &Config, wanted: &Config) -> Vec<String> {
    let subject = wanted.subjects.first().map_or("", String::as_str);
    let mut wrong = common_mismatches(found, subject, ENTRY_BYTES);
    wrong.unless(found.max_messages <= 0, "it limits the number of messages, so that entries would be lost");
    if wanted.max_age.is_zero() {
        wrong.unless(found.max_age.is_zero(), "its entries expire (max_age)");
    } else {
        let (least, most) = (NODES_AGE / 4, NODES_AGE * 10);
        wrong.unless(
            found.max_age >= least && found.max_age <= most,
            format!("its entries do not expire after {} to {} s (max_age)", least.as_secs(), most.as_secs()),
        );
    }
    wrong.into_texts()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_must_be_configured_as_they_are_created_but_for_limits_and_replicas() {
        let names = Names::new("ranktree");
        let (nodes, floors) = (|| nodes_config(&names, 1), || floors_config(&names, 1));
        for (found, wanted) in [(nodes(), nodes()), (floors(), floors())] {
            assert!(buckets_mismatches(&found, &wanted).is_empty());
            let good = Config { num_replicas: 3, max_bytes: 1 << 30, deny_delete: true, ..found.clone() };
            assert!(buckets_mismatches(&good, &wanted).is_empty());
            for bad in [
                Config { subjects: vec!["$KV.>".to_owned()], ..found.clone() },
                Config { storage: StorageType::Memory, ..found.clone() },
                Config { max_message_size: 1_024, ..found.clone() },
                Config { max_messages: 10, ..found.clone() },
                Config { max_age: Duration::from_secs(1), ..found.clone() },
                Config { no_ack: true, ..found },
            ] {
                assert_eq!(buckets_mismatches(&bad, &wanted).len(), 1, "{bad:?}");
            }
        }
        assert_eq!(buckets_mismatches(&Config { max_age: Duration::ZERO, ..nodes() }, &nodes()).len(), 1);
    }
}

//! The configuration of the boards' stream, and what is wrong with one that was made otherwise.
//!
//! Knows: the stream must keep each board's last message for as long as the board exists, and must number its
//! messages once; otherwise two nodes could each give a board another definition. An operator may make the
//! stream beforehand, with other limits and replicas.

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};

use crate::queue::nats::names::Names;
use crate::queue::nats::streams::jobs_config::{HASH, HASH_KEY, LAYOUT, LAYOUT_KEY, SHARDS_KEY};
use crate::queue::nats::streams::mismatches::common_mismatches;
use crate::types::decimal;

/// The stream keeps one message per board, of at most a few kilobytes, and some thousands of dropped boards,
/// which nodes delete one by one.
const BOARDS_BYTES: i64 = 512 << 20;
/// Any definition is smaller, even with the longest names.
const BOARDS_MESSAGE_BYTES: i32 = 16 << 10;
/// What all nodes of a service must have in common, as the boards' stream records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceFacts {
    /// The number of all shards.
    pub shards: u16,
    /// Whether a job for an unknown board creates it. Shards of several owners must all do the same with it.
    pub auto_create: bool,
}

const AUTO_CREATE_KEY: &str = "ranktree-auto-create";

impl ServiceFacts {
    fn metadata(self) -> [(&'static str, String); 4] {
        [
            (LAYOUT_KEY, LAYOUT.to_owned()),
            (SHARDS_KEY, self.shards.to_string()),
            (HASH_KEY, HASH.to_owned()),
            (AUTO_CREATE_KEY, self.auto_create.to_string()),
        ]
    }
}

/// The number of shards, as the metadata of the boards' stream say.
pub fn shards_of_service(found: &Config) -> Option<u16> {
    decimal(found.metadata.get(SHARDS_KEY)?)
}

/// The configuration that the boards' stream is created with.
///
/// # Arguments
/// `incarnation`: the latest incarnation of any board that this node knows. Later ones have greater numbers,
/// even if the stream that numbered the earlier ones was lost.
pub fn boards_config(names: &Names, facts: ServiceFacts, replicas: usize, incarnation: u64) -> Config {
    Config {
        name: names.boards_stream(),
        subjects: vec![names.all_boards()],
        description: Some("ranktree: what each board is; the first definition wins".to_owned()),
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        max_bytes: BOARDS_BYTES,
        max_messages_per_subject: 1,
        num_replicas: replicas,
        deny_purge: true,
        allow_direct: true,
        first_sequence: (incarnation > 0).then_some(incarnation + 1),
        metadata: facts.metadata().into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        ..Config::default()
    }
}

/// What is wrong with an existing boards' stream; empty if it can be used.
pub fn boards_mismatches(found: &Config, names: &Names, facts: ServiceFacts) -> Vec<String> {
    let mut wrong = common_mismatches(found, &names.all_boards(), BOARDS_MESSAGE_BYTES);
    // A stream that an operator has made may not say.
    for (key, wanted) in facts.metadata() {
        let Some(said) = found.metadata.get(key) else { continue };
        let what = match key {
            SHARDS_KEY => format!(
                "there are {said} shards (its metadata {key}), but this node was given {wanted}; start it with \
                 --shards {said}"
            ),
            AUTO_CREATE_KEY => format!(
                "its metadata has {said} for {key}, and this node was started with{} --no-auto-create: jobs \
                 for unknown boards must be treated alike by all nodes. Start all nodes with the same, or \
                 stop all of them and change the metadata",
                if facts.auto_create { "out" } else { "" }
            ),
            _ => format!(
                "its metadata has {said} for {key}, not {wanted}: another version of ranktree created it"
            ),
        };
        wrong.unless(*said == wanted, what);
    }
    wrong.unless(
        found.discard == DiscardPolicy::New,
        "it discards old messages when it is full, instead of refusing new ones",
    );
    wrong.unless(found.max_age.is_zero(), "its messages expire (max_age)");
    wrong.unless(
        found.max_messages <= 0,
        "it limits the number of messages, so that records of boards would be lost",
    );
    wrong.unless(found.deny_purge, "it may be purged (deny_purge is off)");
    wrong.unless(
        !found.deny_delete,
        "records of dropped boards cannot be deleted from it (deny_delete is on)",
    );
    wrong.unless(!found.allow_rollup, "a publisher may roll it up (allow_rollup_hdrs is on)");
    wrong.into_texts()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boards_stream_must_be_configured_as_it_is_created_but_for_limits_and_replicas() {
        let names = Names::new("ranktree");
        let facts = ServiceFacts { shards: 3, auto_create: true };
        let boards = || boards_config(&names, facts, 1, 7);
        assert!(boards_mismatches(&boards(), &names, facts).is_empty());
        assert_eq!(shards_of_service(&boards()), Some(3));
        let unsaid = Config { metadata: std::collections::HashMap::new(), ..boards() };
        assert!(boards_mismatches(&unsaid, &names, facts).is_empty());
        for (other, said) in [
            (ServiceFacts { shards: 4, ..facts }, "start it with --shards 3"),
            (ServiceFacts { auto_create: false, ..facts }, "started with --no-auto-create"),
        ] {
            let wrong = boards_mismatches(&boards(), &names, other);
            assert!(wrong.len() == 1 && wrong[0].contains(said), "{wrong:?}");
        }
        let good = Config { num_replicas: 3, max_bytes: -1, ..boards() };
        assert!(boards_mismatches(&good, &names, facts).is_empty());
        for bad in [
            Config { subjects: vec!["ranktree.>".to_owned()], ..boards() },
            Config { storage: StorageType::Memory, ..boards() },
            Config { discard: DiscardPolicy::Old, ..boards() },
            Config { max_age: std::time::Duration::from_secs(1), ..boards() },
            Config { max_messages: 10, ..boards() },
            Config { deny_purge: false, ..boards() },
            Config { deny_delete: true, ..boards() },
            Config { no_ack: true, ..boards() },
            Config { max_message_size: 1_024, ..boards() },
        ] {
            assert_eq!(boards_mismatches(&bad, &names, facts).len(), 1, "{bad:?}");
        }
    }
}

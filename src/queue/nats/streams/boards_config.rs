//! The configuration of the boards' stream, and what is wrong with one that was made otherwise.
//!
//! Knows: the stream must keep each board's last message for as long as the board exists, and must number its
//! messages once; otherwise two nodes could each give a board another definition. An operator may make the
//! stream beforehand, with other limits and replicas.

use async_nats::jetstream::stream::{Config, DiscardPolicy, StorageType};

use crate::queue::nats::names::Names;
use crate::queue::nats::streams::mismatches::common_mismatches;

/// The stream keeps one message per board, of at most a few kilobytes, and some thousands of dropped boards,
/// which nodes delete one by one.
const BOARDS_BYTES: i64 = 512 << 20;
/// Any definition is smaller, even with the longest names.
const BOARDS_MESSAGE_BYTES: i32 = 16 << 10;
/// The configuration that the boards' stream is created with.
///
/// # Arguments
/// `incarnation`: the latest incarnation of any board that this node knows. Later ones have greater numbers,
/// even if the stream that numbered the earlier ones was lost.
pub fn boards_config(names: &Names, replicas: usize, incarnation: u64) -> Config {
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
        ..Config::default()
    }
}

/// What is wrong with an existing boards' stream; empty if it can be used.
pub fn boards_mismatches(found: &Config, names: &Names) -> Vec<String> {
    let mut wrong = common_mismatches(found, &names.all_boards(), BOARDS_MESSAGE_BYTES);
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
    wrong.unless(!found.allow_rollup, "a publisher may roll it up (allow_rollup_hdrs is on)");
    wrong.into_texts()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boards_stream_must_be_configured_as_it_is_created_but_for_limits_and_replicas() {
        let names = Names::new("ranktree");
        let boards = || boards_config(&names, 1, 7);
        assert!(boards_mismatches(&boards(), &names).is_empty());
        // Streams of earlier versions deny deleting messages, and so keep a record of every board that ever
        // existed.
        for good in
            [Config { num_replicas: 3, max_bytes: -1, ..boards() }, Config { deny_delete: true, ..boards() }]
        {
            assert!(boards_mismatches(&good, &names).is_empty());
        }
        for bad in [
            Config { subjects: vec!["ranktree.>".to_owned()], ..boards() },
            Config { storage: StorageType::Memory, ..boards() },
            Config { discard: DiscardPolicy::Old, ..boards() },
            Config { max_age: std::time::Duration::from_secs(1), ..boards() },
            Config { max_messages: 10, ..boards() },
            Config { deny_purge: false, ..boards() },
            Config { no_ack: true, ..boards() },
            Config { max_message_size: 1_024, ..boards() },
        ] {
            assert_eq!(boards_mismatches(&bad, &names).len(), 1, "{bad:?}");
        }
    }
}

//! The streams of boards and of rejects: how they have to be configured, and what is wrong with one that is not.
//!
//! Knows: the boards' stream must keep each board's last message for as long as there is the board, and number its messages
//! once, or two boards could have one definition each on different nodes; the one of rejects must never be full, or nothing would be told
//! any more. An operator may make them beforehand, with other limits and replicas.

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};

use crate::queue::nats::names::Names;

/// What the stream of rejects keeps, the newest: it is for looking at.
const REJECTS_BYTES: i64 = 256 << 20;
/// The boards' stream keeps one message per board, of at most a few kilobytes, and some thousands of boards that were
/// dropped, which nodes delete one by one.
const BOARDS_BYTES: i64 = 512 << 20;
/// A definition is smaller, with every name as long as may be.
const BOARDS_MESSAGE_BYTES: i32 = 16 << 10;
/// A reject holds 4 KiB of its job, each byte of which may take six in JSON.
const REJECTS_MESSAGE_BYTES: i32 = 32 << 10;

/// What the boards' stream is created as.
///
/// # Arguments
/// `incarnation`: the last life of a board that this node knows of. Later ones have greater numbers, whatever became of
/// the stream that those were numbered by.
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

/// What the stream of rejects is created as.
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

/// What is wrong with an existing stream of boards; empty if it can be used.
pub fn boards_disagreements(found: &Config, names: &Names) -> Vec<String> {
    let mut wrong = disagreements(found, &names.all_boards(), BOARDS_MESSAGE_BYTES);
    let mut check = |fine: bool, what: &str| {
        if !fine {
            wrong.push(what.to_owned());
        }
    };
    check(found.discard == DiscardPolicy::New, "it discards old messages when full, not new ones");
    check(found.max_age.is_zero(), "its messages expire (max_age)");
    check(found.max_messages <= 0, "it limits the number of messages, and so forgets boards");
    check(found.deny_purge, "it may be purged (deny_purge is off)");
    check(!found.allow_rollup, "a publisher may roll it up (allow_rollup_hdrs is on)");
    wrong
}

/// What is wrong with an existing stream of rejects; empty if it can be used.
pub fn rejects_disagreements(found: &Config, names: &Names) -> Vec<String> {
    let mut wrong = disagreements(found, &names.rejects_subject("*"), REJECTS_MESSAGE_BYTES);
    if found.discard != DiscardPolicy::Old {
        wrong.push("it refuses new messages when full, and does not discard old ones".to_owned());
    }
    wrong
}

fn disagreements(found: &Config, subject: &str, message_bytes: i32) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |fine: bool, what: &str| {
        if !fine {
            wrong.push(what.to_owned());
        }
    };
    check(found.subjects == [subject], &format!("its subjects are {:?}, not [{subject:?}]", found.subjects));
    check(found.retention == RetentionPolicy::Limits, "its retention is not limits");
    check(found.storage == StorageType::File, "its storage is not file");
    check(
        found.max_message_size <= 0 || found.max_message_size >= message_bytes,
        &format!(
            "it takes no messages above {} bytes (max_msg_size), and nodes send up to {message_bytes}",
            found.max_message_size
        ),
    );
    check(!found.allow_message_ttl, "a publisher may let messages expire (allow_msg_ttl is on)");
    check(!found.sealed, "it is sealed");
    check(!found.no_ack, "it does not acknowledge what it stores (no_ack is on)");
    let foreign = found.mirror.is_some() || found.sources.as_ref().is_some_and(|sources| !sources.is_empty());
    check(!foreign, "it is filled from another stream");
    check(found.subject_transform.is_none(), "it transforms subjects");
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_agree_with_what_they_would_be_created_as_and_with_nothing_else() {
        let names = Names::new("ranktree");
        let boards = || boards_config(&names, 1, 7);
        assert!(boards_disagreements(&boards(), &names).is_empty());
        // One that an earlier version made lets no message be deleted, and so keeps a record of each board there ever was.
        for good in
            [Config { num_replicas: 3, max_bytes: -1, ..boards() }, Config { deny_delete: true, ..boards() }]
        {
            assert!(boards_disagreements(&good, &names).is_empty());
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
            assert_eq!(boards_disagreements(&bad, &names).len(), 1, "{bad:?}");
        }
        let rejects = || rejects_config(&names, 1);
        assert!(rejects_disagreements(&rejects(), &names).is_empty());
        let short = Config { max_messages: 10, max_age: std::time::Duration::from_secs(60), ..rejects() };
        assert!(rejects_disagreements(&short, &names).is_empty());
        for bad in [
            Config { subjects: vec!["ranktree.rejects.0".to_owned()], ..rejects() },
            Config { discard: DiscardPolicy::New, ..rejects() },
            Config { max_message_size: 4_096, ..rejects() },
            Config { retention: RetentionPolicy::WorkQueue, ..rejects() },
        ] {
            assert_eq!(rejects_disagreements(&bad, &names).len(), 1, "{bad:?}");
        }
    }
}

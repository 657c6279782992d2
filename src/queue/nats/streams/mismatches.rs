//! What is wrong with the configuration of an existing stream.

use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType};

/// What is wrong with a stream, in words for an operator.
#[derive(Default)]
pub struct Mismatches(Vec<String>);

impl Mismatches {
    /// Notes what is wrong, unless it is fine.
    pub fn unless(&mut self, is_fine: bool, what: impl Into<String>) {
        if !is_fine {
            self.0.push(what.into());
        }
    }

    pub fn into_texts(self) -> Vec<String> {
        self.0
    }
}

/// What is wrong with a stream of boards or of rejects, in the settings that both have in common.
pub fn common_mismatches(found: &Config, subject: &str, message_bytes: i32) -> Mismatches {
    let mut wrong = Mismatches::default();
    wrong.unless(
        found.subjects == [subject],
        format!("its subjects are {:?}, not [{subject:?}]", found.subjects),
    );
    wrong.unless(found.retention == RetentionPolicy::Limits, "its retention is not limits");
    wrong.unless(found.storage == StorageType::File, "its storage is not file");
    wrong.unless(
        found.max_message_size <= 0 || found.max_message_size >= message_bytes,
        format!(
            "it refuses messages above {} bytes (max_msg_size), but nodes send up to {message_bytes}",
            found.max_message_size
        ),
    );
    wrong.unless(!found.allow_message_ttl, "a publisher may let messages expire (allow_msg_ttl is on)");
    wrong.unless(!found.sealed, "it is sealed");
    wrong.unless(!found.no_ack, "it does not acknowledge what it stores (no_ack is on)");
    let foreign = found.mirror.is_some() || found.sources.as_ref().is_some_and(|sources| !sources.is_empty());
    wrong.unless(!foreign, "it is filled from another stream");
    wrong.unless(found.subject_transform.is_none(), "it transforms subjects");
    wrong
}

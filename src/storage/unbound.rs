//! Data that are to be bound to a new stream: they were restored, and the stream that they are of is gone.
//!
//! Knows: the text that stands for the stream's identity until a start has bound the shard. It names the
//! stream, as every identity does, and no stream was made at such a time. Must not know: how a shard is
//! bound (`queue::nats`).

use std::path::Path;

use crate::storage::error::StorageError;
use crate::storage::identity::ShardIdentity;
use crate::storage::options::StorageResources;
use crate::storage::store::Store;
use crate::types::ShardId;

const CACHE_BYTES: usize = 8 << 20;
/// Stands where an identity has the time at which the stream was made.
const NEW: &str = "@new";

/// Whether data with this origin are to be bound to the stream that a start finds or makes.
pub fn is_unbound(origin: &str) -> bool {
    origin.ends_with(NEW)
}

/// Has the next start bind a stopped shard to the stream that there is then. Its messages get sequences that
/// nobody knows yet: what the former stream held beyond these data is lost.
///
/// # Errors
/// When it is of no stream, or the disk refuses.
pub fn unbind(directory: &Path, shard: ShardId, shards: u16) -> Result<(), StorageError> {
    let store = Store::open(directory, shard, shards, &StorageResources::new(CACHE_BYTES, 1))?;
    let origin = store.meta()?.map(|meta| meta.stream).unwrap_or_default();
    match origin.split('@').next() {
        Some(stream) if !stream.is_empty() => {
            let identity = ShardIdentity::unopened(store.identity().service);
            store.begin_history(identity, &format!("{stream}{NEW}")).map(drop)
        }
        _ => Err(StorageError::DoesNotFit {
            path: directory.to_owned(),
            what: "it was filled without NATS, so that it has no stream".into(),
            step: "Restore it without --bind-new-streams, and start the service without --nats".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_unbound_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let resources = StorageResources::new(1 << 20, 1);
        let open = || Store::open(folder.path(), ShardId(0), 1, &resources).expect("a good shard");
        open().store_origin("").expect("it can be written");
        let refused = unbind(folder.path(), ShardId(0), 1).expect_err("it has no stream");
        assert!(refused.to_string().contains("filled without NATS"), "{refused}");
        for origin in ["EU_JOBS_0@17", "EU_JOBS_0@17+4"] {
            open().store_origin(origin).expect("it can be written");
            assert!(!is_unbound(origin));
            unbind(folder.path(), ShardId(0), 1).expect("it has one");
            let meta = open().meta().expect("readable").expect("there");
            assert_eq!((meta.stream.as_str(), is_unbound(&meta.stream)), ("EU_JOBS_0@new", true));
        }
    }
}

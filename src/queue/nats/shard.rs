//! A shard on NATS, as the tasks beside its writer see it.

use std::sync::Arc;

use crate::applied_sequence::AppliedSequenceReader;
use crate::queue::nats::consume::shard_stream::ShardStream;
use crate::queue::nats::publish::stream_publisher::StreamPublisher;
use crate::state_lock::StateLock;
use crate::storage::{StorageError, Store, StoreSlot};
use crate::types::ShardId;
use crate::writer::{Health, ShardState};

/// A shard that this node does not own, as far as it is needed: decisions about boards go into its stream.
#[derive(Clone)]
pub struct OtherShard {
    pub id: ShardId,
    pub publisher: StreamPublisher,
}

/// A shard with its stream; clone it freely.
#[derive(Clone)]
pub struct NatsShard {
    pub id: ShardId,
    pub state: Arc<StateLock>,
    /// The applied sequence, after readers can see it.
    pub applied: AppliedSequenceReader,
    pub health: Arc<Health>,
    pub store: Arc<StoreSlot>,
    pub publisher: StreamPublisher,
    pub stream: Arc<ShardStream>,
}

impl NatsShard {
    /// Whether it applies nothing until an operator acts.
    pub fn is_halted(&self) -> bool {
        matches!(self.health.state(), ShardState::Halted(_))
    }

    /// Reads from or writes to the shard's store, on a thread that may wait for the disk.
    ///
    /// # Errors
    /// When the store is closed at the moment, or the disk refuses.
    pub async fn with_store<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Store) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, String> {
        let slot = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || slot.get().and_then(|store| what(&store)));
        done.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

//! Reads the files of every shard, slowly: damage is found before somebody needs what is damaged.
//!
//! A start reads the logs and the checkpoint. Metadata, profiles and rejects are read when they are asked
//! for, which may be never, or when another node has to give what this one has lost. So each record is read
//! after the start, and once a day, which has RocksDB check its checksum.
//!
//! Knows: how fast, and how often. Must not know: what the records are, or who is told of damage.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::query::{Node, ShardHandle};
use crate::storage::{ReadPlace, StorageError};

/// Bytes that are read at once, and how often: 16 MiB a second, a small part of what a disk and a processor
/// give. 100 GB take two hours.
const SLICE_BYTES: usize = 1 << 20;
const PAUSE: Duration = Duration::from_millis(62);
/// From the end of one reading to the begin of the next.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the files of the node's shards, one after the other, for as long as it runs.
pub async fn read_files(node: Weak<Node>) {
    loop {
        let shards = node.upgrade().map_or(0, |node| node.shards.len());
        for index in 0..shards {
            if read_shard(&node, index).await.is_none() {
                return;
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Reads the files of one shard; `None` if the node has ended.
async fn read_shard(node: &Weak<Node>, index: usize) -> Option<()> {
    let (started, mut place) = (Instant::now(), ReadPlace::default());
    loop {
        let node = node.upgrade()?;
        let shard = node.shards.get(index)?;
        let id = shard.id;
        let read = read_slice(shard, place.clone()).await;
        drop(node);
        match read {
            Ok(next) if next.is_at_end() => {
                let (records, seconds) = (next.records, started.elapsed().as_secs());
                tracing::info!(shard = %id, records, seconds, "every record of the shard was read; no damage was found");
                return Some(());
            }
            Ok(next) => place = next,
            // Between a failed commit and the reopening. The store that comes next has the same records.
            Err(StorageError::Closed) => {}
            // The writer tells operators what its store has found.
            Err(error) => {
                tracing::debug!(shard = %id, %error, "not every record of the shard could be read");
                return Some(());
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads on from a place. Returns where the next slice begins.
async fn read_slice(shard: &ShardHandle, mut place: ReadPlace) -> Result<ReadPlace, StorageError> {
    let slot = Arc::clone(&shard.store);
    let read = tokio::task::spawn_blocking(move || {
        slot.get()?.read_slice(&mut place, SLICE_BYTES)?;
        Ok(place)
    });
    // Ended by a shutdown, or by an error of ours.
    read.await.unwrap_or(Err(StorageError::Stopped))
}

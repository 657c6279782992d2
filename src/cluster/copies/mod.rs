//! Copies of shards between nodes: an owner that has no data for a shard, or whose stream was purged past
//! what it has applied, fetches a copy from another owner, checks it, and goes on from there.
//!
//! Knows: who asks whom for what, and which floors hold the purging of the stream meanwhile. Must not know:
//! how a shard is copied (`storage`), staged and put in place (`snapshot`), or loaded (`writer`).
//!
//! - `protocol`: what nodes say to each other, as bytes
//! - `give`: answers others: makes copies, and reads them in chunks
//! - `given`: which copies are out, and the floors that they hold
//! - `choose`: which owner is asked
//! - `fetch`: gets one copy, in `pieces`; `receive`: its files as they arrive
//! - `heal`: watches what shards need, and tries until they have it

mod choose;
mod fetch;
mod give;
mod given;
mod heal;
mod pieces;
mod protocol;
mod receive;

use std::path::Path;
use std::sync::Arc;

use crate::cluster::copies::give::Giver;
use crate::cluster::copies::heal::Healer;
use crate::queue::nats::{JetStream, NatsShard, SetupError};
use crate::snapshot::StagedCopies;

/// Starts to give copies to other nodes, and to fetch those that this one needs.
///
/// # Errors
/// When no connection to NATS can be opened at all.
pub async fn start(
    nats: &Arc<JetStream>,
    shards: &[NatsShard],
    data_dir: &Path,
    staged: StagedCopies,
) -> Result<(), SetupError> {
    let connection = nats.open_copies_connection().await?;
    let giver = Giver::new(Arc::clone(nats), connection.clone(), shards.to_vec(), data_dir);
    let (answering, looking) = (Arc::clone(&giver), giver);
    tokio::spawn(async move { answering.answer_all().await });
    tokio::spawn(async move { looking.look_after().await });
    let healer = Arc::new(Healer::new(Arc::clone(nats), connection, staged));
    for shard in shards {
        let (healer, shard) = (Arc::clone(&healer), shard.clone());
        tokio::spawn(async move { healer.watch(&shard).await });
    }
    Ok(())
}

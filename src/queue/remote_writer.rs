//! Writes that wait until they are applied, to shards of other nodes: what carries them there.
//!
//! Knows: that the owner of a shard applies the jobs, and alone can tell what came of them. Must not know:
//! how they travel, or HTTP.

use futures_util::future::BoxFuture;

use crate::queue::error::NotPublished;
use crate::types::ShardId;

/// Has jobs applied by an owner of their shard.
pub trait RemoteWriter: Send + Sync {
    /// The most bytes that the jobs of a request may have, and that its answer may have.
    fn bytes_max(&self) -> usize;

    /// Sends jobs of one shard, and waits until an owner has applied them.
    ///
    /// # Arguments
    /// - `jobs`: a JSON array of 1 to 1,000 jobs.
    /// - `only_changed`: the results tell only whether each job changed anything (`results=changed`).
    ///
    /// Returns the body of what `POST /v1/jobs?wait=applied` answers: a JSON object with `token`, and
    /// `results` in the order of the jobs; or a problem.
    ///
    /// # Errors
    /// When no owner takes the jobs, or it is unknown whether one did.
    fn write(
        &self,
        shard: ShardId,
        jobs: Vec<u8>,
        only_changed: bool,
    ) -> BoxFuture<'_, Result<Vec<u8>, NotPublished>>;
}

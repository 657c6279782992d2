//! Settings of the disk.

use clap::Args;

#[derive(Debug, Clone, Args)]
pub struct StorageArgs {
    /// Memory for blocks read from disk (metadata), over all shards, in MiB
    #[arg(long, env = "RANKTREE_CACHE_MIB", value_name = "MIB", default_value_t = 256)]
    pub cache_mib: usize,
    /// Maximum time between checkpoints of a shard that changes, in seconds
    #[arg(long, env = "RANKTREE_CHECKPOINT_SECONDS", value_name = "SECONDS", default_value_t = 300)]
    pub checkpoint_seconds: u64,
    /// Number of changes after which a shard is checkpointed, if at least ten times the duration of its last
    /// checkpoint has passed since then. Otherwise it is checkpointed after as many changes as it has members
    #[arg(long, env = "RANKTREE_CHECKPOINT_CHANGES", value_name = "N", default_value_t = 1_000_000)]
    pub checkpoint_changes: u64,
    /// Memory to take from the system at the start and to keep, in MiB: for the growth of trees and members,
    /// so that no writer waits for the system while readers wait for it. Plan 100 bytes for each entry.
    /// Memory that the service frees stays with it then
    #[arg(long, env = "RANKTREE_TOUCH_MEMORY", value_name = "MIB", default_value_t = 0)]
    pub touch_memory: usize,
}

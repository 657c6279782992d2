//! Where the configuration and the data are, how the data are stored, and settings of boards.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::config::{duration, switch};

/// The file that holds the settings which flags and the environment do not decide.
#[derive(Debug, Clone, Args)]
pub struct FileArgs {
    /// TOML file with settings of the service. Its keys are the names of the flags, with _ instead of -
    #[arg(long, env = "RANKTREE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Where the data are; also for the subcommands that look at those of a stopped service.
#[derive(Debug, Clone, Args)]
pub struct DataArgs {
    /// The service's directory for all data; `serve` creates it if it is missing
    #[arg(long, env = "RANKTREE_DATA_DIR", value_name = "DIR", default_value = "./data")]
    pub data_dir: PathBuf,
}

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

#[derive(Debug, Clone, Args)]
pub struct BoardArgs {
    /// Reject jobs for boards that do not exist, instead of creating them with the defaults
    #[arg(long, env = "RANKTREE_NO_AUTO_CREATE", value_name = "true|false", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch(),
        hide_possible_values = true)]
    pub no_auto_create: bool,
    /// How long a shard keeps the ids of jobs: one that comes again within that time changes nothing. All
    /// nodes of the same streams must have the same
    #[arg(long, env = "RANKTREE_JOB_IDS_KEEP", value_name = "TIME", default_value = "1h", value_parser = duration)]
    pub job_ids_keep: Duration,
}

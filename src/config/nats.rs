//! Settings of NATS: which server, what the names begin with, and the streams that are created.

use std::time::Duration;

use clap::{ArgAction, Args};

use crate::config::{ConfigError, NatsAccessArgs, duration, switch};
use crate::queue::nats;

#[derive(Debug, Clone, Args)]
pub struct NatsArgs {
    #[command(flatten)]
    pub access: NatsAccessArgs,
    /// What the names of subjects and streams begin with
    #[arg(long, env = "RANKTREE_PREFIX", value_name = "PREFIX", default_value = "ranktree")]
    pub prefix: String,
    /// Maximum size of a shard's stream, in MiB, if this node creates it. The default is 16384, halved until
    /// the streams take at most half of the server's storage
    #[arg(long, env = "RANKTREE_NATS_STREAM_MIB", value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    pub nats_stream_mib: Option<u32>,
    /// Replicas of streams that are created
    #[arg(long, env = "RANKTREE_NATS_REPLICAS", value_name = "N", default_value_t = 1)]
    pub nats_replicas: u8,
    /// How many messages are kept in a stream after the checkpoints of all nodes hold them, so that an older
    /// copy of the data can catch up. Fewer are kept if they would take more than half of the stream's
    /// maximum size
    #[arg(long, env = "RANKTREE_NATS_KEEP", value_name = "N", default_value_t = 100_000)]
    pub nats_keep: u64,
    /// Never purge the streams. Then you must purge them yourself, and only messages that the checkpoints of
    /// all nodes hold
    #[arg(long, env = "RANKTREE_NATS_NO_PURGE", value_name = "true|false", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch(),
        hide_possible_values = true)]
    pub nats_no_purge: bool,
    /// How long another node may be silent before this node purges messages that the other's last checkpoint
    /// does not hold. A node that comes back later may have to be given a copy of another's data
    #[arg(long, env = "RANKTREE_NATS_FORGET", value_name = "TIME", default_value = "24h", value_parser = duration)]
    pub nats_forget: Duration,
    /// How long a stream must contradict what its shard has applied before the shard halts, in seconds. NATS
    /// servers that are starting may take that long until they report all that they store
    #[arg(long, env = "RANKTREE_NATS_HALT_SECONDS", value_name = "SECONDS", default_value_t = 60)]
    pub nats_halt_seconds: u64,
}

impl NatsArgs {
    /// What the queue needs to know; `None` without NATS.
    ///
    /// # Errors
    /// When the prefix is none, with NATS or without, or NATS cannot be connected to this way.
    ///
    /// # Arguments
    /// `accept_gap`, `accept_diverged`: shards, for this one run.
    pub fn resolve(
        self,
        accept_gap: Vec<u16>,
        accept_diverged: Vec<u16>,
    ) -> Result<Option<nats::Settings>, ConfigError> {
        let Self {
            access,
            prefix,
            nats_stream_mib,
            nats_replicas,
            nats_keep,
            nats_no_purge,
            nats_forget,
            nats_halt_seconds,
        } = self;
        check_prefix(&prefix)?;
        Ok(access.resolve(&prefix)?.map(|access| nats::Settings {
            access,
            prefix,
            stream_bytes: nats_stream_mib.map(|mib| i64::from(mib) << 20),
            replicas: usize::from(nats_replicas),
            accept_gap,
            accept_diverged,
            halt_after: Duration::from_secs(nats_halt_seconds),
            forget_after: nats_forget,
            purge_keeps: (!nats_no_purge).then_some(nats_keep),
        }))
    }
}

/// Whether names of subjects and streams can begin so.
///
/// # Errors
/// When they cannot.
pub fn check_prefix(prefix: &str) -> Result<(), ConfigError> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=32).contains(&prefix.len()) && prefix.bytes().all(letter) {
        Ok(())
    } else {
        Err(ConfigError::Prefix(prefix.to_owned()))
    }
}

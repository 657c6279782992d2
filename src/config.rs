//! What an operator decides: flags over environment over file over defaults.
//!
//! The only module that reads the environment, through clap. Must not know what the settings do.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use serde::Deserialize;
use thiserror::Error;

use crate::queue::jetstream::Settings;
use crate::types::MAX_SHARDS;

/// Flags of `ranktree serve`. Each is also an environment variable and a key of the configuration file.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Address to serve HTTP on; port 0 picks a free one [default: 127.0.0.1:8080]
    #[arg(long, env = "RANKTREE_LISTEN", value_name = "ADDRESS", value_parser = parse_address)]
    pub listen: Option<SocketAddr>,
    /// Directory for all data; created if missing [default: ./data]
    #[arg(long, env = "RANKTREE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Shards to spread members over, 1 to 64; fixed once the data directory exists [default: 1]
    #[arg(long, env = "RANKTREE_SHARDS", value_name = "N")]
    pub shards: Option<u16>,
    /// Reject jobs for boards that do not exist, instead of creating them with the defaults
    #[arg(long, env = "RANKTREE_NO_AUTO_CREATE", value_name = "true|false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub no_auto_create: Option<bool>,
    /// NATS server, or several separated by commas: jobs come from its JetStream streams, and writes go there. Without
    /// it, the service is its own queue
    #[arg(long, env = "RANKTREE_NATS", value_name = "URL")]
    pub nats: Option<String>,
    /// What the names of subjects and streams begin with [default: ranktree]
    #[arg(long, env = "RANKTREE_PREFIX", value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// Most that a shard's stream may hold, in MiB, for streams that are created [default: 1024]
    #[arg(long, env = "RANKTREE_NATS_STREAM_MIB", value_name = "MIB")]
    pub nats_stream_mib: Option<u32>,
    /// Replicas of streams that are created [default: 1]
    #[arg(long, env = "RANKTREE_NATS_REPLICAS", value_name = "N")]
    pub nats_replicas: Option<u8>,
    /// Messages kept in a stream after a checkpoint holds them, so that an older copy of the data can catch up
    /// [default: 100000]
    #[arg(long, env = "RANKTREE_NATS_KEEP", value_name = "N")]
    pub nats_keep: Option<u64>,
    /// Never purge the streams: somebody else does
    #[arg(long, env = "RANKTREE_NATS_NO_PURGE", value_name = "true|false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub nats_no_purge: Option<bool>,
    /// Go on, this once, although this shard's stream does not continue what was applied; may be given several times
    #[arg(long, value_name = "SHARD")]
    pub accept_gap: Vec<u16>,
    /// Listen beyond this machine although anyone who reaches the port may read and write
    #[arg(long, env = "RANKTREE_INSECURE", value_name = "true|false", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub insecure: Option<bool>,
    /// Memory for blocks read from disk (metadata), over all shards, in MiB [default: 256]
    #[arg(long, env = "RANKTREE_CACHE_MIB", value_name = "MIB")]
    pub cache_mib: Option<usize>,
    /// Longest time between checkpoints of a shard that changes, in seconds [default: 300]
    #[arg(long, env = "RANKTREE_CHECKPOINT_SECONDS", value_name = "SECONDS")]
    pub checkpoint_seconds: Option<u64>,
    /// Changes since the last checkpoint after which a shard is checkpointed; as many as members for shards that hold
    /// more members than that [default: 1000000]
    #[arg(long, env = "RANKTREE_CHECKPOINT_CHANGES", value_name = "N")]
    pub checkpoint_changes: Option<u64>,
    /// TOML file with any of these settings, its keys named as the flags with _ for -
    #[arg(long, env = "RANKTREE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<SocketAddr>,
    data_dir: Option<PathBuf>,
    shards: Option<u16>,
    no_auto_create: Option<bool>,
    insecure: Option<bool>,
    nats: Option<String>,
    prefix: Option<String>,
    nats_stream_mib: Option<u32>,
    nats_replicas: Option<u8>,
    nats_keep: Option<u64>,
    nats_no_purge: Option<bool>,
    cache_mib: Option<usize>,
    checkpoint_seconds: Option<u64>,
    checkpoint_changes: Option<u64>,
}

/// A service's settings, decided and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    pub listen: SocketAddr,
    pub data_dir: PathBuf,
    /// 1 to 64.
    pub shards: u16,
    pub auto_create: bool,
    /// Where jobs come from; `None` for the embedded queue.
    pub nats: Option<Settings>,
    pub cache_bytes: usize,
    pub checkpoint_interval: Duration,
    pub checkpoint_changes: u64,
}

/// Why settings cannot be used; the text says which and what to do.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("the configuration file {} is not right: {error}", path.display())]
    Malformed { path: PathBuf, error: Box<toml::de::Error> },
    #[error("--prefix is 1 to 32 of the letters A-Z and a-z, digits, _ and -, not {0:?}")]
    Prefix(String),
    #[error("--shards is 1 to {MAX_SHARDS}, not {0}")]
    Shards(u16),
    #[error(
        "{0} can be reached from other machines, and this version has no access tokens; listen on a loopback address such as 127.0.0.1:8080, or pass --insecure"
    )]
    Exposed(SocketAddr),
}

impl ServeConfig {
    /// Decides every setting.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn resolve(args: ServeArgs) -> Result<Self, ConfigError> {
        let file = args.config.as_deref().map(read).transpose()?.unwrap_or_default();
        let listen = args.listen.or(file.listen).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080)));
        let shards = args.shards.or(file.shards).unwrap_or(1);
        if !(1..=MAX_SHARDS).contains(&shards) {
            return Err(ConfigError::Shards(shards));
        }
        if !(listen.ip().is_loopback() || args.insecure.or(file.insecure).unwrap_or(false)) {
            return Err(ConfigError::Exposed(listen));
        }
        let nats = args.nats.or(file.nats);
        let prefix = args.prefix.or(file.prefix).unwrap_or_else(|| "ranktree".to_owned());
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=32).contains(&prefix.len()) || !prefix.bytes().all(letter) {
            return Err(ConfigError::Prefix(prefix));
        }
        let keeps = args.nats_keep.or(file.nats_keep).unwrap_or(100_000);
        let purges = !args.nats_no_purge.or(file.nats_no_purge).unwrap_or(false);
        let nats = nats.map(|url| Settings {
            url,
            prefix,
            stream_bytes: i64::from(args.nats_stream_mib.or(file.nats_stream_mib).unwrap_or(1_024)) << 20,
            replicas: usize::from(args.nats_replicas.or(file.nats_replicas).unwrap_or(1)),
            accept_gap: args.accept_gap,
            purge_keeps: purges.then_some(keeps),
        });
        let seconds = args.checkpoint_seconds.or(file.checkpoint_seconds).unwrap_or(300);
        Ok(Self {
            listen,
            data_dir: args.data_dir.or(file.data_dir).unwrap_or_else(default_data_dir),
            shards,
            nats,
            auto_create: !args.no_auto_create.or(file.no_auto_create).unwrap_or(false),
            cache_bytes: args.cache_mib.or(file.cache_mib).unwrap_or(256) << 20,
            checkpoint_interval: Duration::from_secs(seconds.max(1)),
            checkpoint_changes: args.checkpoint_changes.or(file.checkpoint_changes).unwrap_or(1_000_000),
        })
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an IP address and a port are expected, for example 127.0.0.1:8080 or [::1]:8080")
}

/// Where a stopped service's data are, for the subcommands that look at them.
#[derive(Debug, Clone, Default, Args)]
pub struct DataArgs {
    /// The service's data directory [default: ./data]
    #[arg(long, env = "RANKTREE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The service's TOML file, which may name the data directory
    #[arg(long, env = "RANKTREE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl DataArgs {
    /// # Errors
    /// When the file cannot be read, or is not right.
    pub fn data_dir(&self) -> Result<PathBuf, ConfigError> {
        let file = self.config.as_deref().map(read).transpose()?.unwrap_or_default();
        Ok(self.data_dir.clone().or(file.data_dir).unwrap_or_else(default_data_dir))
    }
}

fn default_data_dir() -> PathBuf {
    PathBuf::from("./data")
}

fn read(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
    toml::from_str(&text)
        .map_err(|error| ConfigError::Malformed { path: path.to_owned(), error: Box::new(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_beat_the_file_and_the_file_beats_the_defaults() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("ranktree.toml");
        std::fs::write(&path, "shards = 4\ndata_dir = \"/srv/ranks\"\n").expect("the file is written");
        let args = ServeArgs { config: Some(path.clone()), shards: Some(2), ..ServeArgs::default() };
        let config = ServeConfig::resolve(args).expect("good settings");
        assert_eq!((config.shards, config.data_dir), (2, PathBuf::from("/srv/ranks")));
        std::fs::write(&path, "shard = 4\n").expect("the file is written");
        let args = ServeArgs { config: Some(path), ..ServeArgs::default() };
        let error = ServeConfig::resolve(args).expect_err("an unknown key").to_string();
        assert!(error.contains("shard"), "{error}");
    }

    #[test]
    fn what_the_environment_or_a_flag_says_no_to_is_off_whatever_the_file_says() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("ranktree.toml");
        std::fs::write(&path, "no_auto_create = true\ndata_dir = \"/srv/ranks\"\n")
            .expect("the file is written");
        for (given, auto_create) in [(None, false), (Some(false), true), (Some(true), false)] {
            let args =
                ServeArgs { config: Some(path.clone()), no_auto_create: given, ..ServeArgs::default() };
            assert_eq!(ServeConfig::resolve(args).expect("good settings").auto_create, auto_create);
        }
        let args = DataArgs { config: Some(path), data_dir: None };
        assert_eq!(args.data_dir().expect("good settings"), PathBuf::from("/srv/ranks"));
        assert_eq!(DataArgs::default().data_dir().expect("good settings"), PathBuf::from("./data"));
    }

    #[test]
    fn an_exposed_address_needs_a_word_of_consent() {
        let exposed = ServeArgs { listen: "0.0.0.0:0".parse().ok(), ..ServeArgs::default() };
        assert!(matches!(ServeConfig::resolve(exposed.clone()), Err(ConfigError::Exposed(_))));
        assert!(ServeConfig::resolve(ServeArgs { insecure: Some(true), ..exposed }).is_ok());
        let many = ServeArgs { shards: Some(65), ..ServeArgs::default() };
        assert!(matches!(ServeConfig::resolve(many), Err(ConfigError::Shards(65))));
    }
}

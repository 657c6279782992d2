//! What an operator decides: flags over environment over file over defaults.
//!
//! The only module that reads the environment, through clap. Must not know what the settings do.
//!
//! # Adding a setting
//! A setting is one field of one group ([`HttpArgs`], [`RedisListenArgs`], [`NatsArgs`], [`StorageArgs`],
//! [`DataArgs`], [`BoardArgs`], [`TracesArgs`]):
//!
//! ```ignore
//! /// Replicas of streams that are created
//! #[arg(long, env = "RANKTREE_NATS_REPLICAS", value_name = "N", default_value_t = 1)]
//! pub nats_replicas: u8,
//! ```
//!
//! That makes the flag `--nats-replicas`, the variable `RANKTREE_NATS_REPLICAS`, the key `nats_replicas` of
//! the configuration file, its help, its default and its checks, and lists it in `ranktree config print`.
//! What else there is to say, clap's own attributes say:
//!
//! - a setting without a default is an `Option`; of several values, a `Vec` with `value_delimiter = ','` (an
//!   array in the file);
//! - a switch takes what [`switch`] gives: `default_value = "false", action = ArgAction::Set, num_args =
//!   0..=1, require_equals = true, default_missing_value = "true", value_parser = switch(),
//!   hide_possible_values = true`, so that the environment or a flag can say no to a file's yes;
//! - a secret has `hide_env_values = true`, which is also what masks it wherever settings are printed (of a
//!   `URL`, what is before the @); a file can hold it, and an argument shows it to everybody on the machine,
//!   so prefer a setting that names a file, and a variable without a flag beside it, which `nats_access`
//!   lists for `config print`;
//! - `value_name = "FILE"` and `"DIR"` say that the value names one, which `ranktree config check` then looks
//!   at; of a `"SECRET_FILE"` and a `"TOKENS_FILE"`, every command warns that others can read or change it;
//! - that one setting needs another, or rules it out, is said where they are resolved, as
//!   [`ConfigError::RequiresOther`] and [`ConfigError::Conflicting`] in [`HttpArgs::resolve`]. clap's
//!   `requires` and `conflicts_with` do not do: what the file says is a default to clap, and defaults are not
//!   held against them;
//! - what has no `env` is no setting but a word for this one run, such as `--accept-gap`: no file has it.
//!
//! Then `ranktree config example > deploy/ranktree.example.toml` puts it into the example, where a test
//! expects it.
//!
//! A whole new group is flattened into [`ServeArgs`]; subcommands flatten the groups they need, and
//! [`FileArgs`]. One file serves them all: it may have the keys of every subcommand, and each takes its own.

use std::time::Duration;

mod client;
mod data;
mod error;
mod file;
mod http;
mod layers;
mod log_levels;
mod misspelt_variables;
mod nats;
mod nats_access;
mod proxy;
mod redis;
mod serve;
mod traces;

pub use client::{ClientArgs, RedisArgs};
pub use data::{BoardArgs, DataArgs, FileArgs, StorageArgs};
pub use error::ConfigError;
pub use http::{HttpArgs, HttpConfig, TlsFiles, TokenSource};
pub use layers::{
    LoadError, NamedPath, Secrecy, Setting, SettingOrigin, Settings, default_settings, given_words, load,
    load_from,
};
pub use log_levels::log_levels;
pub use misspelt_variables::misspelt_variables;
pub use nats::{NatsArgs, check_prefix};
pub use nats_access::NatsAccessArgs;
pub use proxy::{NamedProxy, ProxyVariables};
pub use redis::RedisListenArgs;
pub use serve::{ServeArgs, ServeConfig};
pub use traces::TracesArgs;

/// What a switch may be told: true or false, yes or no, on or off, 1 or 0.
fn switch() -> clap::builder::BoolishValueParser {
    clap::builder::BoolishValueParser::new()
}

/// Reads `500ms`, `60s`, `5m`, `1h`.
///
/// # Errors
/// When the text is no duration, or a negative one.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write it like 60s or 5m");
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| wrong())
}

//! Settings of the HTTP side: where it listens, and who may reach it.

use std::net::SocketAddr;

use clap::{ArgAction, Args};

use crate::config::{ConfigError, switch};

#[derive(Debug, Clone, Args)]
pub struct HttpArgs {
    /// Address to serve HTTP on; port 0 picks a free one
    #[arg(long, env = "RANKTREE_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8080",
        value_parser = parse_address)]
    pub listen: SocketAddr,
    /// Listen beyond this machine although anyone who reaches the port may read and write
    #[arg(long, env = "RANKTREE_INSECURE", value_name = "true|false", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch(),
        hide_possible_values = true)]
    pub insecure: bool,
}

impl HttpArgs {
    /// The address to listen on.
    ///
    /// # Errors
    /// When others could reach it, and nobody said that they may.
    pub fn resolve(&self) -> Result<SocketAddr, ConfigError> {
        if self.listen.ip().is_loopback() || self.insecure {
            Ok(self.listen)
        } else {
            Err(ConfigError::Exposed(self.listen))
        }
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "an IP address and a port are expected, for example 127.0.0.1:8080 or [::1]:8080")
}

//! How a subcommand that talks to a running service proves who it is, and whom it trusts.

use std::path::PathBuf;

use clap::Args;

use crate::config::ConfigError;

/// The variable that holds a token. There is no flag for it: arguments can be read by everybody on the machine.
const TOKEN: &str = "RANKTREE_TOKEN";

#[derive(Debug, Clone, Default, Args)]
pub struct ClientArgs {
    /// File that holds a bearer token; without it, the token is what the environment variable `RANKTREE_TOKEN` says, if
    /// anything
    #[arg(long, value_name = "FILE", env = "RANKTREE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,

    /// PEM file of certificates that may sign the service's, for https; without it, those that the system trusts
    #[arg(long, value_name = "FILE", env = "RANKTREE_CA")]
    pub ca: Option<PathBuf>,
}

impl ClientArgs {
    /// The token to send, if there is one.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn token(&self) -> Result<Option<String>, ConfigError> {
        let token = match &self.token_file {
            Some(path) => Some(
                std::fs::read_to_string(path)
                    .map_err(|error| ConfigError::TokenFile { path: path.clone(), error })?,
            ),
            None => std::env::var(TOKEN).ok(),
        };
        Ok(token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()))
    }
}

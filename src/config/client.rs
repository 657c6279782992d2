//! How a subcommand that talks to a running service proves who it is, and whom it trusts; and to a Redis.
//!
//! A secret is in a file, or in the environment. There is no flag for one: arguments can be read by everybody
//! on the machine.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::config::ConfigError;
use crate::regular_file::read_text;

const TOKEN: &str = "RANKTREE_TOKEN";
const REDIS_PASSWORD: &str = "RANKTREE_REDIS_PASSWORD";
/// Variables without a flag.
pub(super) const SECRETS: [&str; 2] = [TOKEN, REDIS_PASSWORD];

/// For every subcommand that sends a token: import, export, load.
#[derive(Debug, Clone, Default, Args)]
pub struct ClientArgs {
    /// File whose first line is a bearer token. Without it, the token is taken from the environment variable
    /// `RANKTREE_TOKEN`, if that is set
    #[arg(long, value_name = "SECRET_FILE", env = "RANKTREE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,

    /// PEM file of certificates to trust for https: of authorities, or the service's own. Without it, those
    /// that the system trusts
    #[arg(long, value_name = "FILE", env = "RANKTREE_CA")]
    pub ca: Option<PathBuf>,

    /// The proxy to ask the service by, such as `http://proxy.example:3128`; none: without one. Without it,
    /// the environment variables `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` decide, but for
    /// services on this machine, which are asked directly, and for http:// with a token, which is refused:
    /// the proxy would see the token
    #[arg(long, value_name = "PROXY")]
    pub proxy: Option<String>,
}

impl ClientArgs {
    /// The token to send, if there is one.
    ///
    /// # Errors
    /// When its file cannot be read, or has none.
    pub fn token(&self) -> Result<Option<String>, ConfigError> {
        secret("the token", self.token_file.as_deref(), TOKEN)
    }
}

#[derive(Debug, Clone, Default, Args)]
pub struct RedisArgs {
    /// File whose first line is the password of Redis. Without it, the password is taken from the environment
    /// variable `RANKTREE_REDIS_PASSWORD`, if that is set
    #[arg(long, value_name = "SECRET_FILE", env = "RANKTREE_REDIS_PASSWORD_FILE")]
    pub redis_password_file: Option<PathBuf>,
}

impl RedisArgs {
    /// # Errors
    /// When its file cannot be read, or has none.
    pub fn password(&self) -> Result<Option<String>, ConfigError> {
        secret("the password of Redis", self.redis_password_file.as_deref(), REDIS_PASSWORD)
    }
}

fn secret(what: &'static str, file: Option<&Path>, variable: &str) -> Result<Option<String>, ConfigError> {
    let Some(path) = file else {
        let secret = std::env::var(variable).unwrap_or_default();
        return Ok(Some(secret.trim().to_owned()).filter(|secret| !secret.is_empty()));
    };
    let failed = |error| ConfigError::SecretFile { what, path: path.to_owned(), error };
    let text = read_text(path).map_err(failed)?;
    match text.lines().next().map(str::trim) {
        Some(secret) if !secret.is_empty() => Ok(Some(secret.to_owned())),
        // An operator who names a file means to have a secret. Going on without one would only lead to a
        // refusal later.
        _ => Err(failed(std::io::Error::other("its first line is empty"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_first_line_is_the_secret() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let client = ClientArgs { token_file: Some(file.path().to_owned()), ..ClientArgs::default() };
        for (text, expect) in [
            ("rkt_a\n", Some("rkt_a")),
            (" rkt_a \r\nmore\n", Some("rkt_a")),
            ("", None),
            ("\nrkt_a\n", None),
        ] {
            std::fs::write(file.path(), text).expect("it can be written");
            assert_eq!(client.token().ok().flatten().as_deref(), expect, "{text:?}");
        }
        let missing = RedisArgs { redis_password_file: Some("/no/such/file".into()) };
        let said = missing.password().expect_err("it is not there").to_string();
        assert!(said.starts_with("cannot read the password of Redis from /no/such/file: "), "{said}");
    }
}

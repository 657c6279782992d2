//! Tokens and certificates from where the operator keeps them, read again when they change.
//!
//! Knows: files, and how often to look at them. What is in them is for `access` and `http` to judge. A file that is not
//! right when the service starts ends the start; one that is not right later leaves what was in force, and the log says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::access::{ActiveTokens, Tokens};
use crate::config::{HttpConfig, TlsFiles, TokenSource};
use crate::http::Tls;

/// How often files are looked at. What they hold is compared and not their times: these are too coarse on some file
/// systems, and the files are small.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Why there are no credentials.
#[derive(Debug, Error)]
pub enum CredentialsError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{whence} cannot be used: {reason}")]
    Unusable { whence: String, reason: String },
}

/// What is in force.
#[derive(Default)]
pub struct Credentials {
    pub access: Option<Arc<ActiveTokens>>,
    pub tls: Option<Arc<Tls>>,
    files: Vec<Followed>,
}

/// Files that are in force together.
struct Followed {
    /// For people: "the tokens in tokens.toml".
    name: String,
    paths: Vec<PathBuf>,
    /// What was last seen in them, good or not, so that each change is told of once.
    seen: Result<Vec<Vec<u8>>, String>,
    put_in_force: PutInForce,
}

/// Puts what the files hold in force, or says why not.
type PutInForce = Box<dyn Fn(&[Vec<u8>]) -> Result<(), String> + Send>;

impl Credentials {
    /// Reads what the configuration names.
    ///
    /// # Errors
    /// When it cannot be read or used.
    pub fn load(config: &HttpConfig) -> Result<Self, CredentialsError> {
        let mut credentials = Self::default();
        credentials.load_tokens(config.tokens.as_ref())?;
        credentials.load_tls(config.tls.as_ref())?;
        if let Some(access) = &credentials.access {
            log_names(&access.tokens());
        }
        Ok(credentials)
    }

    /// All that keeps a start from using what the configuration names.
    #[must_use]
    pub fn problems(config: &HttpConfig) -> Vec<CredentialsError> {
        let mut credentials = Self::default();
        let loaded =
            [credentials.load_tokens(config.tokens.as_ref()), credentials.load_tls(config.tls.as_ref())];
        loaded.into_iter().filter_map(Result::err).collect()
    }

    fn load_tokens(&mut self, source: Option<&TokenSource>) -> Result<(), CredentialsError> {
        match source {
            None => {}
            Some(TokenSource::Text(text)) => {
                let whence = || "the token list in the settings".to_owned();
                self.access = Some(Arc::new(ActiveTokens::new(tokens(text.as_bytes(), whence)?)));
            }
            Some(TokenSource::File(path)) => {
                let name = format!("the tokens file {}", path.display());
                let text = read(path)?;
                let access = Arc::new(ActiveTokens::new(tokens(&text, || name.clone())?));
                self.access = Some(Arc::clone(&access));
                let put_in_force: PutInForce = Box::new(move |texts| {
                    let text = texts.first().map(Vec::as_slice).unwrap_or_default();
                    let tokens = parse_tokens(text)?;
                    log_names(&tokens);
                    access.replace(tokens);
                    Ok(())
                });
                self.follow(name, vec![path.clone()], vec![text], put_in_force);
            }
        }
        Ok(())
    }

    fn load_tls(&mut self, files: Option<&TlsFiles>) -> Result<(), CredentialsError> {
        let Some(TlsFiles { cert, key }) = files else { return Ok(()) };
        let name = format!("the certificate {} with the key {}", cert.display(), key.display());
        let paths = vec![cert.clone(), key.clone()];
        let (certificates, key) = (read(cert)?, read(key)?);
        let tls = Tls::new(&certificates, &key).map_err(|error| CredentialsError::Unusable {
            whence: name.clone(),
            reason: error.to_string(),
        })?;
        let tls = Arc::new(tls);
        self.tls = Some(Arc::clone(&tls));
        let put_in_force: PutInForce = Box::new(move |texts| {
            let text = |index| texts.get(index).map(Vec::as_slice).unwrap_or_default();
            tls.replace(text(0), text(1)).map_err(|error| error.to_string())
        });
        self.follow(name, paths, vec![certificates, key], put_in_force);
        Ok(())
    }

    fn follow(&mut self, name: String, paths: Vec<PathBuf>, seen: Vec<Vec<u8>>, put_in_force: PutInForce) {
        self.files.push(Followed { name, paths, seen: Ok(seen), put_in_force });
    }

    /// Looks at the files for as long as the service runs.
    pub fn keep_up(&mut self) {
        let mut files = std::mem::take(&mut self.files);
        if files.is_empty() {
            return;
        }
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                // A file on a network may keep its reader waiting.
                let look = move || {
                    files.iter_mut().for_each(Followed::look);
                    files
                };
                match tokio::task::spawn_blocking(look).await {
                    Ok(back) => files = back,
                    Err(_) => return,
                }
            }
        });
    }
}

impl Followed {
    /// Reads the files, and puts what they hold in force if it is not what they held before.
    fn look(&mut self) {
        let found: Result<Vec<_>, _> = self.paths.iter().map(|path| read(path)).collect();
        let found = found.map_err(|error| error.to_string());
        if found == self.seen {
            return;
        }
        let outcome = match &found {
            Ok(texts) => (self.put_in_force)(texts),
            Err(error) => Err(error.clone()),
        };
        match outcome {
            Ok(()) => tracing::info!("{} changed and is in force", self.name),
            Err(reason) => {
                tracing::error!(
                    "{} changed and cannot be used, so that the old stays in force: {reason}",
                    self.name
                );
            }
        }
        self.seen = found;
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CredentialsError> {
    std::fs::read(path).map_err(|error| CredentialsError::Unreadable { path: path.to_owned(), error })
}

fn tokens(text: &[u8], whence: impl Fn() -> String) -> Result<Tokens, CredentialsError> {
    parse_tokens(text).map_err(|reason| CredentialsError::Unusable { whence: whence(), reason })
}

fn parse_tokens(text: &[u8]) -> Result<Tokens, String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    Tokens::parse(text).map_err(|error| error.to_string())
}

fn log_names(tokens: &Tokens) {
    tracing::info!(tokens = tokens.names().collect::<Vec<_>>().join(", "), "tokens read");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Secret;
    use crate::config::ServeConfig;

    fn config(tokens: Option<TokenSource>) -> HttpConfig {
        HttpConfig { tokens, ..ServeConfig::of(&[]).expect("good settings").http }
    }

    #[test]
    fn a_change_is_in_force_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tokens.toml");
        let secrets: Vec<_> = (0..3).map(|_| Secret::random().expect("random numbers")).collect();
        let write = |text: &str| std::fs::write(&path, text).expect("it can be written");
        let list = |secret: &Secret| {
            format!("[[token]]\nname = \"a\"\nscope = \"read\"\nsha256 = \"{}\"\n", secret.digest())
        };
        write(&list(&secrets[0]));
        let mut credentials =
            Credentials::load(&config(Some(TokenSource::File(path.clone())))).expect("a good file");
        let access = credentials.access.clone().expect("there are tokens");
        let mut check = |in_force: usize| {
            credentials.files.iter_mut().for_each(Followed::look);
            for (index, secret) in secrets.iter().enumerate() {
                assert_eq!(access.tokens().find(secret.reveal()).is_some(), index == in_force, "{index}");
            }
        };
        check(0);
        write(&list(&secrets[1]));
        check(1);
        write("");
        check(1);
        write("[[token]]");
        check(1);
        std::fs::remove_file(&path).expect("it is there");
        check(1);
        write(&list(&secrets[2]));
        check(2);
    }

    #[test]
    fn a_start_without_good_credentials_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tokens.toml");
        let guarded = config(Some(TokenSource::File(path.clone())));
        let refused = || Credentials::load(&guarded).map(|_| ()).expect_err("it is refused").to_string();
        assert!(refused().starts_with("cannot read "), "{}", refused());
        std::fs::write(&path, "").expect("it can be written");
        assert!(refused().contains("there are no tokens in it"), "{}", refused());
        let text = config(Some(TokenSource::Text("x".to_owned())));
        assert!(Credentials::load(&text).is_err());
        assert!(Credentials::load(&config(None)).expect("nothing to read").access.is_none());
    }
}

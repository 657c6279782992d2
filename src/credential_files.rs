//! The files that hold tokens and certificates, reloaded when they change.
//!
//! Knows: files, and how often to look at them. `access` and `http` judge what is in them. A file that cannot
//! be used ends a start. If a file cannot be used later, what was loaded before stays in force, and the log
//! says so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::access::{ActiveTokens, Secret, Tokens};
use crate::config::{HttpConfig, TlsFiles, TokenSource};
use crate::connections::Tls;
use crate::regular_file::read_regular;

/// How often files are looked at. Their content is compared: the files are small, and their times are too
/// coarse on some file systems.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Why a file of credentials is not in force.
#[derive(Debug, Error)]
pub enum CredentialFilesError {
    #[error("cannot read {}, which --tokens, --tls-cert or --tls-key names: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{whence} cannot be used: {reason}")]
    Unusable { whence: String, reason: String },
}

/// What was loaded and is in force.
#[derive(Default)]
pub struct CredentialFiles {
    pub access: Option<Arc<ActiveTokens>>,
    pub tls: Option<Arc<Tls>>,
    files: Vec<WatchedFiles>,
}

/// Files that are reloaded together: the tokens, or a certificate and its key.
struct WatchedFiles {
    /// For people: "the tokens in tokens.toml".
    name: String,
    paths: Vec<PathBuf>,
    /// What was last seen in them, usable or not, so that each change is logged once.
    seen: Result<Vec<Vec<u8>>, String>,
    reload: Reload,
}

/// Puts what the files hold in force, or says why it cannot be used.
type Reload = Box<dyn Fn(&[Vec<u8>]) -> Result<(), String> + Send>;

impl CredentialFiles {
    /// Reads what the configuration names.
    ///
    /// # Errors
    /// When it cannot be read or used.
    pub fn load(config: &HttpConfig) -> Result<Self, CredentialFilesError> {
        let mut credentials = Self::default();
        credentials.load_tokens(config.tokens.as_ref())?;
        credentials.load_tls(config.tls.as_ref())?;
        if let Some(access) = &credentials.access {
            log_names(&access.tokens());
        }
        Ok(credentials)
    }

    /// All that keeps a start from using what the configuration names.
    pub fn problems(config: &HttpConfig) -> Vec<CredentialFilesError> {
        let mut credentials = Self::default();
        let loaded =
            [credentials.load_tokens(config.tokens.as_ref()), credentials.load_tls(config.tls.as_ref())];
        loaded.into_iter().filter_map(Result::err).collect()
    }

    fn load_tokens(&mut self, source: Option<&TokenSource>) -> Result<(), CredentialFilesError> {
        match source {
            None => {}
            Some(TokenSource::Text(text)) => {
                let whence = || "the token list in the settings".to_owned();
                self.access = Some(Arc::new(ActiveTokens::new(tokens(text.as_bytes(), whence)?)));
            }
            Some(TokenSource::File(path)) => {
                let name = format!("the tokens file {}", path.display());
                if path.to_string_lossy().starts_with(Secret::PREFIX) {
                    let reason =
                        "it looks like a token, and not like the name of a file. Give the name of a file, and replace the token: everybody on this machine can read arguments"
                            .to_owned();
                    return Err(CredentialFilesError::Unusable {
                        whence: "the value of --tokens".to_owned(),
                        reason,
                    });
                }
                let text = read(path)?;
                let access = Arc::new(ActiveTokens::new(tokens(&text, || name.clone())?));
                self.access = Some(Arc::clone(&access));
                let reload: Reload = Box::new(move |texts| {
                    let text = texts.first().map(Vec::as_slice).unwrap_or_default();
                    let tokens = parse_tokens(text)?;
                    log_names(&tokens);
                    access.replace(tokens);
                    Ok(())
                });
                self.watch_also(name, vec![path.clone()], vec![text], reload);
            }
        }
        Ok(())
    }

    fn load_tls(&mut self, files: Option<&TlsFiles>) -> Result<(), CredentialFilesError> {
        let Some(TlsFiles { cert, key }) = files else { return Ok(()) };
        let name = format!("the certificate {} with the key {}", cert.display(), key.display());
        let paths = vec![cert.clone(), key.clone()];
        let (certificates, key) = (read(cert)?, read(key)?);
        let tls = Tls::new(&certificates, &key).map_err(|error| CredentialFilesError::Unusable {
            whence: name.clone(),
            reason: error.to_string(),
        })?;
        let tls = Arc::new(tls);
        self.tls = Some(Arc::clone(&tls));
        let reload: Reload = Box::new(move |texts| {
            let text = |index| texts.get(index).map(Vec::as_slice).unwrap_or_default();
            tls.replace(text(0), text(1)).map_err(|error| error.to_string())
        });
        self.watch_also(name, paths, vec![certificates, key], reload);
        Ok(())
    }

    fn watch_also(&mut self, name: String, paths: Vec<PathBuf>, seen: Vec<Vec<u8>>, reload: Reload) {
        self.files.push(WatchedFiles { name, paths, seen: Ok(seen), reload });
    }

    /// Watches the files for as long as the service runs.
    pub fn watch(&mut self) {
        let mut files = std::mem::take(&mut self.files);
        if files.is_empty() {
            return;
        }
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(CHECK_INTERVAL).await;
                // A file on a network may keep its reader waiting.
                let look = move || {
                    files.iter_mut().for_each(WatchedFiles::look);
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

impl WatchedFiles {
    /// Reads the files, and reloads them if their content has changed.
    fn look(&mut self) {
        let found: Result<Vec<_>, _> = self.paths.iter().map(|path| read(path)).collect();
        let found = found.map_err(|error| error.to_string());
        if found == self.seen {
            return;
        }
        let outcome = match &found {
            Ok(texts) => (self.reload)(texts),
            Err(error) => Err(error.clone()),
        };
        match outcome {
            Ok(()) => tracing::info!("{} changed; the new content is in use", self.name),
            Err(reason) => {
                tracing::error!(
                    "{} changed, but cannot be used, so the old content stays in use: {reason}",
                    self.name
                );
            }
        }
        self.seen = found;
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CredentialFilesError> {
    read_regular(path).map_err(|error| CredentialFilesError::Unreadable { path: path.to_owned(), error })
}

fn tokens(text: &[u8], whence: impl Fn() -> String) -> Result<Tokens, CredentialFilesError> {
    parse_tokens(text).map_err(|reason| CredentialFilesError::Unusable { whence: whence(), reason })
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
    use crate::config::ServeConfig;

    fn config(tokens: Option<TokenSource>) -> HttpConfig {
        HttpConfig { tokens, ..ServeConfig::of(&[]).expect("good settings").http }
    }

    #[test]
    fn a_changed_file_is_reloaded_and_an_unusable_one_leaves_the_old_in_force() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tokens.toml");
        let secrets: Vec<_> = (0..3).map(|_| Secret::random().expect("random numbers")).collect();
        let write = |text: &str| std::fs::write(&path, text).expect("it can be written");
        let list = |secret: &Secret| {
            format!("[[token]]\nname = \"a\"\nscope = \"read\"\nsha256 = \"{}\"\n", secret.digest())
        };
        write(&list(&secrets[0]));
        let mut credentials =
            CredentialFiles::load(&config(Some(TokenSource::File(path.clone())))).expect("a good file");
        let access = credentials.access.clone().expect("there are tokens");
        let mut check = |in_force: usize| {
            credentials.files.iter_mut().for_each(WatchedFiles::look);
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
    fn files_that_cannot_be_used_are_refused_when_they_are_loaded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tokens.toml");
        let guarded = config(Some(TokenSource::File(path.clone())));
        let refused = || CredentialFiles::load(&guarded).map(|_| ()).expect_err("it is refused").to_string();
        assert!(refused().starts_with("cannot read "), "{}", refused());
        std::fs::write(&path, "").expect("it can be written");
        assert!(refused().contains("it lists no tokens"), "{}", refused());
        let text = config(Some(TokenSource::Text("x".to_owned())));
        assert!(CredentialFiles::load(&text).is_err());
        let pasted = config(Some(TokenSource::File("rkt_1".into())));
        let said = CredentialFiles::load(&pasted).map(|_| ()).expect_err("a token is no file").to_string();
        assert!(said.contains("Give the name of a file") && !said.contains("rkt_1"), "{said}");
        assert!(CredentialFiles::load(&config(None)).expect("nothing to read").access.is_none());
    }
}

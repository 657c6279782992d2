//! Who this process is to NATS, and which servers it trusts.
//!
//! Knows: secrets, which are never shown, and the files that hold them. Files are read again for each
//! connection, so that the next reconnect uses a rotated secret. Must not know: flags and their combinations.

use std::fmt;
use std::path::{Path, PathBuf};

use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::{Auth, AuthError, ConnectOptions};
use nkeys::{KeyPair, KeyPairType};
use thiserror::Error;

use crate::regular_file::read_text;

/// Larger than any file of credentials. A larger file was named by mistake.
const FILE_MAX: u64 = 1 << 20;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    pub(in crate::queue::nats) fn text(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(not shown)")
    }
}

/// A secret, or the file that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretFrom {
    Text(Secret),
    /// Its first line is the secret.
    File(PathBuf),
}

/// How this process logs in to the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Login {
    /// Without a login: the server asks for none, or a client certificate identifies this process.
    #[default]
    Nobody,
    Password {
        user: String,
        password: SecretFrom,
    },
    Token(SecretFrom),
    /// A file with the seed of a user's nkey.
    Nkey(PathBuf),
    /// A file with a user's JWT and seed, as `nsc` writes it.
    Creds(PathBuf),
}

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// Refuse a server without TLS. Without it, the server decides, or a URL with `tls://`.
    pub required: bool,
    /// Begin with TLS before the server says anything, as a server with `handshake_first` wants it.
    pub first: bool,
    /// Certificates of authorities to trust. Without it, those of this machine.
    pub ca: Option<PathBuf>,
    /// A certificate and its key, which identify this process to the server.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// Everything about access to NATS, except where the servers are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NatsCredentials {
    pub login: Login,
    pub tls: Tls,
}

/// Why a file cannot be used, and what it should hold. Its content is never shown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NatsCredentialsError {
    #[error("cannot read {what} {}: {error}", path.display())]
    Unreadable { what: &'static str, path: PathBuf, error: String },
    #[error("{} is not {what}: {expected}", path.display())]
    Malformed { what: &'static str, path: PathBuf, expected: &'static str },
    #[error("the server sent no nonce to sign; check that it is configured for nkeys or JWTs")]
    NoNonce,
}

impl NatsCredentials {
    /// Reads every file once, so that a mistake is reported at the start.
    ///
    /// # Errors
    /// When one cannot be read, or is not what it should be.
    pub fn check(&self) -> Result<(), NatsCredentialsError> {
        match &self.login {
            Login::Nobody => {}
            Login::Password { password, .. } => {
                password.read("the password file")?;
            }
            Login::Token(token) => {
                token.read("the token file")?;
            }
            Login::Nkey(path) => {
                read_nkey(path)?;
            }
            Login::Creds(path) => {
                read_creds(path)?;
            }
        }
        if let Some(path) = &self.tls.ca {
            let what = "the file of certificate authorities";
            let text = read(what, path)?;
            certificates(what, path, &text)?;
        }
        if let Some((certificate, key)) = &self.tls.client {
            let what = "the client certificate";
            certificates(what, certificate, &read(what, certificate)?)?;
            let what = "the client certificate's key";
            PrivateKeyDer::from_pem_slice(read(what, key)?.as_bytes()).map_err(|_| {
                NatsCredentialsError::Malformed {
                    what,
                    path: key.clone(),
                    expected: "it must hold a private key in PEM, which begins with -----BEGIN PRIVATE KEY-----, without a passphrase",
                }
            })?;
        }
        Ok(())
    }

    /// Options for a connection, with nothing else set. Files are read at each attempt to connect.
    pub fn options(&self) -> ConnectOptions {
        let mut options = if self.login == Login::Nobody {
            ConnectOptions::new()
        } else {
            let login = self.login.clone();
            ConnectOptions::with_auth_callback(move |nonce| {
                let login = login.clone();
                let answer = tokio::task::spawn_blocking(move || login.answer(&nonce));
                async move {
                    let answer = answer.await.map_err(AuthError::new)?;
                    answer.map_err(AuthError::new)
                }
            })
        };
        if self.tls.required {
            options = options.require_tls(true);
        }
        if self.tls.first {
            options = options.tls_first();
        }
        if let Some(path) = &self.tls.ca {
            options = options.add_root_certificates(path.clone());
        }
        if let Some((certificate, key)) = &self.tls.client {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        options
    }
}

impl Login {
    /// The login for a server. Its `nonce` is signed, which proves that the login is not an old one.
    fn answer(&self, nonce: &[u8]) -> Result<Auth, NatsCredentialsError> {
        let mut auth = Auth::new();
        match self {
            Self::Nobody => {}
            Self::Password { user, password } => {
                auth.username = Some(user.clone());
                auth.password = Some(password.read("the password file")?);
            }
            Self::Token(token) => auth.token = Some(token.read("the token file")?),
            Self::Nkey(path) => {
                let key = read_nkey(path)?;
                auth.signature = Some(sign(&key, nonce)?);
                auth.nkey = Some(key.public_key());
            }
            Self::Creds(path) => {
                let (jwt, key) = read_creds(path)?;
                auth.signature = Some(sign(&key, nonce)?);
                auth.jwt = Some(jwt);
            }
        }
        Ok(auth)
    }
}

impl SecretFrom {
    fn read(&self, what: &'static str) -> Result<String, NatsCredentialsError> {
        match self {
            Self::Text(secret) => Ok(secret.0.clone()),
            Self::File(path) => {
                let text = read(what, path)?;
                let secret = text.lines().next().unwrap_or_default();
                if secret.is_empty() {
                    let expected = "it must hold the secret on its first line, which is empty";
                    return Err(NatsCredentialsError::Malformed { what, path: path.clone(), expected });
                }
                Ok(secret.to_owned())
            }
        }
    }
}

fn sign(key: &KeyPair, nonce: &[u8]) -> Result<Vec<u8>, NatsCredentialsError> {
    if nonce.is_empty() {
        return Err(NatsCredentialsError::NoNonce);
    }
    Ok(key.sign(nonce).expect("a key that was made from its seed signs"))
}

fn read(what: &'static str, path: &Path) -> Result<String, NatsCredentialsError> {
    let unreadable = |error: String| NatsCredentialsError::Unreadable { what, path: path.to_owned(), error };
    let facts = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if facts.is_dir() {
        return Err(unreadable("it is a directory".to_owned()));
    }
    if facts.len() > FILE_MAX {
        return Err(unreadable(format!("it has {} bytes, which is too large for such a file", facts.len())));
    }
    read_text(path).map_err(|error| unreadable(error.to_string()))
}

fn certificates(what: &'static str, path: &Path, text: &str) -> Result<(), NatsCredentialsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    if all.is_ok_and(|all| !all.is_empty()) {
        return Ok(());
    }
    let expected = "it must hold certificates in PEM, each of which begins with -----BEGIN CERTIFICATE-----";
    Err(NatsCredentialsError::Malformed { what, path: path.to_owned(), expected })
}

fn user_key(seed: &str) -> Option<KeyPair> {
    KeyPair::from_seed(seed).ok().filter(|key| key.key_pair_type() == KeyPairType::User)
}

fn read_nkey(path: &Path) -> Result<KeyPair, NatsCredentialsError> {
    let what = "the nkey file";
    let text = read(what, path)?;
    let seed = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    seed.and_then(user_key).ok_or_else(|| NatsCredentialsError::Malformed {
        what,
        path: path.to_owned(),
        expected: "it must hold the seed of a user's nkey, a line that begins with SU",
    })
}

fn read_creds(path: &Path) -> Result<(String, KeyPair), NatsCredentialsError> {
    let what = "the credentials file";
    let text = read(what, path)?;
    let jwt = section(&text, "NATS USER JWT").filter(|jwt| jwt.split('.').count() == 3);
    let key = section(&text, "USER NKEY SEED").and_then(user_key);
    jwt.map(str::to_owned).zip(key).ok_or_else(|| NatsCredentialsError::Malformed {
        what,
        path: path.to_owned(),
        expected: "it must hold a user's JWT and seed, between lines such as -----BEGIN NATS USER \
                   JWT-----, as nsc writes them",
    })
}

/// The line after the one that begins a section.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| line.starts_with("---") && line.contains(&format!("BEGIN {name}")))?;
    lines.find(|line| !line.is_empty()).filter(|line| !line.starts_with("---"))
}

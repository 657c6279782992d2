//! The servers of a NATS system, without the credentials that their URLs may hold.
//!
//! URLs may be shown and logged, so their secrets are taken out as soon as they are read.

use std::fmt;

use async_nats::ServerAddr;
use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::queue::nats::connect::credentials::{Login, Secret, SecretFrom};

/// Servers of one NATS system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Servers(Vec<ServerAddr>);

/// Why a text names no servers. The text may hold a password, so the error does not repeat it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServersError {
    #[error(
        "--nats must be a NATS URL such as nats://nats.example.net:4222, or several separated by commas; \
         URL number {0} is not valid ({1}). In a user name or password write %40 for @, %3A for :, %2F \
         for / and %2C for a comma"
    )]
    Malformed(usize, String),
    #[error(
        "the URLs of --nats hold different credentials; give the same in each, or use --nats-user or another setting for credentials"
    )]
    Differ,
    #[error("a user name or password in --nats is not UTF-8 after its %-escapes are decoded")]
    NotUtf8,
}

impl Servers {
    /// Reads URLs, and the credentials in them if there are any.
    ///
    /// # Errors
    /// When one is no NATS URL, or their credentials differ.
    pub fn read(text: &str) -> Result<(Self, Option<Login>), ServersError> {
        let mut servers = Vec::new();
        let mut login = None;
        for (index, text) in text.split(',').map(str::trim).enumerate() {
            let malformed = |why: &str| ServersError::Malformed(index + 1, why.to_owned());
            // The parser's message describes the text's form, and does not repeat the text.
            let server: ServerAddr =
                text.parse().map_err(|error: std::io::Error| malformed(&error.to_string()))?;
            if server.is_websocket() {
                return Err(malformed("WebSocket is not supported"));
            }
            let mut url = server.into_inner();
            if url.host_str().is_none_or(str::is_empty) {
                return Err(malformed("it names no host"));
            }
            let decoded = |text: &str| {
                let decoded = percent_decode_str(text).decode_utf8();
                decoded.map(std::borrow::Cow::into_owned).map_err(|_| ServersError::NotUtf8)
            };
            let (user, password) = (decoded(url.username())?, url.password().map(decoded).transpose()?);
            let found = match password {
                Some(password) => {
                    Some(Login::Password { user, password: SecretFrom::Text(Secret::new(password)) })
                }
                // Every NATS client takes a name without a password for a token.
                None if !user.is_empty() => Some(Login::Token(SecretFrom::Text(Secret::new(user)))),
                None => None,
            };
            if found.is_some() && login.is_some() && found != login {
                return Err(ServersError::Differ);
            }
            login = login.or(found);
            url.set_password(None)
                .and_then(|()| url.set_username(""))
                .map_err(|()| malformed("it names no host"))?;
            servers.push(ServerAddr::from_url(url).map_err(|error| malformed(&error.to_string()))?);
        }
        Ok((Self(servers), login))
    }

    pub fn addresses(&self) -> &[ServerAddr] {
        &self.0
    }
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, server) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{}://{}:{}", server.scheme(), server.host(), server.port())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(user: &str, password: &str) -> Login {
        let password = SecretFrom::Text(Secret::new(password.to_owned()));
        Login::Password { user: user.to_owned(), password }
    }

    #[test]
    fn urls_come_apart_into_what_may_be_shown_and_what_may_not() {
        let check = |text: &str, shown: &str, expect: Option<Login>| {
            let (servers, login) = Servers::read(text).expect("good URLs");
            assert_eq!((servers.to_string().as_str(), login), (shown, expect), "{text}");
        };
        check("127.0.0.1", "nats://127.0.0.1:4222", None);
        check("tls://a.example:1, b", "tls://a.example:1,nats://b:4222", None);
        check("nats://me:pw@h:5", "nats://h:5", Some(password("me", "pw")));
        check(
            "nats://me:p%40w%2C@h,nats://me:p%40w%2C@i",
            "nats://h:4222,nats://i:4222",
            Some(password("me", "p@w,")),
        );
        check("nats://me:pw@h,nats://i", "nats://h:4222,nats://i:4222", Some(password("me", "pw")));
        check(
            "nats://s3cret@h",
            "nats://h:4222",
            Some(Login::Token(SecretFrom::Text(Secret::new("s3cret".into())))),
        );
    }

    #[test]
    fn a_refusal_never_repeats_what_it_refuses() {
        for text in [
            "http://me:hunter2@h",
            "nats://me:hunter2@h:99999",
            "nats://me:hunter2@",
            "nats://me:hunter2@h h",
            "ws://me:hunter2@h",
            "nats://me:hunter2@h,nats://me:other@h",
            "nats://me:hunter2%ff@h",
            "",
        ] {
            let said = Servers::read(text).expect_err(text).to_string();
            assert!(!said.contains("hunter2") && !said.contains("other@"), "{said}");
        }
    }
}

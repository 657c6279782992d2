//! The subjects by which answers come to this process.
//!
//! Knows: what may stand before them, and what does unless an operator says otherwise. Whoever may subscribe
//! to them reads the answers. So each user of a NATS server has a prefix of its own, and its permissions name
//! no other.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::queue::nats::connect::credentials::Login;

/// What the subjects of answers begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxPrefix(String);

/// Why subjects of answers cannot begin with a text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InboxPrefixError {
    #[error(
        "must be the beginning of a subject, such as _INBOX.game: words of printable ASCII without * and >, joined by dots, and no $ at its beginning"
    )]
    NoSubject,
}

impl FromStr for InboxPrefix {
    type Err = InboxPrefixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_word = |word: &str| {
            !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>'))
        };
        // What begins with $ is the server's own: JetStream's API, and key-value buckets.
        if text.starts_with('$') || !text.split('.').all(is_word) {
            return Err(InboxPrefixError::NoSubject);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for InboxPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl InboxPrefix {
    /// The default: of the user, if the login has a name that can be one word of a subject, and otherwise of
    /// the service, whose names begin with `prefix`.
    pub fn of(login: &Login, prefix: &str) -> Self {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let own = match login {
            Login::Password { user, .. } if !user.is_empty() && user.bytes().all(letter) => user.as_str(),
            Login::Password { .. } | Login::Nobody | Login::Token(_) | Login::Nkey(_) | Login::Creds(_) => {
                prefix
            }
        };
        Self(format!("_INBOX.{own}"))
    }

    /// Whether these subjects are among those that begin with `prefix`, where nodes send no answers.
    pub fn is_within(&self, prefix: &str) -> bool {
        self.0.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::nats::connect::credentials::{Secret, SecretFrom};

    fn password_of(user: &str) -> Login {
        let password = SecretFrom::Text(Secret::new("hunter2".to_owned()));
        Login::Password { user: user.to_owned(), password }
    }

    #[test]
    fn only_the_beginning_of_a_subject_is_taken() {
        for good in ["_INBOX", "_INBOX.game", "_INBOX_game", "inbox.games.eu-1"] {
            assert_eq!(good.parse::<InboxPrefix>().expect("it can be").to_string(), good);
        }
        let bad = [
            "",
            ".",
            "_INBOX.",
            "._INBOX",
            "_INBOX..a",
            "_INBOX.*",
            "_INBOX.>",
            "_INBOX. a",
            "$JS.API",
            "\u{e9}",
        ];
        for bad in bad {
            assert_eq!(bad.parse::<InboxPrefix>(), Err(InboxPrefixError::NoSubject), "{bad:?}");
        }
    }

    #[test]
    fn a_user_with_a_name_has_an_inbox_of_that_name() {
        let of = |login: &Login| InboxPrefix::of(login, "eu").to_string();
        assert_eq!(of(&password_of("game")), "_INBOX.game");
        for nameless in [Login::Nobody, Login::Nkey("seed".into()), Login::Creds("creds".into())] {
            assert_eq!(of(&nameless), "_INBOX.eu");
        }
        // What would be several words of a subject, a pattern, or none.
        for user in ["", "a.b", "*", ">", "a b", "me@example.net"] {
            assert_eq!(of(&password_of(user)), "_INBOX.eu", "{user:?}");
        }
    }

    #[test]
    fn subjects_of_the_service_are_told_from_those_that_only_look_alike() {
        let inbox = |text: &str| text.parse::<InboxPrefix>().expect("it can be one");
        for within in ["ranktree", "ranktree.inbox"] {
            assert!(inbox(within).is_within("ranktree"), "{within}");
        }
        for other in ["_INBOX.ranktree", "ranktrees", "rank"] {
            assert!(!inbox(other).is_within("ranktree"), "{other}");
        }
    }
}

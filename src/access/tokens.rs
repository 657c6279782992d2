//! The tokens of a service, as an operator lists them, and the search for the one that a request presents.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::Deserialize;
use subtle::{Choice, ConditionallySelectable as _};
use thiserror::Error;

use crate::access::grant::Grant;
use crate::access::scope::Scope;
use crate::access::secret::{Digest, Secret};

/// The most tokens. Each request is compared with all of them.
const TOKENS_MAX: usize = 1_000;

/// The limit on boards of a token with prefixes, unless its line has another one. Several such tokens share a
/// node, and none may use up the boards of all.
pub const CONFINED_BOARDS_MAX: u32 = 1_000;

/// Why a list of tokens cannot be used; the text says what to do.
#[derive(Debug, Error)]
pub enum InvalidTokens {
    #[error("line {line} of it is not right: {problem}")]
    Malformed { line: usize, problem: String },
    #[error(
        "there are no tokens in it: nobody could do anything. ranktree token new makes one and says what to write"
    )]
    Empty,
    #[error("there are more than {TOKENS_MAX} tokens in it")]
    TooMany,
    #[error("the token {name:?}: {scope}")]
    Scope { name: String, scope: String },
    #[error(
        "the token {0:?}: sha256 is 64 hexadecimal digits, the SHA-256 of the token, and not the token itself"
    )]
    Digest(String),
    #[error("a token has no name; give each one, so that the log can tell them apart")]
    Nameless,
    #[error("two tokens are named {0:?}; give them different names, also an old one and its successor")]
    NamedTwice(String),
    #[error("the tokens {0:?} and {1:?} have the same sha256")]
    SameDigest(String, String),
    #[error(
        "the token {0:?}: board_prefixes is a list of what board names begin with, such as [\"eu-\"]; leave it out for all boards"
    )]
    Prefixes(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    token: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    scope: String,
    sha256: String,
    board_prefixes: Option<Vec<String>>,
    max_boards: Option<u32>,
}

/// The tokens in force. Never empty.
#[derive(Debug, PartialEq, Eq)]
pub struct Tokens(Vec<(Digest, Arc<Grant>)>);

impl Tokens {
    /// Reads a list of tokens, in TOML: a table `[[token]]` each, with `name`, `scope`, `sha256`, and
    /// optionally `board_prefixes` and `max_boards`.
    ///
    /// # Errors
    /// See [`InvalidTokens`].
    pub fn parse(text: &str) -> Result<Self, InvalidTokens> {
        let List { token: lines } = toml::from_str(text).map_err(|error| malformed(text, &error))?;
        if lines.is_empty() {
            return Err(InvalidTokens::Empty);
        }
        if lines.len() > TOKENS_MAX {
            return Err(InvalidTokens::TooMany);
        }
        let mut names = BTreeSet::new();
        let mut tokens: Vec<(Digest, Arc<Grant>)> = Vec::with_capacity(lines.len());
        for Line { name, scope, sha256, board_prefixes, max_boards } in lines {
            if name.trim().is_empty() {
                return Err(InvalidTokens::Nameless);
            }
            if !names.insert(name.clone()) {
                return Err(InvalidTokens::NamedTwice(name));
            }
            let scope: Scope =
                scope.parse().map_err(|scope| InvalidTokens::Scope { name: name.clone(), scope })?;
            let Some(digest) = Digest::parse(&sha256) else { return Err(InvalidTokens::Digest(name)) };
            if let Some((_, other)) = tokens.iter().find(|(known, _)| *known == digest) {
                return Err(InvalidTokens::SameDigest(other.name.clone(), name));
            }
            // An empty list would allow nothing, and an empty prefix everything. Nobody means either.
            let means_nothing =
                |list: &Vec<String>| list.is_empty() || list.iter().any(|prefix| !is_prefix(prefix));
            if board_prefixes.as_ref().is_some_and(means_nothing) {
                return Err(InvalidTokens::Prefixes(name));
            }
            let max_boards = max_boards.or(board_prefixes.is_some().then_some(CONFINED_BOARDS_MAX));
            tokens.push((digest, Arc::new(Grant { name, scope, board_prefixes, max_boards })));
        }
        Ok(Self(tokens))
    }

    /// What the presented token allows, if it is listed. Compares with every token to its end, so that
    /// the time it takes says nothing.
    #[must_use]
    pub fn find(&self, presented: &str) -> Option<Arc<Grant>> {
        // A short secret is not looked up, even if its hash is listed.
        let digest = Secret::new(presented).ok()?.digest();
        let mut found = u32::MAX;
        for (index, (known, _)) in (0_u32..).zip(&self.0) {
            let equal: Choice = known.is(&digest);
            found.conditional_assign(&index, equal);
        }
        let index = usize::try_from(found).ok()?;
        self.0.get(index).map(|(_, grant)| Arc::clone(grant))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, grant)| grant.name.as_str())
    }
}

/// Says what is wrong without showing the text: an operator may have written a token where its hash belongs.
fn malformed(text: &str, error: &toml::de::Error) -> InvalidTokens {
    let before = error.span().map_or(0, |span| span.start);
    let line = 1 + text.bytes().take(before).filter(|byte| *byte == b'\n').count();
    let message = error.message();
    let names_keys_only =
        ["unknown field", "missing field", "duplicate key"].iter().any(|kind| message.starts_with(kind));
    let problem = if names_keys_only {
        message.to_owned()
    } else {
        "expected are tables [[token]] with name, scope, sha256, and perhaps board_prefixes and max_boards"
            .to_owned()
    };
    InvalidTokens::Malformed { line, problem }
}

/// Whether some board's name begins like that.
fn is_prefix(text: &str) -> bool {
    crate::types::BoardName::new(text).is_ok()
}

/// The tokens in force. They may be replaced while requests are judged by them.
#[derive(Debug)]
pub struct ActiveTokens(RwLock<Arc<Tokens>>);

impl ActiveTokens {
    #[must_use]
    pub fn new(tokens: Tokens) -> Self {
        Self(RwLock::new(Arc::new(tokens)))
    }

    /// Replaces all tokens.
    pub fn replace(&self, tokens: Tokens) {
        *self.0.write() = Arc::new(tokens);
    }

    #[must_use]
    pub fn tokens(&self) -> Arc<Tokens> {
        Arc::clone(&self.0.read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0000000000000000000000000000000000000000000000000000000000000001";

    #[test]
    fn a_presented_token_is_found_by_its_hash_and_nothing_else() {
        let secrets: Vec<Secret> = (0..3).map(|_| Secret::random().expect("random numbers")).collect();
        let lines: Vec<String> = secrets
            .iter()
            .zip(["read", "write", "admin"])
            .map(|(secret, scope)| {
                format!(
                    "[[token]]\nname = \"{scope}\"\nscope = \"{scope}\"\nsha256 = \"{}\"\n",
                    secret.digest()
                )
            })
            .collect();
        let tokens = Tokens::parse(&lines.concat()).expect("a good list");
        for (secret, scope) in secrets.iter().zip(Scope::ALL) {
            let grant = tokens.find(secret.reveal()).expect("it is listed");
            assert_eq!((grant.name.as_str(), grant.scope), (scope.name(), scope));
            assert_eq!(tokens.find(&secret.digest().to_string()), None, "the hash is no token");
            assert_eq!(tokens.find(&format!("{}x", secret.reveal())), None);
        }
        assert_eq!(tokens.find(""), None);
        let short = Tokens::parse(&format!(
            // printf %s hunter2 | sha256sum
            "token = [{{name = \"a\", scope = \"read\", sha256 = \"{}\"}}]",
            "f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7"
        ));
        assert_eq!(short.expect("a good list").find("hunter2"), None, "short ones are not looked up");
    }

    #[test]
    fn a_wrong_list_of_tokens_is_refused_with_the_reason() {
        let line = |name: &str, scope: &str, hash: &str, more: &str| {
            format!("[[token]]\nname = \"{name}\"\nscope = \"{scope}\"\nsha256 = \"{hash}\"\n{more}\n")
        };
        let good = line("a", "read", HASH, "board_prefixes = [\"eu-\"]");
        let tokens = Tokens::parse(&good).expect("a good list");
        assert_eq!(tokens.names().collect::<Vec<_>>(), ["a"]);
        for (more, expect) in [
            ("", None),
            ("board_prefixes = [\"eu-\"]", Some(CONFINED_BOARDS_MAX)),
            ("board_prefixes = [\"eu-\"]\nmax_boards = 5000", Some(5_000)),
            ("max_boards = 0", Some(0)),
        ] {
            let Tokens(tokens) = Tokens::parse(&line("a", "write", HASH, more)).expect("a good list");
            assert_eq!(tokens[0].1.max_boards, expect, "{more}");
        }
        for (text, expect) in [
            (String::new(), "no tokens"),
            ("[[token]]\nname = \"a\"\nscope = \"read\"\n".to_owned(), "sha256"),
            (line("a", "reed", HASH, ""), "a scope is read, write or admin, not \"reed\""),
            (line("a", "read", "rkt_1", ""), "not the token itself"),
            (line(" ", "read", HASH, ""), "no name"),
            (line("a", "read", HASH, "prefix = \"eu-\""), "unknown field"),
            (line("a", "read", HASH, "board_prefixes = []"), "leave it out"),
            (line("a", "read", HASH, "board_prefixes = [\"\"]"), "leave it out"),
            (line("a", "read", HASH, "board_prefixes = [\"eu*\"]"), "leave it out"),
            (line("a", "read", HASH, "max_boards = -1"), "and perhaps board_prefixes and max_boards"),
            (good.clone() + &good, "two tokens are named \"a\""),
            (good.clone() + &line("b", "write", HASH, ""), "\"a\" and \"b\" have the same sha256"),
            (format!("tokens = 1\n{good}"), "line 1 of it is not right: unknown field"),
            ("\ntoken = \"rkt_1\"".to_owned(), "line 2 of it is not right: expected are"),
            ("[[token]\n".to_owned(), "line 1 of it is not right: expected are"),
        ] {
            let error = Tokens::parse(&text).expect_err(expect).to_string();
            assert!(error.contains(expect) && !error.contains("rkt_1"), "{error}");
        }
    }

    #[test]
    fn tokens_in_force_can_be_replaced() {
        let [old, new] = [(); 2].map(|()| Secret::random().expect("random numbers"));
        let list = |secret: &Secret| {
            let line =
                format!("token = [{{name = \"a\", scope = \"read\", sha256 = \"{}\"}}]", secret.digest());
            Tokens::parse(&line).expect("a good list")
        };
        let access = ActiveTokens::new(list(&old));
        assert!(access.tokens().find(old.reveal()).is_some());
        access.replace(list(&new));
        assert!(access.tokens().find(old.reveal()).is_none());
        assert!(access.tokens().find(new.reveal()).is_some());
    }
}

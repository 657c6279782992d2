//! The tokens of a service, as an operator lists them, and the search for the one that a request presents.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::Deserialize;
use subtle::{Choice, ConditionallySelectable as _};
use thiserror::Error;
use toml::Spanned;

use crate::access::grant::Grant;
use crate::access::profile_access::ProfileAccess;
use crate::access::scope::Scope;
use crate::access::secret::{Digest, Secret};
use crate::types::BoardName;

/// The most tokens. Each request is compared with all of them.
const TOKENS_MAX: usize = 1_000;

/// The limit on boards of a token with prefixes, unless its line has another one. Several such tokens share a
/// node, and none may use up the boards of all.
pub const CONFINED_BOARDS_MAX: u32 = 1_000;

/// Why a prefix of board names is refused that [`is_pattern`].
pub const NO_PATTERN: &str =
    "a prefix of board names has no * at its end: \"eu-\" is that of all boards whose names begin with eu-";

/// Whether a prefix of board names is one of shells. Names may have stars, but where a prefix ends with one,
/// it stands for all names that go on, and would match next to none.
pub fn is_pattern(prefix: &str) -> bool {
    prefix.ends_with('*')
}

/// Why a list of tokens cannot be used; the text says what to do. It names lines and repeats nothing of what
/// is in them, not even names: somebody may have pasted a token to a wrong place, and messages go into logs.
#[derive(Debug, Error)]
pub enum InvalidTokens {
    #[error("line {line} is wrong: {problem}")]
    Line { line: usize, problem: String },
    #[error(
        "it lists no tokens, so every request would be refused; ranktree token new makes a token and prints the lines to add"
    )]
    Empty,
    #[error("it lists more than {TOKENS_MAX} tokens; remove those that are not used")]
    TooMany,
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
    name: Spanned<String>,
    scope: Spanned<String>,
    board_prefixes: Option<Spanned<Vec<String>>>,
    max_boards: Option<Spanned<u32>>,
    profiles: Option<Spanned<String>>,
    sha256: Spanned<String>,
}

impl Line {
    /// Where the last of the keys is that say what the token allows.
    fn end_of_rights(&self) -> usize {
        let optional = [
            self.board_prefixes.as_ref().map(Spanned::span),
            self.max_boards.as_ref().map(Spanned::span),
            self.profiles.as_ref().map(Spanned::span),
        ];
        let rights = [self.name.span(), self.scope.span()].into_iter().chain(optional.into_iter().flatten());
        rights.map(|span| span.start).max().unwrap_or_default()
    }
}

/// The tokens in force. Never empty.
#[derive(Debug, PartialEq, Eq)]
pub struct Tokens(Vec<(Digest, Arc<Grant>)>);

impl Tokens {
    /// Reads a list of tokens, in TOML: a table `[[token]]` each, with `name`, `scope`, optionally
    /// `board_prefixes`, `max_boards` and `profiles`, and last `sha256`. A file may have been cut anywhere,
    /// and a token without its prefixes would give all boards: without its hash it gives nothing.
    pub fn parse(text: &str) -> Result<Self, InvalidTokens> {
        let List { token: lines } = toml::from_str(text).map_err(|error| malformed(text, &error))?;
        if lines.is_empty() {
            return Err(InvalidTokens::Empty);
        }
        if lines.len() > TOKENS_MAX {
            return Err(InvalidTokens::TooMany);
        }
        let at =
            |before: usize, problem: String| InvalidTokens::Line { line: line_at(text, before), problem };
        // Names and digests, and the lines that they are in.
        let (mut names, mut digests) = (BTreeMap::new(), BTreeMap::new());
        let mut tokens: Vec<(Digest, Arc<Grant>)> = Vec::with_capacity(lines.len());
        for line in lines {
            let end_of_rights = line.end_of_rights();
            let Line { name, scope, board_prefixes, max_boards, profiles, sha256 } = line;
            let [of_name, of_scope, of_digest] = [&name, &scope, &sha256].map(|value| value.span().start);
            let (name, scope) = (name.into_inner(), scope.into_inner());
            if name.trim().is_empty() {
                let problem = "name is empty; give each token one, so that the log can tell them apart";
                return Err(at(of_name, problem.to_owned()));
            }
            if name.starts_with(Secret::PREFIX) {
                let problem = "name looks like a token. Write there who uses the token, because the log \
                               shows names; and replace the token, because others may have read it";
                return Err(at(of_name, problem.to_owned()));
            }
            if let Some(other) = names.insert(name.clone(), of_name) {
                let other = line_at(text, other);
                let problem = format!(
                    "its name is the same as in line {other}; every token needs a name of its own, including an old token and its successor"
                );
                return Err(at(of_name, problem));
            }
            let scope: Scope = scope
                .parse()
                .map_err(|_| at(of_scope, "scope must be \"read\", \"write\" or \"admin\"".to_owned()))?;
            let Some(digest) = Digest::parse(sha256.get_ref()) else {
                let problem = "sha256 must be 64 hexadecimal digits: the SHA-256 of the token, not the \
                               token itself; ranktree token hash makes it";
                return Err(at(of_digest, problem.to_owned()));
            };
            if let Some(other) = digests.insert(digest.to_string(), of_digest) {
                let problem = format!(
                    "its sha256 is the same as in line {}; list each token once",
                    line_at(text, other)
                );
                return Err(at(of_digest, problem));
            }
            if end_of_rights > of_digest {
                let problem = "sha256 must be the last key of its table: if the file is cut behind it, the \
                               token loses what confines it. Move its line to the end of the table";
                return Err(at(of_digest, problem.to_owned()));
            }
            if let Some(list) = &board_prefixes {
                check_prefixes(list.get_ref())
                    .map_err(|problem| at(list.span().start, problem.to_owned()))?;
            }
            let board_prefixes = board_prefixes.map(Spanned::into_inner);
            let max_boards = max_boards.map(Spanned::into_inner);
            let max_boards = max_boards.or(board_prefixes.is_some().then_some(CONFINED_BOARDS_MAX));
            let profiles = profiles_of(profiles.as_ref(), board_prefixes.is_some())
                .map_err(|(before, problem)| at(before, problem.to_owned()))?;
            tokens.push((digest, Arc::new(Grant { name, scope, board_prefixes, max_boards, profiles })));
        }
        Ok(Self(tokens))
    }

    /// What the presented token allows, if it is listed. Compares with every token to its end, so that
    /// the time it takes says nothing.
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

/// What a token allows with profiles. Otherwise where it is said wrongly, and what is wrong.
fn profiles_of(
    named: Option<&Spanned<String>>,
    is_confined: bool,
) -> Result<ProfileAccess, (usize, &'static str)> {
    let Some(named) = named else {
        return Ok(if is_confined { ProfileAccess::default() } else { ProfileAccess::Write });
    };
    let before = named.span().start;
    if !is_confined {
        let problem = "profiles needs board_prefixes: a token of all boards reads all profiles, and writes \
                       them if its scope lets it write; leave it out";
        return Err((before, problem));
    }
    named.get_ref().parse().map_err(|_| (before, "profiles must be \"none\", \"read\" or \"write\""))
}

fn malformed(text: &str, error: &toml::de::Error) -> InvalidTokens {
    let line = line_at(text, error.span().map_or(0, |span| span.start));
    let message = error.message();
    // Which field is missing is one of ours; a field that is not known may be a token.
    let problem = if message.starts_with("missing field") {
        message.to_owned()
    } else if message.starts_with("unknown field") {
        "there is no such key; the keys are name, scope, board_prefixes, max_boards, profiles and sha256"
            .to_owned()
    } else if message.starts_with("duplicate key") {
        "the key is given twice; each token must be a table of its own that begins with [[token]]".to_owned()
    } else {
        "the file must consist of tables [[token]] with name, scope, optionally board_prefixes, max_boards and profiles, and sha256"
            .to_owned()
    };
    InvalidTokens::Line { line, problem }
}

/// The number of the line that has this byte, counted from 1.
fn line_at(text: &str, before: usize) -> usize {
    1 + text.bytes().take(before).filter(|byte| *byte == b'\n').count()
}

/// What is wrong with a list of prefixes.
fn check_prefixes(list: &[String]) -> Result<(), &'static str> {
    // An empty list would allow nothing, and an empty prefix everything. Nobody means either.
    if list.is_empty() || !list.iter().all(|prefix| BoardName::new(prefix).is_ok()) {
        return Err(
            "board_prefixes must be a list of prefixes of board names, such as [\"eu-\"]; leave it out to \
                    allow all boards",
        );
    }
    if list.iter().any(|prefix| is_pattern(prefix)) {
        return Err(NO_PATTERN);
    }
    Ok(())
}

/// The tokens in force. They may be replaced while requests are judged by them.
#[derive(Debug)]
pub struct ActiveTokens(RwLock<Arc<Tokens>>);

impl ActiveTokens {
    pub fn new(tokens: Tokens) -> Self {
        Self(RwLock::new(Arc::new(tokens)))
    }

    /// Replaces all tokens.
    pub fn replace(&self, tokens: Tokens) {
        *self.0.write() = Arc::new(tokens);
    }

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
            format!("[[token]]\nname = \"{name}\"\nscope = \"{scope}\"\n{more}\nsha256 = \"{hash}\"\n")
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
            (line("a", "reed", HASH, ""), "line 3 is wrong: scope must be \"read\", \"write\" or \"admin\""),
            (line("a", "rkt_1", HASH, ""), "line 3 is wrong: scope must be"),
            (line("a", "read", "rkt_1", ""), "line 5 is wrong: sha256 must be 64 hexadecimal digits"),
            (line(" ", "read", HASH, ""), "line 2 is wrong: name is empty"),
            (line("rkt_1", "read", HASH, ""), "line 2 is wrong: name looks like a token"),
            (line("a", "read", HASH, "prefix = \"eu-\""), "line 4 is wrong: there is no such key"),
            (line("a", "read", HASH, "rkt_1 = true"), "line 4 is wrong: there is no such key"),
            (line("a", "read", HASH, "board_prefixes = [\"rkt_1 \"]"), "line 4 is wrong: board_prefixes"),
            (line("a", "read", HASH, "max_boards = \"rkt_1\""), "line 4 is wrong: the file must consist of"),
            (line("a", "read", HASH, "name = \"rkt_1\""), "line 4 is wrong: the key is given twice"),
            (line("a", "read", HASH, "board_prefixes = []"), "leave it out"),
            (line("a", "read", HASH, "board_prefixes = [\"\"]"), "leave it out"),
            (line("a", "read", HASH, "board_prefixes = [\"eu \"]"), "leave it out"),
            (line("a", "read", HASH, "board_prefixes = [\".eu\"]"), "leave it out"),
            (line("a", "read", HASH, "board_prefixes = [\"eu-\", \"eu*\"]"), "has no * at its end"),
            (line("a", "read", HASH, "board_prefixes = [\"*\"]"), "has no * at its end"),
            (
                line("a", "read", HASH, "max_boards = -1"),
                "optionally board_prefixes, max_boards and profiles",
            ),
            (good.clone() + &good, "line 7 is wrong: its name is the same as in line 2"),
            (
                good.clone() + &line("b", "write", HASH, ""),
                "line 10 is wrong: its sha256 is the same as in line 5",
            ),
            (
                line("a", "read", HASH, "profiles = \"read\""),
                "line 4 is wrong: profiles needs board_prefixes",
            ),
            (
                line("a", "read", HASH, "board_prefixes = [\"eu-\"]\nprofiles = \"rkt_1\""),
                "line 5 is wrong: profiles must be",
            ),
            (format!("tokens = 1\n{good}"), "line 1 is wrong: there is no such key"),
            ("\ntoken = \"rkt_1\"".to_owned(), "line 2 is wrong: the file must consist of"),
            ("[[token]\n".to_owned(), "line 1 is wrong: the file must consist of"),
        ] {
            let error = Tokens::parse(&text).expect_err(expect).to_string();
            assert!(error.contains(expect) && !error.contains("rkt_1"), "{error}");
        }
    }

    #[test]
    fn profiles_are_left_to_tokens_of_all_boards_unless_a_line_says_otherwise() {
        for (more, expect) in [
            ("", ProfileAccess::Write),
            ("board_prefixes = [\"eu-\"]", ProfileAccess::None),
            ("profiles = \"none\"\nboard_prefixes = [\"eu-\"]", ProfileAccess::None),
            ("board_prefixes = [\"eu-\"]\nprofiles = \"read\"", ProfileAccess::Read),
            ("board_prefixes = [\"eu-\"]\nprofiles = \"write\"", ProfileAccess::Write),
        ] {
            let text = format!("[[token]]\nname = \"a\"\nscope = \"write\"\n{more}\nsha256 = \"{HASH}\"\n");
            let Tokens(tokens) = Tokens::parse(&text).expect("a good list");
            assert_eq!(tokens[0].1.profiles, expect, "{more}");
        }
    }

    #[test]
    fn what_a_token_allows_is_said_before_its_hash() {
        let (head, hash) = ("[[token]]\nname = \"a\"\nscope = \"write\"\n", format!("sha256 = \"{HASH}\"\n"));
        for more in [
            "board_prefixes = [\"eu-\"]\n",
            "max_boards = 1\n",
            "board_prefixes = [\"eu-\"]\nprofiles = \"read\"\n",
        ] {
            assert!(Tokens::parse(&[head, more, &hash].concat()).is_ok(), "{more}");
            let error = Tokens::parse(&[head, &hash, more].concat()).expect_err("a cut would take it away");
            assert!(error.to_string().contains("line 4 is wrong: sha256 must be the last key"), "{error}");
        }
        let inline = |order: &str| format!("token = [{{{}}}]", order.replace("HASH", HASH));
        let good = r#"name = "a", scope = "read", board_prefixes = ["eu-"], sha256 = "HASH""#;
        assert!(Tokens::parse(&inline(good)).is_ok());
        let bad = r#"sha256 = "HASH", name = "a", scope = "read", board_prefixes = ["eu-"]"#;
        assert!(Tokens::parse(&inline(bad)).is_err());
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

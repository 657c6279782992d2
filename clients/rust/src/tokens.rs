//! Shards of members, and tokens.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most shards that a service may have.
pub const MAX_SHARDS: u32 = 64;

/// FNV-1a, 32 bits, of the UTF-8 bytes of a member's id.
#[must_use]
pub fn member_hash(member: &str) -> u32 {
    member.bytes().fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The shard that a member belongs to, of 1 to 64.
///
/// # Errors
///
/// There are 1 to 64 shards.
pub fn shard_of(member: &str, shards: u32) -> Result<u32, ShardsError> {
    if (1..=MAX_SHARDS).contains(&shards) {
        Ok(member_hash(member) % shards)
    } else {
        Err(ShardsError(shards))
    }
}

/// A number of shards that no service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there are 1 to {MAX_SHARDS} shards; got {0}")]
pub struct ShardsError(u32);

/// Names writes: `shard:sequence`, several joined by commas.
///
/// Each write has one, and each read an `as_of`, which is one too. A read with `after` waits until the writes
/// that the token names are visible.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    /// The token of a message that is stored in the stream of a shard.
    #[must_use]
    pub fn of(shard: u32, sequence: u64) -> Self {
        Self(format!("{shard}:{sequence}"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shards that it names, with their sequences.
    ///
    /// # Errors
    ///
    /// It is no token.
    pub fn sequences(&self) -> Result<Vec<(u32, u64)>, TokenError> {
        let part = |part: &str| {
            let (shard, sequence) = part.split_once(':')?;
            Some((digits(shard)?.parse().ok()?, digits(sequence)?.parse().ok()?))
        };
        self.0.split(',').map(part).collect::<Option<_>>().ok_or_else(|| TokenError(self.0.clone()))
    }
}

/// `str::parse` takes a plus sign too.
fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

/// A text that is no token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a token: {0:?}; it is shard:sequence, several joined by commas")]
pub struct TokenError(String);

impl From<&str> for Token {
    /// The service judges it.
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Token {
    /// The service judges it.
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&Token> for Token {
    fn from(token: &Token) -> Self {
        token.clone()
    }
}

impl AsRef<str> for Token {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PartialEq<&str> for Token {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// One token that names all that the given ones name: of each shard the greatest sequence.
///
/// `None` of no tokens. Use it to read what several writes did, or never older than an earlier read.
///
/// # Errors
///
/// One of them is no token.
///
/// ```
/// use ranktree_client::{Token, latest};
///
/// let tokens = ["0:7", "1:3,0:12", "2:0"].map(Token::from);
/// assert_eq!(latest(&tokens)?, Some(Token::from("0:12,1:3,2:0")));
/// # Ok::<(), ranktree_client::TokenError>(())
/// ```
pub fn latest<'a>(tokens: impl IntoIterator<Item = &'a Token>) -> Result<Option<Token>, TokenError> {
    let mut sequences = BTreeMap::new();
    for token in tokens {
        for (shard, sequence) in token.sequences()? {
            let known = sequences.entry(shard).or_insert(sequence);
            *known = sequence.max(*known);
        }
    }
    let words: Vec<String> =
        sequences.iter().map(|(shard, sequence)| format!("{shard}:{sequence}")).collect();
    Ok((!words.is_empty()).then(|| Token(words.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members and hashes of docs/wire.md.
    const VECTORS: [(&str, u32); 4] =
        [("p42", 2_517_926_281), ("alice", 2_267_157_479), ("日本", 2_670_128_721), ("", 2_166_136_261)];

    #[test]
    fn hash_is_that_of_the_contract() {
        for (member, expected) in VECTORS {
            assert_eq!(member_hash(member), expected, "{member}");
            for shards in [1, 3, 64] {
                assert_eq!(shard_of(member, shards), Ok(expected % shards), "{member} of {shards}");
            }
        }
    }

    #[test]
    fn number_of_shards_has_bounds() {
        for shards in [0, 65] {
            let error = shard_of("p42", shards).expect_err("no service has so many");
            assert_eq!(error.to_string(), format!("there are 1 to 64 shards; got {shards}"));
        }
    }

    #[test]
    fn latest_names_the_greatest_sequence_of_each_shard() {
        let tokens = ["0:7", "1:3,0:12", "2:0"].map(Token::from);
        assert_eq!(latest(&tokens), Ok(Some(Token::from("0:12,1:3,2:0"))));
        assert_eq!(latest(None), Ok(None));
        for wrong in ["0", "a:1", "0:-1", "0:1,", "+0:1", ""] {
            latest(&[Token::from(wrong)]).expect_err(wrong);
        }
    }
}

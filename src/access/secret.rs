//! A token's secret: made and recognised, but never stored.
//!
//! Only its SHA-256 is kept. A slow hash such as Argon2 protects short secrets that people choose, against a
//! thief of the file who tries likely ones. 256 random bits cannot be tried, and every request would pay for
//! a slow hash. So short secrets are refused, both by the command that hashes them and with a request.

use std::fmt;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::{Choice, ConstantTimeEq as _};
use thiserror::Error;

/// The fewest characters of a secret. `ranktree token new` makes 68; good generators make 32 and more.
pub const SECRET_CHARS_MIN: usize = 32;
/// More than any generator makes; a longer one is not worth its hash.
const SECRET_CHARS_MAX: usize = 512;
/// Random bytes in a secret that this program makes.
const SECRET_BYTES: usize = 32;
/// A bearer token itself. Its `Debug` does not print it.
pub struct Secret(String);

/// The secret has too few or too many characters, or characters other than visible ASCII.
#[derive(Debug, Error)]
#[error(
    "a token must have {SECRET_CHARS_MIN} to {SECRET_CHARS_MAX} visible ASCII characters, and this one has {0}; ranktree token new makes a token"
)]
pub struct InvalidSecret(usize);

/// A secret's SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Secret {
    /// What ours begin with, so that scanners of repositories and logs can tell what leaked.
    pub const PREFIX: &str = "rkt_";

    /// A new one, from the system's random numbers.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn random() -> Result<Self, String> {
        let mut bytes = [0; SECRET_BYTES];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| "the operating system returned no random numbers".to_owned())?;
        let mut text = Self::PREFIX.to_owned();
        for byte in bytes {
            push_hex(&mut text, byte);
        }
        Ok(Self(text))
    }

    /// Takes one that somebody else made, or presents.
    ///
    /// # Errors
    /// When it is too short, or not what a header can carry.
    pub fn new(text: &str) -> Result<Self, InvalidSecret> {
        let is_good = (SECRET_CHARS_MIN..=SECRET_CHARS_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_good { Ok(Self(text.to_owned())) } else { Err(InvalidSecret(text.len())) }
    }

    pub fn digest(&self) -> Digest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, self.0.as_bytes()).as_ref());
        Digest(bytes)
    }

    /// The secret, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Digest {
    /// As 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).ok()?;
            // It would take a sign.
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            *byte = u8::from_str_radix(digits, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Equality in a time that does not tell how much of it was equal.
    pub(super) fn is(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            push_hex(&mut text, byte);
        }
        f.write_str(&text)
    }
}

fn push_hex(text: &mut String, byte: u8) {
    for digit in [byte >> 4, byte & 15] {
        text.push(char::from_digit(u32::from(digit), 16).expect("four bits are a hexadecimal digit"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_random_and_not_printed() {
        let [one, other] = [(); 2].map(|()| Secret::random().expect("random numbers"));
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!((one.reveal().len(), one.reveal().starts_with("rkt_")), (68, true));
        assert_eq!(Secret::new(one.reveal()).expect("long enough").digest(), one.digest());
        assert_eq!(format!("{one:?}"), "Secret(..)");
        let long = "x".repeat(513);
        for bad in ["", "hunter2", &"x".repeat(31), &long, &format!("{} y", "x".repeat(40)), &"é".repeat(20)]
        {
            assert!(Secret::new(bad).is_err(), "{bad}");
        }
        assert!(Secret::new(&"x".repeat(32)).is_ok());
    }

    #[test]
    fn digests_are_those_of_everyone_elses_sha256() {
        // printf %s abcdefghijklmnopqrstuvwxyz012345 | sha256sum
        let secret = Secret::new("abcdefghijklmnopqrstuvwxyz012345").expect("long enough");
        let text = "653bb1245e828fcda4fa53fcd5a3def5bd7654e651f54b4132b73d74e64435c4";
        assert_eq!(secret.digest().to_string(), text);
        assert_eq!(Digest::parse(text), Some(secret.digest()));
        assert_eq!(Digest::parse(&text.to_uppercase()), Some(secret.digest()));
        for bad in ["", "00", &"0".repeat(63), &"0".repeat(65), &"+1".repeat(32), &"é".repeat(32)] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
    }
}

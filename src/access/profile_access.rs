//! What a token of some boards allows with profiles.

use std::fmt;
use std::str::FromStr;

/// What a token that is confined to some boards allows with members' profiles. A profile is of a member and
/// not of a board: everybody who reads it on one board reads what was written for the others. Each includes
/// those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfileAccess {
    /// Neither reads nor writes them.
    #[default]
    None,
    /// Reads those of members with entries on its boards.
    Read,
    /// Writes those of all members as well, if its scope lets it write.
    Write,
}

impl ProfileAccess {
    pub const ALL: [Self; 3] = [Self::None, Self::Read, Self::Write];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl fmt::Display for ProfileAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ProfileAccess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|access| access.name() == text);
        found.ok_or_else(|| format!("profiles must be none, read or write; got {text:?}"))
    }
}

//! What a token is for.

use std::fmt;
use std::str::FromStr;

/// What a token is for. Each includes those before it: who may write sees the ranks that a write answers
/// with, and who may drop a board can do worse than write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Every read, the status, and the metrics, which are of all boards together.
    Read,
    /// Jobs: scores and removals of members. Creates boards with the defaults, where jobs may.
    Write,
    /// Definitions and drops of boards.
    Admin,
}

impl Scope {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| format!("the scope must be read, write or admin; got {text:?}"))
    }
}

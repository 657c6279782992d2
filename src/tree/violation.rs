//! A violated invariant of a tree.

use std::fmt;

/// Which invariant is violated, and where. The tree cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(String);

impl Violation {
    pub(super) fn new(what: String) -> Self {
        Self(what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

//! What does not hold of a tree.

use std::fmt;

/// What does not hold, and where. The tree cannot be trusted.
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

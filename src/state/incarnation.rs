//! The lives of a board's name.

/// Distinguishes successive boards of the same name. Greater is later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Incarnation(pub u64);

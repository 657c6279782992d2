//! The lives of a board's name.

/// Tells one life of a board from the next one of the same name. Greater is later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Incarnation(pub u64);

//! From when to when an instance is.

use crate::types::Timestamp;

/// From when to when an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub begin: Timestamp,
    /// Exclusive. `None`: no end is known.
    pub end: Option<Timestamp>,
}

impl Span {
    pub fn contains(&self, time: Timestamp) -> bool {
        self.begin <= time && self.end.is_none_or(|end| time < end)
    }
}

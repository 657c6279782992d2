//! Whether a connection goes on.

/// Whether a connection goes on after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Continue,
    Close,
}

impl Flow {
    /// Whether it goes on after both of two.
    pub fn or(self, other: Self) -> Self {
        if self == Self::Close { self } else { other }
    }
}

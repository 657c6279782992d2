//! That a board, or the service, takes no writes, and why.

use thiserror::Error;

use crate::types::Timestamp;

/// The longest reason, in bytes.
pub const MAX_REASON_BYTES: usize = 256;

/// Why and since when something is read-only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadOnly {
    /// For those whose writes are refused.
    pub reason: String,
    pub since: Timestamp,
}

/// A reason that nobody could read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the reason for being read-only must be 1 to {MAX_REASON_BYTES} bytes of text without control characters"
)]
pub struct InvalidReason;

impl ReadOnly {
    /// # Errors
    /// When the reason is empty, too long, or has control characters.
    pub fn check_reason(reason: &str) -> Result<(), InvalidReason> {
        let is_text = !reason.trim().is_empty() && !reason.chars().any(char::is_control);
        if is_text && reason.len() <= MAX_REASON_BYTES { Ok(()) } else { Err(InvalidReason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_a_short_line_of_text() {
        for good in ["moving to the new machines", "é", &"a".repeat(MAX_REASON_BYTES)] {
            assert_eq!(ReadOnly::check_reason(good), Ok(()), "{good}");
        }
        for bad in ["", "  ", "two\nlines", "\u{7f}", &"a".repeat(MAX_REASON_BYTES + 1)] {
            assert_eq!(ReadOnly::check_reason(bad), Err(InvalidReason), "{bad:?}");
        }
    }
}

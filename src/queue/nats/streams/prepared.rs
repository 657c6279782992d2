//! Whether the streams of a node are set up.

/// Whether the streams are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prepared {
    /// Not yet, and why.
    Waiting(String),
    Ready,
    /// A stream is configured otherwise than it must be; the text says what to do.
    Refused(String),
}

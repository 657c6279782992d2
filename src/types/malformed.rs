//! Why a text is not what it should be, and how much of somebody's text a message shows.

use thiserror::Error;

/// Why a name, an id or a number is not what it should be. The text is fit for a client to read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error(
        "a board's name must be 1 to 128 printable ASCII characters without space, %, ?, # and \\, and not begin with a dot"
    )]
    Board,
    #[error(
        "a node's name must be 1 to 64 letters, digits or characters of _.:-, and begin with a letter or digit"
    )]
    Node,
    #[error("a member id must be 1 to 256 bytes of UTF-8 without control characters")]
    Member,
    #[error("a score must have 1 to 8 keys")]
    Score,
    #[error(
        "a time must be RFC 3339 with an offset or Z, for example 2026-11-20T09:59:58Z, from 1970 to April 2262"
    )]
    Time,
    #[error("a token must be shard:sequence, or several of them joined by commas, for example 0:1842,1:1777")]
    Token,
}

impl Malformed {
    /// With the text that was refused.
    pub fn got(&self, text: &str) -> String {
        format!("{self}; got {}", quoted(text))
    }
}

/// The most characters of somebody's text that a message shows.
const SHOWN_CHARACTERS: usize = 40;

/// Somebody's text in quotation marks: cut, and escaped so that it cannot break an answer, a log line or a
/// terminal.
pub fn quoted(text: &str) -> String {
    let head: String = text.chars().take(SHOWN_CHARACTERS).collect();
    if head.len() < text.len() { format!("{head:?}... ({} bytes)", text.len()) } else { format!("{head:?}") }
}

/// The same for what brings its own quotation marks or needs none: JSON, a number.
pub fn shown(text: &str) -> String {
    let head = text.chars().take(SHOWN_CHARACTERS);
    let head: String = head.map(|c| if c.is_control() { ' ' } else { c }).collect();
    if head.len() < text.len() { format!("{head}... ({} bytes)", text.len()) } else { head }
}

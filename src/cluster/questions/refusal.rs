//! Why a node does not answer a question, as it travels.
//!
//! A refusal is the same in all formats: a zero, which is no format, then a byte for the reason, then words.
//! So a node understands the refusal of another one whose questions and replies it does not.

use std::fmt;

/// Words of a refusal that are kept.
const WORDS_MAX: usize = 512;

/// What the asking node does about a refusal follows from its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The node has as many questions in work as it takes.
    Overloaded,
    /// The node is ending.
    Ending,
    /// The shard may be behind what the node could not see while it was away.
    NotLevel,
    /// The shard has not applied what the question asks for.
    NotYetApplied,
    /// The node does not know the format.
    Format,
    /// The question cannot be read, or asks for too much.
    Invalid,
    /// The reply would be too large.
    TooLarge,
    /// What is asked for is on the node's disk, and cannot be read there now.
    Unreadable,
    /// The shard takes no writes there now.
    NoWrites,
    /// Messages were published, and what became of them is not known.
    Unknown,
    /// What the question asks for is of another history of the shard.
    OtherHistory,
    /// A reason that this version does not know.
    Other(u8),
}

/// A node's answer that it does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: Reason,
    pub words: String,
}

impl Refusal {
    pub fn new(reason: Reason, words: impl fmt::Display) -> Self {
        Self { reason, words: words.to_string() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0, self.reason.number()];
        bytes.extend(self.words.bytes().take(WORDS_MAX));
        bytes
    }

    /// Reads what follows the zero.
    pub fn decode(bytes: &[u8]) -> Self {
        let (number, words) =
            bytes.split_first().map_or((u8::MAX, bytes), |(number, words)| (*number, words));
        let words = words.get(..words.len().min(WORDS_MAX)).unwrap_or_default();
        Self { reason: Reason::of(number), words: String::from_utf8_lossy(words).into_owned() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl Reason {
    fn number(self) -> u8 {
        match self {
            Self::Overloaded => 1,
            Self::Ending => 2,
            Self::NotLevel => 3,
            Self::NotYetApplied => 4,
            Self::Format => 5,
            Self::Invalid => 6,
            Self::TooLarge => 7,
            Self::Unreadable => 8,
            Self::NoWrites => 9,
            Self::Unknown => 10,
            Self::OtherHistory => 11,
            Self::Other(number) => number,
        }
    }

    fn of(number: u8) -> Self {
        match number {
            1 => Self::Overloaded,
            2 => Self::Ending,
            3 => Self::NotLevel,
            4 => Self::NotYetApplied,
            5 => Self::Format,
            6 => Self::Invalid,
            7 => Self::TooLarge,
            8 => Self::Unreadable,
            9 => Self::NoWrites,
            10 => Self::Unknown,
            11 => Self::OtherHistory,
            other => Self::Other(other),
        }
    }

    /// For metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::Ending => "ending",
            Self::NotLevel => "not_level",
            Self::NotYetApplied => "not_yet_applied",
            Self::Format => "format",
            Self::Invalid => "invalid",
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::NoWrites => "no_writes",
            Self::Unknown => "unknown",
            Self::OtherHistory => "other_history",
            Self::Other(_) => "other",
        }
    }
}

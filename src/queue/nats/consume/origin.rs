//! Which stream a shard is filled from, and how its sequences are counted here.
//!
//! Knows: the text that is stored beside the applied sequence, in the same write batch. Must not know: when a
//! shard changes to another stream; see `fetcher::rebase`.

use std::fmt;

use async_nats::jetstream::stream;

/// Where a shard's messages come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The stream's identity; empty if none is known.
    pub stream: String,
    /// How much greater a message's sequence is here than in the stream. 0, except during a rebase onto a
    /// stream whose sequences stand for other messages here.
    pub sequence_offset: u64,
}

impl Origin {
    pub fn of(info: &stream::Info) -> Self {
        Self { stream: identity(info), sequence_offset: 0 }
    }

    /// Reads what [`fmt::Display`] wrote. Text that it did not write is the identity of no stream.
    pub fn read(text: &str) -> Self {
        let with_offset = text.rsplit_once('+').filter(|(stream, _)| stream.contains('@'));
        match with_offset.and_then(|(stream, offset)| Some((stream, offset.parse().ok()?))) {
            Some((stream, sequence_offset)) => Self { stream: stream.to_owned(), sequence_offset },
            None => Self { stream: text.to_owned(), sequence_offset: 0 },
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sequence_offset {
            0 => f.write_str(&self.stream),
            offset => write!(f, "{}+{offset}", self.stream),
        }
    }
}

/// The identity of a stream. A stream that is deleted and created again has the same name, but another time
/// of creation.
pub fn identity(info: &stream::Info) -> String {
    format!("{}@{}", info.config.name, info.created.unix_timestamp_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_reads_back_from_its_text() {
        for sequence_offset in [0, 1, u64::MAX] {
            let origin = Origin { stream: "RANKTREE_JOBS_0@1763700000000000000".to_owned(), sequence_offset };
            assert_eq!(Origin::read(&origin.to_string()), origin);
        }
        assert_eq!(Origin::read(""), Origin::default());
        for other in ["RANKTREE_JOBS_0@17+x", "RANKTREE_JOBS_0@17+", "+5"] {
            assert_eq!(Origin::read(other), Origin { stream: other.to_owned(), sequence_offset: 0 });
        }
    }
}

//! What nodes say to each other about copies, as bytes.
//!
//! Questions and short answers are JSON. They state their format, and from which format on a reader
//! understands them, as entries of the key-value buckets do. A chunk of a file is binary:
//!
//! ```text
//! "RTCC" | crc32c of what follows: u32 | file: u32 | offset: u64 | bytes ...      little-endian
//! ```

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::queue::nats::entries;

const MAGIC: &[u8; 4] = b"RTCC";
/// Magic, checksum, file and offset.
pub const CHUNK_HEADER_BYTES: usize = 4 + 4 + 4 + 8;

/// What a node asks another one for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Question {
    /// To copy a shard and to hold the copy.
    Begin {
        /// The node that asks, and its data directory.
        node: String,
        directory: String,
        shards: u16,
        /// The identity of the stream that the copy must be of, and the first message that it has.
        stream: String,
        first: u64,
        /// The format of storage that the node reads.
        storage: u32,
    },
    /// For a chunk of a file.
    Read { copy: String, file: u32, offset: u64, length: u64 },
    /// To let go of the copy.
    Release { copy: String },
}

/// A short answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Answer {
    /// A copy is held.
    Copy(OfferedCopy),
    /// It was let go of.
    Released,
    /// The reason, in words.
    Refused { why: String },
}

/// A copy that another node holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedCopy {
    pub copy: String,
    pub shards: u16,
    pub stream: String,
    /// The applied sequence that it holds.
    pub sequence: u64,
    /// Names and sizes. A chunk names its file by its place in this list.
    pub files: Vec<(String, u64)>,
}

/// A question or a short answer as it is sent.
pub fn encode(said: &impl Serialize) -> Bytes {
    entries::encode(said).into()
}

/// Reads a question or a short answer.
///
/// # Errors
/// When a later version wrote it for later versions only, or no node wrote it.
pub fn read<S: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<S, String> {
    entries::read(bytes).map_err(|why| why.to_string())
}

/// A chunk of a file as it is sent.
pub fn encode_chunk(file: u32, offset: u64, data: &[u8]) -> Bytes {
    let mut chunk = Vec::with_capacity(CHUNK_HEADER_BYTES + data.len());
    chunk.extend_from_slice(MAGIC);
    chunk.extend_from_slice(&[0; 4]);
    chunk.extend_from_slice(&file.to_le_bytes());
    chunk.extend_from_slice(&offset.to_le_bytes());
    chunk.extend_from_slice(data);
    let checksum = crc32c::crc32c(chunk.get(8..).unwrap_or_default()).to_le_bytes();
    chunk.get_mut(4..8).into_iter().for_each(|place| place.copy_from_slice(&checksum));
    chunk.into()
}

/// The bytes of a chunk.
///
/// # Arguments
/// `length`: how many it must have.
///
/// # Errors
/// When it is damaged, or another one. If it is a refusal, its reason.
pub fn read_chunk(chunk: &Bytes, file: u32, offset: u64, length: u64) -> Result<Bytes, ChunkError> {
    if chunk.first() == Some(&b'{') {
        return Err(match read(chunk) {
            Ok(Answer::Refused { why }) => ChunkError::Refused(why),
            Ok(_) => ChunkError::Damaged("the answer is not a chunk".to_owned()),
            Err(error) => ChunkError::Damaged(error),
        });
    }
    let damaged = |what: &str| Err(ChunkError::Damaged(format!("a chunk is damaged: {what}")));
    let Some((header, data)) = chunk.split_at_checked(CHUNK_HEADER_BYTES) else {
        return damaged("it is too short");
    };
    let mut expect = Vec::from(*MAGIC);
    let checksum = crc32c::crc32c(chunk.get(8..).unwrap_or_default());
    expect.extend_from_slice(&checksum.to_le_bytes());
    if header.get(..8) != Some(&expect) {
        return damaged("it does not have the checksum that it states");
    }
    expect.extend_from_slice(&file.to_le_bytes());
    expect.extend_from_slice(&offset.to_le_bytes());
    if header != expect {
        return damaged("it is another one than was asked for");
    }
    if u64::try_from(data.len()) != Ok(length) {
        return damaged("it has another length than was asked for");
    }
    Ok(chunk.slice(CHUNK_HEADER_BYTES..))
}

/// Why a chunk cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkError {
    Damaged(String),
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered() -> OfferedCopy {
        OfferedCopy {
            copy: "c".to_owned(),
            shards: 2,
            stream: "S@1".to_owned(),
            sequence: 7,
            files: vec![("CURRENT".to_owned(), 16)],
        }
    }

    #[test]
    fn golden_questions_and_answers() {
        let begin = Question::Begin {
            node: "b".to_owned(),
            directory: "d".to_owned(),
            shards: 2,
            stream: "S@1".to_owned(),
            first: 5,
            storage: 2,
        };
        let question = |question: &Question, text: &str| {
            assert_eq!(encode(question), text);
            assert_eq!(read(text.as_bytes()).as_ref(), Ok(question));
        };
        question(
            &begin,
            r#"{"format":1,"readable_from":1,"do":"begin","node":"b","directory":"d","shards":2,"stream":"S@1","first":5,"storage":2}"#,
        );
        question(
            &Question::Read { copy: "c".to_owned(), file: 1, offset: 2, length: 3 },
            r#"{"format":1,"readable_from":1,"do":"read","copy":"c","file":1,"offset":2,"length":3}"#,
        );
        question(
            &Question::Release { copy: "c".to_owned() },
            r#"{"format":1,"readable_from":1,"do":"release","copy":"c"}"#,
        );
        let answer = |answer: &Answer, text: &str| {
            assert_eq!(encode(answer), text);
            assert_eq!(read(text.as_bytes()).as_ref(), Ok(answer));
        };
        answer(
            &Answer::Copy(offered()),
            r#"{"format":1,"readable_from":1,"is":"copy","copy":"c","shards":2,"stream":"S@1","sequence":7,"files":[["CURRENT",16]]}"#,
        );
        answer(&Answer::Released, r#"{"format":1,"readable_from":1,"is":"released"}"#);
        answer(
            &Answer::Refused { why: "no".to_owned() },
            r#"{"format":1,"readable_from":1,"is":"refused","why":"no"}"#,
        );
    }

    #[test]
    fn what_a_later_version_says_is_read_if_it_says_so_and_refused_in_words_otherwise() {
        let later = |from: u32| {
            let text = format!(r#"{{"format":9,"readable_from":{from},"is":"released","more":1}}"#);
            read::<Answer>(text.as_bytes())
        };
        assert_eq!(later(1), Ok(Answer::Released));
        let refused = later(9).expect_err("it is for later versions");
        assert!(refused.contains("format 9") && refused.contains("upgrade"), "{refused}");
        for foreign in ["", "x", "{}", r#"{"format":1,"readable_from":1,"is":"what"}"#] {
            assert!(read::<Answer>(foreign.as_bytes()).is_err(), "{foreign}");
        }
    }

    #[test]
    fn a_chunk_with_any_byte_changed_or_of_another_place_is_refused() {
        let chunk = encode_chunk(3, 512, b"some pages");
        assert_eq!(read_chunk(&chunk, 3, 512, 10), Ok(Bytes::from_static(b"some pages")));
        assert_eq!(read_chunk(&encode_chunk(3, 522, b""), 3, 522, 0), Ok(Bytes::new()));
        for at in 0..chunk.len() {
            let mut flipped = chunk.to_vec();
            flipped.get_mut(at).into_iter().for_each(|byte| *byte ^= 1);
            let refused = read_chunk(&flipped.into(), 3, 512, 10);
            assert!(matches!(refused, Err(ChunkError::Damaged(_))), "{at}: {refused:?}");
            let refused = read_chunk(&chunk.slice(..at), 3, 512, 10);
            assert!(matches!(refused, Err(ChunkError::Damaged(_))), "{at}: {refused:?}");
        }
        for (file, offset, length) in [(2, 512, 10), (3, 511, 10), (3, 512, 9), (3, 512, 11)] {
            let refused = read_chunk(&chunk, file, offset, length);
            assert!(matches!(refused, Err(ChunkError::Damaged(_))), "{refused:?}");
        }
        let refusal = encode(&Answer::Refused { why: "it is gone".to_owned() });
        assert_eq!(read_chunk(&refusal, 3, 512, 10), Err(ChunkError::Refused("it is gone".to_owned())));
    }
}

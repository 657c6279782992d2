//! Questions and replies as bytes: the only place outside of `storage::codec` that knows bincode.
//!
//! Knows: the layout and the format version. Must not know: NATS, or what a question means.
//!
//! The layout is bincode's with variable-length numbers, which the golden tests fix. A byte in front says the
//! format. A node that does not know the format says so in words. Words of entries are stored by their
//! distance from 2^63, as on disk: for small scores that is one byte or three.
//!
//! Bytes of another node may be anything. Decoding takes a bounded amount of memory, and what it yields is
//! checked before it is used.

mod combine;
mod counterparts;
mod profiles;
mod question;
mod reply;
mod summary;
mod trim;

#[cfg(test)]
mod tests;

use bincode::config::{Configuration, standard};
use thiserror::Error;

pub use question::{AskedQuestion, decode_question, encode_question};
pub use reply::{decode_reply, encode_reply};
pub use trim::{AskedTrim, TRIM_FORMAT, decode_trim, decode_trimmed, encode_trim, encode_trimmed};

/// The only format that is written and read: another number with every change.
pub const FORMAT: u8 = 1;

/// The greatest question. NATS lets through 1 MiB by default.
pub const QUESTION_BYTES_MAX: usize = 768 << 10;
/// The greatest reply, of which each message carries a part. The largest that a question within the limits
/// asks for is 2,048 entries with a kibibyte of metadata each, and a profile of four.
pub const REPLY_BYTES_MAX: usize = 12 << 20;

/// What decoding may take for lists. It counts a list's memory before it is reserved.
const QUESTION_MEMORY_MAX: usize = 4 << 20;
const REPLY_MEMORY_MAX: usize = 24 << 20;

const CONFIG: Configuration = standard();

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Undecodable {
    #[error("it has format {found}, and this node reads format {FORMAT}")]
    Format { found: u8 },
    #[error("it cannot be read: {0}")]
    Bytes(String),
    #[error("it has {bytes} bytes, and the limit is {limit}")]
    TooLarge { bytes: usize, limit: usize },
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass errors with `map_err`, which passes them by value"
)]
fn undecodable(why: impl ToString) -> Undecodable {
    Undecodable::Bytes(why.to_string())
}

/// The bytes behind the format of questions and replies.
fn body(bytes: &[u8], limit: usize) -> Result<&[u8], Undecodable> {
    body_of(FORMAT, bytes, limit)
}

/// The bytes behind a format.
fn body_of(format: u8, bytes: &[u8], limit: usize) -> Result<&[u8], Undecodable> {
    if bytes.len() > limit {
        return Err(Undecodable::TooLarge { bytes: bytes.len(), limit });
    }
    match bytes.split_first() {
        Some((&found, body)) if found == format => Ok(body),
        Some((&found, _)) => Err(Undecodable::Format { found }),
        None => Err(undecodable("it is empty")),
    }
}

fn encode(value: &impl bincode::Encode, limit: usize) -> Result<Vec<u8>, Undecodable> {
    encode_as(FORMAT, value, limit)
}

fn encode_as(format: u8, value: &impl bincode::Encode, limit: usize) -> Result<Vec<u8>, Undecodable> {
    let mut bytes = vec![format];
    bincode::encode_into_std_write(value, &mut bytes, CONFIG).map_err(undecodable)?;
    if bytes.len() > limit {
        return Err(Undecodable::TooLarge { bytes: bytes.len(), limit });
    }
    Ok(bytes)
}

/// A question within another one, or a reply, as bytes.
fn nested(value: &impl bincode::Encode) -> Vec<u8> {
    // Memory can always be written to. No bytes would be refused as undecodable.
    bincode::encode_to_vec(value, CONFIG).unwrap_or_default()
}

fn decode<'a, T: bincode::BorrowDecode<'a, ()>, const MEMORY: usize>(
    body: &'a [u8],
) -> Result<T, Undecodable> {
    let decoded = bincode::borrow_decode_from_slice(body, CONFIG.with_limit::<MEMORY>());
    let (value, read) = decoded.map_err(undecodable)?;
    if read == body.len() { Ok(value) } else { Err(undecodable("there are more bytes after its end")) }
}

//! The bincode configuration, and the error for bytes that it cannot read.
//!
//! Knows: how a value is encoded and decoded within a bound of memory. Must not know: any record.

use bincode::config::{Configuration, standard};
use bincode::error::DecodeError;
use bincode::{Decode, Encode};
use thiserror::Error;

pub(super) const CONFIG: Configuration = standard();

/// A damaged length must not reserve memory without a bound. Decoding takes at most this many bytes of memory
/// for each byte of the record, even if the record then ends too early. The worst record, a dropped board
/// whose name is one letter, takes 26.
const MEMORY_PER_BYTE: usize = 32;

/// Bytes that are not a valid value of their kind.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a {kind} cannot be read: {reason}")]
pub struct Undecodable {
    pub kind: &'static str,
    pub reason: String,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass errors with `map_err`, which passes them by value"
)]
pub(in crate::storage) fn undecodable(kind: &'static str, reason: impl ToString) -> Undecodable {
    Undecodable { kind, reason: reason.to_string() }
}

pub(super) fn to_vec(value: &impl Encode) -> Vec<u8> {
    bincode::encode_to_vec(value, CONFIG).expect("writing to memory does not fail")
}

pub(super) fn from_slice<T: Decode<()>>(kind: &'static str, bytes: &[u8]) -> Result<T, Undecodable> {
    let (value, read) = decode_bounded(bytes).map_err(|error| undecodable(kind, error))?;
    if read == bytes.len() { Ok(value) } else { Err(undecodable(kind, "there are more bytes after its end")) }
}

/// Decodes with a limit of memory in proportion to the record's length. The limit is rounded up to a power of
/// 64, because bincode's limits are constants.
pub(super) fn decode_bounded<T: Decode<()>>(bytes: &[u8]) -> Result<(T, usize), DecodeError> {
    let bound = bytes.len().saturating_mul(MEMORY_PER_BYTE);
    if bound <= 1 << 14 {
        bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 1 << 14 }>())
    } else if bound <= 1 << 20 {
        bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 1 << 20 }>())
    } else if bound <= 1 << 26 {
        bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 1 << 26 }>())
    } else {
        bincode::decode_from_slice(bytes, CONFIG.with_limit::<{ 1 << 32 }>())
    }
}

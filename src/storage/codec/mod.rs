//! Values as bytes: the only place that knows bincode.
//!
//! Knows: every record's layout and the format version. Must not know: keys, or RocksDB.
//!
//! bincode is pinned to 2.0.1 and its layout is fixed by the golden tests in `tests`. There will be no
//! further releases (RUSTSEC-2025-0141), which does no harm to a disk format. If bincode has to be replaced,
//! only this folder changes.
//!
//! Numbers are variable-length: a byte up to 250, then 3, 5 or 9 bytes. Words are stored by their distance
//! from 2^63, in zigzag encoding. That distance is the score itself for either direction, so small scores
//! take one or three bytes. In pages each column is stored by its distance from its least word.

mod bytes;
mod definition;
mod numbers;
mod parts;

mod checkpoint;
mod delta;
mod extras;
mod hashes;
mod records;

pub use bytes::Undecodable;
pub(super) use bytes::undecodable;
pub use checkpoint::{
    EntriesPage, Manifest, ManifestBoard, decode_dictionary, decode_entries, decode_manifest,
    encode_dictionary, encode_entries, encode_manifest,
};
pub use delta::{Delta, DeltaChange, DeltaEncoder, decode_delta, encode_delta};
pub use extras::{decode_extras, encode_extras};
pub use hashes::{
    Divergence, decode_copied_from, decode_divergence, decode_hash_point, decode_log_hash,
    encode_copied_from, encode_divergence, encode_hash_point, encode_log_hash,
};
pub use records::{
    Meta, MetadataRecord, ParkedRecord, ProfileRecord, RejectRecord, board_of_reject, decode_ban,
    decode_job_id, decode_last_job, decode_member_version, decode_meta, decode_metadata, decode_parked,
    decode_place, decode_profile, decode_reject, decode_sequence, encode_ban, encode_job_id, encode_last_job,
    encode_member_version, encode_meta, encode_metadata, encode_parked, encode_place, encode_profile,
    encode_reject, encode_sequence, format_version,
};

/// The format of a directory's records: the only one that is read, and another number with every change of
/// any of them.
pub const FORMAT_VERSION: u32 = 5;

#[cfg(test)]
mod tests;

//! A record of RocksDB's log: a write batch, of which only the sequence and the value of one key are read.
//!
//! ```text
//! first sequence: u64 │ operations: u32 │ operation…
//! operation   kind: u8 │ column family: varint, for some │ key or text │ value or end of the range, for some
//! ```

const PUT: u8 = 0x01;
const FAMILY_DELETE: u8 = 0x04;
const FAMILY_PUT: u8 = 0x05;
const FAMILY_DELETE_RANGE: u8 = 0x0e;

/// RocksDB's number of the last operation in a batch.
pub fn last_rocksdb_sequence(record: &[u8]) -> Option<u64> {
    let (first, rest) = record.split_first_chunk::<8>()?;
    let operations = u32::from_le_bytes(*rest.first_chunk::<4>()?);
    Some(u64::from_le_bytes(*first) + u64::from(operations).saturating_sub(1))
}

/// Whether the batch writes nothing. RocksDB writes such a batch into the new log that it begins after a torn
/// one.
pub fn is_empty(record: &[u8]) -> bool {
    record.get(8..12).is_some_and(|operations| operations == [0; 4])
}

/// The value that a batch puts for a key in a column family other than the default one.
pub fn put_of<'a>(record: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let mut rest = record.get(12..)?;
    let mut found = None;
    while let Some((kind, after)) = rest.split_first() {
        rest = after;
        match *kind {
            FAMILY_PUT => {
                varint(&mut rest)?;
                let (key, value) = (slice(&mut rest)?, slice(&mut rest)?);
                if key == wanted {
                    found = Some(value);
                }
            }
            FAMILY_DELETE => {
                varint(&mut rest)?;
                slice(&mut rest)?;
            }
            FAMILY_DELETE_RANGE => {
                varint(&mut rest)?;
                slice(&mut rest)?;
                slice(&mut rest)?;
            }
            PUT => {
                slice(&mut rest)?;
                slice(&mut rest)?;
            }
            // ranktree writes no other kinds.
            _ => return None,
        }
    }
    found
}

/// A text with its length before it.
pub fn slice<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint(rest)?).ok()?;
    let (slice, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(slice)
}

/// A number, seven bits a byte, the lowest first.
pub fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

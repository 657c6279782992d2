//! RocksDB's framing of logs and manifests: records in fragments, fragments in blocks of 32 KiB.
//!
//! ```text
//! fragment   crc32c of type and payload, masked: u32 │ length: u16 │ type: u8 │ payload
//! types      1 a whole record, 2 its beginning, 3 its middle, 4 its end
//! ```
//!
//! The last bytes of a block are zeros if a header does not fit. RocksDB has other types (for recycled logs,
//! compression, timestamps), but does not write them with our options.
//!
//! RocksDB's own reader is not used, because some damage makes it loop forever: it neither accepts nor skips
//! a fragment whose type was changed to one of a recycled log (`ReadPhysicalRecord`, 11.8.1). It also skips
//! zeros without an error, and any records among them.

use std::ops::ControlFlow;

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;

const WHOLE: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;
/// RocksDB's types in recycled logs, whose header is longer.
const OF_REUSED_LOGS: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// A break: the place from which on a file is not a sequence of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// Where the last whole record ends.
    pub at: usize,
    /// Whether a record begins somewhere behind it.
    pub records_follow: bool,
    /// Whether RocksDB's reader returns from it.
    pub rocksdb_returns: bool,
}

/// Hands every record to `each`, in order, until `each` stops it. Returns the break, if the file has one.
pub fn read_records(bytes: &[u8], mut each: impl FnMut(&[u8]) -> ControlFlow<()>) -> Option<Break> {
    let (mut at, mut record_end) = (0, 0);
    // Fragments of a record that has not ended.
    let mut begun: Option<Vec<u8>> = None;
    loop {
        at = skip_trailer(at);
        if at >= bytes.len() {
            // An unfinished record at the end is a break too.
            return begun.map(|_| Break { at: record_end, records_follow: false, rocksdb_returns: true });
        }
        let Some(fragment) = fragment_at(bytes, at) else { return Some(break_at(bytes, record_end, at)) };
        let end = at + HEADER + fragment.payload.len();
        let flow = match (fragment.kind, &mut begun) {
            (WHOLE, None) => each(fragment.payload),
            (FIRST, None) => {
                begun = Some(fragment.payload.to_vec());
                ControlFlow::Continue(())
            }
            (MIDDLE, Some(record)) => {
                record.extend(fragment.payload);
                ControlFlow::Continue(())
            }
            (LAST, Some(_)) => {
                let mut record = begun.take().unwrap_or_default();
                record.extend(fragment.payload);
                each(&record)
            }
            // The fragment is intact but out of place: its predecessor is missing.
            _ => return Some(break_at(bytes, record_end, at)),
        };
        at = end;
        if begun.is_none() {
            record_end = at;
        }
        if flow.is_break() {
            return None;
        }
    }
}

struct Fragment<'a> {
    kind: u8,
    payload: &'a [u8],
}

impl Fragment<'_> {
    fn begins_a_record(&self) -> bool {
        matches!(self.kind, WHOLE | FIRST)
    }
}

fn fragment_at(bytes: &[u8], at: usize) -> Option<Fragment<'_>> {
    let block_end = (at / BLOCK + 1) * BLOCK;
    let within = bytes.get(at..block_end.min(bytes.len()))?;
    let (header, rest) = within.split_first_chunk::<HEADER>()?;
    let [c0, c1, c2, c3, l0, l1, kind] = *header;
    if !(WHOLE..=LAST).contains(&kind) {
        return None;
    }
    let payload = rest.get(..usize::from(u16::from_le_bytes([l0, l1])))?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&[kind]), payload);
    (masked(crc) == u32::from_le_bytes([c0, c1, c2, c3])).then_some(Fragment { kind, payload })
}

/// Masks a checksum as RocksDB does before it stores it. It is problematic to compute a CRC of bytes that
/// contain CRCs themselves.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Skips the end of a block in which no header fits. Its content has no meaning.
fn skip_trailer(at: usize) -> usize {
    let left = BLOCK - at % BLOCK;
    if left < HEADER { at + left } else { at }
}

fn break_at(bytes: &[u8], record_end: usize, at: usize) -> Break {
    Break {
        at: record_end,
        records_follow: begins_a_record_from(bytes, at),
        rocksdb_returns: rocksdb_returns_from(bytes, at),
    }
}

/// Whether a record begins at or after this place: at any byte of the rest of the block, or at a fragment of
/// a later block.
fn begins_a_record_from(bytes: &[u8], at: usize) -> bool {
    let anywhere = |from: usize, to: usize| {
        (from..to).any(|at| fragment_at(bytes, at).is_some_and(|fragment| fragment.begins_a_record()))
    };
    let next_block = (at / BLOCK + 1) * BLOCK;
    if anywhere(at, next_block.min(bytes.len())) {
        return true;
    }
    (next_block..bytes.len()).step_by(BLOCK).any(|block| {
        let block_end = (block + BLOCK).min(bytes.len());
        let mut at = block;
        while at < block_end {
            match fragment_at(bytes, at) {
                Some(fragment) if fragment.begins_a_record() => return true,
                Some(fragment) => at += HEADER + fragment.payload.len(),
                None => return anywhere(at, block_end),
            }
        }
        false
    })
}

/// Whether RocksDB's reader reaches the end of the file from here, instead of looping forever. It skips the
/// rest of a block that it cannot read.
fn rocksdb_returns_from(bytes: &[u8], from: usize) -> bool {
    let mut at = from;
    while at < bytes.len() {
        let next_block = (at / BLOCK + 1) * BLOCK;
        let kind = (next_block - at >= HEADER).then(|| bytes.get(at + HEADER - 1)).flatten();
        if kind.is_some_and(|kind| OF_REUSED_LOGS.contains(kind)) {
            return false;
        }
        at = fragment_at(bytes, at).map_or(next_block, |fragment| at + HEADER + fragment.payload.len());
    }
    true
}

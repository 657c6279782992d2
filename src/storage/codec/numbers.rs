//! Numbers put down by hand, byte for byte as bincode's standard configuration encodes them.

/// One byte up to 250; above that a mark, and 2, 4 or 8 bytes.
const IN_ONE_BYTE: u8 = 250;
const TWO_BYTES: u8 = 251;
const FOUR_BYTES: u8 = 252;
const EIGHT_BYTES: u8 = 253;

#[inline]
pub(super) fn put_unsigned(bytes: &mut Vec<u8>, number: u64) {
    if let Ok(small @ 0..=IN_ONE_BYTE) = u8::try_from(number) {
        bytes.push(small);
        return;
    }
    let (mark, length) = match number {
        0..=0xffff => (TWO_BYTES, 2),
        0x1_0000..=0xffff_ffff => (FOUR_BYTES, 4),
        _ => (EIGHT_BYTES, 8),
    };
    let mut marked = [mark; 9];
    marked[1..].copy_from_slice(&number.to_le_bytes());
    // All nine, and then those that are too many away: a copy of a fixed length takes two instructions.
    let end = bytes.len() + 1 + length;
    bytes.extend_from_slice(&marked);
    bytes.truncate(end);
}

/// By its distance from 0, the sign in the lowest bit.
#[inline]
pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put_unsigned(bytes, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::codec::bytes::to_vec;

    #[test]
    fn numbers_are_put_down_as_bincode_encodes_them() {
        let near = |power: u32| (-3..=3).map(move |off: i64| (1_u64 << power).wrapping_add_signed(off));
        let unsigned = (0..=600).chain((0..64).flat_map(near)).chain([u64::MAX]);
        for number in unsigned {
            let mut bytes = Vec::new();
            put_unsigned(&mut bytes, number);
            assert_eq!(bytes, to_vec(&number), "{number}");
            for signed in [number.cast_signed(), number.cast_signed().wrapping_neg()] {
                let mut bytes = Vec::new();
                put_signed(&mut bytes, signed);
                assert_eq!(bytes, to_vec(&signed), "{signed}");
            }
        }
    }
}

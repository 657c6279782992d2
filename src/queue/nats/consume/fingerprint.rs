//! By what a message of a stream is recognised: its time, to the microsecond, and a hash of its bytes.

use crate::types::Timestamp;

/// A hash of a message's bytes by which it is recognised. It is stored on disk, so it must never change.
pub fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(0x5bd1_e995, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let hash = mix(mix(hash, u64::from_le_bytes(last)), length);
    (hash ^ (hash >> 32)).wrapping_mul(FACTOR)
}

/// A server's time, to the microsecond.
pub fn micros_of(nanos: i128) -> Timestamp {
    let micros = i64::try_from(nanos / 1_000).unwrap_or_default();
    Timestamp::from_micros(micros).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(hash(b""), HASHES[0]);
        assert_eq!(hash(b"{\"board\":\"arena\"}"), HASHES[1]);
        assert_ne!(hash(b"12345678"), hash(b"123456780"));
        assert_ne!(hash(b"1234567\0"), hash(b"1234567"));
    }

    const HASHES: [u64; 2] = [1_674_110_307_837_385_759, 8_372_114_980_810_953_509];
}

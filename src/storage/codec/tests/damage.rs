//! What was cut short, damaged or never written is an error, and nothing else.

use proptest::prelude::*;

use crate::storage::codec::tests::samples::kinds;

#[test]
fn what_was_cut_short_or_added_to_is_refused() {
    for (kind, bytes, reads) in kinds() {
        assert!(reads(&bytes), "{kind}");
        for length in 0..bytes.len() {
            assert!(!reads(&bytes[..length]), "{kind} of {length} bytes");
        }
        let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
        assert!(!reads(&longer), "{kind} and a byte");
    }
}

/// A length that says 2^63 or 2^31 is the cheapest way to end a process, by its allocator or by a panic.
#[test]
fn a_damaged_length_reserves_no_memory() {
    for (kind, bytes, reads) in kinds() {
        for at in 0..bytes.len() {
            for length in
                [&[0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[0xfc, 0xff, 0xff, 0xff, 0x7f]]
            {
                let mut damaged = bytes.clone();
                damaged.splice(at..=at, length.iter().copied());
                // Where there was a number and no length, it may even be readable: it only must not end the
                // process.
                let readable = reads(&damaged);
                assert!(!readable || kind != "dictionary" || at > 0, "{kind} with a length at {at}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes that nobody wrote: whatever they are read as, it ends, in little memory, without a panic.
    #[test]
    fn garbage_is_an_error_or_a_value(
        garbage in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0_usize..80,
    ) {
        for (_, bytes, reads) in kinds() {
            let _ = reads(&garbage);
            let mut spliced = bytes.clone();
            spliced.truncate(cut);
            spliced.extend(&garbage);
            let _ = reads(&spliced);
        }
    }
}

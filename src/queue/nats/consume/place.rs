//! A message's place in its stream, as the subject to reply to says it:
//! `$JS.ACK.stream.consumer.deliveries.sequence.consumer-sequence.nanoseconds.pending`. With a domain and an
//! account before the stream, more may follow.
//!
//! Knows: all messages of a consumer have the same beginning, up to its name; it is read once.

use crate::queue::nats::consume::fingerprint::micros_of;
use crate::types::Timestamp;

const BEGINNING: &str = "$JS.ACK.";
/// What stands between that and the numbers: stream and consumer, with or without domain and account.
const NAMES: [usize; 2] = [2, 4];
const NUMBERS: usize = 5;

/// A message's place in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its sequence in the stream.
    pub sequence: u64,
    /// When the stream stored it.
    pub timestamp: Timestamp,
    /// How many messages are behind it.
    pub pending: u64,
}

/// Reads the places of a consumer's messages.
#[derive(Default)]
pub struct Places {
    /// What all of them begin with; empty before the first.
    beginning: String,
}

impl Places {
    /// `None` if the subject is not of that form.
    pub fn read(&mut self, reply: &str) -> Option<Place> {
        let numbers = match reply.strip_prefix(self.beginning.as_str()) {
            Some(numbers) if !self.beginning.is_empty() => numbers,
            Some(_) | None => {
                let numbers = numbers_of(reply)?;
                let beginning = reply.len() - numbers.len();
                reply.get(..beginning)?.clone_into(&mut self.beginning);
                numbers
            }
        };
        let mut numbers = numbers.as_bytes().splitn(NUMBERS + 1, |byte| *byte == b'.');
        let [_, sequence, _, nanos, pending] =
            [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
        Some(Place {
            sequence: decimal(sequence)?,
            timestamp: micros_of(i128::from(decimal(nanos)?)),
            pending: decimal(pending)?,
        })
    }
}

/// What comes after the names.
fn numbers_of(reply: &str) -> Option<&str> {
    let rest = reply.strip_prefix(BEGINNING)?;
    let tokens = rest.split('.').count();
    let [short, long] = NAMES;
    let names = if tokens == short + NUMBERS { short } else { long };
    if tokens < names + NUMBERS {
        return None;
    }
    rest.splitn(names + 1, '.').nth(names)
}

/// A decimal number, eight digits at a time.
fn decimal(digits: &[u8]) -> Option<u64> {
    let (eights, rest) = digits.as_chunks::<8>();
    let head = eights.iter().try_fold(0_u64, |number, eight| {
        number.checked_mul(100_000_000)?.checked_add(eight_digits(u64::from_le_bytes(*eight))?)
    })?;
    let number = rest.iter().try_fold(head, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    });
    number.filter(|_| !digits.is_empty())
}

/// The number that eight digits say, the first of them in the lowest byte. Pairs are added up, then pairs of
/// these, then the two halves.
fn eight_digits(text: u64) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let zeros = EACH * 0x30;
    // Each byte begins with a 3, also with 6 added to it.
    if (text & (EACH * 0xf0)) != zeros || (text.wrapping_add(EACH * 6) & (EACH * 0xf0)) != zeros {
        return None;
    }
    let digits = text - zeros;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(sequence: u64, micros: i64, pending: u64) -> Place {
        Place { sequence, timestamp: Timestamp::from_micros(micros).expect("in range"), pending }
    }

    #[test]
    fn a_place_is_read_with_and_without_a_domain() {
        let mut places = Places::default();
        let micros = 1_700_000_000_123_456;
        for reply in [
            "$JS.ACK.JOBS_0.Xy.1.1842.7.1700000000123456789.12",
            "$JS.ACK.JOBS_0.Xy.1.1842.8.1700000000123456789.12",
            "$JS.ACK.JOBS_0.Yz.1.1842.1.1700000000123456789.12",
            "$JS.ACK._.hash.JOBS_0.Yz.1.1842.1.1700000000123456789.12",
            "$JS.ACK.hub.hash.JOBS_0.Yz.1.1842.1.1700000000123456789.12.token",
            "$JS.ACK.hub.hash.JOBS_0.Yz.1.1842.2.1700000000123456789.12.token.more",
        ] {
            assert_eq!(places.read(reply), Some(place(1_842, micros, 12)), "{reply}");
        }
    }

    #[test]
    fn what_is_no_place_is_not_read() {
        for reply in [
            "",
            "_INBOX.a.b",
            "$JS.ACK.",
            "$JS.ACK.JOBS_0.Xy.1.1842.7.1700000000123456789",
            "$JS.ACK.JOBS_0.Xy.1.18x2.7.1700000000123456789.12",
            "$JS.ACK.JOBS_0.Xy.1..7.1700000000123456789.12",
            "$JS.ACK.JOBS_0.Xy.1.1842.7.17000000:0123456789.12",
            "$JS.ACK.JOBS_0.Xy.1.1842.7.1700000000123456789.99999999999999999999",
            "$JS.ACK.hash.JOBS_0.Xy.1.1842.7.1700000000123456789.12",
        ] {
            assert_eq!(Places::default().read(reply), None, "{reply}");
        }
    }

    #[test]
    fn numbers_are_read_as_the_standard_library_reads_them() {
        for number in [0, 7, 10, 99_999_999, 100_000_000, 123_456_789, 1_700_000_000_123_456_789, u64::MAX] {
            assert_eq!(decimal(number.to_string().as_bytes()), Some(number));
        }
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            for at in 0..9 {
                let mut text = *b"123456789";
                text[at] = byte;
                assert_eq!(decimal(&text), None, "{byte} at {at}");
            }
        }
        assert_eq!(decimal(b"18446744073709551616"), None);
        assert_eq!(decimal(b""), None);
    }
}

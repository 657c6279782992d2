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
        let mut numbers = numbers.splitn(NUMBERS + 1, '.');
        // A server may count what is behind it wrong.
        let [_, sequence, _, nanos, _] =
            [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
        Some(Place { sequence: decimal(sequence)?, timestamp: micros_of(i128::from(decimal(nanos)?)) })
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

/// The standard library takes a number with a plus sign, too.
fn decimal(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(sequence: u64, micros: i64) -> Place {
        Place { sequence, timestamp: Timestamp::from_micros(micros).expect("in range") }
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
            assert_eq!(places.read(reply), Some(place(1_842, micros)), "{reply}");
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
            "$JS.ACK.JOBS_0.Xy.1.+1842.7.1700000000123456789.12",
            "$JS.ACK.JOBS_0.Xy.1.-1842.7.1700000000123456789.12",
            "$JS.ACK.JOBS_0.Xy.1..7.1700000000123456789.12",
            "$JS.ACK.JOBS_0.Xy.1.1842.7.17000000:0123456789.12",
            "$JS.ACK.hash.JOBS_0.Xy.1.1842.7.1700000000123456789.12",
        ] {
            assert_eq!(Places::default().read(reply), None, "{reply}");
        }
    }
}

//! Instants, to the microsecond, and their text.

use std::fmt;
use std::time::Duration;

use jiff::tz::Offset;

use crate::types::Malformed;

/// Microseconds since 1970-01-01T00:00:00Z. Input is cut, not rounded, to the microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last instant that i64 nanoseconds can say, the resolution that queues stamp messages with:
    /// 2262-04-11.
    pub const MAX: Self = Self(9_223_372_036_854_775);

    /// # Errors
    /// [`Malformed::Time`] before 1970 or after [`Timestamp::MAX`].
    pub fn from_micros(micros: i64) -> Result<Self, Malformed> {
        if (0..=Self::MAX.0).contains(&micros) { Ok(Self(micros)) } else { Err(Malformed::Time) }
    }

    /// Reads RFC 3339 text, with any offset; `2026-11-20T09:59:58Z`.
    ///
    /// # Errors
    /// [`Malformed::Time`] for anything else, or a time out of range.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let instant: jiff::Timestamp = text.parse().map_err(|_| Malformed::Time)?;
        Self::from_micros(instant.as_microsecond())
    }

    pub fn as_micros(self) -> i64 {
        self.0
    }

    /// A microsecond later; [`Timestamp::MAX`] at most.
    pub fn next(self) -> Self {
        Self((self.0 + 1).min(Self::MAX.0))
    }

    /// Later by this; [`Timestamp::MAX`] at most.
    pub fn plus(self, by: Duration) -> Self {
        let micros = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Self::MAX.0))
    }

    /// Appends what [`fmt::Display`] writes. A list has a time in each entry, and `jiff`'s printer took 500
    /// of an entry's 6,800 instructions. `jiff` knows the calendar, and only the digits are written here.
    pub fn append_to(self, out: &mut Vec<u8>) {
        let Ok(instant) = jiff::Timestamp::from_microsecond(self.0) else {
            return out.extend_from_slice(self.to_string().as_bytes());
        };
        let time = Offset::UTC.to_datetime(instant);
        // The year is 1970 to 2262, and no part is negative.
        let [[y1, y2], [y3, y4]] = [digits(time.year() / 100), digits(time.year() % 100)];
        let [[m1, m2], [d1, d2]] = [time.month(), time.day()].map(digits);
        let [[h1, h2], [i1, i2], [s1, s2]] = [time.hour(), time.minute(), time.second()].map(digits);
        let second = [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', i1, i2, b':', s1, s2];
        out.extend_from_slice(&second);
        let micros = self.0.rem_euclid(1_000_000);
        if micros != 0 {
            let fraction = [micros / 10_000, micros / 100 % 100, micros % 100].map(digits);
            let fraction = fraction.as_flattened();
            out.push(b'.');
            let zeros = fraction.iter().rev().take_while(|digit| **digit == b'0').count();
            out.extend_from_slice(fraction.get(..fraction.len() - zeros).unwrap_or_default());
        }
        out.push(b'Z');
    }
}

/// The two digits of a number below 100.
#[inline]
fn digits(number: impl Into<i64>) -> [u8; 2] {
    let number = u8::try_from(number.into()).unwrap_or_default();
    [b'0' + number / 10, b'0' + number % 10]
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => fmt::Display::fmt(&instant, f),
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_appended_as_they_are_displayed() {
        const DAY: i64 = 86_400_000_000;
        let days = [0, 1, 58, 59, 364, 365, 789, 790, 10_956, 10_957, 11_016, 20_782, 47_540, 106_750];
        let within = [0, 1, 10, 99, 100, 123_456, 500_000, 999_999, 1_000_000, 3_599_999_999, DAY - 1];
        for micros in days.iter().flat_map(|day| within.map(|micros| day * DAY + micros)) {
            let time = Timestamp::from_micros(micros).expect("in range");
            let mut appended = b"at ".to_vec();
            time.append_to(&mut appended);
            assert_eq!(String::from_utf8_lossy(&appended), format!("at {time}"), "{micros}");
        }
        let mut last = Vec::new();
        Timestamp::MAX.append_to(&mut last);
        assert_eq!(String::from_utf8_lossy(&last), Timestamp::MAX.to_string());
    }
}

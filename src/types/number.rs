//! One key of a score: an exact integer, or an IEEE double, and its digits.
//!
//! Knows: how doubles order and how both are written. Must not know: which of them a board's key takes.

use std::fmt;

use thiserror::Error;

use crate::types::quoted;

/// One key of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    Integer(i64),
    Float(Double),
}

impl Number {
    /// The integer that it is.
    ///
    /// # Errors
    /// When it was written as anything else.
    pub fn integer(self) -> Result<i64, NoInteger> {
        match self {
            Self::Integer(integer) => Ok(integer),
            Self::Float(double) => Err(NoInteger(double)),
        }
    }

    /// The nearest double.
    #[allow(
        clippy::as_conversions,
        clippy::cast_precision_loss,
        reason = "to the nearest double, as for any other number that is written with more digits than one has"
    )]
    pub fn double(self) -> Double {
        match self {
            Self::Integer(integer) => Double::finite(integer as f64),
            Self::Float(double) => double,
        }
    }

    /// Whether the nearest double, written with as many digits as it has, is this number. Others would be
    /// changed without a word.
    pub fn is_kept_as_double(self) -> bool {
        match self {
            Self::Integer(integer) => {
                keeps_digits(self.double().value(), &integer.unsigned_abs().to_string())
            }
            Self::Float(_) => true,
        }
    }

    /// Appends the shortest digits that read back as this number.
    pub fn append_to(self, out: &mut Vec<u8>) {
        match self {
            Self::Integer(integer) => out.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes()),
            Self::Float(double) => double.with_digits(|digits| out.extend_from_slice(digits.as_bytes())),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => fmt::Display::fmt(integer, f),
            Self::Float(double) => fmt::Display::fmt(double, f),
        }
    }
}

/// Whether a double, written with as many digits, has these: without a sign, a point and an exponent.
pub fn keeps_digits(value: f64, digits: &str) -> bool {
    let digits = digits.trim_start_matches('0').trim_end_matches('0');
    let places = digits.len().saturating_sub(1);
    let written = format!("{:.places$e}", value.abs());
    let mantissa = written.split('e').next().unwrap_or_default();
    digits.is_empty() || mantissa.bytes().filter(u8::is_ascii_digit).eq(digits.bytes())
}

/// An IEEE double that is a number, infinities included. There is one zero: -0 is 0. It orders and compares
/// as its value does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Double(i64);

impl Double {
    pub const NEGATIVE_INFINITY: Self = Self::finite(f64::NEG_INFINITY);
    pub const INFINITY: Self = Self::finite(f64::INFINITY);

    /// `None`: it is not a number.
    pub fn new(value: f64) -> Option<Self> {
        (!value.is_nan()).then_some(Self::finite(value))
    }

    /// The double of a value that is a number.
    const fn finite(value: f64) -> Self {
        // -0 + 0 is 0.
        let bits = (value + 0.0).to_bits().cast_signed();
        // Doubles of one sign order as their bits do, the negative ones backwards.
        Self(if bits < 0 { bits ^ i64::MAX } else { bits })
    }

    /// The integer of the same order as all doubles: greater for a greater one.
    pub fn ordered(self) -> i64 {
        self.0
    }

    /// The inverse of [`Double::ordered`]. What is beyond the infinities is the nearer of them.
    pub fn of_ordered(ordered: i64) -> Self {
        Self(ordered).clamp(Self::NEGATIVE_INFINITY, Self::INFINITY)
    }

    pub fn value(self) -> f64 {
        f64::from_bits(if self.0 < 0 { self.0 ^ i64::MAX } else { self.0 }.cast_unsigned())
    }

    pub fn is_infinite(self) -> bool {
        self == Self::INFINITY || self == Self::NEGATIVE_INFINITY
    }

    fn with_digits<T>(self, then: impl FnOnce(&str) -> T) -> T {
        let mut buffer = ryu::Buffer::new();
        let digits = buffer.format(self.value());
        then(digits.strip_suffix(".0").unwrap_or(digits))
    }
}

impl fmt::Display for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_digits(|digits| f.write_str(digits))
    }
}

impl fmt::Debug for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a key that takes integers does not take a number, in words for a client to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub struct NoInteger(pub Double);

impl fmt::Display for NoInteger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0.value();
        // From here on doubles have no integer of 64 bits. It is a power of two.
        let is_outside = value.abs() >= 9_223_372_036_854_775_808.0;
        if value.is_infinite() {
            write!(f, "{} is not a decimal integer such as 1200", quoted(&self.0.to_string()))
        } else if value.fract() != 0.0 {
            write!(f, "{} has a fraction; only exact integers are accepted", self.0)
        } else if is_outside {
            let (least, most) = (i64::MIN, i64::MAX);
            // Beyond these, digits say more than a double knows.
            let digits = if value.abs() < 1e21 { format!("{value:.0}") } else { self.0.to_string() };
            write!(f, "{digits} is outside the signed 64-bit range, {least} to {most}")
        } else {
            write!(f, "\"{value:?}\" is not a decimal integer such as 1200")
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp, reason = "the same double is what must come back")]

    use proptest::prelude::*;

    use super::*;

    fn double(value: f64) -> Double {
        Double::new(value).expect("a number")
    }

    #[test]
    fn doubles_are_written_with_the_shortest_digits_that_come_back() {
        for (text, digits) in [
            ("0.1", "0.1"),
            ("1e21", "1e21"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e308"),
            ("-1.7976931348623157e308", "-1.7976931348623157e308"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("12", "12"),
            ("12.50", "12.5"),
            ("-12.5", "-12.5"),
            ("0.30000000000000004", "0.30000000000000004"),
            ("9007199254740993", "9007199254740992"),
            ("inf", "inf"),
            ("-inf", "-inf"),
        ] {
            let number = Number::Float(double(text.parse().expect("a double")));
            let mut appended = Vec::new();
            number.append_to(&mut appended);
            assert_eq!((number.to_string().as_str(), appended.as_slice()), (digits, digits.as_bytes()));
        }
        assert_eq!(Double::new(f64::NAN), None);
    }

    #[test]
    fn a_number_that_doubles_do_not_have_is_known_by_its_digits() {
        for (integer, is_kept) in [
            (0, true),
            (-1_200, true),
            (9_007_199_254_740_992, true),
            (9_007_199_254_740_993, false),
            (-9_007_199_254_740_993, false),
            (9_007_199_254_740_994, true),
            // As many digits as a double is written with say it.
            (9_223_372_036_854_775_000, true),
            (i64::MAX, false),
            (i64::MIN, true),
            (1_000_000_000_000_000_000, true),
        ] {
            assert_eq!(Number::Integer(integer).is_kept_as_double(), is_kept, "{integer}");
        }
        for (value, digits, is_kept) in [
            (0.1, "01", true),
            (0.1, "010000000000000001", true),
            (9_007_199_254_740_994.0, "90071992547409935", false),
            (1e300, "1", true),
            (1e30, "1234567890123456789012345678901", false),
        ] {
            assert_eq!(keeps_digits(value, digits), is_kept, "{digits}");
        }
    }

    #[test]
    fn what_is_no_integer_is_refused_in_words() {
        for (value, said) in [
            (1.5, "1.5 has a fraction; only exact integers are accepted"),
            (5e-324, "5e-324 has a fraction; only exact integers are accepted"),
            (1e21, "1e21 is outside the signed 64-bit range, -9223372036854775808 to 9223372036854775807"),
            (42.0, "\"42.0\" is not a decimal integer such as 1200"),
            (f64::NEG_INFINITY, "\"-inf\" is not a decimal integer such as 1200"),
        ] {
            let refused = Number::Float(double(value)).integer().expect_err("no integer");
            assert_eq!(refused.to_string(), said);
        }
    }

    proptest! {
        #[test]
        fn doubles_order_as_their_values_do_and_come_back(a: f64, b: f64) {
            let specials = [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, -5e-324, f64::MAX, f64::INFINITY];
            for a in specials.into_iter().chain([a]).filter(|a| !a.is_nan()) {
                for b in specials.into_iter().chain([b]).filter(|b| !b.is_nan()) {
                    prop_assert_eq!(Some(double(a).cmp(&double(b))), a.partial_cmp(&b));
                    prop_assert_eq!(Some(double(a).ordered().cmp(&double(b).ordered())), a.partial_cmp(&b));
                }
                prop_assert_eq!(Double::of_ordered(double(a).ordered()), double(a));
                prop_assert_eq!(double(a).to_string().parse::<f64>().expect("a double"), a);
            }
        }
    }
}

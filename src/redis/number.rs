//! Numbers as Redis reads and writes them.

use crate::types::{Double, Number, Score};

/// The greatest integer that Redis writes with all its digits, as a double: 2^62.
const PLAIN_MAX: f64 = 4_611_686_018_427_387_904.0;

/// An integer without a sign in front, spaces or zeros that mean nothing.
pub fn integer<N: std::str::FromStr + std::fmt::Display>(text: &[u8]) -> Option<N> {
    let text = str::from_utf8(text).ok()?;
    let parsed: N = text.parse().ok()?;
    // As it is printed, and no other way.
    (text.len() < 2 || parsed.to_string() == text).then_some(parsed)
}

/// A score: an integer of 64 bits, exactly, or a double.
pub fn score(text: &[u8]) -> Option<Number> {
    let text = str::from_utf8(text).ok()?;
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Number::Integer(integer));
    }
    let value: f64 = text.parse().ok()?;
    let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_beyond = has_digits && value.is_infinite();
    let is_lost =
        value == 0.0 && text.split(['e', 'E']).next()?.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if is_beyond || is_lost {
        return None;
    }
    Double::new(value).map(whole)
}

/// A bound of scores, which Redis reads as C does: with spaces before it, nothing as 0, and what is beyond
/// all doubles, or too near to 0, as the nearest one.
pub fn bound(text: &[u8]) -> Option<Number> {
    let text = str::from_utf8(text).ok()?;
    if text.is_empty() {
        return Some(Number::Integer(0));
    }
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    score(text.as_bytes()).or_else(|| Double::new(text.parse().ok()?).map(whole))
}

/// A place where a scan goes on: with a plus and zeros before it, if any, and nothing as 0.
pub fn cursor(text: &[u8]) -> Option<u64> {
    if text.is_empty() { Some(0) } else { str::from_utf8(text).ok()?.parse().ok() }
}

/// A double that is an integer of 64 bits, as that.
fn whole(double: Double) -> Number {
    let value = double.value();
    let digits = (value.fract() == 0.0 && value.abs() < 1e19).then(|| format!("{value:.0}"));
    let integer = digits.and_then(|digits| digits.parse::<i64>().ok());
    integer.map_or(Number::Float(double), Number::Integer)
}

/// A score as Redis prints it: with the fewest digits that come back, and all digits of an integer key.
pub fn digits(number: Number) -> String {
    let Number::Float(double) = number else { return number.to_string() };
    let value = double.value();
    if double.is_infinite() {
        return double.to_string();
    }
    if value.fract() == 0.0 && value.abs() <= PLAIN_MAX {
        return format!("{value:.0}");
    }
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits = mantissa.trim_start_matches('-').replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // The power of ten of the last digit.
    let last = exponent - count + 1;
    let is_plain =
        (last >= 0 && exponent.abs() < count + 7) || (last < 0 && (last > -7 || exponent.abs() < 4));
    if is_plain {
        return format!("{value}");
    }
    format!("{mantissa}e{}{}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The only key of a score, printed so.
pub fn digits_of(score: &Score) -> String {
    score.numbers().next().map(digits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn integers_are_read_as_they_are_printed() {
        for (text, expect) in [("0", Some(0)), ("-1", Some(-1)), ("9223372036854775807", Some(i64::MAX))] {
            assert_eq!(integer::<i64>(text.as_bytes()), expect);
        }
        for text in ["", "+1", "01", "-0", " 1", "1 ", "1.0", "9223372036854775808", "x"] {
            assert_eq!(integer::<i64>(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn scores_are_read_as_redis_reads_them() {
        let float = |value| Some(Number::Float(Double::new(value).expect("a number")));
        for (text, expect) in [
            ("12", Some(Number::Integer(12))),
            ("+12", Some(Number::Integer(12))),
            ("12.0", Some(Number::Integer(12))),
            ("-1e3", Some(Number::Integer(-1_000))),
            ("9223372036854775807", Some(Number::Integer(i64::MAX))),
            ("9223372036854775808", float(9_223_372_036_854_775_808.0)),
            ("1.5", float(1.5)),
            (".5", float(0.5)),
            ("inf", float(f64::INFINITY)),
            ("+INF", float(f64::INFINITY)),
            ("-infinity", float(f64::NEG_INFINITY)),
            ("0e400", Some(Number::Integer(0))),
            ("nan", None),
            ("1e400", None),
            ("1e-400", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("abc", None),
        ] {
            assert_eq!(score(text.as_bytes()), expect, "{text}");
        }
    }

    #[test]
    fn scores_are_printed_as_redis_prints_them() {
        for (value, expect) in [
            (3.0, "3"),
            (-17.0, "-17"),
            (0.1, "0.1"),
            (1.5, "1.5"),
            (4_503_599_627_370_496.0, "4503599627370496"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (1e16, "10000000000000000"),
            (-1e17, "-100000000000000000"),
            (1_152_921_504_606_846_976.0, "1152921504606846976"),
            (4_611_686_018_427_387_904.0, "4611686018427387904"),
            (9_223_372_036_854_775_808.0, "9223372036854776000"),
            (0.0, "0"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (1e-7, "1e-7"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let number = Number::Float(Double::new(value).expect("a number"));
            assert_eq!((digits(number).parse::<f64>(), digits(number).as_str()), (Ok(value), expect));
        }
        assert_eq!(digits(Number::Integer(i64::MAX)), "9223372036854775807");
    }

    #[test]
    fn bounds_and_cursors_are_read() {
        for (text, expect) in [
            ("", Some("0")),
            (" 1", Some("1")),
            ("\t-2.5", Some("-2.5")),
            ("1e400", Some("inf")),
            ("-1e400", Some("-inf")),
            ("1e-400", Some("0")),
            ("1 ", None),
            (" ", None),
            ("nan", None),
            ("x", None),
        ] {
            assert_eq!(bound(text.as_bytes()).map(digits).as_deref(), expect, "{text:?}");
        }
        for (text, expect) in [
            ("", Some(0)),
            ("00", Some(0)),
            ("+0", Some(0)),
            ("17", Some(17)),
            ("-1", None),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            (" 1", None),
            ("1x", None),
            ("-", None),
            ("--1", None),
        ] {
            assert_eq!(cursor(text.as_bytes()), expect, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn printed_scores_are_read_back(value: f64) {
            if let Some(double) = Double::new(value) {
                let read = score(digits(Number::Float(double)).as_bytes()).expect("a score");
                prop_assert_eq!(read.double(), double);
            }
        }
    }
}

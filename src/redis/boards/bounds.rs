//! Bounds of scores as those of a board's key: integers of the key's order, both inclusive.

use crate::board::{Key, KeyType};
use crate::redis::commands::ScoreBound;
use crate::types::Number;

/// The least integer of the key's order within the bound; `None`: nothing is.
fn least(key: &Key, bound: ScoreBound) -> Option<i64> {
    let ScoreBound { value, exclusive } = bound;
    let above = |ordered: i64| if exclusive { ordered.checked_add(1) } else { Some(ordered) };
    match (key.key_type, value) {
        (KeyType::Float, value) => above(value.double().ordered()),
        (KeyType::Integer, Number::Integer(integer)) => above(integer),
        // It has a fraction, or is beyond all integers: whether it is exclusive makes no difference.
        (KeyType::Integer, Number::Float(double)) => match double.value() {
            value if value <= -LIMIT => Some(i64::MIN),
            value => format!("{:.0}", value.ceil()).parse().ok(),
        },
    }
}

/// The greatest one.
fn greatest(key: &Key, bound: ScoreBound) -> Option<i64> {
    let ScoreBound { value, exclusive } = bound;
    let below = |ordered: i64| if exclusive { ordered.checked_sub(1) } else { Some(ordered) };
    match (key.key_type, value) {
        (KeyType::Float, value) => below(value.double().ordered()),
        (KeyType::Integer, Number::Integer(integer)) => below(integer),
        (KeyType::Integer, Number::Float(double)) => match double.value() {
            value if value >= LIMIT => Some(i64::MAX),
            value => format!("{:.0}", value.floor()).parse().ok(),
        },
    }
}

/// From here on doubles have no integer of 64 bits: 2^63.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// What lies between two bounds; `None`: nothing.
pub fn between(key: &Key, min: ScoreBound, max: ScoreBound) -> Option<(i64, i64)> {
    let (least, greatest) = (least(key, min)?, greatest(key, max)?);
    (least <= greatest).then_some((least, greatest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::number;

    fn bound(text: &str) -> ScoreBound {
        let value = text.trim_start_matches('(');
        let value = number::score(value.as_bytes()).expect("a score");
        ScoreBound { value, exclusive: text.starts_with('(') }
    }

    #[test]
    fn bounds_of_integers_hold_the_integers_between_them() {
        let key = Key::score();
        for (min, max, expect) in [
            ("1", "3", Some((1, 3))),
            ("(1", "(3", Some((2, 2))),
            ("(1", "(2", None),
            ("0.5", "2.5", Some((1, 2))),
            ("(0.5", "(2.5", Some((1, 2))),
            ("-2.5", "-0.5", Some((-2, -1))),
            ("-inf", "+inf", Some((i64::MIN, i64::MAX))),
            ("(-inf", "(+inf", Some((i64::MIN, i64::MAX))),
            ("inf", "inf", None),
            ("-inf", "-inf", None),
            ("-1e30", "1e30", Some((i64::MIN, i64::MAX))),
            ("9223372036854775807", "inf", Some((i64::MAX, i64::MAX))),
            ("(9223372036854775807", "inf", None),
            ("3", "1", None),
        ] {
            assert_eq!(between(&key, bound(min), bound(max)), expect, "{min} {max}");
        }
    }

    #[test]
    fn bounds_of_doubles_hold_the_doubles_between_them() {
        let key = Key { key_type: KeyType::Float, ..Key::score() };
        let ordered = |text| bound(text).value.double().ordered();
        for (min, max, expect) in [
            ("1", "3", Some((ordered("1"), ordered("3")))),
            ("(1", "(3", Some((ordered("1") + 1, ordered("3") - 1))),
            ("(1", "(1", None),
            ("-inf", "inf", Some((ordered("-inf"), ordered("inf")))),
            ("(-inf", "(inf", Some((ordered("-inf") + 1, ordered("inf") - 1))),
            ("inf", "inf", Some((ordered("inf"), ordered("inf")))),
        ] {
            assert_eq!(between(&key, bound(min), bound(max)), expect, "{min} {max}");
        }
    }
}

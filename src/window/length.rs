//! Lengths of time as definitions have them: a whole number and a unit, `5m`, `14d`.

use crate::types::decimal;

const SECOND: i64 = 1_000_000;
/// From the longest to the shortest, in microseconds.
const UNITS: [(char, i64); 5] = [
    ('w', 7 * 24 * 60 * 60 * SECOND),
    ('d', 24 * 60 * 60 * SECOND),
    ('h', 60 * 60 * SECOND),
    ('m', 60 * SECOND),
    ('s', SECOND),
];

/// The microseconds of such a text: `90s`, `5m`, `36h`, `14d`, `2w`. `None`: it is none, or too long.
pub fn length(text: &str) -> Option<i64> {
    let unit = text.chars().next_back()?;
    let (_, micros) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let number: i64 = decimal(text.strip_suffix(unit)?)?;
    number.checked_mul(micros)
}

/// The same as text, in the longest unit that divides it. What is left of a second is not said.
pub fn length_text(micros: i64) -> String {
    let (unit, of_it) =
        UNITS.into_iter().find(|(_, unit)| micros != 0 && micros % unit == 0).unwrap_or(('s', SECOND));
    format!("{}{unit}", micros / of_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_whole_numbers_of_a_unit_and_written_in_the_longest_that_divides() {
        for (text, seconds, again) in [
            ("0s", 0, "0s"),
            ("0d", 0, "0s"),
            ("1s", 1, "1s"),
            ("90s", 90, "90s"),
            ("300s", 300, "5m"),
            ("5m", 300, "5m"),
            ("36h", 36 * 3_600, "36h"),
            ("48h", 48 * 3_600, "2d"),
            ("14d", 14 * 86_400, "2w"),
            ("30d", 30 * 86_400, "30d"),
            ("36500d", 36_500 * 86_400, "36500d"),
        ] {
            assert_eq!(length(text), Some(seconds * SECOND), "{text}");
            assert_eq!(length_text(seconds * SECOND), again);
        }
        for text in [
            "",
            "s",
            "5",
            "5 m",
            "-5m",
            "+5m",
            "1.5h",
            "5M",
            "5min",
            "1y",
            "5mm",
            "m5",
            "9223372036855s",
            "5é",
        ] {
            assert_eq!(length(text), None, "{text}");
        }
    }
}

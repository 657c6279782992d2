//! A time as text, in UTC: `2026-11-20T09:59:58.25Z`. Each entry of an answer has one, so it is made of
//! digits by hand: jiff writes the same with some hundred instructions more.

use std::fmt;

const MICROS: u64 = 1_000_000;
const DAY: u64 = 86_400;

/// Writes a time from 1970 to 9999 as RFC 3339 has it, without zeros at the end of the fraction.
///
/// Source of the date's computation: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// <https://howardhinnant.github.io/date_algorithms.html>, `civil_from_days`.
///
/// # Arguments
/// `micros`: microseconds since 1970-01-01T00:00:00Z.
pub fn write(out: &mut impl fmt::Write, micros: u64) -> fmt::Result {
    let (seconds, micros) = (micros / MICROS, micros % MICROS);
    let (days, second) = (seconds / DAY, seconds % DAY);
    // Years begin with March here, so that a leap day is the last of its year.
    let (era, day_of_era) = ((days + 719_468) / 146_097, (days + 719_468) % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);

    let [century, year, month, day] = [year / 100, year % 100, month, day].map(two_digits);
    let [hour, minute, second] = [second / 3_600, second / 60 % 60, second % 60].map(two_digits);
    let fraction = [micros / 10_000, micros / 100 % 100, micros % 100].map(two_digits);
    let ([c1, c2], [y1, y2], [m1, m2], [d1, d2]) = (century, year, month, day);
    let ([h1, h2], [i1, i2], [s1, s2]) = (hour, minute, second);
    let [[f1, f2], [f3, f4], [f5, f6]] = fraction;
    let text = [
        c1, c2, y1, y2, b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', i1, i2, b':', s1, s2, b'.', f1, f2,
        f3, f4, f5, f6,
    ];
    let mut text = text.as_slice();
    if micros == 0 {
        text = text.get(..19).unwrap_or_default();
    }
    while let (true, [rest @ .., b'0']) = (micros > 0, text) {
        text = rest;
    }
    out.write_str(std::str::from_utf8(text).unwrap_or_default())?;
    out.write_char('Z')
}

/// The last two decimal digits of a number.
fn two_digits(number: u64) -> [u8; 2] {
    [number / 10 % 10, number % 10].map(|digit| b'0' + u8::try_from(digit).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(micros: i64) {
        let mut text = String::new();
        write(&mut text, u64::try_from(micros).expect("not before 1970")).expect("memory takes it");
        let expect = jiff::Timestamp::from_microsecond(micros).expect("a time").to_string();
        assert_eq!(text, expect, "{micros}");
    }

    #[test]
    fn every_day_until_2262_is_written_as_jiff_writes_it() {
        for day in 0..106_752 {
            check(day * 86_400_000_000);
            check(day * 86_400_000_000 + 86_399_999_999);
        }
    }

    proptest! {
        #[test]
        fn every_microsecond_is_written_as_jiff_writes_it(
            micros in 0..9_223_372_036_854_775_i64, digits in 0..7_u32,
        ) {
            let cut = 10_i64.pow(digits);
            check(micros / cut * cut);
        }
    }
}

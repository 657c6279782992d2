//! Decimal numbers multiplied to whole numbers: exactly, or refused.

/// A decimal number times `scale`, which must be a signed 64-bit integer.
///
/// # Arguments
/// `decimal`: digits, with a minus sign before them and a point among them or not.
///
/// # Errors
/// What is wrong with it, for an operator to read.
pub fn scaled(decimal: &str, scale: u32) -> Result<i64, String> {
    let outside = || format!("{decimal} times {scale} is outside the signed 64-bit range");
    let (whole, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = whole.strip_prefix('-').unwrap_or(whole);
    if unsigned.is_empty() || !is_digits(unsigned) || !is_digits(fraction) || decimal.ends_with('.') {
        return Err(format!("{decimal:?} is not a decimal number such as 12 or -3.25"));
    }
    let fraction = fraction.trim_end_matches('0');
    let digits: i128 = format!("{whole}{fraction}").parse().map_err(|_| outside())?;
    let product = digits.checked_mul(i128::from(scale)).ok_or_else(outside)?;
    let divisor = u32::try_from(fraction.len()).ok().and_then(|places| 10_i128.checked_pow(places));
    match divisor {
        Some(divisor) if product % divisor == 0 => i64::try_from(product / divisor).map_err(|_| outside()),
        _ => Err(format!(
            "{decimal} times {scale} is not a whole number; a larger --scale keeps more places: 100 keeps two"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_whole_numbers_exactly_or_are_refused() {
        for (text, scale, expect) in [
            ("1200", 100, Some(120_000)),
            ("-0", 100, Some(0)),
            ("3.25", 100, Some(325)),
            ("-0.07", 100, Some(-7)),
            ("0.1", 10, Some(1)),
            ("12.3400000000000000000000000000000000000000000", 100, Some(1_234)),
            // A double would be 90071992547409.92 here.
            ("90071992547409.93", 100, Some(9_007_199_254_740_993)),
            ("92233720368547758.07", 100, Some(i64::MAX)),
            ("-92233720368547758.08", 100, Some(i64::MIN)),
            ("92233720368547758.08", 100, None),
            ("99999999999999999999999999999999999999999", 1, None),
            ("3.255", 100, None),
            ("3.25", 10, None),
            ("1e3", 100, None),
            ("3.", 100, None),
            (".5", 100, None),
            ("-", 100, None),
            ("--1", 100, None),
            ("+1", 100, None),
            ("1.2.3", 100, None),
            ("1,5", 100, None),
            ("", 100, None),
        ] {
            assert_eq!(scaled(text, scale).ok(), expect, "{text} times {scale}");
        }
        assert!(
            scaled("3.255", 100).expect_err("a fraction").contains("3.255 times 100 is not a whole number")
        );
        assert!(scaled("fast", 100).expect_err("no number").contains("\"fast\" is not a decimal number"));
    }
}

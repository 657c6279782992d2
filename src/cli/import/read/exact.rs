//! A decimal number kept exactly: digits before and behind the point, and no floating point between.

/// The most digits of a fraction that are multiplied: with a factor of 32 bits they fit 128.
const FRACTION_DIGITS: usize = 27;
/// The most digits of a whole number that can be a score.
const WHOLE_DIGITS: usize = 20;
/// Beyond this an exponent only makes zeros.
const EXPONENT_MAX: i32 = 400;

/// A decimal number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact {
    pub is_negative: bool,
    pub whole: i128,
    /// Digits behind the point, without zeros at the end.
    pub fraction: String,
}

impl Exact {
    /// `1200`, `-3.25`, `+7`, `1e3`, `1.5e3`; with groups of digits where `thousands` says so. `None`: it is
    /// no number, or not written so.
    pub fn parse(text: &str, decimal: char, thousands: Option<char>) -> Option<Self> {
        let (is_negative, unsigned) = match text.strip_prefix(['-', '−']) {
            Some(unsigned) => (true, unsigned),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            None => (unsigned, 0),
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
        };
        let (whole, fraction) = match mantissa.split_once(decimal) {
            None => (mantissa, ""),
            Some((whole, fraction)) => (whole, Some(fraction).filter(|fraction| !fraction.is_empty())?),
        };
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let grouped = match thousands {
            Some(separator) if !is_digits(whole) => Some(ungrouped(whole, separator)?),
            _ => None,
        };
        let whole = grouped.as_deref().unwrap_or(whole);
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let point = i32::try_from(whole.len()).ok()?.checked_add(exponent)?;
        let digits = format!("{whole}{fraction}");
        let (before, behind) = if point <= 0 {
            let zeros = usize::try_from(point.unsigned_abs()).ok()?;
            (String::new(), format!("{}{digits}", "0".repeat(zeros)))
        } else {
            let point = usize::try_from(point).ok()?;
            match digits.split_at_checked(point) {
                Some((before, behind)) => (before.to_owned(), behind.to_owned()),
                None => (format!("{digits}{}", "0".repeat(point - digits.len())), String::new()),
            }
        };
        let before = before.trim_start_matches('0');
        let whole = match before {
            "" => 0,
            // Out of range is what matters of it.
            longer if longer.len() > WHOLE_DIGITS => i128::from(u64::MAX),
            digits => digits.parse().ok()?,
        };
        Some(Self { is_negative, whole, fraction: behind.trim_end_matches('0').to_owned() })
    }

    pub fn is_zero(&self) -> bool {
        self.whole == 0 && self.fraction.is_empty()
    }

    /// How many digits stand behind the point.
    pub fn places(&self) -> u32 {
        u32::try_from(self.fraction.len()).unwrap_or(u32::MAX)
    }

    /// The number times a factor, which must be a signed 64-bit integer, or is rounded to one: halves away
    /// from zero.
    ///
    /// # Errors
    /// `true`: it is out of range; `false`: it is not whole.
    pub fn times(&self, factor: u32, is_rounded: bool) -> Result<i64, bool> {
        let kept = self.fraction.len().min(FRACTION_DIGITS);
        let has_more = self.fraction.len() > kept;
        let digits = self.fraction.get(..kept).unwrap_or_default();
        let fraction: i128 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| false)? };
        let unit = 10_i128.pow(u32::try_from(kept).map_err(|_| false)?);
        let product = fraction * i128::from(factor);
        let (carried, rest) = (product / unit, product % unit);
        if (rest != 0 || has_more) && !is_rounded {
            return Err(false);
        }
        let up = i128::from(rest * 2 >= unit && unit > 1);
        let whole = self.whole * i128::from(factor) + carried + up;
        i64::try_from(if self.is_negative { -whole } else { whole }).map_err(|_| true)
    }
}

fn exponent_of(text: &str) -> Option<i32> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let exponent = unsigned.parse::<i32>().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX);
    Some(if text.starts_with('-') { -exponent } else { exponent })
}

/// What is told of such a number where its digits matter.
pub const SHORTENED: &str = "is a number that a spreadsheet has shortened, and its further digits are lost: there, format the \
    column as a number without decimals, or import from where it came";

/// The digits of a number as `7.65612E+16`, of which programs write one or two before the point.
struct Scientific<'a> {
    whole: &'a str,
    /// `None`: there is no point.
    fraction: Option<&'a str>,
    sign: Option<char>,
    exponent: &'a str,
}

impl<'a> Scientific<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['E', 'e'])?;
        let unsigned = mantissa.strip_prefix(['-', '+', '−']).unwrap_or(mantissa);
        let (whole, fraction) = match unsigned.split_once(['.', ',']) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (unsigned, None),
        };
        let sign = exponent.chars().next().filter(|c| matches!(c, '+' | '-' | '−'));
        let exponent = sign.map_or(exponent, |sign| exponent.get(sign.len_utf8()..).unwrap_or_default());
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_it = [whole, exponent].into_iter().chain(fraction).all(is_digits);
        is_it.then_some(Self { whole, fraction, sign, exponent })
    }
}

/// Whether a text is a number as programs write it that keep some of its digits alone, in any of its
/// spellings: `7.65612E+16`, `7,7e16`, `8E16`, `76.6E+15`. Digits around one letter without a point and a
/// sign, as in `12345e67`, are one of the ids that are written in hexadecimal.
pub fn is_scientific(text: &str) -> bool {
    // It is asked of every name.
    if !text.ends_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let Some(Scientific { whole, fraction, sign, exponent }) = Scientific::parse(text) else { return false };
    let is_double = exponent.trim_start_matches('0').len() <= 3;
    let is_written_so = whole.len() <= 2 && (whole.len() == 1 || !whole.starts_with('0'));
    fraction.is_some() || sign.is_some() || is_double && is_written_so
}

/// Whether a text is a large number as spreadsheets show it, in six digits at most: `7.65612E+16`. What ends
/// in noughts is shown whole.
pub fn is_shortened(text: &str) -> bool {
    Scientific::parse(text).is_some_and(|Scientific { whole, fraction, sign, exponent }| {
        whole.len() == 1
            && fraction.is_some_and(|fraction| fraction.len() == 5)
            && sign == Some('+')
            && exponent.len() == 2
            && exponent > "05"
            && text.contains('E')
    })
}

/// Digits without the separators between their groups. `None`: the groups are not of three digits; or, as in
/// India, of two before the last one.
fn ungrouped(whole: &str, separator: char) -> Option<String> {
    let groups: Vec<&str> = whole.split(|c| is_same_separator(c, separator)).collect();
    let (first, rest) = groups.split_first()?;
    let (last, middle) = rest.split_last()?;
    let is_threes = middle.iter().all(|group| group.len() == 3);
    let is_twos = middle.iter().all(|group| group.len() == 2);
    let longest = if is_threes { 3 } else { 2 };
    // What is written in groups does not begin with a nought: 0,123 is another kind of number.
    let fits = last.len() == 3
        && (is_threes || is_twos)
        && (1..=longest).contains(&first.len())
        && !first.starts_with('0');
    fits.then(|| groups.concat())
}

/// The spaces that programs write between groups of digits.
pub fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}')
}

/// Whether a separator that was found is the one that was meant: keyboards have one space and one apostrophe,
/// and programs write several.
fn is_same_separator(found: char, meant: char) -> bool {
    let is_apostrophe = |c| matches!(c, '\'' | '’');
    found == meant || is_space(found) && is_space(meant) || is_apostrophe(found) && is_apostrophe(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_some_digits_are_known_in_all_their_spellings() {
        for (text, expect) in [
            ("7.65612E+16", (true, true)),
            ("7,65612E+16", (true, true)),
            ("7.65611980123457E+016", (true, false)),
            ("7.6561198E+16", (true, false)),
            ("7.6561E+16", (true, false)),
            ("7.6561198012345678e16", (true, false)),
            ("8E+16", (true, false)),
            ("8e16", (true, false)),
            ("76.6E15", (true, false)),
            ("-7.7e+16", (true, false)),
            ("+7.7E-05", (true, false)),
            ("123E+15", (true, false)),
            ("123e4567", (false, false)),
            ("12345e67", (false, false)),
            ("01e5", (false, false)),
            ("1e234567", (false, false)),
            ("e16", (false, false)),
            ("7.E16", (false, false)),
            ("7.6E", (false, false)),
            ("7.6E+1x", (false, false)),
            ("ann", (false, false)),
            ("76561198012345678", (false, false)),
            ("1e3f5", (false, false)),
            ("", (false, false)),
        ] {
            assert_eq!((is_scientific(text), is_shortened(text)), expect, "{text}");
        }
    }
}

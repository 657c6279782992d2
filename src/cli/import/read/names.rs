//! Names of members as files have them, and what stands in the place of one: what a program has made of it,
//! or where it has none.
//!
//! Must not know: columns and rows.

use crate::cli::import::read::exact::{SHORTENED, is_scientific};
use crate::cli::import::shell_word::shell_word;
use crate::types::quoted;

/// Shorter numbers before `.0` may be names, such as those of versions, if others have fractions.
const ID_DIGITS: usize = 3;

/// What databases and spreadsheets write where they have no value, or have failed to compute one.
const NO_VALUES: [&str; 16] = [
    "\\N", "NULL", "(null)", "(NULL)", "<null>", "<NULL>", "[NULL]", "<NA>", "#N/A", "#NV", "#NAME?",
    "#REF!", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!",
];

/// A name without what is not seen around it. Within a name such characters may be part of its last letter.
pub fn trimmed_name(text: &str) -> &str {
    text.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}')
    })
}

/// Whether a text stands where there is no value. A player who is called so is refused, and not lost.
pub fn is_no_value(text: &str) -> bool {
    // It is asked of every name.
    text.starts_with(['\\', 'N', '(', '<', '[', '#']) && NO_VALUES.contains(&text)
}

/// Whether a name is a number that is not whole, as those of versions are.
pub fn has_fraction(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = text.split_once('.').filter(|(whole, fraction)| is_digits(whole) && is_digits(fraction));
    parts.is_some_and(|(_, fraction)| fraction.bytes().any(|byte| byte != b'0'))
}

/// The whole number that a program has written with a fraction: 1001 of `1001.0`, of `1001.00` and of
/// `1001,0`. Three noughts may be a group of digits.
fn whole_of(text: &str) -> Option<&str> {
    let (whole, fraction) = text.split_once(['.', ','])?;
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let is_one = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !fraction.is_empty()
        && fraction.len() != 3
        && fraction.bytes().all(|byte| byte == b'0');
    is_one.then_some(whole)
}

/// Why a text is no name but what a program left around one, or in place of one.
///
/// # Arguments
/// `have_fractions`: others of the file are numbers that are not whole.
pub fn not_a_name(text: &str, have_fractions: bool) -> Option<String> {
    let told = quoted(text);
    if text.starts_with('\u{feff}') {
        return Some(format!(
            "{told} begins with the mark of the beginning of a file: files were joined; import them as several"
        ));
    }
    if is_scientific(text) {
        return Some(format!("{told} {SHORTENED}"));
    }
    if let Some(id) = whole_of(text).filter(|id| id.len() >= ID_DIGITS || !have_fractions) {
        return Some(format!(
            "{told} is a number that some programs have made of {id}, as pandas does in a column with gaps: write the \
             column as whole numbers, there with astype(\"Int64\"), so that members are called as elsewhere"
        ));
    }
    if is_no_value(text) {
        return Some(format!(
            "{told} is what stands where a database or a spreadsheet has no value: --blank {} leaves such rows out, and \
             counts them",
            shell_word(text)
        ));
    }
    let forced = text.strip_prefix("=\"").and_then(|text| text.strip_suffix('"'))?;
    Some(format!("{told} is how spreadsheets keep {forced:?} a text; save the column as text, without =\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_leave_in_the_place_of_a_name_is_no_name() {
        for (text, words) in [
            ("7.65611980123457E+016", "has shortened"),
            ("7.6561E+16", "has shortened"),
            ("7e16", "has shortened"),
            ("1001.0", "made of 1001,"),
            ("1.0", "made of 1,"),
            ("12.00", "made of 12,"),
            ("-7.0", "made of -7,"),
            ("1001,0", "made of 1001,"),
            ("\\N", "--blank '\\N' leaves"),
            ("NULL", "--blank NULL leaves"),
            ("#N/A", "--blank '#N/A' leaves"),
            ("#NAME?", "--blank '#NAME?' leaves"),
            ("=\"007\"", "keep \"007\" a text"),
        ] {
            let told = not_a_name(text, false).unwrap_or_else(|| panic!("{text} is taken for a name"));
            assert!(told.contains(words), "{text}: {told}");
        }
        for text in [
            "ann", "Null", "null", "N", "#1", "#hash!", "1.5", "1.000", "v1.0", "1.0.0", "12345e67", "", ".0",
        ] {
            assert_eq!(not_a_name(text, false), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_versions_are_names() {
        assert!(has_fraction("1.5") && has_fraction("3.10") && !has_fraction("2.0") && !has_fraction("v1.5"));
        assert_eq!((not_a_name("2.0", true), not_a_name("12.0", true)), (None, None));
        assert!(not_a_name("1001.0", true).is_some());
    }
}

//! What programs put between the cells of a line, and what it is called.

use crate::types::quoted;

/// What programs put between columns, what it is called, and as `--delimiter` has it.
pub const SEPARATORS: [(char, &str, &str); 6] = [
    ('\t', "tabs", "tab"),
    (';', "semicolons", "\";\""),
    ('|', "vertical bars", "\"|\""),
    (',', "commas", "\",\""),
    (' ', "spaces", "\" \""),
    (':', "colons", "\":\""),
];
/// Those that names and numbers have in them, too, so that each row must have as many.
pub const WITHIN_NAMES: [char; 2] = [' ', ':'];

/// What is between the quoted cells of a line, if it is not what should be: what it is called, and as
/// `--delimiter` has it.
pub fn quoted_separator(line: &str, delimiter: char) -> Option<(&'static str, &'static str)> {
    let between = |mark: char| line.contains(&format!("\"{mark}\""));
    if !line.starts_with('"') || between(delimiter) {
        return None;
    }
    let mut others = SEPARATORS.iter().filter(|(mark, _, _)| *mark != delimiter);
    others.find(|(mark, _, _)| between(*mark)).map(|(_, words, option)| (*words, *option))
}

/// What a separator is called.
pub fn separator_words(delimiter: char) -> String {
    let known = SEPARATORS.iter().find(|(mark, _, _)| *mark == delimiter);
    known.map_or_else(|| quoted(&delimiter.to_string()), |(_, words, _)| (*words).to_owned())
}

/// Whether a line has runs of spaces between its words, and no other separator of columns.
pub fn is_aligned(line: &str) -> bool {
    let is_other = |c: char| {
        SEPARATORS.iter().any(|(mark, _, _)| *mark == c && !WITHIN_NAMES.contains(mark) && c != ',')
    };
    line.trim().contains("  ") && !line.contains(is_other)
}

//! Cells of a CSV that no spreadsheet takes for a formula, and that can be read back as what they were.
//!
//! Players choose the names of members, so `=HYPERLINK(...)` may be one.

use std::borrow::Cow;

/// What a cell begins with that a spreadsheet computes; and what is put before it, so that what begins with
/// that can be told from it. Some read the wide forms as the narrow ones.
const COMPUTED: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠', GUARD];
const GUARD: char = '\'';

/// A text as a cell that is shown as it stands, behind an apostrophe where it needs one.
pub fn guarded(text: &str) -> Cow<'_, str> {
    if text.starts_with(COMPUTED) { Cow::Owned(format!("{GUARD}{text}")) } else { Cow::Borrowed(text) }
}

/// The text that was guarded.
pub fn unguarded(cell: &str) -> &str {
    match cell.strip_prefix(GUARD) {
        Some(text) if text.starts_with(COMPUTED) => text,
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarded_cells_begin_with_nothing_computed_and_read_back() {
        for text in [
            "", "m", "=1+1", "+1", "-1", "@a", "\tx", "\rx", "'", "''", "'=1", "'m", "＝1", "－", "a=1",
            " =1", "日本", "'日本",
        ] {
            let cell = guarded(text);
            assert!(!cell.starts_with(COMPUTED) || cell.starts_with(GUARD), "{cell}");
            assert_eq!(unguarded(&cell), text, "{cell}");
        }
        assert_eq!(guarded("=1+1"), "'=1+1");
        assert_eq!(guarded("m=1"), "m=1");
        assert_eq!(unguarded("'m"), "'m", "what is not guarded stays");
    }
}

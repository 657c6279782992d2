//! Cells of a CSV that no spreadsheet takes for a formula, and that can be read back as what they were.
//!
//! Players choose the names of members, so `=HYPERLINK(...)` may be one.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What a cell begins with that a spreadsheet computes; and what is put before it, so that what begins with
/// that can be told from it. Some read the wide forms as the narrow ones.
const COMPUTED: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠', '\''];
const GUARD: &str = "'";

/// A text as a cell that is shown as it stands: behind an apostrophe wherever a spreadsheet may begin a cell,
/// which need not take the comma for the separator, and would compute what follows.
pub fn guarded(text: &str) -> Cow<'_, str> {
    let parts = text.split_inclusive(SEPARATORS);
    if !parts.clone().any(is_computed) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(parts.flat_map(|part| [if is_computed(part) { GUARD } else { "" }, part]).collect())
}

/// The text that was guarded.
pub fn unguarded(cell: &str) -> Cow<'_, str> {
    if !cell.contains(GUARD) {
        return Cow::Borrowed(cell);
    }
    let parts = cell.split_inclusive(SEPARATORS).map(|part| match part.strip_prefix(GUARD) {
        Some(text) if is_computed(text) => text,
        _ => part,
    });
    Cow::Owned(parts.collect())
}

/// A JSON object as the same one. Wherever a spreadsheet may begin a cell in one of its texts, because it
/// takes something else than the comma for the separator, what it would compute is written as an escape.
pub fn guarded_json(json: &str) -> Cow<'_, str> {
    if !json.contains(SEPARATORS) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    // Outside of texts, JSON has no such separators. So what follows one is in a text.
    for part in json.split_inclusive(SEPARATORS) {
        let computed = part.trim_start_matches(is_skipped);
        match computed.chars().next() {
            Some(first) if !out.is_empty() && COMPUTED.contains(&first) && !first.is_control() => {
                let (skipped, rest) = (part.len() - computed.len(), first.len_utf8());
                out.push_str(part.get(..skipped).unwrap_or_default());
                write!(out, "\\u{:04x}", u32::from(first)).expect("writing to a string does not fail");
                out.push_str(computed.get(rest..).unwrap_or_default());
            }
            _ => out.push_str(part),
        }
    }
    Cow::Owned(out)
}

/// What spreadsheets take for the end of a cell, beside the comma.
const SEPARATORS: [char; 3] = [';', '|', '\t'];

/// Whether a spreadsheet computes a cell of this text: some look behind blanks, and what is not seen.
fn is_computed(text: &str) -> bool {
    text.starts_with(COMPUTED) || text.trim_start_matches(is_skipped).starts_with(COMPUTED)
}

/// Blanks, what has no width, and the quotation mark that a cell may be in.
fn is_skipped(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(
            c,
            '"' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        )
        || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
        || matches!(c, '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn guarded_cells_begin_with_nothing_computed_and_read_back() {
        for text in [
            "",
            "m",
            "=1+1",
            "+1",
            "-1",
            "@a",
            "\tx",
            "\rx",
            "'",
            "''",
            "'=1",
            "'m",
            "＝1",
            "－",
            "a=1",
            " =1",
            "日本",
            "'日本",
            "\u{a0}=1",
            "\u{200b}=1",
            "\u{feff} \u{2060}+1",
            "\"=1",
            " 'm",
            "\u{3164}@a",
            "a;=1",
            ";;-1;'x",
            "|+1",
            "a\t=1",
            " \t=1",
            "\t=1",
            "a; \"=1;'",
        ] {
            let cell = guarded(text);
            let cells = cell.split_inclusive(SEPARATORS);
            assert!(cells.into_iter().all(|cell| !is_computed(cell) || cell.starts_with(GUARD)), "{cell}");
            assert_eq!(unguarded(&cell), text, "{cell}");
        }
        for computed in ["=1+1", " =1+1", "\u{200b}=1+1", "\u{a0}\u{200b}-1", "\"=1"] {
            assert_eq!(guarded(computed), format!("'{computed}"));
        }
        assert_eq!(guarded("a;=1+1|b"), "a;'=1+1|b");
        for plain in ["m=1", " m", "日本", "a;b"] {
            assert_eq!(guarded(plain), plain);
        }
        assert_eq!(unguarded("'m"), "'m", "what is not guarded stays");
    }

    #[test]
    fn guarded_metadata_are_the_same_json_and_compute_nothing_behind_any_separator() {
        for text in
            ["x;=1+1;y", "a; =1", "|+1", ";\u{200b}@a", "a\t=1", ";;-1;'x", "\";=1", "\\;=1", "plain", "a;b"]
        {
            let json = json!({"name;=1": text, "n": [1, -1]}).to_string();
            let safe = guarded_json(&json);
            let read: Value = serde_json::from_str(&safe).expect("JSON");
            assert_eq!(read.to_string(), json, "{safe}");
            assert!(!safe.split(SEPARATORS).any(is_computed), "{safe}");
        }
        assert!(matches!(guarded_json(r#"{"a":"=1"}"#), Cow::Borrowed(_)), "it begins with a brace");
    }
}

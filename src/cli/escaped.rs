//! Text of others, on its way to a terminal. Players choose names and metadata, and somebody may have taken a
//! service over: what a terminal would obey, or what would show a line in another order, is escaped as JSON
//! does it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// JSON as the same JSON. Its texts may hold such characters as they are, but none below the space.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    // Each of these characters begins with one of three bytes, and most rows have none of them.
    if memchr::memchr3(0x7f, 0xc2, 0xe2, json.as_bytes()).is_none() {
        return Cow::Borrowed(json);
    }
    escaped(json, is_obeyed)
}

/// Any text, whose lines stay lines.
pub fn escaped_text(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_obeyed(c) || (c < ' ' && c != '\n'))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a string does not fail");
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// DEL and the controls above it, and what changes the direction of text.
fn is_obeyed(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_stays_the_same_json_and_has_nothing_that_a_terminal_obeys() {
        for text in
            ["a\u{7f}b", "\u{80}", "\u{9b}2J", "\u{9f}", "x\u{202e}gpj", "\u{2066}\u{2069}", "日本 é\""]
        {
            let json = json!({text: [text]}).to_string();
            let safe = escaped_json(&json);
            assert!(!safe.contains(is_obeyed), "{safe:?}");
            assert_eq!(serde_json::from_str::<Value>(&safe).expect("JSON"), json!({text: [text]}));
        }
        assert_eq!(escaped_json("\"\u{9b}\u{202e}\""), r#""\u009b\u202e""#);
        assert!(matches!(escaped_json("{\"a\":\t\"é\"}\n"), Cow::Borrowed(_)), "nothing is copied");
    }

    #[test]
    fn text_keeps_its_lines_only() {
        assert_eq!(escaped_text("a\u{1b}[2J\r\n\u{7}b"), "a\\u001b[2J\\u000d\n\\u0007b");
        assert_eq!(escaped_text("日本\n"), "日本\n");
    }
}

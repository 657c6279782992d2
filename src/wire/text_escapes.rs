//! Escapes in the texts of JSON: read in any form, written in the shortest.

use std::fmt::Write as _;

/// What stands behind a backslash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// A character, however it was escaped.
    Character(char),
    /// A backslash that begins no escape. Well-formed JSON has none.
    None,
}

impl Escape {
    /// Reads the escape that the text begins with, behind its backslash; and gives what follows it.
    pub fn read(text: &str) -> (Self, &str) {
        let mut characters = text.chars();
        let character = match characters.next() {
            Some('u') => return Self::read_code(text).unwrap_or((Self::None, text)),
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some(character @ ('"' | '\\' | '/')) => character,
            _ => return (Self::None, text),
        };
        (Self::Character(character), characters.as_str())
    }

    /// `u65e5`, or a pair of them for a character beyond U+FFFF.
    fn read_code(text: &str) -> Option<(Self, &str)> {
        let unit = |text: &str| u16::from_str_radix(text.strip_prefix('u')?.get(..4)?, 16).ok();
        let (first, behind) = (unit(text)?, text.get(5..)?);
        if let Some(Ok(character)) = char::decode_utf16([first]).next() {
            return Some((Self::Character(character), behind));
        }
        let second = behind.strip_prefix('\\')?;
        let character = char::decode_utf16([first, unit(second)?]).next()?.ok()?;
        Some((Self::Character(character), second.get(5..)?))
    }

    /// Writes the character, escaped only if JSON demands it.
    pub fn write(self, out: &mut String) {
        let Self::Character(character) = self else { return out.push('\\') };
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            // Writing to a string cannot fail.
            '\0'..' ' => _ = write!(out, "\\u{:04x}", u32::from(character)),
            _ => out.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::wire::compact::compact_unescaped;

    #[test]
    fn texts_have_only_the_escapes_that_they_need() {
        for (json, expect) in [
            (r#"{"\u0041" : "\/\u65E5\u672c"}"#, r#"{"A":"/日本"}"#),
            (r#"{"pair":"\ud83d\ude00","x":1.10}"#, r#"{"pair":"😀","x":1.10}"#),
            (
                r#"{"needed":"\u0022\u005c\u005Cu0041\u000a\u0000\u001F\b\f\n\r\t"}"#,
                r#"{"needed":"\"\\\\u0041\n\u0000\u001f\b\f\n\r\t"}"#,
            ),
            (r#"{"plain":"日 \" é"}"#, r#"{"plain":"日 \" é"}"#),
        ] {
            let (text, _) = compact_unescaped(json);
            assert_eq!(text, expect);
            let value = |json: &str| serde_json::from_str::<Value>(json).expect("JSON");
            assert_eq!(value(&text), value(json));
            assert_eq!(compact_unescaped(&text).0, text, "once is enough");
        }
    }
}

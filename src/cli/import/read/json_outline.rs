//! The fields of an object of JSON that is too long to be kept, or is no row: their names, and what each is.

use crate::cli::import::shell_word::shell_word;
use crate::types::shown;

/// Fields that a message names, and the bytes of a name that are kept.
const FIELDS_NAMED: usize = 20;
const NAME_BYTES: usize = 200;

/// Reads an object byte by byte.
#[derive(Debug, Default)]
pub struct Outline {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// Of a field, as it is written.
    name: Vec<u8>,
    is_before_value: bool,
    /// The name of each, and what its value begins with.
    fields: Vec<(String, u8)>,
}

impl Outline {
    /// Of an object that begins so.
    pub fn begun(text: &[u8]) -> Self {
        let mut outline = Self::default();
        for byte in text {
            outline.pass(*byte);
        }
        outline
    }

    pub fn pass(&mut self, byte: u8) {
        if self.in_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            if self.in_text && self.depth == 1 && self.name.len() < NAME_BYTES {
                self.name.push(byte);
            }
            return;
        }
        if byte.is_ascii_whitespace() {
            return;
        }
        if self.depth == 1 && self.is_before_value {
            self.is_before_value = false;
            if self.fields.len() <= FIELDS_NAMED {
                let name = format!("\"{}\"", String::from_utf8_lossy(&self.name));
                self.fields.extend(serde_json::from_str(&name).ok().map(|name| (name, byte)));
            }
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.name.clear();
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => self.is_before_value = true,
            _ => {}
        }
    }

    /// What the object has, and the options that read one of its fields. Empty: it has none.
    ///
    /// # Arguments
    /// `within`: where the object is.
    pub fn told(&self, within: &[String]) -> String {
        let more = if self.fields.len() > FIELDS_NAMED { " and more" } else { "" };
        let names: Vec<String> = self.fields.iter().take(FIELDS_NAMED).map(|(name, _)| shown(name)).collect();
        if names.is_empty() {
            return String::new();
        }
        let of = |start: u8| -> Vec<String> {
            let those = self.fields.iter().take(FIELDS_NAMED).filter(|(_, found)| *found == start);
            let path = |name: &String| within.iter().chain([name]).cloned().collect::<Vec<_>>().join(".");
            those.map(|(name, _)| format!("--rows-at {}", shell_word(&path(name)))).collect()
        };
        let lists = Some(of(b'[')).filter(|lists| !lists.is_empty()).unwrap_or_else(|| of(b'{'));
        let ways = match lists.as_slice() {
            [] => String::new(),
            [one] => format!("; the rows may be within: {one}"),
            _ => format!("; the rows may be within: {}; each reads what is there alone", lists.join(", or ")),
        };
        format!("; it has: {}{more}{ways}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_an_object_are_told_with_those_that_may_have_rows() {
        for (text, expect) in [
            (
                "{\"n\":1,\"rows\": [{\"a\":[1]}],\"x\":\"[\"}",
                "; it has: n, rows, x; the rows may be within: --rows-at t.rows",
            ),
            (
                "{\"a\\\"b\":[],\"c\":[1,",
                "; it has: a\"b, c; the rows may be within: --rows-at 't.a\"b', or --rows-at t.c; each reads what is there alone",
            ),
            ("{\"a\":{\"b\":[1]}", "; it has: a; the rows may be within: --rows-at t.a"),
            ("{\"a\":1}", "; it has: a"),
            ("{}", ""),
        ] {
            assert_eq!(Outline::begun(text.as_bytes()).told(&["t".to_owned()]), expect, "{text}");
        }
    }
}

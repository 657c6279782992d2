//! JSON without white space between its tokens. The text of every token stays as it is.

use crate::job::MAX_METADATA_BYTES;

/// Well-formed JSON without the white space between its tokens, and how deep it is nested.
#[must_use]
pub fn compact(json: &str) -> (String, usize) {
    let mut out = String::with_capacity(json.len().min(MAX_METADATA_BYTES + 1));
    let (mut inside_text, mut escaped) = (false, false);
    let (mut depth, mut depth_max) = (0_usize, 0);
    for character in json.chars() {
        if inside_text {
            (inside_text, escaped) = (escaped || character != '"', !escaped && character == '\\');
        } else {
            match character {
                ' ' | '\t' | '\n' | '\r' => continue,
                '"' => inside_text = true,
                '{' | '[' => {
                    depth += 1;
                    depth_max = depth_max.max(depth);
                }
                '}' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        out.push(character);
    }
    (out, depth_max)
}

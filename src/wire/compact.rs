//! JSON without white space between its tokens, and texts without escapes that they do not need.

use crate::job::MAX_METADATA_BYTES;
use crate::wire::text_escapes::Escape;

/// Compact JSON whose texts have characters themselves instead of escapes like `\u65e5`, and how deep it is
/// nested. So the same value has the same length, whatever the client's library escapes. Numbers keep their
/// digits and objects their fields.
pub fn compact_unescaped(json: &str) -> (String, usize) {
    let (text, depth) = compact(json);
    if !text.contains('\\') {
        return (text, depth);
    }
    // In well-formed JSON, a backslash begins an escape, and only texts have any.
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.as_str());
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        let (escape, behind) = Escape::read(behind);
        escape.write(&mut out);
        rest = behind;
    }
    out.push_str(rest);
    (out, depth)
}

/// Well-formed JSON without the white space between its tokens, and how deep it is nested.
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
